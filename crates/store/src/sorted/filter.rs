//! A Bloom filter: which keys a table does not have, without reading it.

/// Bits for each key: with four of them set, three keys in a thousand that are not there are taken for one that is.
const BITS_PER_KEY: usize = 16;

/// Hashes of keys.
pub(super) struct Filter {
    words: Vec<u64>,
}

impl Filter {
    /// A filter for so many keys.
    pub(super) fn new(keys: usize) -> Self {
        Self { words: vec![0; (keys * BITS_PER_KEY).div_ceil(64).max(1)] }
    }

    pub(super) fn insert(&mut self, hash: u64) {
        for (word, bit) in self.bits(hash) {
            self.words[word] |= bit;
        }
    }

    /// Whether a key with this hash may be there.
    pub(super) fn may_have(&self, hash: u64) -> bool {
        self.bits(hash).all(|(word, bit)| self.words[word] & bit != 0)
    }

    /// The words and bits of a hash: four, by two halves of it.
    fn bits(&self, hash: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let bits = self.words.len() as u64 * 64;
        let step = (hash >> 32) | 1;
        (0..4).map(move |number| {
            let bit = hash.wrapping_add(step.wrapping_mul(number)) % bits;
            (usize::try_from(bit / 64).unwrap_or(0), 1 << (bit % 64))
        })
    }
}

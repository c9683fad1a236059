//! SHA-512 digests, each kept once and named by a number.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use crate::digest::{Algorithm, Digest};

/// The number of a digest in its [`DigestTable`].
pub(in crate::ocfl) type DigestId = u32;

/// The bytes of a SHA-512.
type Bytes = [u8; 64];

/// Digests, found by number or by what they are. The hasher has random keys, since an inventory's digests are hostile.
#[derive(Clone, Debug, Default)]
pub(super) struct DigestTable {
    all: Vec<Bytes>,
    ids: HashTable<DigestId>,
    hasher: RandomState,
}

impl DigestTable {
    /// The number of a digest, a new one where it is new.
    pub(super) fn intern(&mut self, digest: &Digest) -> DigestId {
        if let Some(id) = self.find(digest) {
            return id;
        }
        let bytes = bytes(digest);
        let id = DigestId::try_from(self.all.len()).expect("the number of entries of an inventory is limited");
        self.all.push(bytes);
        let (all, hasher) = (&self.all, &self.hasher);
        self.ids.insert_unique(hasher.hash_one(bytes), id, |other| hasher.hash_one(all[*other as usize]));
        id
    }

    /// The number of a digest, where it is there.
    pub(super) fn find(&self, digest: &Digest) -> Option<DigestId> {
        let bytes = bytes(digest);
        self.ids.find(self.hasher.hash_one(bytes), |id| self.all[*id as usize] == bytes).copied()
    }

    /// The digest with a number.
    pub(super) fn digest(&self, id: DigestId) -> Digest {
        Digest::new(Algorithm::Sha512, self.bytes(id)).expect("64 bytes are a SHA-512")
    }

    /// The bytes of the digest with a number.
    pub(super) fn bytes(&self, id: DigestId) -> &Bytes {
        &self.all[id as usize]
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

fn bytes(digest: &Digest) -> Bytes {
    digest.as_bytes().try_into().expect("only SHA-512 is used for content")
}

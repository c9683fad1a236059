//! What the depositors' files consist of. It follows from the seed and the path, so that nothing is kept anywhere.

use bytes::Bytes;

use super::collections::{Collection, Form};
use super::dice::Dice;
use queuekeeper_store::{Algorithm, Digest, Hashers};

/// How many bytes of a file are chosen by chance, and repeated as often as it is long.
const PATTERN: usize = 16 << 10;

/// The longest file whose digest depositors give: computing it takes time.
const MOST_DIGESTED: u64 = 1 << 20;

/// How many files an object has that has several.
const FILES: (u64, u64) = (2, 6);

/// A file of a depositor.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pattern: Bytes,
    /// How many bytes it has.
    pub(super) size: u64,
}

impl Content {
    fn new(seed: u64, path: &str, size: u64) -> Self {
        let mut dice = Dice::new(seed, ("content", path));
        let pattern = dice.fill(PATTERN.min(usize::try_from(size).unwrap_or(PATTERN)));
        Self { pattern: pattern.into(), size }
    }

    /// A text or archive that is whole in memory.
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self { size: bytes.len() as u64, pattern: bytes.into() }
    }

    /// Up to `most` of its bytes from an offset on; none behind its end.
    pub(super) fn piece(&self, offset: u64, most: u64) -> Bytes {
        let whole = self.pattern.len() as u64;
        let left = self.size.saturating_sub(offset).min(most);
        if left == 0 || whole == 0 {
            return Bytes::new();
        }
        let from = offset % whole;
        let to = (from + left).min(whole);
        #[expect(clippy::cast_possible_truncation, reason = "both are within the pattern, which is in memory")]
        self.pattern.slice(from as usize..to as usize)
    }

    /// The same with other bytes, as a disk gives them that is about to fail.
    pub(super) fn damaged(self) -> Self {
        let mut pattern = self.pattern.to_vec();
        pattern.iter_mut().step_by(61).for_each(|byte| *byte = !*byte);
        Self { pattern: pattern.into(), ..self }
    }

    /// The digest that its depositor gives; `None` for a file that is too long for that.
    pub(super) fn digest(&self) -> Option<Digest> {
        if self.size > MOST_DIGESTED {
            return None;
        }
        let mut hashers = Hashers::new([Algorithm::Sha256]);
        let mut offset = 0;
        while offset < self.size {
            let piece = self.piece(offset, u64::MAX);
            hashers.update(&piece);
            offset += piece.len() as u64;
        }
        hashers.finish().get(Algorithm::Sha256).cloned()
    }
}

/// One object of a depositor, by its place: the name of its submission, and its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct DemoObject<'a> {
    pub(super) seed: u64,
    pub(super) collection: &'static Collection,
    pub(super) submission: &'a str,
    pub(super) object: &'a str,
}

impl DemoObject<'_> {
    /// Its path at the depositor's server.
    pub(super) fn path(&self) -> String {
        format!("/{}/{}", self.submission, self.object)
    }

    /// The names and contents of its files, all but for the manifest that names them; one for an object that is a file.
    pub(super) fn files(&self) -> Vec<(String, Content)> {
        let path = self.path();
        let (least, most) = self.collection.sizes;
        let mut dice = Dice::new(self.seed, ("sizes", &path));
        let count = if self.collection.form == Form::File { 1 } else { dice.between(FILES.0, FILES.1) };
        let file = |number: u64| {
            let size = (dice.bytes(least, most) / count).max(1);
            let name = match self.collection.form {
                Form::File => self.object.to_owned(),
                Form::Container | Form::Manifest => format!("data/part_{number:02}.bin"),
            };
            let content = Content::new(self.seed, &format!("{path}/{name}"), size);
            (name, content)
        };
        (1..=count).map(file).collect()
    }

    /// The container of its files.
    pub(super) fn container(&self) -> Content {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, content) in self.files() {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.size);
            header.set_mode(0o644);
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < content.size {
                bytes.extend_from_slice(&content.piece(bytes.len() as u64, u64::MAX));
            }
            tar.append_data(&mut header, &name, bytes.as_slice())
                .expect("memory can be written, and the name is short");
        }
        Content::of(tar.into_inner().expect("memory can be written"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::collections::{COLLECTIONS, FILMS};
    use super::*;

    #[test]
    fn a_file_is_the_same_wherever_one_begins_to_read_it() {
        let content = Content::new(7, "/a/b", 40_000);
        let all = |content: &Content, from: u64| {
            let mut bytes = Vec::new();
            while from + (bytes.len() as u64) < content.size {
                bytes.extend_from_slice(&content.piece(from + bytes.len() as u64, 9_000));
            }
            bytes
        };
        let whole = all(&content, 0);
        assert_eq!(whole.len(), 40_000);
        assert_eq!(all(&content, 12_345), whole[12_345..]);
        assert!(content.piece(40_000, 1).is_empty());
        assert_ne!(whole, all(&Content::new(8, "/a/b", 40_000), 0));
        let damaged = content.clone().damaged();
        assert_eq!((damaged.size, damaged.digest() == content.digest()), (content.size, false));
        let mut hashers = Hashers::new([Algorithm::Sha256]);
        hashers.update(&whole);
        assert_eq!(content.digest(), hashers.finish().get(Algorithm::Sha256).cloned());
        assert_eq!(Content::new(7, "/a/c", 2 << 20).digest(), None);
    }

    #[test]
    fn objects_have_files_of_the_size_of_their_collection() {
        for collection in COLLECTIONS.iter().chain([&FILMS]) {
            let place = DemoObject { seed: 1, collection, submission: "s_1", object: "o" };
            let files = place.files();
            let size: u64 = files.iter().map(|(_, content)| content.size).sum();
            assert!(size <= collection.sizes.1 && size >= collection.sizes.0 / 2, "{size} of {}", collection.mnemonic);
            assert_eq!(files.len() == 1, collection.form == Form::File);
            if collection.form == Form::Container {
                assert!(place.container().size > size);
            }
        }
    }
}

//! What an inventory says of files, as sorted records outside of memory.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::digest::{Algorithm, Digest};
use crate::ocfl::path;
use crate::sorted::{Merged, Record, Sorter, Table, changed};

/// The length of a SHA-512, in bytes.
const DIGEST: usize = 64;

/// The length of the number of a version in a key, in bytes.
const NUMBER: usize = 4;

/// Tables with records of one kind.
#[derive(Clone, Default)]
pub(super) struct Relation(Vec<Table>);

impl fmt::Debug for Relation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} tables", self.0.len())
    }
}

impl Relation {
    pub(super) fn all(&self) -> Merged {
        self.within(b"")
    }

    /// The records whose keys begin with a prefix.
    pub(super) fn within(&self, prefix: &[u8]) -> Merged {
        Merged::new(&self.0, prefix)
    }

    /// The first record whose key begins with a prefix.
    pub(super) fn first(&self, prefix: &[u8]) -> io::Result<Option<Record>> {
        self.within(prefix).next().transpose()
    }
}

/// Digests are SHA-512s, versions their numbers of four bytes, both so that they sort as what they stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct Relations {
    /// Digest and content path.
    pub(super) manifest: Relation,
    /// Content path: digest.
    pub(super) content: Relation,
    /// Version and logical path: digest.
    pub(super) states: Relation,
    /// Version, digest and logical path.
    pub(super) states_by_digest: Relation,
    /// The place of the algorithm's name, the length of the digest's text, that text, and the content path.
    pub(super) fixity: Relation,
    /// Content path: the place of the algorithm's name and the digest's text.
    pub(super) fixity_by_path: Relation,
}

impl Relations {
    fn each(&mut self) -> [&mut Relation; 6] {
        let Self { manifest, content, states, states_by_digest, fixity, fixity_by_path } = self;
        [manifest, content, states, states_by_digest, fixity, fixity_by_path]
    }

    /// Adds those of a new version.
    pub(super) fn extend(&mut self, mut others: Self) {
        for (relation, others) in self.each().into_iter().zip(others.each()) {
            relation.0.append(&mut others.0);
        }
    }
}

/// Relations while their records come.
pub(super) struct Relating {
    manifest: Sorter,
    content: Sorter,
    states: Sorter,
    states_by_digest: Sorter,
    fixity: Sorter,
    fixity_by_path: Sorter,
    key: Vec<u8>,
}

impl Relating {
    pub(super) fn new(directory: &Arc<Path>) -> Self {
        let sorter = || Sorter::new(directory);
        Self {
            manifest: sorter(),
            content: sorter(),
            states: sorter(),
            states_by_digest: sorter(),
            fixity: sorter(),
            fixity_by_path: sorter(),
            key: Vec::new(),
        }
    }

    /// Takes an entry of the manifest.
    pub(super) fn content(&mut self, digest: &[u8], path: &str) -> io::Result<()> {
        self.manifest.push(joined(&mut self.key, &[digest, path.as_bytes()]), b"")?;
        self.content.push(path.as_bytes(), digest)
    }

    /// Takes a file of a version.
    pub(super) fn file(&mut self, version: u32, digest: &[u8], path: &str) -> io::Result<()> {
        let (version, path) = (version.to_be_bytes(), path.as_bytes());
        self.states.push(joined(&mut self.key, &[&version, path]), digest)?;
        self.states_by_digest.push(joined(&mut self.key, &[&version, digest, path]), b"")
    }

    /// Takes an entry of the fixity block.
    pub(super) fn fixity(&mut self, algorithm: u8, digest: &str, path: &str) -> io::Result<()> {
        let length = u32::try_from(digest.len()).map_err(io::Error::other)?.to_be_bytes();
        let (digest, path) = (digest.as_bytes(), path.as_bytes());
        self.fixity.push(joined(&mut self.key, &[&[algorithm], &length, digest, path]), b"")?;
        self.fixity_by_path.push(path, joined(&mut self.key, &[&[algorithm], digest]))
    }

    pub(super) fn finish(self) -> io::Result<Relations> {
        let relation = |sorter: Sorter| Ok::<_, io::Error>(Relation(vec![sorter.finish()?]));
        Ok(Relations {
            manifest: relation(self.manifest)?,
            content: relation(self.content)?,
            states: relation(self.states)?,
            states_by_digest: relation(self.states_by_digest)?,
            fixity: relation(self.fixity)?,
            fixity_by_path: relation(self.fixity_by_path)?,
        })
    }
}

/// The place of an algorithm's name among others, behind them where it is new.
pub(super) fn algorithm_place(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

/// The parts of a key in one piece.
fn joined<'a>(key: &'a mut Vec<u8>, parts: &[&[u8]]) -> &'a [u8] {
    key.clear();
    for part in parts {
        key.extend_from_slice(part);
    }
    key
}

/// The beginning of the keys that a version has in both relations of states.
pub(super) fn version_key(version: u32) -> [u8; NUMBER] {
    version.to_be_bytes()
}

/// The version, and what follows it, in a key of `states` or `states_by_digest`.
pub(super) fn split_version(key: &[u8]) -> io::Result<(u32, &[u8])> {
    let (version, rest) = key.split_first_chunk().ok_or_else(changed)?;
    Ok((u32::from_be_bytes(*version), rest))
}

/// The digest, and the path behind it, in a key of `manifest`, or of `states_by_digest` without its version.
pub(super) fn split_digest(key: &[u8]) -> io::Result<(&[u8], &str)> {
    let (digest, path) = key.split_at_checked(DIGEST).ok_or_else(changed)?;
    Ok((digest, path::text(path)?))
}

/// The digest's text, and the path behind it, in a key of `fixity`.
pub(super) fn split_fixity(key: &[u8]) -> io::Result<(&[u8], &str)> {
    let parts = || {
        let (length, rest) = key.get(1..)?.split_first_chunk()?;
        rest.split_at_checked(u32::from_be_bytes(*length) as usize)
    };
    let (digest, path) = parts().ok_or_else(changed)?;
    Ok((digest, path::text(path)?))
}

/// A SHA-512 that was kept as bytes.
pub(super) fn sha512(bytes: &[u8]) -> io::Result<Digest> {
    Digest::new(Algorithm::Sha512, bytes).map_err(|_| changed())
}

//! The inventory of an object, held compactly: every path and digest once, entries as pairs of numbers.

use uuid::Uuid;

use crate::digest::{Algorithm, Digest, Digests, Hashers};
use crate::ocfl::strings::{StringId, Strings};

mod block;
mod build;
mod check;
mod decode;
mod digests;
mod encode;
#[cfg(test)]
mod tests;

pub(super) use build::{Stored, VersionText};
pub(super) use decode::{Failure, Loaded, decode};
pub(super) use digests::DigestId;
use digests::DigestTable;
pub(super) use encode::{encode, measure};

/// The most files that a version may have.
pub(super) const MOST_FILES: usize = 400_000;

/// The most versions that an object may have.
pub(super) const MOST_VERSIONS: usize = 10_000;

/// The most entries of all blocks together: a bound on memory, 8 to 12 bytes each.
const MOST_ENTRIES: usize = 16_000_000;

/// The most bytes of all paths, and of all digests in the fixity block.
const MOST_TEXT_BYTES: usize = 512 << 20;

/// The inventory of an object at one of its versions.
///
/// In memory it has about 250 bytes for each file with its content path and digests, and 8 for each version that has it.
#[derive(Clone, Debug)]
pub struct Inventory {
    id: String,
    names_content_directory: bool,
    digests: DigestTable,
    /// Logical paths and content paths alike.
    paths: Strings,
    /// By digest.
    manifest: Vec<Entry>,
    fixity: Vec<FixityEntry>,
    fixity_algorithms: Strings,
    fixity_digests: Strings,
    versions: Vec<Version>,
}

/// A path that has content with a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    digest: DigestId,
    path: StringId,
}

/// What the fixity block says of a content path.
#[derive(Clone, Copy, Debug)]
struct FixityEntry {
    algorithm: StringId,
    digest: StringId,
    path: StringId,
}

/// A version, with its state by path number.
#[derive(Clone, Debug, Default)]
struct Version {
    created: String,
    message: Option<String>,
    user: Option<User>,
    state: Vec<Entry>,
}

/// Who made a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// A URI that leads to the user, such as `mailto:..`; none where there is none.
    pub address: Option<String>,
}

/// What an inventory says of a version, besides its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionInfo<'a> {
    /// Its number, from 1.
    pub number: u32,
    /// When it was made, as the inventory has it (RFC 3339).
    pub created: &'a str,
    /// Why; that of our versions begins with `job UUID`.
    pub message: Option<&'a str>,
    /// Who made it.
    pub user: Option<&'a User>,
    /// How many files it has.
    pub files: usize,
}

impl VersionInfo<'_> {
    /// The job that made it, where it is one of ours.
    #[must_use]
    pub fn job(&self) -> Option<Uuid> {
        let uuid = self.message?.strip_prefix("job ")?;
        let end = uuid.find(':').unwrap_or(uuid.len());
        uuid[..end].parse().ok()
    }
}

/// A file of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry<'a> {
    /// Its logical path.
    pub path: &'a str,
    /// Its SHA-512.
    pub digest: Digest,
    /// Where its bytes lie, relative to the root of the object.
    pub content_path: &'a str,
}

impl Inventory {
    /// The identifier of the object.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The number of its newest version, from 1.
    #[must_use]
    pub fn head(&self) -> u32 {
        u32::try_from(self.versions.len()).unwrap_or(u32::MAX)
    }

    /// What it says of a version; `None` where there is none with that number.
    #[must_use]
    pub fn version(&self, number: u32) -> Option<VersionInfo<'_>> {
        let version = self.at(number)?;
        Some(VersionInfo {
            number,
            created: &version.created,
            message: version.message.as_deref(),
            user: version.user.as_ref(),
            files: version.state.len(),
        })
    }

    /// All versions, the oldest first.
    pub fn versions(&self) -> impl Iterator<Item = VersionInfo<'_>> {
        (1..=self.head()).filter_map(|number| self.version(number))
    }

    /// The version that a job made, where there is one.
    #[must_use]
    pub fn version_of(&self, job: Uuid) -> Option<u32> {
        self.versions().find(|version| version.job() == Some(job)).map(|version| version.number)
    }

    /// The files of a version, in no particular order; none where there is no such version.
    pub fn files(&self, version: u32) -> impl Iterator<Item = FileEntry<'_>> {
        self.at(version).into_iter().flat_map(|version| &version.state).map(|entry| self.file_entry(*entry))
    }

    /// A file of a version, by its logical path.
    #[must_use]
    pub fn file(&self, version: u32, path: &str) -> Option<FileEntry<'_>> {
        let id = self.paths.find(path)?;
        let state = &self.at(version)?.state;
        let at = state.binary_search_by_key(&id, |entry| entry.path).ok()?;
        Some(self.file_entry(state[at]))
    }

    /// Every content path with the SHA-512 of what lies there.
    pub fn content(&self) -> impl Iterator<Item = (&str, Digest)> {
        self.manifest.iter().map(|entry| (self.paths.get(entry.path), self.digests.digest(entry.digest)))
    }

    /// Whether some version has content with this SHA-512.
    pub(super) fn has_content(&self, digest: &Digest) -> bool {
        self.digests.find(digest).is_some_and(|id| self.content_of(id).is_some())
    }

    /// Every content path with the SHA-512 of what lies there, and what the fixity block has of it by algorithms that this
    /// program knows.
    pub(super) fn content_with_fixity(&self) -> impl Iterator<Item = (&str, Digests)> {
        // Places in the block, by path: a map with the digests themselves would have several hundred bytes for each.
        let mut by_path: Vec<_> = (0..self.fixity.len()).collect();
        by_path.sort_unstable_by_key(|at| self.fixity[*at].path);
        self.manifest.iter().map(move |entry| {
            let first = by_path.partition_point(|at| self.fixity[*at].path < entry.path);
            let of_path = by_path[first..].iter().map(|at| &self.fixity[*at]);
            let of_path = of_path.take_while(|fixity| fixity.path == entry.path);
            let mut digests: Digests = of_path.filter_map(|fixity| self.fixity_digest(fixity)).collect();
            digests.insert(self.digests.digest(entry.digest));
            (self.paths.get(entry.path), digests)
        })
    }

    fn fixity_digest(&self, entry: &FixityEntry) -> Option<Digest> {
        let algorithm: Algorithm = self.fixity_algorithms.get(entry.algorithm).parse().ok()?;
        Digest::from_hex(algorithm, self.fixity_digests.get(entry.digest)).ok()
    }

    /// The number of a path that is in the inventory, for [`Self::content_flags`].
    pub(super) fn path_number(&self, path: &str) -> Option<usize> {
        self.paths.find(path).map(|id| id as usize)
    }

    /// For each path number, whether it is a content path of the manifest.
    pub(super) fn content_flags(&self) -> Vec<bool> {
        let mut flags = vec![false; self.paths.len()];
        for entry in &self.manifest {
            flags[entry.path as usize] = true;
        }
        flags
    }

    /// A digest of the files of a version, by which two inventories are compared.
    pub(super) fn state_digest(&self, version: u32) -> Option<Digest> {
        let mut files: Vec<_> =
            self.state_of(version).map(|(path, digest)| (path, self.digests.bytes(digest))).collect();
        files.sort_unstable();
        let mut hashers = Hashers::new([Algorithm::Sha256]);
        for (path, digest) in files {
            hashers.update(&(path.len() as u64).to_be_bytes());
            hashers.update(path.as_bytes());
            hashers.update(digest);
        }
        hashers.finish().strongest().cloned()
    }

    fn at(&self, version: u32) -> Option<&Version> {
        self.versions.get((version as usize).checked_sub(1)?)
    }

    fn file_entry(&self, entry: Entry) -> FileEntry<'_> {
        let content = self.content_of(entry.digest).expect("the digests of every state are in the manifest");
        FileEntry {
            path: self.paths.get(entry.path),
            digest: self.digests.digest(entry.digest),
            content_path: self.paths.get(content),
        }
    }

    /// A content path with content of this digest.
    fn content_of(&self, digest: DigestId) -> Option<StringId> {
        let first = self.manifest.partition_point(|entry| entry.digest < digest);
        self.manifest.get(first).filter(|entry| entry.digest == digest).map(|entry| entry.path)
    }
}

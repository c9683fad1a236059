//! The inventory of an object: its versions in memory, and what it says of files as sorted records outside of it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use crate::digest::{Algorithm, Digest, Digests, Hashers};
use crate::ocfl::error::OcflError;
use crate::ocfl::path;
use crate::sorted::{Merged, changed};

mod block;
mod build;
mod check;
mod decode;
mod encode;
mod failure;
mod relations;
#[cfg(test)]
mod tests;

pub(super) use build::{Stored, VersionText};
pub(super) use decode::{Loaded, decode};
pub(super) use encode::{encode, measure};
pub(super) use failure::Failure;
use relations::{Relations, sha512, split_digest, split_version, version_key};

/// The most files that a version may have.
pub(super) const MOST_FILES: usize = 400_000;

/// The most versions that an object may have.
pub(super) const MOST_VERSIONS: usize = 10_000;

/// The most entries of all blocks together: a bound on time and on temporary files.
const MOST_ENTRIES: usize = 16_000_000;

/// The most bytes that the paths of a block have together, and the digests of the fixity block.
const MOST_TEXT_BYTES: usize = 512 << 20;

/// The inventory of an object at one of its versions.
///
/// What it says of files is in memory only as long as that is little, else in temporary files, so that memory does not
/// grow with the number of files. What reads it blocks its thread for as long as the file system does, and fails with
/// [`OcflError::Temporary`].
#[derive(Clone, Debug)]
pub struct Inventory {
    id: String,
    names_content_directory: bool,
    versions: Vec<Version>,
    /// The names of the algorithms in the fixity block.
    algorithms: Vec<String>,
    relations: Relations,
    /// Where temporary files are.
    directory: Arc<Path>,
}

/// A version, without its files.
#[derive(Clone, Debug, Default)]
struct Version {
    created: String,
    message: Option<String>,
    user: Option<User>,
    files: usize,
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
pub struct FileEntry {
    /// Its logical path.
    pub path: String,
    /// Its SHA-512.
    pub digest: Digest,
    /// Where its bytes lie, relative to the root of the object.
    pub content_path: String,
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
            files: version.files,
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

    /// The files of a version, in no particular order; none where there is no such version. An error ends them.
    pub fn files(&self, version: u32) -> impl Iterator<Item = Result<FileEntry, OcflError>> + Send + use<> {
        let mut manifest = self.relations.manifest.all();
        let files = self.relations.states_by_digest.within(&version_key(version)).map(move |record| {
            let record = record?;
            let (_, file) = split_version(record.key())?;
            let (digest, path) = split_digest(file)?;
            manifest.seek(digest)?;
            let content = manifest.peek()?.ok_or_else(changed)?;
            file_entry(path, digest, content.key())
        });
        let directory = Arc::clone(&self.directory);
        files.map(move |file| file.map_err(|source| OcflError::temporary(&directory, source)))
    }

    /// A file of a version, by its logical path.
    ///
    /// # Errors
    /// [`OcflError::Temporary`].
    pub fn file(&self, version: u32, path: &str) -> Result<Option<FileEntry>, OcflError> {
        let find = || {
            let Some(digest) = self.file_digest(version, path)? else { return Ok(None) };
            let content = self.relations.manifest.first(&digest)?.ok_or_else(changed)?;
            file_entry(path, &digest, content.key()).map(Some)
        };
        find().map_err(|source| OcflError::temporary(&self.directory, source))
    }

    /// Every content path with the SHA-512 of what lies there, sorted by bytes. An error ends them.
    pub fn content(&self) -> impl Iterator<Item = Result<(String, Digest), OcflError>> + Send + use<> {
        let directory = Arc::clone(&self.directory);
        self.relations.content.all().map(move |record| {
            let entry = |record: io::Result<crate::sorted::Record>| {
                let record = record?;
                Ok((path::text(record.key())?.to_owned(), sha512(record.value())?))
            };
            entry(record).map_err(|source| OcflError::temporary(&directory, source))
        })
    }

    /// The content paths that begin with a prefix, as keys, sorted by bytes.
    pub(super) fn content_within(&self, prefix: &str) -> Merged {
        self.relations.content.within(prefix.as_bytes())
    }

    /// Whether some version has content with this SHA-512.
    pub(super) fn has_content(&self, digest: &Digest) -> io::Result<bool> {
        Ok(self.relations.manifest.first(digest.as_bytes())?.is_some())
    }

    /// The SHA-512 of a file of a version, as bytes.
    pub(super) fn file_digest(&self, version: u32, path: &str) -> io::Result<Option<Vec<u8>>> {
        let key = [&version_key(version), path.as_bytes()].concat();
        let found = self.relations.states.first(&key)?;
        Ok(found.filter(|record| record.key() == key).map(|record| record.value().to_vec()))
    }

    /// The logical paths of a version, sorted by bytes, with their SHA-512s as bytes.
    pub(super) fn state_of(&self, version: u32) -> impl Iterator<Item = io::Result<(String, Vec<u8>)>> + use<> {
        self.relations.states.within(&version_key(version)).map(|record| {
            let record = record?;
            let (_, path) = split_version(record.key())?;
            Ok((path::text(path)?.to_owned(), record.value().to_vec()))
        })
    }

    /// Every content path with the SHA-512 of what lies there, and what the fixity block has of it by algorithms that
    /// this program knows.
    pub(super) fn content_with_fixity(&self) -> impl Iterator<Item = io::Result<(String, Digests)>> + Send + use<> {
        let mut fixity = self.relations.fixity_by_path.all();
        let algorithms: Vec<Option<Algorithm>> = self.algorithms.iter().map(|name| name.parse().ok()).collect();
        self.relations.content.all().map(move |record| {
            let record = record?;
            let mut digests = Digests::default();
            fixity.seek(record.key())?;
            while let Some(entry) = fixity.next_if(|entry| entry.key() == record.key())? {
                let (algorithm, digest) = entry.value().split_first().ok_or_else(changed)?;
                let algorithm = algorithms.get(usize::from(*algorithm)).copied().flatten();
                digests.extend(algorithm.and_then(|known| Digest::from_hex(known, path::text(digest).ok()?).ok()));
            }
            digests.insert(sha512(record.value())?);
            Ok((path::text(record.key())?.to_owned(), digests))
        })
    }

    /// A digest of the files of a version, by which two inventories are compared.
    pub(super) fn state_digest(&self, version: u32) -> io::Result<Option<Digest>> {
        let mut hashers = Hashers::new([Algorithm::Sha256]);
        for file in self.state_of(version) {
            let (path, digest) = file?;
            hashers.update(&(path.len() as u64).to_be_bytes());
            hashers.update(path.as_bytes());
            hashers.update(&digest);
        }
        Ok(hashers.finish().strongest().cloned())
    }

    fn at(&self, version: u32) -> Option<&Version> {
        self.versions.get((version as usize).checked_sub(1)?)
    }
}

/// A file, and the entry of the manifest that has its content.
fn file_entry(path: &str, digest: &[u8], content: &[u8]) -> io::Result<FileEntry> {
    let (found, content_path) = split_digest(content)?;
    if found != digest {
        return Err(changed());
    }
    Ok(FileEntry { path: path.to_owned(), digest: sha512(digest)?, content_path: content_path.to_owned() })
}

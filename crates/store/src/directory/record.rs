//! What a directory cannot say of a file: its digests, and what a user says of it. Kept outside the content, in files
//! of our own, so that the content's tree holds nothing but content.
//!
//! A record belongs to one state of an item, and is named by its key and entity tag: it is written before the content
//! appears and removed after it is gone, so that at every instant what is there has its own record, or none.
//!
//! What a user says is made durable. Digests are not, since they can be computed from the content: after a loss of
//! power the record of an item that was just written may be gone or cut short, and its digests are not known without
//! reading it. To sync each record would double the syncs of a put.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::temporary::temporary_file;
use super::tree::sync;
use crate::digest::{Algorithm, Digests, Hashers};
use crate::error::ErrorKind;
use crate::key::Key;
use crate::store::{EntityTag, UserProperties};

/// The largest record that is read, in bytes: user properties have 8 KiB at most.
const MOST_BYTES: u64 = 64 << 10;

/// What is kept of one state of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The key of the item that the record belongs to.
    key: RecordKey,
    /// The digests that were computed as it was written.
    pub(super) digests: Digests,
    /// What a user says of it.
    #[serde(flatten)]
    pub(super) user: UserProperties,
}

/// A key as text, where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum RecordKey {
    Text(String),
    Bytes(Vec<u8>),
}

impl Default for RecordKey {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// The records of a space.
pub(super) struct Records {
    top: PathBuf,
}

impl Record {
    pub(super) fn new(key: &Key, digests: Digests, user: UserProperties) -> Self {
        let text = key.as_str().map(|text| RecordKey::Text(text.to_owned()));
        Self { key: text.unwrap_or_else(|| RecordKey::Bytes(key.as_bytes().to_vec())), digests, user }
    }

    /// Whether it says nothing: such a record is not kept.
    pub(super) fn is_empty(&self) -> bool {
        self.digests.is_empty() && !self.has_user()
    }

    /// Whether it has what only a user could say again.
    fn has_user(&self) -> bool {
        self.user != UserProperties::default()
    }

    /// The key, if it is one.
    pub(super) fn key(&self) -> Option<Key> {
        match &self.key {
            RecordKey::Text(text) => text.parse().ok(),
            RecordKey::Bytes(bytes) => Key::new(bytes.clone()).ok(),
        }
    }
}

impl Records {
    /// The records below a directory, which is made when there is one to write.
    pub(super) fn new(top: PathBuf) -> Self {
        Self { top }
    }

    fn path(&self, key: &Key, etag: &EntityTag) -> PathBuf {
        let mut hasher = Hashers::new([Algorithm::Sha256]);
        hasher.update(key.as_bytes());
        let name = hasher.finish().strongest().map_or_else(String::new, crate::digest::Digest::hex);
        // Directories of some thousand files stay fast on every file system.
        self.top.join(&name[..3]).join(format!("{}.{etag}", &name[3..]))
    }

    /// The record of an item in this state; an empty one where there is none.
    pub(super) fn read(&self, key: &Key, etag: &EntityTag) -> Result<Record, ErrorKind> {
        let path = self.path(key, etag);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Record::default()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let path = path.display();
                return Err(ErrorKind::Refused(format!(
                    "the item is readable, but not its record {path}, which has its digests; change the owner or mode of the record"
                )));
            }
            Err(error) => return Err(error.into()),
        };
        let is_empty = file.metadata()?.len() == 0;
        let record = read(file)?;
        // An empty one was not written to its end before a loss of power.
        if record.is_none() && !is_empty {
            let path = path.display();
            tracing::warn!(%path, "a record of an item is damaged: its digests and properties are not known");
        }
        Ok(record.unwrap_or_default())
    }

    /// Writes the record of an item in a state that no reader sees yet; the answer is the directory that has to be
    /// synced, where the record has to be durable.
    pub(super) fn write(
        &self,
        key: &Key,
        etag: &EntityTag,
        record: &Record,
        temporary: &Path,
    ) -> io::Result<Option<File>> {
        if record.has_user() {
            return self.replace(key, etag, record, temporary).map(Some);
        }
        let (path, text) = (self.path(key, etag), serde_json::to_vec(record)?);
        self.in_directory_of(&path, || fs::write(&path, &text))?;
        Ok(None)
    }

    /// Lets a record take the place of the one of an item in this state, which may be read meanwhile; the answer is the
    /// directory that has to be synced.
    pub(super) fn replace(&self, key: &Key, etag: &EntityTag, record: &Record, temporary: &Path) -> io::Result<File> {
        let path = self.path(key, etag);
        // A user who may read the content may read its record.
        let mut file = temporary_file(temporary)?;
        file.write_all(&serde_json::to_vec(record)?)?;
        file.as_file().sync_all()?;
        self.in_directory_of(&path, || fs::rename(file.path(), &path))?;
        // A record that was not synced may have made them.
        for directory in [Some(self.top.as_path()), self.top.parent()].into_iter().flatten() {
            sync(File::open(directory)?)?;
        }
        File::open(path.parent().unwrap_or(&self.top))
    }

    /// Does something in the directory of a record, which is made where it is missing.
    fn in_directory_of(&self, path: &Path, run: impl Fn() -> io::Result<()>) -> io::Result<()> {
        match run() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(path.parent().unwrap_or(&self.top))?;
                run()
            }
            done => done,
        }
    }

    /// Removes the record of an item in this state.
    pub(super) fn remove(&self, key: &Key, etag: &EntityTag) -> io::Result<()> {
        match fs::remove_file(self.path(key, etag)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Every record, with its path and the entity tag in its name.
    pub(super) fn all(&self) -> io::Result<impl Iterator<Item = io::Result<(PathBuf, EntityTag)>> + use<>> {
        let folders = match fs::read_dir(&self.top) {
            Ok(folders) => Some(folders),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let files = folders.into_iter().flatten().flat_map(|folder| {
            let files = folder.and_then(|folder| fs::read_dir(folder.path()));
            let (files, error) = match files {
                Ok(files) => (Some(files), None),
                Err(error) => (None, Some(Err(error))),
            };
            files.into_iter().flatten().chain(error)
        });
        Ok(files.filter_map(|file| match file {
            Ok(file) => {
                let name = file.file_name().into_string().ok()?;
                let (_, etag) = name.split_once('.')?;
                Some(Ok((file.path(), EntityTag(etag.to_owned()))))
            }
            Err(error) => Some(Err(error)),
        }))
    }

    /// Removes all of them.
    pub(super) fn clear(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.top) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// A record from its file; `None` for one that was damaged.
pub(super) fn read(file: File) -> io::Result<Option<Record>> {
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes).ok())
}

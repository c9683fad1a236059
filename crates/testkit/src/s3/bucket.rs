//! Buckets: ordered maps of keys to versions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use s3s::{S3Result, s3_error};

use super::object::Object;
use super::upload::Upload;

/// The identifier of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionId {
    /// Written while versions were not kept.
    Null,
    /// Written while they were.
    Number(u64),
}

impl VersionId {
    /// As text in headers.
    pub(super) fn text(self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Number(number) => format!("v{number:016x}"),
        }
    }
}

/// A state of a key: an object, or a marker that it was deleted.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) id: VersionId,
    pub(super) modified: SystemTime,
    /// `None` for a delete marker.
    pub(super) object: Option<Arc<Object>>,
}

/// A key's versions: the current one, and the others with the newest last.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) current: Version,
    pub(super) older: Vec<Version>,
}

/// Whether a bucket keeps versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Versioning {
    /// It never did.
    #[default]
    Never,
    Enabled,
    Suspended,
}

/// What a deletion did.
pub(super) struct Deleted {
    /// The version that was removed, or the marker that was made.
    pub(super) version: Option<VersionId>,
    /// Whether that is a marker.
    pub(super) is_marker: bool,
}

#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) created: SystemTime,
    pub(super) versioning: Versioning,
    pub(super) entries: BTreeMap<Vec<u8>, Entry>,
    /// Unfinished uploads by key and identifier.
    pub(super) uploads: BTreeMap<(Vec<u8>, String), Upload>,
    /// The number of the last version.
    versions: u64,
}

impl Bucket {
    pub(super) fn new(created: SystemTime) -> Self {
        Self { created, versioning: Versioning::Never, entries: BTreeMap::new(), uploads: BTreeMap::new(), versions: 0 }
    }

    /// Whether it keeps versions, or did so once.
    pub(super) fn is_versioned(&self) -> bool {
        self.versioning != Versioning::Never
    }

    /// The current version, which may be a delete marker.
    pub(super) fn current(&self, key: &str) -> Option<&Version> {
        self.entries.get(key.as_bytes()).map(|entry| &entry.current)
    }

    /// The current version, or the one with this identifier.
    pub(super) fn version(&self, key: &str, id: Option<&str>) -> S3Result<&Version> {
        let entry = self.entries.get(key.as_bytes());
        let Some(id) = id else {
            return entry.map(|entry| &entry.current).ok_or_else(|| s3_error!(NoSuchKey));
        };
        let mut all = entry.into_iter().flat_map(|entry| entry.older.iter().chain([&entry.current]));
        all.find(|version| version.id.text() == id).ok_or_else(|| s3_error!(NoSuchVersion))
    }

    /// Puts a version on top; the answer is its identifier, where the bucket keeps versions.
    pub(super) fn put(&mut self, key: &[u8], object: Option<Arc<Object>>, modified: SystemTime) -> Option<VersionId> {
        let id = if self.versioning == Versioning::Enabled {
            self.versions += 1;
            VersionId::Number(self.versions)
        } else {
            VersionId::Null
        };
        let version = Version { id, modified, object };
        match self.entries.get_mut(key) {
            None => {
                self.entries.insert(key.to_owned(), Entry { current: version, older: Vec::new() });
            }
            Some(entry) => {
                let before = std::mem::replace(&mut entry.current, version);
                entry.older.push(before);
                if id == VersionId::Null {
                    entry.older.retain(|version| version.id != VersionId::Null);
                }
            }
        }
        self.is_versioned().then_some(id)
    }

    /// Deletes a key, or one version of it. What is not there counts as deleted.
    pub(super) fn delete(&mut self, key: &[u8], version: Option<&str>, now: SystemTime) -> Deleted {
        if let Some(version) = version {
            return self.delete_version(key, version);
        }
        if self.versioning == Versioning::Never {
            self.entries.remove(key);
            return Deleted { version: None, is_marker: false };
        }
        Deleted { version: self.put(key, None, now), is_marker: true }
    }

    fn delete_version(&mut self, key: &[u8], id: &str) -> Deleted {
        let nothing = Deleted { version: None, is_marker: false };
        let Some(entry) = self.entries.get_mut(key) else { return nothing };
        let gone = if entry.current.id.text() == id {
            match entry.older.pop() {
                Some(before) => std::mem::replace(&mut entry.current, before),
                None => self.entries.remove(key).expect("it was found just now").current,
            }
        } else {
            let Some(at) = entry.older.iter().position(|version| version.id.text() == id) else { return nothing };
            entry.older.remove(at)
        };
        Deleted { version: Some(gone.id), is_marker: gone.object.is_none() }
    }
}

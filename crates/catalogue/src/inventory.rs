//! The inventory: objects, their versions and files, and the ids that depositors gave them.

mod list;
mod rebuild;
mod record;

use jiff::Timestamp;
use queuekeeper_store::Digests;
use uuid::Uuid;

pub use self::rebuild::Rebuilt;

#[cfg(test)]
pub(crate) use self::list::{
    BY_TITLE, BY_TITLE_OF_COLLECTION, FILE, FILES, LOCAL_IDS, OBJECTS, OBJECTS_OF_COLLECTION, VERSION_OF_JOB, VERSIONS,
};

/// A version of an object that was stored, to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVersion {
    /// The object's identifier, `ark:/NAAN/NAME` in normal form.
    pub ark: String,
    /// Who owns the object, and its local ids.
    pub owner: String,
    /// The mnemonic of its collection.
    pub collection: String,
    /// What the depositor says it is called.
    pub title: Option<String>,
    /// Who the depositor says made it.
    pub creator: Option<String>,
    /// When the depositor says it was made, in their words.
    pub date: Option<String>,
    /// The number of this version, from 1.
    pub number: u32,
    /// The job that stored it: a version for each.
    pub job: Uuid,
    /// The batch of that job.
    pub batch: Option<Uuid>,
    /// Who deposited it.
    pub submitter: String,
    /// The message of the version, as in its OCFL inventory.
    pub message: String,
    /// The ids that the owner knows the object by.
    pub local_ids: Vec<String>,
}

/// A file of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its logical path, such as `producer/page-1.tif`.
    pub path: String,
    /// Where its bytes are, below the object's root.
    pub content_path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its digests.
    pub digests: Digests,
    /// Its media type.
    pub media_type: Option<String>,
    /// Whether its owner pays for it.
    pub is_billable: bool,
}

/// What became of a version that was to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It is recorded now.
    Now,
    /// It had been recorded before, for the same job.
    Before,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its identifier.
    pub ark: String,
    /// Who owns it.
    pub owner: String,
    /// The mnemonic of its collection.
    pub collection: String,
    /// What its newest version says it is called.
    pub title: Option<String>,
    /// Who its newest version says made it.
    pub creator: Option<String>,
    /// When its newest version says it was made.
    pub date: Option<String>,
    /// When its first version was recorded.
    pub created: Timestamp,
    /// When a version was last recorded.
    pub modified: Timestamp,
    /// The number of its newest version.
    pub current_version: u32,
}

/// A version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its number, from 1.
    pub number: u32,
    /// The job that stored it.
    pub job: Uuid,
    /// The batch of that job.
    pub batch: Option<Uuid>,
    /// Who deposited it.
    pub submitter: String,
    /// Its message.
    pub message: String,
    /// How many files it has.
    pub file_count: u64,
    /// How many bytes they have.
    pub byte_count: u64,
    /// When it was recorded.
    pub ingested: Timestamp,
}

//! The trait that every store implements, and what its operations take and return.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::archive::RestoreRequest;
use crate::digest::{Algorithm, Digests};
use crate::error::{Error, ErrorKind, Operation};
use crate::key::{Key, KeyForm};
use crate::name::{SpaceName, StoreName};

mod copy;

pub use copy::CopyControl;

/// What is said of what its caller ended.
pub(crate) const INTERRUPTED: &str = "it was interrupted";

/// The space that probes write to.
pub const PROBE_SPACE: &str = "x-queuekeeper-probe";

/// Content on its way, in pieces of any size. An error ends it.
pub type Chunks = BoxStream<'static, io::Result<Bytes>>;

/// A listing: each item once, in ascending order of the bytes of its key. An error ends it.
pub type Listing = BoxStream<'static, Result<Listed, Error>>;

/// Where an item lies in a store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item {
    /// Its space.
    pub space: SpaceName,
    /// Its key.
    pub key: Key,
}

impl Item {
    /// The item with this key in this space.
    #[must_use]
    pub fn new(space: SpaceName, key: Key) -> Self {
        Self { space, key }
    }
}

/// `SPACE/KEY`, on one line.
impl fmt::Display for Item {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", self.space, self.key)
    }
}

/// What a store says of a state of an item: it differs when the content differs. Opaque, and no checksum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntityTag(pub String);

impl fmt::Display for EntityTag {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

/// One item of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: Key,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last written, by the store's clock.
    pub modified: Timestamp,
    /// Its entity tag, where a listing has one.
    pub etag: Option<EntityTag>,
}

/// What a user says of an item, kept with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserProperties {
    /// The media type; none where the store has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The content coding, such as `gzip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_encoding: Option<String>,
    /// Names in lower case, with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// What is known of an item without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Its size in bytes.
    pub size: u64,
    /// When it was last written, by the store's clock.
    pub modified: Timestamp,
    /// Its entity tag.
    pub etag: EntityTag,
    /// The checksums of the whole content that the store keeps; often none.
    pub checksums: Digests,
    /// What a user says of it.
    pub user: UserProperties,
}

/// Content that is being read, with the properties of exactly that content.
pub struct Content {
    /// Its properties.
    pub properties: Properties,
    /// The bytes that were requested. They end with an error where not all of them come.
    pub chunks: Chunks,
}

/// What must hold of the item at the instant at which it is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    #[default]
    None,
    /// There is no item with this key.
    IfAbsent,
    /// The item is in this state.
    IfMatch(EntityTag),
}

impl Condition {
    /// Whether what is there is what it requires: the entity tag of the item, `None` where there is no item.
    #[must_use]
    pub fn allows(&self, now: Option<&EntityTag>) -> bool {
        match self {
            Self::None => true,
            Self::IfAbsent => now.is_none(),
            Self::IfMatch(tag) => now == Some(tag),
        }
    }
}

/// How content is written.
#[derive(Clone, Default)]
pub struct Put {
    /// The size in bytes, where it is known; content of another size is refused.
    pub size: Option<u64>,
    /// Digests that the content must have, else nothing appears.
    pub expected: Digests,
    /// Which digests to compute besides those that are expected.
    pub compute: Vec<Algorithm>,
    /// What must hold.
    pub condition: Condition,
    /// What a user says of it.
    pub user: UserProperties,
    /// Whether it is secret: where items are files, no other user of the machine may read it.
    pub is_secret: bool,
    /// Ends it: content that has not appeared yet never will.
    pub abort: CancellationToken,
    /// Called once, after the last byte came and before the content appears.
    pub guard: Option<Arc<dyn CommitGuard>>,
}

/// What stands before the instant at which content appears: a lease that must be checked, a record that must be
/// written.
#[async_trait]
pub trait CommitGuard: Send + Sync {
    /// Lets content of this size and with these digests appear.
    ///
    /// # Errors
    /// With the reason, if it may not appear.
    async fn pass(&self, size: u64, digests: &Digests) -> Result<(), String>;

    /// Takes note of the identifier of an upload in parts, which outlives this process, before the first part is sent.
    ///
    /// # Errors
    /// With the reason, if it may not go on.
    async fn begun(&self, _upload: &str) -> Result<(), String> {
        Ok(())
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its size in bytes.
    pub size: u64,
    /// The entity tag that it has now.
    pub etag: EntityTag,
    /// The digests that were expected or requested, computed from the bytes that were sent. For a copy within a store,
    /// those that the store keeps.
    pub digests: Digests,
}

/// What a store can do, by a look at it and not by its documentation.
/// The default is what is certain without a look: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a capability of its own")]
pub struct Capabilities {
    /// The checksums of the whole content that it keeps and returns.
    pub checksums: Vec<Algorithm>,
    /// Whether `IfAbsent` holds.
    pub if_absent: bool,
    /// Whether `IfMatch` holds.
    pub if_match: bool,
    /// Whether it keeps earlier versions of what is overwritten or deleted.
    pub versions: bool,
    /// Whether it can refuse deletion for a time.
    pub object_lock: bool,
    /// For how many days at least each item is paid for.
    pub minimum_days: u32,
    /// Whether a read takes hours, or costs more than a request.
    pub cold_reads: bool,
    /// The forms of keys that it takes for other keys: items with such keys are refused.
    pub refused_keys: Vec<KeyForm>,
}

/// A place for content with keys.
///
/// Each operation retries by itself what is safe to repeat, keeps to a limit of time, and waits for its turn where too
/// many are under way.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The name in the configuration.
    fn name(&self) -> &StoreName;

    /// The directory that its content lies in; `None` for a store that is no directory of this machine.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// All spaces, by name.
    ///
    /// # Errors
    /// When the store cannot list them.
    async fn spaces(&self) -> Result<Vec<SpaceName>, Error>;

    /// Makes a space; one that exists stays as it is, and the answer is whether it was made.
    ///
    /// # Errors
    /// When the store cannot hold it.
    async fn create_space(&self, space: &SpaceName) -> Result<bool, Error>;

    /// Deletes an empty space; the answer is whether there was one.
    ///
    /// # Errors
    /// [`NotEmpty`](crate::ErrorKind::NotEmpty) when it has items.
    async fn delete_space(&self, space: &SpaceName) -> Result<bool, Error>;

    /// Every item of a space whose key begins with a prefix and is above another key, in byte order.
    fn list(&self, space: &SpaceName, prefix: &[u8], after: Option<&Key>) -> Listing;

    /// The properties of an item; `None` where there is none.
    ///
    /// # Errors
    /// [`NoSpace`](crate::ErrorKind::NoSpace) where the space is missing.
    async fn head(&self, item: &Item) -> Result<Option<Properties>, Error>;

    /// The content of an item, or a range of its bytes.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound); [`Precondition`](crate::ErrorKind::Precondition) where it is not in
    /// the state that `if_match` names; [`Range`](crate::ErrorKind::Range).
    async fn get(&self, item: &Item, range: Option<Range<u64>>, if_match: Option<&EntityTag>)
    -> Result<Content, Error>;

    /// A URL by which anyone can read an item for a time, of at most seven days, without any other right to the store:
    /// signed in advance, where the store can do that. The content comes with this `Content-Disposition`.
    ///
    /// # Errors
    /// When it cannot be signed. Whether there is such an item is not looked up.
    async fn presign(&self, _item: &Item, _disposition: &str, _lifetime: Duration) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Writes an item. It appears whole, with its properties, or not at all.
    ///
    /// # Errors
    /// Those of [`ErrorKind`](crate::ErrorKind); all but [`Unknown`](crate::ErrorKind::Unknown) and
    /// [`Unrecorded`](crate::ErrorKind::Unrecorded) mean that nothing was written.
    async fn put(&self, item: &Item, content: Chunks, put: Put) -> Result<Written, Error>;

    /// Copies an item within the store, with its properties; `if_match` is of the source.
    ///
    /// # Errors
    /// As for [`Self::get`] and [`Self::put`].
    async fn copy(
        &self,
        from: &Item,
        if_match: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
    ) -> Result<Written, Error> {
        self.copy_with(from, if_match, to, condition, &CopyControl::default()).await
    }

    /// As [`Self::copy`], ended by the token of its control. The error is [`Stopped`](crate::ErrorKind::Stopped) then,
    /// and [`Unknown`](crate::ErrorKind::Unknown) where it is not certain that the copy will never appear.
    ///
    /// # Errors
    /// As for [`Self::copy`].
    async fn copy_with(
        &self,
        from: &Item,
        if_match: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
        control: &CopyControl,
    ) -> Result<Written, Error>;

    /// Deletes an item; one that is gone counts as deleted, and the answer is whether there was one, where the store
    /// tells.
    ///
    /// # Errors
    /// [`Precondition`](crate::ErrorKind::Precondition) where it is not in the state that `if_match` names.
    async fn delete(&self, item: &Item, if_match: Option<&EntityTag>) -> Result<bool, Error>;

    /// Replaces what a user says of an item; the content stays.
    ///
    /// # Errors
    /// As for [`Self::get`].
    async fn set_properties(
        &self,
        item: &Item,
        user: &UserProperties,
        if_match: Option<&EntityTag>,
    ) -> Result<Written, Error>;

    /// Ends an upload in parts that another process began ([`CommitGuard::begun`]): after that it cannot complete any
    /// more. One that is complete or gone counts as ended. A store without uploads that outlive a process has nothing
    /// to do.
    ///
    /// # Errors
    /// When it may still complete.
    async fn abort_upload(&self, _item: &Item, _upload: &str) -> Result<(), Error> {
        Ok(())
    }

    /// Resolves the changes that other processes began, and left when they died: how many of them could not be resolved
    /// yet. A store whose changes are not recorded has none. To be called from time to time.
    ///
    /// # Errors
    /// With the reason, where it is not known which there are.
    async fn resolve_changes(&self) -> Result<u64, String> {
        Ok(0)
    }

    /// Asks for archived content to be restored; where that was asked for before, once is enough.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where the store has no archive.
    async fn restore(&self, item: &Item, _request: RestoreRequest) -> Result<(), Error> {
        let kind = ErrorKind::Unsupported("it has no archive".to_owned());
        Err(Error { store: self.name().clone(), operation: Operation::Restore, subject: item.to_string(), kind })
    }

    /// Finds out what the store can do, by writing and removing probes in a space of its own, [`PROBE_SPACE`]. A
    /// bucket that was made for that space stays until [`Self::remove_probe_bucket`].
    ///
    /// # Errors
    /// When it can do nothing at all, with one line that says what to change.
    async fn probe(&self) -> Result<Capabilities, Error>;

    /// Removes the bucket that a probe of this process made, where it made one; the answer is whether it did.
    ///
    /// # Errors
    /// When it cannot be removed.
    async fn remove_probe_bucket(&self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Removes what writers left unfinished before an instant (temporary files, uploads in parts), and returns how many
    /// that were.
    ///
    /// # Errors
    /// When they cannot be listed.
    async fn sweep(&self, before: Timestamp) -> Result<u64, Error>;
}

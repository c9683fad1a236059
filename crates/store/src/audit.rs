//! What is recorded of a change of content, and where: the part of the audit log that stores need.
//!
//! A change has an *intent*, written before the store is called, and a *settlement*, written after it. The intent is
//! the lock of its item: there is one open intent for each item (or space) of a store. It has a lease, which the
//! process at work extends; an intent whose lease has ended was left by a process that died, and is resolved by a look
//! at the store.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::digest::Digests;
use crate::key::Key;
use crate::name::{SpaceName, StoreName};
use crate::store::EntityTag;
use crate::time::{moment, moment_in};

/// What a change does. As text, the name in the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Content is written where there was none.
    Add,
    /// Content is written in place of other content.
    Update,
    /// Content is copied from another item of the store.
    Copy,
    /// Content is deleted.
    Delete,
    /// What a user says of content is replaced.
    Properties,
    /// A space is made.
    CreateSpace,
    /// A space is deleted.
    DeleteSpace,
}

impl Change {
    /// All of them, each with its name.
    pub const ALL: [Self; 7] =
        [Self::Add, Self::Update, Self::Copy, Self::Delete, Self::Properties, Self::CreateSpace, Self::DeleteSpace];

    /// The name in the audit log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Update => "update",
            Self::Copy => "copy",
            Self::Delete => "delete",
            Self::Properties => "properties",
            Self::CreateSpace => "create_space",
            Self::DeleteSpace => "delete_space",
        }
    }
}

/// What is changed: an item, or a space where there is no key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The store.
    pub store: StoreName,
    /// The space.
    pub space: SpaceName,
    /// The key; `None` for the space itself.
    pub key: Option<Key>,
}

/// A change that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Its identifier, time-ordered (UUID version 7).
    pub id: Uuid,
    /// The process at work on it: made anew by the one that begins it or takes it over, and checked by
    /// [`AuditSink::extend`] and [`AuditSink::settle`].
    pub holder: Uuid,
    /// Whom the audit log names.
    pub user: String,
    /// What is changed.
    pub subject: Subject,
    /// How.
    pub change: Change,
    /// The entity tag that the item had just before; `None` where there was none.
    pub seen: Option<EntityTag>,
    /// The size that the content will have, in bytes, where it is known.
    pub size: Option<u64>,
    /// The digests that the content will have, where they are known.
    pub digests: Digests,
    /// The item that is copied from, within the same store.
    pub source: Option<(SpaceName, Key)>,
    /// The identifier of an upload in parts, once there is one.
    pub upload: Option<String>,
    /// What a user will say of the item, as canonical JSON; for [`Change::Properties`] alone.
    pub properties: Option<String>,
}

/// A change of another process, at work on the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    /// Whom the audit log will name.
    pub user: String,
    /// What it does.
    pub change: Change,
    /// When it began, by the clock of its process.
    pub since: Option<Timestamp>,
    /// How long its lease still lasts, unless it is extended.
    pub left: Duration,
}

impl Rival {
    /// The change of an intent whose lease lasts so long.
    #[must_use]
    pub fn new(id: Uuid, user: String, change: Change, left: Duration) -> Self {
        let begun = id.get_timestamp().and_then(|time| {
            let (seconds, nanos) = time.to_unix();
            Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanos).ok()?).ok()
        });
        Self { user, change, since: begun, left }
    }
}

/// Who holds the item, and until when.
impl fmt::Display for Rival {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "a change of {} holds it ({}", self.user, self.change.as_str())?;
        if let Some(since) = self.since {
            write!(to, ", begun at {}", moment(since))?;
        }
        write!(to, ") until {}, and longer while its process works", moment_in(self.left))
    }
}

/// What became of an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The change was made: an event is appended to the audit log.
    Done {
        /// What the change turned out to be: [`Change::Add`] and [`Change::Update`] may turn into each other.
        change: Change,
        /// The entity tag that the item has now.
        etag: Option<EntityTag>,
        /// Its size in bytes.
        size: Option<u64>,
        /// Its digests.
        digests: Digests,
    },
    /// Nothing was changed: no event.
    NotDone,
    /// What the store has fits neither: an event *observed* is appended, with what is there, for an operator to look
    /// at.
    Observed {
        /// What is there now; `None` where nothing is.
        etag: Option<EntityTag>,
        /// Its size in bytes.
        size: Option<u64>,
        /// Its digests.
        digests: Digests,
        /// Why it is unclear, as one sentence.
        why: String,
    },
}

/// The answer to an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is written: the item is ours until its lease ends.
    Ours,
    /// Another process is at work on the item.
    Busy(Rival),
    /// A process died at work on the item. That intent is ours now, with a new holder and lease, to be resolved and
    /// settled first; the one that was to begin is not written.
    Left(Box<Intent>),
}

/// Where changes are recorded: the catalogue, in the program.
#[async_trait]
pub trait AuditSink: Send + Sync + 'static {
    /// Writes an intent, unless its item has one already.
    ///
    /// # Errors
    /// When it cannot be written; nothing may be changed then.
    async fn begin(&self, intent: &Intent, lease: Duration) -> Result<Begun, SinkError>;

    /// Extends the lease of an open intent, and writes down what has become known of it: its upload, size and digests.
    ///
    /// # Errors
    /// [`SinkError::Lost`] when it is no longer open: another process has resolved it.
    async fn extend(&self, intent: &Intent, lease: Duration) -> Result<(), SinkError>;

    /// Closes an intent, and appends the event that it led to, in one transaction. Settling what is settled in the same
    /// way succeeds and appends nothing.
    ///
    /// # Errors
    /// [`SinkError::Lost`] when it is no longer open and was settled otherwise.
    async fn settle(&self, intent: &Intent, settlement: &Settlement) -> Result<(), SinkError>;

    /// Takes over an intent of this store whose lease has ended, with a new holder and lease; `None` where there is
    /// none.
    ///
    /// # Errors
    /// When that cannot be found out.
    async fn take_left(&self, store: &StoreName, lease: Duration) -> Result<Option<Intent>, SinkError>;
}

/// Why something could not be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// The record cannot be reached now.
    #[error("the audit log cannot be written now: {0}")]
    Unavailable(String),
    /// The intent is not ours any more.
    #[error("the lease of this change has ended, and another process has taken it over")]
    Lost,
}

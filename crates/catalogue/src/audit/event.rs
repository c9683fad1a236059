//! One event of the audit log, and the hash that chains it to the next.

use aws_lc_rs::digest::{Context, SHA256};
use jiff::Timestamp;
use queuekeeper_store::audit::{Change, Subject};
use queuekeeper_store::store::EntityTag;
use queuekeeper_store::{Digests, Key, SpaceName, StoreName};
use uuid::Uuid;

use super::intents::{UnknownChange, change, read_source, read_subject_key};
use crate::database::value::{DatabaseRow, digests_as_text};

/// The columns that [`Event::read`] reads.
macro_rules! event_columns {
    () => {
        "seq, time, intent, user_name, change, store, space, key, size, digests, etag, source_space, source_key, \
         properties, why, previous_hash"
    };
}
pub(crate) use event_columns;

/// What an event records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A change that was made.
    Made(Change),
    /// What a store has and no change explains.
    Observed,
}

impl EventKind {
    /// The name in the audit log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Made(change) => change.as_str(),
            Self::Observed => "observed",
        }
    }

    fn read(name: String) -> Result<Self, UnknownChange> {
        if name == Self::Observed.as_str() { Ok(Self::Observed) } else { change(name).map(Self::Made) }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number: 1 for the first, and one more for each that was committed after it.
    pub seq: u64,
    /// When it was recorded, by the database's clock; never before the event before it.
    pub time: Timestamp,
    /// The intent that led to it.
    pub intent: Uuid,
    /// Who made the change.
    pub user: String,
    /// What was done.
    pub kind: EventKind,
    /// To what.
    pub subject: Subject,
    /// The size of the content after it, in bytes.
    pub size: Option<u64>,
    /// The digests of the content after it.
    pub digests: Digests,
    /// The entity tag after it.
    pub etag: Option<EntityTag>,
    /// The item that was copied from.
    pub source: Option<(SpaceName, Key)>,
    /// What a user said of the item, as canonical JSON.
    pub properties: Option<String>,
    /// Why it is unclear what happened; only of what was observed.
    pub why: Option<String>,
    /// The hash of the event before.
    pub previous_hash: [u8; 32],
}

impl Event {
    pub(crate) fn read(row: &DatabaseRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            seq: row.count(0)?,
            time: row.time(1)?,
            intent: row.get(2)?,
            user: row.get(3)?,
            kind: row.need(4, EventKind::read)?,
            subject: Subject {
                store: row.need(5, |name: String| name.parse::<StoreName>())?,
                space: row.need(6, |name: String| name.parse::<SpaceName>())?,
                key: read_subject_key(row, 7)?,
            },
            size: row.parse(8, |size: i64| u64::try_from(size))?,
            digests: row.digests(9)?,
            etag: row.etag(10)?,
            source: read_source(row, 11)?,
            properties: row.get(13)?,
            why: row.get(14)?,
            previous_hash: row.need(15, hash)?,
        })
    }

    /// The SHA-256 of all that it says, and of the hash before it: each field as the length of its bytes (eight bytes,
    /// big-endian) and the bytes, numbers in decimal digits, what is absent as the length 2^64 - 1.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        let mut field = |bytes: Option<&[u8]>| {
            let length = bytes.map_or(u64::MAX, |bytes| bytes.len() as u64);
            context.update(&length.to_be_bytes());
            context.update(bytes.unwrap_or_default());
        };
        let text = |text: &Option<String>| text.as_ref().map(|text| text.as_bytes().to_vec());
        let number = |number: u64| number.to_string().into_bytes();
        let fields = [
            Some(number(self.seq)),
            Some(self.time.as_millisecond().to_string().into_bytes()),
            Some(self.intent.as_bytes().to_vec()),
            Some(self.user.as_bytes().to_vec()),
            Some(self.kind.as_str().as_bytes().to_vec()),
            Some(self.subject.store.as_str().as_bytes().to_vec()),
            Some(self.subject.space.as_str().as_bytes().to_vec()),
            self.subject.key.as_ref().map(|key| key.as_bytes().to_vec()),
            self.size.map(number),
            Some(digests_as_text(&self.digests).into_bytes()),
            text(&self.etag.as_ref().map(|etag| etag.0.clone())),
            self.source.as_ref().map(|(space, _)| space.as_str().as_bytes().to_vec()),
            self.source.as_ref().map(|(_, key)| key.as_bytes().to_vec()),
            text(&self.properties),
            text(&self.why),
            Some(self.previous_hash.to_vec()),
        ];
        for bytes in &fields {
            field(bytes.as_deref());
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(context.finish().as_ref());
        hash
    }
}

/// What was read as a hash, and is none.
#[derive(Debug, thiserror::Error)]
#[error("a hash has 32 bytes")]
pub(super) struct InvalidHash;

/// A hash as it is kept.
pub(super) fn hash(bytes: Vec<u8>) -> Result<[u8; 32], InvalidHash> {
    bytes.try_into().map_err(|_bytes| InvalidHash)
}

//! The content index: what is known of each copy of each item.

use queuekeeper_store::store::EntityTag;
use queuekeeper_store::{Digests, Key, SpaceName};

use crate::audit::NO_ACCOUNT;
use crate::counters::Counter;
use crate::database::Session;
use crate::database::value::values;
use crate::error::{Error, ErrorKind};

/// What the index says of one copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) size: u64,
    pub(crate) digests: Digests,
    pub(crate) etag: Option<EntityTag>,
    pub(crate) properties: Option<String>,
    pub(crate) is_deleted: bool,
}

impl Entry {
    fn living_bytes(&self) -> Option<i64> {
        (!self.is_deleted).then(|| i64::try_from(self.size).unwrap_or(i64::MAX))
    }
}

/// What the counters of a store gain by a change of one entry.
pub(crate) fn difference(before: Option<&Entry>, after: &Entry) -> [(Counter, i64); 2] {
    let (before, after) = (before.and_then(Entry::living_bytes), after.living_bytes());
    let items = i64::from(after.is_some()) - i64::from(before.is_some());
    [(Counter::ContentItems, items), (Counter::ContentBytes, after.unwrap_or(0) - before.unwrap_or(0))]
}

/// The number of an item, given now if it has none.
pub(crate) async fn item(session: &mut Session, space: &SpaceName, key: &Key) -> Result<i64, Error> {
    let find = "SELECT id FROM items WHERE account = $1 AND space = $2 AND key = $3";
    let insert = "INSERT INTO items (account, space, key) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING id";
    // Between the two statements another store's copy of the same item may be recorded.
    for sql in [find, insert, find] {
        if let Some(row) = session.row(sql, values![NO_ACCOUNT, space, key]).await? {
            return session.decode(row.get(0));
        }
    }
    Err(session.error(ErrorKind::Conflict("an item appears and is gone".to_owned())))
}

pub(crate) async fn entry(session: &mut Session, item: i64, store: &str) -> Result<Option<Entry>, Error> {
    let sql = "SELECT size, digests, etag, properties, is_deleted FROM copies WHERE item = $1 AND store = $2";
    let Some(row) = session.row(sql, values![item, store]).await? else { return Ok(None) };
    let read = || {
        Ok(Entry {
            size: row.count(0)?,
            digests: row.digests(1)?,
            etag: row.etag(2)?,
            properties: row.get(3)?,
            is_deleted: row.get(4)?,
        })
    };
    session.decode(read()).map(Some)
}

/// Writes what is known after an event: into the index, and into the witness beside it. Content that was written has no
/// proof yet, and keeps one only where its bytes stayed what they were.
pub(crate) async fn put(
    session: &mut Session,
    item: i64,
    store: &str,
    seq: u64,
    entry: &Entry,
    keeps_proof: bool,
) -> Result<(), Error> {
    let Entry { size, digests, etag, properties, is_deleted } = entry;
    let sql = "INSERT INTO copies (item, store, size, digests, etag, properties, seq, is_deleted)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (item, store) DO UPDATE SET size = excluded.size, digests = excluded.digests,
            etag = excluded.etag, properties = excluded.properties, seq = excluded.seq,
            is_deleted = excluded.is_deleted,
            proof = CASE WHEN $9 THEN copies.proof END, proven = CASE WHEN $9 THEN copies.proven END";
    session.run(sql, values![item, store, *size, digests, etag, properties, seq, *is_deleted, keeps_proof]).await?;
    let sql = "INSERT INTO audit_head (item, store, seq, size, digests, is_deleted) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (item, store) DO UPDATE SET seq = excluded.seq, size = excluded.size,
            digests = excluded.digests, is_deleted = excluded.is_deleted";
    session.run(sql, values![item, store, seq, *size, digests, *is_deleted]).await?;
    Ok(())
}

//! The content index: what is known of each copy of each item.

use std::collections::BTreeMap;

use queuekeeper_store::store::{EntityTag, Item};
use queuekeeper_store::{Digests, Key, SpaceName, StoreName};

use jiff::Timestamp;

use crate::catalogue::{Catalogue, page};
use crate::counters::Counter;
use crate::database::Session;
use crate::database::value::{DatabaseRow, Value, values};
use crate::error::{Error, ErrorKind};
use crate::proofs;

/// To whom items belong until accounts are configured.
pub(crate) const NO_ACCOUNT: &str = "";

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

/// What the counters of a store gain by a change of one entry; its space gains the same.
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
    session.decode(read_entry(&row, 0)).map(Some)
}

/// Reads an entry from five columns, counted from `at`.
fn read_entry(row: &DatabaseRow, at: usize) -> Result<Entry, sqlx::Error> {
    Ok(Entry {
        size: row.count(at)?,
        digests: row.digests(at + 1)?,
        etag: row.etag(at + 2)?,
        properties: row.get(at + 3)?,
        is_deleted: row.get(at + 4)?,
    })
}

/// What is known of a copy after an event.
pub(crate) struct NewEntry<'a> {
    pub(crate) item: i64,
    pub(crate) space: &'a SpaceName,
    /// The number of the event.
    pub(crate) seq: u64,
    pub(crate) entry: Entry,
}

/// Writes what is known after an event of a time: into the index, and into the witness beside it. Content that was
/// written has no proof yet, and keeps one only where its bytes stayed what they were.
pub(crate) async fn put(
    session: &mut Session,
    store: &str,
    time: Timestamp,
    new: &NewEntry<'_>,
    keeps_proof: bool,
) -> Result<(), Error> {
    let NewEntry { item, space, seq, entry } = new;
    let Entry { size, digests, etag, properties, is_deleted } = entry;
    if !keeps_proof {
        proofs::replace(session, (*item, store, space), time, *is_deleted).await?;
    }
    let sql = "INSERT INTO copies (item, store, size, digests, etag, properties, seq, is_deleted, written)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $10)
        ON CONFLICT (item, store) DO UPDATE SET size = excluded.size, digests = excluded.digests,
            etag = excluded.etag, properties = excluded.properties, seq = excluded.seq,
            is_deleted = excluded.is_deleted, written = CASE WHEN $9 THEN copies.written ELSE excluded.written END,
            proof = CASE WHEN $9 THEN copies.proof END, proven = CASE WHEN $9 THEN copies.proven END";
    let mut values = values![*item, store, *size, digests, etag, properties, *seq, *is_deleted, keeps_proof];
    values.extend(values![time.as_millisecond()]);
    session.run(sql, values).await?;
    let sql = "INSERT INTO audit_head (item, store, seq, size, digests, is_deleted) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (item, store) DO UPDATE SET seq = excluded.seq, size = excluded.size,
            digests = excluded.digests, is_deleted = excluded.is_deleted";
    session.run(sql, values![*item, store, *seq, *size, digests, *is_deleted]).await?;
    Ok(())
}

/// The numbers of items of a store and what the index says of their copies there, all by one statement each; numbers
/// are given to those that have none.
pub(crate) async fn entries(
    session: &mut Session,
    store: &str,
    items: &[Item],
) -> Result<Vec<(i64, Option<Entry>)>, Error> {
    // A row that is there already is locked by that, and answered.
    let then = " ON CONFLICT (account, space, key) DO UPDATE SET account = excluded.account RETURNING id, space, key";
    let values = items.iter().flat_map(|item| values![NO_ACCOUNT, &item.space, &item.key]).collect();
    let mut ids = BTreeMap::new();
    for row in session.insert_returning("INSERT INTO items (account, space, key)", "?, ?, ?", then, values).await? {
        let (id, space, key) = (row.get::<i64>(0), row.get::<String>(1), row.get::<Vec<u8>>(2));
        ids.insert((session.decode(space)?, session.decode(key)?), session.decode(id)?);
    }
    let select = "SELECT item, size, digests, etag, properties, is_deleted FROM copies JOIN (";
    let then = ") AS wanted ON copies.item = wanted.column1 AND copies.store = wanted.column2";
    let values = ids.values().flat_map(|id| values![*id, store]).collect();
    let mut found = BTreeMap::new();
    for row in session.insert_returning(select, "?, ?", then, values).await? {
        let id = session.decode(row.get::<i64>(0))?;
        found.insert(id, session.decode(read_entry(&row, 1))?);
    }
    let of = |item: &Item| {
        let id = ids.get(&(item.space.to_string(), item.key.as_bytes().to_vec())).copied();
        let id = id.ok_or_else(|| session.error(ErrorKind::Conflict("an item appears and is gone".to_owned())))?;
        Ok((id, found.get(&id).cloned()))
    };
    items.iter().map(of).collect()
}

/// Writes what is known after many events of a time, as [`put`] does of one.
pub(crate) async fn put_all(
    session: &mut Session,
    store: &str,
    time: Timestamp,
    entries: &[NewEntry<'_>],
) -> Result<(), Error> {
    let before = proofs::of_copies(session, store, entries.iter().map(|new| new.item)).await?;
    let mut deltas = BTreeMap::new();
    for NewEntry { item, space, entry, .. } in entries {
        let mut add = |proof: &str, day, items| {
            *deltas.entry((store.to_owned(), space.to_string(), proof.to_owned(), day)).or_default() += items;
        };
        if let Some((proof, day)) = before.get(item) {
            add(proof, *day, -1);
        }
        if !entry.is_deleted {
            add(proofs::UNPROVEN, proofs::day(time), 1);
        }
    }
    proofs::add(session, &deltas).await?;
    let copies = entries.iter().flat_map(|NewEntry { item, seq, entry, .. }| {
        let Entry { size, digests, etag, properties, is_deleted } = entry;
        values![*item, store, *size, digests, etag, properties, *seq, *is_deleted, time.as_millisecond()]
    });
    let then = " ON CONFLICT (item, store) DO UPDATE SET size = excluded.size, digests = excluded.digests,
            etag = excluded.etag, properties = excluded.properties, seq = excluded.seq,
            is_deleted = excluded.is_deleted, written = excluded.written, proof = NULL, proven = NULL";
    let into = "INSERT INTO copies (item, store, size, digests, etag, properties, seq, is_deleted, written)";
    session.insert_returning(into, "?, ?, ?, ?, ?, ?, ?, ?, ?", then, copies.collect()).await?;
    let heads = entries.iter().flat_map(|NewEntry { item, seq, entry, .. }| {
        let Entry { size, digests, is_deleted, .. } = entry;
        values![*item, store, *seq, *size, digests, *is_deleted]
    });
    let then = " ON CONFLICT (item, store) DO UPDATE SET seq = excluded.seq, size = excluded.size,
            digests = excluded.digests, is_deleted = excluded.is_deleted";
    let into = "INSERT INTO audit_head (item, store, seq, size, digests, is_deleted)";
    session.insert_returning(into, "?, ?, ?, ?, ?, ?", then, heads.collect()).await.map(|_rows| ())
}

/// An item, with what is known of its copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedItem {
    /// Its key.
    pub key: Key,
    /// Its copies, by the name of their store.
    pub copies: Vec<Copy>,
}

/// What is known of one copy of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Where it is.
    pub store: StoreName,
    /// Its size in bytes; of what is deleted, the last one.
    pub size: u64,
    /// Its digests; of what is deleted, the last ones.
    pub digests: Digests,
    /// Its entity tag.
    pub etag: Option<EntityTag>,
    /// What a user says of it, as canonical JSON, where it was set after the content was written.
    pub properties: Option<String>,
    /// The number of the event that changed it last.
    pub seq: u64,
    /// Whether it was deleted.
    pub is_deleted: bool,
    /// When its content was last proven to be as recorded, and how.
    pub proven: Option<(Timestamp, String)>,
}

/// A page of items first, then their copies: the order is made here, since of a page it costs nothing.
pub(crate) const ITEMS: &str = "SELECT page.key, copies.store, copies.size, copies.digests, copies.etag,
        copies.properties, copies.seq, copies.is_deleted, copies.proof, copies.proven
    FROM (SELECT id, key FROM items WHERE account = $1 AND space = $2 AND key > $3 ORDER BY key LIMIT $4) AS page
    LEFT JOIN copies ON copies.item = page.id";

/// Those with keys from one on and below another.
pub(crate) const ITEMS_BETWEEN: &str = "SELECT page.key, copies.store, copies.size, copies.digests, copies.etag,
        copies.properties, copies.seq, copies.is_deleted, copies.proof, copies.proven
    FROM (SELECT id, key FROM items WHERE account = $1 AND space = $2 AND key > $3 AND key >= $4 AND key < $5
        ORDER BY key LIMIT $6) AS page
    LEFT JOIN copies ON copies.item = page.id";

/// Items with some keys, as far as these; the columns are those of [`ITEMS`].
const ITEMS_OF: &str = "SELECT items.key, copies.store, copies.size, copies.digests, copies.etag,
        copies.properties, copies.seq, copies.is_deleted, copies.proof, copies.proven
    FROM (";

/// One copy; the columns are those of [`ITEMS`].
pub(crate) const COPY: &str = "SELECT items.key, copies.store, copies.size, copies.digests, copies.etag,
        copies.properties, copies.seq, copies.is_deleted, copies.proof, copies.proven
    FROM items JOIN copies ON copies.item = items.id
    WHERE items.account = $1 AND items.space = $2 AND items.key = $3 AND copies.store = $4";

impl Catalogue {
    /// What is known of the copy of an item in a store; `None` where no change of it was recorded.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn copy(&self, store: &StoreName, item: &Item) -> Result<Option<Copy>, Error> {
        let mut session = self.database.read().await?;
        let row = session.row(COPY, values![NO_ACCOUNT, &item.space, &item.key, store]).await?;
        row.map(|row| session.decode(copy(&row))).transpose().map(Option::flatten)
    }

    /// The items of a space that were ever recorded in any store, in the byte order of their keys, of those above
    /// `after`; at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn items(&self, space: &SpaceName, after: Option<&Key>, limit: u32) -> Result<Vec<IndexedItem>, Error> {
        let after = after.map_or(&b""[..], Key::as_bytes);
        self.item_page(ITEMS, values![NO_ACCOUNT, space, after, page(limit)]).await
    }

    /// The items of a space with these keys, in the byte order of keys, without those that were never recorded in any
    /// store.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn items_of(&self, space: &SpaceName, keys: &[Key]) -> Result<Vec<IndexedItem>, Error> {
        let then = ") AS wanted JOIN items ON items.account = wanted.column1 AND items.space = wanted.column2
                AND items.key = wanted.column3
            LEFT JOIN copies ON copies.item = items.id";
        let values = keys.iter().flat_map(|key| values![NO_ACCOUNT, space, key]).collect();
        let mut session = self.database.read().await?;
        let rows = session.insert_returning(ITEMS_OF, "?, ?, ?", then, values).await?;
        by_key(&session, &rows)
    }

    /// Those of which the keys begin with `prefix`.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn items_with_prefix(
        &self,
        space: &SpaceName,
        prefix: &[u8],
        after: Option<&Key>,
        limit: u32,
    ) -> Result<Vec<IndexedItem>, Error> {
        if prefix.is_empty() {
            return self.items(space, after, limit).await;
        }
        let mut end = prefix.to_vec();
        while end.last() == Some(&u8::MAX) {
            end.pop();
        }
        match end.last_mut() {
            Some(last) => *last += 1,
            // Behind every key.
            None => end = vec![u8::MAX; Key::MOST_BYTES + 1],
        }
        let after = after.map_or(&b""[..], Key::as_bytes);
        self.item_page(ITEMS_BETWEEN, values![NO_ACCOUNT, space, after, prefix, &end[..], page(limit)]).await
    }

    async fn item_page(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<IndexedItem>, Error> {
        let mut session = self.database.read().await?;
        let rows = session.rows(sql, values).await?;
        by_key(&session, &rows)
    }
}

/// Rows with the columns of [`ITEMS`] as items.
fn by_key(session: &Session, rows: &[DatabaseRow]) -> Result<Vec<IndexedItem>, Error> {
    let mut items = BTreeMap::<Key, Vec<Copy>>::new();
    for row in rows {
        let key = session.decode(row.need(0, |bytes: Vec<u8>| Key::new(bytes)))?;
        items.entry(key).or_default().extend(session.decode(copy(row))?);
    }
    let by_store = |mut copies: Vec<Copy>| {
        copies.sort_by(|one, other| one.store.cmp(&other.store));
        copies
    };
    Ok(items.into_iter().map(|(key, copies)| IndexedItem { key, copies: by_store(copies) }).collect())
}

/// None where an item has no copy.
fn copy(row: &DatabaseRow) -> Result<Option<Copy>, sqlx::Error> {
    let Some(store) = row.parse(1, |name: String| name.parse::<StoreName>())? else { return Ok(None) };
    let proven = row.parse(9, Timestamp::from_millisecond)?;
    Ok(Some(Copy {
        store,
        size: row.count(2)?,
        digests: row.digests(3)?,
        etag: row.etag(4)?,
        properties: row.get(5)?,
        seq: row.count(6)?,
        is_deleted: row.get(7)?,
        proven: proven.zip(row.get(8)?),
    }))
}

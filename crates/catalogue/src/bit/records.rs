//! What the content index and the last settled event of the audit log say of copies: two witnesses beside the store.

use queuekeeper_store::store::{EntityTag, Item};
use queuekeeper_store::{Digests, Key, SpaceName, StoreName};

use crate::catalogue::{Catalogue, page};
use crate::database::value::{DatabaseRow, Value, values};
use crate::error::Error;
use crate::index::NO_ACCOUNT;

/// What the content index says of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Its size in bytes; of what is deleted, the last one.
    pub size: u64,
    /// Its digests; of what is deleted, the last ones.
    pub digests: Digests,
    /// Its entity tag.
    pub etag: Option<EntityTag>,
    /// The number of the event that changed it last.
    pub seq: u64,
    /// Whether it was deleted.
    pub is_deleted: bool,
}

/// What the last settled event says of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditHead {
    /// The number of the event.
    pub seq: u64,
    /// The size in bytes; of what is deleted, the last one.
    pub size: u64,
    /// The digests; of what is deleted, the last ones.
    pub digests: Digests,
    /// Whether it was deleted.
    pub is_deleted: bool,
}

/// What is recorded of an item in one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemRecords {
    /// The number of the item in the catalogue.
    pub id: u64,
    /// Its key.
    pub key: Key,
    /// The content index; `None` where it has no row.
    pub index: Option<IndexEntry>,
    /// The last settled event; `None` where there is none.
    pub audit: Option<AuditHead>,
}

/// The columns that [`read`] reads, and where they are joined.
macro_rules! with_records {
    ($page:literal, $store:literal) => {
        concat!(
            "SELECT page.id, page.key, copies.size, copies.digests, copies.etag, copies.seq, copies.is_deleted,
                audit_head.size, audit_head.digests, audit_head.seq, audit_head.is_deleted
            FROM (",
            $page,
            ") AS page
            LEFT JOIN copies ON copies.item = page.id AND copies.store = ",
            $store,
            " LEFT JOIN audit_head ON audit_head.item = page.id AND audit_head.store = ",
            $store
        )
    };
}

/// A page of items, then what is recorded of them: the order is made here.
pub(crate) const RECORDS: &str = with_records!(
    "SELECT id, key FROM items WHERE account = $1 AND space = $2 AND key > $3 AND key <= $4 ORDER BY key LIMIT $5",
    "$6"
);

pub(crate) const RECORDS_OF_ITEM: &str =
    with_records!("SELECT id, key FROM items WHERE account = $1 AND space = $2 AND key = $3", "$4");

/// The bytes of a key that ends a range; without one, more than any key has.
pub(super) fn last_bytes(last: Option<&Key>) -> Vec<u8> {
    last.map_or_else(|| vec![u8::MAX; Key::MOST_BYTES + 1], |key| key.as_bytes().to_vec())
}

impl Catalogue {
    /// What is recorded of the items of a space in a store, in the byte order of their keys: those above `behind`, up
    /// to `last`; at most `limit`, and at most 1,000. Items of other stores are among them, with nothing recorded.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn item_records(
        &self,
        store: &StoreName,
        space: &SpaceName,
        (behind, last): (Option<&Key>, Option<&Key>),
        limit: u32,
    ) -> Result<Vec<ItemRecords>, Error> {
        let (behind, last) = (behind.map_or(&b""[..], Key::as_bytes), last_bytes(last));
        let values: Vec<Value> = values![NO_ACCOUNT, space, behind, &last[..], page(limit), store];
        let mut records = self.list(RECORDS, values, read).await?;
        records.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(records)
    }

    /// What is recorded of one item in a store; `None` where the catalogue does not know the item.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn records_of_item(&self, store: &StoreName, item: &Item) -> Result<Option<ItemRecords>, Error> {
        let values = values![NO_ACCOUNT, &item.space, &item.key, store];
        Ok(self.list(RECORDS_OF_ITEM, values, read).await?.pop())
    }
}

fn read(row: &DatabaseRow) -> Result<ItemRecords, sqlx::Error> {
    let index = row.get::<Option<i64>>(2)?.map(|_size| index(row)).transpose()?;
    let audit = row.get::<Option<i64>>(7)?.map(|_size| audit(row)).transpose()?;
    Ok(ItemRecords { id: row.count(0)?, key: row.need(1, |bytes: Vec<u8>| Key::new(bytes))?, index, audit })
}

fn index(row: &DatabaseRow) -> Result<IndexEntry, sqlx::Error> {
    Ok(IndexEntry {
        size: row.count(2)?,
        digests: row.digests(3)?,
        etag: row.etag(4)?,
        seq: row.count(5)?,
        is_deleted: row.get(6)?,
    })
}

fn audit(row: &DatabaseRow) -> Result<AuditHead, sqlx::Error> {
    Ok(AuditHead { size: row.count(7)?, digests: row.digests(8)?, seq: row.count(9)?, is_deleted: row.get(10)? })
}

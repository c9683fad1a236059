//! What the mill keeps of content before it deletes it or writes over it.

use jiff::Timestamp;
use queuekeeper_store::StoreName;
use queuekeeper_store::store::Item;

use crate::catalogue::{Catalogue, page};
use crate::database::value::{Row, values};
use crate::error::Error;

/// Content that is kept aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    /// Its number.
    pub id: u64,
    /// Its key in the space for what is kept.
    pub kept_as: String,
    /// What was to be done to the item.
    pub reason: String,
    /// When that was begun.
    pub time: Timestamp,
}

/// What is kept of an item, the newest first.
pub(crate) const OF_ITEM: &str = "SELECT id, kept_as, reason, time FROM asides
    WHERE store = $1 AND space = $2 AND key = $3 AND id < $4 ORDER BY id DESC LIMIT $5";

impl Catalogue {
    /// Records under which key content is about to be kept. It may turn out that nothing is there, where its process died.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing may be destroyed.
    pub async fn record_aside(&self, store: &StoreName, item: &Item, kept_as: &str, reason: &str) -> Result<(), Error> {
        let sql = "INSERT INTO asides (store, space, key, kept_as, reason, time) VALUES ($1, $2, $3, $4, $5, {now})";
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![store, &item.space, &item.key, kept_as, reason]).await;
        session.end(outcome).await.map(|_rows| ())
    }

    /// What is kept of an item with numbers below `before`, the newest first; at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn asides(
        &self,
        store: &StoreName,
        item: &Item,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<Aside>, Error> {
        let before = before.unwrap_or(u64::MAX);
        self.list(OF_ITEM, values![store, &item.space, &item.key, before, page(limit)], aside).await
    }
}

fn aside(row: &Row) -> Result<Aside, sqlx::Error> {
    Ok(Aside { id: row.count(0)?, kept_as: row.get(1)?, reason: row.get(2)?, time: row.time(3)? })
}

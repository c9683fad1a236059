//! How many items and bytes spaces have, by listings of their stores, day by day.

use jiff::Timestamp;
use queuekeeper_store::{SpaceName, StoreName};

use crate::catalogue::{Catalogue, page};
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;

/// What a space of a store had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceStats {
    /// The account.
    pub account: String,
    /// The store.
    pub store: StoreName,
    /// The space, as the account names it.
    pub space: SpaceName,
    /// When it was counted, by the database's clock.
    pub time: Timestamp,
    /// How many items.
    pub items: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// The newest of each space of an account.
pub(crate) const NEWEST: &str = "SELECT account, store, space, time, items, bytes FROM space_stats AS newest
    WHERE account = $1 AND day = (SELECT MAX(day) FROM space_stats AS other WHERE other.account = newest.account
        AND other.store = newest.store AND other.space = newest.space)
    ORDER BY store, space LIMIT $2";

impl Catalogue {
    /// Records what a space has now, in place of what it had before on the same day.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn record_space_stats(
        &self,
        account: &str,
        store: &StoreName,
        space: &SpaceName,
        (items, bytes): (u64, u64),
    ) -> Result<(), Error> {
        let sql = "INSERT INTO space_stats (account, store, space, day, time, items, bytes)
            VALUES ($1, $2, $3, {now} / 86400000, {now}, $4, $5)
            ON CONFLICT (account, store, space, day) DO UPDATE SET time = excluded.time, items = excluded.items,
                bytes = excluded.bytes";
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![account, store, space, items, bytes]).await;
        session.end(outcome).await.map(|_rows| ())
    }

    /// What the spaces of an account had when they were counted last, by store and space; at most `limit`, and at most
    /// 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn space_stats(&self, account: &str, limit: u32) -> Result<Vec<SpaceStats>, Error> {
        self.list(NEWEST, values![account, page(limit)], stats).await
    }
}

fn stats(row: &DatabaseRow) -> Result<SpaceStats, sqlx::Error> {
    Ok(SpaceStats {
        account: row.get(0)?,
        store: row.need(1, |name: String| name.parse::<StoreName>())?,
        space: row.need(2, |name: String| name.parse::<SpaceName>())?,
        time: row.time(3)?,
        items: row.count(4)?,
        bytes: row.count(5)?,
    })
}

//! The newest comparison of each space of a store with the content index that was kept.

use jiff::Timestamp;
use queuekeeper_store::{SpaceName, StoreName};

use crate::catalogue::{Catalogue, page};
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;

/// A comparison to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewComparison<'a> {
    /// The account.
    pub account: &'a str,
    /// The store.
    pub store: &'a StoreName,
    /// The space, as the account names it.
    pub space: &'a SpaceName,
    /// When it began.
    pub started: Timestamp,
    /// How many items differ.
    pub differing: u64,
    /// What it came to, as JSON.
    pub result: &'a str,
    /// Where its table lies, as `STORE/SPACE/KEY`.
    pub place: &'a str,
}

/// A comparison that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptComparison {
    /// The account.
    pub account: String,
    /// The store.
    pub store: StoreName,
    /// The space, as the account names it.
    pub space: SpaceName,
    /// When it began.
    pub started: Timestamp,
    /// When it had ended, by the database's clock.
    pub ended: Timestamp,
    /// How many items differ.
    pub differing: u64,
    /// What it came to, as JSON.
    pub result: String,
    /// Where its table lies, as `STORE/SPACE/KEY`.
    pub place: String,
}

/// Those of an account behind a space, by space and store.
pub(crate) const COMPARISONS: &str =
    "SELECT account, store, space, started, ended, differing, result, place FROM comparisons
    WHERE account = $1 AND space > $2 ORDER BY account, space, store LIMIT $3";

/// Those of a space, by store.
pub(crate) const COMPARISONS_OF: &str =
    "SELECT account, store, space, started, ended, differing, result, place FROM comparisons
    WHERE account = $1 AND space = $2 ORDER BY store";

impl Catalogue {
    /// Keeps a comparison, in place of the one of the same space before.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn keep_comparison(&self, new: &NewComparison<'_>) -> Result<(), Error> {
        let NewComparison { account, store, space, started, differing, result, place } = new;
        let sql = "INSERT INTO comparisons (account, store, space, started, ended, differing, result, place)
            VALUES ($1, $2, $3, $4, {now}, $5, $6, $7)
            ON CONFLICT (account, space, store) DO UPDATE SET started = excluded.started, ended = excluded.ended,
                differing = excluded.differing, result = excluded.result, place = excluded.place";
        let values = values![*account, *store, *space, started.as_millisecond(), *differing, *result, *place];
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values).await;
        session.end(outcome).await.map(|_rows| ())
    }

    /// The comparisons of an account that were kept, of spaces behind `after`, by space and store; at most `limit`, and
    /// at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn comparisons(&self, account: &str, after: &str, limit: u32) -> Result<Vec<KeptComparison>, Error> {
        self.list(COMPARISONS, values![account, after, page(limit)], read).await
    }

    /// Those of a space, by store.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn comparisons_of(&self, account: &str, space: &SpaceName) -> Result<Vec<KeptComparison>, Error> {
        self.list(COMPARISONS_OF, values![account, space], read).await
    }
}

fn read(row: &DatabaseRow) -> Result<KeptComparison, sqlx::Error> {
    Ok(KeptComparison {
        account: row.get(0)?,
        store: row.need(1, |name: String| name.parse::<StoreName>())?,
        space: row.need(2, |name: String| name.parse::<SpaceName>())?,
        started: row.time(3)?,
        ended: row.time(4)?,
        differing: row.count(5)?,
        result: row.get(6)?,
        place: row.get(7)?,
    })
}

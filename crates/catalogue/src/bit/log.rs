//! The log of checks as lists, and what of it is forgotten.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, StoreName};

use super::checked::Evidence;
use super::{PASSING, requested};
use crate::catalogue::{Catalogue, page};
use crate::database::Session;
use crate::database::value::{DatabaseRow, millis, values};
use crate::error::Error;
use crate::index::NO_ACCOUNT;

/// A check that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedCheck {
    /// Its number.
    pub id: u64,
    /// When its outcome was written, by the database's clock.
    pub time: Timestamp,
    /// The key.
    pub key: Key,
    /// The store.
    pub store: StoreName,
    /// The run; `None` for a check outside of runs.
    pub run: Option<u64>,
    /// The result.
    pub result: String,
    /// The names of what was found; none of a success.
    pub findings: Vec<String>,
    /// How the bytes were proven, where they were.
    pub proof: Option<String>,
    /// What was seen.
    pub evidence: Evidence,
    /// What is wrong, as a sentence; `None` where nothing is.
    pub detail: Option<String>,
}

macro_rules! checks {
    ($condition:literal) => {
        concat!(
            "SELECT bit_log.id, bit_log.time, items.key, bit_log.store, bit_log.run, bit_log.result, bit_log.findings,
                bit_log.proof, bit_log.content, bit_log.provider, bit_log.content_index, bit_log.audit, bit_log.detail
            FROM bit_log JOIN items ON items.id = bit_log.item WHERE ",
            $condition
        )
    };
}

/// Those of a copy, the newest first.
pub(crate) const OF_ITEM: &str = checks!(
    "bit_log.item = (SELECT known.id FROM items AS known WHERE known.account = $1 AND known.space = $2 AND known.key = $3)
        AND bit_log.store = $4 AND bit_log.id < $5 ORDER BY bit_log.id DESC LIMIT $6"
);

/// The last ones of the items of a run, of those the ones with a result, from a number on.
pub(crate) const OF_RUN: &str = checks!(
    "bit_log.run = $1 AND bit_log.result = $2 AND bit_log.id > $3 AND bit_log.id = (
        SELECT newest.id FROM bit_log AS newest WHERE newest.item = bit_log.item AND newest.store = bit_log.store
            AND newest.run = bit_log.run ORDER BY newest.id DESC LIMIT 1)
    ORDER BY bit_log.id LIMIT $4"
);

/// How many rows one transaction forgets.
const PART: u32 = 10_000;

impl Catalogue {
    /// The checks of a copy, with numbers below `before`, the newest first; at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn checks_of_item(
        &self,
        store: &StoreName,
        item: &Item,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<LoggedCheck>, Error> {
        let mut values = values![NO_ACCOUNT, &item.space, &item.key, store];
        values.extend(values![before.unwrap_or(u64::MAX), page(limit)]);
        self.list(OF_ITEM, values, read).await
    }

    /// Of each item of a run the last check, where that had a result; with numbers above `after`, at most `limit`, and
    /// at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn checks_of_run(
        &self,
        run: u64,
        result: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<LoggedCheck>, Error> {
        self.list(OF_RUN, values![run, result, after, page(limit)], read).await
    }

    /// Forgets a part of what has done its service: successes of runs whose report is stored and that were followed by
    /// another one which ended; and successes outside of runs, and checks that were requested and have ended, after the
    /// time for which a proof holds. Failures and errors stay. The answer is how many were forgotten, and `None` where
    /// nothing is left to forget.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing was forgotten.
    pub async fn forget_checks(&self) -> Result<Option<u64>, Error> {
        let mut session = self.database.begin().await?;
        let outcome = forget(&mut session).await;
        session.end(outcome).await
    }
}

/// Whether the oldest check outside of runs that had a result is older than a time. The order is that of the index.
pub(crate) const OLDEST_OUTSIDE: &str =
    "SELECT time < {now} - $2 FROM bit_log WHERE run IS NULL AND result = $1 ORDER BY run, result, id LIMIT 1";

/// How long a proof holds where no producer of checks says it.
const KEPT: Duration = Duration::from_hours(60 * 24);

async fn forget(session: &mut Session) -> Result<Option<u64>, Error> {
    if let Some(forgotten) = forget_run(session).await? {
        return Ok(Some(forgotten));
    }
    let max_age = session.row("SELECT MAX(max_age) FROM loops", values![]).await?;
    let max_age: Option<i64> = max_age.map(|row| session.decode(row.get(0))).transpose()?.flatten();
    let kept = max_age.unwrap_or(millis(KEPT));
    let forgotten = forget_outside(session, kept).await? + requested::forget(session, kept, PART).await?;
    Ok((forgotten > 0).then_some(forgotten))
}

async fn forget_outside(session: &mut Session, kept: i64) -> Result<u64, Error> {
    let mut forgotten = 0;
    for result in PASSING {
        let oldest = session.row(OLDEST_OUTSIDE, values![result, kept]).await?;
        if oldest.map(|row| session.decode(row.get(0))).transpose()? != Some(true) {
            continue;
        }
        let sql = "DELETE FROM bit_log WHERE time < {now} - $2 AND id IN (
            SELECT id FROM bit_log WHERE run IS NULL AND result = $1 ORDER BY run, result, id LIMIT $3)";
        forgotten += session.run(sql, values![result, kept, PART]).await?;
    }
    Ok(forgotten)
}

async fn forget_run(session: &mut Session) -> Result<Option<u64>, Error> {
    let next = "SELECT id FROM bit_runs WHERE NOT is_forgotten AND reported IS NOT NULL AND EXISTS (
            SELECT 1 FROM bit_runs AS later WHERE later.account = bit_runs.account AND later.store = bit_runs.store
                AND later.space = bit_runs.space AND later.loop > bit_runs.loop AND later.ended IS NOT NULL)
        ORDER BY id LIMIT 1 {lock_next}";
    let Some(row) = session.row(next, values![]).await? else { return Ok(None) };
    let run: u64 = session.decode(row.count(0))?;
    let mut forgotten = 0;
    for result in PASSING {
        let sql = "DELETE FROM bit_log WHERE id IN (
            SELECT id FROM bit_log WHERE run = $1 AND result = $2 ORDER BY id LIMIT $3)";
        forgotten += session.run(sql, values![run, result, PART]).await?;
    }
    let items = "DELETE FROM bit_items WHERE run = $1 AND key IN (
        SELECT key FROM bit_items WHERE run = $1 ORDER BY key LIMIT $2)";
    forgotten += session.run(items, values![run, PART]).await?;
    if forgotten == 0 {
        session.run("DELETE FROM bit_pages WHERE run = $1", values![run]).await?;
        session.run("UPDATE bit_runs SET is_forgotten = TRUE WHERE id = $1", values![run]).await?;
    }
    Ok(Some(forgotten))
}

fn read(row: &DatabaseRow) -> Result<LoggedCheck, sqlx::Error> {
    let findings: Option<String> = row.get(6)?;
    Ok(LoggedCheck {
        id: row.count(0)?,
        time: row.time(1)?,
        key: row.need(2, |bytes: Vec<u8>| Key::new(bytes))?,
        store: row.need(3, |name: String| name.parse::<StoreName>())?,
        run: row.parse(4, |run: i64| u64::try_from(run))?,
        result: row.get(5)?,
        findings: findings.unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
        proof: row.get(7)?,
        evidence: Evidence { content: row.get(8)?, provider: row.get(9)?, index: row.get(10)?, audit: row.get(11)? },
        detail: row.get(12)?,
    })
}

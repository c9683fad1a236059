//! How many items of a run had which result: deltas, folded with the counters.

use std::collections::BTreeMap;

use super::LISTED;
use crate::catalogue::Catalogue;
use crate::database::Session;
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;

/// How many items of a run had a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultCount {
    /// The result.
    pub result: String,
    /// How many items.
    pub items: u64,
    /// How many bytes these have.
    pub bytes: u64,
}

/// What a transaction adds to the figures of a run.
#[derive(Default)]
pub(super) struct Deltas(BTreeMap<&'static str, (u64, u64)>);

impl Deltas {
    pub(super) fn add(&mut self, result: &'static str, items: u64, bytes: u64) {
        let sum = self.0.entry(result).or_default();
        *sum = (sum.0 + items, sum.1 + bytes);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(result, (items, _))| (*result, *items))
    }

    pub(super) async fn write(&self, session: &mut Session, run: u64) -> Result<(), Error> {
        let values = self.0.iter().flat_map(|(result, (items, bytes))| values![run, *result, *items, *bytes]);
        session.insert_many("INSERT INTO bit_deltas (run, result, items, bytes)", 4, values.collect()).await
    }
}

const FIGURES: &str = "SELECT result, CAST(SUM(items) AS BIGINT), CAST(SUM(bytes) AS BIGINT) FROM (
        SELECT result, items, bytes FROM bit_counts WHERE run = $1
        UNION ALL SELECT result, items, bytes FROM bit_deltas WHERE run = $1) AS parts
    GROUP BY result ORDER BY result";

impl Catalogue {
    /// How many checks of items of a run had each result, exact as of now, and how many items were skipped or are gone.
    /// An item that was checked twice counts twice.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_counts(&self, run: u64) -> Result<Vec<ResultCount>, Error> {
        let counts = self.all_counts(run).await?;
        Ok(counts.into_iter().filter(|count| count.result != LISTED).collect())
    }

    /// How many items and bytes the store listed in the pages of a run that were checked, or had by the time of a check
    /// of their own.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_listed(&self, run: u64) -> Result<(u64, u64), Error> {
        let counts = self.all_counts(run).await?;
        let listed = counts.into_iter().find(|count| count.result == LISTED);
        Ok(listed.map_or((0, 0), |listed| (listed.items, listed.bytes)))
    }

    async fn all_counts(&self, run: u64) -> Result<Vec<ResultCount>, Error> {
        let count =
            |row: &DatabaseRow| Ok(ResultCount { result: row.get(0)?, items: row.count(1)?, bytes: row.count(2)? });
        self.list(FIGURES, values![run], count).await
    }
}

/// What was checked of the content of a store in some minutes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedAmount {
    /// The proof policy of the store, as it is configured, such as `read 1/12`.
    pub policy: String,
    /// How many items the store listed in the pages that were checked, or had by the time of a check of their own.
    pub items: u64,
    /// How many bytes these have.
    pub bytes: u64,
}

/// For how many minutes it is kept what was checked in each of them.
const KEPT_MINUTES: i64 = 24 * 60;

impl Catalogue {
    /// What a loop has checked in the last `minutes`, the one under way being the last of them, by the proof that was
    /// requested.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn checked_lately(&self, number: u64, minutes: u32) -> Result<Vec<CheckedAmount>, Error> {
        let sql = "SELECT bit_runs.asked, CAST(SUM(items) AS BIGINT), CAST(SUM(bytes) AS BIGINT)
            FROM checked_in_minute JOIN bit_runs ON bit_runs.id = checked_in_minute.run
            WHERE minute > {now} / 60000 - $1 AND bit_runs.loop = $2 GROUP BY bit_runs.asked ORDER BY bit_runs.asked";
        let amount =
            |row: &DatabaseRow| Ok(CheckedAmount { policy: row.get(0)?, items: row.count(1)?, bytes: row.count(2)? });
        self.list(sql, values![minutes, number], amount).await
    }
}

/// Folds deltas, at most so many; the answer is how many.
pub(crate) async fn fold(session: &mut Session, most: u32) -> Result<u64, Error> {
    let sql = "DELETE FROM bit_deltas WHERE id IN (SELECT id FROM bit_deltas ORDER BY id LIMIT $1)
        RETURNING run, result, items, bytes";
    let rows = session.rows(sql, values![most]).await?;
    let mut sums = BTreeMap::<(u64, String), (u64, u64)>::new();
    for row in &rows {
        let of = (session.decode(row.count(0))?, session.decode(row.get(1))?);
        let sum = sums.entry(of).or_default();
        *sum = (sum.0 + session.decode(row.count(2))?, sum.1 + session.decode(row.count(3))?);
    }
    for ((run, result), (items, bytes)) in &sums {
        let sql = "INSERT INTO bit_counts (run, result, items, bytes) VALUES ($1, $2, $3, $4)
            ON CONFLICT (run, result) DO UPDATE
                SET items = bit_counts.items + excluded.items, bytes = bit_counts.bytes + excluded.bytes";
        session.run(sql, values![*run, result, *items, *bytes]).await?;
        if result == LISTED {
            let sql = "INSERT INTO checked_in_minute (minute, run, items, bytes) VALUES ({now} / 60000, $1, $2, $3)
                ON CONFLICT (minute, run) DO UPDATE SET items = checked_in_minute.items + excluded.items,
                    bytes = checked_in_minute.bytes + excluded.bytes";
            session.run(sql, values![*run, *items, *bytes]).await?;
        }
    }
    if !rows.is_empty() {
        session.run("DELETE FROM checked_in_minute WHERE minute < {now} / 60000 - $1", values![KEPT_MINUTES]).await?;
    }
    Ok(rows.len() as u64)
}

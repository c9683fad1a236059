//! How old the proofs of content are: how many items have which, day by day.
//!
//! As with counters, a transaction that changes a proof appends what that adds and takes away, and one process at a
//! time folds these deltas. An item without a proof is counted on the day on which its content was written.

mod rules;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_store::{SpaceName, StoreName};

use crate::catalogue::Catalogue;
use crate::database::Session;
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;

pub use rules::CheckRules;

/// The kind of proof of an item that has none.
pub const UNPROVEN: &str = "none";

/// A day.
pub const DAY: Duration = Duration::from_hours(24);

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// How many items of a space in a store have a proof of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofFigure {
    /// The store.
    pub store: StoreName,
    /// The space, as the store names it.
    pub space: SpaceName,
    /// The kind of proof, such as `read`; [`UNPROVEN`] of items that have none.
    pub proof: String,
    /// How many items; at least one.
    pub items: u64,
    /// The beginning of the day, of UTC, of the oldest of these proofs; of items without one, on which the oldest
    /// content of these was written.
    pub oldest: Timestamp,
}

/// A space of a store, a kind of proof, and a day counted from 1970.
pub(crate) type ProofDay = (String, String, String, i64);

/// As of one instant: what a fold moves is in one of the two, never in both or neither.
macro_rules! days {
    () => {
        "SELECT store, space, proof, day, CAST(SUM(items) AS BIGINT) AS items FROM (
            SELECT store, space, proof, day, items FROM proof_counts
            UNION ALL SELECT store, space, proof, day, items FROM proof_deltas) AS parts
        GROUP BY store, space, proof, day"
    };
}

const FIGURES: &str = concat!(
    "SELECT store, space, proof, CAST(SUM(items) AS BIGINT), MIN(day) FROM (",
    days!(),
    ") AS days WHERE items > 0 GROUP BY store, space, proof ORDER BY store, space, proof"
);

/// Counts the content index, in place of what is kept.
const COUNTED: &str = "SELECT copies.store, items.space, COALESCE(copies.proof, 'none'),
        COALESCE(copies.proven, copies.written) / 86400000, COUNT(*)
    FROM copies JOIN items ON items.id = copies.item WHERE NOT copies.is_deleted GROUP BY 1, 2, 3, 4";

/// Content is written anew, or deleted: it has the proof of before no more, and none yet. The row is locked, so that
/// nothing proves it meanwhile.
const REPLACE: &str = "INSERT INTO proof_deltas (store, space, proof, day, items)
    SELECT $1, $2, before.proof, before.day, -1 FROM (
        SELECT COALESCE(proof, 'none') AS proof, COALESCE(proven, written) / 86400000 AS day FROM copies
        WHERE item = $3 AND store = $1 AND NOT is_deleted {lock}) AS before
    UNION ALL SELECT $1, $2, 'none', $4, 1 WHERE NOT $5";

impl Catalogue {
    /// How many items have which proof, and how old the oldest is, by store, space and kind, exact as of now. The cost
    /// is that of spaces and days, not of items.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn proof_figures(&self) -> Result<Vec<ProofFigure>, Error> {
        self.list(FIGURES, values![], figure).await
    }
}

fn figure(row: &DatabaseRow) -> Result<ProofFigure, sqlx::Error> {
    Ok(ProofFigure {
        store: row.need(0, |name: String| name.parse::<StoreName>())?,
        space: row.need(1, |name: String| name.parse::<SpaceName>())?,
        proof: row.get(2)?,
        items: row.count(3)?,
        oldest: row.need(4, |day: i64| Timestamp::from_millisecond(day.saturating_mul(DAY_MILLIS)))?,
    })
}

/// The day of a time, of UTC, counted from 1970.
pub(crate) fn day(time: Timestamp) -> i64 {
    time.as_millisecond().div_euclid(DAY_MILLIS)
}

/// Says that a copy is written anew at a time, or deleted, before that is done.
pub(crate) async fn replace(
    session: &mut Session,
    (item, store, space): (i64, &str, &SpaceName),
    time: Timestamp,
    is_deleted: bool,
) -> Result<(), Error> {
    session.run(REPLACE, values![store, space, item, day(time), is_deleted]).await.map(|_rows| ())
}

/// The kinds of proof and the days of those of some copies that are not deleted, by item. The rows are locked.
pub(crate) async fn of_copies(
    session: &mut Session,
    store: &str,
    items: impl Iterator<Item = i64>,
) -> Result<BTreeMap<i64, (String, i64)>, Error> {
    let select = "SELECT copies.item, COALESCE(copies.proof, 'none'),
            COALESCE(copies.proven, copies.written) / 86400000 FROM copies JOIN (";
    let then = ") AS wanted ON copies.item = wanted.column1 AND copies.store = wanted.column2
        AND NOT copies.is_deleted {lock}";
    let values = items.flat_map(|item| values![item, store]).collect();
    let rows = session.insert_returning(select, "?, ?", then, values).await?;
    let read = |row: &DatabaseRow| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)));
    rows.iter().map(|row| session.decode(read(row))).collect()
}

/// Appends what a transaction adds; what adds nothing is left out.
pub(crate) async fn add(session: &mut Session, deltas: &BTreeMap<ProofDay, i64>) -> Result<(), Error> {
    let deltas = deltas.iter().filter(|(_, items)| **items != 0);
    let values = deltas.flat_map(|((store, space, proof, day), items)| values![store, space, proof, *day, *items]);
    let into = "INSERT INTO proof_deltas (store, space, proof, day, items)";
    session.insert_many(into, 5, values.collect()).await
}

/// Folds deltas, at most so many; the answer is how many.
pub(crate) async fn fold(session: &mut Session, most: u32) -> Result<u64, Error> {
    let sql = "DELETE FROM proof_deltas WHERE id IN (SELECT id FROM proof_deltas ORDER BY id LIMIT $1)
        RETURNING store, space, proof, day, items";
    let rows = session.rows(sql, values![most]).await?;
    let mut sums = BTreeMap::<ProofDay, i64>::new();
    for row in &rows {
        let (of, items) = session.decode(proof_day(row))?;
        *sums.entry(of).or_default() += items;
    }
    for ((store, space, proof, day), items) in sums.iter().filter(|(_, items)| **items != 0) {
        let sql = "INSERT INTO proof_counts (store, space, proof, day, items) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (store, space, proof, day) DO UPDATE SET items = proof_counts.items + excluded.items
            RETURNING items";
        let row = session.row(sql, values![store, space, proof, *day, *items]).await?;
        if row.map(|row| session.decode(row.get::<i64>(0))).transpose()? == Some(0) {
            let sql = "DELETE FROM proof_counts WHERE store = $1 AND space = $2 AND proof = $3 AND day = $4";
            session.run(sql, values![store, space, proof, *day]).await?;
        }
    }
    Ok(rows.len() as u64)
}

/// What is kept, and what there is: the figures of all days that differ.
pub(crate) async fn deviations(session: &mut Session) -> Result<BTreeMap<ProofDay, (i64, i64)>, Error> {
    let mut figures = BTreeMap::<ProofDay, (i64, i64)>::new();
    for row in session.rows(days!(), values![]).await? {
        let (of, items) = session.decode(proof_day(&row))?;
        figures.entry(of).or_default().0 = items;
    }
    for row in session.rows(COUNTED, values![]).await? {
        let (of, items) = session.decode(proof_day(&row))?;
        figures.entry(of).or_default().1 = items;
    }
    figures.retain(|_, (kept, counted)| kept != counted);
    Ok(figures)
}

fn proof_day(row: &DatabaseRow) -> Result<(ProofDay, i64), sqlx::Error> {
    Ok(((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?), row.get(4)?))
}

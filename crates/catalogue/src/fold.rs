//! Folding: what transactions added to figures is put into the counters.

use std::collections::BTreeMap;

use crate::bit;
use crate::catalogue::Catalogue;
use crate::counters::Counter;
use crate::database::Session;
use crate::database::dialect::Dialect;
use crate::database::value::values;
use crate::error::Error;
use crate::proofs;

/// How many deltas one transaction folds: it must be short.
const MOST_DELTAS: u32 = 10_000;

/// The process that has this lock folds.
const LOCK: i64 = 0x716b_666f_6c64;

/// For how long an intent that led to no event is remembered: longer than any process tries to settle it again.
const DROPPED_INTENTS_MILLIS: i64 = 7 * 24 * 60 * 60 * 1000;

/// What the scope of a counter of ends has after its queue, where they were done.
const DONE: &str = "/done";

const DONE_IN_MINUTE: &str = "INSERT INTO done_tasks (minute, queue, number) VALUES ({now} / 60000, $1, $2)
    ON CONFLICT (minute, queue) DO UPDATE SET number = done_tasks.number + excluded.number";

/// For how many minutes it is kept how many tasks were done in each of them.
const DONE_MINUTES: i64 = 24 * 60;

impl Catalogue {
    /// Folds deltas into the counters, at most 10,000, and forgets intents that led to no event a week ago. The answer
    /// is how many deltas were folded; none where another process is folding.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing was folded.
    pub async fn fold(&self) -> Result<u64, Error> {
        let mut session = self.database.begin().await?;
        let outcome = fold_in(&mut session).await;
        session.end(outcome).await
    }
}

async fn fold_in(session: &mut Session) -> Result<u64, Error> {
    // SQLite's transaction is the lock.
    if session.dialect() == Dialect::Postgres {
        let row = session.row("SELECT pg_try_advisory_xact_lock($1)", values![LOCK]).await?;
        if !row.map(|row| session.decode(row.get::<bool>(0))).transpose()?.unwrap_or(false) {
            return Ok(0);
        }
    }
    let sql = "DELETE FROM counter_deltas WHERE id IN (SELECT id FROM counter_deltas ORDER BY id LIMIT $1)
        RETURNING name, scope, delta";
    let rows = session.rows(sql, values![MOST_DELTAS]).await?;
    let mut sums = BTreeMap::<(String, String), i64>::new();
    for row in &rows {
        let of = (session.decode(row.get(0))?, session.decode(row.get(1))?);
        *sums.entry(of).or_default() += session.decode(row.get::<i64>(2))?;
    }
    for ((name, scope), sum) in &sums {
        let sql = "INSERT INTO counters (name, scope, value) VALUES ($1, $2, $3)
            ON CONFLICT (name, scope) DO UPDATE SET value = counters.value + excluded.value";
        session.run(sql, values![name, scope, *sum]).await?;
        let queue = scope.strip_suffix(DONE).filter(|_| name == Counter::EndedTasks.as_str());
        if let Some(queue) = queue {
            session.run(DONE_IN_MINUTE, values![queue, *sum]).await?;
        }
    }
    session.run("DELETE FROM done_tasks WHERE minute < {now} / 60000 - $1", values![DONE_MINUTES]).await?;
    let forget = "DELETE FROM dropped_intents WHERE dropped < {now} - $1";
    session.run(forget, values![DROPPED_INTENTS_MILLIS]).await?;
    Ok(rows.len() as u64 + bit::fold(session, MOST_DELTAS).await? + proofs::fold(session, MOST_DELTAS).await?)
}

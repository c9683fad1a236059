//! What people see of tasks, and what they decide of those that wait for them.

use jiff::Timestamp;
use queuekeeper_store::StoreName;

use super::figures::Deltas;
use super::kind::TaskQueue;
use super::state::TaskState;
use super::{TaskError, TaskSubject, subject_columns};
use crate::catalogue::{Catalogue, page};
use crate::counters::Counter;
use crate::database::Session;
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;

/// A task as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTask {
    /// Its number.
    pub id: u64,
    /// The queue that it belongs to; of a dead letter, the one that it was in.
    pub home: TaskQueue,
    /// What it is about.
    pub subject: TaskSubject,
    /// The store to copy from, where it copies.
    pub source: Option<StoreName>,
    /// Its failures, or why it is held.
    pub errors: Vec<TaskError>,
    /// When it was requested first.
    pub created: Timestamp,
}

/// How many tasks a queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFigures {
    /// The queue.
    pub queue: TaskQueue,
    /// Those that a worker may take now or later, and those that one has.
    pub waiting: u64,
    /// Those of them that a worker has.
    pub taken: u64,
    /// Those that wait for an operator to allow them.
    pub held: u64,
    /// Those that failed.
    pub dead: u64,
    /// Those that a pause keeps from workers.
    pub paused: u64,
    /// Those whose store cannot be read now.
    pub restore: u64,
}

/// The columns that [`known`] reads, ten of them.
macro_rules! columns {
    () => {
        concat!("id, home, ", subject_columns!(), ", source, errors, created")
    };
}

pub(super) use columns;

/// Dead letters from a number on. The visibility is what the index has of them.
pub(crate) const DEAD: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM tasks WHERE queue = 'dead-letter' AND account = $1 AND visible = $2 AND id > $3 ORDER BY id LIMIT $4"
);

/// What is held of a destination, from a number on.
pub(crate) const HELD: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM tasks WHERE state = 'held' AND account = $1 AND destination = $2 AND id > $3 ORDER BY id LIMIT $4"
);

const TAKEN: &str = "SELECT queue, COUNT(*) FROM tasks WHERE holder IS NOT NULL GROUP BY queue";

impl Catalogue {
    /// How many tasks each queue has, without counting what waits.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn task_figures(&self) -> Result<Vec<QueueFigures>, Error> {
        let figures = self.counters().await?;
        let taken = self.list(TAKEN, values![], |row| Ok((super::put::queue(row, 0)?, row.count(1)?))).await?;
        let of = |queue, state| {
            let figure = figures.get(&(Counter::Tasks, super::figures::scope(queue, state))).copied().unwrap_or(0);
            u64::try_from(figure).unwrap_or(0)
        };
        let figures = TaskQueue::ALL.map(|queue| QueueFigures {
            queue,
            waiting: of(queue, TaskState::Waiting),
            taken: taken.iter().find(|(known, _)| *known == queue).map_or(0, |(_, count)| *count),
            held: of(queue, TaskState::Held),
            dead: of(queue, TaskState::Dead),
            paused: of(queue, TaskState::Paused),
            restore: of(queue, TaskState::Restore),
        });
        Ok(figures.to_vec())
    }

    /// The dead letters of an account with numbers above `after`, at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn dead_letters(&self, account: &str, after: u64, limit: u32) -> Result<Vec<KnownTask>, Error> {
        self.list(DEAD, values![account, i64::MAX, after, page(limit)], known).await
    }

    /// What is held of an account at a destination, with numbers above `after`, at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn held_tasks(
        &self,
        account: &str,
        destination: &StoreName,
        after: u64,
        limit: u32,
    ) -> Result<Vec<KnownTask>, Error> {
        self.list(HELD, values![account, destination, after, page(limit)], known).await
    }

    /// Carries out what an operator decides of a dead letter or a held task, and records it. The answer is whether it
    /// was one.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn decide_task(&self, id: u64, decision: &Decision<'_>) -> Result<bool, Error> {
        let mut session = self.database.begin().await?;
        let outcome = decide(&mut session, id, decision).await;
        let was_waiting = session.end(outcome).await?;
        self.notify().await;
        Ok(was_waiting)
    }
}

/// What is decided of a task that waits for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    /// What becomes of it.
    pub what: Decided,
    /// Of tasks in which of these states: no other is changed, and none that waits for no decision.
    pub of: &'a [TaskState],
    /// Who decides it.
    pub user: &'a str,
    /// Why.
    pub reason: &'a str,
}

/// What becomes of a task that waited for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It waits for a worker again, with its failures and as many attempts as a new one. What it was held for is
    /// allowed, this once.
    Retry,
    /// It is removed.
    Drop,
}

impl Decided {
    /// The name in the record, and what it does.
    fn spec(self) -> (&'static str, &'static str) {
        match self {
            Self::Retry => (
                "retry",
                "UPDATE tasks SET queue = home, state = 'waiting', visible = {now}, attempts = 0, rounds = 0,
                    is_released = (state = 'held') WHERE id = $1 AND state = $2",
            ),
            Self::Drop => ("drop", "DELETE FROM tasks WHERE id = $1 AND state = $2"),
        }
    }
}

async fn decide(session: &mut Session, id: u64, decision: &Decision<'_>) -> Result<bool, Error> {
    let sql = concat!("SELECT queue, home, state, ", subject_columns!(), " FROM tasks WHERE id = $1 {lock}");
    let Some(row) = session.row(sql, values![id]).await? else { return Ok(false) };
    let read = || Ok((super::put::queue(&row, 0)?, super::put::queue(&row, 1)?, TaskState::read(&row, 2)?));
    let (queue, home, state) = session.decode(read())?;
    let subject = session.decode(super::subject(&row, 3))?;
    let Decision { what, of, user, reason } = *decision;
    if !of.contains(&state) || !state.is_undecided() {
        return Ok(false);
    }
    let (name, sql) = what.spec();
    let record = "INSERT INTO decisions
            (time, user_name, decision, reason, task, account, space, key, kind, destination)
        SELECT {now}, $2, $3, $4, id, account, space, key, kind, destination FROM tasks WHERE id = $1";
    session.run(record, values![id, user, name, reason]).await?;
    session.run(sql, values![id, state.as_str()]).await?;
    let mut deltas = Deltas::default();
    deltas.add(&subject, queue, state, -1);
    if what == Decided::Retry {
        deltas.add(&subject, home, TaskState::Waiting, 1);
    }
    deltas.write(session).await?;
    Ok(true)
}

pub(super) fn known(row: &DatabaseRow) -> Result<KnownTask, sqlx::Error> {
    Ok(KnownTask {
        id: row.count(0)?,
        home: super::put::queue(row, 1)?,
        subject: super::subject(row, 2)?,
        source: super::store(row, 7)?,
        errors: super::errors(&row.get::<String>(8)?),
        created: row.time(9)?,
    })
}

//! What people look at: what is next, what is done with an item, who works, and what was decided.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_store::{Key, SpaceName};
use uuid::Uuid;

use super::kind::{TaskKind, TaskQueue};
use super::list::{KnownTask, columns, known};
use super::state::TaskState;
use super::{TaskSubject, key_column, subject_columns};
use crate::catalogue::{Catalogue, page};
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;

/// A task of an item, with what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTask {
    /// The task.
    pub task: KnownTask,
    /// What it waits for.
    pub state: TaskState,
    /// From when on a worker may take it; of one that is taken, when its lease ends. `None` where it waits for an
    /// operator.
    pub visible: Option<Timestamp>,
    /// The worker that has it.
    pub worker: Option<String>,
    /// How often it was begun.
    pub attempts: u64,
    /// Why its store cannot be read now, as the predicate of a sentence; `None` where it does not wait for that.
    pub waits_for: Option<String>,
}

/// What an operator decided about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionRecord {
    /// Its number.
    pub id: u64,
    /// When, by the database's clock.
    pub time: Timestamp,
    /// Who.
    pub user: String,
    /// `retry` or `drop`.
    pub decision: String,
    /// Why.
    pub reason: String,
    /// The number of the task.
    pub task: u64,
    /// What the task was about.
    pub subject: TaskSubject,
}

/// A process of the mill, as it reported itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MillProcess {
    /// What distinguishes it.
    pub id: Uuid,
    /// The name that its workers have in the history of a task.
    pub name: String,
    /// How many workers it has.
    pub workers: u32,
    /// Which kinds of tasks they process.
    pub kinds: Vec<TaskKind>,
}

/// A process of the mill as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenProcess {
    /// The process.
    pub process: MillProcess,
    /// When it reported itself first.
    pub started: Timestamp,
    /// When it did so last.
    pub seen: Timestamp,
}

/// The task of an account that waits for longest, of those that are visible.
pub(crate) const HEAD: &str = "SELECT created FROM tasks
    WHERE queue = $1 AND account = $2 AND visible <= {now} ORDER BY visible, id LIMIT 1";

/// The tasks of an item.
pub(crate) const OF_ITEM_TASKS: &str = concat!(
    "SELECT ",
    columns!(),
    ", state, visible, worker, attempts, waits_for FROM tasks WHERE account = $1 AND space = $2 AND key = $3
    ORDER BY kind, destination LIMIT $4"
);

/// Tasks by their numbers, which stand between the two.
const BY_NUMBER: (&str, &str) = (
    concat!("SELECT ", columns!(), ", state, visible, worker, attempts, waits_for FROM tasks JOIN ("),
    ") AS wanted ON tasks.id = wanted.column1",
);

/// Decisions, the newest first.
pub(crate) const DECISIONS: &str = concat!(
    "SELECT id, time, user_name, decision, reason, task, ",
    subject_columns!(),
    " FROM decisions WHERE id < $1 ORDER BY id DESC LIMIT $2"
);

/// Those on one item.
pub(crate) const DECISIONS_OF_ITEM: &str = concat!(
    "SELECT id, time, user_name, decision, reason, task, ",
    subject_columns!(),
    " FROM decisions WHERE account = $1 AND space = $2 AND key = $3 AND id < $4 ORDER BY id DESC LIMIT $5"
);

impl Catalogue {
    /// When the task was requested that waits for longest in a queue, of these accounts; `None` where none is visible.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn oldest_task(&self, queue: TaskQueue, accounts: &[String]) -> Result<Option<Timestamp>, Error> {
        let mut oldest: Option<Timestamp> = None;
        for account in accounts {
            let head = self.list(HEAD, values![queue.as_str(), account.as_str()], |row| row.time(0)).await?.pop();
            oldest = oldest.into_iter().chain(head).min();
        }
        Ok(oldest)
    }

    /// The tasks of an item, of any kind; at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn tasks_of_item(&self, account: &str, space: &SpaceName, key: &Key) -> Result<Vec<OpenTask>, Error> {
        self.list(OF_ITEM_TASKS, values![account, space, key_column(Some(key)), page(u32::MAX)], open).await
    }

    /// Those of these tasks that are open, in no order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn tasks(&self, ids: &[u64]) -> Result<Vec<OpenTask>, Error> {
        let mut session = self.database.read().await?;
        let values = ids.iter().flat_map(|id| values![*id]).collect();
        let rows = session.insert_returning(BY_NUMBER.0, "?", BY_NUMBER.1, values).await?;
        rows.iter().map(|row| session.decode(open(row))).collect()
    }

    /// How many tasks each process has, by the name of its workers: also those that its workers have not begun yet, and
    /// those of which it writes the end.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn tasks_in_progress(&self) -> Result<BTreeMap<String, u64>, Error> {
        let sql = "SELECT worker, COUNT(*) FROM tasks WHERE holder IS NOT NULL GROUP BY worker";
        let rows = self.list(sql, values![], |row| Ok((row.get::<Option<String>>(0)?, row.count(1)?))).await?;
        Ok(rows.into_iter().map(|(worker, count)| (worker.unwrap_or_default(), count)).collect())
    }

    /// How many tasks of each queue were done in the last so many minutes, at most a day.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn done_tasks(&self, minutes: u32) -> Result<BTreeMap<TaskQueue, u64>, Error> {
        let sql = "SELECT queue, CAST(SUM(number) AS BIGINT) FROM done_tasks WHERE minute > {now} / 60000 - $1
            GROUP BY queue";
        let rows = self.list(sql, values![minutes], |row| Ok((super::put::queue(row, 0)?, row.count(1)?))).await?;
        Ok(rows.into_iter().collect())
    }

    /// What people decided, with numbers below `before`, the newest first; at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn decisions(&self, before: Option<u64>, limit: u32) -> Result<Vec<DecisionRecord>, Error> {
        self.list(DECISIONS, values![before.unwrap_or(u64::MAX), page(limit)], decision).await
    }

    /// The newest of those on one item; at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn decisions_of_item(
        &self,
        account: &str,
        space: &SpaceName,
        key: &Key,
        limit: u32,
    ) -> Result<Vec<DecisionRecord>, Error> {
        self.list(DECISIONS_OF_ITEM, values![account, space, key, u64::MAX, page(limit)], decision).await
    }

    /// Reports a process of the mill as running; those that did not for a day are forgotten.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn report_process(&self, process: &MillProcess) -> Result<(), Error> {
        let MillProcess { id, name, workers, kinds } = process;
        let kinds = kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" ");
        let sql = "INSERT INTO mill_processes (id, name, workers, kinds, started, seen)
            VALUES ($1, $2, $3, $4, {now}, {now})
            ON CONFLICT (id) DO UPDATE SET workers = excluded.workers, kinds = excluded.kinds, seen = excluded.seen";
        let mut session = self.database.begin().await?;
        let outcome = async {
            session.run("DELETE FROM mill_processes WHERE seen < {now} - $1", values![DAY_MILLIS]).await?;
            session.run(sql, values![*id, name, *workers, &kinds]).await.map(|_rows| ())
        };
        let outcome = outcome.await;
        session.end(outcome).await
    }

    /// Forgets a process that ends.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn forget_process(&self, id: Uuid) -> Result<(), Error> {
        let mut session = self.database.begin().await?;
        let outcome = session.run("DELETE FROM mill_processes WHERE id = $1", values![id]).await;
        session.end(outcome).await.map(|_rows| ())
    }

    /// The processes of the mill that reported themselves within a time, by name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn mill_processes(&self, within: Duration) -> Result<Vec<SeenProcess>, Error> {
        let sql = "SELECT id, name, workers, kinds, started, seen FROM mill_processes WHERE seen >= {now} - $1
            ORDER BY name, id";
        let within = i64::try_from(within.as_millis()).unwrap_or(i64::MAX);
        self.list(sql, values![within], process).await
    }
}

/// A day in milliseconds.
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

fn open(row: &DatabaseRow) -> Result<OpenTask, sqlx::Error> {
    let visible: i64 = row.get(11)?;
    Ok(OpenTask {
        task: known(row)?,
        state: TaskState::read(row, 10)?,
        visible: if visible == i64::MAX { None } else { Timestamp::from_millisecond(visible).ok() },
        worker: row.get(12)?,
        attempts: row.count(13)?,
        waits_for: row.get(14)?,
    })
}

fn decision(row: &DatabaseRow) -> Result<DecisionRecord, sqlx::Error> {
    Ok(DecisionRecord {
        id: row.count(0)?,
        time: row.time(1)?,
        user: row.get(2)?,
        decision: row.get(3)?,
        reason: row.get(4)?,
        task: row.count(5)?,
        subject: super::subject(row, 6)?,
    })
}

fn process(row: &DatabaseRow) -> Result<SeenProcess, sqlx::Error> {
    let kinds: String = row.get(3)?;
    Ok(SeenProcess {
        process: MillProcess {
            id: row.get(0)?,
            name: row.get(1)?,
            workers: row.need(2, |value: i64| u32::try_from(value))?,
            // A newer program may have more.
            kinds: kinds.split(' ').filter_map(TaskKind::named).collect(),
        },
        started: row.time(4)?,
        seen: row.time(5)?,
    })
}

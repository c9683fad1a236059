//! Taking tasks for the time of a lease.

use std::sync::LazyLock;
use std::time::Duration;

use uuid::Uuid;

use super::figures::Deltas;
use super::kind::{TaskKind, TaskQueue};
use super::paused;
use super::state::TaskState;
use super::taken::TakenTask;
use super::{MOST_ATTEMPTS, subject_columns};
use crate::catalogue::{Catalogue, page};
use crate::database::Session;
use crate::database::value::{DatabaseRow, Value, millis, values};
use crate::error::Error;

/// Which tasks a worker takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tasks<'a> {
    /// From which queue.
    pub queue: TaskQueue,
    /// Of which account.
    pub account: &'a str,
    /// Of which kinds: those that the worker can process.
    pub kinds: &'a [TaskKind],
    /// At most how many.
    pub limit: u32,
}

/// Those that are visible for longest first. Of the kinds there are as many arguments as kinds exist.
pub(crate) static TAKE: LazyLock<String> = LazyLock::new(|| {
    [
        "UPDATE tasks SET visible = {now} + $1, holder = $2, worker = $3, attempts = attempts + 1, state = 'waiting'
        WHERE id IN (
            SELECT id FROM tasks WHERE queue = $4 AND account = $5 AND visible <= {now} AND kind IN (",
        &places_of_kinds(7),
        ") ORDER BY visible, id LIMIT $6 {lock_next})
        RETURNING id, ",
        subject_columns!(),
        ", source, generation, attempts, rounds, errors, created, is_released, ",
        &paused::pause_column(),
        ", waits_for",
    ]
    .concat()
});

/// The one that becomes visible next.
pub(crate) static NEXT: LazyLock<String> = LazyLock::new(|| {
    [
        "SELECT visible - {now} FROM tasks WHERE queue = $1 AND account = $2 AND visible < $3 AND kind IN (",
        &places_of_kinds(4),
        ") ORDER BY visible, id LIMIT 1",
    ]
    .concat()
});

/// The places of [`all_kinds`] in a statement, where the first of them has this number.
fn places_of_kinds(first: usize) -> String {
    let places = (first..).take(TaskKind::ALL.len()).map(|number| format!("${number}"));
    places.collect::<Vec<_>>().join(", ")
}

impl Catalogue {
    /// After what time one of these tasks becomes visible, at the latest when a lease ends; `None` where there is none.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn next_task(&self, tasks: &Tasks<'_>) -> Result<Option<Duration>, Error> {
        let Tasks { queue, account, kinds, .. } = tasks;
        if kinds.is_empty() {
            return Ok(None);
        }
        let mut values = values![queue.as_str(), *account, i64::MAX];
        values.extend(all_kinds(kinds));
        let after = |row: &DatabaseRow| Ok(Duration::from_millis(u64::try_from(row.get::<i64>(0)?).unwrap_or(0)));
        Ok(self.list(&NEXT, values, after).await?.pop())
    }

    /// Takes tasks that are visible, the one that is so for longest first. No other worker gets them until the lease
    /// ends. What was begun too often without an end goes to the dead letters instead, and what a pause stops waits for
    /// its end.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn take_tasks(&self, tasks: &Tasks<'_>, worker: &str, lease: Duration) -> Result<Vec<TakenTask>, Error> {
        if tasks.kinds.is_empty() || tasks.limit == 0 {
            return Ok(Vec::new());
        }
        loop {
            let mut session = self.database.begin().await?;
            let outcome = take(&mut session, tasks, worker, lease).await;
            let (taken, is_all) = session.end(outcome).await?;
            // Behind what a pause stops there may be something else.
            if is_all || !taken.is_empty() {
                return Ok(taken);
            }
        }
    }

    /// Extends the lease of a task; the answer is whether it is still ours. One whose lease has ended is extended, too,
    /// while no other worker has taken it.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn extend_task(&self, task: &TakenTask, lease: Duration) -> Result<bool, Error> {
        let sql = "UPDATE tasks SET visible = {now} + $3 WHERE id = $1 AND holder = $2";
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![task.id, task.holder, millis(lease)]).await;
        Ok(session.end(outcome).await? > 0)
    }
}

/// What was taken, and whether that is all: nothing was set aside.
async fn take(
    session: &mut Session,
    tasks: &Tasks<'_>,
    worker: &str,
    lease: Duration,
) -> Result<(Vec<TakenTask>, bool), Error> {
    let holder = Uuid::now_v7();
    let Tasks { queue, account, kinds, limit } = tasks;
    let mut values = values![millis(lease), holder, worker, queue.as_str(), *account, page(*limit)];
    values.extend(all_kinds(kinds));
    let (mut taken, mut restores) = (Vec::new(), Vec::new());
    for row in session.rows(&TAKE, values).await? {
        if session.decode(row.get::<Option<String>>(14))?.is_some() {
            restores.push(taken.len());
        }
        let pause = session.decode(row.get::<Option<i64>>(13))?.and_then(|pause| u64::try_from(pause).ok());
        taken.push((session.decode(read(&row, *queue, holder, worker))?, pause));
    }
    let (number, mut deltas) = (taken.len(), Deltas::default());
    for (task, _) in restores.into_iter().filter_map(|at| taken.get(at)) {
        session.run("UPDATE tasks SET waits_for = NULL WHERE id = $1", values![task.id]).await?;
        deltas.add(&task.subject, task.queue, TaskState::Restore, -1);
        deltas.add(&task.subject, task.queue, TaskState::Waiting, 1);
    }
    // Some databases answer in the order of their pages.
    taken.sort_by_key(|(task, _)| task.id);
    let taken = paused::set_aside(session, taken, &mut deltas).await?;
    let is_all = taken.len() == number;
    let (taken, spent): (Vec<_>, Vec<_>) = taken.into_iter().partition(|task| task.attempts <= MOST_ATTEMPTS);
    for task in spent {
        bury_spent(session, &task).await?;
        deltas.add(&task.subject, task.queue, TaskState::Waiting, -1);
        deltas.add(&task.subject, TaskQueue::DeadLetter, TaskState::Dead, 1);
        deltas.ended(task.queue, "dead");
    }
    deltas.write(session).await?;
    Ok((taken, is_all))
}

/// Kinds as arguments: as many as kinds exist.
fn all_kinds(kinds: &[TaskKind]) -> impl Iterator<Item = Value> {
    TaskKind::ALL.iter().enumerate().map(|(at, _)| Value::from(kinds[at.min(kinds.len() - 1)].as_str()))
}

fn read(row: &DatabaseRow, queue: TaskQueue, holder: Uuid, worker: &str) -> Result<TakenTask, sqlx::Error> {
    Ok(TakenTask {
        id: row.count(0)?,
        holder,
        worker: worker.to_owned(),
        queue,
        subject: super::subject(row, 1)?,
        source: super::store(row, 6)?,
        generation: row.count(7)?,
        attempts: row.need(8, |value: i64| u32::try_from(value))?,
        rounds: row.need(9, |value: i64| u32::try_from(value))?,
        errors: super::errors(&row.get::<String>(10)?),
        created: row.time(11)?,
        is_released: row.get(12)?,
    })
}

async fn bury_spent(session: &mut Session, task: &TakenTask) -> Result<(), Error> {
    let why = "each time, its worker ended or lost its lease before it finished the task";
    super::end::bury(session, task, &task.worker, why).await
}

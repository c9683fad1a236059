//! What becomes of a task that was taken.

use std::time::Duration;

use jiff::Timestamp;

use super::figures::Deltas;
use super::kind::TaskQueue;
use super::put::{NewTask, put};
use super::retry::pause;
use super::state::TaskState;
use super::taken::TakenTask;
use super::{MOST_ATTEMPTS, MOST_ERROR_CHARS, with_error};
use crate::bit::{self, CheckedPart};
use crate::catalogue::Catalogue;
use crate::database::Session;
use crate::database::value::{millis, values};
use crate::error::{Error, ErrorKind};

/// How a worker comes to an end with a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskOutcome {
    /// It is done. Where it was requested again meanwhile, it is to be done once more.
    Done,
    /// It failed. It is tried again after a pause, and goes to the dead letters after its last attempt.
    Failed(String),
    /// It cannot be decided yet: it is visible again after this time, for its next round, and neither failed nor was
    /// tried.
    Later(Duration),
    /// It is not due yet: it is visible again after this time, as it was, or once it is requested again.
    PutOff(Duration),
    /// Its store cannot be read yet: why, as the predicate of a sentence, and after what time it is visible again, as
    /// it was, or once it is requested again.
    Restore(Duration, String),
    /// It was not done, because its worker stops: it is visible again at once, as it was.
    GivenBack,
    /// It may not take effect before an operator allows it. Why: one sentence.
    Held(String),
}

impl TaskOutcome {
    /// What may become of a task, in the counter of ends.
    pub const NAMES: [&str; 8] = ["done", "failed", "dead", "later", "put_off", "restore", "given_back", "held"];

    /// The one of these names that is this outcome of a task.
    fn name(&self, task: &TakenTask) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed(_) if task.attempts >= MOST_ATTEMPTS => "dead",
            Self::Failed(_) => "failed",
            Self::Later(_) => "later",
            Self::PutOff(_) => "put_off",
            Self::Restore(..) => "restore",
            Self::GivenBack => "given_back",
            Self::Held(_) => "held",
        }
    }
}

/// A task that a worker comes to an end with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedTask {
    /// The task.
    pub task: TakenTask,
    /// How.
    pub outcome: TaskOutcome,
    /// What is to be done next, requested in the same transaction.
    pub follow_ups: Vec<NewTask>,
    /// What it has checked.
    pub checked: Option<CheckedPart>,
}

impl Catalogue {
    /// Comes to an end with tasks, all in one transaction, with what is to be done next. The answer is, for each,
    /// whether it was still ours: of one that was not, nothing is written.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing was.
    pub async fn end_tasks(&self, tasks: &[EndedTask]) -> Result<Vec<bool>, Error> {
        let mut session = self.database.begin().await?;
        let outcome = end_all(&mut session, tasks).await;
        let ours = session.end(outcome).await?;
        // A check of one item may have ended a bit error, whose task is looked at then.
        let has_checked = |task: &EndedTask| task.checked.as_ref().is_some_and(|part| part.page.is_none());
        let is_next = |task: &EndedTask| {
            !task.follow_ups.is_empty() || task.outcome == TaskOutcome::GivenBack || has_checked(task)
        };
        if tasks.iter().any(is_next) {
            self.notify().await;
        }
        Ok(ours)
    }
}

async fn end_all(session: &mut Session, tasks: &[EndedTask]) -> Result<Vec<bool>, Error> {
    let (mut ours, mut deltas) = (Vec::with_capacity(tasks.len()), Deltas::default());
    let (mut follow_ups, mut requested) = (Vec::new(), Vec::new());
    // In the order in which others lock them.
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by_key(|&at| tasks[at].task.id);
    ours.resize(tasks.len(), false);
    for at in order {
        let ended = &tasks[at];
        ours[at] = end(session, &ended.task, &ended.outcome, &mut deltas).await?;
        if ours[at] {
            deltas.ended(ended.task.queue, ended.outcome.name(&ended.task));
            follow_ups.extend(ended.follow_ups.iter().cloned());
            if let Some(part) = &ended.checked {
                bit::write(session, part).await?;
                bit::end_item(session, &ended.task.subject, part).await?;
                if let Some(page) = &part.page {
                    follow_ups.extend(bit::end_page(session, &ended.task.subject, page).await?);
                }
                requested.extend(part.requested.as_ref().map(|of| (&ended.task.subject, of, &part.items)));
            }
        }
    }
    // In one order, too: several of them may be of one check.
    requested.sort_by_key(|(subject, ..)| *subject);
    for (subject, of, items) in requested {
        follow_ups.extend(bit::end_requested(session, subject, of, items).await?);
    }
    deltas.write(session).await?;
    put(session, follow_ups).await?;
    Ok(ours)
}

/// Whether the task was ours.
async fn end(
    session: &mut Session,
    task: &TakenTask,
    outcome: &TaskOutcome,
    deltas: &mut Deltas,
) -> Result<bool, Error> {
    match outcome {
        TaskOutcome::Done => done(session, task, deltas).await,
        TaskOutcome::Failed(why) => failed(session, task, why, deltas).await,
        TaskOutcome::Later(after) => put_off(session, task, *after, 1).await,
        TaskOutcome::PutOff(after) => put_off(session, task, *after, 0).await,
        TaskOutcome::Restore(after, why) => {
            let ours = put_off(session, task, *after, 0).await?;
            if ours {
                let sql = "UPDATE tasks SET state = 'restore', waits_for = $2 WHERE id = $1";
                let why: String = crate::error::one_line(why).chars().take(MOST_ERROR_CHARS).collect();
                session.run(sql, values![task.id, &why]).await?;
                deltas.add(&task.subject, task.queue, TaskState::Waiting, -1);
                deltas.add(&task.subject, task.queue, TaskState::Restore, 1);
            }
            Ok(ours)
        }
        TaskOutcome::GivenBack => {
            let sql = "UPDATE tasks SET holder = NULL, worker = NULL, visible = {now}, attempts = attempts - 1
                WHERE id = $1 AND holder = $2";
            Ok(session.run(sql, values![task.id, task.holder]).await? > 0)
        }
        TaskOutcome::Held(why) => {
            let time = now(session).await?;
            let errors = with_error(&task.errors, time, &task.worker, why);
            let sql = "UPDATE tasks SET holder = NULL, worker = NULL, state = 'held', visible = $3,
                attempts = attempts - 1, errors = $4 WHERE id = $1 AND holder = $2";
            let ours = session.run(sql, values![task.id, task.holder, i64::MAX, &errors]).await? > 0;
            if ours {
                deltas.add(&task.subject, task.queue, TaskState::Waiting, -1);
                deltas.add(&task.subject, task.queue, TaskState::Held, 1);
            }
            Ok(ours)
        }
    }
}

async fn put_off(session: &mut Session, task: &TakenTask, after: Duration, rounds: i64) -> Result<bool, Error> {
    // What was requested while it was decided to wait is looked at now.
    let sql = "UPDATE tasks SET holder = NULL, worker = NULL, is_put_off = (generation = $4),
        visible = {now} + CASE WHEN generation = $4 THEN $3 ELSE 0 END, attempts = attempts - 1, rounds = rounds + $5
        WHERE id = $1 AND holder = $2";
    let values = values![task.id, task.holder, millis(after), task.generation, rounds];
    Ok(session.run(sql, values).await? > 0)
}

async fn done(session: &mut Session, task: &TakenTask, deltas: &mut Deltas) -> Result<bool, Error> {
    let sql = "DELETE FROM tasks WHERE id = $1 AND holder = $2 AND generation = $3";
    if session.run(sql, values![task.id, task.holder, task.generation]).await? > 0 {
        deltas.add(&task.subject, task.queue, TaskState::Waiting, -1);
        return Ok(true);
    }
    let sql = "UPDATE tasks SET holder = NULL, worker = NULL, visible = {now}, attempts = 0, rounds = 0,
        errors = '[]', is_released = FALSE WHERE id = $1 AND holder = $2";
    Ok(session.run(sql, values![task.id, task.holder]).await? > 0)
}

async fn failed(session: &mut Session, task: &TakenTask, why: &str, deltas: &mut Deltas) -> Result<bool, Error> {
    if session
        .row("SELECT 1 FROM tasks WHERE id = $1 AND holder = $2 {lock}", values![task.id, task.holder])
        .await?
        .is_none()
    {
        return Ok(false);
    }
    if task.attempts >= MOST_ATTEMPTS {
        bury(session, task, &task.worker, why).await?;
        deltas.add(&task.subject, task.queue, TaskState::Waiting, -1);
        deltas.add(&task.subject, TaskQueue::DeadLetter, TaskState::Dead, 1);
        return Ok(true);
    }
    let errors = with_error(&task.errors, now(session).await?, &task.worker, why);
    let after = pause(task.attempts);
    let sql = "UPDATE tasks SET holder = NULL, worker = NULL, visible = {now} + $2, errors = $3 WHERE id = $1";
    session.run(sql, values![task.id, millis(after), &errors]).await?;
    Ok(true)
}

/// Puts a task that is ours into the dead letters.
pub(super) async fn bury(session: &mut Session, task: &TakenTask, worker: &str, why: &str) -> Result<(), Error> {
    let errors = with_error(&task.errors, now(session).await?, worker, why);
    let sql = "UPDATE tasks SET holder = NULL, worker = NULL, queue = $2, state = 'dead', visible = $3, errors = $4
        WHERE id = $1";
    session.run(sql, values![task.id, TaskQueue::DeadLetter.as_str(), i64::MAX, &errors]).await.map(|_rows| ())
}

async fn now(session: &mut Session) -> Result<Timestamp, Error> {
    let row = session.row("SELECT {now}", values![]).await?;
    let row = row.ok_or_else(|| session.error(ErrorKind::Corrupt("it has no time".to_owned())))?;
    session.decode(row.time(0))
}

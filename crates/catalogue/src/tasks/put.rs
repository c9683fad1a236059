//! Requests for tasks.

use queuekeeper_store::StoreName;

use super::figures::Deltas;
use super::kind::TaskQueue;
use super::state::TaskState;
use super::{TaskSubject, Unknown, key_column, store_column};
use crate::catalogue::Catalogue;
use crate::database::Session;
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;

/// A request for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// Where it waits. A request for a task that waits in a queue which comes later moves it.
    pub queue: TaskQueue,
    /// What it is about.
    pub subject: TaskSubject,
    /// The store to copy from, where it copies; the newest request decides.
    pub source: Option<StoreName>,
}

impl Catalogue {
    /// Requests tasks, all in one transaction. What is open already is raised to a new generation; what lies in the
    /// dead letters becomes open again, with the history of its failures. The answer is how many are new.
    ///
    /// # Errors
    /// When the database cannot be written; then none is requested.
    pub async fn put_tasks(&self, tasks: &[NewTask]) -> Result<u64, Error> {
        let mut session = self.database.begin().await?;
        let outcome = put(&mut session, tasks.to_vec()).await;
        let new = session.end(outcome).await?;
        self.notify().await;
        Ok(new)
    }
}

const PUT: &str = "INSERT INTO tasks
    (queue, home, kind, account, space, key, destination, source, generation, state, visible, attempts, rounds, errors,
    is_released, is_put_off, created)";

/// Eight arguments, and what each new task begins with.
const ROW: &str = "?, ?, ?, ?, ?, ?, ?, ?, 1, 'waiting', {now}, 0, 0, '[]', FALSE, FALSE, {now}";

/// A task that was put off is looked at now: what it waited for may not be wanted any more. Of a task that was open,
/// the answer has the queue and the state that it was in.
const MERGE: &str =
    " ON CONFLICT (account, space, key, kind, destination) DO UPDATE SET generation = tasks.generation + 1,
        source = excluded.source, is_put_off = FALSE,
        visible = CASE WHEN tasks.is_put_off AND tasks.holder IS NULL THEN {now} ELSE tasks.visible END
    RETURNING id, queue, generation, state, kind, account, space, key, destination";

/// A row that was open before.
struct Open {
    id: u64,
    queue: TaskQueue,
    state: TaskState,
}

/// Requests tasks within a transaction.
pub(crate) async fn put(session: &mut Session, mut tasks: Vec<NewTask>) -> Result<u64, Error> {
    // In one order, so that of two that request the same tasks one waits for the other; each once, where it ranks
    // highest.
    tasks.sort_by(|one, other| one.subject.cmp(&other.subject).then(other.queue.rank().cmp(&one.queue.rank())));
    tasks.dedup_by(|later, first| later.subject == first.subject);
    let mut deltas = Deltas::default();
    let mut new = 0;
    let mut values = Vec::with_capacity(8 * tasks.len());
    for task in &tasks {
        let TaskSubject { kind, account, space, key, destination } = &task.subject;
        values.extend(values![task.queue.as_str(), task.queue.as_str(), kind.as_str(), account, space]);
        values.extend(values![
            key_column(key.as_ref()),
            store_column(destination.as_ref()),
            store_column(task.source.as_ref())
        ]);
    }
    for row in session.insert_returning(PUT, ROW, MERGE, values).await? {
        let queue = session.decode(queue(&row, 1))?;
        let subject = session.decode(super::subject(&row, 4))?;
        if session.decode(row.get::<i64>(2))? == 1 {
            deltas.add(&subject, queue, TaskState::Waiting, 1);
            new += 1;
            continue;
        }
        let open = Open { id: session.decode(row.count(0))?, queue, state: session.decode(TaskState::read(&row, 3))? };
        let wanted = tasks.iter().find(|task| task.subject == subject).map_or(queue, |task| task.queue);
        if let Some((to, state)) = raise(session, &open, wanted).await? {
            deltas.add(&subject, open.queue, open.state, -1);
            deltas.add(&subject, to, state, 1);
        }
    }
    deltas.write(session).await?;
    Ok(new)
}

/// Brings an open task to where a new request wants it; the answer is the queue and the state, where that changes a
/// counter.
async fn raise(session: &mut Session, open: &Open, wanted: TaskQueue) -> Result<Option<(TaskQueue, TaskState)>, Error> {
    match open.state {
        // Those who look at it first are right to see that it failed before.
        TaskState::Dead => {
            let sql =
                "UPDATE tasks SET queue = $2, home = $2, state = 'waiting', visible = {now}, attempts = 0, rounds = 0
                WHERE id = $1";
            session.run(sql, values![open.id, wanted.as_str()]).await?;
            Ok(Some((wanted, TaskState::Waiting)))
        }
        state @ (TaskState::Waiting | TaskState::Paused | TaskState::Restore) if open.queue.rank() < wanted.rank() => {
            session
                .run("UPDATE tasks SET queue = $2, home = $2 WHERE id = $1", values![open.id, wanted.as_str()])
                .await?;
            Ok(Some((wanted, state)))
        }
        // A failure is waited out, and what is held stays held, and what is paused paused.
        TaskState::Waiting | TaskState::Held | TaskState::Paused | TaskState::Restore => Ok(None),
    }
}

pub(super) fn queue(row: &DatabaseRow, at: usize) -> Result<TaskQueue, sqlx::Error> {
    row.need(at, |name: String| TaskQueue::named(&name).ok_or(Unknown(name)))
}

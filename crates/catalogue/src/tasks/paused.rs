//! Tasks that a pause keeps from workers.

use std::collections::BTreeSet;

use super::figures::Deltas;
use super::kind::TaskKind;
use super::state::TaskState;
use super::taken::TakenTask;
use super::{subject, subject_columns};
use crate::catalogue::Catalogue;
use crate::database::Session;
use crate::database::value::values;
use crate::error::Error;

/// The pause that stops a task, as a column of [`TAKE`](super::take::TAKE). What uses no stores goes on.
pub(super) fn pause_column() -> String {
    let others = TaskKind::ALL.into_iter().filter(|kind| !kind.uses_stores());
    let others: Vec<_> = others.map(|kind| format!("'{}'", kind.as_str())).collect();
    format!(
        "(SELECT MIN(mill_pauses.id) FROM mill_pauses
            WHERE NOT mill_pauses.is_ended AND mill_pauses.account IN ('', tasks.account)
                AND mill_pauses.store IN ('', tasks.destination, tasks.source) AND tasks.kind NOT IN ({}))",
        others.join(", ")
    )
}

/// How many tasks wait again by one transaction.
const PART: u32 = 1000;

const SET_ASIDE: &str = "UPDATE tasks SET holder = NULL, worker = NULL, state = 'paused', visible = $2, pause = $3,
    attempts = attempts - 1, is_put_off = FALSE WHERE id = $1";

/// Tasks of a pause that has ended.
pub(crate) const RELEASE: &str = concat!(
    "UPDATE tasks SET state = 'waiting', visible = {now}, pause = NULL
    WHERE id IN (SELECT id FROM tasks WHERE pause = $1 ORDER BY id LIMIT $2 {lock_next})
    RETURNING queue, ",
    subject_columns!()
);

/// Sets those aside, of tasks that were just taken, that a pause stops; the answer is the others. A pause that ends
/// meanwhile stops nothing: its lock is what keeps a task from being left behind.
pub(super) async fn set_aside(
    session: &mut Session,
    taken: Vec<(TakenTask, Option<u64>)>,
    deltas: &mut Deltas,
) -> Result<Vec<TakenTask>, Error> {
    let mut in_force = BTreeSet::new();
    for pause in taken.iter().filter_map(|(_, pause)| *pause).collect::<BTreeSet<_>>() {
        let sql = "SELECT 1 FROM mill_pauses WHERE id = $1 AND NOT is_ended {lock}";
        if session.row(sql, values![pause]).await?.is_some() {
            in_force.insert(pause);
        }
    }
    let mut others = Vec::with_capacity(taken.len());
    for (task, pause) in taken {
        let Some(pause) = pause.filter(|pause| in_force.contains(pause)) else {
            others.push(task);
            continue;
        };
        session.run(SET_ASIDE, values![task.id, i64::MAX, pause]).await?;
        deltas.add(&task.subject, task.queue, TaskState::Waiting, -1);
        deltas.add(&task.subject, task.queue, TaskState::Paused, 1);
        deltas.paused(pause, 1);
    }
    Ok(others)
}

impl Catalogue {
    /// Lets tasks wait for workers again that a pause stopped which has ended: a thousand. The answer is how many; with
    /// none, that pause is forgotten.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn release_paused(&self) -> Result<u64, Error> {
        let mut session = self.database.begin().await?;
        let outcome = release(&mut session).await;
        let released = session.end(outcome).await?;
        if released > 0 {
            self.notify().await;
        }
        Ok(released)
    }
}

async fn release(session: &mut Session) -> Result<u64, Error> {
    let ended = "SELECT id FROM mill_pauses WHERE is_ended ORDER BY id LIMIT 1 {lock_next}";
    let Some(row) = session.row(ended, values![]).await? else { return Ok(0) };
    let pause = session.decode(row.count(0))?;
    let mut deltas = Deltas::default();
    let rows = session.rows(RELEASE, values![pause, PART]).await?;
    for row in &rows {
        let queue = session.decode(super::put::queue(row, 0))?;
        let subject = session.decode(subject(row, 1))?;
        deltas.add(&subject, queue, TaskState::Paused, -1);
        deltas.add(&subject, queue, TaskState::Waiting, 1);
        deltas.paused(pause, -1);
    }
    deltas.write(session).await?;
    // Those that a request has locked are left to the next time.
    let forget = "DELETE FROM mill_pauses WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM tasks WHERE pause = $1)";
    session.run(forget, values![pause]).await?;
    Ok(rows.len() as u64)
}

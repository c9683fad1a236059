//! How many tasks there are: of each queue and state, of each kind, and of those that wait for an operator, whose they
//! are.

use std::collections::BTreeMap;

use super::kind::TaskQueue;
use super::state::TaskState;
use super::{TaskSubject, store_column};
use crate::counters::{self, Counter};
use crate::database::Session;
use crate::error::Error;

/// What a transaction adds to the counters of tasks.
#[derive(Default)]
pub(super) struct Deltas(BTreeMap<(Counter, String), i64>);

impl Deltas {
    pub(super) fn add(&mut self, subject: &TaskSubject, queue: TaskQueue, state: TaskState, delta: i64) {
        self.count(Counter::Tasks, scope(queue, state), delta);
        match state {
            TaskState::Waiting => self.count(Counter::WaitingTasks, subject.kind.as_str().to_owned(), delta),
            TaskState::Held => {
                let destination = store_column(subject.destination.as_ref());
                self.count(Counter::HeldTasks, format!("{}/{destination}", subject.account), delta);
            }
            TaskState::Dead => self.count(Counter::DeadTasks, subject.account.clone(), delta),
            // Whose those are is counted by their pause, or by the use of a budget.
            TaskState::Paused | TaskState::Restore => {}
        }
    }

    /// Counts what a pause keeps from workers.
    pub(super) fn paused(&mut self, pause: u64, delta: i64) {
        self.count(Counter::PausedTasks, pause.to_string(), delta);
    }

    /// Counts that a worker came to an end with a task.
    pub(super) fn ended(&mut self, queue: TaskQueue, outcome: &str) {
        self.count(Counter::EndedTasks, format!("{}/{outcome}", queue.as_str()), 1);
    }

    fn count(&mut self, counter: Counter, scope: String, delta: i64) {
        *self.0.entry((counter, scope)).or_default() += delta;
    }

    pub(super) async fn write(self, session: &mut Session) -> Result<(), Error> {
        counters::add_all(session, &self.0).await
    }
}

/// What a counter of tasks is of.
pub(super) fn scope(queue: TaskQueue, state: TaskState) -> String {
    format!("{}/{}", queue.as_str(), state.as_str())
}

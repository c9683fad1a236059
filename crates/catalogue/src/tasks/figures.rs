//! How many tasks there are, of each queue and state.

use std::collections::BTreeMap;

use super::kind::Queue;
use super::list::TaskState;
use crate::counters::{self, Counter};
use crate::database::Session;
use crate::error::Error;

/// What a transaction adds to the counters of tasks.
#[derive(Default)]
pub(super) struct Deltas(BTreeMap<(Queue, TaskState), i64>);

impl Deltas {
    pub(super) fn add(&mut self, queue: Queue, state: TaskState, delta: i64) {
        *self.0.entry((queue, state)).or_default() += delta;
    }

    pub(super) async fn write(self, session: &mut Session) -> Result<(), Error> {
        for ((queue, state), delta) in self.0 {
            counters::add(session, &scope(queue, state), &[(Counter::Tasks, delta)]).await?;
        }
        Ok(())
    }
}

/// What a counter of tasks is of.
pub(super) fn scope(queue: Queue, state: TaskState) -> String {
    format!("{}/{}", queue.as_str(), state.as_str())
}

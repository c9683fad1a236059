//! The states of the jobs when the demo starts.

use jiff::Timestamp;

use super::dice::Dice;
use super::duty::results;
use super::fate::{self, Subject};
use super::findings::Findings;
use super::world::World;
use queuekeeper_queue::id::{BatchId, JobId, Priority};
use queuekeeper_queue::path::{JobNode, Path};
use queuekeeper_queue::record::{self, StatusChange};
use queuekeeper_queue::state::{JobState, Outcome, State as _};
use queuekeeper_queue::{JobValue, Transaction};

/// The states of running jobs, in the order in which the first jobs are moved to them.
const ON_THE_WAY: [JobState; 7] = [
    JobState::Downloading,
    JobState::Provisioning,
    JobState::Storing,
    JobState::Processing,
    JobState::Estimating,
    JobState::Recording,
    JobState::Notify,
];

/// The states in which the jobs of a failed batch failed.
const FAILING: [JobState; 3] = [JobState::Downloading, JobState::Storing, JobState::Recording];

/// The maximum number of running jobs at first, since there are few daemons.
const MAX_ON_THE_WAY: usize = 28;

/// The maximum use of working storage at first.
const MAX_USED: f64 = 0.42;

/// The history of a batch before the demo started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// All its jobs were completed.
    Completed,
    /// Some of its jobs failed, all with one cause.
    Failed,
    /// Its jobs are running or pending.
    Running,
    /// Its collection is held.
    Held,
    /// It was deleted.
    Deleted,
}

impl Past {
    /// The history of a batch, by its number: the first ones show each kind.
    pub(super) fn draw(dice: &mut Dice, number: usize) -> Self {
        match number {
            0 => Self::Deleted,
            1 | 4 => Self::Running,
            2 => Self::Held,
            3 => Self::Failed,
            _ => dice.weighted(&[(60, Self::Completed), (28, Self::Running), (7, Self::Failed), (5, Self::Held)]),
        }
    }
}

/// How many jobs are running so far.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    jobs: usize,
}

/// The state of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InitialState {
    state: JobState,
    /// The state before; `None` for a new one.
    from: Option<JobState>,
    message: String,
    retries: u32,
}

impl InitialState {
    pub(super) fn draw(
        world: &World,
        dice: &mut Dice,
        in_flight: &mut InFlight,
        past: Past,
        batch: BatchId,
        found: Findings<'_>,
        file: &str,
    ) -> Self {
        let failed = |dice: &mut Dice| {
            let retries = dice.weighted(&[(12, 0), (4, 1), (2, 2), (1, 3)]);
            let subject = Subject { batch, job: JobId::new(0), retries, bytes: found.bytes, file, ark: found.ark };
            let failure = fate::shared_failure(world.seed, subject, &FAILING);
            Self { state: JobState::Failed, from: Some(failure.state), message: failure.message, retries }
        };
        // A job that uses space exists only if there is some left.
        let has_room = world.volume.used_ratio() < MAX_USED;
        match past {
            Past::Failed if has_room && dice.happens(0.35) => failed(dice),
            Past::Deleted if has_room => failed(dice),
            Past::Completed | Past::Failed | Past::Deleted => Self::on_path(JobState::Completed),
            Past::Held => Self {
                state: JobState::Held,
                from: Some(JobState::Pending),
                message: "the collection is held".to_owned(),
                retries: 0,
            },
            Past::Running => match dice.weighted(&[(58, 'p'), (27, 'c'), (15, 'w')]) {
                'c' => Self::on_path(JobState::Completed),
                'w' if has_room && in_flight.jobs < MAX_ON_THE_WAY => {
                    in_flight.jobs += 1;
                    Self::on_path(ON_THE_WAY[in_flight.jobs % ON_THE_WAY.len()])
                }
                _ => Self { state: JobState::Pending, from: None, message: String::new(), retries: 0 },
            },
        }
    }

    fn on_path(state: JobState) -> Self {
        let steps = JobState::Pending.steps_to(state);
        let from = steps.iter().rev().nth(1).copied().unwrap_or(JobState::Pending);
        Self { state, from: Some(from), message: "Success".to_owned(), retries: 0 }
    }

    /// The states that it has completed.
    fn passed(&self) -> Vec<JobState> {
        let reached = if self.state == JobState::Failed { self.from } else { Some(self.state) };
        let mut passed = vec![JobState::Pending];
        passed.extend(JobState::Pending.steps_to(reached.unwrap_or(JobState::Pending)));
        passed.pop();
        passed
    }

    /// Whether working storage is in use for it: from Downloading to Notify.
    pub(super) fn holds_space(&self) -> bool {
        self.state != JobState::Completed && self.passed().contains(&JobState::Provisioning)
    }

    /// The values in its znodes besides its status.
    pub(super) fn values(&self, found: &Findings<'_>) -> Vec<JobValue> {
        self.passed().into_iter().flat_map(|state| results(state, found)).collect()
    }

    /// The transaction that moves a new job to its state; `None` if it is there.
    pub(super) fn transaction(
        &self,
        batch: BatchId,
        id: JobId,
        priority: Priority,
        now: Timestamp,
    ) -> Option<Transaction> {
        let from = self.from?;
        let change = StatusChange {
            from: self.from,
            to: self.state,
            last_successful: (self.state == JobState::Failed).then(|| self.passed().last().copied()).flatten(),
            retry_count: self.retries,
            message: &self.message,
            now,
        };
        debug_assert!(from.may_become(self.state), "{from} to {}", self.state);
        let mut transaction = Transaction::new();
        transaction
            // The version of a status that was never changed.
            .set(Path::JobNode(id, JobNode::Status), record::job_status(&[], &change), 0)
            .delete(Path::entry(JobState::Pending, priority, id), None)
            .create(Path::entry(self.state, priority, id), Vec::new());
        let outcome = self.state.outcome();
        if outcome != Outcome::Processing {
            transaction
                .delete(Path::Reference(batch, Outcome::Processing, id), None)
                .create(Path::Reference(batch, outcome, id), Vec::new());
        }
        Some(transaction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_passed_all_states_before_its_own() {
        assert_eq!(InitialState::on_path(JobState::Estimating).passed(), [JobState::Pending]);
        let notify = InitialState::on_path(JobState::Notify);
        assert_eq!(notify.from, Some(JobState::Recording));
        assert_eq!(notify.passed().len(), 7);
        assert!(notify.holds_space() && !InitialState::on_path(JobState::Provisioning).holds_space());
        assert!(!InitialState::on_path(JobState::Completed).holds_space());
        let failed = InitialState { state: JobState::Failed, from: Some(JobState::Storing), ..notify };
        assert_eq!(failed.passed().last(), Some(&JobState::Processing));
        assert!(failed.holds_space());
        let held = InitialState { state: JobState::Held, from: Some(JobState::Pending), ..failed };
        assert!(held.passed().is_empty() && !held.holds_space());
    }
}

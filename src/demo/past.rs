//! Where the jobs of the first hours stand when the demo begins.

use jiff::Timestamp;

use super::dice::Dice;
use super::fate::{self, Subject};
use super::shift::{Findings, results};
use super::world::World;
use queuekeeper_queue::id::{BatchId, JobId, Priority};
use queuekeeper_queue::path::{JobNode, Path};
use queuekeeper_queue::record::{self, StatusChange};
use queuekeeper_queue::state::{JobState, Outcome, State as _};
use queuekeeper_queue::{JobValue, Transaction};

/// The states on the way, in the order in which the first jobs are set to them.
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

/// No more jobs than this are on the way at first, however many there are in all: the daemons are few.
const MOST_ON_THE_WAY: usize = 28;

/// At first no more of working storage is in use than this.
const MOST_USED: f64 = 0.42;

/// What became of a batch before the demo began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// All its jobs were completed.
    Completed,
    /// Some of its jobs failed, all of one cause.
    Failed,
    /// Its jobs are at work, or wait for it.
    Running,
    /// Its collection is held.
    Held,
    /// It was given up.
    Deleted,
}

impl Past {
    /// The past of a batch, by its number: the first ones show each kind.
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

/// How many jobs were set on their way so far.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    jobs: usize,
}

/// Where one job stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    state: JobState,
    /// The state that it was in before; `None` for a new one.
    from: Option<JobState>,
    message: String,
    retries: u32,
}

impl Standing {
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
        // A job that holds space is only where there is some left.
        let has_room = world.volume.used_ratio() < MOST_USED;
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
                'w' if has_room && in_flight.jobs < MOST_ON_THE_WAY => {
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

    /// The states that it has left with success.
    fn passed(&self) -> Vec<JobState> {
        let reached = if self.state == JobState::Failed { self.from } else { Some(self.state) };
        let mut passed = vec![JobState::Pending];
        passed.extend(JobState::Pending.steps_to(reached.unwrap_or(JobState::Pending)));
        passed.pop();
        passed
    }

    /// Whether working storage is taken for it: from Downloading on, and freed after Notify.
    pub(super) fn holds_space(&self) -> bool {
        self.state != JobState::Completed && self.passed().contains(&JobState::Provisioning)
    }

    /// What its znodes say beside its status.
    pub(super) fn values(&self, found: &Findings<'_>) -> Vec<JobValue> {
        self.passed().into_iter().flat_map(|state| results(state, found)).collect()
    }

    /// What sets a new job to where it stands; `None` where it is there.
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
    fn a_job_has_passed_what_lies_before_where_it_stands() {
        assert_eq!(Standing::on_path(JobState::Estimating).passed(), [JobState::Pending]);
        let notify = Standing::on_path(JobState::Notify);
        assert_eq!(notify.from, Some(JobState::Recording));
        assert_eq!(notify.passed().len(), 7);
        assert!(notify.holds_space() && !Standing::on_path(JobState::Provisioning).holds_space());
        assert!(!Standing::on_path(JobState::Completed).holds_space());
        let failed = Standing { state: JobState::Failed, from: Some(JobState::Storing), ..notify };
        assert_eq!(failed.passed().last(), Some(&JobState::Processing));
        assert!(failed.holds_space());
        let held = Standing { state: JobState::Held, from: Some(JobState::Pending), ..failed };
        assert!(held.passed().is_empty() && !held.holds_space());
    }
}

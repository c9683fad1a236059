//! What the mirror counts of itself and of the queue as it sees it move.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::image::{Change, ObservedState};
use queuekeeper_queue::state::{BatchState, JobState, State};

/// From a watch event's tenth of a second, which is the promise, both ways.
const DELAY_BUCKETS: [f64; 9] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

const MINUTE: f64 = 60.0;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;

/// From a lock-step of the daemons to an object of 500 GB: seconds, minutes, hours, days. A quantile is estimated
/// within its bucket and may be as wrong as that is wide, so no bound but the second is more than three times the one
/// before it.
const STATE_BUCKETS: [f64; 17] = [
    1.0,
    5.0,
    15.0,
    30.0,
    MINUTE,
    2.0 * MINUTE,
    5.0 * MINUTE,
    15.0 * MINUTE,
    30.0 * MINUTE,
    HOUR,
    2.0 * HOUR,
    4.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
    DAY,
    3.0 * DAY,
    7.0 * DAY,
];

/// Why the tree is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The process has started.
    Start,
    /// The connection was lost and found again, in the same session or in one that replaced it.
    Reconnect,
    /// The session was over, and another was made.
    Expired,
    /// More came than is remembered.
    Overflow,
    /// To see whether the image is still right.
    DriftCheck,
}

impl Cause {
    const ALL: [Self; 5] = [Self::Start, Self::Reconnect, Self::Expired, Self::Overflow, Self::DriftCheck];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Reconnect => "reconnect",
            Self::Expired => "expired",
            Self::Overflow => "overflow",
            Self::DriftCheck => "drift_check",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseLabel {
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    from: &'static str,
    to: &'static str,
}

/// The mirror's counters and histograms; cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub(super) events: Counter,
    pub(super) reads: Counter,
    pub(super) drift: Counter,
    walks: Family<CauseLabel, Counter>,
    delay: Histogram,
    job_transitions: Family<StepLabels, Counter>,
    failed_by_operator: Counter,
    batch_transitions: Family<StepLabels, Counter>,
    state_duration: Family<StateLabel, Histogram, fn() -> Histogram>,
}

impl Metrics {
    /// Makes the mirror's families and registers them, with every label set that can be known in advance at 0.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            events: Counter::default(),
            reads: Counter::default(),
            drift: Counter::default(),
            walks: Family::default(),
            delay: Histogram::new(DELAY_BUCKETS),
            job_transitions: Family::default(),
            failed_by_operator: Counter::default(),
            batch_transitions: Family::default(),
            state_duration: Family::new_with_constructor(|| Histogram::new(STATE_BUCKETS)),
        };
        for cause in Cause::ALL {
            drop(metrics.walks.get_or_create_owned(&CauseLabel { cause: cause.label() }));
        }
        prepare::<JobState>(&metrics.job_transitions);
        prepare::<BatchState>(&metrics.batch_transitions);
        for state in JobState::ALL.iter().filter(|state| !state.is_final()) {
            drop(metrics.state_duration.get_or_create_owned(&StateLabel { state: state.label() }));
        }
        let Self { events, reads, drift, walks, delay, .. } = metrics.clone();
        registry.register(
            "merritt_job_transitions",
            "State changes of jobs seen by this process; none stands for created or deleted, and a jump along the \
             success path counts each step",
            metrics.job_transitions.clone(),
        );
        registry.register(
            "merritt_jobs_failed_by_operator",
            "Jobs that an operator moved to Failed with queuekeeper; also counted as transitions to failed",
            metrics.failed_by_operator.clone(),
        );
        registry.register(
            "merritt_job_state_duration_seconds",
            "Time that jobs spent in a state in seconds, observed when they leave it",
            metrics.state_duration.clone(),
        );
        registry.register(
            "merritt_batch_transitions",
            "State changes of batches seen by this process; none stands for created or deleted",
            metrics.batch_transitions.clone(),
        );
        registry.register("queuekeeper_mirror_events", "Watch events received", events);
        registry.register("queuekeeper_mirror_reads", "Znodes read", reads);
        registry.register("queuekeeper_mirror_walks", "Walks of the whole tree started", walks);
        registry.register(
            "queuekeeper_mirror_delay_seconds",
            "Time from a change in ZooKeeper until the mirror shows it in seconds, by the servers' clock",
            delay,
        );
        registry.register(
            "queuekeeper_mirror_drift",
            "Differences between the mirror and the tree that no watch event reported",
            drift,
        );
        metrics
    }

    pub(super) fn walk(&self, cause: Cause) {
        self.walks.get_or_create_owned(&CauseLabel { cause: cause.label() }).inc();
    }

    pub(super) fn delay(&self, delay: Duration) {
        self.delay.observe(delay.as_secs_f64());
    }

    /// Counts what a change meant for the queue.
    pub(super) fn change(&self, change: Change) {
        match change {
            Change::Nothing | Change::Quiet => {}
            Change::Job { from, to, spent, is_by_operator, is_new: _ } => {
                count(&self.job_transitions, from, to);
                if is_by_operator && to == ObservedState::In(JobState::Failed) {
                    self.failed_by_operator.inc();
                }
                if let (ObservedState::In(state), Some(spent)) = (from, spent) {
                    let histogram = self.state_duration.get_or_create_owned(&StateLabel { state: state.label() });
                    histogram.observe(spent.as_secs_f64());
                }
            }
            Change::OtherJob { from, to } => {
                count(&self.job_transitions, from, ObservedState::Nowhere);
                count(&self.job_transitions, ObservedState::Nowhere, to);
            }
            Change::Batch { from, to } => count(&self.batch_transitions, from, to),
            Change::OtherBatch { from, to } => {
                count(&self.batch_transitions, from, ObservedState::Nowhere);
                count(&self.batch_transitions, ObservedState::Nowhere, to);
            }
        }
    }
}

/// Exports the allowed transitions, and those from and to `none`, at 0.
fn prepare<S: State>(family: &Family<StepLabels, Counter>) {
    for from in S::ALL {
        let steps = from.next().iter().map(|to| (from.label(), to.label()));
        for (from, to) in steps.chain([("none", from.label()), (from.label(), "none")]) {
            drop(family.get_or_create_owned(&StepLabels { from, to }));
        }
    }
}

/// Counts a change of state. A jump along the success path is the steps that it passed; another one that the state
/// machine does not have is counted as what was seen.
fn count<S: State>(family: &Family<StepLabels, Counter>, from: ObservedState<S>, to: ObservedState<S>) {
    let step = |from: &'static str, to: &'static str| {
        family.get_or_create_owned(&StepLabels { from, to }).inc();
    };
    if let (ObservedState::In(from), ObservedState::In(to)) = (from, to) {
        let steps = from.steps_to(to);
        if !steps.is_empty() {
            let mut at = from;
            for next in steps {
                step(at.label(), next.label());
                at = next;
            }
            return;
        }
    }
    step(from.label(), to.label());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_operator_fails_is_counted_among_the_failures_and_by_itself() {
        let metrics = Metrics::register(&mut Registry::default());
        let failed = |is_by_operator| Change::Job {
            from: ObservedState::In(JobState::Storing),
            to: ObservedState::In(JobState::Failed),
            spent: None,
            is_by_operator,
            is_new: false,
        };
        for is_by_operator in [false, true, true, false, false] {
            metrics.change(failed(is_by_operator));
        }
        let all = metrics.job_transitions.get_or_create_owned(&StepLabels { from: "storing", to: "failed" });
        assert_eq!((all.get(), metrics.failed_by_operator.get()), (5, 2));
    }
}

//! What the mirror counts of itself and of the queue as it sees it move.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use self::durations::Durations;
use super::failures::FailureCause;
use super::image::{Change, JobEnd, ObservedState};
use queuekeeper_queue::state::{BatchState, JobState, State};

mod durations;

/// From a watch event's tenth of a second, which is the promise, both ways.
const DELAY_BUCKETS: [f64; 9] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// Why the tree is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadCause {
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

impl ReadCause {
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
    job_failures: Family<CauseLabel, Counter>,
    completed_bytes: Counter,
    batch_transitions: Family<StepLabels, Counter>,
    durations: Durations,
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
            job_failures: Family::default(),
            completed_bytes: Counter::default(),
            batch_transitions: Family::default(),
            durations: Durations::register(registry),
        };
        for cause in ReadCause::ALL {
            drop(metrics.walks.get_or_create_owned(&CauseLabel { cause: cause.label() }));
        }
        prepare::<JobState>(&metrics.job_transitions);
        prepare::<BatchState>(&metrics.batch_transitions);
        for cause in FailureCause::ALL {
            drop(metrics.job_failures.get_or_create_owned(&CauseLabel { cause: cause.label() }));
        }
        let Self { events, reads, drift, walks, delay, .. } = metrics.clone();
        registry.register(
            "merritt_job_transitions",
            "Total number of state changes of jobs seen by this process; none stands for created or deleted, and a \
             jump along the success path counts each step",
            metrics.job_transitions.clone(),
        );
        registry.register(
            "merritt_job_failures",
            "Total number of jobs that entered Failed by the cause that their message names; operator if an operator \
             moved them there with queuekeeper",
            metrics.job_failures.clone(),
        );
        registry.register(
            "merritt_jobs_completed_space_needed_bytes",
            "Total working storage needed by completed jobs in bytes, from their space_needed; jobs of unknown size \
             count as 0",
            metrics.completed_bytes.clone(),
        );
        registry.register(
            "merritt_batch_transitions",
            "Total number of state changes of batches seen by this process; none stands for created or deleted",
            metrics.batch_transitions.clone(),
        );
        registry.register("queuekeeper_mirror_events", "Total number of watch events received", events);
        registry.register("queuekeeper_mirror_reads", "Total number of znodes read", reads);
        registry.register("queuekeeper_mirror_walks", "Total number of walks of the whole tree by cause", walks);
        registry.register(
            "queuekeeper_mirror_delay_seconds",
            "Time from a change in ZooKeeper until the mirror shows it in seconds, by the servers' clock",
            delay,
        );
        registry.register(
            "queuekeeper_mirror_drift",
            "Total number of differences between the mirror and the tree that no watch event reported",
            drift,
        );
        metrics
    }

    pub(super) fn walk(&self, cause: ReadCause) {
        self.walks.get_or_create_owned(&CauseLabel { cause: cause.label() }).inc();
    }

    pub(super) fn delay(&self, delay: Duration) {
        self.delay.observe(delay.as_secs_f64());
    }

    /// Counts what a change meant for the queue.
    pub(super) fn change(&self, change: Change) {
        match change {
            Change::Nothing | Change::Quiet => {}
            Change::Job { from, to, spent, waited, end, is_new: _ } => {
                count(&self.job_transitions, from, to);
                if let (ObservedState::In(state), Some(spent)) = (from, spent) {
                    self.durations.state(state, spent, waited);
                }
                match end {
                    Some(JobEnd::Failed(cause)) => {
                        self.job_failures.get_or_create_owned(&CauseLabel { cause: cause.label() }).inc();
                    }
                    Some(JobEnd::Completed { lived, space_needed_bytes }) if from != ObservedState::Nowhere => {
                        // What a znode says may be any number; a total that wraps would be a restart to Prometheus.
                        let left = u64::MAX - self.completed_bytes.get();
                        self.completed_bytes.inc_by(space_needed_bytes.min(left));
                        self.durations.job(lived);
                    }
                    Some(JobEnd::Completed { .. }) | None => {}
                }
            }
            Change::OtherJob { from, to } => {
                count(&self.job_transitions, from, ObservedState::Nowhere);
                count(&self.job_transitions, ObservedState::Nowhere, to);
            }
            Change::Batch { from, to, lived } => {
                count(&self.batch_transitions, from, to);
                self.durations.batch(lived);
            }
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

    fn ended(from: ObservedState<JobState>, to: JobState, end: JobEnd) -> Change {
        let to = ObservedState::In(to);
        Change::Job { from, to, spent: None, waited: None, end: Some(end), is_new: false }
    }

    #[test]
    fn each_failure_is_counted_by_its_cause_and_what_an_operator_fails_by_itself() {
        let metrics = Metrics::register(&mut Registry::default());
        let storing = ObservedState::In(JobState::Storing);
        for cause in [FailureCause::Storage, FailureCause::Operator, FailureCause::Operator, FailureCause::Timeout] {
            metrics.change(ended(storing, JobState::Failed, JobEnd::Failed(cause)));
        }
        let all = metrics.job_transitions.get_or_create_owned(&StepLabels { from: "storing", to: "failed" });
        let of = |cause| metrics.job_failures.get_or_create_owned(&CauseLabel { cause }).get();
        assert_eq!((all.get(), of("operator"), of("storage"), of("timeout"), of("other")), (4, 2, 1, 1, 0));
    }

    #[test]
    fn bytes_count_when_a_job_is_completed_but_not_when_it_comes_so() {
        let metrics = Metrics::register(&mut Registry::default());
        let end = JobEnd::Completed { lived: None, space_needed_bytes: 500 };
        metrics.change(ended(ObservedState::In(JobState::Notify), JobState::Completed, end));
        metrics.change(ended(ObservedState::Nowhere, JobState::Completed, end));
        assert_eq!(metrics.completed_bytes.get(), 500);
        let end = JobEnd::Completed { lived: None, space_needed_bytes: u64::MAX };
        metrics.change(ended(ObservedState::In(JobState::Notify), JobState::Completed, end));
        assert_eq!(metrics.completed_bytes.get(), u64::MAX);
    }
}

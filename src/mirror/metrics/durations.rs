//! How long things took: in a state, before and after a daemon took the job, and from creation to completion.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use queuekeeper_queue::state::{JobState, State};

const MINUTE: f64 = 60.0;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;

/// From a lock-step of the daemons to an object of 500 GB: seconds, minutes, hours, days. A quantile is estimated
/// within its bucket and may be as wrong as that is wide, so no bound but the second is more than three times the one
/// before it.
const BUCKETS: [f64; 17] = [
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

/// A histogram for each of some states of jobs, in the order of [`JobState::ALL`]; the states without one have `None`.
#[derive(Clone, Debug)]
struct ByState(Vec<Option<Histogram>>);

impl ByState {
    fn register(registry: &mut Registry, name: &str, help: &str, has: fn(JobState) -> bool) -> Self {
        let family: Family<StateLabel, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        let of =
            |state: &JobState| has(*state).then(|| family.get_or_create_owned(&StateLabel { state: state.label() }));
        let states = JobState::ALL.iter().map(of).collect();
        registry.register(name, help, family);
        Self(states)
    }

    fn observe(&self, state: JobState, duration: Duration) {
        if let Some(histogram) = &self.0[state.index()] {
            histogram.observe(duration.as_secs_f64());
        }
    }
}

/// The histograms of jobs and batches; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Durations {
    state: ByState,
    wait: ByState,
    work: ByState,
    job: Histogram,
    batch: Histogram,
}

impl Durations {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let durations = Self {
            state: ByState::register(
                registry,
                "merritt_job_state_duration_seconds",
                "Time that jobs spent in a state in seconds, observed when they leave it",
                |state| !state.is_final(),
            ),
            wait: ByState::register(
                registry,
                "merritt_job_state_wait_duration_seconds",
                "Time from entering a state until the lock of the daemon under which the job left it in seconds; not \
                 observed for a lock that this process did not see",
                JobState::is_worked_on,
            ),
            work: ByState::register(
                registry,
                "merritt_job_state_work_duration_seconds",
                "Time from the lock of a daemon until the job left the state in seconds; not observed for a lock that \
                 this process did not see",
                JobState::is_worked_on,
            ),
            job: Histogram::new(BUCKETS),
            batch: Histogram::new(BUCKETS),
        };
        registry.register(
            "merritt_job_completion_duration_seconds",
            "Time from the creation of a job to its completion in seconds, including the time that it was Held or \
             Failed",
            durations.job.clone(),
        );
        registry.register(
            "merritt_batch_completion_duration_seconds",
            "Time from the creation of a batch to its completion in seconds, including the time that it was Held or \
             Failed",
            durations.batch.clone(),
        );
        durations
    }

    /// A job has left a state after `spent`; `waited` of that passed before the lock under which it left.
    pub(super) fn state(&self, state: JobState, spent: Duration, waited: Option<Duration>) {
        self.state.observe(state, spent);
        if let Some(waited) = waited {
            self.wait.observe(state, waited);
            self.work.observe(state, spent.saturating_sub(waited));
        }
    }

    /// A job was completed so long after it was created.
    pub(super) fn job(&self, lived: Option<Duration>) {
        lived.inspect(|lived| self.job.observe(lived.as_secs_f64()));
    }

    /// A batch was completed so long after it was created.
    pub(super) fn batch(&self, lived: Option<Duration>) {
        lived.inspect(|lived| self.batch.observe(lived.as_secs_f64()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exposed(registry: &Registry) -> Vec<String> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_a_job_spent_in_a_state_is_divided_by_the_lock_under_which_it_left() {
        let mut registry = Registry::default();
        let durations = Durations::register(&mut registry);
        let seconds = Duration::from_secs;
        durations.state(JobState::Storing, seconds(100), Some(seconds(30)));
        durations.state(JobState::Storing, seconds(50), None);
        durations.state(JobState::Recording, seconds(7), Some(seconds(9)));
        // No daemon works on these, and nothing leaves the last one.
        durations.state(JobState::Failed, seconds(11), Some(seconds(2)));
        durations.state(JobState::Completed, seconds(13), Some(seconds(2)));
        durations.job(Some(seconds(3_600)));
        durations.job(None);
        durations.batch(Some(seconds(7_200)));
        durations.batch(None);
        let lines = exposed(&registry);
        let has = |line: &str| lines.iter().any(|other| *other == format!("merritt_{line}"));
        for line in [
            "job_state_duration_seconds_sum{state=\"storing\"} 150.0",
            "job_state_duration_seconds_count{state=\"storing\"} 2",
            "job_state_wait_duration_seconds_sum{state=\"storing\"} 30.0",
            "job_state_wait_duration_seconds_count{state=\"storing\"} 1",
            "job_state_work_duration_seconds_sum{state=\"storing\"} 70.0",
            "job_state_work_duration_seconds_sum{state=\"recording\"} 0.0",
            "job_state_duration_seconds_sum{state=\"failed\"} 11.0",
            "job_completion_duration_seconds_sum 3600.0",
            "job_completion_duration_seconds_count 1",
            "batch_completion_duration_seconds_sum 7200.0",
            "batch_completion_duration_seconds_count 1",
        ] {
            assert!(has(line), "{line} is missing in {lines:#?}");
        }
        let of = |family: &str| {
            let start = format!("merritt_{family}_count{{state=\"");
            let states = lines.iter().filter_map(|line| line.strip_prefix(&start)?.split('"').next());
            states.map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        };
        let labels = |is: fn(JobState) -> bool| {
            JobState::ALL.iter().filter(|state| is(**state)).map(|state| state.label().to_owned()).collect()
        };
        assert_eq!(of("job_state_duration_seconds"), labels(|state| !state.is_final()));
        for family in ["job_state_wait_duration_seconds", "job_state_work_duration_seconds"] {
            assert_eq!(of(family), labels(JobState::is_worked_on), "{family}");
        }
    }

    #[test]
    fn a_bucket_is_at_most_three_times_as_wide_as_the_one_before() {
        assert!(BUCKETS.windows(2).skip(1).all(|pair| pair[0] < pair[1] && pair[1] <= 3.0 * pair[0]), "{BUCKETS:?}");
    }
}

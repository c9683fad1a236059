//! Jobs.

use std::fmt;

use crate::metrics::encode::{Families, seconds, truth};
use crate::mirror::{AGE_LABELS, JobFigures, Summary, state_label};
use queuekeeper_queue::state::{JobState, State as _};

/// The label values of `retries`.
const RETRIES: [&str; 4] = ["0", "1", "2", "3+"];

pub(super) fn write(families: &mut Families<'_>, summary: &Summary, waiting: Option<u64>) -> fmt::Result {
    let mut by_state = |name: &str, help: &str, figure: fn(&JobFigures) -> u64| {
        let samples = summary.jobs.iter().map(|(state, jobs)| ([("state", state_label(state))], figure(jobs)));
        families.gauges(name, help, samples)
    };
    by_state("merritt_jobs", "Jobs in each state, by their status.", |jobs| jobs.count)?;
    by_state("merritt_jobs_locked", "Jobs that a daemon holds now.", |jobs| jobs.locked)?;
    by_state("merritt_jobs_retried", "Jobs that were resumed at least once.", |jobs| jobs.retried)?;
    by_state("merritt_job_retries", "The sum of the retries of the jobs present.", |jobs| jobs.retries)?;
    by_state("merritt_jobs_space_needed_bytes", "The working storage that the jobs need, in all.", |jobs| {
        jobs.space_needed_bytes
    })?;
    let by_operator = [JobState::Failed, JobState::Held].map(|state| {
        let figures = summary.jobs.get(Some(state));
        ([("state", state.label())], figures.by_operator)
    });
    families.gauges(
        "merritt_jobs_by_operator",
        "Of the jobs in the state, those that an operator put there.",
        by_operator,
    )?;
    families.count(
        "merritt_job_retries_max",
        "The highest number of retries of any job present.",
        summary.retries_max,
    )?;
    families.gauges(
        "merritt_jobs_by_retries",
        "Jobs by number of retries.",
        RETRIES.into_iter().zip(summary.by_retries).map(|(retries, count)| ([("retries", retries)], count)),
    )?;
    families.gauges(
        "merritt_jobs_waiting_for_space",
        "Jobs in Provisioning that the threshold of working storage keeps back.",
        waiting.map(|count| ([], count)),
    )?;
    let waiting_and_worked_on = summary.jobs.iter().flat_map(|(state, jobs)| {
        [(false, jobs.oldest_unlocked), (true, jobs.oldest_locked)].into_iter().filter_map(move |(locked, entered)| {
            Some(([("state", state_label(state)), ("locked", truth(locked))], seconds(entered?)))
        })
    });
    families.gauges(
        "merritt_job_oldest_entered_timestamp_seconds",
        "When the job longest in the state entered it; jobs that wait and jobs that a daemon holds apart.",
        waiting_and_worked_on,
    )?;
    let bands = summary.jobs.iter().flat_map(|(state, jobs)| {
        AGE_LABELS
            .into_iter()
            .zip(jobs.by_age)
            .map(move |(age, count)| ([("state", state_label(state)), ("age", age)], count))
    });
    families.gauges("merritt_jobs_by_age", "Jobs by time in their state; the bands do not overlap.", bands)?;
    let locks = summary
        .jobs
        .iter()
        .filter_map(|(state, jobs)| Some(([("state", state_label(state))], seconds(jobs.oldest_lock?))));
    families.gauges(
        "merritt_job_lock_oldest_created_timestamp_seconds",
        "When the oldest lock on a job of the state was created.",
        locks,
    )
}

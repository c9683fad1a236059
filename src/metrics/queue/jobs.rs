//! Jobs.

use std::fmt;

use crate::metrics::encode::{Families, seconds, truth};
use crate::mirror::failures::FailureCause;
use crate::mirror::{AGE_LABELS, JobFigures, Summary, state_label};
use queuekeeper_queue::state::{JobState, State as _};

/// The label values of `retries`.
const RETRIES: [&str; 4] = ["0", "1", "2", "3+"];

pub(super) fn write(families: &mut Families<'_>, summary: &Summary, waiting: Option<u64>) -> fmt::Result {
    let mut by_state = |name: &str, help: &str, figure: fn(&JobFigures) -> u64| {
        let samples = summary.jobs.iter().map(|(state, jobs)| ([("state", state_label(state))], figure(jobs)));
        families.gauges(name, help, samples)
    };
    by_state("merritt_jobs", "Number of jobs by state.", |jobs| jobs.count)?;
    by_state("merritt_jobs_locked", "Number of jobs locked by a daemon, by state.", |jobs| jobs.locked)?;
    by_state("merritt_jobs_retried", "Number of jobs that have been resumed at least once, by state.", |jobs| {
        jobs.retried
    })?;
    by_state("merritt_job_retries", "Sum of the retry counts of jobs by state.", |jobs| jobs.retries)?;
    by_state("merritt_jobs_space_needed_bytes", "Working storage needed by jobs in bytes, by state.", |jobs| {
        jobs.space_needed_bytes
    })?;
    let by_operator = [JobState::Failed, JobState::Held].map(|state| {
        let figures = summary.jobs.get(Some(state));
        ([("state", state.label())], figures.by_operator)
    });
    families.gauges(
        "merritt_jobs_by_operator",
        "Number of jobs that an operator moved to their state, by state.",
        by_operator,
    )?;
    let by_cause = FailureCause::ALL.into_iter().zip(summary.failed_by_cause);
    families.gauges(
        "merritt_jobs_failed",
        "Number of Failed jobs by the cause that their message names; operator if an operator moved them there.",
        by_cause.map(|(cause, count)| ([("cause", cause.label())], count)),
    )?;
    families.count("merritt_job_retries_max", "Highest retry count of any job.", summary.retries_max)?;
    families.gauges(
        "merritt_jobs_by_retries",
        "Number of jobs by retry count.",
        RETRIES.into_iter().zip(summary.by_retries).map(|(retries, count)| ([("retries", retries)], count)),
    )?;
    families.gauges(
        "merritt_jobs_waiting_for_space",
        "Number of jobs in Provisioning kept back by the threshold of working storage.",
        waiting.map(|count| ([], count)),
    )?;
    let served = summary.workers.iter().filter_map(|(state, workers)| {
        let state = state.filter(|state| state.is_worked_on())?;
        Some(([("state", state.label())], *workers))
    });
    families.gauges(
        "merritt_state_workers",
        "Number of workers of queuekeeper that take jobs of the state.",
        served,
    )?;
    let waiting_and_worked_on = summary.jobs.iter().flat_map(|(state, jobs)| {
        [(false, jobs.oldest_unlocked), (true, jobs.oldest_locked)].into_iter().filter_map(move |(locked, entered)| {
            Some(([("state", state_label(state)), ("locked", truth(locked))], seconds(entered?)))
        })
    });
    families.gauges(
        "merritt_job_oldest_entered_timestamp_seconds",
        "Unix time at which the job longest in the state entered it, for locked and unlocked jobs.",
        waiting_and_worked_on,
    )?;
    let bands = summary.jobs.iter().flat_map(|(state, jobs)| {
        AGE_LABELS
            .into_iter()
            .zip(jobs.by_age)
            .map(move |(age, count)| ([("state", state_label(state)), ("age", age)], count))
    });
    families.gauges(
        "merritt_jobs_by_age",
        "Number of jobs by time in their state, in bands that do not overlap.",
        bands,
    )?;
    let locks = summary
        .jobs
        .iter()
        .filter_map(|(state, jobs)| Some(([("state", state_label(state))], seconds(jobs.oldest_lock?))));
    families.gauges(
        "merritt_job_lock_oldest_created_timestamp_seconds",
        "Unix time at which the oldest lock on a job in the state was created.",
        locks,
    )
}

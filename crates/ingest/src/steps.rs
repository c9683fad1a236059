//! What the daemons do with a job in each state.
//!
//! Each step may be repeated: stopped at any instruction and done again, on any host, it ends as if it had been done
//! once. What was done already is found by the job's UUID.

pub mod downloading;
pub mod estimating;
pub mod notify;
pub mod pending;
mod priority;
pub mod processing;
pub mod provisioning;
pub mod recording;
pub mod storing;
mod system;

use queuekeeper_queue::JobChange;
use queuekeeper_queue::state::JobState;

use crate::step::{JobAtWork, StepError, message};
use crate::warnings;

pub(crate) use system::{Description, cut, media_type_of_system_file};

/// Does what the job's state asks for; the answer is the change that goes with it. Provisioning is no such step: its
/// change and its grant are decided together.
///
/// # Errors
/// How it ended otherwise.
pub async fn step(work: &JobAtWork<'_>) -> Result<JobChange, StepError> {
    // Notify removes what they are read from.
    let before = (work.job.state == JobState::Notify).then(|| warnings_of(work));
    let change = match work.job.state {
        JobState::Pending => pending::check(work),
        JobState::Estimating => estimating::estimate(work).await,
        JobState::Downloading => downloading::download(work).await,
        JobState::Processing => processing::process(work).await,
        JobState::Storing => storing::store(work).await,
        JobState::Recording => recording::record(work).await,
        JobState::Notify => notify::notify(work).await,
        JobState::Provisioning | JobState::Held | JobState::Failed | JobState::Completed | JobState::Deleted => {
            Err(StepError::permanent(format_args!("there is no step for a job that is {}", work.job.state)))
        }
    }?;
    let warnings = before.unwrap_or_else(|| warnings_of(work));
    Ok(match warnings::said(&warnings) {
        Some(text) => change.with_message(message(&text)),
        None => change,
    })
}

/// What is odd about the package, by the job's files, or where these are gone by its last message.
fn warnings_of(work: &JobAtWork<'_>) -> Vec<String> {
    if !work.job.state.has_content() {
        return Vec::new();
    }
    let kept = warnings::read(&work.directory);
    if kept.is_empty() { warnings::of(&work.job.job.status().value.message) } else { kept }
}

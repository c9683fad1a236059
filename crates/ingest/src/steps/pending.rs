//! Pending: whether a job can be worked on at all. Its configuration and profile were found when it got here.

use queuekeeper_queue::JobChange;

use crate::step::{JobAtWork, StepError};

/// Checks what would only be missed later.
///
/// # Errors
/// When the store of the profile is not configured here.
pub fn check(work: &JobAtWork<'_>) -> Result<JobChange, StepError> {
    work.services.store(&work.profile)?;
    Ok(JobChange::success())
}

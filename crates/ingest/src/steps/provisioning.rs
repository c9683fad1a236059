//! Provisioning: room on the working storage.

use std::time::Duration;

use queuekeeper_queue::{Error, Job, JobChange, Queue};
use uuid::Uuid;

use crate::clock::now;
use crate::grants::{GrantRequest, LockedGrants};
use crate::services::Services;
use crate::spec::JobSpec;
use crate::step::StepError;

/// What a job in Provisioning wants.
#[must_use]
pub fn grant_request(job: &Job) -> GrantRequest {
    let age = job.entered().map_or(0, |entered| now().as_millisecond() - entered.as_millisecond());
    GrantRequest {
        job: job.id,
        bytes: job.space_needed().ok().flatten(),
        priority: job.priority().map_or(u8::MAX, queuekeeper_queue::id::Priority::number),
        age: Duration::from_millis(u64::try_from(age).unwrap_or(0)),
    }
}

/// Whether a job may get room on our volume: its package was not uploaded to another one.
#[must_use]
pub fn may_be_here(job: &Job, ours: Uuid) -> bool {
    // What is wrong with its configuration is for its step to say.
    JobSpec::of(job).ok().and_then(|spec| spec.volume).is_none_or(|volume| volume == ours)
}

/// The change that lets a job pass, with its grant. The grants stay locked until [`settle`] has its outcome.
///
/// # Errors
/// [`StepError::NoRoom`] where it has to wait, for room or for the processes that use the volume of its upload; where
/// it can never pass, or the grants cannot be read.
pub async fn grant<'a>(
    services: &'a Services,
    queue: &'a Queue,
    job: &Job,
) -> Result<(JobChange, LockedGrants<'a>), StepError> {
    if !may_be_here(job, services.working.volume()) {
        return Err(StepError::NoRoom);
    }
    let mut grants = services.grants.lock(queue).await?;
    let also = grants.grant(&services.working, &grant_request(job), now())?.ok_or(StepError::NoRoom)?;
    Ok((JobChange::success().with_also(also), grants))
}

/// Takes note of how the change of [`grant`] ended; the answer is whether another process has changed the grants, so
/// that it is to be decided again.
#[must_use]
pub fn settle<T>(grants: &mut LockedGrants<'_>, outcome: &Result<T, Error>) -> bool {
    match outcome {
        Ok(_) => grants.committed(),
        Err(_) => grants.refused(),
    }
    match outcome {
        Err(Error::Conflict(conflict)) => grants.is_about(&conflict.path),
        Err(Error::Missing(path)) => grants.is_about(path),
        Ok(_) | Err(_) => false,
    }
}

//! What workers leave whose session was lost while they were at work.
//!
//! A process that was stopped for longer than its session lasts goes on with the write that it had begun, and that may
//! make a directory again which another process has removed. It is looked at when all has ended that was being done on
//! the disk.

use std::io;

use queuekeeper_queue::Error;
use queuekeeper_queue::state::{BatchState, JobState};
use tracing::{info, warn};

use super::session::{AtWork, Session};
use crate::batches::submission::BatchSpec;
use crate::blocking::{self, blocking};
use crate::spec::JobSpec;
use crate::spec::id_of;
use crate::step::StepError;
use crate::working::{WorkingStorage, absent_is_fine};

/// Removes the directories of what was completed meanwhile. The answer is whether all could be read: what could not is
/// looked at again by the next session, and else left to cleanup.
pub(super) async fn remove(session: &Session, left: &AtWork) -> bool {
    blocking::all_ended().await;
    let mut is_known = true;
    for id in &left.jobs {
        let job = match session.queue.load_job(*id).await {
            Ok(job) => job,
            Err(error) => {
                is_known &= matches!(error, Error::Missing(_));
                continue;
            }
        };
        let Ok(spec) = JobSpec::of(&job) else { continue };
        if job.state() == Some(JobState::Completed) {
            let directory = session.services.working.job(&spec);
            removed(&id.to_string(), move || directory.remove()).await;
        }
    }
    for id in &left.batches {
        let batch = match session.queue.load_batch(*id).await {
            Ok(batch) => batch,
            Err(error) => {
                is_known &= matches!(error, Error::Missing(_));
                continue;
            }
        };
        let Ok(spec) = BatchSpec::of(batch.submission.as_deref().unwrap_or_default()) else { continue };
        if batch.state() == Some(BatchState::Completed) {
            let (working, name) = (session.services.working.clone(), spec.id);
            removed(&id.to_string(), move || remove_jobs(&working, &name)).await;
        }
        // Their directories are made with the jobs of the first.
        for part in session.services.catalogue.parts(spec.uuid).await.unwrap_or_default() {
            let name = id_of(part.deposit.batch);
            let Ok(Some(part)) = session.queue.find_batch(&name).await else { continue };
            let Ok(batch) = session.queue.load_batch(part).await else { continue };
            if batch.state() == Some(BatchState::Completed) {
                let working = session.services.working.clone();
                removed(&part.to_string(), move || working.remove_batch(&name)).await;
            }
        }
    }
    is_known
}

/// Removes the directories of a batch's jobs, all of which are completed, and its own where nothing else is in it: what
/// is uploaded under its name stays.
fn remove_jobs(working: &WorkingStorage, batch: &str) -> io::Result<()> {
    let jobs = match std::fs::read_dir(working.batch(batch)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for job in jobs {
        let name = job?.file_name();
        if let Some(name) = name.to_str().filter(|name| name.starts_with("jid-")) {
            working.remove_job(batch, name)?;
        }
    }
    match std::fs::remove_dir(working.batch(batch)) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => absent_is_fine(removed),
    }
}

async fn removed(id: &str, remove: impl FnOnce() -> io::Result<()> + Send + 'static) {
    let done = blocking(remove).await.and_then(|removed| removed.map_err(StepError::temporary));
    match done {
        Ok(()) => info!(id, "another process has completed a job that this one was working on; removed its leftovers"),
        Err(error) => {
            warn!(id, %error, "cannot remove leftovers of a job that another process has completed; cleanup removes them");
        }
    }
}

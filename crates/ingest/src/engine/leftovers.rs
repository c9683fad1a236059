//! What workers leave whose session was lost while they were at work.

use std::collections::BTreeSet;

use queuekeeper_queue::id::JobId;
use queuekeeper_queue::state::JobState;
use tracing::{info, warn};

use super::session::Session;
use crate::spec::JobSpec;

/// Removes the directories of those jobs that were completed meanwhile. A process that was stopped for longer than its
/// session lasts goes on with the write that it had begun, and that may make the directory again which another process has
/// removed.
pub(super) async fn remove(session: &Session, jobs: &BTreeSet<JobId>) {
    for id in jobs {
        // What cannot be read now is left to cleanup.
        let Ok(job) = session.queue.load_job(*id).await else { continue };
        let Ok(spec) = JobSpec::of(&job) else { continue };
        if job.state() != Some(JobState::Completed) {
            continue;
        }
        let directory = session.services.working.job(&spec);
        if !directory.path().exists() {
            continue;
        }
        match tokio::task::spawn_blocking(move || directory.remove()).await.map_err(std::io::Error::other).flatten() {
            Ok(()) => info!(job = %id, "what was left of a job that another process has completed was removed"),
            Err(error) => warn!(job = %id, %error, "what is left of a completed job is left to cleanup"),
        }
    }
}

//! The cleanup daemon: what nothing needs any more in ZooKeeper, below `/queuekeeper`.

use std::sync::Arc;
use std::time::Duration;

use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Error, Queue, Transaction};
use tracing::{info, warn};

use crate::daemon::Daemon;
use crate::engine::session::Session;

/// How often it looks.
const PAUSE: Duration = Duration::from_mins(5);

/// Removes grants and retries of jobs that have ended or are gone, until it is dropped.
pub(crate) async fn clean(session: Arc<Session>) {
    loop {
        if session.may_take(Daemon::Cleanup)
            && let Err(error) = round(&session).await
        {
            warn!(%error, "cannot clean up");
        }
        session.pause(Daemon::Cleanup, PAUSE).await;
    }
}

async fn round(session: &Session) -> Result<(), Error> {
    let queue = &session.queue;
    let granted: Vec<JobId> = match session.services.grants.lock(queue).await {
        Ok(grants) => grants.jobs().collect(),
        Err(_) => Vec::new(),
    };
    for job in granted {
        if has_ended(queue, job).await? {
            session.services.grants.ended(job);
        }
    }
    if session.services.grants.has_ended() {
        session.wake(Daemon::Provisioning).notify_one();
    }
    let folder = Path::retries();
    let Ok(names) = queue.client().list_children(&folder.to_string()).await else { return Ok(()) };
    for job in names.iter().filter_map(|name| name.parse::<JobId>().ok()) {
        if has_ended(queue, job).await? {
            let mut transaction = Transaction::new();
            transaction.delete(Path::retry(job), None);
            match queue.commit(&transaction).await {
                Ok(_) => info!(%job, "the note of a job that has ended was removed"),
                Err(Error::Missing(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Whether a job needs no room and no other attempt: it has ended, failed, or is gone.
async fn has_ended(queue: &Queue, job: JobId) -> Result<bool, Error> {
    match queue.load_job(job).await {
        Ok(job) => {
            Ok(matches!(job.state(), Some(JobState::Completed | JobState::Deleted | JobState::Failed | JobState::Held)))
        }
        Err(Error::Missing(_)) => Ok(true),
        Err(error) => Err(error),
    }
}

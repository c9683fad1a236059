//! The cleanup daemon: what nothing needs any more in ZooKeeper, below `/queuekeeper`.

use std::sync::Arc;
use std::time::Duration;

use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::{Error, Transaction};
use tracing::{info, warn};

use crate::daemon::Daemon;
use crate::engine::session::Session;

/// How often it looks.
const PAUSE: Duration = Duration::from_mins(5);

/// Removes the notes of jobs that have ended or are gone, until it is dropped.
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
    let folder = Path::retries();
    let Ok(names) = queue.client().list_children(&folder.to_string()).await else { return Ok(()) };
    for job in names.iter().filter_map(|name| name.parse::<JobId>().ok()) {
        if session.has_ended(job).await? {
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

//! The report daemons: the outcome of a batch whose jobs have ended.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::{Due, Error, LockedBatch};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::batches::submission::BatchSpec;
use crate::blocking::blocking;
use crate::clock::now;
use crate::daemon::Daemon;
use crate::engine::session::Session;
use crate::mail::compose::Correspondence;
use crate::metrics::Ended;
use crate::spec::uuid_of;
use crate::step::StepError;

/// How soon a batch is looked at again that was locked when a job of it had ended: its other jobs are still being
/// created, or another process reports it.
const LOCKED: Duration = Duration::from_secs(1);

/// The outcome of a batch without jobs: no job was created, or they were purged.
const NO_JOBS: &str = "it has no jobs; its submission has to be made again";

/// Reports batches, until it is dropped. Those whose jobs ended here are looked at once they have, all others from time
/// to time.
pub(crate) async fn report(session: Arc<Session>, daemon: Daemon, due: Due) {
    let mut looked_at_all = None;
    loop {
        let mut is_retried = false;
        if session.may_take(daemon) {
            let ended = if due == Due::Report { session.take_ended_batches() } else { BTreeSet::new() };
            let look_again = session.services.settings.look_again;
            let is_time = looked_at_all.is_none_or(|at: Instant| at.elapsed() >= look_again);
            if is_time {
                looked_at_all = Some(Instant::now());
            }
            if (is_time || !ended.is_empty())
                && let Err(error) = poll(&session, daemon, due, &ended, is_time).await
            {
                warn!(%error, "cannot look for due reports");
                looked_at_all = None;
                is_retried = error.may_be_retried();
            }
        }
        session.pause_after_look(daemon, is_retried).await;
    }
}

/// Reports what is due, of all batches or of those of which jobs have ended.
async fn poll(
    session: &Session,
    daemon: Daemon,
    due: Due,
    ended: &BTreeSet<BatchId>,
    is_of_all: bool,
) -> Result<(), Error> {
    let mut poll = if is_of_all {
        session.queue.poll_batches(due).await?
    } else {
        session.queue.poll_batches_of(due, ended.iter().copied().collect())
    };
    while session.may_take(daemon) {
        let next = poll.next(now()).await;
        session.look_later(poll.locked.drain(..).filter(|batch| ended.contains(batch)), LOCKED);
        let Some(batch) = next? else { break };
        let (began, busy) = (Instant::now(), session.services.metrics.begin(daemon));
        let outcome = match write(session, &batch).await {
            Ok(()) => Ended::Done,
            Err(error) => {
                warn!(batch = %batch.batch.id, %error, "cannot report a batch yet");
                session.queue.unlock_batch(&batch).await?;
                Ended::Delayed
            }
        };
        drop(busy);
        session.services.metrics.end(daemon, outcome, began.elapsed());
    }
    Ok(())
}

async fn write(session: &Session, batch: &LockedBatch) -> Result<(), StepError> {
    let (queue, id) = (&session.queue, batch.batch.id);
    let report = queue.batch_report(id).await?;
    // The time at which it entered its state is part of the mail's name.
    let reloaded = if batch.batch.version() == Some(batch.version) { None } else { Some(queue.load_batch(id).await?) };
    let found = reloaded.as_ref().unwrap_or(&batch.batch);
    Correspondence::new(&session.services, &session.fence, found).reported(queue, &report).await?;
    let submitted = batch.batch.submitted();
    let uuid = uuid_of(&submitted.value.uuid, "bid-");
    session.fence.pass().await;
    let outcome = if report.is_empty() {
        NO_JOBS.to_owned()
    } else {
        format!("{} completed, {} failed", report.completed.len(), report.failed.len())
    };
    session.services.catalogue.deposit_ended(uuid, &outcome).await?;
    if report.verdict() == BatchState::Completed {
        remove_directory(session, batch).await?;
    }
    let changed = queue.finish_report(batch, &report, &outcome, now()).await?;
    info!(batch = %id, state = %changed.to, completed = report.completed.len(), failed = report.failed.len(), "reported a batch");
    Ok(())
}

/// Removes what lies in the working storage of a batch whose jobs are all completed: its manifest or package.
async fn remove_directory(session: &Session, batch: &LockedBatch) -> Result<(), StepError> {
    // Without an id that names a folder it has none.
    let Ok(spec) = BatchSpec::of(batch.batch.submission.as_deref().unwrap_or_default()) else { return Ok(()) };
    let storage = session.services.working.clone();
    blocking(move || storage.remove_batch(&spec.id))
        .await?
        .map_err(|error| StepError::working("remove the batch's files", &error))
}

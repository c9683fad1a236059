//! The cleanup daemon: what nothing needs any more, in ZooKeeper, the catalogue, the working storage and the delivery
//! store, and objects in which a writer was stopped. Content that an inventory names is never touched.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::{OwnNode, Path};
use queuekeeper_queue::state::{AccessState, State};
use queuekeeper_queue::{Batch, Error, Transaction};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::clock::now;
use crate::daemon::Daemon;
use crate::engine::session::Session;
use crate::spec::uuid_of;
use crate::step::StepError;
use crate::withdrawal;
pub use settings::CleanupSettings;
use volume::Turn;

mod access;
mod directories;
mod entries;
mod listed;
mod messages;
mod objects;
mod settings;
mod stores;
mod volume;

/// Cleans up from time to time, until it is dropped.
pub(crate) async fn clean(session: Arc<Session>) {
    let (mut recorded, mut looked) = (BTreeSet::new(), None::<Instant>);
    loop {
        if session.may_take(Daemon::Cleanup) {
            report("the notes of what has ended", notes(&session).await);
            report("the queue entries of completed jobs", entries::remove(&session).await);
            report("batches", batches(&session, &mut recorded).await);
            report("messages", messages::remove(&session).await);
            report("archives that were delivered", access::deliveries(&session).await);
            let every = session.services.settings.cleanup.directories_every;
            let is_due = match directories::remove(&session).await {
                // All processes together look through a volume from time to time; so it is with stores.
                Ok(Turn::Ours) => true,
                Ok(Turn::NotDue) => false,
                // A volume that is not to be touched keeps nothing else from being cleaned, as often.
                outcome @ (Ok(Turn::Refused(_)) | Err(_)) => {
                    report("the working storage", outcome.map(drop));
                    looked.is_none_or(|looked| looked.elapsed() >= every)
                }
            };
            if is_due {
                looked = Some(Instant::now());
                stores::sweep(&session).await;
                report("objects", objects::repair(&session).await);
                report("access requests", access::requests(&session).await);
            }
        }
        session.pause(Daemon::Cleanup, session.services.settings.cleanup.every).await;
    }
}

/// What cannot be cleaned keeps nothing else.
fn report<E: fmt::Display>(what: &str, outcome: Result<(), E>) {
    if let Err(error) = outcome {
        warn!(what, %error, "cannot clean up");
    }
}

/// The time before which something must have ended to be removed.
fn before(age: Duration) -> Timestamp {
    now().checked_sub(age).unwrap_or(Timestamp::MIN)
}

/// Removes our own znodes of jobs and access requests that have ended, and of batches that are gone.
async fn notes(session: &Session) -> Result<(), Error> {
    let queue = &session.queue;
    let list = async |folder: Path| queue.client().list_children(&folder.to_string()).await.unwrap_or_default();
    for name in list(Path::retries()).await {
        let has_ended = match Path::retries().child(&name).own_node() {
            Some(OwnNode::Retry(job)) => session.has_ended(job).await?,
            Some(OwnNode::RequestRetry(access, request)) => match queue.load_request(access, request).await {
                Ok(request) => !matches!(request.state(), Some(AccessState::Pending | AccessState::Processing)),
                Err(Error::Missing(_)) => true,
                Err(error) => return Err(error),
            },
            _ => false,
        };
        if has_ended {
            delete(session, Path::retries().child(&name)).await?;
        }
    }
    for batch in list(Path::expansions()).await.iter().filter_map(|name| name.parse::<BatchId>().ok()) {
        match queue.load_batch(batch).await {
            Ok(_) => {}
            Err(Error::Missing(_)) => delete(session, Path::expansion(batch)).await?,
            Err(error) => return Err(error),
        }
    }
    for batch in list(Path::withdrawals()).await.iter().filter_map(|name| name.parse::<BatchId>().ok()) {
        match queue.load_batch(batch).await {
            // An operator may have deleted it.
            Ok(batch) if batch.state().is_some_and(State::is_final) && batch.lock().is_none() => {
                delete(session, Path::withdrawal(batch.id)).await?;
            }
            Ok(_) => {}
            Err(Error::Missing(_)) => delete(session, Path::withdrawal(batch)).await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn delete(session: &Session, path: Path) -> Result<(), Error> {
    let mut transaction = Transaction::new();
    transaction.delete(path.clone(), None);
    match session.queue.commit(&transaction).await {
        Ok(_) => info!(%path, "removed the note of a finished item"),
        Err(Error::Missing(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Purges the batches that were completed or deleted long enough ago, with their jobs, each only once the catalogue
/// says how its deposit ended, or no client could tell it from one that was not made; `recorded` are those of which it
/// does.
async fn batches(session: &Session, recorded: &mut BTreeSet<BatchId>) -> Result<(), StepError> {
    let before = before(session.services.settings.cleanup.after);
    let is_due = |entered: Option<Timestamp>| entered.is_some_and(|entered| entered <= before);
    let go_on = |_| if session.may_take(Daemon::Cleanup) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let unrecorded = Mutex::new(Vec::new());
    let is_wanted = |batch: &Batch| {
        let is_withdrawn = withdrawal::is_withdrawn(batch);
        let is_due = is_due(batch.entered());
        let is_open = (is_withdrawn || is_due) && !recorded.contains(&batch.id);
        if is_open {
            let state = batch.state().filter(|_| !is_withdrawn);
            unrecorded.lock().push((batch.id, batch.submitted().value.uuid.into_owned(), state));
        }
        !is_open && is_due
    };
    let done = session.queue.clean_up_some(is_wanted, go_on).await?;
    recorded.retain(|batch| !done.purged.contains(batch));
    for (batch, id, state) in unrecorded.into_inner() {
        session.fence.pass().await;
        let catalogue = &session.services.catalogue;
        match state {
            None => withdrawal::record(catalogue, &id).await?,
            // A report daemon of Java does not say it.
            Some(state) => catalogue.deposit_leaves(uuid_of(&id, "bid-"), &format!("left the queue {state}")).await?,
        }
        recorded.insert(batch);
    }
    for batch in &done.purged {
        info!(%batch, "removed a finished batch from the queue");
    }
    for (batch, error) in &done.kept {
        info!(%batch, %error, "cannot remove a finished batch yet");
    }
    session.services.metrics.cleaned("batch", done.purged.len());
    Ok(())
}

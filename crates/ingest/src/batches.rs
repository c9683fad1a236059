//! The batch daemon: from a submission to its jobs.
//!
//! The whole manifest is saved, digested and validated before the first job is created. Which job a row becomes follows
//! from batch and row, so that a batch taken up again goes on with the same ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::record::BatchWait;
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::{Batch, Due, Error, ItemChange, LockedBatch, Queue};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::clock::now;
use crate::daemon::Daemon;
use crate::engine::session::Session;
use crate::mail::compose::Correspondence;
use crate::metrics::Ended;
use crate::resubmit::without_jobs;
use crate::spec::uuid_of;
use crate::step::{self, StepError};
use crate::withdrawal;
use submission::BatchSpec;

mod further;
mod rows;
pub(crate) mod submission;

/// How long a batch waits at least for a connection, or for a folder that is full.
const FULL: Duration = Duration::from_secs(1);

/// The batches that were given back, to be taken again.
type Delayed = Mutex<BTreeMap<BatchId, Delay>>;

/// How a batch is taken again.
struct Delay {
    /// Since when it is tried: what it waited before the first attempt that failed counts for nothing.
    tried_since: Timestamp,
    not_before: Timestamp,
    note: BatchWait,
}

/// Creates the jobs of batches, until it is dropped.
pub(crate) async fn expand(session: Arc<Session>) {
    let delayed = Arc::new(Delayed::default());
    let (mut past, mut looked_at_all) = (BTreeSet::new(), None);
    let look_again = session.services.settings.look_again;
    loop {
        // A new batch wakes this, and those before it are not read again for that.
        let is_time = looked_at_all.is_none_or(|at: Instant| at.elapsed() >= look_again);
        if is_time {
            past.clear();
            looked_at_all = Some(Instant::now());
        }
        if is_time && session.may_take(Daemon::Batch) {
            // One of many jobs takes a while, and other batches do not wait for it; its lock keeps it from being begun
            // twice.
            let of_task = Arc::clone(&session);
            session.spawn(async move {
                if let Err(error) = withdrawal::take_up(&of_task).await {
                    warn!(%error, "cannot continue withdrawals");
                }
            });
        }
        // One that was begun is left by a daemon that was stopped, or given back by one of ours.
        let begun = (is_time || !delayed.lock().is_empty()).then_some(Due::RestOfJobs);
        let mut is_retried = false;
        for due in begun.into_iter().chain([Due::Jobs]) {
            if session.may_take(Daemon::Batch)
                && let Err(error) = poll(&session, due, &delayed, &mut past).await
            {
                warn!(%error, "cannot acquire batches");
                is_retried |= error.may_be_retried();
            }
        }
        if is_retried {
            // Also for what was begun, which is looked at only when it is time.
            looked_at_all = None;
        }
        session.pause_after_look(Daemon::Batch, is_retried).await;
    }
}

/// Takes what is due; `past` are the batches that are not looked at for their jobs, to which it adds what it finds.
async fn poll(
    session: &Arc<Session>,
    due: Due,
    delayed: &Arc<Delayed>,
    past: &mut BTreeSet<BatchId>,
) -> Result<(), Error> {
    let Some(workers) = session.workers(Daemon::Batch) else { return Ok(()) };
    let mut poll = session.queue.poll_batches(due).await?.expanded();
    let mut listed = BTreeSet::new();
    poll.retain(|batch| {
        listed.insert(batch);
        !session.restored.is_withdrawing(batch)
    });
    if due == Due::RestOfJobs && poll.paused.is_none() {
        // The others were finished, by whichever process.
        delayed.lock().retain(|batch, _| listed.contains(batch));
        publish(session, delayed);
    }
    poll.retain(|batch| delayed.lock().get(&batch).is_none_or(|delay| delay.not_before <= now()));
    if due == Due::Jobs {
        session.has_listed(Daemon::Batch, listed.len());
        poll.retain(|batch| !past.contains(&batch));
    }
    loop {
        let Ok(permit) = Arc::clone(&workers).acquire_owned().await else { return Ok(()) };
        if !session.may_take(Daemon::Batch) {
            return Ok(());
        }
        let next = poll.next_if(now(), |batch| is_here(session, batch)).await;
        past.extend(poll.past.drain(..));
        let Some(batch) = next? else { return Ok(()) };
        past.insert(batch.batch.id);
        let (session, delayed) = (Arc::clone(session), Arc::clone(delayed));
        Arc::clone(&session).spawn(async move {
            work(&session, batch, &delayed).await;
            drop(permit);
        });
    }
}

async fn work(session: &Arc<Session>, batch: LockedBatch, delayed: &Delayed) {
    let (began, id) = (Instant::now(), batch.batch.id);
    let busy = session.services.metrics.begin(Daemon::Batch);
    session.expands(id, true);
    let outcome = match create_jobs(session, &batch).await {
        Ok(Some(jobs)) => {
            delayed.lock().remove(&id);
            publish(session, delayed);
            info!(batch = %id, jobs, "created the jobs of a batch");
            Ended::Done
        }
        // For its withdrawal, which needs the lock.
        Ok(None) => {
            session.queue.unlock_batch(&batch).await.map_or_else(|error| lost(&batch, &error), |_| Ended::Delayed)
        }
        Err(error) => after_failure(session, &batch, error, delayed).await,
    };
    drop(busy);
    if !matches!(outcome, Ended::Lost) {
        session.expands(id, false);
    }
    session.services.metrics.end(Daemon::Batch, outcome, began.elapsed());
}

/// Whether the payload of a batch was not uploaded to another volume: such a batch is left to the processes that use
/// that.
fn is_here(session: &Session, batch: &Batch) -> bool {
    // What is wrong with its submission is said when its jobs are created.
    let spec = BatchSpec::of(batch.submission.as_deref().unwrap_or_default()).ok();
    spec.and_then(|spec| spec.volume).is_none_or(|volume| volume == session.services.working.volume())
}

/// Creates the jobs that are missing, and sets the batch Reporting as today's daemons do. Gives how many it has; `None`
/// where it is given back as it is: its deposit was withdrawn before.
async fn create_jobs(session: &Arc<Session>, batch: &LockedBatch) -> Result<Option<u64>, StepError> {
    let (services, queue) = (&session.services, &session.queue);
    let spec = BatchSpec::of(batch.batch.submission.as_deref().unwrap_or_default()).map_err(StepError::Permanent)?;
    if withdrawal::is_withdrawn_before(session, batch.batch.id, spec.uuid).await? {
        return Ok(None);
    }
    let profile = services.profile(&spec.profile)?;
    let (mut total, mut transactions) = (0, 0);
    // Without an expansion all its jobs exist.
    let new = batch.new_expansion();
    let is_new = new.is_some();
    let expansion = if is_new { new } else { queue.expansion(batch).await? };
    let most_children = services.settings.java_readers.then_some(services.settings.most_children);
    if let Some(mut expansion) = expansion {
        if let (false, Some(most)) = (is_new, most_children) {
            // Before the manifest is read again.
            queue.check_room(most).await?;
        }
        session.fence.pass().await;
        let mut rows = rows::Rows::open(services, &profile, &spec).await?;
        total = rows.total();
        // One is what a deposit is recorded with whose content was not at hand.
        if spec.part.is_none() && rows.in_manifest() > 1 {
            services.catalogue.deposit_has(spec.uuid, rows.in_manifest()).await?;
        }
        // Before its jobs, or none would be mailed after a crash behind the last of them.
        Correspondence::new(services, &session.fence, &batch.batch).queued(total, rows.batches()).await?;
        // They exist once a job does, unless they have ended since.
        if expansion.note.last.is_none() {
            further::create(session, batch, &spec, &rows).await?;
        }
        if !is_new {
            let found = rows.existing(expansion.note.next, &queue.configurations(batch.batch.id).await?);
            expansion = queue.behind_existing(expansion, found.next, found.last).await?;
        }
        let last = rows.last_job()?;
        rows.skip(expansion.note.next).await;
        loop {
            rows.fill().await?;
            let begun = expansion.note.next;
            let advanced = queue.expand(batch, &expansion, rows.next(&last, most_children), now()).await?;
            session.wake(Daemon::Pending).notify_one();
            transactions += 1;
            let Some(advanced) = advanced else { break };
            rows.advance(advanced.note.next - begun);
            expansion = advanced;
        }
    }
    queue.finish_batch(batch, &ItemChange::to(BatchState::Reporting), now()).await?;
    // Its jobs may have ended while it was locked, when no report could be made. None has where they were created just
    // now.
    if !is_new || transactions > 1 {
        session.may_be_due(batch.batch.id);
    }
    Ok(Some(total))
}

async fn after_failure(session: &Session, batch: &LockedBatch, error: StepError, delayed: &Delayed) -> Ended {
    let (id, queue, settings) = (batch.batch.id, &session.queue, &session.services.settings);
    let before = delayed.lock().get(&id).map(|delay| (delay.tried_since, delay.note.attempts));
    let (since, attempts) = before.unwrap_or_else(|| (now(), 0));
    // What has not been tried may wait for however long.
    let untried = if attempts == 0 { (now(), 0) } else { (since, attempts) };
    let why = match error {
        StepError::Permanent(why) => why,
        // Nothing was tried.
        StepError::Busy(why) => {
            return wait(session, batch, delayed, untried, Why::Said(&why), settings.retry_first.max(FULL)).await;
        }
        StepError::Queue(Error::Full { folder, .. }) => {
            return wait(session, batch, delayed, untried, Why::Full(folder), settings.retry_first.max(FULL)).await;
        }
        StepError::Temporary { why, after } | StepError::Away { why, after } => {
            if now().duration_since(since).unsigned_abs() < settings.retry_within {
                let pause = settings.pause(attempts).max(after.unwrap_or_default());
                return wait(session, batch, delayed, (since, attempts + 1), Why::Said(&why), pause).await;
            }
            format!("{why} (after {} attempts)", attempts + 1)
        }
        error @ (StepError::NoRoom | StepError::NoExtension(_)) => error.sentence(),
        StepError::Queue(error) => {
            // What it had created stands in its expansion, and the next one goes on behind it.
            let unlocked = queue.unlock_batch(batch).await;
            return unlocked.map_or_else(|error| lost(batch, &error), |_| lost(batch, &error));
        }
    };
    let why = step::message(&why);
    match has_jobs(queue, batch).await {
        Ok(false) => {}
        // Rows that are no jobs yet are named nowhere else: a failed batch would lose them, and its mail would say that
        // no job was created.
        Ok(true) => {
            let why = format!("{why}; some of its rows are jobs; the others wait until this is repaired");
            let pause = settings.pause(attempts.max(1));
            return wait(session, batch, delayed, (since, attempts + 1), Why::Said(&why), pause).await;
        }
        Err(error) => return lost(batch, &error),
    }
    if let Err(error) = report_refusal(session, batch, &why).await {
        let why = format!("{why}; this cannot be reported yet: {}", error.sentence());
        let pause = settings.pause(attempts);
        return wait(session, batch, delayed, (since, attempts + 1), Why::Said(&why), pause).await;
    }
    warn!(batch = %id, %why, "batch failed");
    delayed.lock().remove(&id);
    publish(session, delayed);
    let change = ItemChange::to(BatchState::Failed).with_message(why);
    match queue.finish_batch(batch, &change, now()).await {
        Ok(_) => Ended::Failed,
        Err(error) => lost(batch, &error),
    }
}

/// Reports to the depositor why no job is created: by mail, and in the catalogue.
async fn report_refusal(session: &Session, batch: &LockedBatch, why: &str) -> Result<(), StepError> {
    let services = &session.services;
    Correspondence::new(services, &session.fence, &batch.batch).refused(why).await?;
    let uuid = uuid_of(&batch.batch.submitted().value.uuid, "bid-");
    session.fence.pass().await;
    Ok(services.catalogue.deposit_ended(uuid, &without_jobs(why)).await?)
}

/// Whether a batch has jobs: it did not fail before the first one.
async fn has_jobs(queue: &Queue, batch: &LockedBatch) -> Result<bool, Error> {
    // Without an expansion all its jobs exist.
    Ok(queue.expansion(batch).await?.is_none_or(|expansion| expansion.note.last.is_some()))
}

/// Gives a batch back, to be taken again after a pause; it was tried so often since then.
async fn wait(
    session: &Session,
    batch: &LockedBatch,
    delayed: &Delayed,
    (tried_since, attempts): (Timestamp, u32),
    why: Why<'_>,
    pause: Duration,
) -> Ended {
    let (id, now) = (batch.batch.id, now());
    let (full, why) = match why {
        Why::Full(folder) => (Some(folder), String::new()),
        Why::Said(why) => (None, step::message(why)),
    };
    info!(batch = %id, full = full.as_ref().map(ToString::to_string), %why, "will retry the batch later");
    let not_before = now.checked_add(pause).unwrap_or(Timestamp::MAX);
    {
        let mut delayed = delayed.lock();
        let since = delayed.get(&id).map_or(now, |delay| delay.note.since);
        let note = BatchWait { batch: id, since, attempts, full, why };
        delayed.insert(id, Delay { tried_since, not_before, note });
    }
    publish(session, delayed);
    session.wake_after(Daemon::Batch, pause);
    match session.queue.unlock_batch(batch).await {
        Ok(_) => Ended::Delayed,
        Err(error) => lost(batch, &error),
    }
}

/// What a batch waits for.
enum Why<'a> {
    /// This folder has no room for its jobs.
    Full(Path),
    /// It is said so.
    Said(&'a str),
}

/// Names the batches that wait in the znode of the process, those first that have waited longest.
fn publish(session: &Session, delayed: &Delayed) {
    let mut waits: Vec<_> = delayed.lock().values().map(|delay| delay.note.clone()).collect();
    waits.sort_by_key(|wait| wait.since);
    session.waits.send_if_modified(|noted| {
        let is_new = *noted != waits;
        if is_new {
            *noted = waits;
        }
        is_new
    });
}

fn lost(batch: &LockedBatch, error: &Error) -> Ended {
    warn!(batch = %batch.batch.id, %error, "stopped working on a batch");
    Ended::Lost
}

//! A job from state to state, as far as this process goes with it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_queue::record::Retry;
use queuekeeper_queue::state::{JobState, State as _};
use queuekeeper_queue::time::moment;
use queuekeeper_queue::{Error, JobChange, LockedJob};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tracing::{info, warn};

use super::session::{ROUND, Session};
use crate::clock::now;
use crate::daemon::Daemon;
use crate::metrics::Ended;
use crate::spec::JobSpec;
use crate::step::{self, JobAtWork, StepError};
use crate::steps::{estimating, notify, provisioning, step};
use crate::withdrawal;

/// How often a grant is decided again because another process was faster.
const GRANT_ATTEMPTS: usize = 20;

/// The longest pause of a job that waits for a connection to a host.
const MOST_BUSY: Duration = Duration::from_mins(1);

/// The pause before a request is made again that a lost connection has ended.
pub(crate) const RECONNECTING: Duration = Duration::from_millis(200);

/// Makes a request again while only the connection fails: the session, and with it the lock, may survive. (A macro,
/// since a closure's future that borrows is not known to be `Send`.)
macro_rules! through {
    ($queue:expr, $call:expr) => {
        loop {
            match $call.await {
                Err(error) if error.is_connection() && !$queue.client().state().is_terminated() => {
                    tokio::time::sleep($crate::engine::RECONNECTING).await;
                }
                outcome => break outcome,
            }
        }
    };
}

pub(crate) use through;

/// How a step ended, after what it meant for the job was written.
enum StepOutcome {
    /// The job is in the next state, and still ours; with the worker of that state.
    Kept(OwnedSemaphorePermit),
    /// The job is not ours any more.
    Released(Ended),
}

/// Takes a locked job through its states, while the next one is ours as well and a worker is free for it.
pub(super) async fn carry(session: Arc<Session>, mut job: LockedJob, mut permit: OwnedSemaphorePermit) {
    session.carry(job.id());
    loop {
        let Some(daemon) = Daemon::of_state(job.state) else { return session.put_down(job.id()) };
        let (began, state) = (Instant::now(), job.state);
        let busy = session.services.metrics.begin(daemon);
        let outcome = one_step(&session, &mut job).await;
        drop(busy);
        let ended = match &outcome {
            StepOutcome::Kept(_) => Ended::Done,
            StepOutcome::Released(ended) => *ended,
        };
        session.services.metrics.end(daemon, ended, began.elapsed());
        let (id, outcome_name) = (job.id(), ended.as_str());
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        info!(job = %id, %state, outcome = outcome_name, duration_ms, "work on a job ended");
        match outcome {
            // That of the state before is free for another job.
            StepOutcome::Kept(next) => permit = next,
            StepOutcome::Released(_) => {
                session.put_down(id);
                return drop(permit);
            }
        }
    }
}

async fn one_step(session: &Arc<Session>, job: &mut LockedJob) -> StepOutcome {
    if job.state == JobState::Pending {
        match is_withdrawn(session, job).await {
            Ok(false) => {}
            Ok(true) => {
                return match session.queue.unlock_job(job).await {
                    Ok(_) => StepOutcome::Released(Ended::Delayed),
                    Err(error) => give_up(session, job, &error).await,
                };
            }
            Err(error) => return delay(session, job, &error.sentence(), None).await,
        }
    }
    // Its store may have been held since it was taken.
    if job.state == JobState::Storing && session.waits_for_store(&job.job) {
        return match session.queue.unlock_job(job).await {
            Ok(_) => {
                session.put_down(job.id());
                // A daemon that was woken by a release meanwhile has found it locked, or at work here.
                if !session.waits_for_store(&job.job) {
                    session.wake(Daemon::Storing).notify_one();
                }
                StepOutcome::Released(Ended::Delayed)
            }
            Err(error) => give_up(session, job, &error).await,
        };
    }
    let error = match work(session, job).await {
        Ok(Planned::Change(change)) => match write(session, job, &change).await {
            Ok(outcome) => return outcome,
            Err(error) => StepError::Queue(error),
        },
        Ok(Planned::Written(outcome)) => return outcome,
        Err(error) => error,
    };
    match error {
        StepError::Permanent(why) => fail_here(session, job, &why).await,
        // Estimating fails no job for what may pass, for however short a time others are tried.
        StepError::Temporary { why, after } | StepError::Away { why, after } if job.state == JobState::Estimating => {
            postpone(session, job, &why, after).await
        }
        StepError::Temporary { why, after } | StepError::Away { why, after } => delay(session, job, &why, after).await,
        StepError::Busy(why) => wait_for_host(session, job, &why).await,
        StepError::NoExtension(why) => wait_for_extension(session, job, &why).await,
        StepError::NoRoom => match session.queue.unlock_job(job).await {
            Ok(_) => {
                // From now on it is looked at in each round.
                session.put_down(job.id());
                session.wake_after(Daemon::Provisioning, ROUND);
                StepOutcome::Released(Ended::Delayed)
            }
            Err(error) => give_up(session, job, &error).await,
        },
        StepError::Queue(error) => give_up(session, job, &error).await,
    }
}

/// Whether the deposit of a job was withdrawn before.
async fn is_withdrawn(session: &Arc<Session>, job: &LockedJob) -> Result<bool, StepError> {
    // What is wrong with its configuration is for its step to say.
    let (Ok(batch), Ok(spec)) = (job.job.batch(), JobSpec::of(&job.job)) else { return Ok(false) };
    withdrawal::is_withdrawn_before(session, batch, spec.batch_uuid).await
}

/// What a step leads to.
enum Planned {
    /// This change is to be written.
    Change(JobChange),
    /// It is written already.
    Written(StepOutcome),
}

async fn work(session: &Session, job: &mut LockedJob) -> Result<Planned, StepError> {
    let services = &session.services;
    let fail_file = services.working.fail_file(job.state);
    if let Some(name) = fail_file.map_err(|error| StepError::working("look for FAIL files", &error))? {
        return Err(StepError::Permanent(format!("FAIL file exists: {name}")));
    }
    // Without its configuration and its profile: where daemons of others come next, it may be one of theirs.
    if job.state == JobState::Provisioning {
        return provision(session, job).await.map(Planned::Written);
    }
    let known = JobSpec::of(&job.job).map_err(StepError::Permanent);
    let known = known.and_then(|spec| services.profile(&spec.profile).map(|profile| (spec, profile)));
    let (spec, profile) = match known {
        // It never fails: a later state says what is wrong with the configuration.
        Err(_) if job.state == JobState::Estimating => {
            return Ok(Planned::Change(estimating::estimated(&job.job, &services.settings.space, None)));
        }
        known => known?,
    };
    let directory = services.working.job(&spec);
    let at_work =
        JobAtWork { services, queue: &session.queue, fence: &session.fence, job, spec: &spec, profile, directory };
    step(&at_work).await.map(Planned::Change)
}

/// Lets a job pass that there is room for: its change and its grant are written together.
async fn provision(session: &Session, job: &mut LockedJob) -> Result<StepOutcome, StepError> {
    for _ in 0..GRANT_ATTEMPTS {
        let (change, mut grants) = provisioning::grant(&session.services, &session.queue, &job.job).await?;
        let mut taken = job.clone();
        let outcome = write(session, &mut taken, &change).await;
        let is_again = provisioning::settle(&mut grants, &outcome);
        drop(grants);
        match outcome {
            Ok(outcome) => {
                *job = taken;
                return Ok(outcome);
            }
            Err(_) if is_again => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(StepError::temporary("other processes keep changing the grants"))
}

/// Writes the change of a step that is done, and keeps the lock where this process goes on with the job.
async fn write(session: &Session, job: &mut LockedJob, change: &JobChange) -> Result<StepOutcome, Error> {
    let queue = &session.queue;
    let next = job.state.success().and_then(Daemon::of_state);
    let next = next.filter(|next| *next != Daemon::Storing || !session.waits_for_store(&job.job));
    let next = next.and_then(|next| session.worker_of(next));
    if let Some(permit) = next {
        through!(queue, queue.step_job(job, change, now()))?;
        return Ok(StepOutcome::Kept(permit));
    }
    let changed = through!(queue, queue.finish_job(job, change, now()))?;
    session.left(job, &changed);
    Ok(StepOutcome::Released(Ended::Done))
}

/// Gives a job up that another changed, whose lock was broken, or that cannot be written.
async fn give_up(session: &Session, job: &LockedJob, error: &Error) -> StepOutcome {
    warn!(job = %job.id(), state = %job.state, %error, "stopped working on a job");
    let queue = &session.queue;
    if let Err(error) = through!(queue, queue.unlock_job(job)) {
        warn!(job = %job.id(), %error, "cannot release the lock of a job; it ends with the session");
    }
    // Where it is now it may have come while it was at work here, when its arrival woke no daemon.
    session.lose(job.id());
    session.wake_all();
    StepOutcome::Released(Ended::Lost)
}

/// Fails a job, unless its files are on another volume: it was taken before that volume was known here.
async fn fail_here(session: &Session, job: &LockedJob, why: &str) -> StepOutcome {
    match session.is_elsewhere(job.state, job.id()).await {
        Ok(false) => return fail(session, job, why).await,
        Ok(true) => {
            info!(job = %job.id(), state = %job.state, why, "left a job to processes on the volume with its files");
        }
        Err(error) => return give_up(session, job, &error).await,
    }
    match session.queue.unlock_job(job).await {
        Ok(_) => StepOutcome::Released(Ended::Delayed),
        Err(error) => give_up(session, job, &error).await,
    }
}

/// Fails a job.
async fn fail(session: &Session, job: &LockedJob, why: &str) -> StepOutcome {
    let (queue, why) = (&session.queue, step::message(why));
    if let Err(error) = notify::failed(&session.services, &session.fence, job, &why).await {
        let why = format!("{why}; the callback cannot be queued yet: {}", error.sentence());
        return postpone(session, job, &why, None).await;
    }
    warn!(job = %job.id(), state = %job.state, %why, "job failed");
    match through!(queue, queue.finish_job(job, &JobChange::failure(&why), now())) {
        Ok(changed) => {
            session.left(job, &changed);
            StepOutcome::Released(Ended::Failed)
        }
        Err(error) => give_up(session, job, &error).await,
    }
}

/// Gives a job back, to be tried again later; one that was tried for too long fails.
async fn delay(session: &Session, job: &LockedJob, why: &str, after: Option<Duration>) -> StepOutcome {
    let (settings, now) = (&session.services.settings, now());
    let (since, attempts) = tried(job, now);
    if now.duration_since(since).unsigned_abs() >= settings.retry_within {
        let why = format!("{why} (after {} attempts since {})", attempts + 1, moment(since));
        return fail(session, job, &why).await;
    }
    postpone(session, job, why, after).await
}

/// Since when a job is tried in its state, and how often it was. What it waited before its first attempt counts for
/// nothing.
fn tried(job: &LockedJob, now: Timestamp) -> (Timestamp, u32) {
    let before = job.retry.as_ref().filter(|retry| retry.attempts > 0);
    before.map_or((now, 0), |retry| (retry.since, retry.attempts))
}

/// Gives a job back, to be tried again after a pause.
async fn postpone(session: &Session, job: &LockedJob, why: &str, after: Option<Duration>) -> StepOutcome {
    let (since, attempts) = tried(job, now());
    let pause = session.services.settings.pause(attempts).max(after.unwrap_or_default());
    give_back(session, job, why, (since, attempts + 1), pause).await
}

/// Gives a job back that waits for a connection to a host, which is no attempt. The longer it has waited, the longer is
/// the next pause: those who wait keep few workers busy with looking, however many they are.
async fn wait_for_host(session: &Session, job: &LockedJob, why: &str) -> StepOutcome {
    let (now, first) = (now(), session.services.settings.retry_first);
    let (since, attempts) = job.retry.as_ref().map_or((now, 0), |retry| (retry.since, retry.attempts));
    let waited = now.duration_since(since).unsigned_abs();
    let pause = waited.clamp(first, MOST_BUSY.max(first));
    // Behind an attempt that failed, the time in which others may fail does not go on meanwhile.
    let since = if attempts == 0 { since } else { since.checked_add(pause).unwrap_or(since) };
    give_back(session, job, why, (since, attempts), pause).await
}

/// Gives a job back that waits for room. It has not failed, and the time in which it may fail begins behind that.
async fn wait_for_extension(session: &Session, job: &LockedJob, why: &str) -> StepOutcome {
    let (now, pause) = (now(), session.services.settings.pause(0));
    let waits_since = job.retry.as_ref().and_then(|retry| retry.waits_since).or(Some(now));
    let not_before = now.checked_add(pause).unwrap_or(Timestamp::MAX);
    let retry = Retry { version: 0, since: now, attempts: 1, not_before, waits_since, why: step::message(why) };
    put_back(session, job, &retry, pause).await
}

/// Gives a job back, with how often it was tried since when; no daemon takes it before a pause is over.
async fn give_back(
    session: &Session,
    job: &LockedJob,
    why: &str,
    (since, attempts): (Timestamp, u32),
    pause: Duration,
) -> StepOutcome {
    let not_before = now().checked_add(pause).unwrap_or(Timestamp::MAX);
    let retry = Retry { version: 0, since, attempts, not_before, waits_since: None, why: step::message(why) };
    put_back(session, job, &retry, pause).await
}

/// Gives a job back with a note of why; no daemon takes it before the pause is over that the note has.
async fn put_back(session: &Session, job: &LockedJob, retry: &Retry, pause: Duration) -> StepOutcome {
    let not_before = retry.not_before;
    info!(job = %job.id(), state = %job.state, why = %retry.why, not_before = %not_before, "will retry the job later");
    match session.queue.delay_job(job, retry).await {
        Ok(()) => {
            session.delayed(job.state, pause);
            StepOutcome::Released(Ended::Delayed)
        }
        Err(error) => give_up(session, job, &error).await,
    }
}

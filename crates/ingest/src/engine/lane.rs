//! Taking the jobs of one state.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use queuekeeper_queue::state::{JobState, State as _};
use queuekeeper_queue::{Error, JobPoll};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::warn;

use super::session::{ROUND, Session};
use super::worker;
use crate::clock::now;
use crate::daemon::Daemon;
use crate::grants::GrantRequest;
use crate::step::StepError;
use crate::steps::provisioning;

/// How many jobs that wait for space are read at a time.
const AT_A_TIME: usize = 64;

/// How long a list of jobs is taken to have the most urgent ones first.
const FRESH: Duration = Duration::from_secs(1);

/// Takes jobs of a state whenever there are some and a worker is free, until it is dropped.
pub(super) async fn take(session: Arc<Session>, daemon: Daemon, state: JobState) {
    loop {
        let mut is_retried = false;
        if session.may_take(daemon)
            && let Err(error) = poll(&session, daemon, state).await
        {
            warn!(%state, %error, "cannot acquire jobs");
            is_retried = error.may_be_retried();
        }
        session.pause_after_look(daemon, is_retried).await;
    }
}

async fn poll(session: &Arc<Session>, daemon: Daemon, state: JobState) -> Result<(), Error> {
    let (mut poll, mut listed) = (list(session, state).await?, Instant::now());
    loop {
        // A worker first: what is locked is worked on at once.
        let Some(permit) = session.worker(daemon, !poll.is_at_end()).await else { return Ok(()) };
        if listed.elapsed() > FRESH {
            // More urgent jobs may have come while all workers were at work.
            (poll, listed) = (list(session, state).await?, Instant::now());
        }
        if !session.may_take(daemon) {
            return Ok(());
        }
        let Some(job) = poll.next_if(now(), |job| session.is_wanted(state, job)).await? else { break };
        session.spawn(worker::carry(Arc::clone(session), job, permit));
    }
    if state == JobState::Storing {
        session.count_passed();
    }
    // Those of another process, or from before this one began, have no timer here.
    let next = poll.delayed.values().map(|retry| retry.not_before).min();
    if let Some(next) = next {
        let pause = next.duration_since(now()).try_into().unwrap_or_default();
        session.delayed(state, Duration::min(pause, session.services.settings.look_again));
    }
    Ok(())
}

/// Lists the jobs of a state, without those that are at work here, known to wait for their stores, or on another
/// volume.
async fn list(session: &Session, state: JobState) -> Result<JobPoll, Error> {
    let is_storing = state == JobState::Storing;
    if is_storing {
        session.look_at_holds().await?;
    }
    let mut poll = session.queue.poll_jobs(state).await?;
    if let Some(daemon) = Daemon::of_state(state) {
        session.has_listed(daemon, poll.jobs().count());
    }
    poll.retain(|job| !(session.carries(job) || is_storing && session.is_passed(job)));
    if state.has_content() && !poll.is_at_end() {
        // After the list: the grants of all that are on it are written.
        let grants = session.grants_everywhere().await?;
        poll.retain(|job| !grants.passes_over(state, job));
    }
    Ok(poll)
}

/// Gives jobs in Provisioning room, until it is dropped: each round looks at all that wait.
pub(super) async fn provide(session: Arc<Session>) {
    let Some(workers) = session.workers(Daemon::Provisioning) else { return };
    let mut swept: Option<Instant> = None;
    loop {
        let mut longest = session.services.settings.look_again;
        if session.may_take(Daemon::Provisioning) {
            if swept.is_none_or(|swept| swept.elapsed() >= longest) {
                swept = Some(Instant::now());
                if let Err(error) = find_ended(&session).await {
                    warn!(%error, "cannot read the jobs that were granted working storage");
                }
            }
            let waiting = round(&session, &workers).await;
            session.is_room_wanted.store(!matches!(waiting, Ok(0)), Ordering::Relaxed);
            match waiting {
                Ok(0) => {}
                Ok(_) => longest = ROUND,
                Err(error) => {
                    longest = ROUND;
                    warn!(%error, "cannot read the jobs that wait for space");
                }
            }
        }
        session.pause(Daemon::Provisioning, longest).await;
    }
}

/// Ends the grants of jobs that ended elsewhere: in a process that was killed, by an operator, or purged. Of the others
/// it finds out how much those have that were downloaded, by whichever process.
async fn find_ended(session: &Session) -> Result<(), StepError> {
    let (grants, queue) = (&session.services.grants, &session.queue);
    let granted: Vec<_> = grants.lock(queue).await?.jobs().collect();
    let mut downloaded = HashMap::new();
    let read = |job| async move { (job, queue.load_job(job).await) };
    let mut reads = stream::iter(granted.into_iter().map(read)).buffered(AT_A_TIME);
    while let Some((job, found)) = reads.next().await {
        match found {
            Err(Error::Missing(_)) => grants.ended(job),
            Err(error) => return Err(error.into()),
            Ok(found) => match found.state() {
                Some(JobState::Failed) if session.keeps_volume(&found) => grants.failed(job),
                Some(state) if !state.is_worked_on() => grants.ended(job),
                Some(state) if state.is_downloaded() => {
                    downloaded.extend(found.space_needed().ok().flatten().map(|bytes| (job, bytes)));
                }
                Some(_) | None => {}
            },
        }
    }
    drop(reads);
    grants.set_downloaded(downloaded);
    Ok(())
}

/// One round; the answer is how many jobs wait.
async fn round(session: &Arc<Session>, workers: &Arc<Semaphore>) -> Result<usize, StepError> {
    let (services, queue) = (&session.services, &session.queue);
    let mut poll = list(session, JobState::Provisioning).await?;
    let ids: Vec<_> = poll.jobs().collect();
    if !ids.is_empty() {
        services.grants.refresh().await;
    }
    remove_ended(session).await?;
    let mut loads = stream::iter(ids.into_iter().map(|id| queue.load_job(id))).buffered(AT_A_TIME);
    let mut waiting: Vec<GrantRequest> = Vec::new();
    let mut elsewhere = BTreeSet::new();
    while let Some(loaded) = loads.next().await {
        match loaded {
            Ok(job) if !provisioning::may_be_here(&job, services.working.volume()) => drop(elsewhere.insert(job.id)),
            Ok(job) if job.lock().is_none() => waiting.push(provisioning::grant_request(&job)),
            Ok(_) | Err(Error::Missing(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    drop(loads);
    let decided = {
        let grants = services.grants.lock(queue).await?;
        let decided = grants.decide(&services.working, &waiting, now())?;
        services.metrics.space(grants.total(), decided.waiting.len());
        decided
    };
    let chosen: Vec<_> =
        decided.passed.iter().map(|(job, _)| *job).chain(decided.failed.iter().map(|(job, _)| *job)).collect();
    let fail_file = services.working.fail_file(JobState::Provisioning);
    let all_fail = fail_file.map_err(|error| StepError::working("look for FAIL files", &error))?.is_some();
    poll.retain(|job| (all_fail || chosen.contains(&job)) && !elsewhere.contains(&job));
    loop {
        let Ok(permit) = Arc::clone(workers).acquire_owned().await else { break };
        let Some(job) = poll.next(now()).await? else { break };
        session.spawn(worker::carry(Arc::clone(session), job, permit));
    }
    Ok(decided.waiting.len())
}

/// Removes the grants of the jobs of ours that have ended.
async fn remove_ended(session: &Session) -> Result<(), StepError> {
    session.removal_begins();
    loop {
        let mut grants = session.services.grants.lock(&session.queue).await?;
        let Some(transaction) = grants.remove_ended() else { return Ok(()) };
        match session.queue.commit(&transaction).await {
            Ok(_) => {
                grants.committed();
                return Ok(());
            }
            // Another process has changed them meanwhile.
            Err(Error::Conflict(_)) => grants.refused(),
            Err(error) => {
                grants.refused();
                return Err(error.into());
            }
        }
    }
}

//! What keeps a state, and so each job that waits in it, from moving.

use jiff::{SignedDuration, Timestamp};

use super::{Cause, CauseKind};
use crate::mirror::FoundFault;
use crate::mirror::{Granted, PauseSituation, Pool, QueueHead, StateSituation, Volume};
use crate::words::{ago, count, counted, percent, quoted, session, size};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::state::State;

/// How many jobs that wait for space fill a daemon's pool.
pub(super) const POOL: u64 = 5;

/// The ingest queue is paused. `what` is what that means for the item, in a sentence.
pub(super) fn paused(pause: &PauseSituation, now: Timestamp, what: &str) -> Cause {
    let sentence = match pause.since {
        Some(since) => format!("The ingest queue has been paused for {}.", ago(since, now)),
        None => "The ingest queue is paused.".to_owned(),
    };
    Cause::new(CauseKind::QueuePaused, sentence)
        .evidence(format!("{}{what}", pause.requested()))
        .fix("Unpause the ingest queue once the reason for the pause is resolved.")
        .since(pause.since)
        .items([Path::QueueLock(queuekeeper_queue::path::QueueName::Ingest)], 1)
}

/// How full the working storage is, of how much.
pub(super) fn storage(volume: &Volume) -> String {
    let used = volume.size_bytes.saturating_sub(volume.free_bytes);
    format!("{} of {} used", size(used), size(volume.size_bytes))
}

/// What helps a job that waits for a grant.
pub(super) const GRANTS_FIX: &str =
    "Free or enlarge working storage. Otherwise, grants end as jobs pass Notify: check that they do.";

/// What is granted of the working storage, and how full it is.
pub(super) fn grants(granted: Option<Granted>, volume: Option<&Volume>) -> String {
    let granted = granted.unwrap_or_default();
    let granted = match granted.jobs {
        0 => "No job has a grant.".to_owned(),
        jobs => {
            format!("{} of {} together.", counted(jobs, "job has a grant", "jobs have grants"), size(granted.bytes))
        }
    };
    match volume {
        Some(volume) => format!("{granted} {}, limit {}.", storage(volume), percent(volume.threshold)),
        None => granted,
    }
}

/// Daemons whose pools are full of jobs that wait for space.
pub(super) fn pool_full(state: &StateSituation, volume: Option<&Volume>, now: Timestamp) -> Option<Cause> {
    let full: Vec<&Pool> = state.pools.iter().filter(|pool| pool.jobs >= POOL).collect();
    let first = full.first()?;
    let waiting: u64 = full.iter().map(|pool| pool.jobs).sum();
    let sentence = if full.len() == 1 {
        "One daemon takes no more jobs: its pool is full of jobs that wait for working storage.".to_owned()
    } else {
        format!(
            "{} daemons take no more jobs: their pools are full of jobs that wait for working storage.",
            count(full.len() as u64)
        )
    };
    let unseen = state.jobs.saturating_sub(state.locked);
    let full_of = volume.map(|volume| format!(" {}.", storage(volume))).unwrap_or_default();
    let evidence = format!(
        "Session {} has kept {} of them locked for {}. It keeps a job while that job would bring storage above the limit, so it \
         takes none of the other {}.{full_of}",
        session(first.session, first.address.as_deref()),
        count(first.jobs),
        ago(first.since, now),
        counted(unseen, "job", "jobs"),
    );
    let items = full.iter().flat_map(|pool| pool.items.iter().copied()).map(Path::Job);
    let cause = Cause::new(CauseKind::PoolFull, sentence).evidence(evidence).fix(
        "Free or enlarge working storage. Otherwise, space is freed as jobs pass Notify. Holding a collection keeps \
         further jobs of it from arriving, but frees no daemon.",
    );
    Some(cause.since(Some(first.since)).items(items, waiting))
}

/// The entry at the head that ends every poll.
pub(super) fn head_blocked(state: &StateSituation, head: &QueueHead) -> Cause {
    let name = match &head.entry {
        Path::Entry(_, entry) => entry.to_string(),
        other => other.to_string(),
    };
    let what = match (head.fault, head.job_state) {
        (Fault::OrphanEntry, Some(of)) => format!("The orphan entry {name}, whose job is in {of},"),
        (Fault::OrphanEntry, None) => format!("The orphan entry {name}"),
        (Fault::UnfinishedCreation, _) => format!("The entry {name}, whose job was never completely created,"),
        (Fault::UnloadableJob, _) => format!("The entry {name}, whose job the daemons cannot load,"),
        (fault, _) => format!("The entry {name} ({})", fault.title()),
    };
    // It is one of the jobs of the state itself, but for the entry of a job that is elsewhere.
    let own = u64::from(head.job_state == Some(state.state));
    let behind = match state.jobs.saturating_sub(state.locked).saturating_sub(own) {
        0 => String::new(),
        1 => " and does not reach the job behind it".to_owned(),
        jobs => format!(" and reaches none of the {} jobs behind it", count(jobs)),
    };
    Cause::new(CauseKind::HeadBlocked, format!("{what} blocks {}.", state.state))
        .evidence(format!("A Java daemon that takes it ends its poll there{behind}. Daemons of queuekeeper skip it."))
        .fix(head.fault.fix_of(&Path::Job(head.job)))
        .since(Some(head.since))
        .items([head.entry.clone(), Path::Job(head.job)], 2)
}

fn untaken(jobs: u64) -> String {
    match jobs {
        1 => "Its only job is not locked.".to_owned(),
        jobs => format!("None of its {} jobs is locked.", count(jobs)),
    }
}

/// No daemon takes jobs of a state, which explains all else that could be said of it.
fn no_daemon(state: &StateSituation, found: &FoundFault, now: Timestamp) -> Cause {
    let (sentence, evidence) = match state.taken.max(state.flow.last_left) {
        Some(seen) => {
            (format!("No daemon has taken a job from {} for {}.", state.state, ago(seen, now)), untaken(state.jobs))
        }
        None => (
            format!("No daemon takes jobs from {}.", state.state),
            format!("{} No daemon has taken one since queuekeeper started to watch.", untaken(state.jobs)),
        ),
    };
    Cause::new(CauseKind::Fault(Fault::NoDaemon), sentence)
        .evidence(evidence)
        .fix(found.fix)
        .since(Some(found.since))
        .items([Path::StateFolder(state.state.into())], 1)
}

/// How long no daemon was seen, before that is said of a state: a process that is restarted has workers again by then,
/// and the daemons of other programs look at a state every five seconds.
const UNSERVED: SignedDuration = SignedDuration::from_secs(15);

/// No process has workers for a state, and no daemon was seen to take its jobs: known sooner than that none comes.
fn no_workers(state: &StateSituation, now: Timestamp) -> Option<Cause> {
    let is_paused = state.pause.is_some() && !state.state.continues_when_paused();
    let is_unserved = state.is_ours && state.workers == 0 && state.jobs > 0 && !is_paused;
    let seen = state.unserved.filter(|_| is_unserved)?;
    let since = seen.max(state.oldest?);
    if now.duration_since(since) < UNSERVED {
        return None;
    }
    let cause = Cause::new(CauseKind::NoWorkers, format!("No process of queuekeeper has workers for {}.", state.state))
        .evidence(format!("{} No daemon has been seen for {}.", untaken(state.jobs), ago(seen, now)))
        .fix("Start queuekeeper ingest with daemons for this state: --daemons, --workers.");
    Some(cause.since(Some(since)).items([Path::StateFolder(state.state.into())], 1))
}

/// Pending jobs of a held collection.
pub(super) fn backlog(state: &StateSituation) -> Option<Cause> {
    let backlog = state.backlog.as_ref()?;
    let name = quoted(&backlog.collection);
    let sentence = match backlog.jobs {
        1 => {
            format!(
                "1 pending job of the held collection {name} is moved to Held when its turn comes, which takes one poll."
            )
        }
        jobs => format!(
            "{} pending jobs of the held collection {name} are moved to Held when their turn comes, one per poll, and delay all jobs behind them.",
            count(jobs)
        ),
    };
    Some(
        Cause::new(CauseKind::HeldBacklog, sentence)
            .fix("Release the collection, or wait until its jobs have been moved to Held.")
            .items([collection_lock(&backlog.collection)], 1),
    )
}

/// Stores that are held. Which store keeps the objects of a collection stands in its profile, which is not in the
/// queue.
pub(super) fn stores_held(state: &StateSituation, now: Timestamp) -> impl Iterator<Item = Cause> {
    state.held_stores.iter().map(move |(store, pause)| {
        let name = quoted(store);
        let sentence = match pause.since {
            Some(since) => format!("The store {name} has been held for {}.", ago(since, now)),
            None => format!("The store {name} is held."),
        };
        let effect = "Jobs of collections that are kept in it wait in Storing; jobs for other stores continue.";
        Cause::new(CauseKind::StoreHeld, sentence)
            .evidence(format!("{}{effect}", pause.requested()))
            .fix("Release the store once the reason for the hold is resolved.")
            .since(pause.since)
            .items(Path::store_hold(store), 1)
    })
}

/// The lock that holds a collection.
pub(super) fn collection_lock(collection: &str) -> Path {
    Path::NamedLock(queuekeeper_queue::path::LockFolder::Collections, collection.into())
}

/// What keeps a state that is worked on from moving, the most decisive first; the pause is the caller's.
pub(super) fn obstacles(state: &StateSituation, volume: Option<&Volume>, now: Timestamp) -> Vec<Cause> {
    if let Some(found) = state.faults.iter().find(|found| found.fault == Fault::NoDaemon) {
        return vec![no_daemon(state, found, now)];
    }
    if let Some(cause) = no_workers(state, now) {
        return vec![cause];
    }
    let mut causes: Vec<Cause> = Vec::new();
    let folder = state.faults.iter().filter(|found| found.fault != Fault::StuckState);
    causes.extend(folder.map(Cause::of_fault));
    causes.extend(pool_full(state, volume, now));
    // Where jobs leave the state all the same, it blocks nothing, whatever it should do.
    let blocks = |head: &&QueueHead| state.flow.last_left.is_none_or(|left| left <= head.since);
    causes.extend(state.head.as_ref().filter(blocks).map(|head| head_blocked(state, head)));
    let is_running = state.pause.is_none() || state.state.continues_when_paused();
    if is_running && causes.is_empty() {
        causes.extend(state.faults.iter().filter(|found| found.fault == Fault::StuckState).map(Cause::of_fault));
    }
    causes.extend(backlog(state));
    causes.extend(stores_held(state, now));
    causes
}

/// With so many bytes more, how full storage would be.
pub(super) fn would_be(volume: &Volume, bytes: u64) -> String {
    format!(
        "With its {}, working storage would be {} full; the limit is {}.",
        size(bytes),
        above(volume.used_with(bytes), volume.threshold),
        percent(volume.threshold)
    )
}

/// A part, so that it is seen to be above a limit where it is.
fn above(part: f64, limit: f64) -> String {
    match percent(part) {
        rounded if part > limit && rounded == percent(limit) => format!("more than {rounded}"),
        rounded => rounded,
    }
}

//! What keeps a state, and so each job that waits in it, from moving.

use std::time::Duration;

use jiff::Timestamp;

use super::facts::{Head, Pause, Pool, StateSituation, Volume};
use super::{Cause, CauseKind};
use crate::mirror::words::{ago, count, counted, percent, quoted, session, size};
use crate::queue::fault::Fault;
use crate::queue::path::Path;
use crate::queue::state::{JobState, State};

/// How many jobs that wait for space fill a daemon's pool.
pub(super) const POOL: u64 = 5;

/// After this time without a daemon having taken a job it is said that none does: ten polls.
const UNLOOKED: Duration = Duration::from_mins(5);

/// Whether the daemons that serve a state stop while the ingest queue is paused.
pub(super) fn is_paused_with_the_queue(state: JobState) -> bool {
    // The inventory, which records objects, does not ask.
    is_worked_on(state) && state != JobState::Recording
}

/// Whether daemons take jobs of a state.
pub(super) fn is_worked_on(state: JobState) -> bool {
    state.success().is_some() && state != JobState::Held
}

/// The ingest queue is paused. `what` says what that means for whoever asks.
pub(super) fn paused(pause: &Pause, now: Timestamp, what: &str) -> Cause {
    let sentence = match pause.since {
        Some(since) => format!("The ingest queue is paused for {}.", ago(since, now)),
        None => "The ingest queue is paused.".to_owned(),
    };
    Cause::new(CauseKind::QueuePaused, sentence)
        .evidence(format!("{}{what}", ordered(pause)))
        .remedy("Release the ingest queue, once the reason for the pause is gone.")
        .since(pause.since)
        .items([Path::QueueLock(crate::queue::path::Queue::Ingest)], 1)
}

/// Who ordered it and why, where the lock says so; with a space behind it.
pub(super) fn ordered(pause: &Pause) -> String {
    match (pause.who.trim().is_empty(), pause.why.trim().is_empty()) {
        (true, true) => String::new(),
        (false, true) => format!("By {}. ", quoted(&pause.who)),
        (true, false) => format!("Because of {}. ", quoted(&pause.why)),
        (false, false) => format!("By {}, because of {}. ", quoted(&pause.who), quoted(&pause.why)),
    }
}

/// How full the working storage is, of how much.
pub(super) fn storage(volume: &Volume) -> String {
    let used = volume.size_bytes.saturating_sub(volume.free_bytes);
    format!("{} of {} are used", size(used), size(volume.size_bytes))
}

/// Daemons whose pools are full of jobs that wait for space.
pub(super) fn pool_full(state: &StateSituation, volume: Option<&Volume>, now: Timestamp) -> Option<Cause> {
    let full: Vec<&Pool> = state.pools.iter().filter(|pool| pool.jobs >= POOL).collect();
    let first = full.first()?;
    let waiting: u64 = full.iter().map(|pool| pool.jobs).sum();
    let sentence = if let [pool] = full[..] {
        format!("{} jobs wait for working storage inside one daemon and fill its pool.", count(pool.jobs))
    } else {
        format!("{} jobs wait for working storage and fill the pools of {} daemons.", count(waiting), full.len())
    };
    let unseen = state.jobs.saturating_sub(state.locked);
    let full_of = volume.map(|volume| format!(" {}.", storage(volume))).unwrap_or_default();
    let which = if full.len() == 1 { "them".to_owned() } else { format!("{} of them", count(first.jobs)) };
    let evidence = format!(
        "Session {} has held {which} for {} and lets none go while it would bring storage above the limit, so it looks at \
         none of the other {}.{full_of}",
        session(first.session),
        ago(first.since, now),
        counted(unseen, "job", "jobs"),
    );
    let items = full.iter().flat_map(|pool| pool.items.iter().copied()).map(Path::Job);
    let cause = Cause::new(CauseKind::PoolFull, sentence).evidence(evidence).remedy(
        "Free working storage, or enlarge it; it comes free by itself only as jobs pass Notify. Holding the collection \
         whose jobs need the most lets others through.",
    );
    Some(cause.since(Some(first.since)).items(items, waiting))
}

/// The entry at the head that ends every poll.
pub(super) fn head_blocked(state: &StateSituation, head: &Head) -> Cause {
    let name = match &head.entry {
        Path::Entry(_, entry) => entry.to_string(),
        other => other.to_string(),
    };
    let what = match (head.fault, head.job_state) {
        (Fault::OrphanEntry, Some(of)) => format!("The orphan entry {name}, whose job is in {of},"),
        (Fault::OrphanEntry, None) => format!("The orphan entry {name}"),
        (Fault::UnfinishedCreation, _) => format!("The entry {name}, whose job was never finished,"),
        (_, _) => format!("The entry {name}, whose job the daemons cannot load,"),
    };
    let others = state.jobs.saturating_sub(state.locked);
    Cause::new(CauseKind::HeadBlocked, format!("{what} starves {}.", state.state))
        .evidence(format!(
            "Every poll takes it first and ends there, so none of the {} that wait is looked at.",
            counted(others, "job", "jobs")
        ))
        .remedy(head.fault.remedy())
        .since(Some(head.since))
        .items([head.entry.clone(), Path::Job(head.job)], 2)
}

/// Nobody takes jobs, and nothing else explains it.
pub(super) fn nobody_looks(state: &StateSituation, now: Timestamp) -> Option<Cause> {
    let waits = state.oldest.is_some_and(|oldest| is_over(oldest, now));
    let seen = state.taken.max(state.flow.last_left);
    if state.locked > 0 || state.jobs == 0 || !waits || seen.is_some_and(|seen| !is_over(seen, now)) {
        return None;
    }
    let jobs = counted(state.jobs, "job", "jobs");
    let cause = match seen {
        Some(seen) => Cause::new(
            CauseKind::NobodyLooks,
            format!("No daemon has taken a job from {} for {}.", state.state, ago(seen, now)),
        )
        .evidence(format!("None of its {jobs} is locked.")),
        None => Cause::new(CauseKind::NobodyLooks, format!("No daemon takes jobs from {}.", state.state))
            .evidence(format!("None of its {jobs} is locked, and none was since this was first looked at.")),
    };
    let remedy = "Look whether a daemon of that state runs, and what its log says.";
    Some(cause.remedy(remedy).since(seen).items([Path::StateFolder(state.state.into())], 1))
}

/// Pending jobs of a held collection.
pub(super) fn backlog(state: &StateSituation) -> Option<Cause> {
    let backlog = state.backlog.as_ref()?;
    let name = quoted(&backlog.collection);
    let sentence = format!(
        "{} of the held collection {name} {} set Held one a poll, and {} all behind them.",
        counted(backlog.jobs, "pending job", "pending jobs"),
        if backlog.jobs == 1 { "is" } else { "are" },
        if backlog.jobs == 1 { "delays" } else { "delay" },
    );
    Some(
        Cause::new(CauseKind::HeldBacklog, sentence)
            .remedy("Release the collection, or wait until its jobs are Held.")
            .items([collection_lock(&backlog.collection)], 1),
    )
}

/// The lock that holds a collection.
pub(super) fn collection_lock(collection: &str) -> Path {
    Path::NamedLock(crate::queue::path::LockFolder::Collections, collection.into())
}

/// What keeps a state that is worked on from moving, the most decisive first; the pause is the caller's.
pub(super) fn obstacles(state: &StateSituation, volume: Option<&Volume>, now: Timestamp) -> Vec<Cause> {
    let mut causes: Vec<Cause> = Vec::new();
    let folder = state.faults.iter().filter(|found| found.fault != Fault::StuckState);
    causes.extend(folder.map(Cause::of_fault));
    causes.extend(pool_full(state, volume, now));
    causes.extend(state.head.as_ref().map(|head| head_blocked(state, head)));
    if state.pause.is_none() || !is_paused_with_the_queue(state.state) {
        // A head that ends every poll is never locked for long, so nobody seems to look.
        if causes.is_empty() {
            causes.extend(nobody_looks(state, now));
        }
        if causes.is_empty() {
            causes.extend(state.faults.iter().filter(|found| found.fault == Fault::StuckState).map(Cause::of_fault));
        }
    }
    causes.extend(backlog(state));
    causes
}

fn is_over(since: Timestamp, now: Timestamp) -> bool {
    Duration::try_from(now.duration_since(since)).is_ok_and(|time| time >= UNLOOKED)
}

/// With so many bytes more, how full storage would be.
pub(super) fn would_be(volume: &Volume, bytes: u64) -> String {
    format!(
        "With its {} working storage would be at {}, the limit is {}.",
        size(bytes),
        percent(volume.used_with(bytes)),
        percent(volume.threshold)
    )
}

//! What a diagnosis is made from. Instants are by our own clock, texts out of znodes as they are.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::mirror::faults::FoundFault;
use crate::mirror::history::{Rates, StateFlow};
use crate::mirror::image::Granted;
use crate::words::quoted;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::Path;
use queuekeeper_queue::record::{BatchWait, Retry, WithdrawalNote};
use queuekeeper_queue::state::{BatchState, JobState};

/// How full the working storage is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Volume {
    /// All of it, in bytes.
    pub size_bytes: u64,
    /// What is free, in bytes, with what is reserved for root.
    pub free_bytes: u64,
    /// The part of it, 0 to 1, above which the daemons keep jobs back.
    pub threshold: f64,
    /// How many bytes a job may need and not be kept back; negative above the threshold.
    pub left_bytes: i64,
}

impl Volume {
    /// Which part of it, 0 to 1 and beyond, would be used with so many bytes more.
    #[must_use]
    pub fn used_with(self, bytes: u64) -> f64 {
        1.0 - (self.free_bytes as f64 - bytes as f64) / (self.size_bytes as f64).max(1.0)
    }

    /// Whether the daemons keep a job back that needs so many bytes.
    #[must_use]
    pub fn keeps_back(self, bytes: u64) -> bool {
        i64::try_from(bytes).unwrap_or(i64::MAX) > self.left_bytes
    }
}

/// An admin's action to stop: a paused queue, or a held collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PauseSituation {
    /// Since when; `None` where its lock is not readable.
    pub since: Option<Timestamp>,
    /// Who requested it; empty where that is not said.
    pub who: Box<str>,
    /// Why; likewise.
    pub why: Box<str>,
}

impl PauseSituation {
    /// Who requested it and why, where the lock says so; with a space behind it.
    #[must_use]
    pub fn requested(&self) -> String {
        // A full stop of theirs stands before ours.
        let why = self.why.trim_end_matches(['.', ' ']);
        match (self.who.trim().is_empty(), self.why.trim().is_empty()) {
            (true, true) => String::new(),
            (false, true) => format!("By {}. ", quoted(&self.who)),
            (true, false) => format!("Reason: {}. ", quoted(why)),
            (false, false) => format!("By {}; reason: {}. ", quoted(&self.who), quoted(why)),
        }
    }
}

/// What holds a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobHold {
    /// An operator: the message in which they said why.
    ByOperator(Arc<str>),
    /// The hold on its collection.
    OfCollection(Arc<str>, PauseSituation),
}

/// The lock on something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The session that holds it; 0 for a persistent lock.
    pub session: i64,
    /// From where the session is connected; `None` where the servers do not report it.
    pub address: Option<Arc<str>>,
    /// Since when.
    pub since: Timestamp,
    /// What the same session holds beside it, some of it.
    pub others: Vec<Path>,
    /// How much that is in all.
    pub others_count: u64,
}

/// Where a job is in the order of work of its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePosition {
    /// Entries of higher priority.
    pub more_urgent: u64,
    /// Entries of the same priority that come earlier.
    pub earlier: u64,
    /// Of both, those that a daemon holds already.
    pub locked: u64,
    /// Of both, those of held collections, as far as the first thousand of the state show it. Only Pending jobs have
    /// any.
    pub held_ahead: u64,
}

/// The batch of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchContext {
    /// Its id.
    pub id: BatchId,
    /// Whether it is there.
    pub exists: bool,
    /// Whether a daemon has acquired it.
    pub is_acquired: bool,
    /// Its state; `None` for one that is not known.
    pub state: Option<BatchState>,
    /// When it entered that.
    pub entered: Option<Timestamp>,
}

/// Jobs of one daemon that wait for working storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its session; 0 for persistent locks.
    pub session: i64,
    /// From where the session is connected; `None` where the servers do not report it.
    pub address: Option<Arc<str>>,
    /// How many jobs it holds that the threshold keeps back.
    pub jobs: u64,
    /// Some of them.
    pub items: Vec<JobId>,
    /// Since when the first of them is held.
    pub since: Timestamp,
}

/// The entry that every daemon of a state tries first, where it ends their poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueHead {
    /// The entry.
    pub entry: Path,
    /// Its job.
    pub job: JobId,
    /// The state of that job.
    pub job_state: Option<JobState>,
    /// What is wrong with it.
    pub fault: Fault,
    /// Since when.
    pub since: Timestamp,
}

/// Pending jobs of a held collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// The collection.
    pub collection: Arc<str>,
    /// How many.
    pub jobs: u64,
}

/// What is known of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSituation {
    /// Which.
    pub state: JobState,
    /// Jobs in it.
    pub jobs: u64,
    /// Of these, held by a daemon.
    pub locked: u64,
    /// Of these, held for so short a time that the daemon may give the job back at once, as ours do that find no room
    /// for it; only in Provisioning.
    pub looked_at: u64,
    /// When the job longest in it entered it.
    pub oldest: Option<Timestamp>,
    /// How jobs leave it.
    pub flow: StateFlow,
    /// When a daemon last took a job of it, as far as that was observed.
    pub taken: Option<Timestamp>,
    /// The entry that blocks it.
    pub head: Option<QueueHead>,
    /// The daemons whose jobs wait for working storage, the fullest first; only in Provisioning.
    pub pools: Vec<Pool>,
    /// The held collection with the most Pending jobs; only in Pending.
    pub backlog: Option<Backlog>,
    /// What its untaken jobs need, in bytes; only in Provisioning.
    pub space_needed_bytes: u64,
    /// Since when the ingest queue is paused.
    pub pause: Option<PauseSituation>,
    /// The faults of its folder.
    pub faults: Vec<FoundFault>,
    /// How long its work takes at most, usually.
    pub usual: Duration,
    /// How many workers take jobs of it, in the processes that say so.
    pub workers: u64,
    /// Whether the daemons of queuekeeper work on jobs of this queue: some process has workers for a state that is not
    /// exchanged alone.
    pub is_ours: bool,
    /// Since when no daemon is known to take jobs of it: there are no such workers, and no job of it is locked. At the
    /// most, since the tree was first read.
    pub unserved: Option<Timestamp>,
    /// What is granted of the working storage, where it is granted; only in Provisioning.
    pub granted: Option<Granted>,
    /// The stores that are held; only in Storing.
    pub held_stores: Vec<(Arc<str>, PauseSituation)>,
}

impl StateSituation {
    /// Its jobs that no daemon holds, but for looking at them.
    #[must_use]
    pub fn untaken(&self) -> u64 {
        self.jobs.saturating_sub(self.locked.saturating_sub(self.looked_at))
    }

    /// Whether its jobs wait for grants of working storage, if none has left it for some time: there are daemons that
    /// grant some, some is granted, and neither a pause nor the head of the queue explains it. Whether a worker is free
    /// is of no account: the daemons go on looking at all jobs.
    #[must_use]
    pub fn may_wait_for_grants(&self) -> bool {
        let has_grants = self.granted.is_some_and(|granted| granted.jobs > 0);
        has_grants && self.untaken() > 0 && self.workers > 0 && self.pause.is_none() && self.head.is_none()
    }
}

/// What is known of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSituation {
    /// Its id.
    pub id: JobId,
    /// Its state; `None` where its status is missing, unreadable, or one that we do not know.
    pub state: Option<JobState>,
    /// The status text, where the daemons would reject it.
    pub status_text: Arc<str>,
    /// When it entered its state.
    pub entered: Option<Timestamp>,
    /// Its last successful state.
    pub last_successful: Option<JobState>,
    /// What the daemons said of the last step.
    pub message: Arc<str>,
    /// How many other failed jobs have the same message.
    pub same_message: u64,
    /// How often it was resumed.
    pub retries: u32,
    /// The working storage that it needs, in bytes; 0 where that is unknown.
    pub space_needed_bytes: u64,
    /// The mnemonic of its collection.
    pub collection: Arc<str>,
    /// Since when that is held.
    pub hold: Option<PauseSituation>,
    /// Who holds it.
    pub lock: Option<Holding>,
    /// How long a daemon may hold it in this state, usually.
    pub usual_lock: Duration,
    /// Its own entry in the folder of its state, and its place there.
    pub place: Option<(Path, QueuePosition)>,
    /// Its batch, where it names one.
    pub batch: Option<BatchContext>,
    /// Its faults.
    pub faults: Vec<FoundFault>,
    /// The state that it is in, where that is known.
    pub in_state: Option<StateSituation>,
    /// Why it waits for another attempt, where a daemon gave it back.
    pub retry: Option<Retry>,
    /// How many rows of its batch have their jobs, where it is the last of a batch whose jobs are being created.
    pub expansion: Option<u64>,
    /// How far the withdrawal of its batch is, while that is under way.
    pub withdrawal: Option<WithdrawalNote>,
    /// The volume with its files, where processes of ours take jobs of its state and none of these sees it.
    pub unseen_volume: Option<Arc<str>>,
}

/// What is known of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSituation {
    /// Its id.
    pub id: BatchId,
    /// Its state; `None` for one that is not known.
    pub state: Option<BatchState>,
    /// The status text, where the daemons would reject it.
    pub status_text: Arc<str>,
    /// When it entered its state.
    pub entered: Option<Timestamp>,
    /// What the daemons said of the last step.
    pub message: Arc<str>,
    /// Whether a daemon has acquired it.
    pub is_acquired: bool,
    /// How many jobs are referenced in each folder, in the order of
    /// [`JobOutcome::ALL`](queuekeeper_queue::state::JobOutcome::ALL); `None` for one that is not there.
    pub references: [Option<u32>; 4],
    /// Who holds it.
    pub lock: Option<Holding>,
    /// Of the jobs referenced as not done, those that are Held.
    pub held: u64,
    /// What holds these, some of it; empty where that was not requested.
    pub holds: Vec<JobHold>,
    /// The states that jobs of it are in or have still to pass, along the success path, each with how many are in it.
    pub states: Vec<(Arc<StateSituation>, u64)>,
    /// How fast its jobs end.
    pub rates: Option<Rates>,
    /// Since when the ingest queue is paused.
    pub pause: Option<PauseSituation>,
    /// Its faults.
    pub faults: Vec<FoundFault>,
    /// How many of its rows have their jobs, while these are being created.
    pub expansion: Option<u64>,
    /// Why a daemon of ours gave it back before all its jobs existed, and takes it again later.
    pub waits: Option<BatchWait>,
    /// How far its withdrawal is, while that is under way.
    pub withdrawal: Option<WithdrawalNote>,
}

#[cfg(test)]
mod tests;

//! States that no job leaves.

use super::finding::{FaultFinding, Sink};
use super::item::{by_shape, by_time};
use super::{Fault, Limits};
use crate::path::Path;
use crate::state::{JobState, State};

macro_rules! free_space {
    () => {
        "Free or enlarge working storage. Otherwise, space is freed as jobs pass Notify: check that they do."
    };
}

/// The fix where jobs wait for working storage.
pub const FREE_SPACE: &str = free_space!();

/// What is known of the jobs of one state. Instants are milliseconds by the servers' clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateFacts {
    /// When the job longest in the state entered it; `None` where there is no job.
    pub oldest_ms: Option<i64>,
    /// The same of those that do not wait for a time at which they are tried again.
    pub oldest_due_ms: Option<i64>,
    /// When a job last left the state, as far as that is known; `i64::MIN` if it is not.
    pub left_ms: i64,
    /// When a daemon last took a job of it, likewise.
    pub taken_ms: i64,
    /// How many of its jobs are locked.
    pub locked: u64,
    /// Whether the entry that the daemons try first ends each of their polls.
    pub is_head_blocked: bool,
    /// What an admin has stopped, if anything.
    pub stop: Option<Stop>,
    /// Whether a process says that it takes jobs of the state.
    pub is_served: bool,
}

/// What an admin has stopped, of what takes jobs of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All daemons.
    Paused,
    /// The jobs for a store, which is held.
    StoreHeld,
}

/// Detects whether a state is stuck. `oldest` gives the znodes of the jobs longest in it.
pub fn detect_state(
    state: JobState,
    facts: StateFacts,
    limits: &Limits,
    oldest: &dyn Fn() -> Vec<Path>,
    sink: &mut Sink<'_>,
) {
    let Some(oldest_ms) = facts.oldest_ms.filter(|_| state.is_worked_on() && facts.stop != Some(Stop::Paused)) else {
        return;
    };
    let nodes = || {
        let folder = Path::StateFolder(state.into());
        std::iter::once(folder).chain(oldest()).collect()
    };
    // What a daemon that takes jobs of the state does not take waits for the store. Which store a job is for is not
    // known.
    let is_store_held = facts.stop == Some(Stop::StoreHeld);
    let is_explained = is_store_held && facts.is_served && facts.locked == 0;
    if let Some(due_ms) = facts.oldest_due_ms.filter(|_| !is_explained) {
        let how = "No job has left the state for longer than its work takes.";
        // Beside jobs that wait for the store, one that is at work has been at most since a job was last taken.
        let begun_ms = if is_store_held { facts.taken_ms } else { i64::MIN };
        let since_ms = due_ms.max(facts.left_ms).max(begun_ms);
        sink(by_time(Fault::StuckState, how, since_ms, since_ms, limits.stuck.get(Some(state)), &nodes));
    }
    // A daemon that is refused at the head may never lock anything.
    if facts.locked == 0 && !facts.is_served && !facts.is_head_blocked {
        let how = "Jobs wait in the state, and no daemon takes any.";
        let seen_ms = facts.left_ms.max(facts.taken_ms);
        let finding = by_shape(Fault::NoDaemon, how, limits.no_daemon, Some(oldest_ms.max(seen_ms)), &nodes);
        sink(FaultFinding { mark: seen_ms.cast_unsigned(), ..finding });
    }
}

/// Why no job leaves Provisioning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provisioning {
    /// A locked job needs more space than there is below the threshold.
    WaitingForSpace,
    /// Jobs are locked, and there is enough space for all of them.
    LockedWithSpace,
    /// Jobs are locked, and the space is not known.
    Locked,
    /// A daemon that locks no job while it waits has granted none of them room.
    WaitingForGrant,
    /// No job is locked.
    NoDaemon,
}

impl Provisioning {
    /// The cause. `locked` is what each locked job needs, `space` what a job may need without being kept back, both in
    /// bytes; `None` if the volume is not visible. `is_served` says whether a process grants room to jobs of the state.
    #[must_use]
    pub fn cause(locked: impl IntoIterator<Item = u64>, space: Option<i64>, is_served: bool) -> Self {
        let mut locked = locked.into_iter().peekable();
        if is_served && locked.peek().is_none() {
            return Self::WaitingForGrant;
        }
        let Some(space) = space else {
            return if locked.peek().is_some() { Self::Locked } else { Self::NoDaemon };
        };
        let keeps_back = |needed: u64| i64::try_from(needed).unwrap_or(i64::MAX) > space;
        match (locked.peek().is_some(), locked.any(keeps_back)) {
            (false, _) => Self::NoDaemon,
            (true, true) => Self::WaitingForSpace,
            (true, false) => Self::LockedWithSpace,
        }
    }

    /// What is seen, in a sentence.
    #[must_use]
    pub fn how(self) -> &'static str {
        match self {
            Self::WaitingForSpace => "Jobs are locked and wait for working storage.",
            Self::LockedWithSpace => "Jobs are locked, and there is enough working storage for them.",
            Self::Locked => "Jobs are locked; the working storage is not visible from here.",
            Self::WaitingForGrant => "Jobs wait until working storage is granted to them.",
            Self::NoDaemon => "No job is locked: no daemon takes jobs from the state.",
        }
    }

    /// How it is fixed.
    #[must_use]
    pub fn fix(self) -> &'static str {
        match self {
            Self::WaitingForSpace => {
                concat!(
                    free_space!(),
                    " The daemons check again every five minutes, and five waiting jobs fill a daemon."
                )
            }
            Self::LockedWithSpace => {
                "The daemons check the space every five minutes. After that, look at the log of the daemon that holds \
                 the locks, and restart it if it hangs."
            }
            Self::Locked => "Check how full the working storage is, and the log of the daemon that holds the locks.",
            Self::WaitingForGrant => {
                concat!(free_space!(), " The log of the provisioning daemon shows what each job needs.")
            }
            Self::NoDaemon => "Check whether an ingest daemon is running, and what is at the head of the state.",
        }
    }
}

//! Acquiring work: the next job of a state, batch or access request, locked for us.
//!
//! A poll lists its folder once and then hands out what it finds, in the order in which daemons take it. Items that
//! cannot be processed are skipped and reported, so that nothing at the head of a queue starves what is behind it.
//!
//! A poll is the way to work: it lists and reads a folder once for many items. `Queue::acquire_job` and the like start
//! over each time.
//!
//! A pause that is set while a poll runs takes effect with the next poll, as with the daemons.

use std::collections::VecDeque;

use super::error::{Cause, Conflict, ConflictKind, Error};
use super::lock::{ClaimOutcome, Lock};
use super::path::Path;

mod batches;
mod jobs;
mod requests;

pub use batches::{BatchPoll, Due};
pub use jobs::JobPoll;
pub use requests::RequestPoll;

/// How many items a poll reads at first, and how many at most: most often the first is taken, but behind many locked
/// ones reading few at a time would cost a round trip for each.
const FIRST_WINDOW: usize = 4;
const LAST_WINDOW: usize = 256;

/// Something at the head of a queue that could not be worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedItem {
    /// The queue entry, batch or request.
    pub path: Path,
    /// Why.
    pub reason: SkipReason,
}

/// Why something could not be worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The daemons cannot parse the entry's name, such as `100-jid0000000042`.
    UnreadableEntry,
    /// The entry's job is gone.
    StrayEntry,
    /// The entry's job is in another state, whose name this is.
    OrphanEntry(String),
    /// The daemons cannot load it, and neither do we work on it.
    Unloadable(Error),
    /// It was made so lately, or so badly, that it has no children.
    Unfinished,
    /// Its state does not fit what its other znodes say.
    Contradiction(String),
    /// Its lock was broken, and the worker of ours that held it has neither given it up nor ended.
    StillHeld(Conflict),
    /// We locked it, and the lock was broken before its answer came. It is given up, and the next poll looks at it
    /// again.
    LockBroken,
}

/// The names that a poll has still to look at, taken in growing windows.
#[derive(Debug)]
struct Window<T> {
    waiting: VecDeque<T>,
    size: usize,
}

impl<T> Window<T> {
    fn new(items: impl IntoIterator<Item = T>) -> Self {
        Self { waiting: items.into_iter().collect(), size: FIRST_WINDOW }
    }

    fn next(&mut self) -> Vec<T> {
        let size = self.size.min(self.waiting.len());
        self.size = (self.size * 4).min(LAST_WINDOW);
        self.waiting.drain(..size).collect()
    }
}

/// The outcome of an attempt to lock an item.
enum LockOutcome<T> {
    /// The item is locked.
    Locked(T, Lock),
    /// The item is skipped.
    Skipped(SkipReason),
    /// Another client was faster.
    Missed,
}

impl<T> LockOutcome<T> {
    fn from_claim(outcome: Result<ClaimOutcome<T>, Error>) -> Result<Self, Error> {
        match outcome {
            Ok(ClaimOutcome::Ours(claim, lock)) => Ok(Self::Locked(claim, lock)),
            Ok(ClaimOutcome::Lost(_)) => Ok(Self::Skipped(SkipReason::LockBroken)),
            Err(Error::Conflict(conflict)) if conflict.path.is_held() => {
                Ok(Self::Skipped(SkipReason::StillHeld(conflict)))
            }
            Err(error) if was_quicker(&error) => Ok(Self::Missed),
            Err(error) => Err(error),
        }
    }
}

/// Whether a refusal to lock an item means that another client was faster, so that the next item is tried.
fn was_quicker(error: &Error) -> bool {
    match error {
        Error::Conflict(conflict) => match conflict.kind {
            ConflictKind::Locked { .. }
            | ConflictKind::Changed { .. }
            | ConflictKind::Moved
            | ConflictKind::Exists { .. } => true,
            ConflictKind::LockLost { .. } | ConflictKind::NotEmpty => false,
        },
        // A connection was lost, and by the time that it could be looked, another had changed the item.
        Error::Missing(_) | Error::Unknown { cause: Cause::ChangedSince, .. } => true,
        Error::Read { .. }
        | Error::Commit { .. }
        | Error::Unknown { .. }
        | Error::Decode { .. }
        | Error::Transition { .. }
        | Error::NotShown { .. }
        | Error::Invalid { .. } => false,
    }
}

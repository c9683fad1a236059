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

use super::error::{Conflict, ConflictKind, Error, RequestFailure};
use super::lock::{ClaimOutcome, Lock};
use super::path::Path;

mod batches;
mod jobs;
mod requests;

pub(crate) use batches::BatchClaim;
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
        Error::Missing(_) | Error::Unknown { cause: RequestFailure::ChangedSince, .. } => true,
        Error::Read { .. }
        | Error::Commit { .. }
        | Error::Unknown { .. }
        | Error::Decode { .. }
        | Error::Transition { .. }
        | Error::Full { .. }
        | Error::NotShown { .. }
        | Error::Invalid { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::testing::stat;

    #[test]
    fn a_window_grows_as_long_as_nothing_is_taken() {
        let mut window = Window::new(0..1_000);
        let sizes: Vec<_> = std::iter::repeat_with(|| window.next().len()).take_while(|size| *size > 0).collect();
        assert_eq!(sizes, [4, 16, 64, 256, 256, 256, 148]);
        assert_eq!(Window::new(7..9).next(), [7, 8]);
    }

    #[test]
    fn an_item_that_another_was_quicker_to_take_is_missed() {
        let since = jiff::Timestamp::UNIX_EPOCH;
        let lock = Path::parse("/jobs/jid0000000001/lock");
        let outcome = |outcome| match LockOutcome::from_claim(outcome) {
            Ok(LockOutcome::Locked(claim, _)) => format!("locked {claim}"),
            Ok(LockOutcome::Skipped(SkipReason::LockBroken)) => "broken".to_owned(),
            Ok(LockOutcome::Skipped(SkipReason::StillHeld(_))) => "held".to_owned(),
            Ok(LockOutcome::Skipped(reason)) => panic!("{reason:?}"),
            Ok(LockOutcome::Missed) => "missed".to_owned(),
            Err(_) => "error".to_owned(),
        };
        let conflict = |path: &Path, kind| outcome(Err(Error::conflict(path.clone(), kind)));
        assert_eq!(outcome(Ok(ClaimOutcome::Ours(1, Lock::from_stat(lock.clone(), &stat())))), "locked 1");
        assert_eq!(outcome(Ok(ClaimOutcome::Lost(1))), "broken");
        for kind in [
            ConflictKind::Locked { session: None, since },
            ConflictKind::Changed { seen: 1, found: 2, since },
            ConflictKind::Moved,
            ConflictKind::Exists { since },
        ] {
            assert_eq!(conflict(&lock, kind.clone()), "missed", "{kind:?}");
            assert_eq!(conflict(&lock.held().unwrap(), kind), "held");
        }
        for kind in [ConflictKind::LockLost { now: None }, ConflictKind::NotEmpty] {
            assert_eq!(conflict(&lock, kind.clone()), "error", "{kind:?}");
        }
        let operation = || "create".to_owned();
        let changed = Error::Unknown { operation: operation(), cause: RequestFailure::ChangedSince };
        let too_large = RequestFailure::TooLarge { bytes: 2, limit: 1 };
        assert_eq!([outcome(Err(Error::Missing(lock.clone()))), outcome(Err(changed))], ["missed"; 2]);
        let unknown = Error::Unknown { operation: operation(), cause: too_large.clone() };
        let refused = Error::Commit { operation: operation(), cause: too_large };
        assert_eq!([outcome(Err(unknown)), outcome(Err(refused))], ["error"; 2]);
    }
}

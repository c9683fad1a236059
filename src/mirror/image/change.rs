//! What a change in the tree meant for the queue.

use std::time::Duration;

use super::row::UNKNOWN_MS;
use crate::mirror::failures::FailureCause;
use queuekeeper_queue::state::{BatchState, JobState, State};

/// Where an item was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mirror) enum ObservedState<S> {
    /// It does not exist, or has no status yet.
    Nowhere,
    /// In a state.
    In(S),
    /// It has a status that we do not know or cannot read.
    Other,
}

impl<S: State> ObservedState<S> {
    /// Where an item of this state is; `None` is a state that we do not know, or none where it has no status.
    pub(in crate::mirror) fn of(state: Option<S>, has_status: bool) -> Self {
        match state {
            Some(state) => Self::In(state),
            None if has_status => Self::Other,
            None => Self::Nowhere,
        }
    }

    /// The value of the labels `from` and `to`.
    pub(in crate::mirror) fn label(self) -> &'static str {
        match self {
            Self::Nowhere => "none",
            Self::In(state) => state.label(),
            Self::Other => "other",
        }
    }
}

/// One sight of a job or batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mirror) struct Observation<S> {
    /// Where it was.
    pub(in crate::mirror) seen: ObservedState<S>,
    /// Since when, in milliseconds by the servers' clock.
    pub(in crate::mirror) entered_ms: i64,
    /// When it was created, likewise.
    pub(in crate::mirror) created_ms: i64,
    /// The version of its status; -1 for none.
    pub(in crate::mirror) version: i32,
}

impl<S> Observation<S> {
    /// The sight of an item that is not there.
    pub(in crate::mirror) const NOWHERE: Self =
        Self { seen: ObservedState::Nowhere, entered_ms: 0, created_ms: UNKNOWN_MS, version: -1 };

    /// Whether what was seen later is another item of the same id: the version of a status only grows while it exists.
    fn is_replaced_by(&self, later: &Self) -> bool {
        let same_version = self.version == later.version;
        let is_behind = later.version < self.version || (same_version && self.entered_ms != later.entered_ms);
        later.version >= 0 && is_behind
    }

    /// How long it took from its creation to the state that it was seen in.
    fn lived(&self) -> Option<Duration> {
        (self.created_ms != UNKNOWN_MS).then(|| elapsed(self.created_ms, self.entered_ms)).flatten()
    }
}

/// The time between two instants in milliseconds; `None` where the second is the earlier one.
pub(super) fn elapsed(from_ms: i64, to_ms: i64) -> Option<Duration> {
    u64::try_from(to_ms.checked_sub(from_ms)?).ok().map(Duration::from_millis)
}

/// What is known of a job that was completed or has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mirror) enum JobEnd {
    /// It was completed.
    Completed {
        /// The time since it was created.
        lived: Option<Duration>,
        /// The working storage that it needed, in bytes; 0 where that is unknown.
        space_needed_bytes: u64,
    },
    /// It has failed.
    Failed(FailureCause),
}

/// What applying a read changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mirror) enum Change {
    /// Nothing: the image had it already.
    Nothing,
    /// Something, but no item changed its state.
    Quiet,
    /// A job changed its state.
    Job {
        /// Where it was.
        from: ObservedState<JobState>,
        /// Where it is.
        to: ObservedState<JobState>,
        /// How long it was in `from`; `None` where it may have been elsewhere between.
        spent: Option<Duration>,
        /// How much of that passed before the lock under which it left; `None` where that lock was not seen.
        waited: Option<Duration>,
        /// How it ended, where `to` is Completed or Failed.
        end: Option<JobEnd>,
        /// Whether its status was created as it is, so that the job has made no step: one that is loaded from a dump.
        is_new: bool,
    },
    /// A job is gone, and another one has its id.
    OtherJob {
        /// Where the old one was.
        from: ObservedState<JobState>,
        /// Where the new one is.
        to: ObservedState<JobState>,
    },
    /// A batch changed its state.
    Batch {
        /// Where it was.
        from: ObservedState<BatchState>,
        /// Where it is.
        to: ObservedState<BatchState>,
        /// The time since it was created, where `to` is Completed.
        lived: Option<Duration>,
    },
    /// A batch is gone, and another one has its id.
    OtherBatch {
        /// Where the old one was.
        from: ObservedState<BatchState>,
        /// Where the new one is.
        to: ObservedState<BatchState>,
    },
}

impl Change {
    /// The change of a job between two sights of it. `end` says how it ended, for its time since creation.
    pub(super) fn of_job(
        from: Observation<JobState>,
        to: Observation<JobState>,
        end: impl FnOnce(JobState, Option<Duration>) -> Option<JobEnd>,
    ) -> Self {
        if from.is_replaced_by(&to) {
            return Self::OtherJob { from: from.seen, to: to.seen };
        }
        if from.seen == to.seen {
            return Self::Nothing;
        }
        // A status is written on a change of state and at no other time: one version is one step.
        let is_one_step = from.version.checked_add(1) == Some(to.version);
        let spent = match (from.seen, to.seen) {
            (ObservedState::In(before), ObservedState::In(after)) if is_one_step && before.may_become(after) => {
                elapsed(from.entered_ms, to.entered_ms)
            }
            (ObservedState::Nowhere | ObservedState::In(_) | ObservedState::Other, _) => None,
        };
        let is_new = from.version < 0 && to.version == 0;
        let end = match to.seen {
            ObservedState::In(state) => end(state, was_seen(from.seen).then(|| to.lived()).flatten()),
            ObservedState::Nowhere | ObservedState::Other => None,
        };
        Self::Job { from: from.seen, to: to.seen, spent, waited: None, end, is_new }
    }

    /// The change of a batch between two sights of it.
    pub(in crate::mirror) fn of_batch(from: Observation<BatchState>, to: Observation<BatchState>) -> Self {
        if from.is_replaced_by(&to) {
            Self::OtherBatch { from: from.seen, to: to.seen }
        } else if from.seen == to.seen {
            Self::Nothing
        } else {
            let is_done = to.seen == ObservedState::In(BatchState::Completed) && was_seen(from.seen);
            Self::Batch { from: from.seen, to: to.seen, lived: is_done.then(|| to.lived()).flatten() }
        }
    }

    /// This change, or [`Change::Quiet`] where something changed beside the state.
    pub(in crate::mirror) fn or_quiet(self, changed: bool) -> Self {
        if self == Self::Nothing && changed { Self::Quiet } else { self }
    }
}

/// Whether an item was there before. One that is first seen where it ended may have been loaded from a dump, and its
/// creation says nothing.
fn was_seen<S: State>(from: ObservedState<S>) -> bool {
    from != ObservedState::Nowhere
}

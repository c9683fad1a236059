//! What a change in the tree meant for the queue.

use std::time::Duration;

use crate::queue::state::{BatchState, JobState, State};

/// Where an item was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mirror) enum Seen<S> {
    /// It does not exist, or has no status yet.
    Nowhere,
    /// In a state.
    In(S),
    /// It has a status that we do not know or cannot read.
    Other,
}

impl<S: State> Seen<S> {
    /// The value of the labels `from` and `to`.
    pub(in crate::mirror) fn label(self) -> &'static str {
        match self {
            Self::Nowhere => "none",
            Self::In(state) => state.label(),
            Self::Other => "other",
        }
    }
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
        from: Seen<JobState>,
        /// Where it is.
        to: Seen<JobState>,
        /// How long it was in `from`; `None` where it may have been elsewhere between.
        spent: Option<Duration>,
    },
    /// A batch changed its state.
    Batch {
        /// Where it was.
        from: Seen<BatchState>,
        /// Where it is.
        to: Seen<BatchState>,
    },
}

impl Change {
    /// The change of a job between two sights of it, with the instants at which it entered each state.
    pub(in crate::mirror) fn of_job(from: Seen<JobState>, to: Seen<JobState>, left_ms: i64, entered_ms: i64) -> Self {
        if from == to {
            return Self::Nothing;
        }
        let spent = match (from, to) {
            (Seen::In(from), Seen::In(to)) if from.may_become(to) => {
                u64::try_from(entered_ms - left_ms).ok().map(Duration::from_millis)
            }
            (Seen::Nowhere | Seen::In(_) | Seen::Other, _) => None,
        };
        Self::Job { from, to, spent }
    }

    /// The change of a batch between two sights of it.
    pub(in crate::mirror) fn of_batch(from: Seen<BatchState>, to: Seen<BatchState>) -> Self {
        if from == to { Self::Nothing } else { Self::Batch { from, to } }
    }

    /// This change, or [`Change::Quiet`] where something changed beside the state.
    pub(in crate::mirror) fn or_quiet(self, changed: bool) -> Self {
        if self == Self::Nothing && changed { Self::Quiet } else { self }
    }
}

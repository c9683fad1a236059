//! What was seen of a job or a batch, as readers get it.

use std::sync::Arc;

use jiff::Timestamp;

use queuekeeper_queue::state::{BatchState, JobState};

/// Something that was seen of a job. At most eight of them are kept a job, for as long as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastEvent {
    /// When, to the second, by our own clock: where the tree says it as the tree says it, else when it was seen.
    pub at: Timestamp,
    /// What.
    pub what: Happening,
    /// The message of a change of state that an operator made, an
    /// [`OperatorNote`](queuekeeper_queue::record::OperatorNote).
    pub note: Option<Arc<str>>,
}

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// It changed its state, or came into being. A fast job is seen jumping over states.
    Moved {
        /// The state that it left; `None` for none, or one that we do not know.
        from: Option<JobState>,
        /// The state that it entered; `None` for one that we do not know.
        to: Option<JobState>,
        /// The session that held it then, where one was seen.
        session: Option<i64>,
        /// Whether an operator resumed it, which counts as a retry.
        is_resumed: bool,
    },
    /// A daemon took it, and did not change its state since.
    Locked {
        /// The session; `None` for a lock that is no session's.
        session: Option<i64>,
    },
    /// A daemon let it go without having changed its state.
    Released {
        /// The session, likewise.
        session: Option<i64>,
    },
    /// Its priority changed.
    Priority {
        /// What it was.
        from: u8,
        /// What it is.
        to: u8,
    },
}

impl Happening {
    /// The session that did it, where one was seen.
    #[must_use]
    pub fn session(self) -> Option<i64> {
        match self {
            Self::Moved { session, .. } | Self::Locked { session } | Self::Released { session } => session,
            Self::Priority { .. } => None,
        }
    }
}

/// A change of a batch that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchEvent {
    /// When, by our own clock: where the tree says it as the tree says it, else when it was seen.
    pub at: Timestamp,
    /// Whether it came into being.
    pub is_new: bool,
    /// The state that it left; `None` for none, or one that we do not know.
    pub from: Option<BatchState>,
    /// The state that it entered; `None` for one that we do not know.
    pub to: Option<BatchState>,
    /// The session that held it then, where one was seen.
    pub session: Option<i64>,
    /// The message of a change that an operator made, an
    /// [`OperatorNote`](queuekeeper_queue::record::OperatorNote).
    pub note: Option<Arc<str>>,
}

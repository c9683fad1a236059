//! What may come of an action, by its label in the audit trail, in metrics and in the API.

/// How an outcome reads at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// All of it was done.
    Good,
    /// It goes on.
    Work,
    /// Not all of it was done, as was to be expected.
    Warn,
    /// It was not done, or that is not known.
    Bad,
}

/// One outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeSpec {
    /// Its name in labels, files and API responses.
    pub label: &'static str,
    /// Its name on pages.
    pub title: &'static str,
    /// How it reads at a glance.
    pub tone: Tone,
    /// What it means, in sentences.
    pub description: &'static str,
}

macro_rules! outcomes {
    ($( $(#[$doc:meta])* $visibility:vis $name:ident $label:literal $title:literal $tone:ident $description:literal )+) => {
        $( $(#[$doc])* $visibility const $name: &str = $label; )+

        /// Every outcome of an action in the audit trail, in the order of filters.
        pub const OUTCOMES: &[OutcomeSpec] = &[$(
            OutcomeSpec { label: $label, title: $title, tone: Tone::$tone, description: $description }
        ),+];
    };
}

outcomes! {
    /// It was executed.
    pub(super) DONE "done" "Done" Good "The action was executed."
    /// It is being executed.
    pub RUNNING "running" "In progress" Work "The action is in progress, and continues when this page is closed."
    /// It is a bulk action that was cancelled.
    pub(super) CANCELLED "cancelled" "Cancelled" Warn
        "The action was cancelled: items in progress were finished, and the rest was not started."
    /// It was executed in part.
    pub(super) IN_PART "in_part" "In part" Warn "The action was executed in part; the rest was skipped or refused."
    /// The state of the queue does not allow it.
    pub(super) CONFLICT "conflict" "Refused" Warn "Nothing was done: the state of the queue forbids it."
    /// The target does not exist.
    pub(super) MISSING "missing" "Refused" Bad "Nothing was done: the target does not exist."
    /// The role of the user does not suffice.
    pub(super) FORBIDDEN "forbidden" "Refused" Bad "Nothing was done: the role of the user does not allow it."
    /// The request is invalid.
    pub(super) INVALID "invalid" "Refused" Bad "Nothing was done: the request was invalid."
    /// The key of the request was used for another one.
    pub(super) OTHER_REQUEST "other_request" "Refused" Bad "Nothing was done: its key was used for another request."
    /// It is more than the caller may do now.
    pub(super) TOO_MUCH "too_much" "Refused" Bad "Nothing was done: it is more than the user may do at this time."
    /// It is more than the caller may ever do at once.
    pub(super) TOO_LARGE "too_large" "Refused" Bad "Nothing was done: it is more than the user may do at once."
    /// There is no room for it.
    pub(super) NO_ROOM "no_room" "Refused" Bad "Nothing was done: there is not enough working storage."
    /// What it needs is away, such as ZooKeeper, the catalogue or the audit file.
    pub(super) UNAVAILABLE "unavailable" "Failed" Bad
        "Nothing was done, or only a part of it: something that it needs was not available."
    /// It failed.
    pub(super) FAILED "failed" "Failed" Bad "Nothing was done, or only a part of it."
    /// Whether it was executed is not known.
    pub(super) UNKNOWN "unknown" "Unknown" Bad
        "It is unknown whether all of it was executed: the connection was lost, or the server was stopped. Check the \
         target before requesting the action again."
}

/// The outcome of a dry run, in metrics alone: nothing is recorded of it.
pub(super) const DRY_RUN: &str = "dry_run";

/// The outcome with this label. A record of another version may have one that is not known here.
#[must_use]
pub fn outcome(label: &str) -> Option<&'static OutcomeSpec> {
    OUTCOMES.iter().find(|outcome| outcome.label == label)
}

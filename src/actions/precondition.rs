//! The state in which the caller of an action saw its target.

use jiff::Timestamp;

/// The state in which a caller saw a target. Fields that are not set are not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// The label of its state.
    pub state: Option<Box<str>>,
    /// The version of its `status`.
    pub version: Option<i32>,
    /// The zxid of its creation, if it is a lock: locks have no versions.
    pub czxid: Option<i64>,
    /// A hash of the plan, if the target is more than one znode: a fault to be repaired, or all finished batches. It
    /// differs if other data would be written or lost.
    pub plan: Option<u64>,
    /// The actor and the time in its data, if it is the hold of a collection.
    pub hold: Option<(Box<str>, Timestamp)>,
}

//! What the caller of an action saw of its target.

use jiff::Timestamp;

/// What an operator saw of a target. What is not given is not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// The label of its state.
    pub state: Option<Box<str>>,
    /// The version of its `status`.
    pub version: Option<i32>,
    /// The transaction that made it, where it is a lock: locks have no versions.
    pub czxid: Option<i64>,
    /// What was planned, as a number, where its target is more than one znode: a fault to be repaired, all batches that are
    /// done with. It is another where something else would be written or lost.
    pub plan: Option<u64>,
    /// By whom and when it was made as its own note says, where it is the hold of a collection.
    pub hold: Option<(Box<str>, Timestamp)>,
}

//! What the rules find.

use super::Fault;
use crate::path::Path;

/// Since when a fault has been there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// From a znode's own time, in milliseconds by the servers' clock.
    Known(i64),
    /// Since it was first seen. If it was there when the item was first read, since this instant at the earliest, in
    /// milliseconds by the servers' clock: that of the last change that may have caused it.
    Seen(Option<i64>),
}

/// A fault that was found.
#[derive(Clone, Copy)]
pub struct FaultFinding<'a> {
    /// Which.
    pub fault: Fault,
    /// What is seen, in a sentence.
    pub how: &'static str,
    /// How to fix it as it is seen here, where the fault has several forms; `None` where the fault's own fix is for
    /// all.
    pub fix: Option<&'static str>,
    /// Since when it is there.
    pub since: Since,
    /// How long it must have been seen until it counts, in milliseconds.
    pub lasting_ms: i64,
    /// It does not count before this instant, in milliseconds by the servers' clock.
    pub not_before_ms: i64,
    /// Distinguishes two faults of the same kind that one item shows one after the other. A job that hurries through
    /// its states may show an orphan in each of them, and none of them lasts.
    pub mark: u64,
    /// The znodes that show it. Worked out only on demand.
    pub nodes: &'a dyn Fn() -> Vec<Path>,
}

impl FaultFinding<'_> {
    /// From when on it counts, if it was first seen at `seen_ms`. Milliseconds by the servers' clock.
    #[must_use]
    pub fn due_ms(&self, seen_ms: i64) -> i64 {
        seen_ms.saturating_add(self.lasting_ms).max(self.not_before_ms)
    }
}

impl std::fmt::Debug for FaultFinding<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultFinding")
            .field("fault", &self.fault)
            .field("how", &self.how)
            .field("fix", &self.fix)
            .field("since", &self.since)
            .field("lasting_ms", &self.lasting_ms)
            .field("not_before_ms", &self.not_before_ms)
            .field("nodes", &(self.nodes)())
            .finish_non_exhaustive()
    }
}

/// Takes findings as the rules report them.
pub(super) type Sink<'s> = dyn FnMut(FaultFinding<'_>) + 's;

/// A set of the znodes of one item: its own, and its children by their position in `JobNode::ALL` or its counterparts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeSet(u16);

impl NodeSet {
    /// The position of the item's own znode.
    pub const OWN: u8 = 15;

    /// The set whose bits are these; the bit of a child is that of its position.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Whether it holds a child, by its position, or [`NodeSet::OWN`].
    #[must_use]
    pub const fn has(self, node: u8) -> bool {
        self.0 & (1 << node) != 0
    }

    /// This set without a child.
    #[must_use]
    pub const fn without(self, node: u8) -> Self {
        Self(self.0 & !(1 << node))
    }

    /// This set without those of another.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether nothing is in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the item's own znode is there and nothing else of it but perhaps a lock.
    pub(super) const fn is_bare(self, lock: u8) -> bool {
        self.without(lock).0 == 1 << Self::OWN
    }
}

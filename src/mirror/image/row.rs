//! One job as the image keeps it.

use std::ops::Deref;

use zookeeper_client::Stat;

use super::change::{Observation, ObservedState};
use super::columns::Columns;
pub(in crate::mirror) use super::columns::UNKNOWN_MS;
use crate::mirror::text::{Folded, TextId};
use queuekeeper_queue::fault::NodeSet;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::{EntryName, JobNode, StateFolder};
use queuekeeper_queue::state::{JobOutcome, JobState};

/// A lock on a job, batch or request, or one below `/locks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockStat {
    /// The session that holds it; 0 for a persistent znode.
    pub session: i64,
    /// When it was created, in milliseconds by the servers' clock.
    pub created_ms: i64,
    /// The transaction that created it: which distinguishes one lock from the next of the same name.
    pub czxid: i64,
}

impl LockStat {
    pub(super) fn of(stat: &Stat) -> Self {
        Self { session: stat.ephemeral_owner, created_ms: stat.ctime, czxid: stat.czxid }
    }
}

/// A set of the znodes of one job (batch, request), by their position in `ALL`; the item's own znode stands at
/// [`Nodes::SELF`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Nodes(u16);

impl Nodes {
    pub(super) const SELF: u8 = NodeSet::OWN;

    pub(super) fn has(self, node: u8) -> bool {
        self.0 & (1 << node) != 0
    }

    /// Adds or removes a node; gives 1, -1 or 0, by which the number of nodes grew.
    pub(super) fn set(&mut self, node: u8, present: bool) -> i64 {
        let before = self.0.count_ones();
        if present {
            self.0 |= 1 << node;
        } else {
            self.0 &= !(1 << node);
        }
        i64::from(self.0.count_ones()) - i64::from(before)
    }

    /// This set without those of another.
    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The same for the rules of the queue core, which know positions only.
    pub(super) fn set_of(self) -> NodeSet {
        NodeSet::from_bits(self.0)
    }

    pub(super) fn count(self) -> i64 {
        i64::from(self.0.count_ones())
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The fields of a job's own text.
pub(super) mod text {
    /// The id, so that it is found as if it were a text.
    pub(in crate::mirror) const ID: usize = 0;
    pub(in crate::mirror) const FILENAME: usize = 1;
    pub(in crate::mirror) const TITLE: usize = 2;
    /// ARK and local ids as the depositor named them, in the configuration.
    pub(in crate::mirror) const OBJECT_ID: usize = 3;
    pub(in crate::mirror) const NAMED_LOCAL_IDS: usize = 4;
    /// ARK and local ids as the queue knows them, in the identifiers.
    pub(in crate::mirror) const ARK: usize = 5;
    pub(in crate::mirror) const LOCAL_IDS: usize = 6;
    /// The same under the name that an older form used. Kept apart, since both znodes may be there, and either may go.
    pub(in crate::mirror) const OLD_ARK: usize = 7;
    pub(in crate::mirror) const OLD_LOCAL_IDS: usize = 8;
}

/// Where a job stands in the figures and indexes. Compared before and after a change, so that only what moved is moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) state: Option<JobState>,
    pub(super) entered_ms: i64,
    pub(super) locked_ms: Option<i64>,
    pub(super) retries: u32,
    pub(super) space_needed_bytes: u64,
    pub(super) collection: TextId,
    /// Whether an operator held or failed it.
    pub(super) is_by_operator: bool,
}

/// What of a job no list is filtered or sorted by.
#[derive(Debug, Default)]
pub(super) struct Rest {
    pub(super) nodes: Nodes,
    pub(super) unreadable: Nodes,
    /// Of these, the ones that hold something else than they should; the others are not readable.
    pub(super) malformed: Nodes,
    pub(super) last_successful: Option<JobState>,
    /// Where its queue entry is, if it has just one with a possible priority in a known folder; others are kept apart.
    pub(super) entry: Option<(JobState, u8)>,
    /// Where its batch's reference is, if it has just one; others are kept apart.
    pub(super) reference: Option<(u32, JobOutcome)>,
    pub(super) has_retry_count: bool,
    /// Whether an operator held or failed it.
    pub(super) is_by_operator: bool,
    /// Whether its priority is a number, but none of two digits.
    pub(super) is_priority_out_of_range: bool,
    pub(super) status_version: i32,
    /// `ctime` of the job's own znode, in milliseconds by the servers' clock.
    pub(super) created_ms: i64,
    /// In milliseconds; `None` where the configuration names no time that can be read.
    pub(super) submitted_ms: Option<i64>,
    pub(super) lock: Option<Box<LockStat>>,
    /// The status text, where it names no state that we know or is spelled as the daemons do not.
    pub(super) status_text: TextId,
}

impl Rest {
    /// Nothing is known of the job yet.
    pub(super) fn unknown() -> Self {
        Self { created_ms: UNKNOWN_MS, status_version: -1, ..Self::default() }
    }

    pub(super) fn has(&self, node: JobNode) -> bool {
        self.nodes.has(node as u8)
    }

    /// The version of its status; -1 where it has none.
    pub(super) fn status_version(&self) -> i32 {
        if self.has(JobNode::Status) { self.status_version } else { -1 }
    }
}

/// One job, put together from its columns and the rest of it. A value that could not be read is at its default, and its
/// bit in `unreadable`.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobRow<'a> {
    pub(super) number: u32,
    pub(super) priority: Option<u8>,
    pub(super) batch: Option<BatchId>,
    pub(super) submitter: TextId,
    pub(super) message: TextId,
    pub(super) text: Folded<'a>,
    pub(super) standing: Standing,
    rest: &'a Rest,
}

impl Deref for JobRow<'_> {
    type Target = Rest;

    fn deref(&self) -> &Rest {
        self.rest
    }
}

impl<'a> JobRow<'a> {
    pub(super) fn of(columns: &'a Columns, row: usize, rest: &'a Rest) -> Self {
        let kind = columns.kind[row];
        let standing = Standing {
            state: kind.state(),
            entered_ms: columns.entered_ms[row],
            locked_ms: rest.lock.as_deref().map(|lock| lock.created_ms),
            retries: columns.retries[row],
            space_needed_bytes: columns.space_needed_bytes[row],
            collection: columns.collection[row],
            is_by_operator: rest.is_by_operator,
        };
        Self {
            number: columns.number[row],
            priority: columns.priority(row),
            batch: columns.batch(row),
            submitter: columns.submitter[row],
            message: columns.message[row],
            text: columns.text.get(row),
            standing,
            rest,
        }
    }

    /// A job that is not there; `rest` is that of a job of which nothing is known.
    pub(super) fn absent(rest: &'a Rest) -> Self {
        let standing = Standing { entered_ms: UNKNOWN_MS, ..Standing::default() };
        let (submitter, message) = (TextId::default(), TextId::default());
        Self { number: 0, priority: None, batch: None, submitter, message, text: Folded::default(), standing, rest }
    }

    pub(super) fn id(self) -> JobId {
        JobId::new(self.number)
    }

    /// The row's own entry as the path has it.
    pub(super) fn entry_name(self) -> Option<(StateFolder, EntryName)> {
        let (state, priority) = self.entry?;
        Some((state.into(), EntryName { priority: i32::from(priority), job: self.id() }))
    }

    pub(super) fn seen(self) -> ObservedState<JobState> {
        ObservedState::of(self.standing.state, self.has(JobNode::Status))
    }

    /// Where it is, with what shows how it came there.
    pub(super) fn observation(self) -> Observation<JobState> {
        let (entered_ms, created_ms) = (self.standing.entered_ms, self.created_ms);
        Observation { seen: self.seen(), entered_ms, created_ms, version: self.status_version() }
    }

    /// The znodes that could not be read; `None` for the job's own.
    pub(super) fn unreadable_nodes(self) -> Vec<Option<JobNode>> {
        let own = self.unreadable.has(Nodes::SELF).then_some(None);
        let nodes = JobNode::ALL.iter().filter(|node| self.unreadable.has(**node as u8));
        own.into_iter().chain(nodes.map(|node| Some(*node))).collect()
    }

    /// The row's own reference as the path has it.
    pub(super) fn reference_of(self) -> Option<(BatchId, JobOutcome)> {
        self.reference.map(|(batch, outcome)| (BatchId::new(batch), outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_stays_small() {
        // 800 bytes a job are the limit for everything: row, columns, indexes, text. What is added here is paid 200,000
        // times.
        assert!(size_of::<Rest>() <= 88, "{}", size_of::<Rest>());
    }
}

//! Kinds of reads. Those of one kind wait together, and the answers to some tell how large the others will be.

use super::query::{Query, USUAL_BATCH_NODES, USUAL_JOB_NODES, USUAL_REQUEST_NODES};
use queuekeeper_queue::pace::{Estimate, LARGEST_DATA};
use queuekeeper_queue::path::Path;

/// A kind of reads. The znodes of one kind become known together, from one listing or from those of items that are read
/// in random order themselves; so the ones that were read are a fair sample of those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind(usize);

impl Kind {
    /// How many there are.
    pub(super) const COUNT: usize = 19;

    pub(super) const NAMES: Self = Self(0);
    const JOB: Self = Self(1);
    const BATCH: Self = Self(2);
    /// And one for each other queue of requests behind it.
    const REQUEST: Self = Self(3);
    /// And one for each other folder of locks behind it.
    const LOCK: Self = Self(5);
    const JOB_NODE: Self = Self(9);
    const BATCH_NODE: Self = Self(10);
    const REQUEST_NODE: Self = Self(11);
    const BATCH_OUTCOME: Self = Self(12);
    const BATCH_UUID: Self = Self(13);
    const STATE_FOLDER: Self = Self(14);
    const QUEUE_LOCK: Self = Self(15);
    const PUBLISHED_LOCAL_ID: Self = Self(16);
    const FOLDER: Self = Self(17);
    /// Of which all that matters is that they are there.
    const NAMED: Self = Self(18);

    /// The kind of an item that is read with its usual children.
    pub(super) fn of_item(path: &Path) -> Self {
        match path {
            Path::Job(_) => Self::JOB,
            Path::Batch(_) => Self::BATCH,
            Path::Request(queue, _) => Self(Self::REQUEST.0 + *queue as usize),
            other => Self::of_node(other),
        }
    }

    /// The kind of a znode that is read alone.
    pub(super) fn of_node(path: &Path) -> Self {
        match path {
            Path::Job(_) | Path::JobNode(..) => Self::JOB_NODE,
            Path::Batch(_) | Path::BatchNode(..) => Self::BATCH_NODE,
            Path::Request(..) | Path::RequestNode(..) => Self::REQUEST_NODE,
            Path::BatchOutcome(..) => Self::BATCH_OUTCOME,
            Path::BatchUuid(_) => Self::BATCH_UUID,
            Path::StateFolder(_) => Self::STATE_FOLDER,
            Path::QueueLock(_) => Self::QUEUE_LOCK,
            Path::NamedLock(folder, _) => Self(Self::LOCK.0 + *folder as usize),
            Path::PublishedLocalId(_) => Self::PUBLISHED_LOCAL_ID,
            Path::Root
            | Path::BatchUuids
            | Path::Batches
            | Path::Jobs
            | Path::JobStates
            | Path::Access
            | Path::AccessQueue(_)
            | Path::Locks
            | Path::QueueLocks
            | Path::LockFolder(_)
            | Path::PublishedLocalIds => Self::FOLDER,
            Path::Entry(..) | Path::Reference(..) | Path::Unexpected(_) | Path::Foreign | Path::Own(_) => Self::NAMED,
        }
    }

    /// How many reads one of this kind is.
    pub(super) fn reads(self) -> usize {
        match self {
            Self::JOB => 1 + USUAL_JOB_NODES.len(),
            Self::BATCH => 1 + USUAL_BATCH_NODES.len(),
            Self(kind) if (Self::REQUEST.0..Self::LOCK.0).contains(&kind) => 1 + USUAL_REQUEST_NODES.len(),
            _ => 1,
        }
    }
}

/// What the answers to reads of each kind are expected to bring.
#[derive(Clone, Debug)]
pub(in crate::mirror) struct Estimates(Vec<Estimate>);

impl Default for Estimates {
    fn default() -> Self {
        let kinds = (0..Kind::COUNT).map(Kind);
        Self(kinds.map(|kind| Estimate::at_most(LARGEST_DATA * kind.reads() as u64)).collect())
    }
}

impl Estimates {
    pub(super) fn bytes(&self, query: &Query) -> f64 {
        match query {
            Query::Names(_, children) => listing_bytes(*children),
            Query::Permission(_) => listing_bytes(0),
            Query::Node(_) | Query::Item(_) => self.0[query.kind().0].bytes(),
        }
    }

    pub(super) fn saw(&mut self, kind: Kind, bytes: u64) {
        self.0[kind.0].saw(bytes);
    }

    /// Trusts what was seen no more than so many answers of each kind.
    pub(in crate::mirror) fn remember(&mut self, answers: f64) {
        for estimate in &mut self.0 {
            estimate.remember(answers);
        }
    }
}

/// About how long a list of so many names is.
fn listing_bytes(names: usize) -> f64 {
    // An entry has 16 letters and a length of four bytes, an ARK some more.
    const NAME_BYTES: usize = 32;
    (names * NAME_BYTES) as f64
}

/// What is under way.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay {
    of_kind: [usize; Kind::COUNT],
    names: usize,
}

impl UnderWay {
    pub(super) fn add(&mut self, query: &Query) {
        match query {
            Query::Names(_, children) => self.names += children,
            Query::Permission(_) => {}
            Query::Node(_) | Query::Item(_) => self.of_kind[query.kind().0] += 1,
        }
    }

    pub(super) fn end(&mut self, ended: &Self) {
        self.names -= ended.names;
        self.of_kind.iter_mut().zip(ended.of_kind).for_each(|(count, ended)| *count -= ended);
    }

    /// What it is expected to bring, by what is known now.
    pub(super) fn bytes(&self, estimates: &Estimates) -> f64 {
        let data = self.of_kind.iter().zip(&estimates.0).filter(|(count, _)| **count > 0);
        let data: f64 = data.map(|(count, estimate)| *count as f64 * estimate.bytes()).sum();
        data + listing_bytes(self.names)
    }
}

/// Queries that were not sent yet. They leave in random order within each kind.
#[derive(Debug)]
pub(in crate::mirror) struct Waiting(Vec<Vec<Query>>);

impl Default for Waiting {
    fn default() -> Self {
        Self((0..Kind::COUNT).map(|_| Vec::new()).collect())
    }
}

impl Waiting {
    pub(in crate::mirror) fn push(&mut self, query: Query) {
        self.0[query.kind().0].push(query);
    }

    /// Takes as many as `fits` agrees to, and at least `least`.
    pub(super) fn take(&mut self, least: usize, mut fits: impl FnMut(&Query) -> bool) -> Vec<Query> {
        let mut taken = Vec::new();
        for lane in &mut self.0 {
            while let Some(last) = lane.len().checked_sub(1) {
                lane.swap(rand::random_range(0..=last), last);
                if !fits(&lane[last]) && taken.len() >= least {
                    return taken;
                }
                taken.extend(lane.pop());
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuekeeper_queue::path::{AccessQueue, LockFolder};

    #[test]
    fn each_kind_has_a_place_of_its_own() {
        assert_eq!(Kind::LOCK.0 - Kind::REQUEST.0, AccessQueue::ALL.len());
        assert_eq!(Kind::JOB_NODE.0 - Kind::LOCK.0, LockFolder::ALL.len());
        assert_eq!(Kind::COUNT, Kind::NAMED.0 + 1);
    }
}

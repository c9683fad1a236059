//! Kinds of reads. Those of one kind wait together, and the answers to some show how large the others will be.

use queuekeeper_queue::path::{BatchNode, JobNode, Path, RequestNode};

/// The children that nearly every job has. The others are few, and found by the number of children.
pub(in crate::mirror) const USUAL_JOB_NODES: [JobNode; 7] = [
    JobNode::Bid,
    JobNode::Configuration,
    JobNode::Status,
    JobNode::Priority,
    JobNode::SpaceNeeded,
    JobNode::Identifiers,
    JobNode::Metadata,
];

/// The same of a batch.
pub(in crate::mirror) const USUAL_BATCH_NODES: [BatchNode; 3] =
    [BatchNode::Submission, BatchNode::Status, BatchNode::States];

/// The same of an access request.
pub(in crate::mirror) const USUAL_REQUEST_NODES: [RequestNode; 2] = [RequestNode::Token, RequestNode::Status];

/// A kind of reads. The znodes of one kind become known together, from one listing or from those of items that are read
/// in random order themselves; so the ones that were read are a fair sample of those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadKind(pub(super) usize);

impl ReadKind {
    /// How many there are.
    pub(super) const COUNT: usize = 20;

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
    const OWN: Self = Self(19);

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
            Path::Own(_) => Self::OWN,
            Path::Entry(..) | Path::Reference(..) | Path::Unexpected(_) | Path::Foreign => Self::NAMED,
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

#[cfg(test)]
mod tests {
    use super::*;
    use queuekeeper_queue::path::{AccessQueue, LockFolder};

    #[test]
    fn each_kind_has_a_place_of_its_own() {
        assert_eq!(ReadKind::LOCK.0 - ReadKind::REQUEST.0, AccessQueue::ALL.len());
        assert_eq!(ReadKind::JOB_NODE.0 - ReadKind::LOCK.0, LockFolder::ALL.len());
        assert_eq!(ReadKind::COUNT, ReadKind::OWN.0 + 1);
    }
}

//! How paths lie to each other: parents, and children of any name.

use super::{BatchNode, LockFolder, Path};

impl Path {
    /// The znode above; `None` for the root, and for what is not part of the queue.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let parent = match self {
            Self::Root | Self::Foreign => return None,
            Self::Own(text) => return Self::own_parent(text),
            Self::BatchUuids | Self::Batches | Self::Jobs | Self::Access | Self::Locks => Self::Root,
            Self::BatchUuid(_) => Self::BatchUuids,
            Self::Batch(_) => Self::Batches,
            Self::BatchNode(bid, _) => Self::Batch(*bid),
            Self::BatchOutcome(bid, _) => Self::BatchNode(*bid, BatchNode::States),
            Self::Reference(bid, outcome, _) => Self::BatchOutcome(*bid, *outcome),
            Self::Job(_) | Self::JobStates => Self::Jobs,
            Self::JobNode(jid, _) => Self::Job(*jid),
            Self::StateFolder(_) => Self::JobStates,
            Self::Entry(folder, _) => Self::StateFolder(folder.clone()),
            Self::AccessQueue(_) => Self::Access,
            Self::Request(queue, _) => Self::AccessQueue(*queue),
            Self::RequestNode(queue, qid, _) => Self::Request(*queue, *qid),
            Self::QueueLocks | Self::LockFolder(_) => Self::Locks,
            Self::QueueLock(_) | Self::PublishedLocalIds => Self::QueueLocks,
            Self::NamedLock(folder, _) => Self::LockFolder(*folder),
            Self::PublishedLocalId(_) => Self::PublishedLocalIds,
            Self::Unexpected(text) => {
                let (above, _name) = text.rsplit_once('/')?;
                return Some(Self::parse_whole(if above.is_empty() { "/" } else { above }));
            }
        };
        Some(parent)
    }

    /// The child of that name, exactly: one that the grammar does not know is [`Path::Unexpected`] with its whole path,
    /// also where [`Path::child`] would name only the first unexpected part. For work on whole subtrees.
    #[must_use]
    pub fn any_child(&self, name: &str) -> Self {
        if *self == Self::Foreign {
            return Self::Foreign;
        }
        Self::parse_whole(&if *self == Self::Root { format!("/{name}") } else { format!("{self}/{name}") })
    }

    /// Reads a path as [`Path::parse`] does, but names it whole, however much of it is unexpected.
    #[must_use]
    pub fn parse_whole(text: &str) -> Self {
        match Self::parse(text) {
            Self::Unexpected(_) => Self::Unexpected(text.into()),
            known => known,
        }
    }

    /// Whether the znode is a folder that any client creates where it is missing, because it holds items and says
    /// nothing by being there. A batch's `states` is none: it says that the batch was acquired.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        match self {
            Self::BatchUuids
            | Self::Batches
            | Self::BatchOutcome(..)
            | Self::Jobs
            | Self::JobStates
            | Self::StateFolder(_)
            | Self::Access
            | Self::AccessQueue(_)
            | Self::Locks
            | Self::QueueLocks
            | Self::LockFolder(_) => true,
            Self::Own(text) => Self::is_own_folder(text),
            Self::Root
            | Self::BatchUuid(_)
            | Self::Batch(_)
            | Self::BatchNode(..)
            | Self::Reference(..)
            | Self::Job(_)
            | Self::JobNode(..)
            | Self::Entry(..)
            | Self::Request(..)
            | Self::RequestNode(..)
            | Self::QueueLock(_)
            | Self::NamedLock(..)
            | Self::PublishedLocalIds
            | Self::PublishedLocalId(_)
            | Self::Foreign
            | Self::Unexpected(_) => false,
        }
    }

    /// The lock of an object, by its ARK.
    #[must_use]
    pub fn object_lock(folder: LockFolder, identifier: &str) -> Self {
        Self::NamedLock(folder, super::lock_name(identifier).into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_parent_is_the_path_without_its_last_part(
            text in "/(batches/bid[0-9]{10}(/states(/batch-failed(/jid[0-9]{10})?)?|/status)?|jobs/jid[0-9]{10}(/status|/x/y)?|jobs/states/(pending|odd)/05-jid[0-9]{10}|access/small/qid[0-9]{10}/token|locks/(queue/ingest|queue/localid/a|storage/a)|batch-uuids/u|odd/x)",
        ) {
            let mut path = Path::Root;
            for name in text[1..].split('/') {
                let child = path.any_child(name);
                prop_assert_eq!(child.parent(), Some(path));
                path = child;
            }
            prop_assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn a_folder_says_nothing_by_being_there() {
        for folder in [
            "/batch-uuids",
            "/batches",
            "/batches/bid0000000007/states/batch-failed",
            "/jobs",
            "/jobs/states",
            "/jobs/states/odd",
            "/access",
            "/access/small",
            "/locks",
            "/locks/queue",
            "/locks/storage",
        ] {
            assert!(Path::parse(folder).is_folder(), "{folder}");
        }
        for item in [
            "/",
            "/batch-uuids/u",
            "/batches/bid0000000007",
            "/batches/bid0000000007/states",
            "/jobs/jid0000000042",
            "/jobs/states/pending/05-jid0000000042",
            "/locks/queue/ingest",
            "/locks/storage/ark_1_2",
            "/odd",
            "/zookeeper",
        ] {
            assert!(!Path::parse(item).is_folder(), "{item}");
        }
    }

    #[test]
    fn what_is_below_an_unexpected_znode_is_named_whole() {
        let job = Path::parse("/jobs/jid0000000042");
        let notes = job.any_child("notes");
        assert_eq!(notes, Path::Unexpected("/jobs/jid0000000042/notes".into()));
        assert_eq!(notes.any_child("today"), Path::Unexpected("/jobs/jid0000000042/notes/today".into()));
        assert_eq!(Path::Foreign.any_child("config"), Path::Foreign);
        assert_eq!(Path::object_lock(LockFolder::Storage, "ark:/1/2").to_string(), "/locks/storage/ark_1_2");
    }
}

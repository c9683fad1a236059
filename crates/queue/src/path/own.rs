//! Those of queuekeeper's own znodes that are written together with the queue's.

use super::{BatchNode, JobNode, NodePath, Path, RequestNode};

/// The folder of our own znodes.
const OWN: &str = "/queuekeeper";

/// The folder of the items that sessions of ours work on.
const HELD: &str = "/queuekeeper/held";

impl Path {
    /// A znode of queuekeeper's own, by its path; `None` for any other, and for one that ZooKeeper does not take.
    #[must_use]
    pub fn own(text: &str) -> Option<Self> {
        let is_own = text.starts_with("/queuekeeper/") && NodePath::parse(text).is_ok();
        is_own.then(|| Self::Own(text.into()))
    }

    /// The znode that keeps our other sessions off the job, batch or request whose lock this is, as long as the session
    /// that made it lasts: `/queuekeeper/held/JID`, `held/BID`, `held/small-QID`. `None` for what is not the lock of
    /// one.
    #[must_use]
    pub fn held(&self) -> Option<Self> {
        let name = match self {
            Self::JobNode(job, JobNode::Lock) => job.to_string(),
            Self::BatchNode(batch, BatchNode::Lock) => batch.to_string(),
            // The numbers of the two queues are counted apart.
            Self::RequestNode(queue, request, RequestNode::Lock) => format!("{}-{request}", queue.name()),
            _ => return None,
        };
        Some(Self::Own(format!("{HELD}/{name}").into()))
    }

    /// Whether it is a znode that [`Self::held`] gives.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self, Self::Own(text) if text.strip_prefix(HELD).is_some_and(|rest| rest.starts_with('/')))
    }

    /// Whether it is a folder of ours that a creation below it may make.
    pub(super) fn is_own_folder(text: &str) -> bool {
        text == OWN || text == HELD
    }

    /// The znode above the folder of held items, and above one of these; `None` for the rest of ours, whose folders are
    /// made by what writes them.
    pub(super) fn own_parent(text: &str) -> Option<Self> {
        let above = if text == HELD { OWN } else { HELD };
        (text == HELD || Self::Own(text.into()).is_held()).then(|| Self::Own(above.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::LockFolder;

    #[test]
    fn each_item_has_a_znode_of_its_own_that_is_no_part_of_the_queue() {
        for (lock, held) in [
            ("/jobs/jid0000000042/lock", "/queuekeeper/held/jid0000000042"),
            ("/batches/bid0000000042/lock", "/queuekeeper/held/bid0000000042"),
            ("/access/small/qid0000000042/lock", "/queuekeeper/held/small-qid0000000042"),
            ("/access/large/qid0000000042/lock", "/queuekeeper/held/large-qid0000000042"),
        ] {
            let path = Path::parse(lock).held().unwrap();
            assert_eq!(path.to_string(), held);
            assert!(path.is_held() && !path.is_folder());
            assert_eq!(Path::parse(held), Path::Foreign);
            let above: Vec<_> = std::iter::successors(path.parent(), Path::parent).collect();
            assert_eq!(above, [Path::Own(HELD.into()), Path::Own(OWN.into())]);
            assert!(above.iter().all(Path::is_folder));
        }
        assert_eq!(Path::parse("/jobs/jid0000000042/status").held(), None);
        assert_eq!(Path::object_lock(LockFolder::Storage, "ark:/1/2").held(), None);
        for other in ["/queuekeeper/paused", "/queuekeeper/pending/7"] {
            let other = Path::own(other).unwrap();
            assert!(!other.is_held() && !other.is_folder() && other.parent().is_none());
        }
        for other in ["/queuekeeper", "/queuekeeper/", "/queuekeeper/a//b", "/queuekeepers/a", "/jobs"] {
            assert_eq!(Path::own(other), None, "{other}");
        }
        assert!(!Path::Own("/queuekeeper/heldup/a".into()).is_held());
    }
}

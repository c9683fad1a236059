//! Those of queuekeeper's own znodes that are written together with the queue's.

use super::{AccessQueue, BatchNode, JobNode, NodePath, Path, RequestNode};
use crate::id::{BatchId, JobId, RequestId};

/// The folder of our own znodes.
const OWN: &str = "/queuekeeper";

/// The folder of the items that sessions of ours work on.
const HELD: &str = "/queuekeeper/held";

/// The folder of the jobs and access requests that wait for another attempt.
const RETRY: &str = "/queuekeeper/retry";

/// The folder of the batches whose jobs are being created.
const EXPANSIONS: &str = "/queuekeeper/expansions";

/// The folder of the batches whose withdrawal takes several transactions.
const WITHDRAWALS: &str = "/queuekeeper/withdrawals";

/// The folder of what was granted of each volume of working storage.
const SPACE: &str = "/queuekeeper/space";

/// The folder of the processes in which daemons of ours run.
const DAEMONS: &str = "/queuekeeper/daemons";

/// The folder of what the processes are downloading.
const PROGRESS: &str = "/queuekeeper/progress";

/// The folder of the volumes of working storage that belong to this tree.
const VOLUMES: &str = "/queuekeeper/volumes";

/// The folder of what is said of stores, in a folder for each.
const STORES: &str = "/queuekeeper/stores";

/// The name of a store's hold in its folder.
const HOLD: &str = "held";

/// The folders that a creation below them makes where they are missing.
const FOLDERS: [&str; 9] = [HELD, RETRY, EXPANSIONS, WITHDRAWALS, SPACE, DAEMONS, PROGRESS, VOLUMES, STORES];

/// What a znode of ours is that pages show beside the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnNode {
    /// `/queuekeeper/retry/JID`: why a job waits for another attempt.
    Retry(JobId),
    /// `/queuekeeper/retry/QUEUE-QID`: why an access request waits for another attempt.
    RequestRetry(AccessQueue, RequestId),
    /// `/queuekeeper/expansions/BID`: how far the creation of a batch's jobs is.
    Expansion(BatchId),
    /// `/queuekeeper/withdrawals/BID`: how far the withdrawal of a batch is.
    Withdrawal(BatchId),
    /// `/queuekeeper/daemons/SESSION`: which daemons run in the process of a session.
    Daemon(i64),
    /// `/queuekeeper/progress/SESSION`: what the process of a session is downloading.
    Progress(i64),
    /// `/queuekeeper/space/VOLUME`: the grants on a volume.
    Space(Box<str>),
    /// `/queuekeeper/stores/NAME/held`: who holds a store.
    StoreHold(Box<str>),
}

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
            Self::RequestNode(queue, request, RequestNode::Lock) => of_queue(*queue, *request),
            _ => return None,
        };
        Some(Self::Own(format!("{HELD}/{name}").into()))
    }

    /// Whether it is a znode that [`Self::held`] gives.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self, Self::Own(text) if text.strip_prefix(HELD).is_some_and(|rest| rest.starts_with('/')))
    }

    /// The folder of [`Self::retry`].
    #[must_use]
    pub fn retries() -> Self {
        Self::Own(RETRY.into())
    }

    /// The znode that keeps a job from being taken before a time: `/queuekeeper/retry/JID`.
    #[must_use]
    pub fn retry(job: JobId) -> Self {
        Self::Own(format!("{RETRY}/{job}").into())
    }

    /// The znode that says why an access request waits: `/queuekeeper/retry/small-QID`, `retry/large-QID`.
    #[must_use]
    pub fn request_retry(queue: AccessQueue, request: RequestId) -> Self {
        Self::Own(format!("{RETRY}/{}", of_queue(queue, request)).into())
    }

    /// The folder of [`Self::expansion`].
    #[must_use]
    pub fn expansions() -> Self {
        Self::Own(EXPANSIONS.into())
    }

    /// The znode of a batch whose jobs are being created: `/queuekeeper/expansions/BID`.
    #[must_use]
    pub fn expansion(batch: BatchId) -> Self {
        Self::Own(format!("{EXPANSIONS}/{batch}").into())
    }

    /// The folder of [`Self::withdrawal`].
    #[must_use]
    pub fn withdrawals() -> Self {
        Self::Own(WITHDRAWALS.into())
    }

    /// The znode of a batch that is being withdrawn in several transactions: `/queuekeeper/withdrawals/BID`.
    #[must_use]
    pub fn withdrawal(batch: BatchId) -> Self {
        Self::Own(format!("{WITHDRAWALS}/{batch}").into())
    }

    /// The folder of [`Self::space`].
    #[must_use]
    pub fn spaces() -> Self {
        Self::Own(SPACE.into())
    }

    /// The znode of what was granted of a volume of working storage, `/queuekeeper/space/VOLUME`; `None` for a name
    /// that no znode can have.
    #[must_use]
    pub fn space(volume: &str) -> Option<Self> {
        Self::own(&format!("{SPACE}/{volume}"))
    }

    /// The folder of [`Self::daemon`].
    #[must_use]
    pub fn daemons() -> Self {
        Self::Own(DAEMONS.into())
    }

    /// The znode that says which daemons run in the process of a session: `/queuekeeper/daemons/SESSION`, in
    /// hexadecimal digits.
    #[must_use]
    pub fn daemon(session: i64) -> Self {
        Self::Own(format!("{DAEMONS}/{session:x}").into())
    }

    /// The folder of [`Self::progress`].
    #[must_use]
    pub fn progresses() -> Self {
        Self::Own(PROGRESS.into())
    }

    /// The znode that says what the process of a session is downloading: `/queuekeeper/progress/SESSION`, in
    /// hexadecimal digits.
    #[must_use]
    pub fn progress(session: i64) -> Self {
        Self::Own(format!("{PROGRESS}/{session:x}").into())
    }

    /// The folder of what is said of stores.
    #[must_use]
    pub fn stores() -> Self {
        Self::Own(STORES.into())
    }

    /// The znode that holds a store, `/queuekeeper/stores/NAME/held`; `None` for a name that no znode can have.
    #[must_use]
    pub fn store_hold(name: &str) -> Option<Self> {
        let is_name = !name.is_empty() && !name.contains('/');
        if is_name { Self::own(&format!("{STORES}/{name}/{HOLD}")) } else { None }
    }

    /// The folders whose znodes, or those of whose folders, [`Self::own_node`] knows.
    #[must_use]
    pub fn shown_folders() -> [Self; 7] {
        [
            Self::retries(),
            Self::expansions(),
            Self::withdrawals(),
            Self::daemons(),
            Self::spaces(),
            Self::progresses(),
            Self::stores(),
        ]
    }

    /// What a znode of ours is, where it is one that pages show.
    #[must_use]
    pub fn own_node(&self) -> Option<OwnNode> {
        let Self::Own(text) = self else { return None };
        let (folder, name) = text.rsplit_once('/')?;
        match folder {
            RETRY => match name.split_once('-') {
                Some((queue, request)) => {
                    let queue = AccessQueue::ALL.iter().copied().find(|known| known.name() == queue)?;
                    Some(OwnNode::RequestRetry(queue, request.parse().ok()?))
                }
                None => name.parse().ok().map(OwnNode::Retry),
            },
            EXPANSIONS => name.parse().ok().map(OwnNode::Expansion),
            WITHDRAWALS => name.parse().ok().map(OwnNode::Withdrawal),
            DAEMONS => session(name).map(OwnNode::Daemon),
            PROGRESS => session(name).map(OwnNode::Progress),
            SPACE => Some(OwnNode::Space(name.into())),
            _ if name == HOLD => store_of(folder).map(|store| OwnNode::StoreHold(store.into())),
            _ => None,
        }
    }

    /// The znode that says that a volume of working storage belongs to this tree, `/queuekeeper/volumes/VOLUME`; `None`
    /// for a name that no znode can have.
    #[must_use]
    pub fn volume(volume: &str) -> Option<Self> {
        Self::own(&format!("{VOLUMES}/{volume}"))
    }

    /// Whether it is a folder of ours that a creation below it may make.
    pub(super) fn is_own_folder(text: &str) -> bool {
        text == OWN || FOLDERS.contains(&text) || store_of(text).is_some()
    }

    /// The znode above one of these folders, and above what is in them; `None` for the rest of ours, whose folders are
    /// made by what writes them.
    pub(super) fn own_parent(text: &str) -> Option<Self> {
        if FOLDERS.contains(&text) {
            return Some(Self::Own(OWN.into()));
        }
        let (above, _name) = text.rsplit_once('/')?;
        (FOLDERS.contains(&above) || store_of(above).is_some()).then(|| Self::Own(above.into()))
    }
}

/// The name of an access request among those of both queues, whose numbers are counted apart.
fn of_queue(queue: AccessQueue, request: RequestId) -> String {
    format!("{}-{request}", queue.name())
}

/// The store whose folder this is.
fn store_of(folder: &str) -> Option<&str> {
    folder.strip_prefix(STORES)?.strip_prefix('/').filter(|name| !name.is_empty() && !name.contains('/'))
}

/// A session by its hexadecimal digits.
fn session(digits: &str) -> Option<i64> {
    u64::from_str_radix(digits, 16).ok().map(u64::cast_signed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::LockFolder;

    #[test]
    fn no_folder_that_is_made_here_is_reported_as_foreign() {
        for folder in FOLDERS {
            let name = folder.strip_prefix(OWN).and_then(|rest| rest.strip_prefix('/')).unwrap();
            assert!(queuekeeper_zookeeper::coordination::is_child(name), "{folder}");
        }
    }

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
        let batch = BatchId::new(7);
        let made = [
            Path::retry(JobId::new(42)),
            Path::expansion(batch),
            Path::withdrawal(batch),
            Path::space("a-uuid").unwrap(),
        ];
        let volume = Path::volume("a-uuid").unwrap();
        assert_eq!(volume.to_string(), "/queuekeeper/volumes/a-uuid");
        assert!(volume.own_node().is_none() && volume.parent().is_some_and(|folder| folder.is_folder()));
        assert_eq!(Path::volume(""), None);
        let texts = made.each_ref().map(ToString::to_string);
        let expected = ["retry/jid0000000042", "expansions/bid0000000007", "withdrawals/bid0000000007", "space/a-uuid"];
        assert_eq!(texts, expected.map(|name| format!("/queuekeeper/{name}")));
        let folders = [Path::retries(), Path::expansions(), Path::withdrawals(), Path::spaces()];
        let known = [
            OwnNode::Retry(JobId::new(42)),
            OwnNode::Expansion(batch),
            OwnNode::Withdrawal(batch),
            OwnNode::Space("a-uuid".into()),
        ];
        assert_eq!(made.each_ref().map(Path::own_node), known.map(Some));
        for (made, folder) in made.iter().zip(folders) {
            assert!(folder.is_folder() && !made.is_folder() && !made.is_held());
            assert!(Path::shown_folders().contains(&folder) && folder.own_node().is_none());
            let name = made.to_string().rsplit_once('/').unwrap().1.to_owned();
            assert_eq!(folder.child(&name), *made);
            assert_eq!((made.parent(), folder.parent()), (Some(folder), Some(Path::Own(OWN.into()))));
        }
        for queue in AccessQueue::ALL {
            let note = Path::request_retry(*queue, RequestId::new(42));
            assert_eq!(note.to_string(), format!("/queuekeeper/retry/{}-qid0000000042", queue.name()));
            assert_eq!(note.own_node(), Some(OwnNode::RequestRetry(*queue, RequestId::new(42))));
        }
        for other in ["-qid0000000042", "other-qid0000000042", "small-42", "small-jid0000000042"] {
            assert_eq!(Path::retries().child(other).own_node(), None, "{other}");
        }
        for session in [1, 0x1000_0000_0000_0001, -2] {
            assert_eq!(Path::daemon(session).own_node(), Some(OwnNode::Daemon(session)));
            assert_eq!(Path::progress(session).own_node(), Some(OwnNode::Progress(session)));
        }
        let hold = Path::store_hold("main").unwrap();
        assert_eq!(hold.to_string(), "/queuekeeper/stores/main/held");
        assert_eq!(hold.own_node(), Some(OwnNode::StoreHold("main".into())));
        let above: Vec<_> = std::iter::successors(hold.parent(), Path::parent).collect();
        assert_eq!(
            above.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["/queuekeeper/stores/main", STORES, OWN]
        );
        assert!(above.iter().all(|path| path.is_folder() && path.own_node().is_none()) && !hold.is_folder());
        assert_eq!(Path::own("/queuekeeper/stores/main/other").and_then(|other| other.own_node()), None);
        for name in ["", "a/b", "..", "a\0"] {
            assert_eq!(Path::store_hold(name), None, "{name:?}");
        }
        for other in ["/queuekeeper/paused", "/queuekeeper/pending/7", "/queuekeeper/retry/jid7/x"] {
            let other = Path::own(other).unwrap();
            assert_eq!(other.own_node(), None);
            assert!(!other.is_held() && !other.is_folder() && other.parent().is_none());
        }
        for other in ["/queuekeeper", "/queuekeeper/", "/queuekeeper/a//b", "/queuekeepers/a", "/jobs"] {
            assert_eq!(Path::own(other), None, "{other}");
        }
        assert!(!Path::Own("/queuekeeper/heldup/a".into()).is_held());
    }
}

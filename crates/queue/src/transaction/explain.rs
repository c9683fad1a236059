//! Turning a refusal into what stood against it: who holds what, since when.

use zookeeper_client::Stat;

use super::{CommitError, Operation};
use crate::error::{ConflictKind, Error, RequestFailure};
use crate::handle::{Queue, instant};
use crate::lock::holder;
use crate::path::{LockFolder, Path};

impl Queue {
    /// Explains why a transaction was refused, by reading the znode that it was refused for.
    pub async fn explain(&self, error: CommitError) -> Error {
        let (operation, reason) = match error {
            CommitError::Refused { operation, reason, .. } => (*operation, reason),
            CommitError::NotDone { operation, cause } => return Error::Commit { operation, cause },
            CommitError::Unknown { operation, cause } => return Error::Unknown { operation, cause },
        };
        let found = match self.read_data(operation.path().clone()).await {
            Ok(found) => found.data().map(|(_, stat)| stat),
            Err(error) => return error,
        };
        explanation(&operation, reason, found)
    }
}

fn explanation(operation: &Operation, reason: zookeeper_client::Error, found: Option<Stat>) -> Error {
    use zookeeper_client::Error as Reason;
    let path = operation.path().clone();
    let is_creation = matches!(operation, Operation::Create { .. });
    let kind = match (reason, found) {
        (Reason::NodeExists, Some(stat)) if path.is_held() || path.is_lock() && !path.is_pause() => {
            ConflictKind::Locked { session: holder(&stat), since: instant(stat.ctime) }
        }
        (Reason::NodeExists, Some(stat)) => ConflictKind::Exists { since: instant(stat.ctime) },
        // Locks are never changed, so this is another one.
        (Reason::BadVersion, Some(stat)) if path.is_lock() => {
            ConflictKind::LockLost { now: Some((holder(&stat), instant(stat.ctime))) }
        }
        (Reason::BadVersion, Some(stat)) => changed(operation, &stat),
        (Reason::NoNode, _) if is_creation => return Error::Missing(path.parent().unwrap_or(path)),
        (Reason::NoNode, None) if path.is_lock() => ConflictKind::LockLost { now: None },
        (Reason::NoNode | Reason::BadVersion, None) => return Error::Missing(path),
        (Reason::NodeExists, None) | (Reason::NoNode, Some(_)) => ConflictKind::Moved,
        (Reason::NotEmpty, _) => ConflictKind::NotEmpty,
        (reason, _) => {
            return Error::Commit { operation: operation.title(), cause: RequestFailure::Client(reason) };
        }
    };
    Error::conflict(path, kind)
}

/// The version that was found instead of the one expected.
fn changed(operation: &Operation, found: &Stat) -> ConflictKind {
    let seen = match operation {
        Operation::Set { version, .. } => Some(*version),
        Operation::Check { version, .. } | Operation::Delete { version, .. } => *version,
        Operation::Create { .. } => None,
    };
    seen.map_or(ConflictKind::Moved, |seen| ConflictKind::Changed {
        seen,
        found: found.version,
        since: instant(found.mtime),
    })
}

impl Path {
    /// Whether it is one of the locks by which an operator keeps a queue or a collection back.
    #[must_use]
    pub fn is_pause(&self) -> bool {
        matches!(self, Self::QueueLock(_) | Self::NamedLock(LockFolder::Collections, _))
    }

    /// Whether it is one of the locks by which one program keeps others off.
    #[must_use]
    pub fn is_lock(&self) -> bool {
        use crate::path::{BatchNode, JobNode, RequestNode};
        match self {
            Self::JobNode(_, node) => *node == JobNode::Lock,
            Self::BatchNode(_, node) => *node == BatchNode::Lock,
            Self::RequestNode(_, _, node) => *node == RequestNode::Lock,
            Self::QueueLock(_) | Self::NamedLock(..) | Self::PublishedLocalId(_) => true,
            Self::Root
            | Self::BatchUuids
            | Self::BatchUuid(_)
            | Self::Batches
            | Self::Batch(_)
            | Self::BatchOutcome(..)
            | Self::Reference(..)
            | Self::Jobs
            | Self::Job(_)
            | Self::JobStates
            | Self::StateFolder(_)
            | Self::Entry(..)
            | Self::Access
            | Self::AccessQueue(_)
            | Self::Request(..)
            | Self::Locks
            | Self::QueueLocks
            | Self::LockFolder(_)
            | Self::PublishedLocalIds
            | Self::Foreign
            | Self::Own(_)
            | Self::Unexpected(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use zookeeper_client::Error as Reason;

    use super::*;
    use crate::testing::stat;

    const LOCK: &str = "/jobs/jid0000000001/lock";

    /// Why an operation was refused, in words; `found` is the stat of its znode.
    fn explained(operation: &Operation, reason: Reason, found: Option<Stat>) -> String {
        explanation(operation, reason, found).to_string()
    }

    fn create(path: &str) -> Operation {
        Operation::Create { path: Path::parse(path), data: Vec::new(), ephemeral: false }
    }

    fn delete(path: &str, version: Option<i32>) -> Operation {
        Operation::Delete { path: Path::parse(path), version }
    }

    #[test]
    fn a_refused_creation_shows_what_is_there_or_missing_above() {
        let found = || Some(Stat { ephemeral_owner: 0x2a, ..stat() });
        let exists = |path: &str| explained(&create(path), Reason::NodeExists, found());
        let holder = "is held by session 0x2a since 1970-01-01 00:00:01 UTC";
        for lock in [LOCK, "/batches/bid0000000007/lock", "/locks/storage/ark_1_2", "/locks/queue/localid/a"] {
            assert_eq!(exists(lock), format!("{lock} {holder}"));
        }
        for other in ["/jobs/jid0000000001", "/locks/queue/ingest", "/locks/collections/ucb_demo"] {
            assert_eq!(exists(other), format!("{other} exists since 1970-01-01 00:00:01 UTC"));
        }
        let held = Operation::Create { path: Path::parse(LOCK).held().unwrap(), data: Vec::new(), ephemeral: true };
        let words = explained(&held, Reason::NodeExists, found());
        assert_eq!(words, format!("/queuekeeper/held/jid0000000001 {holder}"));
        assert_eq!(explained(&create(LOCK), Reason::NodeExists, None), format!("{LOCK} was changed concurrently"));
        assert_eq!(explained(&create(LOCK), Reason::NoNode, None), "/jobs/jid0000000001 does not exist");
        assert_eq!(explained(&create("/"), Reason::NoNode, None), "/ does not exist");
    }

    #[test]
    fn a_refused_change_shows_the_version_that_is_there() {
        let status = "/jobs/jid0000000001/status";
        let changed = format!("{status} has changed since it was seen: version 3 since 1970-01-01 00:00:02 UTC, not 2");
        let path = || Path::parse(status);
        for operation in [
            Operation::Set { path: path(), data: Vec::new(), version: 2 },
            Operation::Check { path: path(), version: Some(2) },
            Operation::Delete { path: path(), version: Some(2) },
        ] {
            assert_eq!(explained(&operation, Reason::BadVersion, Some(stat())), changed);
            for reason in [Reason::BadVersion, Reason::NoNode] {
                assert_eq!(explained(&operation, reason, None), format!("{status} does not exist"));
            }
            let moved = explained(&operation, Reason::NoNode, Some(stat()));
            assert_eq!(moved, format!("{status} was changed concurrently"));
        }
        for operation in [delete(status, None), create(status)] {
            let moved = explained(&operation, Reason::BadVersion, Some(stat()));
            assert_eq!(moved, format!("{status} was changed concurrently"));
        }
    }

    #[test]
    fn a_lock_that_is_not_ours_any_more_is_lost() {
        let release = || delete(LOCK, Some(1));
        let other = "has another holder: held by no session (persistent) since 1970-01-01 00:00:01 UTC";
        assert_eq!(explained(&release(), Reason::BadVersion, Some(stat())), format!("{LOCK} {other}"));
        assert_eq!(explained(&release(), Reason::NoNode, None), format!("{LOCK} is no longer held"));
        assert_eq!(explained(&release(), Reason::BadVersion, None), format!("{LOCK} does not exist"));
    }

    #[test]
    fn any_other_reason_is_that_of_the_server() {
        let children = explained(&delete("/jobs", None), Reason::NotEmpty, Some(stat()));
        assert_eq!(children, "/jobs has children that should not be there");
        let denied = explanation(&delete("/jobs", None), Reason::NoAuth, Some(stat()));
        let (operation, cause) = ("delete /jobs".to_owned(), RequestFailure::Client(Reason::NoAuth));
        assert_eq!(denied, Error::Commit { operation, cause });
    }

    #[test]
    fn a_lock_keeps_others_off_and_a_pause_keeps_back_the_work() {
        for (path, is_lock, is_pause) in [
            (LOCK, true, false),
            ("/batches/bid0000000007/lock", true, false),
            ("/access/small/qid0000000003/lock", true, false),
            ("/locks/storage/ark_1_2", true, false),
            ("/locks/queue/localid/a", true, false),
            ("/locks/queue/ingest", true, true),
            ("/locks/collections/ucb_demo", true, true),
            ("/locks/collections", false, false),
            ("/jobs/jid0000000001/status", false, false),
            ("/batches/bid0000000007/status", false, false),
            ("/access/small/qid0000000003/status", false, false),
            ("/jobs", false, false),
        ] {
            let path = Path::parse(path);
            assert_eq!((path.is_lock(), path.is_pause()), (is_lock, is_pause), "{path}");
        }
    }
}

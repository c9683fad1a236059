//! Turning a refusal into what stood against it: who holds what, since when.

use zookeeper_client::Stat;

use super::{CommitError, Operation};
use crate::error::{Cause, ConflictKind, Error};
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
        (reason, _) => return Error::Commit { operation: operation.to_string(), cause: Cause::Client(reason) },
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

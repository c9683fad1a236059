//! One ZooKeeper `multi`: the only way in which anything here is written.
//!
//! A transaction happens whole or not at all. It can be inspected before it is committed: its [`fmt::Display`] lists
//! its operations in words, which is what a dry run shows.

use std::collections::BTreeSet;
use std::fmt;

use zookeeper_client::{CreateMode, MultiWriteError, MultiWriteResult, MultiWriter, Stat};

use super::error::{Error, RequestFailure};
use super::handle::Queue;
use super::path::Path;

mod explain;
mod resolve;
mod sent;

use sent::{Sent, missing_folder};

/// The largest request that is sent. The server takes 1 MiB; a larger request would not be refused but cut the
/// connection, so the distance covers what [`Transaction::size_bytes`] only estimates.
pub const REQUEST_LIMIT_BYTES: usize = 900 * 1024;

/// How often a commit is repeated because a folder was missing, or was made by another meanwhile. Creating a job in an
/// empty tree needs most: four folders are missing.
const FOLDER_ATTEMPTS: usize = 12;

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates a znode; refused where it exists.
    Create {
        /// The znode.
        path: Path,
        /// Its data.
        data: Vec<u8>,
        /// Whether it ends with our session, as locks do.
        ephemeral: bool,
    },
    /// Checks that a znode exists, and its version where one is given.
    Check {
        /// The znode.
        path: Path,
        /// The version of its data; `None` for any.
        version: Option<i32>,
    },
    /// Replaces a znode's data; refused at another version.
    Set {
        /// The znode.
        path: Path,
        /// Its new data.
        data: Vec<u8>,
        /// The version of its old data.
        version: i32,
    },
    /// Deletes a znode; refused at another version, or where it has children.
    Delete {
        /// The znode.
        path: Path,
        /// The version of its data; `None` for any.
        version: Option<i32>,
    },
}

impl Operation {
    /// The znode that it is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Create { path, .. }
            | Self::Check { path, .. }
            | Self::Set { path, .. }
            | Self::Delete { path, .. } => path,
        }
    }

    /// What it does to which znode, for errors: they are no place for values, which may be long or secret.
    #[must_use]
    pub fn title(&self) -> String {
        let verb = match self {
            Self::Create { .. } => "create",
            Self::Check { .. } => "check",
            Self::Set { .. } => "set",
            Self::Delete { .. } => "delete",
        };
        format!("{verb} {}", self.path())
    }

    fn size_bytes(&self) -> usize {
        let data = match self {
            Self::Create { data, .. } | Self::Set { data, .. } => data.len(),
            Self::Check { .. } | Self::Delete { .. } => 0,
        };
        // Header, lengths, flags and version take at most 25 bytes.
        data + self.path().to_string().len() + 25
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title())?;
        match self {
            Self::Create { ephemeral: true, .. } => f.write_str(" (ephemeral)"),
            Self::Create { data, .. } if data.is_empty() => Ok(()),
            Self::Create { data, .. } => write!(f, " = {}", Shown(data)),
            Self::Check { version: None, .. } => f.write_str(" exists"),
            Self::Check { version: Some(version), .. } | Self::Delete { version: Some(version), .. } => {
                write!(f, " at version {version}")
            }
            Self::Set { data, version, .. } => write!(f, " at version {version} = {}", Shown(data)),
            Self::Delete { version: None, .. } => Ok(()),
        }
    }
}

/// Data as a description shows it: text without control characters, and not more than fits a line or two.
struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 300;
        let text = String::from_utf8_lossy(&self.0[..self.0.len().min(4 * SHOWN)]);
        for shown in text.chars().take(SHOWN) {
            if shown.is_control() { write!(f, "{}", shown.escape_default())? } else { write!(f, "{shown}")? }
        }
        if self.0.len() > 4 * SHOWN || text.chars().nth(SHOWN).is_some() { write!(f, "..") } else { Ok(()) }
    }
}

/// The operations of one `multi`, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    operations: Vec<Operation>,
    /// Folders that are expected to be missing: they are made with the first attempt.
    folders: BTreeSet<Path>,
}

impl Transaction {
    /// One without operations yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Its operations.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Adds the creation of a persistent znode. A folder above it that is missing is made with it.
    pub fn create(&mut self, path: Path, data: impl Into<Vec<u8>>) -> &mut Self {
        self.push(Operation::Create { path, data: data.into(), ephemeral: false })
    }

    /// Adds the creation of an empty znode that ends with our session: a lock.
    pub fn create_ephemeral(&mut self, path: Path) -> &mut Self {
        self.push(Operation::Create { path, data: Vec::new(), ephemeral: true })
    }

    /// Adds a check of a znode's version.
    pub fn check(&mut self, path: Path, version: i32) -> &mut Self {
        self.push(Operation::Check { path, version: Some(version) })
    }

    /// Adds a check that a znode exists.
    pub fn check_exists(&mut self, path: Path) -> &mut Self {
        self.push(Operation::Check { path, version: None })
    }

    /// Adds a change of a znode's data that has this version.
    pub fn set(&mut self, path: Path, data: impl Into<Vec<u8>>, version: i32) -> &mut Self {
        self.push(Operation::Set { path, data: data.into(), version })
    }

    /// Adds a deletion, of this version of the data where one is given.
    pub fn delete(&mut self, path: Path, version: Option<i32>) -> &mut Self {
        self.push(Operation::Delete { path, version })
    }

    /// Expects a folder to be missing, which saves the attempt that would show it. It is made with the first znode
    /// below it; where it exists, that does no harm.
    pub(super) fn expect_missing(&mut self, folder: Path) -> &mut Self {
        self.folders.insert(folder);
        self
    }

    /// Adds all operations of another.
    pub fn append(&mut self, other: Transaction) -> &mut Self {
        self.operations.extend(other.operations);
        self.folders.extend(other.folders);
        self
    }

    pub(super) fn push(&mut self, operation: Operation) -> &mut Self {
        self.operations.push(operation);
        self
    }

    /// About how large its request is, without chroot and ACLs.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.operations.iter().map(Operation::size_bytes).sum()
    }

    /// The data that a znode is set to, and the version that it has before.
    pub(super) fn set_of(&self, znode: &Path) -> Option<(&[u8], i32)> {
        self.operations.iter().find_map(|operation| match operation {
            Operation::Set { path, data, version } if path == znode => Some((data.as_slice(), *version)),
            Operation::Set { .. } | Operation::Create { .. } | Operation::Check { .. } | Operation::Delete { .. } => {
                None
            }
        })
    }

    /// Its changes that last: all but checks, and locks that it takes and releases itself.
    pub fn lasting(&self) -> impl Iterator<Item = &Operation> {
        let is_own = |path: &Path| {
            let is_made = |other: &Operation| matches!(other, Operation::Create { path: made, ephemeral: true, .. } if made == path);
            self.operations.iter().any(is_made)
        };
        self.operations.iter().filter(move |operation| match operation {
            Operation::Create { ephemeral, .. } => !ephemeral,
            Operation::Delete { path, .. } => !is_own(path),
            Operation::Set { .. } => true,
            Operation::Check { .. } => false,
        })
    }

    /// What it is mainly about, in words: its first lasting change.
    #[must_use]
    pub fn title(&self) -> String {
        let main = self.lasting().next().or(self.operations.first());
        main.map_or_else(|| "nothing".to_owned(), Operation::title)
    }
}

impl fmt::Display for Transaction {
    /// One operation a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operations.iter().try_for_each(|operation| writeln!(f, "{operation}"))
    }
}

/// A transaction that was done.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The stat that each operation left, in order; `None` for checks and deletions, where the server gives none, and
    /// where it is not known any more.
    pub stats: Vec<Option<Stat>>,
    /// Whether the connection was lost during the commit, and that it was done was read from the tree afterwards.
    pub recovered: bool,
}

/// Why a transaction was not done, or is not known to have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The server refused an operation, and with it all.
    #[error("{}: {reason}", .operation.title())]
    Refused {
        /// Which, counted from 0.
        index: usize,
        /// The operation, boxed since it is large.
        operation: Box<Operation>,
        /// Why, such as `NodeExists` or `BadVersion`.
        reason: zookeeper_client::Error,
    },
    /// It was not done at all: not sent, or lost with the connection before it was applied.
    #[error("{operation}: {cause}")]
    NotDone {
        /// Its title.
        operation: String,
        /// Why.
        cause: RequestFailure,
    },
    /// The connection was lost, and whether it was done could not be learned.
    #[error("{operation}: {cause}")]
    Unknown {
        /// Its title.
        operation: String,
        /// Why it is not known.
        cause: RequestFailure,
    },
}

impl Queue {
    /// Commits a transaction, and explains a conflict.
    ///
    /// # Errors
    /// [`Error::Conflict`] where another client holds, changed or made one of its znodes, [`Error::Missing`] where one
    /// is gone, [`Error::Commit`] where it was refused or not done for another reason, [`Error::Unknown`] where the
    /// connection was lost and the outcome could not be learned.
    pub async fn commit(&self, transaction: &Transaction) -> Result<Committed, Error> {
        match self.try_commit(transaction).await {
            Ok(committed) => Ok(committed),
            Err(error) => Err(self.explain(error).await),
        }
    }

    /// Commits a transaction, and reports which operation was refused and why.
    ///
    /// Folders that are missing are made with it. After a connection lost during the commit the outcome is learned by
    /// a `sync` on the same client and a second look.
    ///
    /// # Errors
    /// When it was refused, not done, or is not known to have been.
    pub async fn try_commit(&self, transaction: &Transaction) -> Result<Committed, CommitError> {
        let mut folders = transaction.folders.clone();
        for _ in 0..FOLDER_ATTEMPTS {
            let sent = Sent::new(transaction, &folders);
            let refused = match self.commit_once(&sent.transaction).await? {
                Ok(committed) => return Ok(sent.own(committed)),
                Err(refused) => refused,
            };
            let operation = &sent.transaction.operations[refused.index];
            let own = sent.origin[refused.index];
            let settled = match (own, &refused.reason) {
                (None, zookeeper_client::Error::NodeExists) => folders.remove(operation.path()),
                (_, zookeeper_client::Error::NoNode) => {
                    missing_folder(operation).is_some_and(|folder| folders.insert(folder))
                }
                (_, _) => false,
            };
            if !settled {
                let index = own.unwrap_or(refused.index);
                let operation = Box::new(operation.clone());
                return Err(CommitError::Refused { index, operation, reason: refused.reason });
            }
        }
        Err(CommitError::NotDone { operation: transaction.title(), cause: RequestFailure::ChangedSince })
    }

    /// Commits exactly these operations; `Ok(Err(..))` is a refusal.
    async fn commit_once(&self, transaction: &Transaction) -> Result<Result<Committed, Refused>, CommitError> {
        let not_done = |cause| CommitError::NotDone { operation: transaction.title(), cause };
        let bytes = transaction.size_bytes() + self.operation_overhead() * transaction.operations.len();
        if bytes > REQUEST_LIMIT_BYTES {
            return Err(not_done(RequestFailure::TooLarge { bytes, limit: REQUEST_LIMIT_BYTES }));
        }
        let mut writer = self.client().new_multi_writer();
        let added = transaction.operations.iter().try_for_each(|operation| self.add(&mut writer, operation));
        added.map_err(|error| not_done(RequestFailure::Client(error)))?;
        let cause = match tokio::time::timeout(self.time_limit(), writer.commit()).await {
            Ok(Ok(results)) => {
                let stats = results.iter().map(stat).collect();
                return Ok(Ok(Committed { stats, recovered: false }));
            }
            Ok(Err(MultiWriteError::OperationFailed { index, source })) => {
                return Ok(Err(Refused { index, reason: source }));
            }
            Ok(Err(MultiWriteError::RequestFailed { source })) => RequestFailure::Client(source),
            Err(_elapsed) => RequestFailure::TimedOut(self.time_limit()),
        };
        self.resolve(transaction, cause).await.map(Ok)
    }

    fn add(&self, writer: &mut MultiWriter<'_>, operation: &Operation) -> Result<(), zookeeper_client::Error> {
        let path = operation.path().to_string();
        match operation {
            Operation::Create { data, ephemeral, .. } => {
                let mode = if *ephemeral { CreateMode::Ephemeral } else { CreateMode::Persistent };
                writer.add_create(&path, data, &mode.with_acls(self.acls()))
            }
            // The server takes -1 for any version.
            Operation::Check { version, .. } => writer.add_check_version(&path, version.unwrap_or(-1)),
            Operation::Set { data, version, .. } => writer.add_set_data(&path, data, Some(*version)),
            Operation::Delete { version, .. } => writer.add_delete(&path, *version),
        }
    }
}

/// Which operation the server refused, and why.
struct Refused {
    index: usize,
    reason: zookeeper_client::Error,
}

fn stat(result: &MultiWriteResult) -> Option<Stat> {
    match result {
        // Some servers answer a creation without its stat (ZOOKEEPER-4026, ZOOKEEPER-4667).
        MultiWriteResult::Create { stat, .. } => Some(*stat).filter(|stat| !stat.is_invalid()),
        MultiWriteResult::SetData { stat } => Some(*stat),
        // Checks and deletions; the library's enum may grow with operations that we do not send.
        _ => None,
    }
}

#[cfg(test)]
mod tests;

//! Reads of znodes that the mirror does not hold, for pages that show one item or one place in the tree.
//!
//! They go over the mirror's own session and cost ZooKeeper little: few at a time, with a time limit, and only as much
//! of the data is kept as a page shows. The size of each znode is read before its data, so that large ones are read one
//! after the other.

mod cache;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};
use zookeeper_client::{Client, Error, SessionState, Stat};

use self::cache::{Listings, Recent};
use super::clock::{Moment, OffsetAt};
use super::read::{NOT_READABLE, ReadBudget};
use queuekeeper_queue::path::NodePath;

/// How many reads are in flight at once.
const IN_FLIGHT: usize = 8;

/// How many wait for their turn at most; further requests are refused until later.
const WAITING: usize = 64;

/// How long a read takes at most, waiting for its turn included.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// How much of a znode's data is kept, in bytes.
const KEPT_BYTES: usize = 64 << 10;

/// How much may be under way at once however much is configured, in KiB: more than any server holds.
const MOST_ROOM_KIB: u32 = 1 << 28;

/// About how long a name in a list of children is, in bytes.
const NAME_BYTES: u64 = 32;

/// How many children of an item are read with it: a job has eleven.
const ITEM_CHILDREN: usize = 16;

/// Why a znode could not be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NodeError {
    /// There is no connection to ZooKeeper.
    #[error("cannot read {path}: there is no connection to ZooKeeper")]
    NotConnected {
        /// The znode.
        path: NodePath,
    },
    /// Too many others are being read.
    #[error("cannot read {path}: {} reads are already waiting, try again in a moment", WAITING)]
    Busy {
        /// The znode.
        path: NodePath,
    },
    /// There was no answer in time.
    #[error("cannot read {path}: ZooKeeper did not answer within {} s", TIME_LIMIT.as_secs())]
    TimedOut {
        /// The znode.
        path: NodePath,
    },
    /// There is no such znode.
    #[error("there is no znode {path}")]
    NoNode {
        /// The znode.
        path: NodePath,
    },
    /// Our credentials do not allow it.
    #[error("{path} {why}", why = NOT_READABLE)]
    NoAuth {
        /// The znode.
        path: NodePath,
    },
    /// ZooKeeper or the client library failed.
    #[error("cannot read {path}: {source}")]
    Failed {
        /// The znode.
        path: NodePath,
        /// The cause.
        source: Error,
    },
}

/// What a znode's stat says. Instants are by our own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeStat {
    /// The transaction that created it.
    pub czxid: i64,
    /// The transaction that last wrote its data.
    pub mzxid: i64,
    /// The transaction that last added or removed a child.
    pub pzxid: i64,
    /// When it was created.
    pub created: Timestamp,
    /// When its data was last written.
    pub modified: Timestamp,
    /// How often its data was written.
    pub version: i32,
    /// How often children were added or removed.
    pub cversion: i32,
    /// How often its ACL was changed.
    pub aversion: i32,
    /// The session that it goes away with; 0 for a persistent one.
    pub ephemeral_owner: i64,
    /// How long its data is, in bytes.
    pub data_length: u64,
    /// How many children it has.
    pub children: u64,
}

/// A znode as it is in ZooKeeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its path.
    pub path: NodePath,
    /// The first 64 KiB of its data; [`NodeStat::data_length`] says how much there is.
    pub data: Vec<u8>,
    /// Its stat.
    pub stat: NodeStat,
}

/// Some children of a znode, sorted by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Children {
    /// Their names.
    pub names: Vec<String>,
    /// How many come before them.
    pub before: usize,
    /// How many there are in all.
    pub total: usize,
}

/// A znode with its children, which were read with it; of more than sixteen only the first.
pub type Item = (Node, Vec<Result<Node, NodeError>>);

/// A reader's handle to the tree itself; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    client: RwLock<Option<Client>>,
    in_flight: Semaphore,
    waiting: Semaphore,
    /// How many KiB more may be under way, and how many there are at all.
    room: Semaphore,
    room_kib: u32,
    offset: RwLock<OffsetAt>,
    listings: Mutex<Listings>,
    recent: Mutex<Recent>,
}

impl Default for Shared {
    fn default() -> Self {
        Self::with_budget(ReadBudget::default())
    }
}

impl Shared {
    fn with_budget(budget: ReadBudget) -> Self {
        let room_kib = u32::try_from(budget.pages() >> 10).unwrap_or(u32::MAX).clamp(1, MOST_ROOM_KIB);
        Self {
            room: Semaphore::new(room_kib as usize),
            room_kib,
            client: RwLock::default(),
            in_flight: Semaphore::new(IN_FLIGHT),
            waiting: Semaphore::new(IN_FLIGHT + WAITING),
            offset: RwLock::default(),
            listings: Mutex::default(),
            recent: Mutex::default(),
        }
    }
}

/// The session over which is read; it is given back when this is dropped.
#[derive(Debug)]
pub(super) struct LentSession<'a>(&'a Nodes);

impl Drop for LentSession<'_> {
    fn drop(&mut self) {
        *self.0.shared.client.write() = None;
    }
}

impl Nodes {
    /// Reads that have so much under way at most.
    pub(super) fn with_budget(budget: ReadBudget) -> Self {
        Self { shared: Arc::new(Shared::with_budget(budget)) }
    }

    /// Reads over this session until the answer is dropped.
    pub(super) fn lend(&self, client: &Client) -> LentSession<'_> {
        *self.shared.client.write() = Some(client.clone());
        LentSession(self)
    }

    /// Reads over this session for good.
    pub(super) fn give(&self, client: &Client) {
        *self.shared.client.write() = Some(client.clone());
    }

    /// Takes note of how the servers' clock stands to ours.
    pub(super) fn set_offset(&self, offset: OffsetAt) {
        *self.shared.offset.write() = offset;
    }

    /// Reads a znode.
    ///
    /// # Errors
    /// When it is not there, not readable, or no server answers in time.
    pub async fn node(&self, path: &NodePath) -> Result<Node, NodeError> {
        self.within(path, async |client| self.read(client, path).await).await
    }

    /// Reads a znode and the names of at most `limit` of its children: those behind the name `after`, or the first.
    ///
    /// # Errors
    /// Likewise.
    pub async fn list(
        &self,
        path: &NodePath,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Node, Children), NodeError> {
        self.within(path, async |client| {
            let node = self.read(client, path).await?;
            let names = self.names(client, &node).await?;
            let before = after.map_or(0, |after| names.partition_point(|name| name.as_str() <= after));
            let some = names[before..].iter().take(limit).cloned().collect();
            Ok((node, Children { names: some, before, total: names.len() }))
        })
        .await
    }

    /// Reads a znode and its children, of which there are few. An answer of the last second is good enough.
    ///
    /// # Errors
    /// Likewise.
    pub async fn item(&self, path: &NodePath) -> Result<Arc<Item>, NodeError> {
        let now = Instant::now();
        if let Some(item) = self.shared.recent.lock().get(path, now) {
            return Ok(item);
        }
        let item = self
            .within(path, async |client| {
                let node = self.read(client, path).await?;
                let names = if node.stat.children > 0 { self.names(client, &node).await? } else { Arc::default() };
                let paths = names.iter().take(ITEM_CHILDREN).filter_map(|name| path.child(name).ok());
                let reads = paths.map(|path| async move { self.read(client, &path).await });
                let mut children = join_all(reads).await;
                // Its session may have ended, or its daemon have let it go, since it was listed.
                children.retain(|child| !matches!(child, Err(NodeError::NoNode { .. })));
                Ok(Arc::new((node, children)))
            })
            .await?;
        self.shared.recent.lock().put(path, Arc::clone(&item), now);
        Ok(item)
    }

    /// The names of a znode's children, sorted. Long lists are kept for as long as they are right.
    async fn names(&self, client: &Client, node: &Node) -> Result<Arc<Vec<String>>, NodeError> {
        let known = self.shared.listings.lock().get(&node.path, node.stat.pzxid);
        if let Some(names) = known {
            return Ok(names);
        }
        let _room = self.room(node.stat.children.saturating_mul(NAME_BYTES)).await;
        let listed = client.get_children(node.path.as_str()).await;
        let (mut names, stat) = listed.map_err(|error| failed(&node.path, error))?;
        names.sort_unstable();
        let names = Arc::new(names);
        self.shared.listings.lock().put(&node.path, stat.pzxid, &names);
        Ok(names)
    }

    async fn read(&self, client: &Client, path: &NodePath) -> Result<Node, NodeError> {
        let failed = |error| failed(path, error);
        let there = client.check_stat(path.as_str()).await.map_err(failed)?;
        let stat = there.ok_or_else(|| NodeError::NoNode { path: path.clone() })?;
        let _room = self.room(u64::try_from(stat.data_length).unwrap_or(0)).await;
        let read = client.get_data(path.as_str()).await.map_err(failed)?;
        Ok(self.found(path.clone(), read))
    }

    /// Waits until an answer of so many bytes may be under way. What is larger than all of it goes alone.
    async fn room(&self, bytes: u64) -> SemaphorePermit<'_> {
        let kib = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX).min(self.shared.room_kib);
        self.shared.room.acquire_many(kib).await.expect("the semaphore is never closed")
    }

    fn found(&self, path: NodePath, (mut data, stat): (Vec<u8>, Stat)) -> Node {
        let offset = self.shared.offset.read().offset(Moment::now());
        let stat = NodeStat {
            czxid: stat.czxid,
            mzxid: stat.mzxid,
            pzxid: stat.pzxid,
            created: offset.to_own(stat.ctime),
            modified: offset.to_own(stat.mtime),
            version: stat.version,
            cversion: stat.cversion,
            aversion: stat.aversion,
            ephemeral_owner: stat.ephemeral_owner,
            data_length: data.len() as u64,
            children: u64::try_from(stat.num_children).unwrap_or(0),
        };
        data.truncate(KEPT_BYTES);
        data.shrink_to_fit();
        Node { path, data, stat }
    }

    /// Does some reading, in turn and in time.
    async fn within<T>(
        &self,
        path: &NodePath,
        read: impl AsyncFnOnce(&Client) -> Result<T, NodeError>,
    ) -> Result<T, NodeError> {
        let deadline = Instant::now() + TIME_LIMIT;
        let timed_out = || NodeError::TimedOut { path: path.clone() };
        let _place = self.shared.waiting.try_acquire().map_err(|_| NodeError::Busy { path: path.clone() })?;
        let turn = timeout_at(deadline, self.shared.in_flight.acquire()).await.map_err(|_| timed_out())?;
        let _turn = turn.expect("the semaphore is never closed");
        let client = self.shared.client.read().clone();
        // A request made while disconnected waits for the connection, for an unknown time.
        let connected =
            |client: &Client| matches!(client.state(), SessionState::SyncConnected | SessionState::ConnectedReadOnly);
        let client = client.filter(connected).ok_or_else(|| NodeError::NotConnected { path: path.clone() })?;
        timeout_at(deadline, read(&client)).await.map_err(|_| timed_out())?
    }
}

fn failed(path: &NodePath, source: Error) -> NodeError {
    let path = path.clone();
    match source {
        Error::NoNode => NodeError::NoNode { path },
        Error::NoAuth => NodeError::NoAuth { path },
        Error::ConnectionLoss | Error::SessionExpired | Error::ClientClosed => NodeError::NotConnected { path },
        source => NodeError::Failed { path, source },
    }
}

//! What keeps daemons from storing an object while it is repaired, and how long that may be relied on.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use queuekeeper_ingest::engine::fence::Fence;
use queuekeeper_queue::path::LockFolder;
use queuekeeper_queue::{Error as QueueError, Lock, Queue};
use queuekeeper_store::WriteGuard;
use queuekeeper_zookeeper::Config;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use zookeeper_client::Client;

use super::check_queue;
use crate::cli::exit::{CommandError, REFUSED};

/// What keeps daemons from storing the object meanwhile.
pub(super) enum Held {
    /// The lock of a repository's directory: nothing runs there.
    Directory(#[expect(dead_code, reason = "it is held as long as it is open")] File),
    /// The lock of the object in the queue.
    Queue(Box<ObjectLock>),
    Nothing,
}

/// The lock of an object, and whether its session may still be relied on.
pub(super) struct ObjectLock {
    queue: Queue,
    lock: Lock,
    session: Session,
}

#[derive(Clone)]
struct Session {
    client: Client,
    fence: Fence,
    timeout: Duration,
}

/// Lets writes begin as long as nothing is interrupted and the session of the lock is answered.
pub(super) struct RepairGuard {
    interrupted: CancellationToken,
    session: Option<Session>,
    begun: AtomicU64,
}

impl Held {
    /// Locks an object in the queue of the daemons that write into this catalogue.
    pub(super) async fn in_queue(zookeeper: &Config, ark: &str, catalogue: Uuid) -> anyhow::Result<Self> {
        let queue = Queue::new(zookeeper.connect().await.map_err(CommandError::from)?);
        check_queue(&queue, catalogue).await?;
        let (client, timeout) = (queue.client().clone(), queue.client().session_timeout());
        // From before the lock is requested: its answer proves no more.
        let session = Session { client, fence: Fence::new(timeout), timeout };
        match queue.lock_object(LockFolder::Storage, ark).await {
            Ok(lock) => Ok(Self::Queue(Box::new(ObjectLock { queue, lock, session }))),
            Err(QueueError::Conflict(conflict)) => {
                Err(CommandError::new(REFUSED, format!("{ark} is being stored: {conflict}; nothing was done")).into())
            }
            Err(error) => Err(CommandError::from(error).into()),
        }
    }

    /// A guard of writes under this lock, until a signal comes.
    pub(super) fn guard(&self, interrupted: CancellationToken) -> Arc<RepairGuard> {
        let session = match self {
            Self::Queue(held) => Some(held.session.clone()),
            Self::Directory(_) | Self::Nothing => None,
        };
        Arc::new(RepairGuard { interrupted, session, begun: AtomicU64::new(0) })
    }

    /// Does something, and keeps asking ZooKeeper meanwhile whether the session is there.
    pub(super) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let Self::Queue(held) = self else { return work.await };
        let Session { client, fence, .. } = &held.session;
        tokio::select! {
            done = work => done,
            () = fence.keep(client) => unreachable!("it asks until it is dropped"),
        }
    }

    /// Lets them store it again.
    pub(super) async fn release(self) {
        if let Self::Queue(held) = self
            && !held.session.client.state().is_terminated()
            && let Err(error) = held.queue.unlock(&held.lock).await
        {
            // It ends with the session of this process.
            tracing::warn!("cannot release {}: {error}", held.lock.path);
        }
    }
}

impl RepairGuard {
    /// How many writes have begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    async fn may_begin(&self) -> Result<(), String> {
        let passed = async {
            match &self.session {
                Some(session) => session.pass().await,
                None => Ok(()),
            }
        };
        tokio::select! {
            biased;
            () = self.interrupted.cancelled() => Err("it was interrupted".to_owned()),
            passed = passed => passed.inspect(|()| {
                self.begun.fetch_add(1, Ordering::Relaxed);
            }),
        }
    }
}

impl WriteGuard for RepairGuard {
    fn pass(&self) -> BoxFuture<'_, Result<(), String>> {
        self.may_begin().boxed()
    }
}

impl Session {
    /// Returns while the lock is ours; without an answer for as long as the session lasts, it may be another's.
    async fn pass(&self) -> Result<(), String> {
        let lost = || "the session with ZooKeeper was lost, and with it the lock of the object".to_owned();
        tokio::select! {
            biased;
            () = ended(&self.client) => Err(lost()),
            passed = tokio::time::timeout(self.timeout, self.fence.pass()) => passed.map_err(|_| lost()),
        }
    }
}

/// Returns when a session is over.
async fn ended(client: &Client) {
    let mut watcher = client.state_watcher();
    let mut state = watcher.state();
    while !state.is_terminated() {
        state = watcher.changed().await;
    }
}

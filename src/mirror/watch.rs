//! Taking watch events: which paths are dirty.

use std::collections::HashSet;
use std::pin::pin;

use futures::FutureExt;
use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use zookeeper_client::{EventType, PersistentWatcher, SessionState, WatchedEvent};

use super::read::ReadError;
use queuekeeper_queue::path::Path;
use queuekeeper_zookeeper::RequestError;

/// How many paths are remembered as dirty. Reading so many one by one takes as long as a walk.
pub(super) const DIRTY_LIMIT: usize = 200_000;

/// Why following a connection ended.
#[derive(Debug)]
pub(super) enum Interrupted {
    /// The session is over; a new client is needed.
    SessionOver,
    /// The connection was lost. Persistent watches do not survive that, even where the session does.
    Disconnected,
    /// A request failed.
    Failed(String),
    /// More is dirty than is remembered.
    Overflow,
}

impl From<ReadError> for Interrupted {
    fn from(error: ReadError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<RequestError> for Interrupted {
    fn from(error: RequestError) -> Self {
        Self::Failed(format!("cannot watch the tree: {error}"))
    }
}

/// A recursive watch on the whole tree, and what it has reported that was not read yet.
#[derive(Debug)]
pub(super) struct Watch {
    watcher: PersistentWatcher,
    events: Counter,
    dirty: HashSet<Path>,
    /// Everything that events reported since it was requested; see [`Watch::keep_touched`].
    touched: Option<HashSet<Path>>,
    pub(super) last_event: Option<Timestamp>,
}

impl Watch {
    pub(super) fn new(watcher: PersistentWatcher, events: Counter) -> Self {
        Self { watcher, events, dirty: HashSet::new(), touched: None, last_event: None }
    }

    /// Waits for an event and takes note of it.
    ///
    /// # Errors
    /// When it reports the session and not a znode. It must not be called again then: the client library panics
    /// after a terminal event.
    pub(super) async fn next(&mut self) -> Result<(), Interrupted> {
        let event = self.watcher.changed().await;
        self.take(&event)
    }

    /// Takes note of the events that have come in already: those of one transaction come together.
    ///
    /// # Errors
    /// As [`Watch::next`].
    pub(super) fn drain(&mut self) -> Result<(), Interrupted> {
        while let Some(event) = self.watcher.changed().now_or_never() {
            self.take(&event)?;
        }
        Ok(())
    }

    /// Awaits some work, and takes note of events meanwhile.
    ///
    /// # Errors
    /// As [`Watch::next`]; the work is dropped then.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                event = self.next() => event?,
            }
        }
    }

    fn take(&mut self, event: &WatchedEvent) -> Result<(), Interrupted> {
        match event.event_type {
            EventType::Session => match event.session_state {
                SessionState::Disconnected | SessionState::SyncConnected | SessionState::ConnectedReadOnly => {
                    Err(Interrupted::Disconnected)
                }
                SessionState::AuthFailed | SessionState::Expired | SessionState::Closed => {
                    Err(Interrupted::SessionOver)
                }
            },
            EventType::NodeCreated
            | EventType::NodeDeleted
            | EventType::NodeDataChanged
            | EventType::NodeChildrenChanged => self.mark(&event.path),
        }
    }

    fn mark(&mut self, path: &str) -> Result<(), Interrupted> {
        let path = match Path::parse(path) {
            Path::Foreign => match Path::own(path).filter(|path| path.own_node().is_some()) {
                Some(path) => path,
                None => return Ok(()),
            },
            path => path,
        };
        self.events.inc();
        self.last_event = Some(Timestamp::now());
        if let Some(touched) = &mut self.touched {
            touched.insert(path.clone());
        }
        self.dirty.insert(path);
        let remembered = self.dirty.len().max(self.touched.as_ref().map_or(0, HashSet::len));
        if remembered > DIRTY_LIMIT { Err(Interrupted::Overflow) } else { Ok(()) }
    }

    pub(super) fn is_clean(&self) -> bool {
        self.dirty.is_empty()
    }

    /// The dirty paths, which are clean from now on.
    pub(super) fn take_dirty(&mut self) -> Vec<Path> {
        self.dirty.drain().collect()
    }

    /// Remembers from now on which paths events reported.
    pub(super) fn keep_touched(&mut self) {
        self.touched = Some(HashSet::new());
    }

    /// Whether an event reported a path since [`Watch::keep_touched`], or before that and it was not read yet.
    pub(super) fn is_touched(&self, path: &Path) -> bool {
        self.dirty.contains(path) || self.touched.as_ref().is_some_and(|touched| touched.contains(path))
    }

    pub(super) fn forget_touched(&mut self) {
        self.touched = None;
    }
}

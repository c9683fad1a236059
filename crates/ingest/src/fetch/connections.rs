//! How many connections there are to one host at a time: of all jobs of a process together.
//!
//! A job keeps the first one that it gets of a host until its step ends, and takes others beside it as they become
//! free: so not more jobs are at work on a host than it has connections, and each of them goes on. Where it has to wait
//! for one of another host it gives those back that it keeps, as its requests end: two jobs would wait for each
//! other's. A job that has none yet waits a moment for one. Where none becomes free within that time the job gives its
//! worker back, and so do those that come after it at once, but for one: a slow host keeps no more workers busy than it
//! has connections, and one more.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::FetchCause;
use super::limits::HostLimits;

/// From how many hosts on those are forgotten to which there is no connection.
const FORGET: usize = 1_000;

/// How much longer than one that has nothing a job waits that fetches content from another host: it might have to be
/// fetched again.
const CONTENT_FACTOR: u32 = 30;

/// What a connection is for. Those for content may last for hours, and do not hold up the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// To ask for a size.
    Size,
    /// To fetch content.
    Content,
}

type Key = (Purpose, String);

/// The connections to all hosts. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections(Arc<Mutex<BTreeMap<Key, Weak<Host>>>>);

/// The connections to a host.
#[derive(Debug)]
struct Host {
    free: Arc<Semaphore>,
    /// When one of them became free last.
    freed: Mutex<Instant>,
    /// The place of the one that waits where none becomes free.
    place: Semaphore,
}

/// What a job keeps, and gives back when it is dropped. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept(Arc<KeptOfJob>);

#[derive(Debug, Default)]
struct KeptOfJob {
    /// Held by the one that gets the first connection to a host.
    first: tokio::sync::Mutex<()>,
    hosts: Mutex<BTreeMap<Key, Arc<KeptHost>>>,
    /// Whether it has had a connection for content.
    has_content: AtomicBool,
}

/// The connection to a host that a job keeps, and which its requests use in turn.
#[derive(Debug)]
struct KeptHost {
    own: Arc<Semaphore>,
    connection: Connection,
}

/// The right to have a connection to a host, until it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    host: Arc<Host>,
    /// The one that the job keeps, where it is that: it is in use, whether or not the job still keeps it.
    kept: Option<Arc<KeptHost>>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.kept.is_none() {
            *self.host.freed.lock() = Instant::now();
        }
    }
}

impl Connections {
    /// A connection to a host, which is named with its port, for a request of a job.
    ///
    /// # Errors
    /// [`FetchCause::Busy`] where the job has none to that host, and gets none in time.
    pub(super) async fn connect(
        &self,
        kept: &Kept,
        purpose: Purpose,
        name: &str,
        limits: HostLimits,
    ) -> Result<Connection, FetchCause> {
        let key = (purpose, name.to_owned());
        if let Some(known) = kept.of(&key) {
            return Ok(known.next().await);
        }
        let _first = kept.0.first.lock().await;
        if let Some(known) = kept.of(&key) {
            return Ok(known.next().await);
        }
        let wait = if kept.0.has_content.load(Ordering::Relaxed) { limits.wait * CONTENT_FACTOR } else { limits.wait };
        let host = self.host(&key, limits.connections);
        let permit = match Arc::clone(&host.free).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_none_is_free) => {
                kept.give_back();
                let busy = || FetchCause::Busy { host: key.1.clone(), connections: limits.connections };
                host.enter(wait, limits.wait).await.ok_or_else(busy)?
            }
        };
        if purpose == Purpose::Content {
            kept.0.has_content.store(true, Ordering::Relaxed);
        }
        let connection = Connection { host, kept: None, _permit: permit };
        let known = Arc::new(KeptHost { own: Arc::new(Semaphore::new(1)), connection });
        kept.0.hosts.lock().insert(key, Arc::clone(&known));
        Ok(known.next().await)
    }

    fn host(&self, key: &Key, connections: usize) -> Arc<Host> {
        let mut hosts = self.0.lock();
        if let Some(host) = hosts.get(key).and_then(Weak::upgrade) {
            return host;
        }
        if hosts.len() >= FORGET {
            hosts.retain(|_, host| host.strong_count() > 0);
        }
        let host = Arc::new(Host {
            free: Arc::new(Semaphore::new(connections)),
            freed: Mutex::new(Instant::now()),
            place: Semaphore::new(1),
        });
        hosts.insert(key.clone(), Arc::downgrade(&host));
        host
    }
}

impl Host {
    /// One that becomes free within a time; `None` where there is none, or another job waits already that gets none.
    async fn enter(&self, wait: Duration, slow: Duration) -> Option<OwnedSemaphorePermit> {
        let is_slow = self.freed.lock().elapsed() >= slow;
        // Not for a job that waits for longer than this: it is at work.
        let is_new = wait <= slow;
        let _place = if is_slow && is_new { Some(self.place.try_acquire().ok()?) } else { None };
        tokio::time::timeout(wait, Arc::clone(&self.free).acquire_owned()).await.ok()?.ok()
    }
}

impl Kept {
    fn of(&self, key: &Key) -> Option<Arc<KeptHost>> {
        self.0.hosts.lock().get(key).cloned()
    }

    /// Gives back what the job keeps: each connection as soon as no request of the job uses it.
    fn give_back(&self) {
        let kept = std::mem::take(&mut *self.0.hosts.lock());
        drop(kept);
    }
}

impl KeptHost {
    /// The job's own connection, or another one, whichever is free first.
    async fn next(self: Arc<Self>) -> Connection {
        let host = &self.connection.host;
        let (permit, is_own) = tokio::select! {
            biased;
            permit = Arc::clone(&self.own).acquire_owned() => (permit, true),
            permit = Arc::clone(&host.free).acquire_owned() => (permit, false),
        };
        let permit = permit.expect("the semaphores are never closed");
        Connection { host: Arc::clone(host), kept: is_own.then(|| Arc::clone(&self)), _permit: permit }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn where_no_connection_becomes_free_one_job_waits_and_those_that_come_meanwhile_do_not() {
        let wait = Duration::from_secs(2);
        let limits = HostLimits { connections: 2, wait, ..HostLimits::default() };
        let connections = Connections::default();
        let [first, second, third, fourth] = [(); 4].map(|()| Kept::default());
        let connect = async |kept: &Kept| connections.connect(kept, Purpose::Content, "a:80", limits).await;
        let [of_first, _of_second] = [connect(&first).await.unwrap(), connect(&second).await.unwrap()];

        // As long as the host may be a fast one, each waits.
        let began = Instant::now();
        let (one, other) = join(connect(&third), connect(&fourth)).await;
        for error in [one.unwrap_err(), other.unwrap_err()] {
            assert!(matches!(error, FetchCause::Busy { connections: 2, .. }), "{error}");
        }
        assert!(began.elapsed() >= wait);

        let began = Instant::now();
        let late = async { (connect(&fourth).await.unwrap_err(), began.elapsed()) };
        let (waited, (refused, after)) = join(connect(&third), late).await;
        assert!(matches!(refused, FetchCause::Busy { .. }) && after.is_zero(), "{refused}, after {after:?}");
        assert!(matches!(waited.unwrap_err(), FetchCause::Busy { .. }) && began.elapsed() >= wait);
        // It gets the one of a job that ends.
        let end = async {
            tokio::time::sleep(wait / 2).await;
            drop((of_first, first));
        };
        join(connect(&third), end).await.0.unwrap();
    }
}

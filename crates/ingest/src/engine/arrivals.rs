//! Waking daemons when something arrives for them.
//!
//! A persistent watch reports each arrival, so that nothing is listed only to watch it further. It does not survive the
//! loss of the connection: then it is set again, and each daemon looks once. No client has a one-shot watch on a path
//! that has a recursive one, which would end that (ZOOKEEPER-4466).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::FutureExt as _;
use queuekeeper_queue::Due;
use queuekeeper_queue::path::{AccessQueue, EntryName, Path, StateFolder};
use tokio::time::Instant;
use tracing::debug;
use zookeeper_client::{AddWatchMode, Client, Error, EventType, PersistentWatcher, SessionState, WatchedEvent};

use super::session::Session;
use crate::daemon::{Daemon, Takes};

/// The shortest time between two arrivals that wake a daemon.
const SHORTEST: Duration = Duration::from_millis(50);

/// How much longer for each item that it listed: a list of 40,000 is a megabyte.
const FOR_EACH: Duration = Duration::from_micros(20);

/// How long a job that arrives has to be taken by a daemon of this process, which needs no waking then.
const GRACE: Duration = Duration::from_millis(10);

/// After a watch could not be set.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The folders in which arrives what a daemon takes, but for those of states.
pub(super) fn folders(takes: Takes) -> impl Iterator<Item = Path> {
    let (batches, requests): (_, &[AccessQueue]) = match takes {
        Takes::Batches(Due::Jobs) => (Some(Path::Batches), &[]),
        Takes::Requests => (None, AccessQueue::ALL),
        // Reports are due when jobs end. Of what is due for the rest of something, and of leftovers, none arrives.
        Takes::Batches(Due::RestOfJobs | Due::Report | Due::UpdatedReport | Due::Withdrawal)
        | Takes::Jobs(_)
        | Takes::JobsByGrant(_)
        | Takes::Leftovers => (None, &[]),
    };
    batches.into_iter().chain(requests.iter().copied().map(Path::AccessQueue))
}

/// Wakes the daemons of states for jobs that arrive and are not at work here, until it is dropped.
pub(super) async fn watch_jobs(session: &Session, client: &Client) {
    let (states, mut arrived) = (Path::JobStates.to_string(), Arrived::default());
    loop {
        let mut watcher = set(client, &states, AddWatchMode::PersistentRecursive).await;
        Daemon::ALL.into_iter().filter(|daemon| daemon.state().is_some()).for_each(|daemon| wake(session, daemon));
        loop {
            let due = arrived.due();
            tokio::select! {
                event = watcher.changed() => match Change::of(&event) {
                    Change::Znode => arrived.note(session, &event),
                    Change::Connection => {}
                    Change::Lost => break,
                },
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    arrived.wake(session);
                }
            }
        }
    }
}

/// Wakes a daemon when the children of a folder change, until it is dropped.
pub(super) async fn watch_children(session: &Session, client: &Client, folder: &str, daemon: Daemon) {
    loop {
        let mut watcher = set(client, folder, AddWatchMode::Persistent).await;
        loop {
            wake(session, daemon);
            tokio::time::sleep(SHORTEST + FOR_EACH.saturating_mul(session.listed(daemon))).await;
            if next(&mut watcher).await.is_none() {
                break;
            }
        }
    }
}

/// Watches whether a znode exists, and keeps the answer, until it is dropped; `changed` is called after each change.
pub(super) async fn watch_existence(
    client: &Client,
    path: &str,
    exists: &tokio::sync::watch::Sender<bool>,
    changed: impl Fn(),
) {
    loop {
        match client.check_and_watch_stat(path).await {
            Ok((stat, watcher)) => {
                if exists.send_replace(stat.is_some()) != stat.is_some() {
                    changed();
                }
                watcher.changed().await;
            }
            Err(error) => failed(path, &error).await,
        }
    }
}

/// The jobs that have come into the folders of states, and for which no daemon was woken yet.
#[derive(Debug, Default)]
struct Arrived {
    of: BTreeMap<Daemon, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    entries: BTreeSet<EntryName>,
    /// When they are looked at, where there are any.
    due: Option<Instant>,
    /// Before this the daemon is not woken again.
    not_before: Option<Instant>,
}

impl Arrived {
    /// Takes note of a job that came into a folder, or left it.
    fn note(&mut self, session: &Session, event: &WatchedEvent) {
        let Path::Entry(StateFolder::Known(state), entry) = Path::parse(&event.path) else { return };
        let Some(daemon) = Daemon::of_state(state) else { return };
        let waiting = self.of.entry(daemon).or_default();
        match event.event_type {
            EventType::NodeCreated if !session.carries(entry.job) => {
                waiting.entries.insert(entry);
                let soon = Instant::now() + GRACE;
                waiting.due.get_or_insert(waiting.not_before.map_or(soon, |not_before| not_before.max(soon)));
            }
            EventType::NodeDeleted => {
                waiting.entries.remove(&entry);
            }
            EventType::NodeCreated
            | EventType::NodeDataChanged
            | EventType::NodeChildrenChanged
            | EventType::Session => {}
        }
    }

    /// When a daemon may have to be woken.
    fn due(&self) -> Option<Instant> {
        self.of.values().filter_map(|waiting| waiting.due).min()
    }

    /// Wakes the daemons that have jobs which still wait.
    fn wake(&mut self, session: &Session) {
        let now = Instant::now();
        for (daemon, waiting) in self.of.iter_mut().filter(|(_, waiting)| waiting.due.is_some_and(|due| due <= now)) {
            waiting.due = None;
            let entries = std::mem::take(&mut waiting.entries);
            if entries.into_iter().any(|entry| !session.carries(entry.job)) {
                wake(session, *daemon);
                waiting.not_before = Some(now + SHORTEST + FOR_EACH.saturating_mul(session.listed(*daemon)));
            }
        }
    }
}

/// Sets a persistent watch, as soon as that can be done.
pub(super) async fn set(client: &Client, path: &str, mode: AddWatchMode) -> PersistentWatcher {
    loop {
        match client.watch(path, mode).await {
            Ok(watcher) => return watcher,
            Err(error) => failed(path, &error).await,
        }
    }
}

/// What an event says.
enum Change {
    /// A znode was changed.
    Znode,
    /// The connection was lost.
    Connection,
    /// There is a connection again, or the session is over: the watch is dead.
    Lost,
}

impl Change {
    fn of(event: &WatchedEvent) -> Self {
        match (event.event_type, event.session_state) {
            (EventType::Session, SessionState::Disconnected) => Self::Connection,
            (EventType::Session, _) => Self::Lost,
            (
                EventType::NodeCreated
                | EventType::NodeDeleted
                | EventType::NodeDataChanged
                | EventType::NodeChildrenChanged,
                _,
            ) => Self::Znode,
        }
    }
}

/// Waits for a change; those that have come together count as one. `None` where the watch is dead.
pub(super) async fn next(watcher: &mut PersistentWatcher) -> Option<()> {
    let mut event = watcher.changed().await;
    let mut is_change = false;
    loop {
        match Change::of(&event) {
            Change::Znode => is_change = true,
            Change::Connection => {}
            Change::Lost => return None,
        }
        event = match watcher.changed().now_or_never() {
            Some(event) => event,
            None if is_change => return Some(()),
            None => watcher.changed().await,
        };
    }
}

fn wake(session: &Session, daemon: Daemon) {
    session.wake(daemon).notify_one();
}

async fn failed(path: &str, error: &Error) {
    debug!(path, %error, "cannot set watches; daemons poll instead");
    tokio::time::sleep(AFTER_FAILURE).await;
}

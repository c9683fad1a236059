//! Following the tree: watch, walk, apply; and all over again after every reconnect.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Fuse, FutureExt};
use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};
use tracing::{info, warn};
use zookeeper_client::{AddWatchMode, Client, PersistentWatcher};

use super::clock::{Clock, Moment, Told};
use super::drift::walk_aside;
use super::image::{Change, Image};
use super::metrics::{Cause, Metrics};
use super::read::{Answer, Found, Query, ReadError, Reader};
use super::store::Writer;
use super::walk::{Walk, walk};
use super::watch::{DIRTY_LIMIT, Interrupted, Watch};
use crate::queue::path::Path;
use crate::zookeeper::{RequestError, within};

/// How far apart requests are while changes keep coming: at most a hundred a second.
const REQUEST_SPACING: Duration = Duration::from_millis(10);

/// How long a server may take to catch up with its leader.
const SYNC_LIMIT: Duration = Duration::from_secs(30);

/// How often the marks of age are moved on while nothing else happens.
const MARKS_INTERVAL: Duration = Duration::from_secs(5);

/// The pause after a failed watch or walk.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Follows the tree through one session after the other.
#[derive(Debug)]
pub(super) struct Follower {
    pub(super) writer: Writer,
    pub(super) metrics: Metrics,
    /// How often the image is compared with the tree; `None` for never.
    pub(super) drift_interval: Option<Duration>,
    pub(super) clock: Clock,
    /// The chroot as configured, for messages.
    pub(super) chroot: String,
    /// The unknown states that the log has named, while they are there.
    pub(super) unknown_states: Vec<Arc<str>>,
}

impl Follower {
    /// Follows the tree until the session is over.
    pub(super) async fn session(&mut self, client: &Client, first: Cause) {
        let mut cause = first;
        let mut watch = None;
        loop {
            self.lose_sync();
            let Err(interrupted) = self.connection(client, cause, &mut watch).await;
            self.lose_sync();
            cause = match interrupted {
                Interrupted::SessionOver => return,
                Interrupted::Disconnected => Cause::Reconnect,
                Interrupted::Overflow => {
                    warn!(limit = DIRTY_LIMIT, "more znodes changed than are remembered, walking the whole tree again");
                    Cause::Overflow
                }
                Interrupted::Failed(_) if client.state().is_terminated() => return,
                Interrupted::Failed(reason) => {
                    warn!("the image is behind, trying again: {reason}");
                    self.writer.with_freshness(|freshness| freshness.problem = Some(reason));
                    sleep(RETRY_PAUSE).await;
                    Cause::Reconnect
                }
            };
        }
    }

    /// Watches, walks, and follows what changes until something comes between.
    async fn connection(
        &mut self,
        client: &Client,
        cause: Cause,
        watch: &mut Option<Watch>,
    ) -> Result<Infallible, Interrupted> {
        // No time limit: while disconnected this waits for the connection or the end of the session, as we do. Given up
        // and made again, the first one would be answered later, and its removal by the client library would take the
        // second one with it.
        let watch_set = client.watch("/", AddWatchMode::PersistentRecursive).await;
        let watcher: PersistentWatcher = watch_set.map_err(RequestError::from)?;
        // The old watch is dropped only now that the new one is set: as the last one on its path, the client library
        // would have it removed at the server, and the new one with it.
        let watch = watch.insert(Watch::new(watcher, self.metrics.events.clone()));
        // This server may be behind the one before: what it has not heard of yet would look as if it had been undone.
        let synced = watch.during(within(SYNC_LIMIT, client.sync("/"))).await?;
        synced
            .map_err(|error| Interrupted::Failed(format!("the server does not catch up with its leader: {error}")))?;
        self.walk(client, cause, watch).await?;
        self.live(client, watch).await
    }

    fn lose_sync(&self) {
        let now = Timestamp::now();
        self.writer.with_freshness(|freshness| freshness.stale_since = freshness.stale_since.or(Some(now)));
    }

    /// Walks the tree and puts the image in place.
    async fn walk(&mut self, client: &Client, cause: Cause, watch: &mut Watch) -> Result<(), Interrupted> {
        self.metrics.walk(cause);
        let Walk { image, duration, reads, denied } = watch.during(walk(client)).await??;
        self.metrics.reads.inc_by(reads);
        let unreadable = image.unreadable();
        if let Some(old) = self.writer.swap(image, Timestamp::now()) {
            let changes = self.writer.with_image(|new| new.changes_since(&old)).unwrap_or_default();
            self.writer.note(&changes, Timestamp::now());
            for change in changes {
                self.metrics.change(change);
            }
        }
        let now = Timestamp::now();
        self.writer.set_marks(now);
        self.walked(duration);
        info!(
            cause = cause.label(),
            reads,
            unreadable,
            duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            "walked the tree",
        );
        if let Some((znodes, first)) = denied {
            warn!(
                "ZooKeeper refuses our credentials for {znodes} znodes (NoAuth), {first} first: check --zookeeper.auth-file"
            );
        }
        // What changed during the walk is read before the image is called fresh.
        watch.drain()?;
        self.flush(client, watch).await?;
        self.writer.set_behind((!watch.is_clean()).then_some(now));
        self.gain_sync();
        Ok(())
    }

    fn walked(&self, duration: Duration) {
        self.writer.with_freshness(|freshness| {
            freshness.last_walk = Some(Timestamp::now());
            freshness.last_walk_duration = Some(duration);
        });
    }

    /// Applies what changes.
    async fn live(&mut self, client: &Client, watch: &mut Watch) -> Result<Infallible, Interrupted> {
        let mut marks = interval(MARKS_INTERVAL);
        marks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next_request = Instant::now();
        let mut next_check = self.drift_interval.map(|interval| Instant::now() + interval);
        let mut check = pin!(Fuse::terminated());
        loop {
            tokio::select! {
                event = watch.next() => {
                    event?;
                    // An event of what is no part of the queue leaves nothing to be read.
                    if !watch.is_clean() {
                        self.writer.falls_behind(Timestamp::now());
                    }
                }
                () = sleep_until(next_request), if !watch.is_clean() => {
                    watch.drain()?;
                    let (sent, sent_at) = (Instant::now(), Timestamp::now());
                    let requests = self.flush(client, watch).await?;
                    self.writer.set_behind((!watch.is_clean()).then_some(sent_at));
                    next_request = sent + REQUEST_SPACING * requests;
                    self.gain_sync();
                }
                _ = marks.tick() => {
                    let now = Timestamp::now();
                    self.writer.set_marks(now);
                    self.writer.sample(now);
                    self.name_unknown_states();
                }
                () = sleep_until(next_check.unwrap_or(next_request)), if next_check.is_some() => {
                    next_check = None;
                    self.metrics.walk(Cause::DriftCheck);
                    watch.keep_touched();
                    check.set(walk_aside(client.clone()).fuse());
                }
                walked = &mut check => {
                    let walked: Walk = walked?;
                    self.metrics.reads.inc_by(walked.reads);
                    self.mend_drift(client, watch, &walked.image).await?;
                    self.walked(walked.duration);
                    watch.forget_touched();
                    next_check = self.drift_interval.map(|interval| Instant::now() + interval);
                }
            }
        }
    }

    /// Reads what is dirty and applies it. Gives the number of requests that this took.
    pub(super) async fn flush(&mut self, client: &Client, watch: &mut Watch) -> Result<u32, Interrupted> {
        let paths = watch.take_dirty();
        if paths.is_empty() {
            return Ok(0);
        }
        let (reads, requests) = watch.during(read(client, paths)).await??;
        self.metrics.reads.inc_by(reads.len() as u64);
        let read_at = Moment::now();
        for (path, found) in &reads {
            // Of a znode that nobody expects the event may have told of something far below it: its own last change
            // may be months ago.
            if let (false, Some((_, stat))) = (matches!(path, Path::Unexpected(_)), found.node()) {
                self.clock.saw(stat.mtime, read_at);
            }
        }
        let offset = self.clock.offset(read_at);
        self.writer.set_offset(Told::new(offset, read_at));
        let metrics = &self.metrics;
        self.writer.apply(reads, |found, change| {
            metrics.change(change);
            if let (Some((_, stat)), true) = (found.node(), change != Change::Nothing) {
                let delay_ms = offset.to_server(Timestamp::now()).saturating_sub(stat.mtime);
                metrics.delay(Duration::from_millis(u64::try_from(delay_ms).unwrap_or(0)));
            }
        });
        self.writer.with_freshness(|freshness| freshness.last_event = watch.last_event);
        Ok(requests)
    }

    /// Logs each state that we do not know, once while it is there: whoever writes it has outgrown us. A name is anybody's
    /// text, so it is written with escapes.
    fn name_unknown_states(&mut self) {
        let names = self.writer.with_image(Image::unknown_states).unwrap_or_default();
        for state in names.iter().filter(|name| !self.unknown_states.contains(name)) {
            warn!(?state, "there is a state that we do not know; what is in it is counted as other");
        }
        self.unknown_states = names;
    }

    /// Calls the image fresh, unless it shows less than there is.
    fn gain_sync(&self) {
        let problem = self.writer.with_image(|image| {
            if !image.has_root() {
                let chroot = &self.chroot;
                return Some(format!("ZooKeeper has no znode {chroot}: check the chroot in --zookeeper"));
            }
            let path = image.denied_folder()?.to_string();
            let chroot = self.chroot.trim_end_matches('/');
            let path = if path == "/" { &self.chroot } else { &format!("{chroot}{path}") };
            Some(format!("ZooKeeper does not allow us to read {path} (NoAuth): check --zookeeper.auth-file"))
        });
        let problem = problem.flatten();
        self.writer.with_freshness(|freshness| {
            if let Some(problem) = problem.as_ref().filter(|_| freshness.problem != problem) {
                warn!("{problem}");
            }
            if problem.is_none() && freshness.stale_since.is_some() {
                info!("the image follows the tree");
            }
            if problem.is_none() {
                freshness.stale_since = None;
            } else {
                freshness.stale_since = freshness.stale_since.or(Some(Timestamp::now()));
            }
            freshness.problem = problem;
        });
    }
}

/// Reads paths one by one, in as few requests as possible. Gives also how many these were.
pub(super) async fn read(client: &Client, paths: Vec<Path>) -> Result<(Vec<(Path, Found)>, u32), ReadError> {
    let mut reads = Vec::with_capacity(paths.len());
    let mut reader = Reader::new(client);
    for path in paths {
        reader.push(Query::Node(path));
    }
    reader
        .run(|answer, _| match answer {
            Answer::Node(path, found) | Answer::Item(path, found, _) | Answer::Folder(path, found, _) => {
                reads.push((path, found));
            }
        })
        .await?;
    Ok((reads, reader.requests))
}

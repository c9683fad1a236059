//! Following the tree: watch, walk, apply; and all over again after every reconnect.

mod closed;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Fuse, FutureExt};
use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};
use tracing::{info, warn};
use zookeeper_client::{AddWatchMode, Client, PersistentWatcher};

pub(super) use self::closed::Closed;
use self::closed::implied;
use super::clock::Moment;
use super::date::date;
use super::image::{Change, Image, NAMED};
use super::metrics::{Metrics, ReadCause};
use super::read::{Answer, Estimates, Found, NOT_READABLE, Query, Reader, nodes};
use super::store::Writer;
use super::walk::{Walk, walk, walk_aside};
use super::watch::{DIRTY_LIMIT, Interrupted, Watch};
use crate::words::counted;
use queuekeeper_queue::path::Path;
use queuekeeper_zookeeper::{NoChroot, RequestError, Servers, within};

/// How far apart full requests are while changes keep coming: at most a hundred a second. Smaller ones, which are made
/// after a pause until sizes are known, do not come in such numbers.
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
    /// The servers and the chroot as configured, for messages.
    pub(super) servers: Servers,
    /// The unknown states that the log has named, while they are there.
    pub(super) unknown_states: Vec<Arc<str>>,
    /// The expected size of the next changes, from those up to now.
    pub(super) estimates: Estimates,
    /// When changes were last read.
    pub(super) looked: Option<Instant>,
    /// What the log has still to say of znodes that are closed to us.
    pub(super) closed: Closed,
}

impl Follower {
    /// Follows the tree until the session is over.
    pub(super) async fn session(&mut self, client: &Client, first: ReadCause) {
        let mut cause = first;
        let mut watch = None;
        loop {
            self.lose_sync();
            let Err(interrupted) = self.connection(client, cause, &mut watch).await;
            self.lose_sync();
            cause = match interrupted {
                Interrupted::SessionOver => return,
                Interrupted::Disconnected => ReadCause::Reconnect,
                Interrupted::Overflow => {
                    warn!(limit = DIRTY_LIMIT, "too many znodes changed at once, walking the whole tree again");
                    ReadCause::Overflow
                }
                Interrupted::Failed(_) if client.state().is_terminated() => return,
                Interrupted::Failed(reason) => {
                    warn!("mirror is behind, retrying: {reason}");
                    self.writer.with_freshness(|freshness| freshness.problem = Some(reason));
                    sleep(RETRY_PAUSE).await;
                    ReadCause::Reconnect
                }
            };
        }
    }

    /// Watches, walks, and follows what changes until something comes between.
    async fn connection(
        &mut self,
        client: &Client,
        cause: ReadCause,
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
    async fn walk(&mut self, client: &Client, cause: ReadCause, watch: &mut Watch) -> Result<(), Interrupted> {
        self.metrics.walk(cause);
        let Walk { image, duration, reads, denied } =
            watch.during(Box::pin(walk(client, self.writer.read_budget()))).await??;
        self.metrics.reads.inc_by(reads);
        let unreadable = image.unreadable();
        let paths: Vec<_> = image.unreadable_paths(NAMED).iter().map(ToString::to_string).collect();
        self.writer.saw_latest(image.latest_ms(), Moment::now());
        self.writer.first_time().await;
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
        if !paths.is_empty() {
            let paths = paths.join(" ");
            warn!(
                unreadable,
                paths,
                "found znodes that cannot be decoded, are not readable with these credentials, or have an unexpected name",
            );
        }
        if let Some((znodes, first)) = denied {
            warn!(
                "ZooKeeper denies these credentials access to {} (NoAuth), the first of them {first}: check --zookeeper.auth-file",
                counted(znodes, "znode", "znodes")
            );
        }
        let reads = watch.during(Box::pin(date(client, &self.writer))).await??;
        self.metrics.reads.inc_by(reads);
        // What changed during the walk is read before the image is called fresh.
        watch.drain()?;
        Box::pin(self.flush(client, watch)).await?;
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
                    let requests = Box::pin(self.flush(client, watch)).await?;
                    self.writer.set_behind((!watch.is_clean()).then_some(sent_at));
                    next_request = sent + REQUEST_SPACING * requests;
                    self.gain_sync();
                }
                _ = marks.tick() => {
                    let now = Timestamp::now();
                    self.writer.set_marks(now);
                    self.writer.sample(now);
                    self.name_unknown_states();
                    self.closed.warn(Instant::now());
                }
                () = sleep_until(next_check.unwrap_or(next_request)), if next_check.is_some() => {
                    next_check = None;
                    self.metrics.walk(ReadCause::DriftCheck);
                    watch.keep_touched();
                    check.set(walk_aside(client.clone(), self.writer.read_budget()).fuse());
                }
                walked = &mut check => {
                    let walked: Walk = walked?;
                    self.metrics.reads.inc_by(walked.reads);
                    // What changes meanwhile is noted and read in between: until then the image shows less than there
                    // is.
                    self.writer.falls_behind(Timestamp::now());
                    Box::pin(self.repair_drift(client, watch, &walked.image)).await?;
                    if watch.is_clean() {
                        self.writer.set_behind(None);
                    }
                    self.walked(walked.duration);
                    // No event reports a folder that was closed to us, or is not any more.
                    self.gain_sync();
                    watch.forget_touched();
                    next_check = self.drift_interval.map(|interval| Instant::now() + interval);
                }
            }
        }
    }

    /// Reads what is dirty and applies it, the answers to each request as they come: a value may be large, and many of
    /// them must not be in memory at once. Gives how many full requests these reads are.
    pub(super) async fn flush(&mut self, client: &Client, watch: &mut Watch) -> Result<u32, Interrupted> {
        let paths = watch.take_dirty();
        if paths.is_empty() {
            return Ok(0);
        }
        let implied = self.writer.with_image(|image| implied(&paths, image));
        let (estimates, ago) = (std::mem::take(&mut self.estimates), self.looked.map(|looked| looked.elapsed()));
        self.looked = Some(Instant::now());
        let mut reader = Reader::for_changes(client, self.writer.read_budget(), estimates, ago);
        for path in paths {
            reader.push(Query::Node(path));
        }
        for path in implied.unwrap_or_default() {
            reader.push(Query::Permission(path));
        }
        let mut opened = Vec::new();
        while let Some(answers) = watch.during(reader.next()).await?? {
            let (permissions, answers): (Vec<_>, Vec<_>) =
                answers.into_iter().partition(|answer| matches!(answer, Answer::Permission(..)));
            opened.extend(self.take_permissions(permissions));
            self.take_changes(nodes(answers));
        }
        self.metrics.reads.inc_by(reader.reads);
        let mut requests = reader.full_requests();
        self.estimates = reader.estimates;
        if !opened.is_empty() {
            requests += self.read_opened(client, watch, opened).await?;
        }
        self.closed.warn(Instant::now());
        self.writer.with_freshness(|freshness| freshness.last_event = watch.last_event);
        // What was read may be part of a transaction. The events of the rest came before the answers: only once they
        // are noted is it known whether more waits to be read.
        watch.drain()?;
        Ok(requests)
    }

    /// Applies reads of what has changed.
    fn take_changes(&mut self, reads: Vec<(Path, Found)>) {
        let read_at = Moment::now();
        // The event of an unexpected znode may be about something far below it: its own last change may be months ago.
        let dated = reads.iter().filter(|(path, _)| !matches!(path, Path::Unexpected(_)));
        self.writer.saw(dated.filter_map(|(_, found)| Some(found.node()?.1.mtime)), read_at);
        let offset = self.writer.offset();
        self.note_closed(&reads);
        let metrics = &self.metrics;
        self.writer.apply(reads, |found, change| {
            metrics.change(change);
            if let (Some((_, stat)), true) = (found.node(), change != Change::Nothing) {
                let delay_ms = offset.to_server(Timestamp::now()).saturating_sub(stat.mtime);
                metrics.delay(Duration::from_millis(u64::try_from(delay_ms).unwrap_or(0)));
            }
        });
    }

    /// Applies what the server says of znodes that no event reported. Gives those that are readable and whose values
    /// the image does not have.
    fn take_permissions(&mut self, answers: Vec<Answer>) -> Vec<Path> {
        let found = answers.into_iter().filter_map(|answer| match answer {
            Answer::Permission(path, found) => Some((path, found)),
            Answer::Node(..) | Answer::Item(..) | Answer::Names(..) => None,
        });
        let (open, rest): (Vec<_>, Vec<_>) = found.partition(|(_, found)| matches!(found, Found::Listed));
        self.apply_unreported(rest);
        let unknown = self.writer.with_image(|image| {
            let unknown = open.into_iter().filter(|(path, _)| !image.knows(path));
            unknown.map(|(path, _)| path).collect()
        });
        unknown.unwrap_or_default()
    }

    /// Reads what was closed to us and is not any more. Its values may be old: the sizes of those that were just
    /// written show nothing of theirs.
    async fn read_opened(&mut self, client: &Client, watch: &mut Watch, opened: Vec<Path>) -> Result<u32, Interrupted> {
        let mut reader = Reader::for_changes(client, self.writer.read_budget(), Estimates::default(), None);
        for path in opened {
            reader.push(Query::Node(path));
        }
        while let Some(answers) = watch.during(reader.next()).await?? {
            self.apply_unreported(nodes(answers));
        }
        self.metrics.reads.inc_by(reader.reads);
        Ok(reader.full_requests())
    }

    /// Applies reads of changes that no event reported, without a date of the last change.
    pub(super) fn apply_unreported(&mut self, reads: Vec<(Path, Found)>) {
        self.note_closed(&reads);
        let metrics = &self.metrics;
        self.writer.apply(reads, |_, change| metrics.change(change));
    }

    fn note_closed(&mut self, reads: &[(Path, Found)]) {
        let closed = &mut self.closed;
        self.writer.with_image(|image| closed.note(reads, image));
    }

    /// Logs each state that we do not know, once while it is there: its writer is newer than we are. A name
    /// may be any text, so it is escaped.
    fn name_unknown_states(&mut self) {
        let names = self.writer.with_image(Image::unknown_states).unwrap_or_default();
        for state in names.iter().filter(|name| !self.unknown_states.contains(name)) {
            warn!(?state, "found an unknown state, counting its items as other");
        }
        self.unknown_states = names;
    }

    /// Calls the image fresh, unless it shows less than there is.
    fn gain_sync(&self) {
        let problem = self.writer.with_image(|image| {
            if !image.has_root() {
                return Some(NoChroot::of(&self.servers).to_string());
            }
            let path = image.denied_folder()?.to_string();
            let path = match (self.servers.chroot(), &*path) {
                (Some(chroot), "/") => chroot.to_owned(),
                (chroot, _) => format!("{}{path}", chroot.unwrap_or_default()),
            };
            Some(format!("{path} {NOT_READABLE}"))
        });
        let problem = problem.flatten();
        self.writer.with_freshness(|freshness| {
            if let Some(problem) = problem.as_ref().filter(|_| freshness.problem != problem) {
                warn!("{problem}");
            }
            if problem.is_none() && freshness.stale_since.is_some() {
                info!("mirror is in sync with the tree");
            }
            if problem.is_none() {
                freshness.was_synced = true;
                freshness.stale_since = None;
            } else {
                freshness.stale_since = freshness.stale_since.or(Some(Timestamp::now()));
            }
            freshness.problem = problem;
        });
    }
}

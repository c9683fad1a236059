//! One writer, many readers.

mod clock;
mod lists;
mod situations;
mod writer;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::RwLock;
use tokio::sync::watch;

use self::clock::{ClockState, FirstTime};
pub use self::writer::Writer;
use super::clock::{Moment, Offset};
use super::failures::{FailureGroup, FailureKey};
use super::faults::FoundFault;
use super::find::{FoundPage, JobQuery};
use super::freshness::Freshness;
use super::history::{Flow, History, Rates, Record};
use super::image::{Batch, FaultQuery, Grant, Image, Job, Lock, Process, Request, TextMatches};
use super::read::ReadBudget;
use super::read_nodes::Nodes;
use super::situation::PauseSituation;
use super::summary::{ByState, CollectionFigures, LargestCollections, Summary};
use queuekeeper_queue::fault::{Fault, Limits};
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::{Path, QueueName};
use queuekeeper_queue::record::MailNote;
use queuekeeper_queue::state::JobState;

/// Of how many sessions the addresses are kept; where there are more, only those of the present ones are.
const MOST_ADDRESSES: usize = 10_000;

/// From where each session is connected, as address and port.
pub type Addresses = HashMap<i64, Arc<str>>;

#[derive(Debug, Default)]
struct Shared {
    /// `None` before the first walk.
    image: RwLock<Option<Image>>,
    freshness: RwLock<Freshness>,
    /// What readers last requested about space, for the writer to prepare; see [`Image::set_marks`].
    space: AtomicI64,
    clock: RwLock<ClockState>,
    first_time: watch::Sender<FirstTime>,
    /// From when on something counts as a fault.
    limits: Limits,
    /// Since when changes wait to be read, by our own clock; `None` while none do.
    behind_since: RwLock<Option<Timestamp>>,
    history: RwLock<Record>,
    /// How many bytes of answers reading the tree may have under way.
    read_budget: ReadBudget,
    nodes: Nodes,
    addresses: RwLock<Addresses>,
    /// Rises with each change that a reader can see.
    version: watch::Sender<u64>,
}

impl Shared {
    fn has_changed(&self) {
        self.version.send_modify(|version| *version = version.wrapping_add(1));
    }
}

/// A reader's handle to the image; cheap to clone.
///
/// Every call takes what it needs under a short read lock and gives it back as values of its own, so that no reader
/// holds the lock while rendering.
#[derive(Clone, Debug, Default)]
pub struct MirrorStore {
    shared: Arc<Shared>,
}

impl MirrorStore {
    /// How far the image can be trusted now.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        Freshness { clock: self.shared.server_clock(), ..self.shared.freshness.read().clone() }
    }

    /// From where a session is connected, or was before it ended, as address and port, and the process behind it where
    /// that is one of ours; `None` where neither is known.
    #[must_use]
    pub fn address(&self, session: i64) -> Option<Arc<str>> {
        let address = self.shared.addresses.read().get(&session).cloned();
        let process = self.read(|image, _| {
            image.process_note(session).map(|note| format!("queuekeeper on {}, process {}", note.host, note.pid))
        });
        match (address, process.flatten()) {
            (address, None) => address,
            (None, Some(process)) => Some(process.into()),
            (Some(address), Some(process)) => Some(format!("{address}: {process}").into()),
        }
    }

    /// What jobs were granted of the working storage, those first that wait for more, at most `most`; and how many
    /// there are.
    #[must_use]
    pub fn grants(&self, most: usize) -> Option<(Vec<Grant>, usize)> {
        self.read(|image, _| image.grants(most))
    }

    /// The processes in which daemons of ours run, by host and process number, each with at most `named` of its jobs;
    /// `None` before the first walk.
    #[must_use]
    pub fn processes(&self, named: usize) -> Option<Vec<Process>> {
        self.read(|image, offset| image.processes(named, offset))
    }

    /// Learns addresses. Those of other sessions are kept: what these did is still shown with them.
    pub(super) fn learn_addresses(&self, addresses: Addresses) {
        let mut known = self.shared.addresses.write();
        if addresses.iter().all(|(session, address)| known.get(session) == Some(address)) {
            return;
        }
        known.extend(addresses.iter().map(|(session, address)| (*session, Arc::clone(address))));
        if known.len() > MOST_ADDRESSES {
            *known = addresses;
        }
        drop(known);
        self.shared.has_changed();
    }

    /// Reports each change of the image or of its freshness. What changes with time alone, such as ages and faults that
    /// begin to count, is not reported. The number has no meaning; it only differs from the last one.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.version.subscribe()
    }

    /// For how long changes have been waiting to be seen: since they came, or since the image lost the tree. Zero where
    /// it shows all there is.
    #[must_use]
    pub fn behind(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.horizon(now))).unwrap_or(Duration::ZERO)
    }

    /// The way to the znodes that the image does not hold.
    #[must_use]
    pub fn nodes(&self) -> Nodes {
        self.shared.nodes.clone()
    }

    /// The figures over the last `window`, six hours at most, in at most `points` pieces.
    #[must_use]
    pub fn history(&self, now: Timestamp, window: Duration, points: usize) -> History {
        self.shared.history.read().points(now, window, points)
    }

    /// How fast jobs leave each state, and when one last did.
    #[must_use]
    pub fn flow(&self) -> Flow {
        let now = Moment::now();
        let offset = self.shared.offset();
        self.shared.history.read().flow(offset, now.own())
    }

    /// How fast the jobs of a batch end; `None` where it is not in progress or was just taken up.
    #[must_use]
    pub fn batch_rates(&self, batch: BatchId) -> Option<Rates> {
        self.shared.history.read().batch_rates(batch)
    }

    /// The batches in progress, those first that are longest in their state, at most `limit` of them; and
    /// how many there are. `None` before the first walk.
    #[must_use]
    pub fn batches_in_progress(&self, limit: usize) -> Option<(Vec<Batch>, usize)> {
        self.read(|image, offset| image.batches_in_progress(limit, offset))
    }

    /// The figures of the whole queue; `None` before the first walk, and while the tree's root is missing or not ours
    /// to read: the number of jobs is unknown then.
    ///
    /// `now` is our own clock. `space` is how many bytes of working storage a job may need and not be kept back; jobs
    /// in Provisioning that need more are counted as waiting for space.
    #[must_use]
    pub fn summary(&self, now: Timestamp, space: Option<i64>) -> Option<Summary> {
        if let Some(space) = space {
            self.shared.space.store(space, Ordering::Relaxed);
        }
        let horizon = self.horizon(now);
        let summary = |image: &Image, offset: Offset| Summary {
            faults: image.fault_figures(offset.to_server(horizon), offset),
            ..image.summary(now, offset, space)
        };
        self.read(summary)
    }

    /// Jobs by collection and state, in no order; `None` before the first walk.
    #[must_use]
    pub fn collections(&self) -> Option<Vec<CollectionFigures>> {
        self.read(|image, _| image.collections())
    }

    /// The jobs of the collections with the most unfinished ones, at most `most` of them, at a cost that does not grow
    /// with the queue; `None` before the first walk.
    #[must_use]
    pub fn largest_collections(&self, most: usize) -> Option<LargestCollections> {
        self.read(|image, _| image.largest_collections(most))
    }

    /// One job.
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<Job> {
        self.read(|image, offset| image.job(id, offset)).flatten()
    }

    /// The jobs that a query asks for, a page of them; `None` before the first walk.
    ///
    /// A page is of one moment: a text is searched for under the same lock, some milliseconds for 200,000 jobs.
    /// Pages follow one another by their cursors: a job that does not move is on one of them, whatever else comes and
    /// goes.
    #[must_use]
    pub fn find_jobs(&self, query: &JobQuery, now: Timestamp) -> Option<FoundPage<Job>> {
        self.find(query, now, |image, matches, fault_query, now_ms| {
            image.find_jobs(query, matches, fault_query, now_ms)
        })
    }

    /// The same, and how many jobs of each state there are by all filters but that of the state, of the same moment.
    #[must_use]
    pub fn find_and_count_jobs(
        &self,
        query: &JobQuery,
        now: Timestamp,
    ) -> Option<(FoundPage<Job>, ByState<JobState, usize>)> {
        self.find(query, now, |image, matches, fault_query, now_ms| {
            let page = image.find_jobs(query, matches, fault_query, now_ms);
            (page, image.count_by_state(query, matches, fault_query, now_ms))
        })
    }

    /// All jobs that a query asks for at one moment, in the order of their ids, with the versions of their statuses; -1
    /// for a job that has none. The query's order, cursor and limit do not matter. `None` before the first walk.
    #[must_use]
    pub fn matching(&self, query: &JobQuery, now: Timestamp) -> Option<Vec<(JobId, i32)>> {
        self.find(query, now, |image, matches, fault_query, now_ms| image.matching(query, matches, fault_query, now_ms))
    }

    /// Searches for a query's text, and then takes from the image what was found.
    fn find<T>(
        &self,
        query: &JobQuery,
        now: Timestamp,
        take: impl FnOnce(&Image, Option<&TextMatches>, FaultQuery<'_>, i64) -> T,
    ) -> Option<T> {
        self.ask(now, None, |image, fault_query| {
            let matches = query.text.as_ref().map(|text| image.search(text));
            take(image, matches.as_ref(), fault_query, fault_query.offset.to_server(now))
        })
    }

    /// A group of failed jobs; `None` where there is none of them.
    #[must_use]
    pub fn failure(&self, key: FailureKey) -> Option<FailureGroup> {
        self.read(|image, offset| image.failure(key, offset)).flatten()
    }

    /// The group of a failed job; `None` for any other.
    #[must_use]
    pub fn failure_of(&self, job: JobId) -> Option<FailureGroup> {
        self.read(|image, offset| image.failure_of(job, offset)).flatten()
    }

    /// The jobs in a piece of the table, in no order, and where the table ends: a way to visit all of them without
    /// keeping the writer from its work.
    #[must_use]
    pub fn jobs(&self, range: Range<usize>) -> Option<(Vec<Job>, usize)> {
        self.read(|image, offset| (image.jobs(range, offset), image.job_slots()))
    }

    /// Every batch, in no order.
    #[must_use]
    pub fn batches(&self) -> Option<Vec<Batch>> {
        self.read(Image::batches)
    }

    /// Every access request, in no order.
    #[must_use]
    pub fn requests(&self) -> Option<Vec<Request>> {
        self.read(Image::requests)
    }

    /// Every lock, in no order.
    #[must_use]
    pub fn locks(&self) -> Option<Vec<Lock>> {
        self.read(|image, _| image.locks())
    }

    /// The pause of a queue, if it is paused.
    #[must_use]
    pub fn pause(&self, queue: QueueName) -> Option<PauseSituation> {
        self.read(|image, offset| image.pause(&Path::QueueLock(queue), offset)).flatten()
    }

    /// The stores that are held, by name.
    #[must_use]
    pub fn held_stores(&self) -> Vec<(Arc<str>, PauseSituation)> {
        self.read(|image, _| image.held_stores()).unwrap_or_default()
    }

    /// The mail that no process has delivered yet, where it has waited for some minutes.
    #[must_use]
    pub fn waiting_mail(&self) -> Option<MailNote> {
        self.read(|image, _| image.waiting_mail()).flatten()
    }

    /// The hold on a collection, where it is held.
    #[must_use]
    pub fn hold(&self, collection: &str) -> Option<PauseSituation> {
        self.read(|image, offset| image.hold(collection, offset)).flatten()
    }

    /// Queue entries and batch references of jobs that do not exist.
    #[must_use]
    pub fn strays(&self) -> Option<Vec<Path>> {
        self.read(|image, _| image.strays())
    }

    /// The paths of znodes with unexpected names, at most `limit` of them.
    #[must_use]
    pub fn unexpected(&self, limit: usize) -> Option<Vec<Box<str>>> {
        self.read(|image, _| image.unexpected(limit))
    }

    /// The items that show a fault, those first that count for the longest time, at most `limit` of them; `None` before
    /// the first walk. `now` and `space` as for [`MirrorStore::summary`].
    #[must_use]
    pub fn faults(&self, fault: Fault, limit: usize, now: Timestamp, space: Option<i64>) -> Option<Vec<FoundFault>> {
        self.ask(now, space, |image, fault_query| image.faults(fault, limit, fault_query))
    }

    /// The faults that one item shows: a job, batch, request, lock, UUID or folder, by its own path.
    #[must_use]
    pub fn faults_of(&self, item: &Path, now: Timestamp, space: Option<i64>) -> Option<Vec<FoundFault>> {
        self.ask(now, space, |image, fault_query| image.faults_of(item, fault_query))
    }

    /// The limits after which something counts as a fault.
    #[must_use]
    pub fn fault_limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(super) fn ask<T>(
        &self,
        now: Timestamp,
        space: Option<i64>,
        take: impl FnOnce(&Image, FaultQuery<'_>) -> T,
    ) -> Option<T> {
        let horizon = self.horizon(now);
        let limits = &self.shared.limits;
        self.read(|image, offset| take(image, FaultQuery { now_ms: offset.to_server(horizon), offset, limits, space }))
    }

    /// The instant up to which the image is known to be right. What was a fault then has lasted until then; what comes
    /// after may have repaired it, and waits to be read. Not after `now`, by our own clock.
    #[must_use]
    pub fn horizon(&self, now: Timestamp) -> Timestamp {
        let stale_since = self.shared.freshness.read().stale_since;
        let behind_since = *self.shared.behind_since.read();
        [stale_since, behind_since].into_iter().flatten().fold(now, Timestamp::min)
    }

    /// Takes note of how we stand with ZooKeeper. This is the connection's word, not the image's, so the writer is
    /// not involved.
    pub(super) fn set_connection(&self, session: Option<String>, problem: Option<String>, now: Timestamp) {
        let mut freshness = self.shared.freshness.write();
        if session.is_none() {
            freshness.stale_since = freshness.stale_since.or(Some(now));
            freshness.problem = problem;
        } else if freshness.session.is_none() {
            // Why there was no connection is no reason any more for the image to be behind.
            freshness.problem = None;
        }
        freshness.session = session;
        drop(freshness);
        self.shared.has_changed();
    }

    /// Makes the image wrong behind the writer's back.
    #[cfg(test)]
    pub(super) fn falsify(&self, path: Path, found: &super::read::Found) -> Option<super::image::Change> {
        self.shared.image.write().as_mut().map(|image| image.apply(path, found))
    }

    pub(super) fn read<T>(&self, take: impl FnOnce(&Image, Offset) -> T) -> Option<T> {
        let offset = self.shared.offset();
        // An image whose root is missing or closed is empty, which is not to say that the queue is.
        self.shared.image.read().as_ref().filter(|image| image.is_read()).map(|image| take(image, offset))
    }
}

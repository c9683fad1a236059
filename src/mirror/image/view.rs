//! Items of the image as readers get them: values of their own, by our own clock.

use std::sync::Arc;

use jiff::Timestamp;

use super::row::{JobRow, LockStat, UNKNOWN_MS, text};
use super::{Image, batches, requests};
use crate::mirror::clock::Offset;
use crate::mirror::failures::{FailureKey, pattern};
use crate::mirror::summary::LockKind;
use queuekeeper_queue::id::{BatchId, JobId, Priority, RequestId};
use queuekeeper_queue::path::{AccessQueue, EntryName, JobNode, Path, StateFolder};
use queuekeeper_queue::state::{AccessState, BatchState, JobOutcome, JobState};

/// A job as the mirror holds it. Texts are a depositor's: anything at all, cut to 512 bytes each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Its state; `None` where its status is missing, unreadable, or one that we do not know.
    pub state: Option<JobState>,
    /// The status text, where the daemons would reject it; empty otherwise.
    pub status_text: Arc<str>,
    /// When it entered that state; `None` where that is not known.
    pub entered: Option<Timestamp>,
    /// The version of its `status`, to make a change conditional on; -1 where there is none.
    pub status_version: i32,
    /// When its znode was created.
    pub created: Option<Timestamp>,
    /// Its priority; `None` where it is missing or impossible.
    pub priority: Option<Priority>,
    /// The lock on it.
    pub lock: Option<LockStat>,
    /// How often it was resumed; `None` where its status does not say.
    pub retry_count: Option<u32>,
    /// Its last successful state.
    pub last_successful: Option<JobState>,
    /// What the daemons said of the last step.
    pub message: Arc<str>,
    /// Whether an operator held or failed it, by that message.
    pub is_by_operator: bool,
    /// The working storage that it needs, in bytes; 0 where that is unknown.
    pub space_needed_bytes: u64,
    /// Its batch; `None` where `bid` is missing or no batch id.
    pub batch: Option<BatchId>,
    /// The mnemonic of its collection.
    pub collection: Arc<str>,
    /// Who deposited it.
    pub submitter: Arc<str>,
    /// When, if the configuration says so in a form that we know.
    pub submitted: Option<Timestamp>,
    /// The file's name.
    pub filename: String,
    /// The object's title.
    pub title: String,
    /// Its ARK: the one minted, else the one that the depositor named; empty for none.
    pub ark: String,
    /// Its local ids, with `; ` between them.
    pub local_ids: String,
    /// Its queue entries, sorted: one on a healthy tree.
    pub entries: Vec<(StateFolder, EntryName)>,
    /// Its batch's references to it, sorted: one on a healthy tree.
    pub references: Vec<(BatchId, JobOutcome)>,
    /// Which of its znodes could not be read: [`JobNode`]s, and `None` for its own.
    pub unreadable: Vec<Option<JobNode>>,
}

impl Job {
    /// The group of failures that it is in, if it has failed.
    #[must_use]
    pub fn failure(&self) -> Option<FailureKey> {
        let key = || FailureKey::of(self.last_successful, &pattern(&self.message));
        (self.state == Some(JobState::Failed)).then(key)
    }
}

/// A batch as the mirror holds it. Texts are a depositor's: anything at all, cut to 512 bytes each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its id.
    pub id: BatchId,
    /// Its state; `None` where its status is missing, unreadable, or one that we do not know.
    pub state: Option<BatchState>,
    /// The status text, where the daemons would reject it; empty otherwise.
    pub status_text: Arc<str>,
    /// When it entered that state.
    pub entered: Option<Timestamp>,
    /// The version of its `status`; -1 where there is none.
    pub status_version: i32,
    /// What the daemons said of the last step.
    pub message: Arc<str>,
    /// The lock on it.
    pub lock: Option<LockStat>,
    /// The UUID under which the depositor knows it.
    pub uuid: Arc<str>,
    /// The mnemonic of its collection.
    pub collection: Arc<str>,
    /// Who deposited it.
    pub submitter: Arc<str>,
    /// The manifest's name.
    pub filename: Arc<str>,
    /// Its title.
    pub title: Arc<str>,
    /// Whether it is a manifest whose rows are objects.
    pub has_rows: bool,
    /// The UUID of the batch with the first rows of its manifest, as its submission says; empty where it has these
    /// itself.
    pub part_of: Arc<str>,
    /// How many batches the rows of that manifest became, likewise; `None` for any other.
    pub parts: Option<u64>,
    /// The depositor's note; empty for none.
    pub note: Arc<str>,
    /// The addresses that the depositor has the report mailed to; empty for those of the profile.
    pub notification: Arc<str>,
    /// How many rows it has, while its jobs are being created and that is known.
    pub rows: Option<u64>,
    /// Whether a daemon has acquired it, which is to say whether it has `states`.
    pub is_acquired: bool,
    /// How many jobs are referenced in each folder, in the order of [`JobOutcome::ALL`]; `None` for a folder that is
    /// not there.
    pub references: [Option<u32>; 4],
}

impl Batch {
    /// Whether any folder refers to a job of it.
    #[must_use]
    pub fn has_jobs(&self) -> bool {
        self.references.iter().any(|jobs| *jobs > Some(0))
    }
}

/// An access request as the mirror holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its queue.
    pub queue: AccessQueue,
    /// Its id.
    pub id: RequestId,
    /// Its state; `None` where its status is missing, unreadable, or one that we do not know.
    pub state: Option<AccessState>,
    /// The status text, where the daemons would reject it; empty otherwise.
    pub status_text: Arc<str>,
    /// When it entered that state.
    pub entered: Option<Timestamp>,
    /// The version of its `status`; -1 where there is none.
    pub status_version: i32,
    /// What the daemons said of the last step, or why it waits.
    pub message: Arc<str>,
    /// The lock on it.
    pub lock: Option<LockStat>,
    /// The token that the requester polls with.
    pub token: Arc<str>,
    /// How many bytes it asks for; 0 where that is unknown.
    pub requested_bytes: u64,
    /// Where the result is, an address of the web; empty for none.
    pub url: Arc<str>,
    /// Until when it is there, if that is said.
    pub expires: Option<Timestamp>,
}

/// A lock of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its kind.
    pub kind: LockKind,
    /// Its path.
    pub path: Path,
    /// Who holds it since when; `None` where it is not readable.
    pub stat: Option<LockStat>,
}

/// What decides whether an action on a job is refused: less than a [`Job`], because it is read of very many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobStanding {
    /// Its state; `None` where its status does not show it.
    pub state: Option<JobState>,
    /// Whether it is locked.
    pub is_locked: bool,
    /// The version of its `status`; -1 where there is none.
    pub status_version: i32,
    /// The state of its batch, which may be one that we do not know; `None` where there is no such batch.
    pub batch_state: Option<Option<BatchState>>,
}

impl Image {
    pub(in crate::mirror) fn job_standing(&self, id: JobId) -> Option<JobStanding> {
        let row = self.jobs.get(id)?;
        let batch = row.batch.and_then(|batch| self.batches.get(batch)).filter(|entry| !entry.item.nodes.is_empty());
        Some(JobStanding {
            state: row.standing.state,
            is_locked: row.lock.is_some(),
            status_version: row.status_version(),
            batch_state: batch.map(|entry| entry.item.state),
        })
    }

    pub(in crate::mirror) fn job(&self, id: JobId, offset: Offset) -> Option<Job> {
        self.jobs.get(id).map(|row| self.view(row, offset))
    }

    /// When a job entered its state, by the servers' clock.
    pub(in crate::mirror) fn entered_ms(&self, id: JobId) -> Option<i64> {
        let entered = self.jobs.get(id)?.standing.entered_ms;
        own(entered, Offset::default()).map(|_| entered)
    }

    /// The jobs in a range of the table, in no order.
    pub(in crate::mirror) fn jobs(&self, range: std::ops::Range<usize>, offset: Offset) -> Vec<Job> {
        self.jobs.slice(range).map(|row| self.view(row, offset)).collect()
    }

    /// The end of the table for [`Image::jobs`].
    pub(in crate::mirror) fn job_slots(&self) -> usize {
        self.jobs.slots()
    }

    pub(super) fn view(&self, row: JobRow<'_>, offset: Offset) -> Job {
        let field = |field| row.text.field(field).into_owned();
        let first_of = |fields: [usize; 3]| {
            let named = fields.into_iter().find(|field| !row.text.field(*field).is_empty());
            named.map(field).unwrap_or_default()
        };
        let id = row.id();
        let mut entries: Vec<_> = self.jobs.entries(id).collect();
        entries.sort();
        let mut references: Vec<_> = self.jobs.references(id).collect();
        references.sort_unstable();
        let texts = &self.jobs.texts;
        Job {
            id,
            state: row.standing.state,
            status_text: texts.get(row.status_text),
            entered: own(row.standing.entered_ms, offset),
            status_version: row.status_version(),
            is_by_operator: row.is_by_operator,
            created: own(row.created_ms, offset),
            priority: row.priority.and_then(|priority| Priority::new(priority.into())),
            lock: row.lock.as_deref().copied(),
            retry_count: row.has_retry_count.then_some(row.standing.retries),
            last_successful: row.last_successful,
            message: texts.get(row.message),
            space_needed_bytes: row.standing.space_needed_bytes,
            batch: row.batch,
            collection: texts.get(row.standing.collection),
            submitter: texts.get(row.submitter),
            submitted: row.submitted_ms.and_then(|at| Timestamp::from_millisecond(at).ok()),
            filename: field(text::FILENAME),
            title: field(text::TITLE),
            ark: first_of([text::ARK, text::OLD_ARK, text::OBJECT_ID]),
            local_ids: first_of([text::LOCAL_IDS, text::OLD_LOCAL_IDS, text::NAMED_LOCAL_IDS]),
            entries,
            references,
            unreadable: row.unreadable_nodes(),
        }
    }

    pub(in crate::mirror) fn batches(&self, offset: Offset) -> Vec<Batch> {
        let known = self.batches.iter().filter(|(_, entry)| !entry.item.nodes.is_empty());
        known.map(|(id, entry)| self.batch_view(id, entry, offset)).collect()
    }

    /// The batches in progress, those first that are longest in their state, at most `limit` of them; and
    /// how many there are.
    pub(in crate::mirror) fn batches_in_progress(&self, limit: usize, offset: Offset) -> (Vec<Batch>, usize) {
        let ids = self.batches.in_progress.iter().take(limit);
        let entries = ids.filter_map(|(_, id)| Some((*id, self.batches.get(*id)?)));
        (entries.map(|(id, entry)| self.batch_view(id, entry, offset)).collect(), self.batches.in_progress.len())
    }

    /// The Failed batches without jobs: how many there are, and the one that has been so for longest.
    pub(in crate::mirror) fn failed_without_jobs(&self, offset: Offset) -> (u64, Option<Batch>) {
        let failed = self.batches.entered.get(Some(BatchState::Failed)).iter();
        let entries = failed.filter_map(|(_, id)| Some((*id, self.batches.get(*id)?)));
        let mut without = entries.filter(|(_, entry)| entry.references == [0; 4]);
        let oldest = without.next().map(|(id, entry)| self.batch_view(id, entry, offset));
        (u64::from(oldest.is_some()) + without.count() as u64, oldest)
    }

    pub(super) fn batch_view(&self, id: BatchId, entry: &batches::Entry, offset: Offset) -> Batch {
        let item = &entry.item;
        Batch {
            id,
            state: item.state,
            status_text: item.status_text.clone(),
            entered: own(item.entered_ms, offset),
            status_version: item.status_version,
            message: item.message.clone(),
            lock: item.lock,
            uuid: entry.uuid.clone(),
            collection: entry.collection.clone(),
            submitter: entry.submitter.clone(),
            filename: entry.filename.clone(),
            title: entry.title.clone(),
            has_rows: entry.has_rows,
            part_of: entry.part_of.clone(),
            parts: entry.parts,
            note: entry.note.clone(),
            notification: entry.notification.clone(),
            rows: self.own.expansion(id).and_then(|expansion| expansion.rows),
            is_acquired: self.is_acquired(id),
            references: std::array::from_fn(|outcome| entry.folders[outcome].then_some(entry.references[outcome])),
        }
    }

    pub(in crate::mirror) fn requests(&self, offset: Offset) -> Vec<Request> {
        let queues = AccessQueue::ALL.iter().copied();
        queues
            .flat_map(|queue| {
                self.access.queue(queue).iter().map(move |(id, entry)| self.request_view(queue, id, entry, offset))
            })
            .collect()
    }

    pub(super) fn request_view(
        &self,
        queue: AccessQueue,
        id: RequestId,
        entry: &requests::Entry,
        offset: Offset,
    ) -> Request {
        let waits = self.request_retry(queue, id, entry.item.status_version);
        Request {
            queue,
            id,
            state: entry.item.state,
            status_text: entry.item.status_text.clone(),
            entered: own(entry.item.entered_ms, offset),
            status_version: entry.item.status_version,
            message: waits.map_or_else(|| entry.item.message.clone(), |retry| retry.why.as_str().into()),
            lock: entry.item.lock,
            token: entry.token.clone(),
            requested_bytes: entry.requested_bytes,
            url: entry.url.clone(),
            expires: entry.expires,
        }
    }

    /// Every lock, in no order.
    pub(in crate::mirror) fn locks(&self) -> Vec<Lock> {
        use queuekeeper_queue::path::{BatchNode, RequestNode};
        let jobs = self.jobs.locked().map(|(job, stat)| (LockKind::Job, Path::JobNode(job, JobNode::Lock), stat));
        let batches = self
            .batches
            .locks
            .iter()
            .map(|(batch, stat)| (LockKind::Batch, Path::BatchNode(*batch, BatchNode::Lock), *stat));
        let requests = AccessQueue::ALL.iter().flat_map(|queue| {
            let locks = self.access.queue(*queue).locks.iter();
            locks.map(|(request, stat)| {
                (LockKind::Access, Path::RequestNode(*queue, *request, RequestNode::Lock), *stat)
            })
        });
        let items = jobs.chain(batches).chain(requests);
        let items = items.map(|(kind, path, stat)| Lock { kind, path, stat: Some(stat) });
        let named = self.locks.iter().map(|(kind, path, stat)| Lock { kind, path: path.clone(), stat });
        items.chain(named).collect()
    }

    /// Queue entries and batch references of jobs that do not exist.
    pub(in crate::mirror) fn strays(&self) -> Vec<Path> {
        let gone = self.jobs.odd().filter(|job| self.jobs.get(*job).is_none());
        let jobs: std::collections::BTreeSet<_> = gone.collect();
        let entries =
            jobs.iter().flat_map(|job| self.jobs.entries(*job)).map(|(folder, name)| Path::Entry(folder, name));
        let references = jobs
            .iter()
            .flat_map(|job| self.jobs.references(*job).map(|(batch, outcome)| Path::Reference(batch, outcome, *job)));
        entries.chain(references).collect()
    }

    /// The znodes with unexpected names, at most `limit` of them.
    pub(in crate::mirror) fn unexpected(&self, limit: usize) -> Vec<Box<str>> {
        self.unexpected.iter().take(limit).cloned().collect()
    }
}

/// An instant of the servers' clock by ours; `None` where none is known.
pub(super) fn own(at_ms: i64, offset: Offset) -> Option<Timestamp> {
    (at_ms != UNKNOWN_MS).then(|| offset.to_own(at_ms))
}

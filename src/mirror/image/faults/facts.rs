//! What the rules know of each item.

use std::borrow::Cow;
use std::hash::BuildHasher;

use super::Faults;
use crate::mirror::image::Image;
use crate::mirror::image::row::{JobRow, LockStat, Rest, text};
use crate::mirror::image::uuids::Leads;
use crate::mirror::text::{FIELD_LIMIT, TextId};
use queuekeeper_queue::fault::{
    BatchFacts, CollectionFacts, FaultFinding, JobFacts, Limits, LockFacts, RequestFacts, UuidFacts, UuidLeads,
    detect_batch, detect_collection, detect_job, detect_lock, detect_name, detect_pause, detect_request,
    detect_storage_lock, detect_uuid,
};
use queuekeeper_queue::id::{BatchId, JobId, RequestId};
use queuekeeper_queue::path::{AccessQueue, JobNode, LockFolder, OwnNode, Path, QueueName, lock_name};
use queuekeeper_queue::record::WithdrawnNote;
use queuekeeper_queue::state::{JobState, State};

/// How many jobs of a state or a collection are looked at for those that show a fault of it.
pub(super) const JOBS_LOOKED_AT: usize = 1_000;

/// How many znodes show one fault at most.
pub(super) const NODES: usize = 20;

impl Image {
    /// Passes all findings about an item to `sink`, whether they count as faults already or not.
    pub(super) fn findings(
        &self,
        faults: &Faults,
        item: &Path,
        limits: &Limits,
        sink: &mut dyn FnMut(FaultFinding<'_>),
    ) {
        match item {
            Path::Job(job) => self.job_findings(*job, self.jobs.get(*job), limits, sink),
            Path::Batch(batch) => self.batch_findings(*batch, limits, sink),
            Path::Request(queue, request) => self.request_findings(*queue, *request, limits, sink),
            Path::BatchUuid(uuid) => {
                let Some((leads, written_ms)) = self.uuids.get(uuid) else { return };
                let leads = match leads {
                    Leads::Unknown => return,
                    Leads::To(batch) if self.has_batch(*batch) => UuidLeads::ToBatch,
                    Leads::InSpaces(batch) if self.has_batch(*batch) => UuidLeads::InSpaces,
                    Leads::Misnamed(name) if self.has_misnamed_batch(name) => UuidLeads::ToBatch,
                    Leads::To(_) | Leads::InSpaces(_) | Leads::Misnamed(_) | Leads::Nowhere => UuidLeads::Nowhere,
                };
                detect_uuid(item, UuidFacts { written_ms, leads }, limits, sink);
            }
            Path::NamedLock(LockFolder::Collections, mnemonic) => {
                if let Some(lock) = self.locks.get(item) {
                    detect_pause(item, facts_of(lock), limits, sink);
                }
                let nodes = || self.collection_nodes(item, mnemonic);
                detect_collection(self.collection_facts(item, mnemonic), limits, &nodes, sink);
            }
            Path::QueueLock(_) | Path::NamedLock(..) | Path::PublishedLocalId(_) => {
                let Some(lock) = self.locks.get(item).map(facts_of) else { return };
                match item {
                    Path::QueueLock(_) => detect_pause(item, lock, limits, sink),
                    Path::NamedLock(LockFolder::Storage, name) => {
                        let is_stored = faults.stored.contains_key(&faults.hasher.hash_one(&**name));
                        detect_storage_lock(item, lock, is_stored, limits, sink);
                    }
                    _ => detect_lock(item, lock, limits, sink),
                }
            }
            Path::Unexpected(path) if self.unexpected.contains(path) => detect_name(item, limits, sink),
            Path::Own(_) => {
                let Some(OwnNode::StoreHold(store)) = item.own_node() else { return };
                if let Some(hold) = self.own.hold(&store) {
                    let lock = LockFacts { created_ms: hold.created_ms, is_ephemeral: false };
                    detect_pause(item, lock, limits, sink);
                }
            }
            _ => self.standing_findings(faults, item, limits, sink),
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.locks.has(&Path::QueueLock(QueueName::Ingest))
    }

    fn has_batch(&self, batch: BatchId) -> bool {
        self.batches.get(batch).is_some_and(|entry| !entry.item.nodes.is_empty())
    }

    fn has_misnamed_batch(&self, name: &str) -> bool {
        self.unexpected.contains(Path::Batches.any_child(name).to_string().as_str())
    }

    /// Passes all findings about a job to `sink`; `row` is `None` if the job has none.
    pub(super) fn job_findings(
        &self,
        id: JobId,
        row: Option<JobRow<'_>>,
        limits: &Limits,
        sink: &mut dyn FnMut(FaultFinding<'_>),
    ) {
        let rest = Rest::unknown();
        let row = row.unwrap_or(JobRow::absent(&rest));
        let (entry, reference) = (row.entry_name(), row.reference_of());
        let entries = together(entry.as_slice(), self.jobs.odd_entries(id));
        let references = together(reference.as_slice(), self.jobs.odd_references(id));
        let batch = row.batch;
        let is_done = |batch: BatchId| {
            let state = self.batches.get(batch).and_then(|entry| entry.item.state);
            state.is_none_or(State::is_final)
        };
        let facts = JobFacts {
            id,
            present: row.nodes.set_of(),
            malformed: row.malformed.set_of(),
            denied: row.unreadable.without(row.malformed).set_of(),
            state: row.standing.state,
            is_canonical: row.standing.state.is_some() && row.status_text == TextId::default(),
            entered_ms: row.standing.entered_ms,
            created_ms: row.created_ms,
            retry_count: row.has_retry_count.then_some(row.standing.retries),
            priority: row.priority,
            is_priority_out_of_range: row.is_priority_out_of_range,
            batch,
            is_batch_acquired: batch.is_some_and(|batch| self.is_acquired(batch)),
            is_leaving: row.nodes.is_empty() && references.iter().all(|(batch, _)| is_done(*batch)),
            entries: &entries,
            references: &references,
            lock: row.lock.as_deref().copied().map(facts_of),
            is_expanding: self.own.is_last_of_expansion(id, batch),
        };
        detect_job(&facts, limits, sink);
    }

    fn batch_findings(&self, id: BatchId, limits: &Limits, sink: &mut dyn FnMut(FaultFinding<'_>)) {
        let Some(entry) = self.batches.get(id) else { return };
        let item = &entry.item;
        // A text that was cut is not the one that the entry is named by, and without the folder there are no entries.
        let is_known = self.folders.contains(&Path::BatchUuids)
            && !self.denied.contains(&Path::BatchUuids)
            && entry.uuid.len() < FIELD_LIMIT - '…'.len_utf8();
        let leads_to_it = match self.uuids.get(&entry.uuid) {
            None => Some(false),
            Some((Leads::Unknown, _)) => None,
            // One in white space is a fault of the entry.
            Some((leads, _)) => Some(leads.batch() == Some(id)),
        };
        let facts = BatchFacts {
            id,
            present: item.nodes.set_of(),
            malformed: item.malformed.set_of(),
            denied: item.unreadable.without(item.malformed).set_of(),
            state: item.state,
            is_canonical: item.state.is_some() && item.status_text.is_empty(),
            entered_ms: item.entered_ms,
            created_ms: item.created_ms,
            references: std::array::from_fn(|outcome| entry.folders[outcome].then_some(entry.references[outcome])),
            below_reference: self
                .below_references
                .range((id, Box::default())..)
                .next()
                .filter(|(of, _)| *of == id)
                .map(|(_, path)| &**path),
            uuid: &entry.uuid,
            is_found_by_uuid: leads_to_it.filter(|_| is_known),
            is_paused: self.is_paused(),
            lock: item.lock.map(facts_of),
            is_withdrawn: WithdrawnNote::of_batch(item.state, &item.message).is_some(),
            is_given_back: self.own.may_be_given_back(id),
        };
        detect_batch(&facts, limits, sink);
    }

    fn request_findings(
        &self,
        queue: AccessQueue,
        id: RequestId,
        limits: &Limits,
        sink: &mut dyn FnMut(FaultFinding<'_>),
    ) {
        let Some(entry) = self.access.queue(queue).get(id) else { return };
        let item = &entry.item;
        let facts = RequestFacts {
            queue,
            id,
            present: item.nodes.set_of(),
            malformed: item.malformed.set_of(),
            denied: item.unreadable.without(item.malformed).set_of(),
            state: item.state,
            is_canonical: item.state.is_some() && item.status_text.is_empty(),
            entered_ms: item.entered_ms,
            created_ms: item.created_ms,
            lock: item.lock.map(facts_of),
        };
        detect_request(&facts, limits, sink);
    }

    fn collection_facts(&self, lock: &Path, mnemonic: &str) -> CollectionFacts {
        let id = self.jobs.texts.find(mnemonic);
        let jobs = id.and_then(|id| self.jobs.figures.collections.get(&id));
        let count = |state| jobs.map_or(0, |jobs| *jobs.get(Some(state)));
        let is_held = self.locks.has(lock);
        let held = id.map_or(0, |id| self.jobs.figures.held_with(id));
        CollectionFacts { is_held, pending: count(JobState::Pending), held }
    }

    /// The lock of a collection, where there is one, and some of the jobs that wait for it.
    fn collection_nodes(&self, lock: &Path, mnemonic: &str) -> Vec<Path> {
        let is_held = self.locks.has(lock);
        let state = if is_held { JobState::Pending } else { JobState::Held };
        let Some(id) = self.jobs.texts.find(mnemonic) else { return Vec::new() };
        let [unlocked, locked] = &self.jobs.figures.states.get(Some(state)).entered;
        let jobs = unlocked.iter().chain(locked.iter()).take(JOBS_LOOKED_AT);
        let rows = jobs.filter_map(|(_, job)| self.jobs.get(JobId::new(job)));
        let rows = rows.filter(|row| row.standing.collection == id && !row.standing.is_by_operator);
        let jobs = rows.map(|row| Path::JobNode(row.id(), JobNode::Status));
        is_held.then(|| lock.clone()).into_iter().chain(jobs).take(NODES).collect()
    }

    /// The name under which the object of a job in Storing is locked.
    pub(super) fn stored_name(row: JobRow<'_>) -> Option<String> {
        if row.standing.state != Some(JobState::Storing) {
            return None;
        }
        let fields = [text::ARK, text::OLD_ARK, text::OBJECT_ID].into_iter();
        let mut fields = fields.map(|field| row.text.field(field));
        fields.find(|ark| !ark.is_empty()).map(|ark| lock_name(&ark))
    }
}

fn facts_of(lock: LockStat) -> LockFacts {
    LockFacts { created_ms: lock.created_ms, is_ephemeral: lock.session != 0 }
}

/// A row's own place with those that are kept apart.
fn together<'a, T: Clone>(own: &'a [T], odd: &[T]) -> Cow<'a, [T]> {
    if odd.is_empty() { Cow::Borrowed(own) } else { Cow::Owned([own, odd].concat()) }
}

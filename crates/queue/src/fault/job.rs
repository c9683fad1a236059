//! The faults of a job, its entries and its references.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use super::finding::{FaultFinding, NodeSet, Sink};
use super::item::{
    HOLDS_OTHER, LACKS_ZNODE, LockFacts, UNKNOWN_STATUS, by_shape, by_time, detect_bare, detect_item_lock, known,
};
use super::{Fault, Limits};
use crate::id::{BatchId, JobId};
use crate::path::{EntryName, JobNode, Path, StateFolder};
use crate::state::{JobOutcome, JobState, State};

/// What is known of a job, or of entries and references whose job is gone.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and none is set by position")]
pub struct JobFacts<'a> {
    /// Its id.
    pub id: JobId,
    /// The znodes that are there, by [`JobNode`]; empty where the job is gone.
    pub present: NodeSet,
    /// Of these, the ones that hold something else than they should.
    pub malformed: NodeSet,
    /// Of these, the ones that are not readable with these credentials, and not reported.
    pub denied: NodeSet,
    /// Its state; `None` for one that is missing or not known.
    pub state: Option<JobState>,
    /// Whether its status is spelled as the daemons do.
    pub is_canonical: bool,
    /// When it entered its state, in milliseconds by the servers' clock; `i64::MAX` where that is not known.
    pub entered_ms: i64,
    /// When its znode was created, likewise.
    pub created_ms: i64,
    /// How often it was resumed; `None` where its status does not say.
    pub retry_count: Option<u32>,
    /// Its priority; `None` where it is missing or no number of two digits.
    pub priority: Option<u8>,
    /// Whether its `priority` is a number, but none of two digits.
    pub is_priority_out_of_range: bool,
    /// Its batch; `None` where `bid` is missing or no batch's id.
    pub batch: Option<BatchId>,
    /// Whether that batch is there with its `states`.
    pub is_batch_acquired: bool,
    /// Whether it is gone and all batches that refer to it are done with, and may be about to be purged.
    pub is_leaving: bool,
    /// Its queue entries.
    pub entries: &'a [(StateFolder, EntryName)],
    /// The references to it.
    pub references: &'a [(BatchId, JobOutcome)],
    /// The lock on it.
    pub lock: Option<LockFacts>,
    /// Whether it is the last job of a batch whose jobs are being created, and gets its queue entry with the last of
    /// them.
    pub is_expanding: bool,
}

impl JobFacts<'_> {
    fn hint(&self) -> Option<i64> {
        known(self.entered_ms).or(known(self.created_ms))
    }

    /// These entries, sorted: they are stored in no fixed order, and the result must not depend on it.
    fn entry_paths(&self, which: impl Fn(&(StateFolder, EntryName)) -> bool) -> Vec<Path> {
        let entries: BTreeSet<_> = self.entries.iter().filter(|entry| which(entry)).collect();
        entries.into_iter().map(|(folder, name)| Path::Entry(folder.clone(), *name)).collect()
    }

    /// The references, sorted like the entries.
    fn reference_paths(&self) -> Vec<Path> {
        let references: BTreeSet<_> = self.references.iter().collect();
        references.into_iter().map(|(batch, outcome)| Path::Reference(*batch, *outcome, self.id)).collect()
    }

    /// The priority of the entry that it should have; `None` where its node does not say.
    fn is_own_entry(&self, (folder, name): &(StateFolder, EntryName)) -> bool {
        folder.state().is_some_and(|state| self.state == Some(state))
            && self.priority.is_none_or(|priority| i32::from(priority) == name.priority)
    }
}

/// Detects the faults of a job.
pub fn detect_job(job: &JobFacts<'_>, limits: &Limits, sink: &mut Sink<'_>) {
    if job.present.is_empty() {
        return detect_gone(job, limits, sink);
    }
    if job.present.is_bare(JobNode::Lock as u8) {
        return detect_bare(&Path::Job(job.id), job.created_ms, limits, sink);
    }
    detect_form(job, limits, sink);
    detect_entries(job, limits, sink);
    detect_references(job, limits, sink);
    if let Some(lock) = job.lock {
        let at_rest = job.state.is_some_and(|state| !state.is_worked_on());
        let entered_ms = known(job.entered_ms).unwrap_or(lock.created_ms);
        let limit = limits.job_lock.get(job.state);
        let path = Path::JobNode(job.id, JobNode::Lock);
        detect_item_lock(lock, &path, entered_ms, at_rest, limit, limits, sink);
    }
    let retries = job.retry_count.unwrap_or(0);
    if job.state == Some(JobState::Failed) && retries >= limits.retries {
        let how = "It failed again after the maximum number of retries.";
        let nodes = || vec![Path::JobNode(job.id, JobNode::Status)];
        sink(by_time(Fault::RetriesExhausted, how, job.entered_ms, job.entered_ms, limits.grace, &nodes));
    }
}

/// What is left of a job that is gone.
fn detect_gone(job: &JobFacts<'_>, limits: &Limits, sink: &mut Sink<'_>) {
    if !job.entries.is_empty() {
        let how = "Its job is gone.";
        sink(by_shape(Fault::StrayEntry, how, limits.grace, None, &|| job.entry_paths(|_| true)));
    }
    if !job.references.is_empty() {
        // A purge of a batch with many jobs deletes these one after the other, and the references to them at the end.
        let lasting = if job.is_leaving { limits.clean_up } else { limits.grace };
        let how = "The job that it references is gone.";
        sink(by_shape(Fault::MissingReference, how, lasting, None, &|| job.reference_paths()));
    }
}

/// Whether the Java daemons can load it.
fn detect_form(job: &JobFacts<'_>, limits: &Limits, sink: &mut Sink<'_>) {
    const NEEDED: [JobNode; 4] = [JobNode::Status, JobNode::Bid, JobNode::Priority, JobNode::SpaceNeeded];
    let node = |node: JobNode| Path::JobNode(job.id, node);
    let mut report = |how, hint, nodes: &dyn Fn() -> Vec<Path>| {
        sink(by_shape(Fault::UnloadableJob, how, limits.grace, hint, nodes));
    };
    let missing = |needed: &JobNode| !job.present.has(*needed as u8);
    if NEEDED.iter().any(missing) {
        let nodes = || NEEDED.into_iter().filter(missing).map(node).collect();
        report(LACKS_ZNODE, known(job.created_ms), &nodes);
    }
    // The daemons read a priority of three digits; what it does is a fault of its own.
    let ranged = if job.is_priority_out_of_range { JobNode::Priority as u8 } else { NodeSet::OWN };
    let malformed = job.malformed.without(ranged);
    if !malformed.is_empty() {
        let nodes = || JobNode::ALL.iter().copied().filter(|node| malformed.has(*node as u8)).map(node).collect();
        report(HOLDS_OTHER, job.hint(), &nodes);
    }
    let status = JobNode::Status as u8;
    if job.present.minus(job.denied).minus(malformed).has(status) {
        let nodes = || vec![node(JobNode::Status)];
        if !job.is_canonical {
            report(UNKNOWN_STATUS, job.hint(), &nodes);
        } else if job.retry_count.is_none() {
            report("Its status has no retry_count.", job.hint(), &nodes);
        }
    }
    if let (Some(batch), false) = (job.batch, job.is_batch_acquired) {
        let nodes = || vec![node(JobNode::Bid), Path::Batch(batch)];
        report("Its batch is gone, or has no states.", job.hint(), &nodes);
    }
}

fn detect_entries(job: &JobFacts<'_>, limits: &Limits, sink: &mut Sink<'_>) {
    let outside = |(_, name): &(StateFolder, EntryName)| !(0..=99).contains(&name.priority);
    if job.is_priority_out_of_range || job.entries.iter().any(outside) {
        let how = "Its priority is not within 0 to 99.";
        let nodes = || {
            let node = job.is_priority_out_of_range.then_some(Path::JobNode(job.id, JobNode::Priority));
            node.into_iter().chain(job.entry_paths(outside)).collect()
        };
        sink(by_shape(Fault::PriorityOutOfRange, how, limits.grace, job.hint(), &nodes));
    }
    let mut report = |fault, how, mark, nodes: &dyn Fn() -> Vec<Path>| {
        sink(FaultFinding { mark, ..by_shape(fault, how, limits.grace, job.hint(), nodes) });
    };
    // An entry in another state than the job's is an orphan, and no duplicate as well.
    let is_orphan = |(folder, _): &(StateFolder, EntryName)| job.state.is_some() && folder.state() != job.state;
    let is_like_own = |entry: &(StateFolder, EntryName)| !is_orphan(entry);
    if job.entries.iter().filter(|entry| is_like_own(entry)).count() > 1 {
        let how = "It has more than one queue entry.";
        let mark = mark(job.entries.iter().filter(|entry| is_like_own(entry)));
        report(Fault::DuplicateEntry, how, mark, &|| job.entry_paths(is_like_own));
    }
    // For a job whose state is unknown, only that can be reported.
    let Some(state) = job.state else { return };
    if job.entries.iter().any(is_orphan) {
        let how = "Its entry is in a state other than that of its status.";
        let mark = mark(job.entries.iter().filter(|entry| is_orphan(entry)));
        let nodes = || job.entry_paths(is_orphan).into_iter().chain([Path::JobNode(job.id, JobNode::Status)]).collect();
        report(Fault::OrphanEntry, how, mark, &nodes);
    }
    if !state.is_final() && !job.is_expanding && !job.entries.iter().any(|entry| job.is_own_entry(entry)) {
        let how = "It has no queue entry for its state and priority.";
        let nodes = || {
            let priority = job.priority.and_then(|priority| crate::id::Priority::new(priority.into()));
            let entry = priority.map(|priority| Path::entry(state, priority, job.id));
            [Path::Job(job.id)].into_iter().chain(entry).collect()
        };
        report(Fault::MissingEntry, how, job.entered_ms.cast_unsigned(), &nodes);
    }
}

fn detect_references(job: &JobFacts<'_>, limits: &Limits, sink: &mut Sink<'_>) {
    let mut report = |fault, how, nodes: &dyn Fn() -> Vec<Path>| {
        let mark = job.entered_ms.cast_unsigned();
        sink(FaultFinding { mark, ..by_shape(fault, how, limits.grace, job.hint(), nodes) });
    };
    if job.references.len() > 1 {
        let how = "More than one reference leads to it.";
        report(Fault::DuplicateReference, how, &|| job.reference_paths());
    }
    let Some(outcome) = job.state.map(JobState::outcome) else { return };
    let is_own = |(batch, of): &(BatchId, JobOutcome)| job.batch.is_none_or(|own| own == *batch) && *of == outcome;
    if !job.references.iter().any(is_own) {
        let how = if job.references.is_empty() {
            "Its batch has no reference to it."
        } else {
            "The reference to it does not match its status and batch."
        };
        let nodes = || {
            let wanted = job.batch.map(|batch| Path::Reference(batch, outcome, job.id));
            [Path::Job(job.id)].into_iter().chain(wanted).chain(job.reference_paths()).collect()
        };
        report(Fault::MissingReference, how, &nodes);
    }
}

/// A number that differs with the entries.
fn mark<'a>(entries: impl Iterator<Item = &'a (StateFolder, EntryName)>) -> u64 {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let one = |(folder, name): &(StateFolder, EntryName)| hasher.hash_one((folder.state(), name.priority));
    // In no order, so that it is the same however they are kept.
    entries.map(one).fold(0, u64::wrapping_add)
}

//! What makes a job loadable again: each value that the Java daemons refuse, derived from the rest of the tree.
//!
//! What cannot be derived is not guessed, and nothing is written then: the job stays as it is until an operator writes
//! the value or purges the job by its name.

use jiff::Timestamp;

use super::facts::JobInspection;
use super::{too_large_to_lose, underivable};
use crate::error::Error;
use crate::id::{BatchId, Priority};
use crate::job::Job;
use crate::path::{BatchNode, EntryName, JobNode, Path};
use crate::record::{self, JobStatus, Malformed};
use crate::state::{BatchState, JobState, State as _};
use crate::transaction::Transaction;

/// The values that would make a job loadable.
#[derive(Debug, Default)]
pub(super) struct LoadableRepair {
    /// What is written of each, in words.
    pub(super) words: Vec<String>,
    /// The changes, without those that take and release the lock.
    pub(super) changes: Transaction,
    /// The data that is replaced and that the new data does not keep.
    pub(super) loses: Vec<(Path, Vec<u8>)>,
    /// Whether `status` is written.
    pub(super) writes_status: bool,
    /// What follows from nothing in the tree, and why.
    missing: Vec<String>,
}

impl JobInspection {
    /// Whether a repair makes the job loadable.
    pub(crate) fn is_repairable(&self, job: &Job, now: Timestamp) -> bool {
        self.loadable(job, now).is_ok()
    }

    /// Derives all that the daemons refuse of the job.
    ///
    /// # Errors
    /// [`Error::Invalid`] where a value follows from nothing, naming each.
    pub(super) fn loadable(&self, job: &Job, now: Timestamp) -> Result<LoadableRepair, Error> {
        let mut loadable = LoadableRepair::default();
        let state = self.derive_status(job, now, &mut loadable);
        self.derive_bid(job, &mut loadable);
        self.derive_priority(job, state, &mut loadable);
        derive_space(job, &mut loadable);
        for node in [JobNode::Identifiers, JobNode::Identifier, JobNode::Metadata, JobNode::Store, JobNode::Inventory] {
            let data = job.data(node).unwrap_or_default();
            if let Err(malformed) = record::check_job_node(node, data) {
                loadable.replace(job, node, b"{}".to_vec(), &format!("an empty object, since it {malformed}"));
            }
        }
        let configuration = job.data(JobNode::Configuration).unwrap_or_default();
        if let Err(malformed) = record::check_job_node(JobNode::Configuration, configuration) {
            loadable.missing.push(format!("configuration {malformed}"));
        }
        if loadable.missing.is_empty() {
            return Ok(loadable);
        }
        Err(underivable(Path::Job(job.id), &loadable.missing))
    }

    /// The state is the one that its status names in any spelling. Where the status names none at all, its one queue
    /// entry and its one reference show, if they agree: daemons restart a step whenever they acquire a job.
    fn derive_status(&self, job: &Job, now: Timestamp, loadable: &mut LoadableRepair) -> Option<JobState> {
        let data = record::as_utf8(job.data(JobNode::Status).unwrap_or_default());
        let decoded = JobStatus::decode(&data);
        let status = &decoded.value.status;
        let named = status.state.or_else(|| JobState::from_any(status.text.trim()));
        let is_rebuilt = named.is_none();
        let state = match named {
            Some(state) => state,
            None if !status.text.trim().is_empty() => {
                loadable.missing.push(format!("status has an unknown state, {}", status.text.trim()));
                return None;
            }
            None => {
                let Some(state) = self.only_state() else {
                    let why = match (&decoded.malformed, job.data(JobNode::Status)) {
                        (Some(malformed), Some(_)) => format!("status {malformed}"),
                        (_, _) => "status does not exist".to_owned(),
                    };
                    loadable.missing.push(format!("{why}, and its queue entry and reference show different states"));
                    return None;
                };
                state
            }
        };
        let is_loadable = status.is_canonical() && decoded.malformed.is_none() && decoded.value.retry_count.is_some();
        if is_loadable && matches!(data, std::borrow::Cow::Borrowed(_)) {
            return Some(state);
        }
        let last = decoded.value.last_successful.or_else(|| is_rebuilt.then(|| before(state)).flatten());
        let retries = decoded.value.retry_count.unwrap_or(0);
        let new = record::loadable_job_status(&data, state, last, retries, now);
        let from = if is_rebuilt { " after its queue entry and reference" } else { "" };
        let words = format!("{state}{from} and retry_count {retries}, which counts as entering the state now");
        loadable.writes_status = true;
        // Of an object each key is kept.
        let is_kept = !matches!(
            decoded.malformed,
            Some(Malformed::NotJson { .. } | Malformed::NotObject | Malformed::RepeatedKey | Malformed::Wrong { .. })
        );
        if is_kept {
            loadable.write(job, JobNode::Status, new, &words);
        } else {
            loadable.replace(job, JobNode::Status, new, &words);
        }
        Some(state)
    }

    /// The state that its one queue entry and its one reference agree on.
    fn only_state(&self) -> Option<JobState> {
        let [(folder, _)] = self.entries.as_slice() else { return None };
        let [(_, outcome)] = self.references.as_slice() else { return None };
        folder.state().filter(|state| state.outcome() == *outcome)
    }

    /// Its batch is the one that refers to it, where its own znode names none; a batch that was acquired has `states`.
    fn derive_bid(&self, job: &Job, loadable: &mut LoadableRepair) {
        let data = job.data(JobNode::Bid);
        let named = data.map(record::bid);
        if let Some(Ok(batch)) = named {
            self.derive_states(batch, loadable);
        }
        let Some(batch) = named.clone().and_then(Result::ok).or_else(|| self.only_batch()) else {
            let why =
                named.and_then(Result::err).map_or("does not exist".to_owned(), |malformed| malformed.to_string());
            loadable.missing.push(format!("bid {why}, and not exactly one batch refers to the job"));
            return;
        };
        if data.is_none_or(|data| record::check_job_node(JobNode::Bid, data).is_err()) {
            loadable.write_plain(
                job,
                JobNode::Bid,
                batch.to_string(),
                data.is_none_or(|data| record::bid(data).is_ok()),
            );
        }
    }

    /// The batch of all references.
    fn only_batch(&self) -> Option<BatchId> {
        let (first, _) = self.references.first()?;
        self.references.iter().all(|(batch, _)| batch == first).then_some(*first)
    }

    /// A batch that daemons take to be acquired has `states`. One that they do not must not get it: they would never
    /// acquire it.
    fn derive_states(&self, batch: BatchId, loadable: &mut LoadableRepair) {
        if self.is_batch_acquired {
            return;
        }
        match self.batch_state {
            Some(
                state @ (BatchState::Reporting | BatchState::UpdateReporting | BatchState::Failed | BatchState::Held),
            ) => {
                let path = Path::BatchNode(batch, BatchNode::States);
                loadable.words.push(format!("{path}, since the batch is {state}"));
                loadable.changes.create(path, Vec::new());
            }
            Some(state) => loadable.missing.push(format!("its batch {batch} has no states and is {state}")),
            None => loadable
                .missing
                .push(format!("its batch {batch} is gone, or neither its states nor its status is there")),
        }
    }

    /// The priority of its queue entry, and the usual one where it has none. A number out of range is another fault.
    fn derive_priority(&self, job: &Job, state: Option<JobState>, loadable: &mut LoadableRepair) {
        let data = job.data(JobNode::Priority);
        let is_fine =
            |data| record::check_job_node(JobNode::Priority, data).is_ok() || record::is_priority_out_of_range(data);
        if data.is_some_and(is_fine) {
            return;
        }
        let named = data.and_then(|data| record::priority(data).ok());
        let priority = named.or_else(|| self.entry_priority(state)).unwrap_or_default();
        loadable.write_plain(job, JobNode::Priority, priority.to_string(), data.is_none() || named.is_some());
    }

    /// The priority of the entry in the job's own state, the most urgent of several: by that the daemons poll it.
    fn entry_priority(&self, state: Option<JobState>) -> Option<Priority> {
        let own = self.entries.iter().filter(|(folder, _)| folder.state().is_some() && folder.state() == state);
        own.filter_map(|(_, EntryName { priority, .. })| Priority::new((*priority).into())).min()
    }
}

/// Unknown where it is not a number.
fn derive_space(job: &Job, loadable: &mut LoadableRepair) {
    let data = job.data(JobNode::SpaceNeeded);
    if data.is_some_and(|data| record::check_job_node(JobNode::SpaceNeeded, data).is_ok()) {
        return;
    }
    let number = data.and_then(|data| std::str::from_utf8(data).ok()?.trim().parse::<i64>().ok());
    loadable.write_plain(
        job,
        JobNode::SpaceNeeded,
        number.unwrap_or(0).to_string(),
        data.is_none() || number.is_some(),
    );
}

/// The state before one on the success path.
fn before(state: JobState) -> Option<JobState> {
    JobState::ALL.iter().copied().find(|before| before.success() == Some(state))
}

impl LoadableRepair {
    /// Writes a plain value; with `is_kept` nothing of the old value is lost.
    fn write_plain(&mut self, job: &Job, node: JobNode, value: String, is_kept: bool) {
        let words = value.clone();
        if is_kept {
            self.write(job, node, value.into_bytes(), &words);
        } else {
            self.replace(job, node, value.into_bytes(), &words);
        }
    }

    fn write(&mut self, job: &Job, node: JobNode, data: Vec<u8>, words: &str) {
        let path = Path::JobNode(job.id, node);
        self.words.push(format!("{}: {words}", node.name()));
        match job.stat(node) {
            Some(stat) => self.changes.set(path, data, stat.version),
            None => self.changes.create(path, data),
        };
    }

    /// Writes over data that the new data does not keep.
    fn replace(&mut self, job: &Job, node: JobNode, data: Vec<u8>, words: &str) {
        let old = job.data(node).unwrap_or_default();
        if let Some(why) = too_large_to_lose(old) {
            self.missing.push(format!("{} {why}", node.name()));
            return;
        }
        if !old.is_empty() {
            self.loses.push((Path::JobNode(job.id, node), old.to_vec()));
        }
        self.write(job, node, data, words);
    }
}

#[cfg(test)]
mod tests;

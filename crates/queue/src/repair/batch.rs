//! The faults of a batch, and of the entries below `/batch-uuids`.

use jiff::Timestamp;

use super::facts::BatchInspection;
use super::status::loadable_status;
use super::{Repair, RepairOptions, gone, not_by_writing, too_large_to_lose, underivable};
use crate::error::Error;
use crate::fault::{Fault, PURGE_UNFINISHED, UuidFacts, UuidLeads, detect_batch, detect_uuid};
use crate::handle::{Found, Queue};
use crate::id::BatchId;
use crate::path::{BatchNode, Path};
use crate::record;
use crate::state::{BatchState, JobOutcome};
use crate::transaction::Transaction;

impl Queue {
    pub(super) async fn repair_batch(
        &self,
        fault: Fault,
        id: BatchId,
        options: RepairOptions<'_>,
    ) -> Result<Repair, Error> {
        let item = Path::Batch(id);
        let inspection = self.inspect_batch(id).await?;
        options.confirm(fault, &item, |limits, sink| detect_batch(&inspection.facts(), limits, sink))?;
        let invalid = |reason: &str| Err(Error::Invalid { path: item.clone(), reason: reason.to_owned() });
        let processing = Path::BatchOutcome(id, JobOutcome::Processing);
        let mut changes = Transaction::new();
        let mut loses = Vec::new();
        let summary = match (fault, inspection.batch.state()) {
            (Fault::DeletedBatchBlocksReporting, _) => {
                changes.delete(processing, None);
                format!(
                    "Removes the empty batch-processing of batch {id}, so it no longer blocks reporting. The batch remains, Deleted: purge it, because the daemons' cleanup skips it."
                )
            }
            (Fault::OverdueBatch, Some(BatchState::Failed))
                if inspection.batch.references(JobOutcome::Processing).is_none() =>
            {
                changes.create(processing, Vec::new());
                format!("Creates an empty batch-processing for batch {id}, which can then be reported again.")
            }
            (Fault::OverdueBatch, Some(BatchState::Completed))
                if inspection.batch.references(JobOutcome::Processing).is_none() =>
            {
                changes.create(processing, Vec::new());
                format!("Creates an empty batch-processing for batch {id}, which the daemons' cleanup then removes.")
            }
            (Fault::OverdueBatch, Some(BatchState::Deleted)) => {
                return invalid("it is Deleted and remains until it is purged: purge it by name, or clean up");
            }
            (Fault::OverdueBatch, _) => {
                return invalid(
                    "check the daemon that reports and the item at the head of its queue; break a leaked lock",
                );
            }
            (Fault::UnfinishedCreation, Some(state)) if inspection.batch.is_acquired() => {
                self.release_unexpanded(&inspection, state, options, &mut changes).await?
            }
            (Fault::UnfinishedCreation, _) => return Err(not_by_writing(item, fault, PURGE_UNFINISHED)),
            (Fault::UnloadableBatch, _) => {
                let words = inspection.loadable(options.now, &mut changes, &mut loses)?;
                format!("Makes batch {id} loadable. It writes {}.", words.join("; "))
            }
            (Fault::DanglingUuid, _) => {
                let Some(summary) = inspection.link(&mut changes, &mut loses)? else { return Err(gone(fault, &item)) };
                summary
            }
            (_, _) => return Err(gone(fault, &item)),
        };
        let mut checked = Transaction::new();
        match inspection.batch.version() {
            Some(version) => checked.check(Path::BatchNode(id, BatchNode::Status), version),
            None => checked.check_exists(item.clone()),
        };
        checked.append(changes);
        // The entry of a UUID lies beside its batch, and no one who works on that writes it.
        let transaction = match fault {
            Fault::DanglingUuid => checked,
            _ => options.under_lock(Path::BatchNode(id, BatchNode::Lock), inspection.batch.lock(), checked)?,
        };
        Ok(Repair::new(fault, item, summary, transaction).losing(loses))
    }

    /// Makes the daemons acquire a batch again that was acquired and got no jobs: removes its empty `states`, and makes
    /// it Pending where it is no longer.
    async fn release_unexpanded(
        &self,
        inspection: &BatchInspection,
        state: BatchState,
        options: RepairOptions<'_>,
        changes: &mut Transaction,
    ) -> Result<String, Error> {
        let id = inspection.batch.id;
        let refused = |reason: String| Err(Error::Invalid { path: Path::Batch(id), reason });
        let by_hand = "check each of its jobs, and create batch-processing with a reference to each that is not done";
        if !matches!(state, BatchState::Pending | BatchState::Processing) {
            return refused(format!("it is {state} already, and which of its jobs are not done is unknown: {by_hand}"));
        }
        let children = inspection.batch.folders();
        let jobs = self.jobs_by_batch().await?.remove(&id).map_or(0, |jobs| jobs.len());
        if children > 0 || jobs > 0 {
            return refused(format!("it has jobs already: {by_hand}"));
        }
        changes.delete(Path::BatchNode(id, BatchNode::States), None);
        if state == BatchState::Pending {
            return Ok(format!("Removes the empty states of batch {id}, so that it is acquired again."));
        }
        let status = inspection.batch.status_found();
        let (data, stat) = status.ok_or(Error::Missing(Path::BatchNode(id, BatchNode::Status)))?;
        let pending = record::loadable_item_status(&record::as_utf8(data), BatchState::Pending, options.now);
        changes.set(Path::BatchNode(id, BatchNode::Status), pending, stat.version);
        Ok(format!("Removes the empty states of batch {id} and makes it Pending, so that it is acquired again."))
    }

    pub(super) async fn repair_uuid(&self, item: &Path, options: RepairOptions<'_>) -> Result<Repair, Error> {
        let fault = Fault::DanglingUuid;
        let Some((data, stat)) = self.read_data(item.clone()).await?.data() else {
            return Err(gone(fault, item));
        };
        let batch = record::bid(&data).ok();
        let misnamed = record::misnamed_bid(&data).map(|name| Path::Batches.any_child(name));
        let exists = match batch.map(Path::Batch).or(misnamed) {
            Some(batch) => self.read_data(batch).await?.exists(),
            None => false,
        };
        let canonical = batch.filter(|_| exists).map(|batch| batch.to_string());
        let leads = match &canonical {
            Some(id) if id.as_bytes() != data => UuidLeads::InSpaces,
            _ if exists => UuidLeads::ToBatch,
            _ => UuidLeads::Nowhere,
        };
        let facts = UuidFacts { written_ms: stat.mtime, leads };
        options.confirm(fault, item, |limits, sink| detect_uuid(item, facts, limits, sink))?;
        if let Some(id) = canonical {
            let summary = format!("Writes {id} into {item}, without the white space around it.");
            let mut transaction = Transaction::new();
            transaction.set(item.clone(), id, stat.version);
            return Ok(Repair::new(fault, item.clone(), summary, transaction));
        }
        check_losable(item, &data)?;
        let mut transaction = Transaction::new();
        transaction.delete(item.clone(), Some(stat.version));
        let summary = format!("Removes {item}, which does not lead to a batch.");
        Ok(Repair::new(fault, item.clone(), summary, transaction).losing([(item.clone(), data)]))
    }
}

/// Refuses to give up the entry of a UUID whose data the audit trail would not keep.
fn check_losable(entry: &Path, data: &[u8]) -> Result<(), Error> {
    too_large_to_lose(data).map_or(Ok(()), |why| {
        let reason = format!("it {why}: inspect it, and set or delete it by hand");
        Err(Error::Invalid { path: entry.clone(), reason })
    })
}

impl BatchInspection {
    /// Makes the entry of its UUID lead to it; `None` where it has none or that does already.
    fn link(&self, changes: &mut Transaction, loses: &mut Vec<(Path, Vec<u8>)>) -> Result<Option<String>, Error> {
        let Some((path, found)) = &self.entry else { return Ok(None) };
        let id = self.batch.id;
        match found {
            Found::Data(data, stat) => match record::bid(data) {
                Ok(other) if other == id => return Ok(None),
                Ok(other) => {
                    let reason = format!(
                        "it leads to {other}; two batches carry one UUID, unless that one is gone and its entry is \
                         removed first"
                    );
                    return Err(Error::Invalid { path: path.clone(), reason });
                }
                Err(_) => {
                    check_losable(path, data)?;
                    loses.push((path.clone(), data.clone()));
                    changes.set(path.clone(), id.to_string(), stat.version)
                }
            },
            Found::Nothing | Found::Children(_) => changes.create(path.clone(), id.to_string()),
        };
        Ok(Some(format!("Makes {path} lead to batch {id}.")))
    }

    /// Whether a repair makes the batch loadable.
    pub(crate) fn is_repairable(&self, now: Timestamp) -> bool {
        self.loadable(now, &mut Transaction::new(), &mut Vec::new()).is_ok()
    }

    /// Writes what the daemons refuse of it, where that follows from the rest. Returns a description of what is
    /// written.
    ///
    /// A batch whose status names no state is Reporting where it has jobs that are not done. One without such jobs may
    /// be new, reported or half purged: which of these cannot be determined.
    fn loadable(
        &self,
        now: Timestamp,
        changes: &mut Transaction,
        loses: &mut Vec<(Path, Vec<u8>)>,
    ) -> Result<Vec<String>, Error> {
        let batch = &self.batch;
        let mut words = Vec::new();
        let mut missing = Vec::new();
        missing.extend(batch.check_submission().err().map(|malformed| format!("submission {malformed}")));
        let has_jobs = batch.references(JobOutcome::Processing).is_some_and(|jobs| jobs > 0);
        let status = Path::BatchNode(batch.id, BatchNode::Status);
        let derived = has_jobs.then_some(BatchState::Reporting);
        let state = match loadable_status(&status, batch.status_found(), derived, now) {
            Ok((state, write)) => {
                if let Some(write) = write {
                    write.add(changes, loses, &mut words);
                }
                Some(state)
            }
            Err(why) => {
                missing.push(why);
                None
            }
        };
        if state == Some(BatchState::Held) && !batch.is_acquired() {
            words.push("states, which a batch that is Held has".to_owned());
            changes.create(Path::BatchNode(batch.id, BatchNode::States), Vec::new());
        }
        if missing.is_empty() { Ok(words) } else { Err(underivable(Path::Batch(batch.id), &missing)) }
    }
}

#[cfg(test)]
mod tests;

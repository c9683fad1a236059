//! Locks that were left behind.

use super::facts::{lock_facts, request_facts};
use super::{Repair, RepairOptions, Survey, gone};
use crate::error::Error;
use crate::fault::{Fault, detect_batch, detect_job, detect_lock, detect_request, detect_storage_lock};
use crate::handle::{Found, Queue, Read};
use crate::lock::Lock;
use crate::path::{BatchNode, JobNode, LockFolder, Path, RequestNode, lock_name};
use crate::record::{Configuration, Identifiers, JobStatus};
use crate::state::JobState;
use crate::time::moment;

/// How many jobs have their state read at once.
const ITEMS_PER_READ: usize = 10_000;

impl Queue {
    /// Breaks a lock, by the item that it locks or by its own path.
    pub(super) async fn repair_lock(
        &self,
        item: &Path,
        options: RepairOptions<'_>,
        survey: Option<&Survey>,
    ) -> Result<Repair, Error> {
        let fault = Fault::LeakedLock;
        let lock = match item {
            Path::Job(job) => {
                let inspection = self.inspect_job(*job, survey).await?;
                options.confirm(fault, item, |limits, sink| detect_job(&inspection.facts(), limits, sink))?;
                Path::JobNode(*job, JobNode::Lock)
            }
            Path::Batch(batch) => {
                let inspection = self.inspect_batch(*batch).await?;
                options.confirm(fault, item, |limits, sink| detect_batch(&inspection.facts(), limits, sink))?;
                Path::BatchNode(*batch, BatchNode::Lock)
            }
            Path::Request(queue, request) => {
                // That it has children is known: one of them is its lock.
                let found = self.load_request(*queue, *request).await?;
                let facts = request_facts(&found, i64::MAX);
                options.confirm(fault, item, |limits, sink| detect_request(&facts, limits, sink))?;
                Path::RequestNode(*queue, *request, RequestNode::Lock)
            }
            Path::NamedLock(LockFolder::Inventory | LockFolder::LocalId, _) | Path::PublishedLocalId(_) => {
                let lock = self.find_lock(item).await?.ok_or_else(|| gone(fault, item))?;
                options.confirm(fault, item, |limits, sink| detect_lock(item, lock_facts(&lock), limits, sink))?;
                item.clone()
            }
            _ => return Err(gone(fault, item)),
        };
        let lock = self.find_lock(&lock).await?.ok_or_else(|| gone(fault, item))?;
        self.repair_by_breaking(fault, item, &lock).await
    }

    /// Breaks the lock of an object, where no job in Storing has that.
    pub(super) async fn repair_storage_lock(
        &self,
        item: &Path,
        name: &str,
        options: RepairOptions<'_>,
    ) -> Result<Repair, Error> {
        let fault = Fault::LeakedStorageLock;
        let lock = self.find_lock(item).await?.ok_or_else(|| gone(fault, item))?;
        let is_stored = self.is_stored(name).await?;
        let facts = lock_facts(&lock);
        options.confirm(fault, item, |limits, sink| detect_storage_lock(item, facts, is_stored, limits, sink))?;
        self.repair_by_breaking(fault, item, &lock).await
    }

    async fn repair_by_breaking(&self, fault: Fault, item: &Path, lock: &Lock) -> Result<Repair, Error> {
        let transaction = self.plan_break_lock(lock).await?;
        let holder =
            lock.session.map_or_else(|| "no session (persistent)".to_owned(), |session| format!("session {session}"));
        let summary = format!("Breaks {}, held by {holder} since {}.", lock.path, moment(lock.since));
        Ok(Repair::new(fault, item.clone(), summary, transaction))
    }

    /// Whether a job in Storing has the object that is locked under that name. All jobs are read, not only those with a
    /// queue entry: the lock of an object that is being written must not be broken.
    async fn is_stored(&self, name: &str) -> Result<bool, Error> {
        let ids = self.job_ids().await?;
        let mut storing = Vec::new();
        for ids in ids.chunks(ITEMS_PER_READ) {
            let reads: Vec<_> = ids.iter().map(|id| Read::Data(Path::JobNode(*id, JobNode::Status))).collect();
            let is_storing = |data: &[u8]| JobStatus::decode(data).value.status.state == Some(JobState::Storing);
            let take = |at: usize, found: Found| {
                if found.data().is_some_and(|(data, _)| is_storing(&data)) {
                    storing.push(ids[at]);
                }
            };
            self.read_each_alone(&reads, take).await?;
        }
        for ids in storing.chunks(ITEMS_PER_READ) {
            let nodes = [JobNode::Identifiers, JobNode::Identifier, JobNode::Configuration];
            let reads: Vec<_> =
                ids.iter().flat_map(|id| nodes.map(|node| Read::Data(Path::JobNode(*id, node)))).collect();
            let mut is_stored = false;
            let take = |at: usize, found: Found| {
                let Some((data, _)) = found.data() else { return };
                let ark = match reads[at].path() {
                    Path::JobNode(_, JobNode::Configuration) => Configuration::decode(&data).value.object_id,
                    _ => Identifiers::decode(&data).value.ark,
                };
                is_stored |= lock_name(&ark) == name;
            };
            self.read_each_alone(&reads, take).await?;
            if is_stored {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

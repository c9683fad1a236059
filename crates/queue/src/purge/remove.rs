//! Removing the znodes of a final batch and its jobs, children first.

use std::collections::{BTreeMap, BTreeSet};

use super::census::Census;
use super::item::{check_removable, not_final};
use super::{BulkPlan, Chunk, PlannedJob};
use crate::batch::{Batch, BatchTarget};
use crate::error::Error;
use crate::handle::{Found, Queue, Read};
use crate::id::{BatchId, JobId};
use crate::job::Job;
use crate::lock::ChangeTarget as _;
use crate::path::{BatchNode, JobNode, Path};
use crate::record;
use crate::state::State;
use crate::transaction::Transaction;

/// How many jobs are read at once, so that not all of a batch's values are in memory.
const READ_AT_ONCE: usize = 1_000;

impl Queue {
    /// Plans to remove a Completed or Deleted batch with all its jobs, their queue entries and references, and its UUID
    /// entry. A job that a reference of it names, but that names another batch, stays. A job of it that no reference
    /// leads to is found by [`BatchTarget::with_jobs`], or by asking every job.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a batch or one of its jobs that is not final; [`Error::Conflict`] where one of them is
    /// held or was changed since it was seen; [`Error::Missing`] and [`Error::Decode`] where a status cannot be read;
    /// [`Error::Read`].
    pub async fn plan_purge(&self, target: impl Into<BatchTarget>) -> Result<BulkPlan, Error> {
        self.plan_purge_with(&target.into(), &mut Census::default()).await
    }

    pub(super) async fn plan_purge_with(&self, target: &BatchTarget, census: &mut Census) -> Result<BulkPlan, Error> {
        let batch = self.load_batch(target.id).await?;
        target.check(&batch)?;
        let state = batch.state_to_change()?;
        if !state.is_final() {
            return Err(not_final(Path::Batch(batch.id), &state));
        }
        let mut references: BTreeMap<JobId, Vec<Path>> = BTreeMap::new();
        for job in self.jobs_of(target, census).await? {
            references.entry(job).or_default();
        }
        let mut own = Vec::new();
        for path in self.subtree(vec![Path::Batch(batch.id)]).await? {
            match path {
                Path::Reference(_, _, job) => references.entry(job).or_default().push(path),
                Path::BatchNode(_, BatchNode::Lock) => {}
                other => own.push(other),
            }
        }
        let mut items = Vec::new();
        let references: Vec<_> = references.into_iter().collect();
        for some in references.chunks(READ_AT_ONCE) {
            items.extend(self.removals(batch.id, some, census).await?);
        }

        let (mut open, mut close) = (Transaction::new(), Transaction::new());
        target.open(&mut open);
        target.close(&mut close);
        let status = Path::BatchNode(batch.id, BatchNode::Status);
        let mut last = open.clone();
        for path in own.into_iter().rev().filter(|path| *path != Path::Batch(batch.id)) {
            let version = batch.version().filter(|_| path == status);
            last.delete(path, version);
        }
        target.release(&mut last);
        last.delete(Path::Batch(batch.id), None);
        for (path, version) in self.uuid_entries(&batch).await? {
            last.delete(path, Some(version));
        }
        open.check(status, batch.version().unwrap_or_default());
        let mut chunks = self.chunks(items, &open, &close);
        chunks.push(Chunk { jobs: Vec::new(), transaction: last });
        Ok(BulkPlan { batch: batch.id, from: state, version: batch.version().unwrap_or_default(), chunks })
    }

    /// What is to be removed for each job, which is nothing but its references where it is another batch's.
    async fn removals(
        &self,
        batch: BatchId,
        references: &[(JobId, Vec<Path>)],
        census: &mut Census,
    ) -> Result<Vec<(Option<PlannedJob>, Transaction)>, Error> {
        let reads: Vec<_> = references.iter().flat_map(|(id, _)| Job::reads(*id)).collect();
        let mut found = self.read(&reads).await?.into_iter();
        let mut purged: BTreeMap<JobId, Job> = BTreeMap::new();
        for (id, _) in references {
            let job = Job::from_found(*id, found.by_ref().take(Job::READS).collect::<Vec<_>>());
            // One without a batch of its own is a rest that another tool left of a job of this batch.
            let is_own = |job: &Job| match job.batch() {
                Ok(own) => own == batch,
                Err(Error::Missing(_)) => true,
                Err(_) => false,
            };
            if let Some(job) = job.filter(is_own) {
                check_removable(&job)?;
                purged.insert(*id, job);
            }
        }
        let roots = purged.keys().map(|id| Path::Job(*id)).collect();
        let mut nodes: BTreeMap<JobId, Vec<Path>> = BTreeMap::new();
        let mut at = BTreeMap::new();
        for path in self.subtree(roots).await? {
            // A child lies below its parent, whose job is known by then.
            let owner = match &path {
                Path::Job(id) | Path::JobNode(id, _) => Some(*id),
                other => other.parent().and_then(|parent| at.get(&parent).copied()),
            };
            if let Some(owner) = owner {
                at.insert(path.clone(), owner);
                nodes.entry(owner).or_default().push(path);
            }
        }
        let mut entries = self.entries_of_some(batch, &purged, census).await?;
        let mut items = Vec::new();
        for (id, references) in references {
            let mut transaction = Transaction::new();
            let job = purged.get(id);
            for path in nodes.remove(id).into_iter().flatten().rev() {
                let is_status = path == Path::JobNode(*id, JobNode::Status);
                transaction.delete(path, job.and_then(Job::version).filter(|_| is_status));
            }
            for path in entries.remove(id).into_iter().flatten().chain(references.iter().cloned()) {
                transaction.delete(path, None);
            }
            items.push((job.map(|job| (job.id, job.state())), transaction));
        }
        items.retain(|(_, transaction)| !transaction.is_empty());
        Ok(items)
    }

    /// The UUID entries that name a batch, with their versions: that of its submission, and where this cannot be read,
    /// whichever do.
    pub(crate) async fn uuid_entries(&self, batch: &Batch) -> Result<Vec<(Path, i32)>, Error> {
        let uuid = batch.submitted().value.uuid.into_owned();
        let names = if uuid.is_empty() {
            let [found] = self.read_each([Read::Children(Path::BatchUuids)]).await?;
            found.children()
        } else {
            vec![uuid]
        };
        let paths: BTreeSet<_> = names.into_iter().map(|name| Path::BatchUuid(name.into())).collect();
        // A submission may contain anything, including an invalid znode name.
        let paths: Vec<_> = paths.into_iter().filter(Path::is_nameable).collect();
        let reads: Vec<_> = paths.iter().cloned().map(Read::Data).collect();
        let found = self.read(&reads).await?.into_iter().map(Found::data);
        let of_batch = |(path, found): (Path, Option<(Vec<u8>, zookeeper_client::Stat)>)| {
            let (data, stat) = found?;
            record::bid(&data).is_ok_and(|bid| bid == batch.id).then_some((path, stat.version))
        };
        Ok(paths.into_iter().zip(found).filter_map(of_batch).collect())
    }
}

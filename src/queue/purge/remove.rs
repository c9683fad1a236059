//! Removing the znodes of final jobs, batches and requests, children first.

use std::collections::{BTreeMap, BTreeSet};

use super::census::Census;
use super::{BulkPlan, Chunk};
use crate::queue::access::RequestTarget;
use crate::queue::batch::{Batch, BatchTarget};
use crate::queue::error::{ConflictKind, Error};
use crate::queue::handle::{Found, Queue, Read};
use crate::queue::id::{BatchId, JobId};
use crate::queue::job::Job;
use crate::queue::path::{BatchNode, JobNode, Path, RequestNode};
use crate::queue::record;
use crate::queue::state::{JobState, Outcome, State};
use crate::queue::transaction::Transaction;

/// How many jobs are read at once, so that not all of a batch's values are in memory.
const READ_AT_ONCE: usize = 1_000;

impl Queue {
    /// Plans to remove a Completed or Deleted batch with all its jobs, their queue entries and references, and its UUID
    /// entry. A job that a reference of it names, but that names another batch, stays.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a batch or one of its jobs that is not final; [`Error::Conflict`] where one of them is
    /// held or was changed since it was seen; [`Error::Missing`] and [`Error::Decode`] where a status cannot be read;
    /// [`Error::Read`].
    pub async fn plan_purge(&self, target: impl Into<BatchTarget>) -> Result<BulkPlan, Error> {
        let census = self.census().await?;
        self.plan_purge_with(&target.into(), &census).await
    }

    pub(super) async fn plan_purge_with(&self, target: &BatchTarget, census: &Census) -> Result<BulkPlan, Error> {
        let batch = self.load_batch(target.id).await?;
        target.check(&batch)?;
        let state = batch.state_to_change()?;
        if !state.is_final() {
            return Err(not_final(Path::Batch(batch.id), &state));
        }
        let mut references: BTreeMap<JobId, Vec<Path>> = BTreeMap::new();
        for job in census.jobs.get(&batch.id).into_iter().flatten() {
            references.entry(*job).or_default();
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
        if let Some(lock) = &target.lock {
            last.delete(lock.path.clone(), None);
        }
        last.append(close.clone());
        last.delete(Path::Batch(batch.id), None);
        for (path, version) in self.uuid_entries(&batch).await? {
            last.delete(path, Some(version));
        }
        open.check(status, batch.version().unwrap_or_default());
        let mut chunks = self.chunks(items, &open, &close);
        chunks.push(Chunk { jobs: Vec::new(), transaction: last });
        Ok(BulkPlan { batch: batch.id, chunks })
    }

    /// What is to be removed for each job, which is nothing but its references where it is another batch's.
    async fn removals(
        &self,
        batch: BatchId,
        references: &[(JobId, Vec<Path>)],
        census: &Census,
    ) -> Result<Vec<(Option<JobId>, Transaction)>, Error> {
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
        let mut items = Vec::new();
        for (id, references) in references {
            let mut transaction = Transaction::new();
            let job = purged.get(id);
            for path in nodes.remove(id).into_iter().flatten().rev() {
                let is_status = path == Path::JobNode(*id, JobNode::Status);
                transaction.delete(path, job.and_then(Job::version).filter(|_| is_status));
            }
            let entries = census.entries.get(id).filter(|_| job.is_some());
            for path in entries.into_iter().flatten().chain(references) {
                transaction.delete(path.clone(), None);
            }
            items.push((job.map(|job| job.id), transaction));
        }
        items.retain(|(_, transaction)| !transaction.is_empty());
        Ok(items)
    }

    /// The UUID entries that name a batch, with their versions: that of its submission, and where this cannot be read,
    /// whichever do.
    async fn uuid_entries(&self, batch: &Batch) -> Result<Vec<(Path, i32)>, Error> {
        let uuid = batch.submitted().value.uuid.into_owned();
        let names = if uuid.is_empty() {
            let [found] = self.read_each([Read::Children(Path::BatchUuids)]).await?;
            found.children()
        } else {
            vec![uuid]
        };
        let paths: BTreeSet<_> = names.into_iter().map(|name| Path::BatchUuid(name.into())).collect();
        // A submission may carry anything, also what is no name of a znode.
        let paths: Vec<_> = paths.into_iter().filter(|path| Path::parse(&path.to_string()) == *path).collect();
        let reads: Vec<_> = paths.iter().cloned().map(Read::Data).collect();
        let found = self.read(&reads).await?.into_iter().map(Found::data);
        let of_batch = |(path, found): (Path, Option<(Vec<u8>, zookeeper_client::Stat)>)| {
            let (data, stat) = found?;
            record::bid(&data).is_ok_and(|bid| bid == batch.id).then_some((path, stat.version))
        };
        Ok(paths.into_iter().zip(found).filter_map(of_batch).collect())
    }

    /// Removes one Completed or Deleted job with its queue entries and references, in one `multi`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a job that is not final, [`Error::Conflict`] where it is held, [`Error::Missing`] where it
    /// does not exist; else as [`Queue::commit`].
    pub async fn purge_job(&self, id: JobId) -> Result<(), Error> {
        let batch = self.load_job(id).await?.batch()?;
        let places: Vec<_> = Outcome::ALL.iter().map(|outcome| Path::Reference(batch, *outcome, id)).collect();
        let reads: Vec<_> = places.iter().cloned().map(Read::Data).collect();
        let found = self.read(&reads).await?;
        let references = places.into_iter().zip(found).filter(|(_, found)| found.exists()).map(|(path, _)| path);
        let census = self.census().await?;
        let items = self.removals(batch, &[(id, references.collect())], &census).await?;
        for (_, transaction) in items {
            self.commit(&transaction).await?;
        }
        Ok(())
    }

    /// Removes one Completed or Deleted access request, in one `multi`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a request that is not final, [`Error::Conflict`] where it is held or was changed since it
    /// was seen, [`Error::Missing`] where it does not exist; else as [`Queue::commit`].
    pub async fn purge_request(&self, target: impl Into<RequestTarget>) -> Result<(), Error> {
        let target = target.into();
        let request = self.load_request(target.queue, target.id).await?;
        target.check(&request)?;
        let path = Path::Request(request.queue, request.id);
        let status = Path::RequestNode(request.queue, request.id, RequestNode::Status);
        let state = crate::queue::batch::readable_state(status.clone(), request.status())?;
        if !state.is_final() {
            return Err(not_final(path, &state));
        }
        let mut transaction = Transaction::new();
        for path in self.subtree(vec![path]).await?.into_iter().rev() {
            let version = request.version().filter(|_| path == status);
            transaction.delete(path, version);
        }
        self.commit(&transaction).await.map(|_| ())
    }
}

fn not_final(path: Path, state: &impl State) -> Error {
    Error::Invalid { path, reason: format!("it is {state}, and only what is Completed or Deleted may be purged") }
}

/// Refuses a job that somebody works on, or may.
fn check_removable(job: &Job) -> Result<(), Error> {
    if let Some(lock) = job.lock() {
        return Err(Error::conflict(lock.path, ConflictKind::Locked { session: lock.session, since: lock.since }));
    }
    let status = job.status();
    match (status.value.status.state, job.data(JobNode::Status)) {
        (Some(state), _) if JobState::is_final(state) => Ok(()),
        (Some(state), _) => Err(not_final(Path::Job(job.id), &state)),
        // Nobody can work on a job without a status.
        (None, None) => Ok(()),
        (None, Some(_)) => {
            let unknown = record::Malformed::Wrong { what: "status", expected: "the name of a state" };
            let path = Path::JobNode(job.id, JobNode::Status);
            Err(Error::Decode { path, malformed: status.malformed.unwrap_or(unknown) })
        }
    }
}

//! Removing, by its name, an item that no repair makes loadable again, with everything that belongs to it.
//!
//! Each znode is deleted in the version whose data was read and shown: no data is lost that was not shown.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use zookeeper_client::Stat;

use super::Chunk;
use super::item::check_removable;
use crate::error::{ConflictKind, Error};
use crate::fault::{Fault, detect_batch, detect_job, detect_request};
use crate::handle::{Found, Queue, Read};
use crate::id::{BatchId, JobId, RequestId};
use crate::job::Job;
use crate::lock::Lock;
use crate::path::{AccessQueue, BatchNode, JobNode, Path, RequestNode};
use crate::repair::RepairOptions;
use crate::repair::facts::request_facts;
use crate::repair::request::is_repairable;
use crate::transaction::Transaction;

/// How many znodes of one item are read and shown. A job has about 12.
const NODES_AT_MOST: usize = 100_000;

/// How much data of one item is read and shown.
const BYTES_AT_MOST: usize = 64 << 20;

/// How many znodes, or jobs, are read at once.
const READ_AT_ONCE: usize = 1_000;

/// The removal of a job, batch or access request that cannot be loaded and that no repair makes loadable again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// What is removed.
    pub item: Path,
    /// The fault that it shows.
    pub fault: Fault,
    /// What is done, in a sentence.
    pub summary: String,
    /// Each znode that is removed, with its data.
    pub removes: Vec<(Path, Vec<u8>)>,
    /// What is written: one transaction, but for a batch of very many jobs.
    pub chunks: Vec<Chunk>,
}

/// A znode to be removed, with the data that was shown.
#[derive(Clone, Debug)]
struct RemovedNode {
    path: Path,
    data: Vec<u8>,
    stat: Stat,
}

impl Queue {
    /// Plans to purge a job, batch or access request that is not known to be done with, because it cannot be loaded or
    /// its creation was not finished, where no repair puts that right. [`Queue::plan_purge_job`],
    /// [`Queue::plan_purge`] and [`Queue::plan_purge_request`] remove what is Completed or Deleted.
    ///
    /// # Errors
    /// [`Error::NotShown`] for an item that is not broken; [`Error::Invalid`] where a repair puts it right, where a job
    /// of a batch is not done, and where there is more than can be shown; [`Error::Conflict`] where a living session
    /// holds the item; [`Error::Missing`] where it is gone; [`Error::Read`].
    pub async fn plan_purge_broken(&self, item: &Path, options: RepairOptions<'_>) -> Result<Removal, Error> {
        match item {
            Path::Job(job) => self.remove_job(*job, options).await,
            Path::Batch(batch) => self.remove_batch(*batch, options).await,
            Path::Request(queue, request) => self.remove_request(*queue, *request, options).await,
            _ => Err(Error::NotShown { item: item.clone(), fault: Fault::UnfinishedCreation }),
        }
    }

    async fn remove_job(&self, id: JobId, options: RepairOptions<'_>) -> Result<Removal, Error> {
        let item = Path::Job(id);
        let inspection = self.inspect_job(id, None).await?;
        let job = inspection.job.as_ref().ok_or_else(|| Error::Missing(item.clone()))?;
        let fault = options
            .broken(&item, Fault::UnloadableJob, |limits, sink| detect_job(&inspection.facts(), limits, sink))?;
        if fault == Fault::UnloadableJob && inspection.is_repairable(job, options.now) {
            return Err(repairable(item, fault));
        }
        let others = inspection.entry_paths().chain(inspection.reference_paths()).collect();
        let nodes = self.read_nodes(&item, vec![item.clone()], others).await?;
        let transaction = removal(&nodes, &item, &Path::JobNode(id, JobNode::Lock), options)?;
        let summary = format!(
            "Removes job {id} with its queue entries and references. Its depositor is not notified, and has to submit it \
             again."
        );
        let chunks = vec![Chunk { jobs: vec![(id, job.state())], transaction }];
        Ok(Removal { item, fault, summary, removes: shown(nodes), chunks })
    }

    async fn remove_request(
        &self,
        queue: AccessQueue,
        id: RequestId,
        options: RepairOptions<'_>,
    ) -> Result<Removal, Error> {
        let item = Path::Request(queue, id);
        let (request, created_ms) = self.inspect_request(queue, id).await?;
        let facts = request_facts(&request, created_ms);
        let fault =
            options.broken(&item, Fault::UnloadableRequest, |limits, sink| detect_request(&facts, limits, sink))?;
        if fault == Fault::UnloadableRequest && is_repairable(&request, options.now) {
            return Err(repairable(item, fault));
        }
        let nodes = self.read_nodes(&item, vec![item.clone()], Vec::new()).await?;
        let transaction = removal(&nodes, &item, &Path::RequestNode(queue, id, RequestNode::Lock), options)?;
        let summary =
            format!("Removes access request {id} from {}. Its user has to request it again.", Path::AccessQueue(queue));
        let chunks = vec![Chunk { jobs: Vec::new(), transaction }];
        Ok(Removal { item, fault, summary, removes: shown(nodes), chunks })
    }

    /// Removes a batch with all jobs that name it, their entries and references, and its UUID entry: a job without its
    /// batch could not be loaded either. Jobs that are not done stay in the way.
    async fn remove_batch(&self, id: BatchId, options: RepairOptions<'_>) -> Result<Removal, Error> {
        let (item, lock) = (Path::Batch(id), Path::BatchNode(id, BatchNode::Lock));
        let inspection = self.inspect_batch(id).await?;
        let fault = options
            .broken(&item, Fault::UnloadableBatch, |limits, sink| detect_batch(&inspection.facts(), limits, sink))?;
        if fault == Fault::UnloadableBatch && inspection.is_repairable(options.now) {
            return Err(repairable(item, fault));
        }
        let jobs: BTreeSet<JobId> = self.jobs_by_batch().await?.remove(&id).into_iter().flatten().collect();
        self.check_all_removable(&jobs).await?;
        let uuids: Vec<_> = self.uuid_entries(&inspection.batch).await?.into_iter().map(|(path, _)| path).collect();
        let mut entries = if jobs.is_empty() { HashMap::new() } else { self.entries_of_all().await? };
        let roots = std::iter::once(item.clone()).chain(jobs.iter().map(|job| Path::Job(*job))).collect();
        // Collected, since a lazy one held across the reads would keep the future from being sent to another thread.
        let others = jobs.iter().filter_map(|job| entries.remove(job)).flatten().chain(uuids).collect();
        let nodes = self.read_nodes(&item, roots, others).await?;

        // Each job goes with its entries and its references; what is left is the batch's own.
        let mut by_job: BTreeMap<JobId, Vec<RemovedNode>> = BTreeMap::new();
        let mut owners: HashMap<Path, JobId> = HashMap::new();
        let mut own = Vec::new();
        for node in &nodes {
            let owner = match &node.path {
                Path::Job(job) | Path::JobNode(job, _) | Path::Reference(_, _, job) => Some(*job),
                Path::Entry(_, entry) => Some(entry.job),
                other => other.parent().and_then(|parent| owners.get(&parent).copied()),
            };
            match owner {
                Some(job) => {
                    owners.insert(node.path.clone(), job);
                    by_job.entry(job).or_default().push(node.clone());
                }
                None => own.push(node.clone()),
            }
        }
        let last = removal(&own, &item, &lock, options)?;
        let mut items = Vec::new();
        for (job, nodes) in &by_job {
            let lock = Path::JobNode(*job, JobNode::Lock);
            items.push((Some((*job, None)), removal(nodes, &Path::Job(*job), &lock, options)?));
        }
        let mut open = Transaction::new();
        open.check_exists(item.clone());
        let mut chunks = self.chunks(items, &open, &Transaction::new());
        chunks.push(Chunk { jobs: Vec::new(), transaction: last });
        let summary = format!(
            "Removes batch {id}, its jobs ({}), their queue entries and its UUID entry. Its depositor is not notified, \
             and has to submit it again.",
            jobs.len()
        );
        Ok(Removal { item, fault, summary, removes: shown(nodes), chunks })
    }

    /// Refuses where one of the jobs is locked or not done: it would be lost with its batch.
    async fn check_all_removable(&self, jobs: &BTreeSet<JobId>) -> Result<(), Error> {
        let jobs: Vec<JobId> = jobs.iter().copied().collect();
        for ids in jobs.chunks(READ_AT_ONCE) {
            let reads: Vec<_> = ids.iter().flat_map(|id| Job::reads(*id)).collect();
            let mut found = self.read(&reads).await?.into_iter();
            for id in ids {
                let job = Job::from_found(*id, found.by_ref().take(Job::READS).collect::<Vec<_>>());
                job.as_ref().map_or(Ok(()), check_removable)?;
            }
        }
        Ok(())
    }

    /// Reads all znodes at and below the roots, each before its children, and then some others.
    async fn read_nodes(&self, item: &Path, roots: Vec<Path>, others: Vec<Path>) -> Result<Vec<RemovedNode>, Error> {
        let mut paths = self.subtree(roots).await?;
        let known: BTreeSet<Path> = paths.iter().cloned().collect();
        paths.extend(others.into_iter().filter(|other| !known.contains(other)));
        check_size(item, paths.len(), &[])?;
        let mut nodes = Vec::with_capacity(paths.len());
        for some in paths.chunks(READ_AT_ONCE) {
            let reads: Vec<_> = some.iter().cloned().map(Read::Data).collect();
            let found = self.read(&reads).await?.into_iter().map(Found::data);
            for (path, found) in some.iter().zip(found) {
                let Some((data, stat)) = found else { continue };
                nodes.push(RemovedNode { path: path.clone(), data, stat });
            }
            check_size(item, paths.len(), &nodes)?;
        }
        Ok(nodes)
    }
}

/// Refuses an item of more znodes than can be shown, or of more data in those that were read.
fn check_size(item: &Path, znodes: usize, read: &[RemovedNode]) -> Result<(), Error> {
    let bytes: usize = read.iter().map(|node| node.data.len()).sum();
    let what = if znodes > NODES_AT_MOST {
        format!("{znodes} znodes; at most {NODES_AT_MOST}")
    } else if bytes > BYTES_AT_MOST {
        format!("at least {bytes} bytes of data; at most {BYTES_AT_MOST}")
    } else {
        return Ok(());
    };
    let reason = format!("it has {what} can be shown and purged at once: delete some by hand first");
    Err(Error::Invalid { path: item.clone(), reason })
}

/// Deletes an item's znodes, children first, itself last, under its lock. A lock that is there goes with it, where that
/// may be.
fn removal(nodes: &[RemovedNode], own: &Path, lock: &Path, options: RepairOptions<'_>) -> Result<Transaction, Error> {
    let held = nodes.iter().find(|node| node.path == *lock).map(|node| Lock::from_stat(lock.clone(), &node.stat));
    check_lock(held.as_ref(), options)?;
    let is_there = nodes.iter().any(|node| node.path == *own);
    let mut transaction = Transaction::new();
    if is_there && held.is_none() {
        transaction.create_ephemeral(lock.clone());
    }
    for node in nodes.iter().rev().filter(|node| node.path != *own && node.path != *lock) {
        transaction.delete(node.path.clone(), Some(node.stat.version));
    }
    if is_there {
        let version = nodes.iter().find(|node| node.path == *own).map(|node| node.stat.version);
        transaction.delete(lock.clone(), None).delete(own.clone(), version);
    }
    Ok(transaction)
}

fn shown(nodes: Vec<RemovedNode>) -> Vec<(Path, Vec<u8>)> {
    nodes.into_iter().map(|node| (node.path, node.data)).collect()
}

/// Refuses what a living session holds, unless `even_if_locked`. A persistent lock does not prevent removal.
fn check_lock(lock: Option<&Lock>, options: RepairOptions<'_>) -> Result<(), Error> {
    match lock {
        Some(lock) if lock.session.is_some() && !options.even_if_locked => {
            let kind = ConflictKind::Locked { session: lock.session, since: lock.since };
            Err(Error::conflict(lock.path.clone(), kind))
        }
        Some(_) | None => Ok(()),
    }
}

fn repairable(item: Path, fault: Fault) -> Error {
    let reason = format!(
        "it shows {fault}, which can be repaired, and only what is Completed or Deleted, or cannot be repaired, may be \
         purged: repair it first"
    );
    Error::Invalid { path: item, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Limits;
    use crate::testing::stat;

    const JOB: &str = "/jobs/jid0000000001";

    /// What the removal of these znodes does; a number behind a path is that of the session that owns it. Each znode
    /// has the length of its path as its version, so that no two are alike.
    fn removed(nodes: &[(&str, i64)], even_if_locked: bool) -> Result<String, Error> {
        let limits = Limits::default();
        let options = RepairOptions { limits: &limits, now: jiff::Timestamp::UNIX_EPOCH, even_if_locked };
        let node = |(path, ephemeral_owner): &(&str, i64)| {
            let version = i32::try_from(path.len()).unwrap();
            let stat = Stat { ephemeral_owner: *ephemeral_owner, version, ..stat() };
            RemovedNode { path: Path::parse(path), data: Vec::new(), stat }
        };
        let nodes: Vec<_> = nodes.iter().map(node).collect();
        let [own, lock] = [JOB.to_owned(), format!("{JOB}/lock")].map(|path| Path::parse(&path));
        removal(&nodes, &own, &lock, options).map(|transaction| transaction.to_string())
    }

    #[test]
    fn an_item_is_removed_with_its_children_first_under_a_lock_that_goes_with_it() {
        let (bid, lock) = (format!("{JOB}/bid"), format!("{JOB}/lock"));
        let entry = "/jobs/states/pending/05-jid0000000001";
        let rest = format!("delete {entry} at version 37\ndelete {bid} at version 23\n");
        let end = format!("delete {lock}\ndelete {JOB} at version 19\n");
        let nodes = [(JOB, 0), (bid.as_str(), 0), (entry, 0)];
        assert_eq!(removed(&nodes, false), Ok(format!("create {lock} (ephemeral)\n{rest}{end}")));
        // One that is left behind does not prevent it, one that a session holds does.
        let with_lock = |owner| [&nodes[..2], &[(lock.as_str(), owner)], &nodes[2..]].concat();
        assert_eq!(removed(&with_lock(0), false), Ok(format!("{rest}{end}")));
        assert_eq!(removed(&with_lock(7), true), Ok(format!("{rest}{end}")));
        let session = Some(zookeeper_client::SessionId(7));
        let since = jiff::Timestamp::from_second(1).unwrap();
        let held = Error::conflict(Path::parse(&lock), ConflictKind::Locked { session, since });
        assert_eq!(removed(&with_lock(7), false), Err(held));
        // What is gone itself has no lock either.
        assert_eq!(removed(&nodes[1..], false), Ok(rest));
    }

    #[test]
    fn an_item_is_removed_up_to_a_hundred_thousand_znodes_and_64_mib_together() {
        let node = |bytes| RemovedNode { path: Path::Jobs, data: vec![0; bytes], stat: stat() };
        let mut read = vec![node(1), node((64 << 20) - 1)];
        assert_eq!(check_size(&Path::Jobs, 100_000, &read), Ok(()));
        let many = check_size(&Path::Jobs, 100_001, &[]).unwrap_err().to_string();
        assert!(many.starts_with("/jobs: it has 100001 znodes; at most 100000 can"), "{many}");
        read.push(node(1));
        let large = check_size(&Path::Jobs, 3, &read).unwrap_err().to_string();
        assert!(large.starts_with("/jobs: it has at least 67108865 bytes of data; at most 67108864 can"), "{large}");
    }

    #[test]
    fn a_removal_shows_each_znode_and_a_repair_comes_first() {
        let node = RemovedNode { path: Path::Jobs, data: b"x".to_vec(), stat: stat() };
        assert_eq!(shown(vec![node]), [(Path::Jobs, b"x".to_vec())]);
        let error = repairable(Path::Jobs, Fault::UnloadableJob).to_string();
        assert!(error.starts_with("/jobs: it shows unloadable_job, which can be repaired"), "{error}");
    }
}

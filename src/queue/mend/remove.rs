//! Removing an item that nobody can work on, with everything that belongs to it.
//!
//! Each znode is deleted in the version whose data was read and shown: nobody loses what he has not seen.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use zookeeper_client::Stat;

use super::facts::{BatchLook, JobLook, request_facts};
use super::{Mend, MendOrder};
use crate::queue::access::Request;
use crate::queue::error::Error;
use crate::queue::fault::{Fault, judge_request};
use crate::queue::handle::{Found, Queue, Read};
use crate::queue::id::{JobId, RequestId};
use crate::queue::lock::Lock;
use crate::queue::path::{AccessQueue, BatchNode, JobNode, Path, RequestNode};
use crate::queue::purge::Chunk;
use crate::queue::transaction::Transaction;

/// How many znodes of one item are read and shown. A job has about 12.
const NODES_AT_MOST: usize = 100_000;

/// How much data of one item is read and shown.
const BYTES_AT_MOST: usize = 64 << 20;

/// How many znodes are read at once.
const READ_AT_ONCE: usize = 1_000;

/// A znode that is to be removed.
#[derive(Clone, Debug)]
struct Doomed {
    path: Path,
    data: Vec<u8>,
    stat: Stat,
}

impl Queue {
    pub(super) async fn remove_job(&self, fault: Fault, look: &JobLook, order: MendOrder<'_>) -> Result<Mend, Error> {
        let item = Path::Job(look.id);
        let others = look.entry_paths().chain(look.reference_paths()).collect();
        let doomed = self.doomed(&item, vec![item.clone()], others).await?;
        let transaction = removal(&doomed, &item, &Path::JobNode(look.id, JobNode::Lock), order)?;
        let summary = format!("Removes job {} with its queue entries and references.", look.id);
        let chunks = vec![Chunk { jobs: vec![look.id], transaction }];
        Ok(Mend { fault, item, summary, is_destructive: true, removes: shown(doomed), chunks })
    }

    pub(super) async fn mend_request(
        &self,
        fault: Fault,
        queue: AccessQueue,
        id: RequestId,
        order: MendOrder<'_>,
    ) -> Result<Mend, Error> {
        let item = Path::Request(queue, id);
        let mut reads = Request::reads(queue, id).to_vec();
        reads.push(Read::Data(item.clone()));
        let mut found = self.read(&reads).await?;
        let created_ms = found.pop().and_then(|found| found.stat().map(|stat| stat.ctime));
        let request = Request::from_found(queue, id, found).ok_or(Error::Missing(item.clone()))?;
        let facts = request_facts(&request, created_ms.unwrap_or(i64::MAX));
        order.confirm(fault, &item, |limits, sink| judge_request(&facts, limits, sink))?;
        let doomed = self.doomed(&item, vec![item.clone()], Vec::new()).await?;
        let transaction = removal(&doomed, &item, &Path::RequestNode(queue, id, RequestNode::Lock), order)?;
        let summary = format!("Removes access request {id} from {}.", Path::AccessQueue(queue));
        let chunks = vec![Chunk { jobs: Vec::new(), transaction }];
        Ok(Mend { fault, item, summary, is_destructive: true, removes: shown(doomed), chunks })
    }

    /// Removes a batch with all jobs that name it, their entries and references, and its UUID entry: a job without its
    /// batch could not be loaded either.
    pub(super) async fn remove_batch(
        &self,
        fault: Fault,
        look: &BatchLook,
        order: MendOrder<'_>,
    ) -> Result<Mend, Error> {
        let id = look.batch.id;
        let (item, lock) = (Path::Batch(id), Path::BatchNode(id, BatchNode::Lock));
        let jobs: BTreeSet<JobId> = self.jobs_by_batch().await?.remove(&id).into_iter().flatten().collect();
        let uuids: Vec<_> = self.uuid_entries(&look.batch).await?.into_iter().map(|(path, _)| path).collect();
        let mut entries = if jobs.is_empty() { HashMap::new() } else { self.entries_of_all().await? };
        let roots = std::iter::once(item.clone()).chain(jobs.iter().map(|job| Path::Job(*job))).collect();
        // Collected, since a lazy one held across the reads would keep the future from being sent to another thread.
        let others = jobs.iter().filter_map(|job| entries.remove(job)).flatten().chain(uuids).collect();
        let doomed = self.doomed(&item, roots, others).await?;

        // Each job goes with its entries and its references; what is left is the batch's own.
        let mut by_job: BTreeMap<JobId, Vec<Doomed>> = BTreeMap::new();
        let mut owners: HashMap<Path, JobId> = HashMap::new();
        let mut own = Vec::new();
        for node in &doomed {
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
        let last = removal(&own, &item, &lock, order)?;
        let mut items = Vec::new();
        for (job, nodes) in &by_job {
            let lock = Path::JobNode(*job, JobNode::Lock);
            items.push((Some(*job), removal(nodes, &Path::Job(*job), &lock, order)?));
        }
        let mut open = Transaction::new();
        open.check_exists(item.clone());
        let mut chunks = self.chunks(items, &open, &Transaction::new());
        chunks.push(Chunk { jobs: Vec::new(), transaction: last });
        let summary =
            format!("Removes batch {id} with its {} jobs, their queue entries and its UUID entry.", jobs.len());
        Ok(Mend { fault, item, summary, is_destructive: true, removes: shown(doomed), chunks })
    }

    /// Reads all znodes at and below the roots, each before its children, and then some others.
    async fn doomed(&self, item: &Path, roots: Vec<Path>, others: Vec<Path>) -> Result<Vec<Doomed>, Error> {
        let mut paths = self.subtree(roots).await?;
        let known: BTreeSet<Path> = paths.iter().cloned().collect();
        paths.extend(others.into_iter().filter(|other| !known.contains(other)));
        let too_large = |what: String| {
            let reason =
                format!("it consists of {what} that are shown and removed at once: mend the named ones by hand");
            Err(Error::Invalid { path: item.clone(), reason })
        };
        if paths.len() > NODES_AT_MOST {
            return too_large(format!("{} znodes, more than the {NODES_AT_MOST}", paths.len()));
        }
        let mut bytes = 0;
        let mut doomed = Vec::with_capacity(paths.len());
        for paths in paths.chunks(READ_AT_ONCE) {
            let reads: Vec<_> = paths.iter().cloned().map(Read::Data).collect();
            let found = self.read(&reads).await?.into_iter().map(Found::data);
            for (path, found) in paths.iter().zip(found) {
                let Some((data, stat)) = found else { continue };
                bytes += data.len();
                doomed.push(Doomed { path: path.clone(), data, stat });
            }
            if bytes > BYTES_AT_MOST {
                return too_large(format!("znodes of more than the {BYTES_AT_MOST} bytes"));
            }
        }
        Ok(doomed)
    }
}

/// Deletes an item's znodes, children first, itself last, under its lock. A lock that is there goes with it, where that
/// may be.
fn removal(nodes: &[Doomed], own: &Path, lock: &Path, order: MendOrder<'_>) -> Result<Transaction, Error> {
    let held = nodes.iter().find(|node| node.path == *lock).map(|node| Lock::from_stat(lock.clone(), &node.stat));
    order.check_lock(held.as_ref())?;
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

fn shown(doomed: Vec<Doomed>) -> Vec<(Path, Vec<u8>)> {
    doomed.into_iter().map(|node| (node.path, node.data)).collect()
}

//! Reads the current state of items, and derives the facts that the rules evaluate.

use jiff::Timestamp;
use zookeeper_client::Stat;

use super::survey::{Survey, entry};
use crate::access::Request;
use crate::batch::Batch;
use crate::error::Error;
use crate::fault::{BatchFacts, JobFacts, LockFacts, NodeSet, RequestFacts};
use crate::handle::{Found, Queue, Read};
use crate::id::{BatchId, JobId, Priority, RequestId};
use crate::job::Job;
use crate::lock::Lock;
use crate::path::{AccessQueue, BatchNode, EntryName, JobNode, Path, RequestNode, StateFolder};
use crate::record::{self, DaemonNote, ExpansionNote, ItemStatus, WithdrawnNote};
use crate::state::{BatchState, JobOutcome};

/// How many batches are checked for a reference at once.
const ITEMS_PER_READ: usize = 5_000;

/// A job with all that refers to it, wherever that is.
#[derive(Debug)]
pub(crate) struct JobInspection {
    pub(crate) id: JobId,
    /// `None` where it is gone.
    pub(crate) job: Option<Job>,
    pub(super) created: Option<Stat>,
    pub(crate) entries: Vec<(StateFolder, EntryName)>,
    pub(crate) references: Vec<(BatchId, JobOutcome)>,
    /// Whether its batch is there with its `states`.
    pub(crate) is_batch_acquired: bool,
    /// The state of its batch, where that is there and known.
    pub(crate) batch_state: Option<BatchState>,
    /// Whether it is the last job of a batch whose jobs are being created.
    pub(crate) is_expanding: bool,
}

impl Queue {
    /// Looks at a job, at every queue entry of it and at every reference to it.
    pub(crate) async fn inspect_job(&self, id: JobId, survey: Option<&Survey>) -> Result<JobInspection, Error> {
        let mut reads = Job::reads(id);
        reads.push(Read::Data(Path::Job(id)));
        let mut found = self.read(&reads).await?.into_iter();
        let job = Job::from_found(id, found.by_ref().take(Job::READS));
        let created = found.next().and_then(|found| found.stat().copied());
        let batch = job.as_ref().and_then(|job| job.batch().ok());
        let (is_batch_acquired, batch_state, is_expanding) = match batch {
            Some(batch) => {
                let [states, status] = [BatchNode::States, BatchNode::Status].map(|node| Path::BatchNode(batch, node));
                let nodes = [states, status, Path::expansion(batch)].map(Read::Data);
                let [states, status, expansion] = self.read_each(nodes).await?;
                let state = status.data().and_then(|(data, _)| ItemStatus::decode(&data).value.status.state);
                let expansion = expansion.data().and_then(|(data, _)| ExpansionNote::decode(&data));
                (states.exists(), state, expansion.is_some_and(|expansion| expansion.last == Some(id)))
            }
            None => (false, None, false),
        };
        let (entries, references) = if let Some(survey) = survey {
            self.confirmed(survey, id, job.as_ref()).await?
        } else {
            let entries = self.entries_of_all().await?.remove(&id).unwrap_or_default();
            (entries.into_iter().filter_map(entry).collect(), self.references_to(id).await?)
        };
        Ok(JobInspection { id, job, created, entries, references, is_batch_acquired, batch_state, is_expanding })
    }

    async fn references_to(&self, id: JobId) -> Result<Vec<(BatchId, JobOutcome)>, Error> {
        let batches = self.batches().await?;
        let mut references = Vec::new();
        for batches in batches.chunks(ITEMS_PER_READ) {
            let places = batches.iter().flat_map(|batch| JobOutcome::ALL.map(|outcome| (*batch, outcome)));
            let places: Vec<_> = places.collect();
            let reads: Vec<_> =
                places.iter().map(|(batch, outcome)| Read::Existence(Path::Reference(*batch, *outcome, id))).collect();
            let found = self.read(&reads).await?;
            references
                .extend(places.into_iter().zip(found).filter(|(_, found)| found.exists()).map(|(place, _)| place));
        }
        Ok(references)
    }
}

impl JobInspection {
    pub(crate) fn entry_paths(&self) -> impl Iterator<Item = Path> {
        self.entries.iter().map(|(folder, name)| Path::Entry(folder.clone(), *name))
    }

    pub(crate) fn reference_paths(&self) -> impl Iterator<Item = Path> {
        self.references.iter().map(|(batch, outcome)| Path::Reference(*batch, *outcome, self.id))
    }

    pub(crate) fn facts(&self) -> JobFacts<'_> {
        let job = self.job.as_ref();
        let nodes = || JobNode::ALL.iter().copied();
        let present = nodes().filter(|node| job.is_some_and(|job| job.data(*node).is_some()));
        let malformed = nodes().filter(|node| {
            job.and_then(|job| job.data(*node)).is_some_and(|data| record::check_job_node(*node, data).is_err())
        });
        let status = job.map(Job::status);
        JobFacts {
            id: self.id,
            present: set(present.map(|node| node as u8).chain(job.map(|_| NodeSet::OWN))),
            malformed: set(malformed.map(|node| node as u8)),
            denied: NodeSet::default(),
            state: job.and_then(Job::state),
            is_canonical: status.as_ref().is_some_and(|status| status.value.status.is_canonical()),
            entered_ms: job.and_then(Job::entered).map_or(i64::MAX, Timestamp::as_millisecond),
            created_ms: self.created.map_or(i64::MAX, |stat| stat.ctime),
            retry_count: status.and_then(|status| status.value.retry_count),
            priority: job.and_then(|job| job.priority().ok()).map(Priority::number),
            is_priority_out_of_range: job
                .and_then(|job| job.data(JobNode::Priority))
                .is_some_and(record::is_priority_out_of_range),
            batch: job.and_then(|job| job.batch().ok()),
            is_batch_acquired: self.is_batch_acquired,
            is_leaving: false,
            entries: &self.entries,
            references: &self.references,
            lock: job.and_then(Job::lock).as_ref().map(lock_facts),
            is_expanding: self.is_expanding,
        }
    }
}

/// A batch with what finds it.
#[derive(Debug)]
pub(crate) struct BatchInspection {
    pub(crate) batch: Batch,
    pub(super) created: Option<Stat>,
    pub(super) uuid: String,
    /// The entry of its UUID, and what is found there; `None` where no znode can be named by that.
    pub(crate) entry: Option<(Path, Found)>,
    pub(super) is_paused: bool,
    /// Whether a process with daemons of ours says that it gave it back.
    pub(super) is_given_back: bool,
}

impl Queue {
    /// Looks at a batch and at the entry of the UUID that its submission carries.
    pub(crate) async fn inspect_batch(&self, id: BatchId) -> Result<BatchInspection, Error> {
        let paused = Path::QueueLock(crate::path::QueueName::Ingest);
        let mut reads = Batch::reads(id);
        reads.extend([Path::Batch(id), paused].map(Read::Data));
        let mut found = self.read(&reads).await?.into_iter();
        let batch = Batch::from_found(id, found.by_ref().take(Batch::READS).collect::<Vec<_>>());
        let batch = batch.ok_or(Error::Missing(Path::Batch(id)))?;
        let created = found.next().and_then(|found| found.stat().copied());
        let is_paused = found.next().is_some_and(|found| found.exists());
        let uuid = batch.submitted().value.uuid.into_owned();
        let entry = match Some(Path::BatchUuid(uuid.as_str().into())).filter(Path::is_nameable) {
            Some(path) => Some((path.clone(), self.read_data(path).await?)),
            None => None,
        };
        let is_given_back = self.is_given_back(id).await?;
        Ok(BatchInspection { batch, created, uuid, entry, is_paused, is_given_back })
    }

    /// Whether a process with daemons of ours says that it gave a batch back, to create its jobs later.
    async fn is_given_back(&self, id: BatchId) -> Result<bool, Error> {
        let reads = [Read::Children(Path::daemons()), Read::Data(Path::expansion(id))];
        let [processes, expansion] = self.read_each(reads).await?;
        if expansion.data().is_none() {
            return Ok(false);
        }
        let names = processes.children();
        let paths = names.iter().map(|name| Path::daemons().child(name));
        let reads: Vec<_> = paths.filter(|path| path.own_node().is_some()).map(Read::Data).collect();
        let found = self.read(&reads).await?;
        let mut notes = found.into_iter().filter_map(|found| DaemonNote::decode(&found.data()?.0));
        Ok(notes.any(|note| note.may_have_given_back(id)))
    }
}

impl BatchInspection {
    pub(crate) fn facts(&self) -> BatchFacts<'_> {
        let batch = &self.batch;
        let status = batch.status();
        let present = BatchNode::ALL.iter().copied().filter(|node| batch.has(*node));
        let malformed = BatchNode::ALL.iter().copied().filter(|node| match node {
            BatchNode::Submission => batch.check_submission().is_err(),
            BatchNode::Status => batch.has(*node) && status.malformed.is_some(),
            BatchNode::StatusReport | BatchNode::Lock | BatchNode::States => false,
        });
        let leads_here = |found: &Found| match found {
            Found::Data(data, _) => record::bid(data).is_ok_and(|bid| bid == batch.id),
            Found::Nothing | Found::Children(_) => false,
        };
        BatchFacts {
            id: batch.id,
            present: set(present.map(|node| node as u8).chain([NodeSet::OWN])),
            malformed: set(malformed.map(|node| node as u8)),
            denied: NodeSet::default(),
            state: batch.state(),
            is_canonical: status.value.status.is_canonical(),
            entered_ms: batch.entered().map_or(i64::MAX, Timestamp::as_millisecond),
            created_ms: self.created.map_or(i64::MAX, |stat| stat.ctime),
            references: batch.references,
            // A reference is read by its name, and its children are never listed.
            below_reference: None,
            uuid: &self.uuid,
            is_found_by_uuid: self.entry.as_ref().map(|(_, found)| leads_here(found)),
            is_paused: self.is_paused,
            lock: batch.lock().as_ref().map(lock_facts),
            is_withdrawn: WithdrawnNote::of_batch(batch.state(), &batch.message()).is_some(),
            is_given_back: self.is_given_back,
        }
    }
}

impl Queue {
    /// Reads an access request, and returns when it was created, too.
    pub(crate) async fn inspect_request(&self, queue: AccessQueue, id: RequestId) -> Result<(Request, i64), Error> {
        let item = Path::Request(queue, id);
        let mut reads = Request::reads(queue, id).to_vec();
        reads.push(Read::Data(item.clone()));
        let mut found = self.read(&reads).await?;
        let created_ms = found.pop().and_then(|found| found.stat().map(|stat| stat.ctime));
        let request = Request::from_found(queue, id, found).ok_or(Error::Missing(item))?;
        Ok((request, created_ms.unwrap_or(i64::MAX)))
    }
}

/// The facts about an access request.
pub(crate) fn request_facts(request: &Request, created_ms: i64) -> RequestFacts {
    let status = request.status();
    let has = |node: RequestNode| match node {
        RequestNode::Token => request.token.is_some(),
        RequestNode::Status => request.version().is_some(),
        RequestNode::Lock => request.lock().is_some(),
    };
    let present = RequestNode::ALL.iter().copied().filter(|node| has(*node));
    let malformed = RequestNode::ALL.iter().copied().filter(|node| match node {
        RequestNode::Token => request.check_token().is_err(),
        RequestNode::Status => has(*node) && status.malformed.is_some(),
        RequestNode::Lock => false,
    });
    RequestFacts {
        queue: request.queue,
        id: request.id,
        present: set(present.map(|node| node as u8).chain([NodeSet::OWN])),
        malformed: set(malformed.map(|node| node as u8)),
        denied: NodeSet::default(),
        state: request.state(),
        is_canonical: status.value.status.is_canonical(),
        entered_ms: request.entered().map_or(i64::MAX, Timestamp::as_millisecond),
        created_ms,
        lock: request.lock().as_ref().map(lock_facts),
    }
}

/// The facts about a lock.
pub(crate) fn lock_facts(lock: &Lock) -> LockFacts {
    LockFacts { created_ms: lock.since.as_millisecond(), is_ephemeral: lock.session.is_some() }
}

fn set(nodes: impl Iterator<Item = u8>) -> NodeSet {
    NodeSet::from_bits(nodes.fold(0, |bits, node| bits | 1 << node))
}

#[cfg(test)]
mod tests;

//! Making batches, jobs and access requests, each with all its children in one `multi`.
//!
//! An item that exists for an instant without its children makes a Java daemon throw and leak a lock. ZooKeeper's own
//! sequential creation would give a name only after the fact, so the name is foretold: `(cversion + numChildren) / 2`
//! of the parent is the next number, since `cversion` counts creations and deletions of children. The guess may be
//! behind when another creates meanwhile, never ahead, and is then refused and made again.

use jiff::Timestamp;
use zookeeper_client::Stat;

use super::batch::LockedBatch;
use super::error::{ConflictKind, Error};
use super::handle::{Queue, Read};
use super::id::{BatchId, JobId, Priority, RequestId};
use super::job::JobValue;
use super::path::{AccessQueue, BatchNode, JobNode, Path, RequestNode};
use super::record::{self, ItemStatus, Malformed, Submission};
use super::state::{AccessState, BatchState, JobOutcome, JobState};
use super::transaction::{CommitError, REQUEST_LIMIT_BYTES, Transaction};

/// How often a name is guessed. Each failure means that another's creation went through, so this is only reached
/// behind very many of them.
const GUESSES: usize = 100;

/// A job to be made.
#[derive(Clone, Debug, Default)]
pub struct NewJob {
    /// Its parameters, a JSON object, stored as it stands.
    pub configuration: Vec<u8>,
    /// Its priority.
    pub priority: Priority,
    /// What else is known from the start: identifiers, metadata, space.
    pub values: Vec<JobValue>,
}

impl NewJob {
    /// A job of default priority with these parameters.
    #[must_use]
    pub fn new(configuration: impl Into<Vec<u8>>) -> Self {
        Self { configuration: configuration.into(), priority: Priority::default(), values: Vec::new() }
    }

    /// With another priority.
    #[must_use]
    pub fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// With one more value.
    #[must_use]
    pub fn with(mut self, value: JobValue) -> Self {
        self.values.push(value);
        self
    }

    /// Adds the creation of all its znodes but its queue entry.
    fn add(&self, transaction: &mut Transaction, batch: BatchId, id: JobId, now: Timestamp) -> Result<(), Error> {
        let decode = |node, malformed| Error::Decode { path: Path::JobNode(id, node), malformed };
        let nodes = super::job::values_of_new(id, &self.values)?;
        record::object_form(&self.configuration).map_err(|malformed| decode(JobNode::Configuration, malformed))?;
        let mut node = |node, data: Vec<u8>| {
            transaction.create(Path::JobNode(id, node), data);
        };
        node(JobNode::Bid, batch.to_string().into_bytes());
        node(JobNode::Configuration, self.configuration.clone());
        node(JobNode::Status, record::new_status(now));
        node(JobNode::Priority, self.priority.to_string().into_bytes());
        for (name, data) in nodes {
            node(name, data);
        }
        transaction.create(Path::Reference(batch, JobOutcome::Processing, id), Vec::new());
        Ok(())
    }

    /// Adds the creation of its queue entry.
    pub(crate) fn enqueue(&self, transaction: &mut Transaction, id: JobId) {
        transaction.create(Path::entry(JobState::Pending, self.priority, id), Vec::new());
    }

    /// About how many bytes its znodes take in a request; besides its values a job takes some 600 bytes of paths.
    pub(crate) fn size_bytes(&self, queue: &Queue) -> usize {
        let values = self.values.iter().filter_map(|value| value.data(&[]).ok()).map(|data| data.len());
        self.configuration.len() + values.sum::<usize>() + 1_000 + 12 * queue.operation_overhead()
    }
}

impl Queue {
    /// Makes a batch in state Pending, and the entry under which its submission's UUID finds it.
    ///
    /// `submission` is a JSON object, stored as it stands.
    ///
    /// # Errors
    /// [`Error::Decode`] for a submission that is no JSON object or has no `batchID`, [`Error::Invalid`] for one that
    /// no znode can be named by, [`ConflictKind::Exists`] where that UUID has a batch already; else as
    /// [`Queue::commit`].
    pub async fn create_batch(&self, submission: &[u8], now: Timestamp) -> Result<BatchId, Error> {
        self.create_batch_with(submission, now, |_| {}).await
    }

    /// Makes a further batch of what was submitted with one that we hold, in the same way, and only while we hold that.
    ///
    /// # Errors
    /// As [`Queue::create_batch`], and [`Error::Conflict`] where our lock is gone.
    pub async fn create_batch_beside(
        &self,
        first: &LockedBatch,
        submission: &[u8],
        now: Timestamp,
    ) -> Result<BatchId, Error> {
        self.create_batch_with(submission, now, |transaction| first.lock.hold(transaction)).await
    }

    async fn create_batch_with(
        &self,
        submission: &[u8],
        now: Timestamp,
        complete: impl Fn(&mut Transaction),
    ) -> Result<BatchId, Error> {
        // There is no batch yet that the error could name.
        let decode = |malformed| Error::Decode { path: Path::Batches, malformed };
        let decoded = Submission::decode(submission);
        record::object_form(submission).map_err(decode)?;
        let uuid = decoded.value.uuid.as_ref();
        if uuid.is_empty() {
            return Err(decode(decoded.malformed.unwrap_or(Malformed::Missing("batchID"))));
        }
        let entry = Path::BatchUuid(uuid.into());
        if Path::parse(&entry.to_string()) != entry {
            return Err(Error::Invalid { path: Path::BatchUuids, reason: "no znode can have this UUID's name".into() });
        }
        let status = record::item_status(&[], BatchState::Pending, "", now);
        let (number, ()) = self
            .create_numbered(&Path::Batches, Vec::new(), |number, _| {
                let bid = BatchId::new(number);
                let mut transaction = Transaction::new();
                transaction.create(Path::Batch(bid), Vec::new());
                transaction.create(Path::BatchNode(bid, BatchNode::Submission), submission);
                transaction.create(Path::BatchNode(bid, BatchNode::Status), status.clone());
                transaction.create(entry.clone(), bid.to_string());
                complete(&mut transaction);
                Ok((transaction, ()))
            })
            .await?;
        Ok(BatchId::new(number))
    }

    /// Makes a job in state Pending, with its queue entry and its batch's reference.
    ///
    /// # Errors
    /// As [`Queue::create_jobs`].
    pub async fn create_job(&self, batch: BatchId, job: &NewJob, now: Timestamp) -> Result<JobId, Error> {
        let ids = self.create_jobs(batch, std::slice::from_ref(job), now).await?;
        Ok(ids[0])
    }

    /// Makes many jobs of a batch, hundreds in one `multi`, and gives their ids in the same order.
    ///
    /// The batch must have been acquired: without its `states` no daemon can load its jobs. It must be in Processing or
    /// Reporting, since the daemons leave the former at once: in any other state its report is done or not due.
    ///
    /// # Errors
    /// [`Error::Transition`] for a batch in another state, [`Error::Missing`] where it or its `states` is missing,
    /// [`Error::Decode`] for a configuration that is no JSON object; else as [`Queue::commit`]. The jobs of earlier
    /// transactions exist then: each is whole, and the batch's references show which.
    pub async fn create_jobs(&self, batch: BatchId, jobs: &[NewJob], now: Timestamp) -> Result<Vec<JobId>, Error> {
        let mut ids = Vec::with_capacity(jobs.len());
        let mut rest = jobs;
        while !rest.is_empty() {
            let (now_made, later) = rest.split_at(self.first_jobs(rest));
            let enqueue = |transaction: &mut Transaction, ids: &[JobId]| {
                now_made.iter().zip(ids).for_each(|(job, id)| job.enqueue(transaction, *id));
            };
            ids.extend(self.create_some_jobs(batch, now_made, None, now, enqueue).await?);
            rest = later;
        }
        Ok(ids)
    }

    /// How many of the first jobs of a list go into one transaction; one at least.
    pub(crate) fn first_jobs(&self, jobs: &[NewJob]) -> usize {
        let mut bytes = 0;
        let fits = |job: &&NewJob| {
            bytes += job.size_bytes(self);
            bytes < REQUEST_LIMIT_BYTES
        };
        jobs.iter().take(self.jobs_per_transaction()).take_while(fits).count().max(1)
    }

    /// Checks that the folders that jobs come into have fewer children than so many.
    ///
    /// # Errors
    /// [`Error::Full`] where one has not; [`Error::Read`] where they cannot be read.
    pub async fn check_room(&self, most_children: i32) -> Result<(), Error> {
        let folders = [Path::Jobs, Path::StateFolder(JobState::Pending.into())];
        let found = self.read(&folders.clone().map(Read::Data)).await?;
        folders.iter().zip(&found).try_for_each(|(folder, found)| has_room(folder, found.stat(), most_children))
    }

    /// Makes jobs in one `multi`; their queue entries are among what `complete` adds, by their ids. Refused where one
    /// of the folders that they come into has `most_children` already.
    pub(crate) async fn create_some_jobs(
        &self,
        batch: BatchId,
        jobs: &[NewJob],
        most_children: Option<i32>,
        now: Timestamp,
        complete: impl Fn(&mut Transaction, &[JobId]),
    ) -> Result<Vec<JobId>, Error> {
        let status = Path::BatchNode(batch, BatchNode::Status);
        let folders = most_children.map(|_| [Path::Jobs, Path::StateFolder(JobState::Pending.into())]);
        let read = std::iter::once(status.clone()).chain(folders.iter().flatten().cloned());
        let reads = read.map(Read::Data).collect();
        let (_, ids) = self
            .create_numbered(&Path::Jobs, reads, |first, found| {
                for (folder, found) in folders.iter().flatten().zip(found.iter().skip(1)) {
                    let stat = found.as_ref().map(|(_, stat)| stat);
                    has_room(folder, stat, most_children.unwrap_or(i32::MAX))?;
                }
                let Some((data, stat)) = found.first().cloned().flatten() else {
                    return Err(Error::Missing(status.clone()));
                };
                let decoded = ItemStatus::<BatchState>::decode(&data);
                let state = decoded.value.status.state;
                if !matches!(state, Some(BatchState::Processing | BatchState::Reporting)) {
                    let from = decoded.value.status.text.into_owned();
                    let to = "having more jobs".to_owned();
                    return Err(Error::Transition { item: Path::Batch(batch), from, to, operator_may: false });
                }
                let mut transaction = Transaction::new();
                transaction.check(status.clone(), stat.version).check_exists(Path::BatchNode(batch, BatchNode::States));
                let ids: Vec<_> = (first..).map(JobId::new).take(jobs.len()).collect();
                for (job, id) in jobs.iter().zip(&ids) {
                    transaction.create(Path::Job(*id), Vec::new());
                    job.add(&mut transaction, batch, *id, now)?;
                }
                complete(&mut transaction, &ids);
                Ok((transaction, ids))
            })
            .await?;
        Ok(ids)
    }

    /// Makes an access request in state Pending.
    ///
    /// `token` is a JSON object, stored as it stands.
    ///
    /// # Errors
    /// [`Error::Decode`] for a token that is no JSON object; else as [`Queue::commit`].
    pub async fn create_request(&self, queue: AccessQueue, token: &[u8], now: Timestamp) -> Result<RequestId, Error> {
        let parent = Path::AccessQueue(queue);
        let decode = |malformed| Error::Decode { path: parent.clone(), malformed };
        record::object_form(token).map_err(decode)?;
        let status = record::item_status(&[], AccessState::Pending, "", now);
        let (number, ()) = self
            .create_numbered(&parent, Vec::new(), |number, _| {
                let qid = RequestId::new(number);
                let mut transaction = Transaction::new();
                transaction.create(Path::Request(queue, qid), Vec::new());
                transaction.create(Path::RequestNode(queue, qid, RequestNode::Token), token);
                transaction.create(Path::RequestNode(queue, qid, RequestNode::Status), status.clone());
                Ok((transaction, ()))
            })
            .await?;
        Ok(RequestId::new(number))
    }

    /// Guesses the next number below a parent and commits what `build` makes of it and of `reads`, until no other had
    /// the number first.
    async fn create_numbered<T>(
        &self,
        parent: &Path,
        reads: Vec<Read>,
        build: impl Fn(u32, &[Option<(Vec<u8>, Stat)>]) -> Result<(Transaction, T), Error>,
    ) -> Result<(u32, T), Error> {
        let mut all = reads;
        all.push(Read::Data(parent.clone()));
        for _ in 0..GUESSES {
            let mut found: Vec<_> = self.read(&all).await?.into_iter().map(super::handle::Found::data).collect();
            let number = next_number(found.pop().flatten().map(|(_, stat)| stat).as_ref());
            let number = number.ok_or_else(|| {
                let reason = "its ten-digit sequence numbers are exhausted".to_owned();
                Error::Invalid { path: parent.clone(), reason }
            })?;
            let (transaction, made) = build(number, &found)?;
            let Err(error) = self.try_commit(&transaction).await else { return Ok((number, made)) };
            match &error {
                CommitError::Refused { operation, reason: zookeeper_client::Error::NodeExists, .. }
                    if operation.path().parent().as_ref() == Some(parent) => {}
                CommitError::Refused { .. } | CommitError::NotDone { .. } | CommitError::Unknown { .. } => {
                    return Err(self.explain(error).await);
                }
            }
        }
        Err(Error::conflict(parent.clone(), ConflictKind::Moved))
    }
}

/// Refuses a folder that has so many children already.
fn has_room(folder: &Path, found: Option<&Stat>, most_children: i32) -> Result<(), Error> {
    let children = found.map_or(0, |stat| stat.num_children);
    if children < most_children { Ok(()) } else { Err(Error::Full { folder: folder.clone(), children }) }
}

/// The number that the next sequential creation below a parent would get; `None` where there are no more. A parent that
/// is missing will be made, and starts at 0.
pub(super) fn next_number(parent: Option<&Stat>) -> Option<u32> {
    let Some(stat) = parent else { return Some(0) };
    let number = i64::midpoint(stat.cversion.into(), stat.num_children.into());
    // The server's counter is an int, and negative past its end.
    u32::try_from(number).ok().filter(|number| i32::try_from(*number).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stat;

    #[test]
    fn the_next_number_is_that_of_creations_seen() {
        let next = |cversion, num_children| next_number(Some(&Stat { cversion, num_children, ..stat() }));
        assert_eq!([next(0, 0), next(3, 3), next(5, 1)], [Some(0), Some(3), Some(3)]);
        assert_eq!(next(i32::MAX, i32::MAX), Some(0x7fff_ffff));
        assert_eq!([next(i32::MIN, 0), next(-1, -1)], [None; 2]);
        assert_eq!(next_number(None), Some(0));
    }

    #[test]
    fn a_folder_has_room_below_its_limit() {
        let room = |num_children, most| has_room(&Path::Jobs, Some(&Stat { num_children, ..stat() }), most);
        assert_eq!([room(9, 10), room(0, 1), has_room(&Path::Jobs, None, 1)], [Ok(()), Ok(()), Ok(())]);
        for children in [10, 11] {
            assert_eq!(room(children, 10), Err(Error::Full { folder: Path::Jobs, children }));
        }
    }

    #[test]
    fn a_new_job_is_made_with_all_that_the_daemons_load_and_what_leads_to_it() {
        let made = |job: &NewJob| {
            let mut transaction = Transaction::new();
            job.add(&mut transaction, BatchId::new(7), JobId::new(1), Timestamp::UNIX_EPOCH)?;
            job.enqueue(&mut transaction, JobId::new(1));
            Ok::<_, Error>(transaction.operations().iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let job = NewJob::new("{}").with_priority(Priority::MAX).with(JobValue::SpaceNeeded(Some(70)));
        let status = String::from_utf8(record::new_status(Timestamp::UNIX_EPOCH)).unwrap();
        let path = "create /jobs/jid0000000001";
        let expected = [
            format!("{path}/bid = bid0000000007"),
            format!("{path}/configuration = {{}}"),
            format!("{path}/status = {status}"),
            format!("{path}/priority = 99"),
            format!("{path}/space_needed = 70"),
            "create /batches/bid0000000007/states/batch-processing/jid0000000001".to_owned(),
            "create /jobs/states/pending/99-jid0000000001".to_owned(),
        ];
        assert_eq!(made(&job), Ok(expected.to_vec()));
        let unknown = made(&NewJob::new("{}")).unwrap();
        assert_eq!(unknown[3..5], [format!("{path}/priority = 5"), format!("{path}/space_needed = 0")]);
        assert_eq!(
            made(&NewJob::new("[]")).unwrap_err().to_string(),
            "/jobs/jid0000000001/configuration is JSON, but not an object"
        );
    }
}

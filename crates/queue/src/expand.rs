//! Creating the jobs of a batch that has too many of them for one transaction.
//!
//! How far it is stands in `/queuekeeper/expansions/BID`, which is made with the acquisition of the batch, advanced in
//! each transaction that creates jobs, and removed in the last one: whichever daemon is stopped in between, the next
//! one goes on with the next row. The job of the last row is created first and gets its queue entry last, so that no
//! report daemon ever finds `batch-processing` empty before all jobs exist.
//!
//! In a queue that was loaded from a dump the note may be behind the jobs: it was read before them. Rows whose jobs
//! exist are left out by [`Queue::behind_existing`].

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::batch::LockedBatch;
use crate::create::NewJob;
use crate::error::Error;
use crate::handle::{Found, Queue, Read};
use crate::id::{BatchId, JobId};
use crate::path::{JobNode, Path};
use crate::record::ExpansionNote;
use crate::state::{JobOutcome, JobState};
use crate::transaction::Transaction;

/// The next rows of a manifest, as jobs.
#[derive(Clone, Copy, Debug)]
pub struct NextRows<'a> {
    /// The digest of the manifest.
    pub digest: &'a str,
    /// How many rows the batch has in all.
    pub all: u64,
    /// The jobs of the rows from the next one on, without that of the last row of all.
    pub jobs: &'a [NewJob],
    /// The job of the last row of all.
    pub last: &'a NewJob,
    /// Whether no other rows are between these and the last one.
    pub has_end: bool,
    /// How many children `/jobs` and `pending` may have before no more jobs are created; `None` for any number.
    pub most_children: Option<i32>,
}

/// How far the jobs of a batch that we hold are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// What the znode says.
    pub note: ExpansionNote,
    /// Its version.
    pub(crate) version: i32,
    /// Whether the job of the last row has, or had, its queue entry already.
    is_last_queued: bool,
}

impl LockedBatch {
    /// The expansion that was made with the acquisition of the batch, as it was then; `None` where none was made.
    #[must_use]
    pub fn new_expansion(&self) -> Option<Expansion> {
        let note = ExpansionNote::default();
        self.is_expansion_new.then_some(Expansion { note, version: 0, is_last_queued: false })
    }
}

impl Queue {
    /// How far the jobs of a batch are created; `None` where none are being created. Of one that was acquired just now
    /// [`LockedBatch::new_expansion`] says it without a look.
    ///
    /// # Errors
    /// When it cannot be read, and [`Error::Invalid`] for a znode in no form of ours.
    pub async fn expansion(&self, batch: &LockedBatch) -> Result<Option<Expansion>, Error> {
        let path = Path::expansion(batch.batch.id);
        let Some((data, stat)) = self.read_data(path.clone()).await?.data() else { return Ok(None) };
        let note = ExpansionNote::decode(&data);
        let reason = || Error::Invalid { path, reason: "it does not say how far the jobs are created".to_owned() };
        Ok(Some(Expansion { note: note.ok_or_else(reason)?, version: stat.version, is_last_queued: false }))
    }

    /// The configurations of a batch's jobs, by what the jobs themselves say of their batch. It reads of which batch
    /// each job is.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn configurations(&self, batch: BatchId) -> Result<BTreeMap<JobId, Vec<u8>>, Error> {
        let ids = self.jobs_by_batch().await?.remove(&batch).unwrap_or_default();
        let reads: Vec<_> = ids.iter().map(|id| Read::Data(Path::JobNode(*id, JobNode::Configuration))).collect();
        let mut configurations = BTreeMap::new();
        let take = |at: usize, found: Found| {
            configurations.extend(found.data().map(|(data, _)| (ids[at], data)));
        };
        self.read_each_alone(&reads, take).await?;
        Ok(configurations)
    }

    /// An expansion that is taken up, behind the jobs that were found: those of the rows before `next`, and `last`,
    /// that of the last row.
    ///
    /// # Errors
    /// When the job of the last row cannot be read.
    pub async fn behind_existing(
        &self,
        expansion: Expansion,
        next: u64,
        last: Option<JobId>,
    ) -> Result<Expansion, Error> {
        let Expansion { mut note, version, .. } = expansion;
        note.next = note.next.max(next);
        note.last = note.last.or(last);
        let is_last_queued = match note.last {
            None => false,
            Some(last) => !self.has_no_entry_yet(last).await?,
        };
        Ok(Expansion { note, version, is_last_queued })
    }

    /// Whether a job is Pending, and without its queue entry.
    async fn has_no_entry_yet(&self, id: JobId) -> Result<bool, Error> {
        let job = match self.load_job(id).await {
            Ok(job) => job,
            Err(Error::Missing(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        let Ok(priority) = job.priority() else { return Ok(false) };
        let [entry] = self.read_each([Read::Existence(Path::entry(JobState::Pending, priority, id))]).await?;
        Ok(job.state() == Some(JobState::Pending) && !entry.exists())
    }

    /// Creates the jobs of the next rows, as many as fit into one `multi`, and advances the expansion; the answer is
    /// `None` when all jobs exist.
    ///
    /// # Errors
    /// [`Error::Conflict`] where another advanced it, or our lock is gone, [`Error::Full`] where a folder has as many
    /// children as it may; else as [`Queue::create_jobs`]. After
    /// [`Error::Unknown`] read the expansion again.
    pub async fn expand(
        &self,
        batch: &LockedBatch,
        expansion: &Expansion,
        rows: NextRows<'_>,
        now: Timestamp,
    ) -> Result<Option<Expansion>, Error> {
        let path = Path::expansion(batch.batch.id);
        let Expansion { note, version, is_last_queued } = expansion;
        let NextRows { digest, all, jobs: rows, last, has_end, most_children } = rows;
        if !note.digest.is_empty() && note.digest != digest {
            let reason = "the manifest differs from the one that the existing jobs were created from".to_owned();
            return Err(Error::Invalid { path, reason });
        }
        // The last one comes with the first ones, and takes its part of the request.
        let is_first = note.last.is_none();
        let mut jobs: Vec<NewJob> = is_first.then(|| last.clone()).into_iter().chain(rows.iter().cloned()).collect();
        jobs.truncate(self.first_jobs(&jobs));
        let made = jobs.len() - usize::from(is_first);
        let has_all = has_end && made == rows.len();
        let next = note.next + made as u64;
        let complete = |transaction: &mut Transaction, ids: &[JobId]| {
            if is_first {
                transaction.expect_missing(Path::BatchOutcome(batch.batch.id, JobOutcome::Processing));
                // Else the first job of each batch that ends would find it missing.
                if batch.batch.references(JobOutcome::Completed).is_none() {
                    transaction.create(Path::BatchOutcome(batch.batch.id, JobOutcome::Completed), Vec::new());
                }
            }
            batch.lock.hold(transaction);
            let last_id = note.last.or(ids.first().copied().filter(|_| is_first));
            let queued = jobs.iter().zip(ids).skip(usize::from(is_first));
            queued.for_each(|(job, id)| job.enqueue(transaction, *id));
            if has_all {
                if let Some(id) = last_id.filter(|_| !is_last_queued) {
                    last.enqueue(transaction, id);
                }
                transaction.delete(path.clone(), Some(*version));
            } else {
                let note = ExpansionNote { next, rows: Some(all), digest: digest.to_owned(), last: last_id };
                transaction.set(path.clone(), note.encode(), *version);
            }
        };
        let ids = self.create_some_jobs(batch.batch.id, &jobs, most_children, now, complete).await?;
        if has_all {
            return Ok(None);
        }
        let last = note.last.or(ids.first().copied());
        let note = ExpansionNote { next, rows: Some(all), digest: digest.to_owned(), last };
        Ok(Some(Expansion { note, version: version.wrapping_add(1), is_last_queued: *is_last_queued }))
    }

    /// Adds the end of an expansion whose batch fails: no daemon takes it up again, and the folder of its jobs exists,
    /// which others look for. Apart from the change of the state, either would be taken for something else after a
    /// crash: an empty folder for jobs that are all done, a batch without an expansion for one that is not ours.
    pub(crate) async fn plan_end_of_expansion(&self, id: BatchId, transaction: &mut Transaction) -> Result<(), Error> {
        let (path, processing) = (Path::expansion(id), Path::BatchOutcome(id, JobOutcome::Processing));
        let [note, folder] = self.read_each([Read::Data(path.clone()), Read::Existence(processing.clone())]).await?;
        let Some(stat) = note.stat() else { return Ok(()) };
        transaction.delete(path, Some(stat.version));
        if !folder.exists() {
            transaction.create(processing, Vec::new());
        }
        Ok(())
    }
}

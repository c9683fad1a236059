//! Withdrawing a deposit: all jobs of its batch become Deleted, and the batch with them, or none of them does.
//!
//! It is possible until the first job leaves Pending. What fits into one transaction is one. Otherwise every Pending
//! job becomes Held first, which can be taken back: should one have left Pending meanwhile, those that this withdrawal
//! holds return to Pending. Only when all are Held they become Deleted, the batch with the last of them. How far that
//! is stands in `/queuekeeper/withdrawals/BID`, made with the first transaction and removed with the last one; after a
//! stop in between, the next client goes on.
//!
//! The batch is locked meanwhile, as by a daemon: no other client creates its jobs or reports it.

use std::ops::ControlFlow;

use jiff::Timestamp;

use crate::batch::{BatchReport, BatchTarget, LockedBatch};
use crate::error::Error;
use crate::handle::Queue;
use crate::id::{BatchId, JobId};
use crate::lock::Lock;
use crate::path::{BatchNode, Path};
use crate::purge::{Census, PlannedJob};
use crate::record::{WithdrawalNote, WithdrawalPhase, WithdrawnNote};
use crate::state::{BatchState, JobOutcome};
use crate::transaction::Transaction;

mod candidates;
mod delete;
mod hold;
mod lock;

use lock::Guard;

/// How often something is planned anew because another changed a job meanwhile.
const ATTEMPTS: usize = 10;

/// Why it is not possible after so many.
const MOVING: &str = "another client is changing its jobs; try again";

/// What a withdrawal would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithdrawalPlan {
    /// The batch.
    pub batch: BatchId,
    /// The state that it is in; `None` where its status names none that is known.
    pub from: Option<BatchState>,
    /// The version of its status.
    pub version: Option<i32>,
    /// Its jobs that would be deleted.
    pub jobs: Vec<PlannedJob>,
    /// Why it is not possible, one sentence; `None` where it is.
    pub hindrance: Option<String>,
}

/// What became of a withdrawal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WithdrawalOutcome {
    /// The batch is Deleted, and so are all its jobs.
    Withdrawn {
        /// How many there are.
        jobs: usize,
    },
    /// It was not possible, for this reason, one sentence. Everything is as it was.
    NotWithdrawn(String),
    /// Likewise, after some of its jobs had been held: these are back in Pending.
    TakenBack(String),
    /// Another tool released a job when others were deleted already: that one goes on, and all others are deleted.
    /// Which, in one sentence.
    InPart(String),
    /// It was interrupted, and is to be taken up.
    Interrupted,
}

/// How far a withdrawal of several transactions is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithdrawalProgress {
    /// What is being done.
    pub phase: WithdrawalPhase,
    /// With how many jobs.
    pub jobs: usize,
    /// Of how many.
    pub of_jobs: usize,
}

/// Called after each transaction but the last; returns whether to continue.
type Report<'a> = dyn FnMut(WithdrawalProgress) -> ControlFlow<()> + Send + Sync + 'a;

/// A withdrawal under the lock of its batch.
struct Withdrawal<'a> {
    queue: &'a Queue,
    target: BatchTarget,
    lock: Lock,
    now: Timestamp,
    report: &'a mut Report<'a>,
}

/// The note of the withdrawal.
struct Mark {
    note: WithdrawalNote,
    /// The version of its znode; `None` before that is made.
    version: Option<i32>,
    /// The version of the expansion that ends when it is made.
    expansion: Option<i32>,
}

impl Queue {
    /// Says what a withdrawal would do, and writes nothing.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a batch that is locked or was changed since it was seen, [`Error::Missing`] where there
    /// is none, [`Error::Read`].
    pub async fn plan_withdrawal(&self, target: impl Into<BatchTarget>) -> Result<WithdrawalPlan, Error> {
        let target = target.into();
        let batch = self.load_batch(target.id).await?;
        target.check(&batch)?;
        let plan = |jobs, hindrance| WithdrawalPlan {
            batch: batch.id,
            from: batch.state(),
            version: batch.version(),
            jobs,
            hindrance,
        };
        if let Some(why) = candidates::hindrance_of_batch(&batch) {
            return Ok(plan(Vec::new(), Some(why)));
        }
        let report = self.batch_report(batch.id).await?;
        let found = self.candidates(batch.id, &self.jobs_to_withdraw(&target, &report).await?).await?;
        Ok(plan(found.open().collect(), found.hindrance))
    }

    /// Withdraws a batch: it becomes Deleted with all its jobs, or everything stays as it is. One that is being
    /// withdrawn already is taken up, and one that was withdrawn is reported as that.
    ///
    /// `report` is called after each transaction but the last, and returns whether to continue; what is interrupted so
    /// is to be taken up by the next call, here or with [`Queue::finish_withdrawal`]. After an error, or where the
    /// future is dropped, the next call of this session goes on, and when the session is over any other.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a batch that another has locked; else as [`Queue::commit`].
    pub async fn withdraw(
        &self,
        target: impl Into<BatchTarget>,
        by: WithdrawnNote<'_>,
        now: Timestamp,
        mut report: impl FnMut(WithdrawalProgress) -> ControlFlow<()> + Send + Sync,
    ) -> Result<WithdrawalOutcome, Error> {
        let target = target.into();
        let locked = if let Some(locked) = self.left_lock(target.id).await? {
            locked
        } else {
            let batch = self.load_batch(target.id).await?;
            if WithdrawnNote::of_batch(batch.state(), &batch.message()).is_some() {
                let jobs = batch.references(JobOutcome::Deleted).unwrap_or(0) as usize;
                return Ok(WithdrawalOutcome::Withdrawn { jobs });
            }
            target.check(&batch)?;
            if let Some(why) = candidates::hindrance_of_batch(&batch) {
                return Ok(WithdrawalOutcome::NotWithdrawn(why));
            }
            self.lock_to_withdraw(batch).await?
        };
        let mut guard = Guard { queue: self, locked: Some(locked.clone()) };
        let target = BatchTarget { jobs: target.jobs, ..BatchTarget::from(&locked) };
        let outcome = self.withdraw_under(&locked, target, Some(by), now, &mut report).await;
        match &outcome {
            Err(error) if error.is_connection() => {}
            Err(_) => {
                self.unlock_batch(&locked).await?;
                guard.locked = None;
            }
            Ok(_) => guard.locked = None,
        }
        outcome
    }

    /// Goes on with the withdrawal of a batch that we hold, from a poll for what is [`Due::Withdrawal`], and releases
    /// it.
    ///
    /// [`Due::Withdrawal`]: crate::Due::Withdrawal
    ///
    /// # Errors
    /// As [`Queue::withdraw`]. The lock is still held then.
    pub async fn finish_withdrawal(
        &self,
        locked: &LockedBatch,
        now: Timestamp,
        mut report: impl FnMut(WithdrawalProgress) -> ControlFlow<()> + Send + Sync,
    ) -> Result<WithdrawalOutcome, Error> {
        self.withdraw_under(locked, BatchTarget::from(locked), None, now, &mut report).await
    }

    async fn withdraw_under<'a>(
        &'a self,
        locked: &LockedBatch,
        target: BatchTarget,
        by: Option<WithdrawnNote<'_>>,
        now: Timestamp,
        report: &'a mut Report<'a>,
    ) -> Result<WithdrawalOutcome, Error> {
        let mut withdrawal = Withdrawal { queue: self, target, lock: locked.lock.clone(), now, report };
        let outcome = match (withdrawal.find_mark().await?, by) {
            (Some(mark), _) => withdrawal.go_on(mark).await?,
            (None, Some(by)) => withdrawal.begin(locked, by).await?,
            // Another came to its end meanwhile.
            (None, None) => WithdrawalOutcome::Interrupted,
        };
        // With the end of a withdrawal its lock ends, in the same transaction.
        if !matches!(outcome, WithdrawalOutcome::Withdrawn { .. } | WithdrawalOutcome::InPart(_)) {
            self.unlock_batch(locked).await?;
        }
        Ok(outcome)
    }

    /// The jobs of a batch, by its references and by what the jobs themselves say.
    async fn jobs_to_withdraw(&self, target: &BatchTarget, report: &BatchReport) -> Result<Vec<JobId>, Error> {
        let mut ids = self.jobs_of(target, &mut Census::default()).await?;
        ids.extend(JobOutcome::ALL.iter().flat_map(|outcome| report.of(*outcome)));
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }
}

impl Withdrawal<'_> {
    fn id(&self) -> BatchId {
        self.target.id
    }

    /// Does all of it at once, or begins to hold the jobs.
    async fn begin(&mut self, locked: &LockedBatch, by: WithdrawnNote<'_>) -> Result<WithdrawalOutcome, Error> {
        for _ in 0..ATTEMPTS {
            let batch = self.queue.load_batch(self.id()).await?;
            self.target.check(&batch)?;
            let expansion = self.queue.expansion(locked).await?;
            let report = self.queue.batch_report(batch.id).await?;
            let ids = self.queue.jobs_to_withdraw(&self.target, &report).await?;
            let found = self.queue.candidates(batch.id, &ids).await?;
            if let Some(why) = found.hindrance {
                return Ok(WithdrawalOutcome::NotWithdrawn(why));
            }
            let version = expansion.as_ref().map(|expansion| expansion.version);
            let note = WithdrawalNote::new(by, self.now, expansion.map(|expansion| expansion.note));
            let mut mark = Mark { note, version: None, expansion: version };
            if found.open().count() <= self.queue.jobs_per_transaction() {
                match self.delete_at_once(&batch, &report, &ids, &mark).await {
                    Ok(true) => return Ok(WithdrawalOutcome::Withdrawn { jobs: ids.len() }),
                    Ok(false) => {}
                    Err(error) if is_about_jobs(&error) => continue,
                    Err(error) => return Err(error),
                }
            }
            return match self.hold(&mut mark).await? {
                // Nothing is written yet.
                hold::Held::Hindered(why) if mark.version.is_none() => Ok(WithdrawalOutcome::NotWithdrawn(why)),
                held => self.after_hold(mark, held).await,
            };
        }
        Ok(WithdrawalOutcome::NotWithdrawn(MOVING.to_owned()))
    }

    /// Goes on where the note says.
    async fn go_on(&mut self, mut mark: Mark) -> Result<WithdrawalOutcome, Error> {
        match mark.note.phase {
            WithdrawalPhase::Holding => {
                let held = self.hold(&mut mark).await?;
                self.after_hold(mark, held).await
            }
            WithdrawalPhase::Returning => self.give_back(&mark).await,
            WithdrawalPhase::Deleting => self.delete(&mark).await,
        }
    }

    async fn after_hold(&mut self, mut mark: Mark, held: hold::Held) -> Result<WithdrawalOutcome, Error> {
        match held {
            hold::Held::Interrupted => Ok(WithdrawalOutcome::Interrupted),
            hold::Held::All => {
                mark.note.phase = WithdrawalPhase::Deleting;
                if self.advance(&mut mark).await?.is_break() {
                    return Ok(WithdrawalOutcome::Interrupted);
                }
                self.delete(&mark).await
            }
            hold::Held::Hindered(why) => {
                (mark.note.phase, mark.note.hindrance) = (WithdrawalPhase::Returning, Some(why));
                if self.advance(&mut mark).await?.is_break() {
                    return Ok(WithdrawalOutcome::Interrupted);
                }
                self.give_back(&mark).await
            }
        }
    }

    async fn find_mark(&self) -> Result<Option<Mark>, Error> {
        let path = Path::withdrawal(self.id());
        let Some((data, stat)) = self.queue.read_data(path.clone()).await?.data() else { return Ok(None) };
        let reason = || Error::Invalid { path, reason: "it does not say how far the withdrawal is".to_owned() };
        let note = WithdrawalNote::decode(&data).ok_or_else(reason)?;
        Ok(Some(Mark { note, version: Some(stat.version), expansion: None }))
    }

    /// Writes the note as it is to be now.
    async fn advance(&mut self, mark: &mut Mark) -> Result<ControlFlow<()>, Error> {
        let version = mark.version.unwrap_or_default();
        let mut transaction = Transaction::new();
        self.lock.hold(&mut transaction);
        transaction.set(Path::withdrawal(self.id()), mark.note.encode(), version);
        self.queue.commit(&transaction).await?;
        mark.version = Some(version.wrapping_add(1));
        Ok((self.report)(WithdrawalProgress { phase: mark.note.phase, jobs: 0, of_jobs: 0 }))
    }

    /// What each transaction but the last is under: our lock, the batch as it was, and the note, which the first makes.
    fn open(&self, mark: &Mark) -> Transaction {
        let mut open = Transaction::new();
        self.lock.hold(&mut open);
        if let Some(version) = self.target.version {
            open.check(Path::BatchNode(self.id(), BatchNode::Status), version);
        }
        let path = Path::withdrawal(self.id());
        match (mark.version, mark.expansion) {
            (Some(version), _) => drop(open.check(path, version)),
            (None, expansion) => {
                open.create(path, mark.note.encode());
                if let Some(version) = expansion {
                    open.delete(Path::expansion(self.id()), Some(version));
                }
            }
        }
        open
    }

    /// Ends the note and our lock.
    fn close(&self, mark: &Mark, transaction: &mut Transaction) {
        if let Some(version) = mark.version {
            transaction.delete(Path::withdrawal(self.id()), Some(version));
        }
        self.lock.release(transaction);
    }
}

/// Whether a job was changed since it was read: then it is looked at again.
fn is_about_jobs(error: &Error) -> bool {
    let is_of_job =
        |path: &Path| matches!(path, Path::Job(_) | Path::JobNode(..) | Path::Entry(..) | Path::Reference(..));
    match error {
        Error::Conflict(conflict) => is_of_job(&conflict.path),
        Error::Missing(path) => is_of_job(path),
        Error::Transition { item, .. } => is_of_job(item),
        Error::Read { .. }
        | Error::Commit { .. }
        | Error::Unknown { .. }
        | Error::Decode { .. }
        | Error::NotShown { .. }
        | Error::Full { .. }
        | Error::Invalid { .. } => false,
    }
}

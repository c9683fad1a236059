//! The next batch to be acquired, or to be reported.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{LockOutcome, SkipReason, SkippedItem, Window, was_quicker};
use crate::batch::{Batch, LockedBatch, check_status};
use crate::error::Error;
use crate::handle::{Found, Queue, Read};
use crate::id::BatchId;
use crate::item::ItemChange;
use crate::lock::{Claim, ClaimOutcome, Lock, Pause, PendingChange};
use crate::path::{self, BatchNode, LockFolder, Path};
use crate::record::{ExpansionNote, ItemStatus};
use crate::state::{Authority, BatchState, State};
use crate::transaction::Transaction;

/// What a batch can be due for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Its jobs are to be created: it has no `states`.
    Jobs,
    /// The rest of its jobs is to be created: a daemon of ours began, and its lock is gone.
    RestOfJobs,
    /// Its report: all its jobs are done.
    Report,
    /// An updated report, which an operator requested.
    UpdatedReport,
    /// The rest of its withdrawal: a client of ours began, and its lock is gone.
    Withdrawal,
}

/// One poll for batches that are due for something, oldest first.
#[derive(Debug)]
pub struct BatchPoll {
    queue: Queue,
    due: Due,
    window: Window<BatchId>,
    /// What was read of the window last, in reverse.
    read: Vec<(Batch, BatchState)>,
    /// Whether batches that nothing is due for are still to be left out.
    has_idle: bool,
    is_expanded: bool,
    held_collections: BTreeSet<String>,
    /// Batches that were set Held, since their collection is held.
    pub held: Vec<BatchId>,
    /// Batches that are not due for their jobs any more: they were acquired before, or have ended.
    pub past: Vec<BatchId>,
    /// Batches that were locked when they were read: what they are due for then is not known.
    pub locked: Vec<BatchId>,
    /// Set while the queue is paused; the poll is empty then.
    pub paused: Option<Pause>,
    /// The skipped items, with the reasons.
    pub skipped: Vec<SkippedItem>,
}

impl Queue {
    /// Looks for the next batch that is due and locks it: a poll that is used once. Each call lists and reads the
    /// batches anew, so a daemon takes one after the other from a [`Queue::poll_batches`].
    ///
    /// # Errors
    /// As [`Queue::poll_batches`] and [`BatchPoll::next`].
    pub async fn acquire_batch(&self, due: Due, now: Timestamp) -> Result<(Option<LockedBatch>, BatchPoll), Error> {
        let mut poll = self.poll_batches(due).await?;
        let batch = poll.next(now).await?;
        Ok((batch, poll))
    }

    /// Lists all batches, of which the poll hands out those that are due. While `ingest` is paused the list is empty.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn poll_batches(&self, due: Due) -> Result<BatchPoll, Error> {
        let lock = Path::QueueLock(path::QueueName::Ingest);
        let folder = match due {
            Due::Jobs | Due::Report | Due::UpdatedReport => Path::Batches,
            Due::RestOfJobs => Path::expansions(),
            Due::Withdrawal => Path::withdrawals(),
        };
        let holds = Path::LockFolder(LockFolder::Collections);
        let [names, pause, holds] =
            self.read_each([Read::Children(folder.clone()), Read::Data(lock.clone()), Read::Children(holds)]).await?;
        let held_collections = holds.children().into_iter().collect();
        let paused = pause.data().map(|(data, stat)| Pause::from_found(lock, &data, &stat));
        let names = if paused.is_some() { Vec::new() } else { names.children() };
        // Names that are not batch ids are skipped.
        let batches = names.iter().filter_map(|name| name.parse().ok()).collect();
        let has_idle = folder == Path::Batches;
        Ok(BatchPoll { has_idle, held_collections, paused, ..self.poll_batches_of(due, batches) })
    }

    /// The same of known batches, without a list of all. Neither a pause nor holds are looked at.
    #[must_use]
    pub fn poll_batches_of(&self, due: Due, mut batches: Vec<BatchId>) -> BatchPoll {
        batches.sort_unstable();
        BatchPoll {
            queue: self.clone(),
            due,
            window: Window::new(batches),
            read: Vec::new(),
            has_idle: false,
            is_expanded: false,
            held_collections: BTreeSet::new(),
            held: Vec::new(),
            past: Vec::new(),
            locked: Vec::new(),
            paused: None,
            skipped: Vec::new(),
        }
    }
}

impl BatchPoll {
    /// Has each batch whose jobs are to be created marked as one that [`Queue::expand`] creates them for, in the
    /// `multi` that acquires it: another daemon of ours goes on with it where this one is stopped. A batch of a held
    /// collection is set Held instead.
    #[must_use]
    pub fn expanded(mut self) -> Self {
        self.is_expanded = true;
        self
    }

    /// Leaves batches out of the list that were not looked at yet.
    pub fn retain(&mut self, mut is_wanted: impl FnMut(BatchId) -> bool) {
        self.window.waiting.retain(|batch| is_wanted(*batch));
    }

    /// The next batch that is due, locked; `None` at the end of the list.
    ///
    /// A batch whose jobs are to be created is in Processing then, with its `states` made. One to be reported that was
    /// left in Processing is in Reporting. A batch that an earlier call locked, by this poll or another for the same,
    /// comes first where that call ended in [`Error::Unknown`], or its future was dropped.
    ///
    /// # Errors
    /// When the queue cannot be read or written. The poll may be continued.
    pub async fn next(&mut self, now: Timestamp) -> Result<Option<LockedBatch>, Error> {
        self.next_if(now, |_| true).await
    }

    /// The same of the batches for which `is_wanted` holds; the others are left as they are, and not looked at again by
    /// this poll. A batch that an earlier call locked comes in any case.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn next_if(
        &mut self,
        now: Timestamp,
        is_wanted: impl Fn(&Batch) -> bool,
    ) -> Result<Option<LockedBatch>, Error> {
        let due = self.due;
        while let Some(outcome) = self.queue.recover_claim(|claim: &BatchClaim| claim.due == due).await? {
            match outcome {
                ClaimOutcome::Ours(claim, lock) => return Ok(Some(claim.locked(lock))),
                ClaimOutcome::Lost(claim) => self.skip(claim.batch.id, SkipReason::LockBroken),
            }
        }
        loop {
            while let Some((batch, state)) = self.read.pop() {
                if !is_wanted(&batch) {
                    continue;
                }
                if self.due == Due::Jobs && self.is_expanded && self.is_held(&batch) {
                    match self.queue.change_batch(&batch, &ItemChange::to(BatchState::Held), now).await {
                        Ok(_) => self.held.push(batch.id),
                        Err(error) if was_quicker(&error) => {}
                        Err(error) => return Err(error),
                    }
                    continue;
                }
                if let Some(locked) = self.lock(batch, state, now).await? {
                    return Ok(Some(locked));
                }
            }
            if self.has_idle {
                self.leave_out_idle().await?;
            }
            let ids = self.window.next();
            if ids.is_empty() {
                return Ok(None);
            }
            let reads: Vec<_> = ids.iter().flat_map(|id| Batch::reads(*id)).collect();
            let mut found = self.queue.read(&reads).await?.into_iter();
            for id in ids {
                // A missing one was purged meanwhile.
                if let Some(batch) = Batch::from_found(id, found.by_ref().take(Batch::READS).collect::<Vec<_>>()) {
                    self.look_at(batch);
                }
            }
            self.read.reverse();
        }
    }

    /// Leaves batches out of the list that nothing is due for in their state: most of those that are kept have ended, and
    /// only their states are read.
    async fn leave_out_idle(&mut self) -> Result<(), Error> {
        let ids: Vec<_> = self.window.waiting.iter().copied().collect();
        let nodes: Vec<_> = ids.iter().map(|id| Path::BatchNode(*id, BatchNode::Status)).collect();
        let reads: Vec<_> = nodes.iter().cloned().map(Read::Data).collect();
        let mut idle = BTreeMap::<_, BatchState>::new();
        let take = |at: usize, found: Found| {
            let state = found.data().map(|(data, _)| check_status(&nodes[at], true, ItemStatus::decode(&data)));
            // What is wrong with a status is said when the rest is read.
            if let Some(Ok(state)) = state
                && !BatchState::is_worked_on(state)
            {
                idle.insert(ids[at], state);
            }
        };
        match self.queue.read_each_alone(&reads, take).await {
            Err(error) if error.is_connection() => return Err(error),
            // One that cannot be read keeps none from being handed out that comes before it.
            Ok(()) | Err(_) => {}
        }
        self.window.waiting.retain(|id| !idle.contains_key(id));
        let past = idle.into_iter().filter(|(_, state)| !state.may_become(BatchState::Pending));
        self.past.extend(past.map(|(id, _)| id));
        self.has_idle = false;
        Ok(())
    }

    fn is_held(&self, batch: &Batch) -> bool {
        self.held_collections.contains(batch.submitted().value.collection.as_ref())
    }

    /// Keeps a batch that is due and can be worked on.
    fn look_at(&mut self, batch: Batch) {
        use BatchState as S;
        if batch.is_acquired() {
            self.past.push(batch.id);
        }
        if batch.lock().is_some() {
            return self.locked.push(batch.id);
        }
        let state = match batch.check_loadable() {
            Ok(state) => state,
            Err(_) if batch.submission.is_none() && batch.version().is_none() => {
                return self.skip(batch.id, SkipReason::Unfinished);
            }
            Err(error) => return self.skip(batch.id, SkipReason::Unloadable(error)),
        };
        let fits = match (self.due, state) {
            (Due::Jobs, S::Pending) => !batch.is_acquired(),
            (Due::Jobs, _) if !batch.is_acquired() && state.is_worked_on() => {
                let reason = format!("it is {state} but has no states");
                return self.skip(batch.id, SkipReason::Contradiction(reason));
            }
            (Due::RestOfJobs, S::Processing | S::Reporting) => true,
            (Due::Withdrawal, state) => state.allows(S::Deleted, Authority::Withdrawal),
            (Due::Report, S::Processing | S::Reporting) | (Due::UpdatedReport, S::UpdateReporting) => batch.is_done(),
            (Due::Report, S::Pending) if batch.is_done() => {
                let reason = "it is Pending but its jobs are done".to_owned();
                return self.skip(batch.id, SkipReason::Contradiction(reason));
            }
            (Due::Jobs | Due::RestOfJobs | Due::Report | Due::UpdatedReport, _) => false,
        };
        if fits {
            self.read.push((batch, state));
        }
    }

    fn skip(&mut self, id: BatchId, reason: SkipReason) {
        self.skipped.push(SkippedItem { path: Path::Batch(id), reason });
    }

    /// Locks a batch as it was read; `None` where another client was faster.
    async fn lock(&mut self, batch: Batch, state: BatchState, now: Timestamp) -> Result<Option<LockedBatch>, Error> {
        let (id, mut transaction) = (batch.id, Transaction::new());
        let node = Path::BatchNode(id, BatchNode::Status);
        let (state, version) = match (self.due, state) {
            (Due::Jobs, _) => {
                transaction.create(Path::BatchNode(batch.id, BatchNode::States), Vec::new());
                if self.is_expanded {
                    transaction.create(Path::expansion(batch.id), ExpansionNote::default().encode());
                }
                (BatchState::Processing, batch.set_status(&mut transaction, BatchState::Processing, "", now))
            }
            (Due::Report, BatchState::Processing) => {
                (BatchState::Reporting, batch.set_status(&mut transaction, BatchState::Reporting, "", now))
            }
            (Due::RestOfJobs | Due::Report | Due::UpdatedReport | Due::Withdrawal, state) => {
                match self.due {
                    Due::RestOfJobs => drop(transaction.check_exists(Path::expansion(batch.id))),
                    Due::Withdrawal => drop(transaction.check_exists(Path::withdrawal(batch.id))),
                    Due::Jobs | Due::Report | Due::UpdatedReport => {}
                }
                let version = batch.version().unwrap_or_default();
                transaction.check(node.clone(), version);
                (state, version)
            }
        };
        let written = transaction.set_of(&node).map(|(data, _)| data.to_vec());
        let claim = BatchClaim { due: self.due, is_expanded: self.is_expanded, batch, state, version, written };
        let outcome = self.queue.claim(transaction, claim).await;
        Ok(match LockOutcome::from_claim(outcome)? {
            LockOutcome::Locked(claim, lock) => Some(claim.locked(lock)),
            LockOutcome::Skipped(reason) => {
                self.skip(id, reason);
                None
            }
            LockOutcome::Missed => None,
        })
    }
}

/// A batch that is to be locked.
#[derive(Debug)]
pub(crate) struct BatchClaim {
    due: Due,
    is_expanded: bool,
    batch: Batch,
    state: BatchState,
    version: i32,
    /// The data of the status that is written with the lock.
    written: Option<Vec<u8>>,
}

impl BatchClaim {
    /// A batch that is to be withdrawn, in the state and at the version as it was read.
    pub(crate) fn withdrawal(batch: Batch, state: BatchState) -> Self {
        let version = batch.version().unwrap_or_default();
        Self { due: Due::Withdrawal, is_expanded: false, batch, state, version, written: None }
    }

    /// Whether it is that of the withdrawal of a batch.
    pub(crate) fn is_withdrawal_of(&self, id: BatchId) -> bool {
        self.due == Due::Withdrawal && self.batch.id == id
    }

    pub(crate) fn locked(self, lock: Lock) -> LockedBatch {
        let Self { due, is_expanded, batch, state, version, written } = self;
        let status = written.or_else(|| batch.status_found().map(|(data, _)| data.clone()));
        let is_expansion_new = due == Due::Jobs && is_expanded;
        LockedBatch { batch, state, version, lock, status, is_expansion_new, pending: PendingChange::default() }
    }
}

impl Claim for BatchClaim {
    fn lock(&self) -> Path {
        Path::BatchNode(self.batch.id, BatchNode::Lock)
    }
}

//! What of the image a diagnosis is made from.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::failures::Failed;
use super::faults::FaultQuery;
use super::own::StoreHold;
use super::row::{JobRow, LockStat};

use super::view::own;
use super::{Image, order};
use crate::mirror::bands::Bands;
use crate::mirror::clock::Offset;
use crate::mirror::failures::{FailureKey, pattern};
use crate::mirror::history::{Flow, Rates};
use crate::mirror::situation::{
    Backlog, BatchContext, BatchSituation, Holding, JobHold, JobSituation, PauseSituation, Pool, QueueHead,
    QueuePosition, StateSituation,
};
use crate::mirror::summary::{ByState, LockKind};
use crate::mirror::text::TextId;
use queuekeeper_queue::fault::{Blocks, Fault};
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::{BatchNode, EntryName, JobNode, LockFolder, Path, QueueName, StateFolder};
use queuekeeper_queue::record::{BatchWait, Retry};
use queuekeeper_queue::state::{JobState, State};

/// Whether a fault of the job that is first in a state ends the poll of each daemon that tries it.
pub(super) fn blocks(fault: Fault, row: JobRow<'_>, state: JobState) -> bool {
    match fault {
        Fault::OrphanEntry => row.standing.state.is_some_and(|of| of != state),
        // Where the daemons look for it is not where its priority has it in the order of a state.
        Fault::PriorityOutOfRange => false,
        _ => fault.blocks(Blocks::Head),
    }
}

/// How many entries are looked at for the one that the daemons try first; those before it are locked or stray.
const ENTRIES: usize = 1_000;

/// How many locked jobs are looked at. There are as many as the daemons have threads.
const LOCKED: usize = 10_000;

/// A daemon may only be looking at a job that it has locked for less than this, however busy its machine is.
const LOOK_MS: i64 = 2_000;

/// How many items of a kind a diagnosis names.
const NAMED: usize = 5;

/// What is known of each state in which daemons work on jobs; nothing of the others.
pub(in crate::mirror) type WorkedOn = ByState<JobState, Option<Arc<StateSituation>>>;

impl Image {
    /// Why a job waits for another attempt.
    pub(in crate::mirror) fn job_retry(&self, job: JobId) -> Option<Retry> {
        self.retry(self.jobs.get(job)?).cloned()
    }

    /// Why a batch waits for another attempt to create its jobs.
    pub(in crate::mirror) fn batch_wait(&self, batch: BatchId) -> Option<BatchWait> {
        self.own.wait(batch).cloned()
    }

    /// What is known of a job; `None` where there is none.
    pub(in crate::mirror) fn job_situation(
        &self,
        id: JobId,
        flow: &Flow,
        fault_query: FaultQuery<'_>,
    ) -> Option<JobSituation> {
        let row = self.jobs.get(id)?;
        let (state, offset) = (row.standing.state, fault_query.offset);
        let texts = &self.jobs.texts;
        let collection = texts.get(row.standing.collection);
        Some(JobSituation {
            id,
            state,
            status_text: texts.get(row.status_text),
            entered: own(row.standing.entered_ms, offset),
            last_successful: row.last_successful,
            message: texts.get(row.message),
            same_message: if state == Some(JobState::Failed) { self.same_message(row) } else { 0 },
            retries: row.standing.retries,
            space_needed_bytes: row.standing.space_needed_bytes,
            hold: self.hold(&collection, offset),
            collection,
            lock: row.lock.as_deref().map(|lock| self.holding(lock, &Path::JobNode(id, JobNode::Lock), offset)),
            usual_lock: fault_query.limits.job_lock.get(state),
            place: state.and_then(|state| self.place(row, state)),
            batch: row.batch.map(|batch| self.batch_context(batch, offset)),
            faults: self.faults_of(&Path::Job(id), fault_query),
            in_state: state.map(|state| self.state_situation(state, flow, fault_query)),
            retry: self.retry(row).cloned(),
            expansion: row
                .batch
                .filter(|_| self.own.is_last_of_expansion(id, row.batch))
                .and_then(|batch| self.own.expansion(batch))
                .map(|expansion| expansion.next),
            withdrawal: row.batch.and_then(|batch| self.own.withdrawal(batch)).cloned(),
            unseen_volume: state
                .filter(|state| state.is_worked_on() && *state > JobState::Provisioning)
                .and_then(|state| self.own.unseen_volume(id, state))
                .map(Into::into),
        })
    }

    /// When the lock on a job was created.
    pub(in crate::mirror) fn lock_created(&self, id: JobId, offset: Offset) -> Option<Timestamp> {
        self.jobs.get(id)?.lock.as_deref().map(|lock| offset.to_own(lock.created_ms))
    }

    /// What is known of a state.
    pub(in crate::mirror) fn state_situation(
        &self,
        state: JobState,
        flow: &Flow,
        fault_query: FaultQuery<'_>,
    ) -> StateSituation {
        let offset = fault_query.offset;
        let figures = self.jobs.figures.states.get(Some(state));
        let [unlocked, locked] = &figures.entered;
        let oldest = [unlocked, locked].into_iter().filter_map(crate::mirror::bands::Bands::first).min();
        let is_provisioning = state == JobState::Provisioning;
        let looked_at = |held_since| {
            let latest = figures.locked.iter().rev().take(LOCKED);
            latest.take_while(|at| **at > held_since).count() as u64
        };
        let held_since = (fault_query.now_ms - LOOK_MS, u32::MAX);
        let space_needed = || {
            let rows = figures.locked.range(..=held_since).take(LOCKED).map(|(_, row)| self.jobs.at(*row));
            let held_bytes: u128 = rows.map(|row| u128::from(row.standing.space_needed_bytes)).sum();
            u64::try_from(figures.space_needed_bytes.saturating_sub(held_bytes)).unwrap_or(u64::MAX)
        };
        StateSituation {
            state,
            jobs: (unlocked.len() + locked.len()) as u64,
            locked: locked.len() as u64,
            looked_at: if is_provisioning { looked_at(held_since) } else { 0 },
            oldest: oldest.and_then(|at| own(at, offset)),
            flow: *flow.states.get(Some(state)),
            taken: self.taken_ms(state).map(|at| offset.to_own(at)),
            head: self.head(state, fault_query),
            pools: if is_provisioning { self.pools(fault_query) } else { Vec::new() },
            backlog: if state == JobState::Pending { self.backlog() } else { None },
            space_needed_bytes: if is_provisioning { space_needed() } else { 0 },
            pause: self.pause(&Path::QueueLock(QueueName::Ingest), offset),
            faults: self.faults_of(&Path::StateFolder(state.into()), fault_query),
            usual: fault_query.limits.stuck.get(Some(state)),
            workers: self.own.workers(state),
            is_ours: self.own.has_daemons(),
            unserved: self.unserved_ms(state).map(|at| offset.to_own(at)),
            granted: if is_provisioning { self.own.granted() } else { None },
            held_stores: if state == JobState::Storing { self.held_stores() } else { Vec::new() },
        }
    }

    /// What is known of the states in which daemons work on jobs, where there are any.
    pub(in crate::mirror) fn worked_on(&self, flow: &Flow, fault_query: FaultQuery<'_>) -> WorkedOn {
        let mut states = WorkedOn::default();
        for (state, situation) in states.iter_mut() {
            let state = state.filter(|state| state.is_worked_on());
            *situation = state.map(|state| Arc::new(self.state_situation(state, flow, fault_query)));
        }
        states
    }

    /// What is known of a batch, but for what holds its Held jobs; `None` where there is none.
    pub(in crate::mirror) fn batch_situation(
        &self,
        id: BatchId,
        rates: Option<Rates>,
        states: &WorkedOn,
        fault_query: FaultQuery<'_>,
    ) -> Option<BatchSituation> {
        let entry = self.batches.get(id).filter(|entry| !entry.item.nodes.is_empty())?;
        let item = &entry.item;
        let jobs = self.jobs.beside.of(id);
        let first = jobs.iter().find(|(state, jobs)| **jobs > 0 && state.is_some_and(State::is_worked_on));
        let passed = std::iter::successors(first.and_then(|(state, _)| state), |state| state.success());
        let passed =
            passed.filter_map(|state| Some((states.get(Some(state)).clone()?, u64::from(*jobs.get(Some(state))))));
        Some(BatchSituation {
            id,
            state: item.state,
            status_text: item.status_text.clone(),
            entered: own(item.entered_ms, fault_query.offset),
            message: item.message.clone(),
            is_acquired: self.is_acquired(id),
            references: std::array::from_fn(|outcome| entry.folders[outcome].then_some(entry.references[outcome])),
            lock: item.lock.map(|lock| self.holding(&lock, &Path::BatchNode(id, BatchNode::Lock), fault_query.offset)),
            held: u64::from(*jobs.get(Some(JobState::Held))),
            holds: Vec::new(),
            states: passed.collect(),
            rates,
            pause: self.pause(&Path::QueueLock(QueueName::Ingest), fault_query.offset),
            faults: self.faults_of(&Path::Batch(id), fault_query),
            expansion: self.own.expansion(id).map(|expansion| expansion.next),
            waits: self.own.wait(id).cloned(),
            withdrawal: self.own.withdrawal(id).cloned(),
        })
    }

    /// What holds the Held jobs of a batch, each reason once.
    pub(in crate::mirror) fn holds_on(&self, id: BatchId, offset: Offset) -> Vec<JobHold> {
        let mut holds: Vec<JobHold> = Vec::new();
        if *self.jobs.beside.of(id).get(Some(JobState::Held)) == 0 {
            return holds;
        }
        let held = self.jobs.figures.states.get(Some(JobState::Held)).entered.iter().flat_map(Bands::iter).take(LOCKED);
        let rows = held.filter_map(|(_, job)| self.jobs.get(JobId::new(job)));
        for row in rows.filter(|row| row.batch == Some(id)) {
            let hold = if row.standing.is_by_operator {
                JobHold::ByOperator(self.jobs.texts.get(row.message))
            } else {
                let collection = self.jobs.texts.get(row.standing.collection);
                let Some(pause) = self.hold(&collection, offset) else { continue };
                JobHold::OfCollection(collection, pause)
            };
            if !holds.contains(&hold) {
                holds.push(hold);
            }
            if holds.len() == NAMED {
                break;
            }
        }
        holds
    }

    fn batch_context(&self, id: BatchId, offset: Offset) -> BatchContext {
        let item = self.batches.get(id).map(|entry| &entry.item).filter(|item| !item.nodes.is_empty());
        BatchContext {
            id,
            exists: item.is_some(),
            is_acquired: self.is_acquired(id),
            state: item.and_then(|item| item.state),
            entered: item.and_then(|item| own(item.entered_ms, offset)),
        }
    }

    /// Who holds a lock, and what else.
    fn holding(&self, lock: &LockStat, path: &Path, offset: Offset) -> Holding {
        let (mut others, count) = self.held_by(lock.session, NAMED + 1);
        others.retain(|other| other != path);
        others.truncate(NAMED);
        let others_count = count.saturating_sub(1);
        Holding { session: lock.session, address: None, since: offset.to_own(lock.created_ms), others, others_count }
    }

    /// The order to stop that a lock is, where it is there.
    pub(in crate::mirror) fn pause(&self, lock: &Path, offset: Offset) -> Option<PauseSituation> {
        if !self.locks.has(lock) {
            return None;
        }
        let note = self.notes.of(lock);
        let since = self.locks.get(lock).map(|stat| offset.to_own(stat.created_ms));
        Some(PauseSituation { since, who: note.who, why: note.why })
    }

    /// The hold on a collection, where it is held.
    pub(in crate::mirror) fn hold(&self, collection: &str, offset: Offset) -> Option<PauseSituation> {
        if collection.is_empty() {
            return None;
        }
        self.pause(&Path::NamedLock(LockFolder::Collections, collection.into()), offset)
    }

    /// The stores that are held, by name.
    pub(in crate::mirror) fn held_stores(&self) -> Vec<(Arc<str>, PauseSituation)> {
        let pause = |hold: &StoreHold| PauseSituation {
            since: hold.since,
            who: hold.note.who.clone(),
            why: hold.note.why.clone(),
        };
        self.own.holds().map(|(store, hold)| (Arc::from(store), pause(hold))).collect()
    }

    /// The held collections that these jobs belong to, each with how many of them; those of most jobs first.
    pub(in crate::mirror) fn held_collections_of(&self, jobs: &[JobId]) -> Vec<(Arc<str>, u64)> {
        let mut counts = BTreeMap::<TextId, u64>::new();
        for row in jobs.iter().filter_map(|job| self.jobs.get(*job)) {
            *counts.entry(row.standing.collection).or_default() += 1;
        }
        let named = counts.into_iter().map(|(collection, jobs)| (self.jobs.texts.get(collection), jobs));
        let mut held: Vec<_> = named.filter(|(name, _)| self.hold(name, Offset::default()).is_some()).collect();
        held.sort_by_key(|(_, jobs)| std::cmp::Reverse(*jobs));
        held
    }

    /// How many other failed jobs failed behind the same state with the same message, numbers and names in it aside.
    fn same_message(&self, row: JobRow<'_>) -> u64 {
        let key = |last, message| FailureKey::of(last, &pattern(&self.jobs.texts.str(message)));
        let failed = Failed::of(row, key).map_or(0, |failed| self.jobs.failures.like(failed));
        failed.saturating_sub(1)
    }

    /// A job's own entry in a state and its place there.
    fn place(&self, row: JobRow<'_>, state: JobState) -> Option<(Path, QueuePosition)> {
        let folder = StateFolder::from(state);
        let own = self.jobs.entries(row.id()).filter(|(of, _)| *of == folder).map(|(_, entry)| entry).min()?;
        let (more_urgent, earlier) = self.jobs.order.ahead(state, own);
        let locked = self.jobs.figures.states.get(Some(state)).locked.iter().take(LOCKED);
        let locked = locked.filter_map(|(_, row)| self.jobs.at(*row).entry_name());
        let is_ahead = |(of, entry): &(StateFolder, EntryName)| *of == folder && order::is_before(*entry, own);
        let locked = locked.filter(is_ahead).count() as u64;
        // Entries of jobs that are elsewhere, or gone, are no jobs ahead.
        let (mut more_urgent, mut earlier) = (more_urgent as u64, earlier as u64);
        for (_, entry) in self.leftover(state).filter(is_ahead) {
            let ahead = if entry.priority == own.priority { &mut earlier } else { &mut more_urgent };
            *ahead = ahead.saturating_sub(1);
        }
        let held_ahead = if state == JobState::Pending { self.held_before(row.id(), state) } else { 0 };
        let place = QueuePosition { more_urgent, earlier, locked, held_ahead };
        Some((Path::Entry(folder, own), place))
    }

    /// The entries in a state of jobs that are not in it.
    fn leftover(&self, state: JobState) -> impl Iterator<Item = (StateFolder, EntryName)> {
        let suspects = &self.faults.suspects;
        let of = [Fault::OrphanEntry, Fault::StrayEntry].into_iter().flat_map(|fault| suspects.suspected(fault));
        let jobs = of.take(LOCKED).filter_map(|item| if let Path::Job(job) = item { Some(*job) } else { None });
        let elsewhere = jobs.filter(move |job| self.jobs.get(*job).is_none_or(|row| row.standing.state != Some(state)));
        elsewhere.flat_map(|job| self.jobs.entries(job))
    }

    /// How many jobs of held collections are ahead of a job, among the first of its state.
    fn held_before(&self, job: JobId, state: JobState) -> u64 {
        let ahead = self.jobs.order.jobs(state).take(ENTRIES).take_while(|other| *other != job);
        let rows = ahead.filter_map(|job| self.jobs.get(job));
        let is_held = |row: &JobRow<'_>| {
            let collection = self.jobs.texts.get(row.standing.collection);
            !collection.is_empty() && self.locks.has(&Path::NamedLock(LockFolder::Collections, (*collection).into()))
        };
        rows.filter(is_held).count() as u64
    }

    /// The job that a daemon of a state tries first.
    pub(super) fn first_to_take(&self, state: JobState) -> Option<JobRow<'_>> {
        let jobs = self.jobs.order.jobs(state).take(ENTRIES);
        jobs.filter_map(|job| self.jobs.get(job)).find(|row| row.lock.is_none())
    }

    /// The entry that a daemon of a state tries first, where it ends the poll.
    fn head(&self, state: JobState, fault_query: FaultQuery<'_>) -> Option<QueueHead> {
        let folder = StateFolder::from(state);
        let row = self.first_to_take(state)?;
        let first = row.id();
        let faults = self.faults_of(&Path::Job(first), fault_query);
        let found = faults.into_iter().find(|found| blocks(found.fault, row, state))?;
        let entry = self.jobs.entries(first).find(|(of, _)| *of == folder)?.1;
        Some(QueueHead {
            entry: Path::Entry(folder, entry),
            job: first,
            job_state: row.standing.state,
            fault: found.fault,
            since: found.since,
        })
    }

    /// The sessions that hold jobs in Provisioning which the threshold keeps back, those with the most first.
    fn pools(&self, fault_query: FaultQuery<'_>) -> Vec<Pool> {
        let Some(space) = fault_query.space else { return Vec::new() };
        let mut pools: Vec<Pool> = Vec::new();
        let locked = self.jobs.figures.states.get(Some(JobState::Provisioning)).locked.iter().take(LOCKED);
        for row in locked.map(|(_, row)| self.jobs.at(*row)) {
            let needed = i64::try_from(row.standing.space_needed_bytes).unwrap_or(i64::MAX);
            let Some(lock) = row.lock.as_deref().filter(|_| needed > space) else { continue };
            // They come by the instant of locking, so the first one of a session is the oldest.
            let at = pools.iter().position(|pool| pool.session == lock.session).unwrap_or_else(|| {
                let since = fault_query.offset.to_own(lock.created_ms);
                pools.push(Pool { session: lock.session, address: None, jobs: 0, items: Vec::new(), since });
                pools.len() - 1
            });
            pools[at].jobs += 1;
            if pools[at].items.len() < NAMED {
                pools[at].items.push(row.id());
            }
        }
        pools.sort_by_key(|pool| std::cmp::Reverse(pool.jobs));
        pools
    }

    /// The held collection with the most Pending jobs.
    fn backlog(&self) -> Option<Backlog> {
        let held = self.locks.iter().filter(|(kind, ..)| *kind == LockKind::Collection);
        let backlogs = held.filter_map(|(_, path, _)| {
            let Path::NamedLock(LockFolder::Collections, name) = path else { return None };
            let jobs = self.jobs.figures.collections.get(&self.jobs.texts.find(name)?)?;
            let pending = *jobs.get(Some(JobState::Pending));
            (pending > 0).then(|| Backlog { collection: Arc::from(&**name), jobs: pending })
        });
        backlogs.max_by_key(|backlog| backlog.jobs)
    }
}

#[cfg(test)]
mod tests;

//! The transaction of a change of a job, made from one look at it.

use jiff::Timestamp;

use super::target::Guess;
use super::{Job, JobChange, JobTarget};
use crate::queue::error::{ConflictKind, Error};
use crate::queue::handle::{Found, Queue, Read, instant};
use crate::queue::id::{BatchId, JobId, Priority};
use crate::queue::path::{BatchNode, EntryName, JobNode, Path};
use crate::queue::record::{self, Malformed, StatusChange};
use crate::queue::state::{JobState, Outcome, State};
use crate::queue::transaction::Transaction;

/// A change of a job that is ready to be committed, or to be shown.
///
/// Besides the change itself it mends what it touches: a missing queue entry or reference is made, one in the wrong
/// place that it comes upon is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPlan {
    /// The job.
    pub job: JobId,
    /// The state that it leaves.
    pub from: JobState,
    /// The state that it enters; the same where only its priority is changed.
    pub to: JobState,
    /// Its priority afterwards.
    pub priority: Priority,
    /// The version of its status that the change applies to.
    pub version: i32,
    /// What will be done.
    pub transaction: Transaction,
    /// Which operation sets the status.
    pub(super) status_at: Option<usize>,
}

/// What lies around a job: its references in each outcome's folder, and its entries in each state's.
#[derive(Debug)]
struct Surroundings {
    /// Whether its batch is there and was acquired.
    has_batch: bool,
    references: Vec<Outcome>,
    entries: Vec<(JobState, EntryName)>,
}

/// Where to look around a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    batch: BatchId,
    /// The name of its entry.
    old: EntryName,
    /// The name that its entry is to have.
    new: EntryName,
}

/// What is to be done to a job.
#[derive(Clone, Copy, Debug)]
struct Order<'a> {
    change: Option<(&'a JobChange, Timestamp)>,
    priority: Option<Priority>,
}

impl Queue {
    /// Plans a change of a job's state without doing it; [`Queue::commit_job_plan`] does it.
    ///
    /// # Errors
    /// As [`Queue::change_job`].
    pub async fn plan_job_change(
        &self,
        target: impl Into<JobTarget>,
        change: &JobChange,
        now: Timestamp,
    ) -> Result<JobPlan, Error> {
        self.plan(target.into(), Order { change: Some((change, now)), priority: change.priority }).await
    }

    /// Plans a change of a job's priority without doing it; [`Queue::commit_job_plan`] does it.
    ///
    /// # Errors
    /// As [`Queue::change_job`].
    pub async fn plan_priority(&self, target: impl Into<JobTarget>, priority: Priority) -> Result<JobPlan, Error> {
        self.plan(target.into(), Order { change: None, priority: Some(priority) }).await
    }

    async fn plan(&self, target: JobTarget, order: Order<'_>) -> Result<JobPlan, Error> {
        let new = |old: EntryName| order.priority.map_or(old, |priority| EntryName::of(priority, target.id));
        let guess = target.guess.map(|Guess { batch, entry }| Place { batch, old: entry, new: new(entry) });
        let mut reads = Job::reads(target.id);
        reads.extend(guess.iter().flat_map(Surroundings::reads));
        let mut found = self.read(&reads).await?.into_iter();
        let job = Job::from_found(target.id, found.by_ref().take(Job::READS));
        let job = job.ok_or(Error::Missing(Path::Job(target.id)))?;
        target.check(&job)?;
        let (mut plan, place) = begin(&job, &target, order)?;
        let around = match guess.filter(|guess| *guess == place) {
            Some(_) => Surroundings::from_found(&place, &mut found),
            None => Surroundings::from_found(&place, &mut self.read(&Surroundings::reads(&place)).await?.into_iter()),
        };
        let around = self.complete(around, job.id, plan.from).await?;
        around.fill(&mut plan, &target, &job, &place, order);
        Ok(plan)
    }

    /// Plans the same change of many jobs that were read just now, a few requests for all.
    pub(in crate::queue) async fn plan_jobs(
        &self,
        jobs: &[Job],
        change: &JobChange,
        now: Timestamp,
    ) -> Result<Vec<JobPlan>, Error> {
        let order = Order { change: Some((change, now)), priority: change.priority };
        let mut started = Vec::with_capacity(jobs.len());
        let mut reads = Vec::new();
        for job in jobs {
            let target = JobTarget::from(job);
            target.check(job)?;
            let (plan, place) = begin(job, &target, order)?;
            reads.extend(Surroundings::reads(&place));
            started.push((job, target, plan, place));
        }
        let mut found = self.read(&reads).await?.into_iter();
        let mut plans = Vec::with_capacity(jobs.len());
        for (job, target, mut plan, place) in started {
            let around = Surroundings::from_found(&place, &mut found);
            let around = self.complete(around, job.id, plan.from).await?;
            around.fill(&mut plan, &target, job, &place, order);
            plans.push(plan);
        }
        Ok(plans)
    }

    /// Looks for a job's entry under another priority where it is not found under its own.
    async fn complete(&self, mut around: Surroundings, id: JobId, from: JobState) -> Result<Surroundings, Error> {
        if around.entries.iter().all(|(state, _)| *state != from) {
            around.entries.extend(self.entries_of(id, from).await?);
        }
        Ok(around)
    }

    /// A job's entries in a state, under whatever priority.
    async fn entries_of(&self, id: JobId, state: JobState) -> Result<Vec<(JobState, EntryName)>, Error> {
        let [found] = self.read_each([Read::Children(Path::StateFolder(state.into()))]).await?;
        let entries = found.children().into_iter().filter_map(|name| EntryName::from_name(&name));
        Ok(entries.filter(|entry| entry.job == id).map(|entry| (state, entry)).collect())
    }
}

/// Starts the plan of an order: where the job goes, and where to look around it.
fn begin(job: &Job, target: &JobTarget, order: Order<'_>) -> Result<(JobPlan, Place), Error> {
    let from = state_of(job)?;
    let to = order.change.map_or(Ok(from), |(change, _)| change.target(job, from))?;
    let priority = order.priority.map_or_else(|| job.priority(), Ok)?;
    let own = EntryName::of(job.priority().unwrap_or(priority), job.id);
    // The entry by which we acquired it may have another priority than the job itself.
    let old = target.lock.as_ref().and(target.guess).map_or(own, |guess| guess.entry);
    let place = Place { batch: job.batch()?, old, new: EntryName::of(priority, job.id) };
    let transaction = Transaction::new();
    Ok((JobPlan { job: job.id, from, to, priority, version: 0, transaction, status_at: None }, place))
}

/// The state that a job's status names.
fn state_of(job: &Job) -> Result<JobState, Error> {
    let decoded = job.status();
    let unknown = Malformed::Wrong { what: "status", expected: "the name of a state" };
    let path = Path::JobNode(job.id, JobNode::Status);
    decoded.value.status.state.ok_or(Error::Decode { path, malformed: decoded.malformed.unwrap_or(unknown) })
}

impl JobTarget {
    /// Confirms that the job is still what its orderer saw, and still ours where we hold it.
    pub(super) fn check(&self, job: &Job) -> Result<(), Error> {
        let status = Path::JobNode(self.id, JobNode::Status);
        let Some(stat) = job.stat(JobNode::Status) else { return Err(Error::Missing(status)) };
        if let Some(lock) = &self.lock {
            lock.confirm(job.stat(JobNode::Lock))?;
        } else if let Some(lock) = job.lock() {
            let kind = ConflictKind::Locked { session: lock.session, since: lock.since };
            return Err(Error::conflict(lock.path, kind));
        }
        match self.version {
            Some(seen) if seen != stat.version => {
                let kind = ConflictKind::Changed { seen, found: stat.version, since: instant(stat.mtime) };
                Err(Error::conflict(status, kind))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Place {
    /// The entries where one of the job may be: in each state, under its old name and its new.
    fn entries(&self) -> impl Iterator<Item = (JobState, EntryName)> + use<> {
        let Self { old, new, .. } = *self;
        let names = std::iter::once(old).chain((new != old).then_some(new));
        names.flat_map(|name| JobState::ALL.iter().map(move |state| (*state, name)))
    }

    fn reference(&self, outcome: Outcome) -> Path {
        Path::Reference(self.batch, outcome, self.new.job)
    }
}

impl Surroundings {
    fn reads(place: &Place) -> Vec<Read> {
        let states = Path::BatchNode(place.batch, BatchNode::States);
        let references = Outcome::ALL.into_iter().map(|outcome| place.reference(outcome));
        let entries = place.entries().map(|(state, entry)| Path::Entry(state.into(), entry));
        std::iter::once(states).chain(references).chain(entries).map(Read::Data).collect()
    }

    fn from_found(place: &Place, found: &mut impl Iterator<Item = Found>) -> Self {
        let mut next = || found.next().is_some_and(|found| found.exists());
        Self {
            has_batch: next(),
            references: Outcome::ALL.into_iter().filter(|_| next()).collect(),
            entries: place.entries().filter(|_| next()).collect(),
        }
    }

    fn fill(&self, plan: &mut JobPlan, target: &JobTarget, job: &Job, place: &Place, order: Order<'_>) {
        let node = |node| Path::JobNode(job.id, node);
        plan.version = job.version().unwrap_or_default();
        let transaction = &mut plan.transaction;
        target.open(transaction);
        if let Some((change, now)) = order.change {
            plan.status_at = Some(transaction.operations().len());
            transaction.set(node(JobNode::Status), change.status(job, plan.from, plan.to, now), plan.version);
        } else {
            transaction.check(node(JobNode::Status), plan.version);
        }
        if let Some(priority) = order.priority {
            match job.stat(JobNode::Priority) {
                Some(stat) => transaction.set(node(JobNode::Priority), priority.to_string(), stat.version),
                None => transaction.create(node(JobNode::Priority), priority.to_string()),
            };
        }
        let entry = (plan.to, place.new);
        for (state, old) in self.entries.iter().filter(|old| **old != entry) {
            transaction.delete(Path::Entry((*state).into(), *old), None);
        }
        if !self.entries.contains(&entry) {
            transaction.create(Path::Entry(plan.to.into(), place.new), Vec::new());
        }
        if self.has_batch {
            let outcome = plan.to.outcome();
            for other in self.references.iter().filter(|other| **other != outcome) {
                transaction.delete(place.reference(*other), None);
            }
            if !self.references.contains(&outcome) {
                transaction.create(place.reference(outcome), Vec::new());
            }
        }
        target.close(transaction);
    }
}

impl JobTarget {
    /// Takes the lock for the time of the transaction, or proves that it is still held.
    pub(super) fn open(&self, transaction: &mut Transaction) {
        match &self.lock {
            Some(lock) => transaction.check_exists(lock.path.clone()),
            None => transaction.create_ephemeral(Path::JobNode(self.id, JobNode::Lock)),
        };
    }

    pub(super) fn close(&self, transaction: &mut Transaction) {
        if self.lock.is_none() {
            transaction.delete(Path::JobNode(self.id, JobNode::Lock), None);
        }
    }
}

impl JobChange {
    /// The data of the status after the change.
    pub(crate) fn status(&self, job: &Job, from: JobState, to: JobState, now: Timestamp) -> Vec<u8> {
        let before = job.status().value;
        let retries = before.retry_count.unwrap_or(0);
        let is_retry = self.operator && from == JobState::Failed && to != JobState::Deleted;
        let change = StatusChange {
            from: Some(from),
            to,
            last_successful: before.last_successful,
            retry_count: retries.saturating_add(u32::from(is_retry)),
            message: &self.message,
            now,
        };
        record::job_status(job.data(JobNode::Status).unwrap_or_default(), &change)
    }
}

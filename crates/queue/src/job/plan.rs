//! The transaction of a change of a job, made from one look at it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use jiff::Timestamp;

use super::context::{JobContext, JobLocation};
use super::edit::{JobChange, JobEdit};
use super::target::LocationHint;
use super::{Job, JobTarget, LockedJob, update};
use crate::error::{ConflictKind, Error};
use crate::handle::{Found, Queue, Read, instant};
use crate::id::{BatchId, JobId, Priority};
use crate::lock::{ChangeTarget, Lock, Pause};
use crate::path::{EntryName, JobNode, Path};
use crate::record::Malformed;
use crate::state::{BatchState, JobState};
use crate::transaction::Transaction;

/// A change of a job that is ready to be committed, or to be shown.
///
/// Besides the change itself it repairs what it touches: a missing queue entry or reference is made, one in the wrong
/// place where it is found is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPlan {
    /// The job.
    pub job: JobId,
    /// The state that it leaves.
    pub from: JobState,
    /// The state that it enters; the same where only its priority is changed.
    pub to: JobState,
    /// Its priority before; `None` where that cannot be read.
    pub priority_before: Option<Priority>,
    /// Its priority afterwards.
    pub priority: Priority,
    /// The version of its status that the change applies to.
    pub version: i32,
    /// Its batch.
    pub batch: BatchId,
    /// The state of its batch; `None` where that is gone or its status cannot be read. A batch that was reported as
    /// Failed is not reported again because one of its jobs is completed.
    pub batch_state: Option<BatchState>,
    /// The hold on its collection, looked for where the job goes to Pending: the daemons set it Held again.
    pub hold: Option<Pause>,
    /// What will be done.
    pub transaction: Transaction,
    /// Which operation sets the status.
    pub(super) status_at: Option<usize>,
    /// Whether all that is around the job was as it must be.
    pub(super) is_regular: bool,
}

impl JobPlan {
    /// Fills the transaction, by what is around the job.
    pub(super) fn fill(
        &mut self,
        context: &JobContext,
        target: &JobTarget,
        job: &Job,
        location: &JobLocation,
        edit: JobEdit<'_>,
    ) -> Result<(), Error> {
        let node = |node| Path::JobNode(job.id, node);
        self.version = job.version().unwrap_or_default();
        self.batch_state = context.batch_status.and_then(|(state, _)| state);
        self.is_regular = context.is_regular(self.from, location);
        let transaction = &mut self.transaction;
        target.open(transaction);
        if let Some((change, now)) = edit.change {
            self.status_at = Some(transaction.operations().len());
            transaction.set(node(JobNode::Status), change.status(job, self.from, self.to, now), self.version);
            for value in &change.values {
                update::add(transaction, job, value)?;
            }
            transaction.append(change.also.clone());
        } else {
            transaction.check(node(JobNode::Status), self.version);
        }
        if let Some(priority) = edit.priority {
            match job.stat(JobNode::Priority) {
                Some(stat) => transaction.set(node(JobNode::Priority), priority.to_string(), stat.version),
                None => transaction.create(node(JobNode::Priority), priority.to_string()),
            };
        }
        // An entry that is not where the job's priority has it was perhaps moved by a change of that since the job was
        // read.
        if edit.priority.is_none()
            && !context.entries.contains(&(self.from, location.old))
            && let Some(stat) = job.stat(JobNode::Priority)
        {
            transaction.check(node(JobNode::Priority), stat.version);
        }
        let entry = (self.to, location.new);
        for (state, old) in context.entries.iter().filter(|old| **old != entry) {
            transaction.delete(Path::Entry((*state).into(), *old), None);
        }
        if !context.entries.contains(&entry) {
            transaction.create(Path::Entry(self.to.into(), location.new), Vec::new());
        }
        if context.is_batch_acquired {
            let outcome = self.to.outcome();
            for other in context.references.iter().filter(|other| **other != outcome) {
                transaction.delete(location.reference(*other), None);
            }
            if !context.references.contains(&outcome) {
                transaction.create(location.reference(outcome), Vec::new());
            }
        }
        target.close(transaction);
        Ok(())
    }
}

impl Queue {
    /// Plans a change of a job's state without doing it; [`Queue::commit_job_plan`] does it.
    ///
    /// # Errors
    /// As [`Queue::change_job`]; [`Error::Invalid`] for the release of a job whose batch is being withdrawn.
    pub async fn plan_job_change(
        &self,
        target: impl Into<JobTarget>,
        change: &JobChange,
        now: Timestamp,
    ) -> Result<JobPlan, Error> {
        let edit = JobEdit { change: Some((change, now)), priority: change.priority };
        self.plan(target.into(), edit).await.map(|(plan, _)| plan)
    }

    /// Plans a change of a job's priority without doing it; [`Queue::commit_job_plan`] does it.
    ///
    /// # Errors
    /// As [`Queue::change_job`].
    pub async fn plan_priority(&self, target: impl Into<JobTarget>, priority: Priority) -> Result<JobPlan, Error> {
        self.plan(target.into(), JobEdit { change: None, priority: Some(priority) }).await.map(|(plan, _)| plan)
    }

    /// Plans it, and gives the job as it was read for that.
    pub(super) async fn plan(&self, target: JobTarget, edit: JobEdit<'_>) -> Result<(JobPlan, Job), Error> {
        let new = |old: EntryName| edit.priority.map_or(old, |priority| EntryName::of(priority, target.id));
        let hint = target.hint.map(|LocationHint { batch, entry }| JobLocation { batch, old: entry, new: new(entry) });
        let expected_hold = target.collection.as_deref().filter(|_| edit.may_lead_to_pending()).and_then(Path::hold);
        let mark_of = |location: &JobLocation| Read::Existence(Path::withdrawal(location.batch));
        let mut reads = Job::reads(target.id);
        reads.extend(hint.iter().flat_map(JobContext::reads));
        reads.extend(hint.iter().filter(|_| edit.may_lead_to_pending()).map(mark_of));
        reads.extend(expected_hold.iter().cloned().map(Read::Data));
        let mut found = self.read(&reads).await?.into_iter();
        let job = Job::from_found(target.id, found.by_ref().take(Job::READS));
        let hinted = hint.map(|hint| (hint, JobContext::from_found(&hint, &mut found)));
        let expected_mark = hint.filter(|_| edit.may_lead_to_pending()).and_then(|hint| Some((hint, found.next()?)));
        let job = job.ok_or(Error::Missing(Path::Job(target.id)))?;
        target.check(&job)?;
        let (mut plan, location) = begin(&job, &target, edit)?;

        // What was not guessed, or wrongly, takes a second look, all of it in one request.
        let context = hinted.filter(|(hint, _)| *hint == location).map(|(_, context)| context);
        let lock = Some(JobState::Pending).filter(|pending| edit.change.is_some() && plan.to == *pending);
        let lock = lock.and_then(|_| Path::hold(&job.configuration().value.collection));
        let hold = found.next().filter(|_| lock == expected_hold);
        let is_release = (plan.from, plan.to) == (JobState::Held, JobState::Pending);
        let mark = expected_mark.filter(|(hint, _)| hint.batch == location.batch).map(|(_, mark)| mark);
        let mut reads = if context.is_some() { Vec::new() } else { JobContext::reads(&location) };
        reads.extend((is_release && mark.is_none()).then(|| mark_of(&location)));
        reads.extend(lock.iter().filter(|_| hold.is_none()).cloned().map(Read::Data));
        let mut found = self.read(&reads).await?.into_iter();
        let context = context.unwrap_or_else(|| JobContext::from_found(&location, &mut found));
        if is_release && mark.or_else(|| found.next()).is_some_and(|mark| mark.exists()) {
            let reason = format!("its batch {} is being withdrawn", location.batch);
            return Err(Error::Invalid { path: Path::Job(job.id), reason });
        }
        let hold = lock.zip(hold.or_else(|| found.next()).and_then(Found::data));
        plan.hold = hold.map(|(lock, (data, stat))| Pause::from_found(lock, &data, &stat));
        let context = self.complete(context, job.id, plan.from).await?;
        plan.fill(&context, &target, &job, &location, edit)?;
        Ok((plan, job))
    }

    /// Plans a change under a lock without a look, where a step of ours left all that is around the job as it must be;
    /// `None` where that is not known, or more than that would have to be looked at. What another changed since makes
    /// the transaction be refused.
    pub(super) fn plan_unseen(locked: &LockedJob, edit: JobEdit<'_>) -> Option<JobPlan> {
        if !locked.is_regular || edit.may_lead_to_pending() {
            return None;
        }
        let target = JobTarget::from(locked);
        let (mut plan, location) = begin(&locked.job, &target, edit).ok()?;
        let context = JobContext::regular(plan.from, &location);
        plan.fill(&context, &target, &locked.job, &location, edit).ok()?;
        Some(plan)
    }

    /// Plans the same change of many jobs that were read just now, a few requests for all.
    pub(crate) async fn plan_jobs(
        &self,
        jobs: &[Job],
        change: &JobChange,
        now: Timestamp,
    ) -> Result<Vec<JobPlan>, Error> {
        let edit = JobEdit { change: Some((change, now)), priority: change.priority };
        let mut started = Vec::with_capacity(jobs.len());
        let mut reads = Vec::new();
        for job in jobs {
            let target = JobTarget::from(job);
            target.check(job)?;
            let (plan, location) = begin(job, &target, edit)?;
            reads.extend(JobContext::reads(&location));
            started.push((job, target, plan, location));
        }
        let mut found = self.read(&reads).await?.into_iter();
        let mut plans = Vec::with_capacity(jobs.len());
        let mut listed: HashMap<JobState, HashMap<JobId, Vec<EntryName>>> = HashMap::new();
        for (job, target, mut plan, location) in started {
            let mut context = JobContext::from_found(&location, &mut found);
            if context.entries.iter().all(|(state, _)| *state != plan.from) {
                let listed = match listed.entry(plan.from) {
                    Entry::Occupied(listed) => listed.into_mut(),
                    Entry::Vacant(vacant) => vacant.insert(self.entries_by_job(plan.from).await?),
                };
                let entries = listed.get(&job.id);
                context.entries.extend(entries.into_iter().flatten().map(|entry| (plan.from, *entry)));
            }
            plan.fill(&context, &target, job, &location, edit)?;
            plans.push(plan);
        }
        Ok(plans)
    }

    /// Looks for a job's entry under another priority where it is not found under its own.
    async fn complete(&self, mut context: JobContext, id: JobId, from: JobState) -> Result<JobContext, Error> {
        if context.entries.iter().all(|(state, _)| *state != from) {
            let entries = self.entries_by_job(from).await?.remove(&id).unwrap_or_default();
            context.entries.extend(entries.into_iter().map(|entry| (from, entry)));
        }
        Ok(context)
    }

    /// The entries in a state, under whatever priority, by their job.
    async fn entries_by_job(&self, state: JobState) -> Result<HashMap<JobId, Vec<EntryName>>, Error> {
        let [found] = self.read_each([Read::Children(Path::StateFolder(state.into()))]).await?;
        let mut entries: HashMap<JobId, Vec<EntryName>> = HashMap::new();
        for entry in found.children().iter().filter_map(|name| EntryName::from_name(name)) {
            entries.entry(entry.job).or_default().push(entry);
        }
        Ok(entries)
    }
}

/// Starts the plan of an edit: where the job goes, and where to look around it.
pub(super) fn begin(job: &Job, target: &JobTarget, edit: JobEdit<'_>) -> Result<(JobPlan, JobLocation), Error> {
    let from = state_of(job)?;
    let to = edit.change.map_or(Ok(from), |(change, _)| change.target(job, from))?;
    let priority = edit.priority.map_or_else(|| job.priority(), Ok)?;
    let own = EntryName::of(job.priority().unwrap_or(priority), job.id);
    // The entry by which we acquired it may have another priority than the job itself.
    let old = target.lock.as_ref().and(target.hint).map_or(own, |hint| hint.entry);
    let location = JobLocation { batch: job.batch()?, old, new: EntryName::of(priority, job.id) };
    let plan = JobPlan {
        job: job.id,
        from,
        to,
        priority_before: job.priority().ok(),
        priority,
        version: 0,
        batch: location.batch,
        batch_state: None,
        hold: None,
        transaction: Transaction::new(),
        status_at: None,
        is_regular: false,
    };
    Ok((plan, location))
}

/// The state that a job's status names.
pub(crate) fn state_of(job: &Job) -> Result<JobState, Error> {
    let decoded = job.status();
    let unknown = Malformed::Wrong { what: "status", expected: "the name of a state" };
    let path = Path::JobNode(job.id, JobNode::Status);
    decoded.value.status.state.ok_or(Error::Decode { path, malformed: decoded.malformed.unwrap_or(unknown) })
}

impl JobTarget {
    /// Confirms that the job is still what its caller saw, and still ours where we hold it.
    pub(crate) fn check(&self, job: &Job) -> Result<(), Error> {
        let status = Path::JobNode(self.id, JobNode::Status);
        let Some(stat) = job.stat(JobNode::Status) else { return Err(Error::Missing(status)) };
        self.check_lock(job.stat(JobNode::Lock))?;
        match self.version {
            Some(seen) if seen != stat.version => {
                let kind = ConflictKind::Changed { seen, found: stat.version, since: instant(stat.mtime) };
                Err(Error::conflict(status, kind))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl ChangeTarget for JobTarget {
    fn lock_path(&self) -> Path {
        Path::JobNode(self.id, JobNode::Lock)
    }

    fn held(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }
}

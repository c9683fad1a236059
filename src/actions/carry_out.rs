//! One order, from its check to its outcome: who may, what it means, written down, done, written down.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::action::{Action, Subject};
use super::actor::{Actor, Role, Source};
use super::audit::{NotWritten, Record};
use super::bulk::{Each, SUBJECTS_A_LINE};
use super::execute::Shared;
use super::order::{Order, Reason};
use super::prepare::{Desk, NOT_SHOWN, Prepared, Step, batch_target, held_in, jobs_of};
use super::refusal::Refusal;
use super::work::{Outcome, Work};
use crate::mirror::words::counted;
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::state::{JobState, State as _};
use queuekeeper_queue::{Error, Queue};

/// How long it is tried to learn what came of a transaction, in time limits of one request: about as long as a session lasts.
const LOOKS: u32 = 3;

/// What is waited between two such looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

impl Shared {
    pub(super) fn may(actor: &Actor, needs: Role) -> Result<(), Refusal> {
        if actor.role >= needs { Ok(()) } else { Err(Refusal::Forbidden { needs, has: actor.role }) }
    }

    pub(super) async fn prepare(
        &self,
        order: &Order,
        actor: &Actor,
        reason: &str,
        now: Timestamp,
    ) -> Result<Prepared, Refusal> {
        // Before anything is read: who may not order it learns nothing by it.
        Self::may(actor, order.subject.role(order.action).unwrap_or(Role::Operator))?;
        let queue = self.connected.queue()?;
        let (store, limits) = (self.store.as_ref(), &self.limits);
        let desk = Desk { queue: &queue, store, clock: &self.clock, who: &actor.name, reason, limits, now };
        let prepared = desk.prepare(order).await?;
        Self::may(actor, prepared.needs)?;
        Ok(prepared)
    }

    pub(super) async fn carry_out(&self, order: &Order, given: Given<'_>) -> Result<Outcome, Refusal> {
        let Given { actor, reason, work, now } = given;
        let began = Instant::now();
        let prepared = self.prepare(order, actor, reason.as_str(), now).await?;
        let queue = self.connected.queue()?;
        let mut records = vec![given.ordered_one(order, &prepared)];
        records.extend(given.begun(&prepared.with_it));
        self.audit.write_all(records).await?;
        let mut outcome = self.steps(&queue, &prepared, given).await;
        let done = outcome.as_ref().ok();
        let (before, after) = prepared.values();
        let after = match prepared.priority {
            Some(_) => done.and(after),
            None => done.and_then(|done| done.after).map(str::to_owned),
        };
        let record = Record::Outcome {
            id: work.id,
            at: now + began.elapsed(),
            subject: None,
            outcome: outcome.as_ref().map_or_else(Refusal::label, Outcome::label).to_owned(),
            detail: outcome.as_ref().map_or_else(|refusal| Some(refusal.to_string()), |done| done.detail.clone()),
            before,
            after,
            cancelled_by: done.filter(|done| done.is_cancelled).and_then(|_| work.cancelled_by()),
            duration_seconds: began.elapsed().as_secs_f64(),
            by_alert: actor.source == Source::Alert,
        };
        let unwritten = self.end(record, work).await;
        if let Ok(done) = &mut outcome {
            done.warnings.extend(unwritten);
        }
        outcome
    }

    /// Writes down what came of an order. It is done already, so that nothing is taken back where this fails: it is told.
    pub(super) async fn end(&self, record: Record, work: &Work) -> Option<String> {
        let why = self.audit.write(record).await.err()?;
        tracing::error!(order = %work.id, "{why}; the order was carried out, and what came of it is not recorded");
        Some(format!("What came of it is not recorded: {why}."))
    }

    /// Commits what was prepared, step by step.
    pub(super) async fn steps(&self, queue: &Queue, prepared: &Prepared, given: Given<'_>) -> Result<Outcome, Refusal> {
        let mut commits = 0;
        match self.commit(queue, prepared, given, &mut commits).await {
            Ok(done) => Ok(done),
            Err(Halt::Queue(error @ Error::Unknown { .. })) if commits == 0 => {
                self.look_again(queue, prepared, error).await
            }
            Err(Halt::Queue(error)) if commits == 0 => Err(Refusal::of_job(error)),
            Err(Halt::Queue(error)) => Err(Refusal::in_part(&error)),
            Err(Halt::Unwritten(why)) if commits == 0 => Err(why.into()),
            Err(Halt::Unwritten(why)) => {
                Err(Refusal::InPart(format!("{why}; a part was done before, order it again for the rest")))
            }
        }
    }

    /// Looks again what came of one transaction, once the connection is back: the outcome of most that are lost in the
    /// middle can be learned then.
    async fn look_again(&self, queue: &Queue, prepared: &Prepared, error: Error) -> Result<Outcome, Refusal> {
        let transaction = match prepared.work.as_slice() {
            [Step::Job(plan)] => &plan.transaction,
            [Step::One(transaction)] => transaction,
            _ => return Err(Refusal::of_job(error)),
        };
        let until = Instant::now() + LOOKS * queue.time_limit();
        while Instant::now() < until {
            tokio::time::sleep(BETWEEN_LOOKS).await;
            let Ok(present) = self.connected.queue() else { continue };
            match present.look_again(transaction).await {
                Ok(Some(true)) => {
                    let (before, after, warnings) = (prepared.before, prepared.after, prepared.warnings.clone());
                    return Ok(Outcome { before, after, warnings, ..Outcome::default() });
                }
                Ok(Some(false)) if present.session() == queue.session() => {
                    let why = "the connection was lost before ZooKeeper had done it; nothing was done";
                    return Err(Refusal::Unavailable(why.to_owned()));
                }
                Ok(Some(false) | None) => break,
                Err(_) => {}
            }
        }
        Err(Refusal::of_job(error))
    }

    /// The same, and counts the transactions that are done.
    async fn commit(
        &self,
        queue: &Queue,
        prepared: &Prepared,
        given: Given<'_>,
        commits: &mut usize,
    ) -> Result<Outcome, Halt> {
        let work = given.work;
        let (before, after) = (prepared.before, prepared.after);
        let warnings = prepared.warnings.clone();
        let detail = prepared.work.is_empty().then(|| NOT_SHOWN.to_owned());
        let mut outcome = Outcome { before, after, version: None, warnings, detail, ..Outcome::default() };
        // Of a deletion each job is gone over twice: marked, and then removed.
        let passes = prepared.work.iter().filter(|step| matches!(step, Step::Many(_) | Step::ThenPurge(_))).count();
        let mut pass = 0;
        for step in &prepared.work {
            let total = prepared.jobs();
            let mut tell = |done: usize| {
                *commits += 1;
                work.set_reached((pass * total + done) / passes.max(1), total);
                go_on(work)
            };
            let is_whole = match step {
                Step::Job(plan) => {
                    outcome.version = Some(queue.commit_job_plan(plan).await?.version);
                    *commits += 1;
                    true
                }
                Step::One(transaction) => {
                    queue.commit(transaction).await?;
                    *commits += 1;
                    true
                }
                Step::Many(plan) => {
                    let done = queue.execute(plan, 0, |progress| tell(progress.jobs)).await?;
                    pass += 1;
                    outcome.detail = Some(counted(plan.jobs_until(done) as u64, "job", "jobs"));
                    done == plan.chunks.len()
                }
                Step::ThenPurge(batch) => {
                    let plan = queue.plan_purge(batch_target(self.store.as_ref(), *batch, given.now)).await?;
                    self.audit.write_all(given.begun(&jobs_of(plan.each_job()))).await?;
                    let done = queue.execute(&plan, 0, |progress| tell(progress.jobs.min(total))).await?;
                    pass += 1;
                    done == plan.chunks.len()
                }
                Step::BreakLock(lock, _) => {
                    // It was looked at before the order was written down, which may have taken a while.
                    queue.commit(&queue.plan_break_lock(lock).await?).await?;
                    *commits += 1;
                    true
                }
                Step::CleanUp(batches) => self.all(Action::Purge, batches, given, &mut outcome).await,
                Step::ReleaseJobs(collection) => {
                    let jobs = self.held_jobs(collection, given.now);
                    let held: Vec<_> = jobs.iter().map(|(job, _)| (job.clone(), JobState::Held.label())).collect();
                    self.audit.write_all(given.begun(&held)).await?;
                    self.all(Action::Release, &jobs, given, &mut outcome).await
                }
            };
            if !is_whole {
                // What is done of it stands; the rest is planned anew by whoever orders it again.
                (outcome.after, outcome.is_cancelled) = (before, true);
                break;
            }
        }
        Ok(outcome)
    }

    /// Does the same to each of many. Gives whether it came to its end.
    async fn all(
        &self,
        action: Action,
        items: &[(Subject, Option<i32>)],
        given: Given<'_>,
        outcome: &mut Outcome,
    ) -> bool {
        given.work.set_reached(0, items.len());
        let each = Each { action, to: None, priority: None };
        let unwritten = self.carry_out_each(each, items, given).await;
        outcome.warnings.extend(unwritten);
        outcome.count(given.work.reached());
        !outcome.is_cancelled
    }

    fn held_jobs(&self, collection: &str, now: Timestamp) -> Vec<(Subject, Option<i32>)> {
        let jobs = self.store.as_ref().and_then(|store| store.matching(&held_in(collection), now));
        jobs.unwrap_or_default().into_iter().map(|(job, version)| (Subject::Job(job), Some(version))).collect()
    }
}

/// Why no more of an order was committed.
enum Halt {
    Queue(Error),
    /// What is next could not be written down.
    Unwritten(NotWritten),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Queue(error)
    }
}

impl From<NotWritten> for Halt {
    fn from(why: NotWritten) -> Self {
        Self::Unwritten(why)
    }
}

fn go_on(work: &Work) -> ControlFlow<()> {
    if work.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// An order that was given: by whom and why, where its progress is kept, and when it began.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) actor: &'a Actor,
    pub(super) reason: &'a Reason,
    pub(super) work: &'a Work,
    pub(super) now: Timestamp,
}

impl Given<'_> {
    /// The first record of an order on one subject.
    pub(super) fn ordered_one(&self, order: &Order, prepared: &Prepared) -> Record {
        let mut record = self.ordered(order.action);
        if let Record::Ordered { subjects, count, before, after, operations, to, priority, force, with_jobs, .. } =
            &mut record
        {
            (*subjects, *count) = (vec![order.subject.to_string()], 1);
            (*before, *after) = prepared.values();
            *operations = prepared.recorded();
            *to = order.to.map(|to| to.label().to_owned());
            *priority = order.priority.map(Priority::number);
            (*force, *with_jobs) = (order.force, order.with_jobs);
        }
        record
    }

    /// A first record of an order over many, about these of its subjects, with what each of them was before.
    pub(super) fn ordered_many(
        &self,
        each: Each,
        of: usize,
        some: &[(Subject, Option<i32>)],
        before: Vec<String>,
    ) -> Record {
        let mut record = self.ordered(each.action);
        if let Record::Ordered { subjects, count, before_each, to, priority, .. } = &mut record {
            (*subjects, *count) = (some.iter().map(|(subject, _)| subject.to_string()).collect(), of as u64);
            *before_each = before;
            *to = each.to.map(|to| to.label().to_owned());
            *priority = each.priority.map(Priority::number);
        }
        record
    }

    /// The records of what is about to be changed besides an order's subject, each with the label of its state before.
    pub(super) fn begun(&self, items: &[(Subject, &'static str)]) -> Vec<Record> {
        let record = |some: &[(Subject, &'static str)]| {
            let before: Vec<_> = some.iter().map(|(_, before)| (*before).to_owned()).collect();
            let is_known = before.iter().any(|before| !before.is_empty());
            let subjects = some.iter().map(|(subject, _)| subject.to_string()).collect();
            self.begun_with(subjects, if is_known { before } else { Vec::new() }, Vec::new())
        };
        items.chunks(SUBJECTS_A_LINE).map(record).collect()
    }

    /// The records of what is about to be changed of one item of a list: of a repair, what is written and replaced.
    pub(super) fn begun_item(&self, prepared: &Prepared) -> Vec<Record> {
        let mut records = self.begun(&prepared.with_it);
        if prepared.order.action == Action::Mend && !prepared.work.is_empty() {
            let subjects = vec![prepared.order.subject.to_string()];
            records.push(self.begun_with(subjects, Vec::new(), prepared.recorded()));
        }
        records
    }

    fn begun_with(&self, subjects: Vec<String>, before_each: Vec<String>, operations: Vec<String>) -> Record {
        let by_alert = self.actor.source == Source::Alert;
        Record::Begun { id: self.work.id, at: self.now, subjects, before_each, operations, by_alert }
    }

    /// The first record of the order, without what it is about.
    pub(super) fn ordered(&self, action: Action) -> Record {
        let actor = self.actor;
        Record::Ordered {
            id: self.work.id,
            at: self.now,
            actor: actor.name.clone(),
            role: actor.role.label().to_owned(),
            source: actor.source.label().to_owned(),
            from: actor.from.map(|from| from.to_string()),
            action: action.label().to_owned(),
            subjects: Vec::new(),
            count: 0,
            reason: self.reason.to_string(),
            before: None,
            after: None,
            before_each: Vec::new(),
            to: None,
            priority: None,
            force: false,
            with_jobs: false,
            operations: Vec::new(),
        }
    }
}

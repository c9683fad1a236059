//! Preparation of an action: reads and checks its target, and plans the writes, to be shown or committed.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;

use super::action::{Action, Requested};
use super::actor::Role;
use super::clock::Clock;
use super::kind::ActionKind;
use super::precondition::Precondition;
use super::refusal::Refusal;
use super::table::{BatchesAction, FaultAction, LockAction};
use super::target::Target;
use crate::mirror::MirrorStore;
use crate::words::counted;
use queuekeeper_queue::fault::Limits;
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::record::OperatorNote;
use queuekeeper_queue::state::State;
use queuekeeper_queue::{BulkPlan, JobPlan, Lock, Operation, PlannedJob, Queue, Transaction, WithdrawalPlan};

mod batch;
mod job;
mod other;

pub(super) use batch::batch_target;
pub(super) use other::held_in;

/// A prepared action: everything was read and checked, and nothing is written yet.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The action.
    pub action: Action,
    /// The role that it requires, now that its effects are known.
    pub needs: Role,
    /// The label of the target's state before; `None` if it has none.
    pub before: Option<&'static str>,
    /// The label of the target's state after; `None` if it has none or is removed.
    pub after: Option<&'static str>,
    /// The priority before, if it can be read, and after; `None` if the priority is not changed.
    pub priority: Option<(Option<Priority>, Priority)>,
    /// The current state of the target: the precondition for an action that is requested after viewing this.
    pub precondition: Precondition,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
    /// Znodes whose data is removed or replaced, each with that data.
    pub removed: Vec<(String, Vec<u8>)>,
    /// Further items that are changed or removed, each with the label of its state before, or empty if that is not
    /// known. Those of steps that are planned later are not included.
    pub(super) with_it: Vec<(Target, &'static str)>,
    pub(super) steps: Vec<Step>,
}

/// The detail of a repair whose fault another repair has removed.
pub(super) const NOT_PRESENT: &str = "the fault is not present now; nothing was written";

/// One of the planned steps, in order.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A change of a job.
    Job(Box<JobPlan>),
    /// One transaction.
    One(Transaction),
    /// Many, each of whole jobs.
    Many(BulkPlan),
    /// A step that is planned after those before it: removing the znodes of a batch that they delete.
    ThenPurge(queuekeeper_queue::id::BatchId),
    /// Withdrawing a batch.
    Withdraw(WithdrawalPlan),
    /// Breaking a lock, which is read once more just before.
    BreakLock(Lock, Transaction),
    /// Purging finished batches, one by one, each at this version.
    CleanUp(Vec<(Target, Option<i32>)>),
    /// Releasing the held batches and jobs of a collection, one by one.
    ReleaseHeld(Box<str>),
}

/// What is needed to prepare an action.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActionPlanner<'a> {
    pub(super) queue: &'a Queue,
    /// The mirror, whose known paths save round trips; `None` for the command line.
    pub(super) store: Option<&'a MirrorStore>,
    /// What it has of deposits; `None` for the command line, and where there is none.
    pub(super) catalogue: Option<&'a Catalogue>,
    pub(super) clock: &'a Clock,
    pub(super) who: &'a str,
    pub(super) reason: &'a str,
    /// The age at which an item counts as a fault.
    pub(super) limits: &'a Limits,
    pub(super) now: Timestamp,
}

impl ActionPlanner<'_> {
    /// The message for the item's status.
    fn message(&self) -> String {
        OperatorNote { who: self.who, why: self.reason }.to_string()
    }
}

impl Prepared {
    fn new(action: &Action, needs: Role, steps: Vec<Step>) -> Self {
        let with_it = steps.iter().filter_map(|step| match step {
            Step::Many(plan) => Some(jobs_of(plan.each_job())),
            Step::Withdraw(plan) => Some(jobs_of(plan.jobs.iter())),
            _ => None,
        });
        Self {
            action: action.clone(),
            needs,
            before: None,
            after: None,
            priority: None,
            precondition: Precondition::default(),
            warnings: Vec::new(),
            removed: Vec::new(),
            with_it: with_it.flatten().collect(),
            steps,
        }
    }

    /// Sets the state and the version of the target's status.
    fn with_state<S: State>(mut self, state: Option<S>, version: Option<i32>) -> Self {
        let label = state.map_or("other", State::label);
        self.precondition = Precondition { state: Some(label.into()), version, ..Precondition::default() };
        self
    }

    /// Sets the identity of the lock.
    fn with_lock(mut self, lock: &Lock) -> Self {
        self.precondition.czxid = Some(lock.czxid);
        self
    }

    /// Sets the hash of the plan, and refuses it if the caller was shown another plan.
    fn with_plan(mut self) -> Result<Self, Refusal> {
        let mut hasher = DefaultHasher::new();
        self.removed.hash(&mut hasher);
        for step in &self.steps {
            match step {
                Step::One(transaction) | Step::BreakLock(_, transaction) => {
                    // Not the data of the changed znodes: it contains a time, which is later in each plan.
                    let nodes = transaction.operations().iter().map(|operation| match operation {
                        Operation::Create { path, .. } => (0, path.to_string(), None),
                        Operation::Check { path, version } => (1, path.to_string(), *version),
                        Operation::Set { path, version, .. } => (2, path.to_string(), Some(*version)),
                        Operation::Delete { path, version } => (3, path.to_string(), *version),
                    });
                    nodes.for_each(|node| node.hash(&mut hasher));
                }
                Step::CleanUp(batches) => {
                    for (batch, version) in batches {
                        (batch.to_string(), version).hash(&mut hasher);
                    }
                }
                Step::Job(_) | Step::Many(_) | Step::ThenPurge(_) | Step::Withdraw(_) | Step::ReleaseHeld(_) => {}
            }
        }
        let plan = hasher.finish();
        if self
            .action
            .precondition
            .as_ref()
            .and_then(|precondition| precondition.plan)
            .is_some_and(|shown| shown != plan)
        {
            let why = "the plan has changed since it was shown; view it again. Nothing was done";
            return Err(Refusal::conflict(why));
        }
        self.precondition.plan = Some(plan);
        Ok(self)
    }

    fn between(mut self, before: Option<impl State>, after: Option<impl State>) -> Self {
        (self.before, self.after) = (before.map(State::label), after.map(State::label));
        self
    }

    fn warn(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// What is changed, before and after, as it is recorded: the state, or the priority if that is changed.
    pub(crate) fn values(&self) -> (Option<String>, Option<String>) {
        match self.priority {
            Some((before, after)) => (before.map(priority_text), Some(priority_text(after))),
            None => (self.before.map(str::to_owned), self.after.map(str::to_owned)),
        }
    }

    /// The planned writes, one operation a line; of many transactions, the first few and their number.
    #[must_use]
    pub fn operations(&self) -> Vec<String> {
        /// How many lines are shown.
        const SHOWN: usize = 60;
        let mut lines = Vec::new();
        let mut left_out = 0;
        let mut add = |transaction: &Transaction| {
            for operation in transaction.operations() {
                if lines.len() < SHOWN { lines.push(operation.to_string()) } else { left_out += 1 }
            }
        };
        let mut then = Vec::new();
        for step in &self.steps {
            match step {
                Step::Job(plan) => add(&plan.transaction),
                Step::One(transaction) | Step::BreakLock(_, transaction) => add(transaction),
                Step::Many(plan) => plan.chunks.iter().for_each(|chunk| add(&chunk.transaction)),
                Step::Withdraw(plan) => {
                    let jobs = counted(plan.jobs.len() as u64, "job", "jobs");
                    then.push(format!("set {} and its {jobs} to Deleted: all of them, or none", plan.batch));
                }
                Step::ThenPurge(batch) => {
                    then.push(format!("then purge {batch}: remove its znodes and those of its jobs"));
                }
                Step::CleanUp(batches) => {
                    let named = batches.iter().take(SHOWN);
                    then.extend(
                        named.map(|(batch, _)| format!("purge {batch}: remove its znodes and those of its jobs")),
                    );
                    if batches.len() > SHOWN {
                        let more = (batches.len() - SHOWN) as u64;
                        then.push(format!("and {}", counted(more, "batch more", "batches more")));
                    }
                }
                Step::ReleaseHeld(collection) => {
                    then.push(format!("then release the batches and jobs of {collection} that are Held, one by one"));
                }
            }
        }
        if left_out > 0 {
            lines.push(format!("and {left_out} more operations"));
        }
        lines.extend(then);
        lines
    }

    /// The operations as recorded: the planned writes, and the data that a repair does not keep.
    pub(super) fn recorded(&self) -> Vec<String> {
        let mut lines = self.operations();
        lines.extend(self.replaced());
        lines
    }

    /// The lasting changes of a repair, and the data that it does not keep, in one line; `None` for other actions.
    pub(super) fn repaired(&self) -> Option<String> {
        if self.action.kind() != ActionKind::Repair {
            return None;
        }
        if self.steps.is_empty() {
            return Some(NOT_PRESENT.to_owned());
        }
        let mut changes = Vec::new();
        for step in &self.steps {
            if let Step::One(transaction) = step {
                changes.extend(transaction.lasting().map(ToString::to_string));
            }
        }
        changes.extend(self.replaced());
        Some(changes.join("; "))
    }

    /// The data that a repair does not keep, complete. For purged data, only that it existed.
    fn replaced(&self) -> impl Iterator<Item = String> {
        let kept = if self.action.kind() == ActionKind::Repair { self.removed.as_slice() } else { &[] };
        kept.iter().map(|(path, data)| format!("{path} was {}", data.escape_ascii()))
    }

    /// Refuses the removal of an unfinished item that is broken, which is possible only by naming that item, and not in
    /// a list or by a rule.
    pub(super) fn check_listed(&self) -> Result<(), Refusal> {
        if self.action.kind() == ActionKind::Purge && !self.removed.is_empty() {
            let on = self.action.target();
            let why =
                format!("whether {on} is finished is unknown, because it is broken: purge it by itself, not in a list");
            return Err(Refusal::conflict(why));
        }
        Ok(())
    }

    /// About how many jobs it changes or removes; 0 if it is about something else.
    #[must_use]
    pub fn jobs(&self) -> usize {
        let jobs = |step: &Step| match step {
            Step::Job(_) => 1,
            Step::Many(plan) => plan.jobs(),
            Step::Withdraw(plan) => plan.jobs.len(),
            Step::One(_) | Step::BreakLock(..) | Step::ThenPurge(_) | Step::CleanUp(_) | Step::ReleaseHeld(_) => 0,
        };
        self.steps.iter().map(jobs).sum()
    }

    /// How many batches a cleanup purges; 0 for another action.
    #[must_use]
    pub fn batches(&self) -> usize {
        let batches = |step: &Step| if let Step::CleanUp(batches) = step { batches.len() } else { 0 };
        self.steps.iter().map(batches).sum()
    }
}

/// The jobs of a plan, each with the label of its state before.
pub(super) fn jobs_of<'a>(jobs: impl Iterator<Item = &'a PlannedJob>) -> Vec<(Target, &'static str)> {
    jobs.map(|(job, state)| (Target::Job(*job), state.map_or("", State::label))).collect()
}

/// A priority as it is recorded.
pub(super) fn priority_text(priority: Priority) -> String {
    format!("priority {priority}")
}

impl ActionPlanner<'_> {
    /// Reads and checks the target of an action, and plans the writes.
    pub(super) async fn prepare(&self, action: &Action) -> Result<Prepared, Refusal> {
        let needs = action.role();
        match &action.requested {
            Requested::Job(id, on_job) => self.job(action, needs, *id, *on_job).await,
            Requested::Batch(id, on_batch) => self.batch(action, needs, *id, *on_batch).await,
            Requested::Request(queue, id, on_request) => self.request(action, needs, (*queue, *id), *on_request).await,
            Requested::Queue(queue, on_queue) => self.queue_lock(action, needs, *queue, *on_queue).await,
            Requested::Collection(mnemonic, on_collection) => {
                self.collection(action, needs, mnemonic, *on_collection).await
            }
            Requested::Store(name, on_store) => self.store(action, needs, name, *on_store).await,
            Requested::Lock(lock, LockAction::BreakLock { force }) => {
                self.break_lock(action, needs, lock, *force).await
            }
            Requested::Fault(fault, item, FaultAction::Repair { force }) => {
                self.repair(action, needs, (*fault, item), *force).await
            }
            Requested::Batches(BatchesAction::CleanUp) => self.clean_up(action, needs).await,
        }
    }
}

/// Refuses an action whose target has another state or version than its caller saw, and reports the current one.
pub(super) fn check_precondition<S: State>(
    precondition: Option<&Precondition>,
    target: &Target,
    state: Option<S>,
    version: Option<i32>,
) -> Result<(), Refusal> {
    let Some(precondition) = precondition else { return Ok(()) };
    let label = state.map_or("other", State::label);
    let is_other_state = precondition.state.as_deref().is_some_and(|precondition| precondition != label);
    let is_other_version = precondition.version.is_some() && precondition.version != version;
    if !is_other_state && !is_other_version {
        return Ok(());
    }
    let name = state.map_or("in an unknown state", State::name);
    let why = if is_other_state {
        format!("{target} is {name} now; nothing was done")
    } else {
        format!("{target} is {name} as before, but was changed in the meantime; nothing was done")
    };
    Err(Refusal::Conflict { why, state: Some(label), version })
}

//! Decisions on tasks that wait for an operator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use queuekeeper_catalogue::tasks::{Decided, Decision, OpenTask, TaskState};

use super::kind::MillActionKind;
use super::{Ended, MillActions, MillParts, Requested};
use crate::actions::actor::{Actor, Role};
use crate::actions::audit::{Entry, Finished};
use crate::actions::execution::{ActionOutcome, Progress};
use crate::actions::outcome::{CONFLICT, DONE};
use crate::actions::reason::Reason;
use crate::actions::refusal::Refusal;

/// How many tasks one decision is about at most.
pub const MOST_TASKS: usize = 1000;

/// How many tasks are described in the record of a request.
const DESCRIBED: usize = 60;

/// The outcome of a task that is not there.
const MISSING: &str = "missing";

/// What is decided of tasks in one of the states in which they wait for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskDecision {
    /// What becomes of them.
    pub decided: Decided,
    /// The state in which they wait; those in another one are left alone.
    pub of: TaskState,
}

impl TaskDecision {
    fn kind(self) -> MillActionKind {
        match (self.decided, self.of) {
            (Decided::Drop, _) => MillActionKind::DropTask,
            (Decided::Retry, TaskState::Held) => MillActionKind::ReleaseTask,
            (Decided::Retry, TaskState::Dead | TaskState::Waiting | TaskState::Paused | TaskState::Restore) => {
                MillActionKind::RetryTask
            }
        }
    }

    /// The role that it requires: what is held is dropped by those who may release it.
    #[must_use]
    pub fn role(self) -> Role {
        match self.of {
            TaskState::Held => MillActionKind::ReleaseTask.role(),
            TaskState::Dead | TaskState::Waiting | TaskState::Paused | TaskState::Restore => self.kind().role(),
        }
    }

    /// A task as records name it.
    #[must_use]
    pub fn target(number: u64) -> String {
        format!("task:{number}")
    }

    /// The state of a task of which it is carried out.
    fn before(self) -> String {
        self.of.as_str().to_owned()
    }

    /// The state of a task of which it was carried out; `None` where it is gone.
    fn after(self) -> Option<String> {
        match self.decided {
            Decided::Retry => Some(TaskState::Waiting.as_str().to_owned()),
            Decided::Drop => None,
        }
    }

    /// What a task is called that waits for it.
    fn noun(self) -> &'static str {
        match self.of {
            TaskState::Held => "held",
            TaskState::Dead => "a dead letter",
            TaskState::Waiting => "waiting",
            TaskState::Paused => "paused",
            TaskState::Restore => "waiting for its store",
        }
    }
}

impl MillActions {
    /// Which of these tasks wait for an operator, by the state in which they do.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub async fn undecided(&self, tasks: &[u64]) -> Result<BTreeMap<TaskState, Vec<u64>>, Refusal> {
        let found = self.mill.catalogue.tasks(tasks).await.map_err(|error| Refusal::of_catalogue(&error))?;
        let mut undecided = BTreeMap::<_, Vec<_>>::new();
        for open in found.iter().filter(|open| open.state.is_undecided()) {
            undecided.entry(open.state).or_default().push(open.task.id);
        }
        Ok(undecided)
    }

    /// Carries out a decision on tasks, one by one. Those that do not wait for it any more are left alone, which their
    /// outcomes say.
    ///
    /// # Errors
    /// Why it is refused. Nothing was done, except with [`Refusal::InPart`].
    pub async fn decide(
        &self,
        decision: TaskDecision,
        tasks: &[u64],
        actor: &Actor,
        reason: &Reason,
    ) -> Result<Entry, Refusal> {
        let kind = decision.kind();
        self.check_given_role(kind, actor, decision.role())?;
        let numbers: BTreeSet<u64> = tasks.iter().copied().collect();
        if numbers.is_empty() || numbers.len() > MOST_TASKS {
            let why = format!("one decision can cover 1 to {MOST_TASKS} tasks, not {}", numbers.len());
            return Err(self.refused(kind, actor, Refusal::Invalid(why)));
        }
        let numbers: Vec<_> = numbers.into_iter().collect();
        let found = self.mill.catalogue.tasks(&numbers).await;
        let found = found.map_err(|error| self.refused(kind, actor, Refusal::of_catalogue(&error)))?;
        let found: BTreeMap<u64, OpenTask> = found.into_iter().map(|open| (open.task.id, open)).collect();
        let state = |number| found.get(number).map(|open| open.state.as_str()).unwrap_or_default().to_owned();
        let requested = Requested {
            kind,
            targets: numbers.iter().map(|number| TaskDecision::target(*number)).collect(),
            before_each: numbers.iter().map(state).collect(),
            change: match (&numbers[..], found.values().next()) {
                ([_], Some(open)) if open.state == decision.of => (Some(decision.before()), decision.after()),
                _ => (None, None),
            },
            operations: described(found.values()),
            actor: actor.clone(),
            reason: reason.clone(),
        };
        let (mill, by) = (Arc::clone(&self.mill), (actor.name.clone(), reason.clone()));
        self.run(requested, async move { each(&mill, decision, &numbers, &found, by).await }).await
    }
}

/// What tasks would do, in words.
fn described<'a>(tasks: impl ExactSizeIterator<Item = &'a OpenTask>) -> Vec<String> {
    let left = tasks.len().saturating_sub(DESCRIBED);
    let line = |open: &OpenTask| {
        let (task, subject) = (&open.task, &open.task.subject);
        let key = subject.key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
        let from = task.source.as_ref().map(|store| format!(" from {store}")).unwrap_or_default();
        let to = subject.destination.as_ref().map(|store| format!(" to {store}")).unwrap_or_default();
        format!("task {}: {} {}/{}{key}{from}{to}", task.id, subject.kind.as_str(), subject.account, subject.space)
    };
    let mut lines: Vec<_> = tasks.take(DESCRIBED).map(line).collect();
    if left > 0 {
        lines.push(format!("and {left} more tasks"));
    }
    lines
}

async fn each(
    mill: &MillParts,
    decision: TaskDecision,
    numbers: &[u64],
    found: &BTreeMap<u64, OpenTask>,
    (user, reason): (String, Reason),
) -> Ended {
    let TaskDecision { decided, of } = decision;
    let carried_out = Decision { what: decided, of: &[of], user: &user, reason: reason.as_str() };
    let (mut items, mut broken_off) = (Vec::new(), None);
    let mut progress = Progress { of: numbers.len() as u64, ..Progress::default() };
    for &number in numbers {
        let was_waiting = match mill.catalogue.decide_task(number, &carried_out).await {
            Ok(was_waiting) => was_waiting,
            Err(error) => {
                broken_off = Some(error);
                break;
            }
        };
        let mut item = Finished { target: Some(TaskDecision::target(number)), ..Finished::default() };
        if was_waiting {
            progress.done += 1;
            item = Finished { outcome: DONE, before: Some(decision.before()), after: decision.after(), ..item };
        } else {
            progress.failed += 1;
            let (outcome, why) = if found.contains_key(&number) {
                let noun = decision.noun();
                (CONFLICT, format!("task {number} is no longer {noun}: it was decided, or requested again"))
            } else {
                (MISSING, format!("there is no task {number}: it was completed or dropped"))
            };
            item = Finished { outcome, detail: Some(why), ..item };
        }
        items.push(item);
    }
    let whole = match broken_off {
        Some(error) if progress.done == 0 => Err(Refusal::of_catalogue(&error)),
        Some(error) => Err(Refusal::InPart(format!("{}: the {error}", progress.in_words()))),
        None if progress.done == 0 => {
            let why = items.first().and_then(|item| item.detail.clone()).unwrap_or_default();
            Err(Refusal::conflict(format!("{why}; nothing was done")))
        }
        None => {
            let mut outcome = ActionOutcome::default();
            outcome.count(progress);
            Ok((outcome.label(), outcome.detail))
        }
    };
    Ended { items, whole }
}

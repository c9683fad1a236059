//! Why a copy is not what its source is: the one place for the words of pages, API and command line.

use jiff::Timestamp;
use queuekeeper_catalogue::pauses::MillPause;
use queuekeeper_catalogue::tasks::{OpenTask, TaskKind, TaskState};
use queuekeeper_store::{Key, StoreName};

use crate::account::Account;
use crate::words::moment;

/// A copy with its open tasks and the pauses in force.
#[derive(Clone, Copy, Debug)]
pub struct CopyTasks<'a> {
    /// Whose it is.
    pub account: &'a Account,
    /// Its key.
    pub key: &'a Key,
    /// The store that it is copied from.
    pub source: &'a StoreName,
    /// The store that it is to be in.
    pub destination: &'a StoreName,
    /// The open tasks of the item.
    pub tasks: &'a [OpenTask],
    /// The pauses in force.
    pub pauses: &'a [MillPause],
}

impl CopyTasks<'_> {
    /// Why the copy waits, as the predicate of a sentence about it without a full stop: `waits in duplication-high for
    /// a worker`. `None` where nothing is under way.
    #[must_use]
    pub fn why(&self, now: Timestamp) -> Option<String> {
        self.left_out().or_else(|| self.task(now)).or_else(|| {
            let audit = self.tasks.iter().find(|open| open.task.subject.kind == TaskKind::Audit)?;
            let store = audit.task.subject.destination.as_ref()?;
            Some(format!("is requested once the change in {store} is processed"))
        })
    }

    /// What its own task waits for, where it has one.
    fn task(&self, now: Timestamp) -> Option<String> {
        let is_own = |open: &&OpenTask| {
            let subject = &open.task.subject;
            subject.kind == TaskKind::Duplicate && subject.destination.as_ref() == Some(self.destination)
        };
        self.tasks.iter().find(is_own).map(|open| self.of_task(open, now))
    }

    /// Why it is not made at all, where a pattern leaves it out.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let pattern = self.account.leaves_out(self.destination, self.key)?;
        Some(format!("is left out: {} does not accept keys such as {pattern}; existing copies stay", self.destination))
    }

    /// Why nothing is begun for it, where a pause stops that.
    #[must_use]
    pub fn paused(&self) -> Option<String> {
        let stores = [self.source, self.destination];
        let MillPause { scope, user, reason, since, .. } =
            self.pauses.iter().find(|pause| pause.scope.stops(&self.account.name, stores))?;
        Some(format!("waits because {user} paused {scope} at {}: {reason}", moment(*since)))
    }

    /// What a task waits for, as the predicate of a sentence about it without a full stop.
    #[must_use]
    pub fn of_task(&self, open: &OpenTask, now: Timestamp) -> String {
        let number = open.task.id;
        let last = open.task.errors.last().map(|last| last.error.as_str()).unwrap_or_default();
        let closed = || self.account.closed_until(Some(self.source), self.destination, now);
        let has_worker = open.worker.is_some() && open.visible.is_some_and(|end| end > now);
        if let Some(paused) = self.paused().filter(|_| !open.state.is_undecided() && !has_worker) {
            return paused;
        }
        match (open.state, &open.worker, open.visible) {
            (TaskState::Held, ..) => {
                format!("is held by the brake until task {number} is released or dropped: {last}")
            }
            (TaskState::Paused, ..) => "will wait for a worker again in a moment: its pause has ended".to_owned(),
            (TaskState::Dead, ..) => format!("failed in every attempt and is dead letter {number}: {last}"),
            (TaskState::Restore, ..) => for_store(open),
            (TaskState::Waiting, Some(worker), Some(end)) if end > now => {
                format!("is in progress on {worker} (attempt {})", open.attempts)
            }
            (TaskState::Waiting, _, Some(at)) if at > now && !last.is_empty() => {
                format!("failed and will be retried at {}: {last}", moment(at))
            }
            (TaskState::Waiting, _, Some(at)) if at > now => match closed() {
                Some((store, begin)) => format!("waits for the hours of {store}, which begin at {}", moment(begin)),
                None => {
                    format!("waits for an earlier task or for its time; next check at {}", moment(at))
                }
            },
            (TaskState::Waiting, ..) => format!("waits in {} for a worker", open.task.home.as_str()),
        }
    }
}

/// Why a task waits until its store can be read, as the predicate of a sentence without a full stop.
fn for_store(open: &OpenTask) -> String {
    let why = open.waits_for.as_deref().unwrap_or("waits until its store can be read");
    let again = open.visible.map(|at| format!("; next check at {}", moment(at)));
    format!("{why}{}", again.unwrap_or_default())
}

//! Why the copies of an item are not what they are to be.

use jiff::Timestamp;
use queuekeeper_catalogue::index::IndexedItem;
use queuekeeper_catalogue::pauses::MillPause;
use queuekeeper_catalogue::tasks::{OpenTask, TaskKind};
use queuekeeper_mill::account::Account;
use queuekeeper_mill::policy::Policy;
use queuekeeper_mill::why::CopyTasks;
use queuekeeper_store::{SpaceName, StoreName};

use super::spaces::Standing;
use super::wanted::{differs, pairs};
use crate::views::show::as_sentence;
use crate::words::moment;

/// An item, and all that decides why it is not done.
pub(super) struct Looked<'a> {
    pub(super) account: &'a Account,
    pub(super) policy: &'a Policy,
    pub(super) space: &'a SpaceName,
    pub(super) item: &'a IndexedItem,
    pub(super) tasks: &'a [OpenTask],
    pub(super) pauses: &'a [MillPause],
    pub(super) standing: &'a Standing,
}

impl Looked<'_> {
    /// Why the copies are not what they are to be.
    pub(super) fn causes(&self, now: Timestamp) -> Vec<String> {
        let mut causes = Vec::new();
        if self.policy.pairs(self.space).is_empty() {
            let why = if self.policy.ignored.contains(self.space) {
                "the policy ignores it"
            } else {
                "no policy names a copy of it"
            };
            causes.push(format!("The space {} is not copied: {why}.", self.space));
        }
        for (source, destination) in pairs(self.account, self.policy, self.space) {
            let copy = self.copy_tasks(source, destination);
            if copy.left_out().is_some() {
                continue;
            }
            match copy.why(now) {
                Some(why) => causes.push(as_sentence(&format!("the copy in {destination} {why}"))),
                None if differs(self.account, self.item, source, destination) => {
                    let paused = copy.paused().map(|why| as_sentence(&format!("the copy in {destination} {why}")));
                    causes.push(paused.unwrap_or_else(|| self.without_task(source, destination)));
                }
                None => {}
            }
        }
        causes.extend(self.in_stores(now));
        causes
    }

    /// The checks and repairs of copies that have not ended.
    fn in_stores(&self, now: Timestamp) -> impl Iterator<Item = String> {
        self.tasks.iter().filter_map(move |open| {
            let subject = &open.task.subject;
            let what = match subject.kind {
                TaskKind::Bit | TaskKind::Check => "check",
                TaskKind::Repair => "repair",
                // Copies and bit errors have causes of their own; the others are of no item.
                TaskKind::Duplicate
                | TaskKind::Audit
                | TaskKind::BitPage
                | TaskKind::BitReport
                | TaskKind::BitError
                | TaskKind::StorageStats
                | TaskKind::Noop => return None,
            };
            let store = subject.destination.as_ref()?;
            let why = self.copy_tasks(store, store).of_task(open, now);
            Some(as_sentence(&format!("the {what} of the copy in {store} {why}")))
        })
    }

    /// The copies that are not made at all.
    pub(super) fn left_out(&self) -> Vec<String> {
        let pairs = pairs(self.account, self.policy, self.space);
        let why = pairs.filter_map(|(source, destination)| {
            let why = self.copy_tasks(source, destination).left_out()?;
            Some(as_sentence(&format!("the copy in {destination} {why}")))
        });
        why.collect()
    }

    fn copy_tasks<'a>(&'a self, source: &'a StoreName, destination: &'a StoreName) -> CopyTasks<'a> {
        let Self { account, item, tasks, pauses, .. } = *self;
        CopyTasks { account, key: &item.key, source, destination, tasks, pauses }
    }

    fn without_task(&self, source: &StoreName, destination: &StoreName) -> String {
        let morsel = self.standing.morsel(&self.account.name, self.space, source.as_str(), destination.as_str());
        match morsel {
            Some(morsel) if morsel.error.is_some() => {
                let why = as_sentence(morsel.error.as_deref().unwrap_or_default());
                format!("The copy in {destination} differs from {source}, and the loop cannot scan the space: {why}")
            }
            Some(morsel) if morsel.marker.as_ref().is_none_or(|marker| *marker < self.item.key) => {
                format!(
                    "The copy in {destination} differs from {source}; the current loop has not reached this key yet."
                )
            }
            Some(_) | None => {
                let due = self.standing.next_loop.map(|due| format!(", which is due at {},", moment(due)));
                let due = due.unwrap_or_default();
                format!(
                    "The copy in {destination} differs from {source}, and there is no task for that. If the change is recent, a process of the mill creates one within seconds; otherwise, the next loop{due} does."
                )
            }
        }
    }
}

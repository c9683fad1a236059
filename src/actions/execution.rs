//! Running and recently finished actions, which can be looked up by their id.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::audit::ActionId;
use super::kind::ActionKind;
use super::outcome::{CANCELLED, CONFLICT, DONE, IN_PART, UNKNOWN};
use super::refusal::Refusal;
use super::target::Target;

/// How many finished actions are kept; the audit trail has more.
const MAX_FINISHED: usize = 1_000;

/// How many idempotency keys are kept.
const MAX_KEYS: usize = 10_000;

/// How many failed items of a bulk action are kept, and how many repaired ones.
const MAX_NAMED_ITEMS: usize = 1_000;

/// How many items of a bulk action are kept that were done.
const MAX_DONE_ITEMS: usize = 100;

/// How many characters are kept of what was written to an item.
const MAX_WRITTEN: usize = 1_000;

/// The outcome of an action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionOutcome {
    /// What was changed, before: the label of the target's state, or its priority where that is set; `None` if it has
    /// none.
    pub before: Option<String>,
    /// The same now; `None` if it has none or was removed.
    pub after: Option<String>,
    /// The version of the target's status now, if known.
    pub version: Option<i32>,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
    /// What was done, in figures, for bulk actions.
    pub detail: Option<String>,
    /// Whether it was cancelled. What was done before stays.
    pub is_cancelled: bool,
    /// Of a bulk action: how many items were done, failed, or are unknown.
    pub progress: Option<Progress>,
}

impl ActionOutcome {
    /// The label of the outcome.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self.progress {
            // An unknown outcome needs a check, also where the rest was cancelled.
            Some(Progress { unknown: 1.., .. }) => UNKNOWN,
            _ if self.is_cancelled => CANCELLED,
            Some(Progress { done: 0, failed: 1.., .. }) => CONFLICT,
            Some(Progress { failed: 1.., .. }) => IN_PART,
            Some(_) | None => DONE,
        }
    }

    /// Sets the number of items done.
    pub(super) fn count(&mut self, progress: Progress) {
        self.is_cancelled = progress.ended() < progress.of;
        (self.detail, self.progress) = (Some(progress.in_words()), Some(progress));
    }
}

/// A running or finished action.
#[derive(Debug)]
pub struct Execution {
    /// Its id.
    pub id: ActionId,
    /// The kind of the action.
    pub action: ActionKind,
    /// Its target or targets, in a few words.
    pub on: String,
    /// The actor's reason.
    pub reason: String,
    /// The actor's name.
    pub actor: String,
    done: AtomicU64,
    failed: AtomicU64,
    unknown: AtomicU64,
    of: AtomicU64,
    done_items: Mutex<Vec<DoneItem>>,
    not_done: Mutex<Vec<(String, Refusal)>>,
    written: Mutex<Vec<(String, String)>>,
    cancelled_by: OnceLock<String>,
    over: watch::Sender<Option<Result<ActionOutcome, Refusal>>>,
}

/// The change of an item.
#[derive(Debug)]
pub(super) struct ItemChange {
    /// Its state, or what else the action changes, after the action.
    pub(super) after: Option<String>,
    /// What a repair wrote.
    pub(super) written: Option<String>,
}

/// An item of a bulk action that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoneItem {
    /// The item.
    pub on: Target,
    /// Its state before, or what else was changed; `None` if that is not known.
    pub before: Option<String>,
    /// The same after; `None` if it was removed.
    pub after: Option<String>,
}

/// The progress of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// How many items were done.
    pub done: u64,
    /// How many items were not done.
    pub failed: u64,
    /// How many items have an unknown outcome; they count in neither of the other two.
    pub unknown: u64,
    /// How many items there are; 0 while that is not known.
    pub of: u64,
}

impl Progress {
    /// How many items have any outcome.
    #[must_use]
    pub fn ended(self) -> u64 {
        self.done + self.failed + self.unknown
    }

    pub(super) fn in_words(self) -> String {
        let left = self.of.saturating_sub(self.ended());
        format!("{} done, {} not done, {} unknown, {left} not started", self.done, self.failed, self.unknown)
    }
}

impl Execution {
    pub(super) fn new(id: ActionId, action: ActionKind, on: String, reason: String, actor: String) -> Arc<Self> {
        Arc::new(Self {
            id,
            action,
            on,
            reason,
            actor,
            done: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            of: AtomicU64::new(0),
            done_items: Mutex::default(),
            not_done: Mutex::default(),
            written: Mutex::default(),
            cancelled_by: OnceLock::new(),
            over: watch::Sender::new(None),
        })
    }

    /// Its progress.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let (done, failed, unknown) = (read(&self.done), read(&self.failed), read(&self.unknown));
        Progress { done, failed, unknown, of: read(&self.of) }
    }

    /// Its outcome; `None` while it is running.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<ActionOutcome, Refusal>> {
        self.over.borrow().clone()
    }

    /// Waits until it has finished.
    ///
    /// # Errors
    /// Why it was refused or failed.
    pub async fn finished(&self) -> Result<ActionOutcome, Refusal> {
        let mut over = self.over.subscribe();
        let found = over.wait_for(Option::is_some).await;
        let outcome = found.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| Err(Refusal::Unknown("the server was shut down meanwhile".to_owned())))
    }

    /// The items of a bulk action that were done, the first hundred; the audit trail has all.
    #[must_use]
    pub fn done_items(&self) -> Vec<DoneItem> {
        self.done_items.lock().clone()
    }

    /// The items that were not done and why, the first thousand.
    #[must_use]
    pub fn not_done(&self) -> Vec<(String, Refusal)> {
        self.not_done.lock().clone()
    }

    /// The items that were repaired and what was written to each, the first thousand; the audit trail has all.
    #[must_use]
    pub fn written(&self) -> Vec<(String, String)> {
        self.written.lock().clone()
    }

    /// Cancels it: items in progress are finished, and no further ones are started. The first caller is recorded.
    pub fn cancel(&self, by: &str) {
        self.cancelled_by.get_or_init(|| by.to_owned());
    }

    pub(super) fn cancelled_by(&self) -> Option<String> {
        self.cancelled_by.get().cloned()
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled_by.get().is_some()
    }

    pub(super) fn set_progress(&self, done: usize, of: usize) {
        self.done.store(done as u64, Ordering::Relaxed);
        self.of.store(of as u64, Ordering::Relaxed);
    }

    /// Counts an item that was done, and keeps its change.
    pub(super) fn add_done(&self, target: &Target, before: Option<String>, change: ItemChange) {
        self.done.fetch_add(1, Ordering::Relaxed);
        let mut done = self.done_items.lock();
        if done.len() < MAX_DONE_ITEMS {
            done.push(DoneItem { on: target.clone(), before, after: change.after });
        }
        drop(done);
        if let Some(what) = change.written {
            let mut written = self.written.lock();
            if written.len() < MAX_NAMED_ITEMS {
                written.push((target.to_string(), what.chars().take(MAX_WRITTEN).collect()));
            }
        }
    }

    pub(super) fn add_failed(&self, target: String, why: Refusal) {
        let figure = if matches!(why, Refusal::Unknown(_)) { &self.unknown } else { &self.failed };
        figure.fetch_add(1, Ordering::Relaxed);
        let mut not_done = self.not_done.lock();
        if not_done.len() < MAX_NAMED_ITEMS {
            not_done.push((target, why));
        }
    }

    pub(super) fn end(&self, outcome: Result<ActionOutcome, Refusal>) {
        self.over.send_replace(Some(outcome));
    }
}

/// What identifies a repeated action: its actor and the key that they sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) actor: String,
    pub(super) key: String,
}

/// The running and recently finished actions.
#[derive(Debug, Default)]
pub(super) struct Executions {
    table: Mutex<ExecutionTable>,
}

#[derive(Debug, Default)]
struct ExecutionTable {
    by_id: BTreeMap<ActionId, Arc<Execution>>,
    by_key: HashMap<Key, (u64, Arc<Execution>)>,
    keys: VecDeque<Key>,
}

/// The result of adding an action with a key.
pub(super) enum Admission {
    /// It is the first with its key.
    New,
    /// The same action was requested before.
    Repeated(Arc<Execution>),
    /// Another action was requested before, with the same key.
    KeyReused,
}

impl Executions {
    pub(super) fn get(&self, id: ActionId) -> Option<Arc<Execution>> {
        self.table.lock().by_id.get(&id).cloned()
    }

    /// The running actions, the oldest first.
    pub(super) fn running(&self) -> Vec<Arc<Execution>> {
        self.table.lock().by_id.values().filter(|execution| execution.outcome().is_none()).cloned().collect()
    }

    /// Forgets a key: its action was not executed, and a repetition is a new action.
    pub(super) fn forget(&self, key: &Key) {
        let mut table = self.table.lock();
        table.by_key.remove(key);
        table.keys.retain(|other| other != key);
    }

    /// Adds an action, unless the same one was requested before with the same key. `fingerprint` distinguishes actions.
    pub(super) fn add(&self, execution: &Arc<Execution>, key: Option<Key>, fingerprint: u64) -> Admission {
        let mut table = self.table.lock();
        if let Some(key) = key {
            if let Some((before, execution)) = table.by_key.get(&key) {
                return if *before == fingerprint {
                    Admission::Repeated(Arc::clone(execution))
                } else {
                    Admission::KeyReused
                };
            }
            table.keys.push_back(key.clone());
            table.by_key.insert(key, (fingerprint, Arc::clone(execution)));
            if table.keys.len() > MAX_KEYS
                && let Some(oldest) = table.keys.pop_front()
            {
                table.by_key.remove(&oldest);
            }
        }
        table.by_id.insert(execution.id, Arc::clone(execution));
        if table.by_id.len() > MAX_FINISHED {
            let oldest = table.by_id.iter().find(|(_, execution)| execution.outcome().is_some()).map(|(id, _)| *id);
            oldest.map(|id| table.by_id.remove(&id));
        }
        Admission::New
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn execution(second: i64) -> Arc<Execution> {
        let id = ActionId::new(Timestamp::from_second(second).unwrap());
        Execution::new(id, ActionKind::Resume, "jid0000000001".to_owned(), "why".to_owned(), "alice".to_owned())
    }

    fn key(actor: &str, key: &str) -> Key {
        Key { actor: actor.to_owned(), key: key.to_owned() }
    }

    #[test]
    fn the_same_action_with_the_same_key_is_found_and_another_action_with_it_is_refused() {
        let executions = Executions::default();
        let (first, second) = (execution(1), execution(2));
        assert!(matches!(executions.add(&first, Some(key("alice", "k")), 7), Admission::New));
        assert!(
            matches!(executions.add(&second, Some(key("alice", "k")), 7), Admission::Repeated(found) if found.id == first.id)
        );
        assert!(matches!(executions.add(&second, Some(key("alice", "k")), 8), Admission::KeyReused));
        assert!(matches!(executions.add(&second, Some(key("bob", "k")), 7), Admission::New));
        assert!(matches!(executions.add(&execution(3), None, 7), Admission::New));
    }

    #[test]
    fn the_number_of_finished_actions_is_bounded_and_running_ones_are_always_kept() {
        let executions = Executions::default();
        let running = execution(0);
        executions.add(&running, None, 0);
        for second in 1..=i64::try_from(2 * MAX_FINISHED).unwrap() {
            let over = execution(second);
            over.end(Err(Refusal::Failed("no".to_owned())));
            executions.add(&over, None, 0);
        }
        assert!(executions.get(running.id).is_some());
        assert_eq!(executions.table.lock().by_id.len(), MAX_FINISHED);
        assert_eq!(executions.running().len(), 1);
        for number in 0..=MAX_KEYS {
            executions.add(&running, Some(key("alice", &number.to_string())), 0);
        }
        assert_eq!(executions.table.lock().by_key.len(), MAX_KEYS);
    }
}

//! Actions that are being carried out, and those that were just now: what one asks after by an action's id.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::audit::ActionId;
use super::kind::ActionKind;
use super::metrics::{CANCELLED, CONFLICT, DONE, IN_PART, UNKNOWN};
use super::refusal::Refusal;
use super::target::Target;

/// How many actions that are over are remembered; the audit trail remembers more.
const MOST_OVER: usize = 1_000;

/// How many keys of actions are remembered.
const MOST_KEYS: usize = 10_000;

/// How many targets that were not done are named, of an action over many; and how many that were repaired.
const UNDONE: usize = 1_000;

/// How many characters are remembered of what was written to one.
const WRITTEN: usize = 1_000;

/// What came of an action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The label of its target's state before; `None` where it has none.
    pub before: Option<&'static str>,
    /// The label of its target's state now; `None` where it has none or is gone.
    pub after: Option<&'static str>,
    /// The version of its target's status now, where that is known.
    pub version: Option<i32>,
    /// What its operator should know.
    pub warnings: Vec<String>,
    /// What was done in figures, for actions over many.
    pub detail: Option<String>,
    /// Whether somebody ended it before it was whole. What was done until then stands.
    pub is_cancelled: bool,
    /// Of an action over many: how many were done, how many were not, and of how many that is not known.
    pub reached: Option<Reached>,
}

impl Outcome {
    /// What it counts as.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self.reached {
            // What nothing is known of has to be looked at, also where the rest was cancelled.
            Some(Reached { unknown: 1.., .. }) => UNKNOWN,
            _ if self.is_cancelled => CANCELLED,
            Some(Reached { done: 0, failed: 1.., .. }) => CONFLICT,
            Some(Reached { failed: 1.., .. }) => IN_PART,
            Some(_) | None => DONE,
        }
    }

    /// Notes how many items of many were done.
    pub(super) fn count(&mut self, reached: Reached) {
        self.is_cancelled = reached.ended() < reached.of;
        (self.detail, self.reached) = (Some(reached.in_words()), Some(reached));
    }
}

/// An action that is or was carried out.
#[derive(Debug)]
pub struct Execution {
    /// Its id.
    pub id: ActionId,
    /// What was requested.
    pub action: ActionKind,
    /// To what, in a few words.
    pub on: String,
    /// Why.
    pub reason: String,
    /// By whom.
    pub actor: String,
    done: AtomicU64,
    failed: AtomicU64,
    unknown: AtomicU64,
    of: AtomicU64,
    undone: Mutex<Vec<(String, Refusal)>>,
    written: Mutex<Vec<(String, String)>>,
    cancelled_by: OnceLock<String>,
    over: watch::Sender<Option<Result<Outcome, Refusal>>>,
}

/// How far an action is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// How many items are done.
    pub done: u64,
    /// How many were not done.
    pub failed: u64,
    /// Of how many it is not known whether they were done; they are in neither of the other two.
    pub unknown: u64,
    /// How many there are; 0 while that is not known.
    pub of: u64,
}

impl Reached {
    /// How many have ended, whatever came of them.
    #[must_use]
    pub fn ended(self) -> u64 {
        self.done + self.failed + self.unknown
    }

    pub(super) fn in_words(self) -> String {
        let left = self.of.saturating_sub(self.ended());
        format!("{} done, {} not done, {} unknown, {left} not begun", self.done, self.failed, self.unknown)
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
            undone: Mutex::default(),
            written: Mutex::default(),
            cancelled_by: OnceLock::new(),
            over: watch::Sender::new(None),
        })
    }

    /// How far it is.
    #[must_use]
    pub fn reached(&self) -> Reached {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let (done, failed, unknown) = (read(&self.done), read(&self.failed), read(&self.unknown));
        Reached { done, failed, unknown, of: read(&self.of) }
    }

    /// What came of it; `None` while it is going on.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<Outcome, Refusal>> {
        self.over.borrow().clone()
    }

    /// Waits until it is over.
    ///
    /// # Errors
    /// What stood against it.
    pub async fn over(&self) -> Result<Outcome, Refusal> {
        let mut over = self.over.subscribe();
        let found = over.wait_for(Option::is_some).await;
        let outcome = found.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| Err(Refusal::Unknown("the server ended meanwhile".to_owned())))
    }

    /// The items that were not done and why, the first thousand.
    #[must_use]
    pub fn undone(&self) -> Vec<(String, Refusal)> {
        self.undone.lock().clone()
    }

    /// The items that were repaired and what was written to each, the first thousand; the audit trail names all.
    #[must_use]
    pub fn written(&self) -> Vec<(String, String)> {
        self.written.lock().clone()
    }

    /// Asks for its end: what is under way is finished, and nothing more is begun. Who asks first counts.
    pub fn cancel(&self, by: &str) {
        self.cancelled_by.get_or_init(|| by.to_owned());
    }

    pub(super) fn cancelled_by(&self) -> Option<String> {
        self.cancelled_by.get().cloned()
    }

    /// Whether somebody asked for its end.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled_by.get().is_some()
    }

    pub(super) fn set_reached(&self, done: usize, of: usize) {
        self.done.store(done as u64, Ordering::Relaxed);
        self.of.store(of as u64, Ordering::Relaxed);
    }

    /// Counts an item that is done, and remembers what was written to it, where it was repaired.
    pub(super) fn add_done(&self, target: &Target, written: Option<String>) {
        self.done.fetch_add(1, Ordering::Relaxed);
        if let Some(what) = written {
            let mut written = self.written.lock();
            if written.len() < UNDONE {
                written.push((target.to_string(), what.chars().take(WRITTEN).collect()));
            }
        }
    }

    pub(super) fn add_failed(&self, target: String, why: Refusal) {
        let figure = if matches!(why, Refusal::Unknown(_)) { &self.unknown } else { &self.failed };
        figure.fetch_add(1, Ordering::Relaxed);
        let mut undone = self.undone.lock();
        if undone.len() < UNDONE {
            undone.push((target, why));
        }
    }

    pub(super) fn end(&self, outcome: Result<Outcome, Refusal>) {
        self.over.send_replace(Some(outcome));
    }
}

/// By what an action that comes twice is known: its actor, and the key that he chose.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) actor: String,
    pub(super) key: String,
}

/// Every action that is remembered.
#[derive(Debug, Default)]
pub(super) struct Executions {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_id: BTreeMap<ActionId, Arc<Execution>>,
    by_key: HashMap<Key, (u64, Arc<Execution>)>,
    keys: VecDeque<Key>,
}

/// What came of asking for a place by a key.
pub(super) enum Place {
    /// It is the first of its key.
    New,
    /// The same order came before.
    Before(Arc<Execution>),
    /// Another action came before, by the same key.
    Another,
}

impl Executions {
    pub(super) fn get(&self, id: ActionId) -> Option<Arc<Execution>> {
        self.kept.lock().by_id.get(&id).cloned()
    }

    /// Those that are going on, the oldest first.
    pub(super) fn going_on(&self) -> Vec<Arc<Execution>> {
        self.kept.lock().by_id.values().filter(|execution| execution.outcome().is_none()).cloned().collect()
    }

    /// Forgets a key: nothing was done by its order, and whoever sends it again means it.
    pub(super) fn forget(&self, key: &Key) {
        let mut kept = self.kept.lock();
        kept.by_key.remove(key);
        kept.keys.retain(|other| other != key);
    }

    /// Remembers an action, unless the same one came before by the same key. `fingerprint` tells actions apart.
    pub(super) fn add(&self, execution: &Arc<Execution>, key: Option<Key>, fingerprint: u64) -> Place {
        let mut kept = self.kept.lock();
        if let Some(key) = key {
            if let Some((before, execution)) = kept.by_key.get(&key) {
                return if *before == fingerprint { Place::Before(Arc::clone(execution)) } else { Place::Another };
            }
            kept.keys.push_back(key.clone());
            kept.by_key.insert(key, (fingerprint, Arc::clone(execution)));
            if kept.keys.len() > MOST_KEYS
                && let Some(oldest) = kept.keys.pop_front()
            {
                kept.by_key.remove(&oldest);
            }
        }
        kept.by_id.insert(execution.id, Arc::clone(execution));
        if kept.by_id.len() > MOST_OVER {
            let oldest = kept.by_id.iter().find(|(_, execution)| execution.outcome().is_some()).map(|(id, _)| *id);
            oldest.map(|id| kept.by_id.remove(&id));
        }
        Place::New
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
    fn the_same_order_by_the_same_key_is_one_and_another_is_told() {
        let executions = Executions::default();
        let (first, second) = (execution(1), execution(2));
        assert!(matches!(executions.add(&first, Some(key("alice", "k")), 7), Place::New));
        assert!(
            matches!(executions.add(&second, Some(key("alice", "k")), 7), Place::Before(found) if found.id == first.id)
        );
        assert!(matches!(executions.add(&second, Some(key("alice", "k")), 8), Place::Another));
        assert!(matches!(executions.add(&second, Some(key("bob", "k")), 7), Place::New));
        assert!(matches!(executions.add(&execution(3), None, 7), Place::New));
    }

    #[test]
    fn only_so_many_are_remembered_and_never_one_too_few_that_goes_on() {
        let executions = Executions::default();
        let going_on = execution(0);
        executions.add(&going_on, None, 0);
        for second in 1..=i64::try_from(2 * MOST_OVER).unwrap() {
            let over = execution(second);
            over.end(Err(Refusal::Failed("no".to_owned())));
            executions.add(&over, None, 0);
        }
        assert!(executions.get(going_on.id).is_some());
        assert_eq!(executions.kept.lock().by_id.len(), MOST_OVER);
        assert_eq!(executions.going_on().len(), 1);
        for number in 0..=MOST_KEYS {
            executions.add(&going_on, Some(key("alice", &number.to_string())), 0);
        }
        assert_eq!(executions.kept.lock().by_key.len(), MOST_KEYS);
    }
}

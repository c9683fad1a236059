//! Unexpected znodes below `/queuekeeper`: what they prevent, and the fix.

use jiff::Timestamp;

use super::decision::Decision;
use super::memory::{Memory, SharedBudget, is_foreign};
use queuekeeper_zookeeper::coordination::{
    self, CoordinationError, ForeignNode, ForeignReason, MOST_BELOW, PAUSED, Snapshot,
};

/// How many are reported.
const MOST: usize = 100;

/// An unexpected znode below `/queuekeeper`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Foreign {
    /// Its path, below the chroot. Its name may be any text.
    pub path: String,
    /// What is wrong with it, as the rest of a sentence that begins with its path.
    pub what: String,
    /// What it prevents, as a sentence.
    pub effect: &'static str,
    /// Whether it prevents anything.
    pub stops: bool,
    /// The fix, as a sentence.
    pub fix: String,
}

impl Foreign {
    fn new(path: String, what: impl Into<String>, effect: &'static str) -> Self {
        let fix = format!("Delete it with all znodes below it (zkCli.sh: deleteall {path}).");
        Self { path, what: what.into(), effect, stops: false, fix }
    }

    fn that_stops(self) -> Self {
        Self { stops: true, ..self }
    }

    fn with(self, fix: impl Into<String>) -> Self {
        Self { fix: fix.into(), ..self }
    }

    /// The znodes cannot be read at all.
    #[must_use]
    pub fn unread(error: &CoordinationError) -> Option<Self> {
        let (CoordinationError::Refused { path, why } | CoordinationError::Changed { path, why }) = error else {
            return None;
        };
        let what = format!("cannot be read: {why}");
        let fix = "Grant queuekeeper the right to read and write it and all znodes below it (zkCli.sh: setAcl -R).";
        Some(Self::new(path.clone(), what, "No rule acts on any alert.").that_stops().with(fix))
    }

    fn of_node(ForeignNode { path, reason }: &ForeignNode) -> Self {
        const NOTHING: &str = "It is ignored.";
        let path = path.clone();
        match reason {
            ForeignReason::UnknownName => Self::new(path, "has a name that queuekeeper does not use", NOTHING),
            ForeignReason::PersistentHold => {
                let what =
                    "marks an item as being worked on, but is not ephemeral: it does not disappear with a session";
                let effect = "No worker that uses queuekeeper's library takes the item of this name.";
                Self::new(path, what, effect).that_stops()
            }
            ForeignReason::Unlisted(why) => {
                let fix = format!("Grant queuekeeper the right to read it (zkCli.sh: getAcl {path}).");
                let effect = "Unexpected znodes below it are not reported.";
                Self::new(path, format!("cannot be listed: {why}"), effect).with(fix)
            }
            ForeignReason::PersistentCandidate => {
                Self::new(path, "has the name of a candidate, but is not ephemeral", NOTHING)
            }
            ForeignReason::Unreadable(why) => {
                let fix = format!(
                    "Grant queuekeeper the right to read and write it, or delete it (zkCli.sh: getAcl {path}, deleteall {path})."
                );
                let effect = "Its rule does not act on the same alert again.";
                Self::new(path, format!("cannot be read: {why}"), effect).that_stops().with(fix)
            }
        }
    }
}

/// The unexpected znodes, at most a hundred, and how many more there are.
#[must_use]
pub fn foreign(snapshot: &Snapshot, now: Timestamp) -> (Vec<Foreign>, usize) {
    let mut found: Vec<_> = snapshot.foreign.iter().map(Foreign::of_node).collect();
    for node in &snapshot.pending {
        let path = coordination::pending(&node.name);
        let decision = Decision::read(&node.data).ok().filter(|decision| decision.name() == node.name);
        found.extend(match decision {
            _ if node.children > 0 => {
                let effect = "It cannot be completed or deleted. Its rule does not act on the same alert again.";
                Some(Foreign::new(path, "is a decision that has children", effect).that_stops())
            }
            None => Some(Foreign::new(path, "is not a decision", "The leader deletes it.")),
            Some(decision) => decision.is_misdated(now).then(|| {
                let effect = "It is treated as accepted now.";
                Foreign::new(path, "is a decision dated in the future", effect)
            }),
        });
    }
    for (name, node) in &snapshot.rules {
        let path = coordination::rule(name);
        if Memory::read(&node.data).is_err() {
            let fix =
                format!("Delete it (zkCli.sh: deleteall {path}): the rule starts with new budgets and cooldowns.");
            let effect = "The rule of this name does not act.";
            found.push(Foreign::new(path, "is not the state of a rule", effect).that_stops().with(fix));
        } else if node.children > 0 {
            found.push(Foreign::new(path, "has children", "It cannot be deleted when its rule is removed."));
        }
    }
    if snapshot.all.as_ref().is_some_and(|all| SharedBudget::read(&all.data).is_err()) {
        let path = coordination::rules();
        let fix = format!("Empty it (zkCli.sh: set {path} \"\"): the shared budget starts again in full.");
        let what = "is not the state of the shared budget";
        found.push(Foreign::new(path, what, "No rule acts.").that_stops().with(fix));
    }
    if snapshot.paused.as_ref().is_some_and(|paused| paused.children > 0) {
        let effect = "They have no effect.";
        let fix = format!(
            "They are deleted when automatic action is unpaused, if there are at most {MOST_BELOW} on all levels. \
             More must be deleted manually (zkCli.sh: deleteall {PAUSED}), which unpauses it as well."
        );
        found.push(Foreign::new(PAUSED.to_owned(), "has children", effect).with(fix));
    }
    let more = snapshot.more_foreign + found.len().saturating_sub(MOST);
    found.sort_by_key(|foreign| !foreign.stops);
    found.truncate(MOST);
    (found, more)
}

impl Decision {
    /// Whether its date is so far in the future that clock differences cannot explain it.
    pub(super) fn is_misdated(&self, now: Timestamp) -> bool {
        is_foreign(self.at, now) || self.not_before.is_some_and(|at| is_foreign(at, now))
    }

    /// The same with plausible dates.
    pub(super) fn dated(mut self, now: Timestamp) -> Self {
        if is_foreign(self.at, now) {
            self.at = now;
        }
        self.not_before = self.not_before.filter(|at| !is_foreign(*at, now));
        self
    }
}

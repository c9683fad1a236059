//! What stands among our own znodes and is not as ours are: what it stops, and what helps.

use jiff::Timestamp;

use super::decision::Decision;
use super::memory::{Memory, Together, is_foreign};
use queuekeeper_zookeeper::coordination::{self, CoordinationError, MOST_BELOW, PAUSED, Snapshot, Strange, Stranger};

/// How many are named.
const MOST: usize = 100;

/// A znode among our own that a person has to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Foreign {
    /// Its path, below the chroot. Its name may be any text.
    pub path: String,
    /// What is the matter with it, as the rest of a sentence that begins with its path.
    pub what: String,
    /// What it stops, as a sentence.
    pub effect: &'static str,
    /// Whether it stops anything.
    pub stops: bool,
    /// What helps, as a sentence.
    pub remedy: String,
}

impl Foreign {
    fn new(path: String, what: impl Into<String>, effect: &'static str) -> Self {
        let remedy = format!("Delete it and what is below it (zkCli.sh: deleteall {path}).");
        Self { path, what: what.into(), effect, stops: false, remedy }
    }

    fn that_stops(self) -> Self {
        Self { stops: true, ..self }
    }

    fn with(self, remedy: impl Into<String>) -> Self {
        Self { remedy: remedy.into(), ..self }
    }

    /// Our own znodes cannot be read at all.
    #[must_use]
    pub fn unread(error: &CoordinationError) -> Option<Self> {
        let (CoordinationError::Refused { path, why } | CoordinationError::Changed { path, why }) = error else {
            return None;
        };
        let what = format!("cannot be read: {why}");
        let remedy = "Give queuekeeper the right to read and write it and what is below it (zkCli.sh: setAcl -R).";
        Some(Self::new(path.clone(), what, "No alert is acted upon.").that_stops().with(remedy))
    }

    fn of_stranger(Stranger { path, what }: &Stranger) -> Self {
        const NOTHING: &str = "It is ignored.";
        let path = path.clone();
        match what {
            Strange::Name => Self::new(path, "has a name that queuekeeper does not give", NOTHING),
            Strange::HeldForEver => {
                let what = "stands for an item that is worked on, but is not ephemeral: it ends with no session";
                let effect = "No worker that is built on queuekeeper's library takes the item of this name.";
                Self::new(path, what, effect).that_stops()
            }
            Strange::Unlisted(why) => {
                let remedy = format!("Give queuekeeper the right to read it (zkCli.sh: getAcl {path}).");
                let effect = "What does not belong there is not named.";
                Self::new(path, format!("cannot be listed: {why}"), effect).with(remedy)
            }
            Strange::Persistent => Self::new(path, "has the name of a candidate, but is not ephemeral", NOTHING),
            Strange::Unreadable(why) => {
                let remedy = format!(
                    "Give queuekeeper the right to read and write it, or delete it (zkCli.sh: getAcl {path}, deleteall {path})."
                );
                let effect = "The rule that it belongs to does nothing about the same alert.";
                Self::new(path, format!("cannot be read: {why}"), effect).that_stops().with(remedy)
            }
        }
    }
}

/// What is not as it should be among our own znodes, at most a hundred of them, and how many there are beyond.
#[must_use]
pub fn foreign(snapshot: &Snapshot, now: Timestamp) -> (Vec<Foreign>, usize) {
    let mut found: Vec<_> = snapshot.strangers.iter().map(Foreign::of_stranger).collect();
    for node in &snapshot.pending {
        let path = coordination::pending(&node.name);
        let decision = Decision::read(&node.data).ok().filter(|decision| decision.name() == node.name);
        found.extend(match decision {
            _ if node.children > 0 => {
                let effect = "It cannot be completed or deleted. Its rule does nothing more about the same alert.";
                Some(Foreign::new(path, "is a decision that has children", effect).that_stops())
            }
            None => Some(Foreign::new(path, "is not a decision", "It is deleted by the process that acts.")),
            Some(decision) => decision.is_misdated(now).then(|| {
                let effect = "It is treated as if it had been accepted now.";
                Foreign::new(path, "is a decision dated in the future", effect)
            }),
        });
    }
    for (name, node) in &snapshot.rules {
        let path = coordination::rule(name);
        if Memory::read(&node.data).is_err() {
            let remedy =
                format!("Delete it (zkCli.sh: deleteall {path}): the rule begins with fresh budgets and cooldowns.");
            let effect = "The rule of this name does nothing.";
            found.push(Foreign::new(path, "is not the state of a rule", effect).that_stops().with(remedy));
        } else if node.children > 0 {
            found.push(Foreign::new(path, "has children", "It cannot be deleted when its rule is gone."));
        }
    }
    if snapshot.all.as_ref().is_some_and(|all| Together::read(&all.data).is_err()) {
        let path = coordination::rules();
        let remedy = format!("Empty it (zkCli.sh: set {path} \"\"): the common budget begins anew.");
        let what = "is not the state of the common budget";
        found.push(Foreign::new(path, what, "No rule does anything.").that_stops().with(remedy));
    }
    if snapshot.paused.as_ref().is_some_and(|paused| paused.children > 0) {
        let effect = "They have no effect.";
        let remedy = format!(
            "They are deleted when automatic action is unpaused, if there are at most {MOST_BELOW}, all levels counted. \
             More have to be deleted by hand (zkCli.sh: deleteall {PAUSED}), which unpauses it as well."
        );
        found.push(Foreign::new(PAUSED.to_owned(), "has children", effect).with(remedy));
    }
    let more = snapshot.more_strangers + found.len().saturating_sub(MOST);
    found.sort_by_key(|foreign| !foreign.stops);
    found.truncate(MOST);
    (found, more)
}

impl Decision {
    /// Whether it is dated so far in the future that no clock can be the reason.
    pub(super) fn is_misdated(&self, now: Timestamp) -> bool {
        is_foreign(self.at, now) || self.not_before.is_some_and(|at| is_foreign(at, now))
    }

    /// The same with dates that mean something.
    pub(super) fn dated(mut self, now: Timestamp) -> Self {
        if is_foreign(self.at, now) {
            self.at = now;
        }
        self.not_before = self.not_before.filter(|at| !is_foreign(*at, now));
        self
    }
}

//! Carrying decisions out: one process leads, and goes through them in the order in which they were accepted.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::book::Line;
use super::decision::{Decision, Kind};
use super::foreign::{Foreign, foreign};
use super::guard::{self, Bound};
use super::memory::{Memory, Together, memory_of};
use super::metrics::RuleFigures;
use super::outcome::Outcome;
use super::rule::{Mode, Rule, Rules};
use super::server::Shared;
use super::time::later;
use crate::actions::audit::{Decided, Record};
use queuekeeper_zookeeper::coordination::{self, CoordinationError, Lead, Node, Snapshot, Write};

mod begin;
mod item;

/// How long a decision waits for a rule that this process does not know: another may, that is configured anew just now.
const STRANGE_FOR: Duration = Duration::from_hours(1);

/// How often a decision may fail until it is given up.
const MOST_FAILURES: u32 = 6;

/// A decision that is being looked after, with what its rule remembers; each with the version of its znode.
pub(super) struct Case<'a> {
    pub(super) lead: &'a Lead,
    pub(super) rules: &'a Rules,
    pub(super) rule: &'a Rule,
    pub(super) node: String,
    pub(super) decision: Decision,
    pub(super) version: i32,
    pub(super) memory: Memory,
    /// `None` where there is no znode yet.
    pub(super) memory_version: Option<i32>,
    pub(super) together: Together,
    pub(super) together_version: i32,
    /// The jobs that were released just now, each with its version before: the image may not have heard of it yet.
    pub(super) released: BTreeSet<(String, Option<i32>)>,
    /// The collections that were.
    pub(super) freed: BTreeSet<String>,
}

/// Whether a decision can be gone on with at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It can.
    On,
    /// It is over.
    Over,
    /// Not now: it is looked at again.
    Later,
}

impl Shared {
    /// Reads our own znodes after a change of them, so that what is shown next has it. Where they cannot be read, the next
    /// look says so.
    pub(super) async fn look_again(&self) {
        if let Ok(snapshot) = self.coordination.read().await {
            *self.seen.write() = Some((snapshot, Timestamp::now()));
        }
    }

    /// Looks at our own znodes once, shows how things stand, and carries out what waits if this process leads.
    pub(super) async fn look(&self, shutdown: &CancellationToken) {
        // Who writes the trail ends with everything else, and that is nothing to log.
        let Some(is_written) = shutdown.run_until_cancelled(self.look_at_trail()).await else { return };
        let snapshot = match self.coordination.read().await {
            Ok(snapshot) => snapshot,
            Err(error) => {
                tracing::debug!("our own znodes cannot be read: {error}");
                // Without rules nothing depends on them.
                let unread = Foreign::unread(&error).filter(|_| !self.rules.read().rules.is_empty());
                self.name(unread.as_slice());
                *self.unread.write() = unread;
                *self.seen.write() = None;
                return;
            }
        };
        *self.unread.write() = None;
        let now = Timestamp::now();
        let (strange, more) = foreign(&snapshot, now);
        self.name(&strange);
        self.metrics.show_foreign(strange.len() + more);
        let lead = self.coordination.lead();
        let rules = self.rules.read().clone();
        self.show(&snapshot, lead.is_some(), &rules, now);
        if let Some(lead) = &lead {
            self.forget(lead, &snapshot, &rules).await;
        }
        let (waits, is_paused) = (snapshot.pending.clone(), snapshot.paused.is_some());
        *self.seen.write() = Some((snapshot, Timestamp::now()));
        let Some(lead) = lead.filter(|_| is_written && !is_paused) else { return };
        for node in waits {
            if shutdown.is_cancelled() {
                return;
            }
            // What cannot be gone on with is looked at again; it must not keep the others waiting, unless nothing can be
            // reached at all.
            if !self.attend(&lead, &node, &rules, shutdown).await && self.check_synced(Timestamp::now()).is_err() {
                return;
            }
        }
    }

    /// Logs what a person has to look at, each once as long as it is there; the others are counted.
    fn name(&self, strange: &[Foreign]) {
        /// How many are logged one by one. A name is somebody's text, and a folder may hold thousands.
        const LOGGED: usize = 20;
        let mut said = self.said.lock();
        let key = |found: &Foreign| format!("znode {}", found.path);
        said.retain(|about, _| !about.starts_with("znode ") || strange.iter().any(|found| key(found) == *about));
        for found in strange.iter().take(LOGGED) {
            if said.insert(key(found), found.what.clone()).as_ref() != Some(&found.what) {
                let Foreign { path, what, effect, remedy, .. } = found;
                // The remedy names the path as well.
                tracing::warn!(znode = ?path, ?remedy, "a znode below /queuekeeper {what}. {effect}");
            }
        }
    }

    fn show(&self, snapshot: &Snapshot, leads: bool, rules: &Rules, now: Timestamp) {
        let together = snapshot.all.as_ref().and_then(|node| Together::read(&node.data).ok()).unwrap_or_default();
        let dry = self.dry.lock();
        let figures = rules.rules.iter().filter(|rule| rule.mode != Mode::Off).map(|rule| {
            let (memory, together) = if rule.mode == Mode::Enforce {
                (memory_of(snapshot, &rule.name).unwrap_or_default(), &together)
            } else {
                (dry.memories.get(&rule.name).cloned().unwrap_or_default(), &dry.together)
            };
            RuleFigures {
                rule: rule.name.clone(),
                last_action: memory.last_action.filter(|_| rule.mode == Mode::Enforce),
                is_open: memory.breaker.is_some(),
                budget_left: guard::room(
                    &Rule { max_share: None, ..rule.clone() },
                    &memory,
                    (together, rules.budget),
                    0,
                    now,
                )
                .0,
                holds: if rule.mode == Mode::Enforce { memory.holds.len() } else { 0 },
            }
        });
        self.metrics.show(snapshot.pending.len(), snapshot.paused.is_some(), leads, figures.collect());
    }

    /// Removes what rules remember that are gone and have nothing to remember any more.
    async fn forget(&self, lead: &Lead, snapshot: &Snapshot, rules: &Rules) {
        let now = Timestamp::now();
        for (name, node) in &snapshot.rules {
            let is_idle = Memory::read(&node.data).is_ok_and(|memory| memory.is_idle(now));
            let is_old = later(node.changed, Duration::from_hours(24)) < now;
            if rules.get(name).is_none() && is_idle && is_old {
                let writes = [lead.check(), Write::Delete(coordination::rule(name), node.version)];
                if let Err(error) = self.coordination.commit(&writes).await {
                    tracing::debug!(rule = name, "what a rule that is gone remembers was not removed: {error}");
                }
            }
        }
    }

    /// Looks after one decision. Gives whether the others can be looked after at once.
    async fn attend(&self, lead: &Lead, node: &Node, rules: &Rules, shutdown: &CancellationToken) -> bool {
        let now = Timestamp::now();
        // It could not be ended: what is done of it would be written, and begun anew for ever.
        if node.children > 0 {
            return true;
        }
        let Some(decision) = Decision::read(&node.data).ok().filter(|decision| decision.name() == node.name) else {
            let is_dropped = self.drop_node(lead, node).await;
            if is_dropped {
                tracing::error!(
                    znode = coordination::pending(&node.name),
                    "this was no decision of ours, and was removed"
                );
                self.metrics.count(Outcome::Invalid);
            }
            return is_dropped;
        };
        let is_misdated = decision.is_misdated(now);
        let decision = decision.dated(now);
        if decision.not_before.is_some_and(|at| at > now) {
            return true;
        }
        let Some(rule) = rules.get(&decision.rule).filter(|rule| rule.mode == Mode::Enforce) else {
            if !is_misdated && decision.at <= now && later(decision.at, STRANGE_FOR) > now {
                return true;
            }
            let is_dropped = self.drop_node(lead, node).await;
            if is_dropped {
                self.close(&decision, Outcome::NoMatch, "its rule is gone or does not act any more", now).await;
            }
            return is_dropped;
        };
        if self.check_synced(now).is_err() {
            return false;
        }
        // What a rule remembers is read for each decision: the one before may have changed it.
        let Ok(snapshot) = self.coordination.read().await else { return false };
        let Some(node) = snapshot.pending(&node.name).filter(|found| found.czxid == node.czxid) else { return true };
        let Ok(decision) = Decision::read(&node.data) else { return false };
        let decision = decision.dated(now);
        let Some(all) = &snapshot.all else {
            // Somebody removed the folders.
            if let Err(error) = self.coordination.make_folders().await {
                tracing::warn!("our own znodes cannot be made: {error}");
            }
            return false;
        };
        let (memory, together) = match (memory_of(&snapshot, &rule.name), Together::read(&all.data)) {
            (Ok(memory), Ok(together)) => (memory, together),
            (memory, _) => {
                let path = if memory.is_err() { coordination::rule(&rule.name) } else { coordination::rules() };
                let why = format!("what rules remember cannot be read; empty or delete {path}");
                tracing::error!(rule = rule.name, "{why}");
                let is_dropped = self.drop_node(lead, node).await;
                if is_dropped {
                    self.close(&decision, Outcome::Failed, &why, now).await;
                }
                return is_dropped;
            }
        };
        let mut case = Case {
            lead,
            rules,
            rule,
            node: node.name.clone(),
            version: node.version,
            memory,
            memory_version: snapshot.rules.get(&rule.name).map(|node| node.version),
            together,
            together_version: all.version,
            decision,
            released: BTreeSet::new(),
            freed: BTreeSet::new(),
        };
        if !self.make_memory(&mut case).await {
            return false;
        }
        // An alert may be over for a moment only, or another is on: as long as jobs wait, what was held for them stays held.
        let undoing = case.decision.kind == Kind::Undo && case.decision.list.is_none() && !is_misdated;
        if undoing && later(case.decision.at, rule.cooldown) > now && self.sight(now).waits() {
            return true;
        }
        if case.decision.list.is_none() {
            match self.begin(&mut case).await {
                Next::On => {}
                Next::Over => return true,
                Next::Later => return false,
            }
        }
        loop {
            if shutdown.is_cancelled() {
                return false;
            }
            match self.next(&mut case).await {
                Next::On => {}
                Next::Over => return true,
                Next::Later => return false,
            }
        }
    }

    async fn drop_node(&self, lead: &Lead, node: &Node) -> bool {
        let delete = Write::Delete(coordination::pending(&node.name), node.version);
        self.coordination.commit(&[lead.check(), delete]).await.is_ok()
    }

    /// Makes the znode of what the rule remembers, where there is none yet: a transaction that sets it takes one.
    async fn make_memory(&self, case: &mut Case<'_>) -> bool {
        if case.memory_version.is_none() {
            let create = Write::Create(coordination::rule(&case.rule.name), case.memory.data());
            if let Err(error) = self.coordination.commit(&[case.lead.check(), create]).await {
                self.lost(case, &error);
                return false;
            }
            case.memory_version = Some(0);
        }
        true
    }

    /// Writes down how things stand, without doing anything to the queue. Gives whether that is done.
    pub(super) async fn write(&self, case: &mut Case<'_>) -> bool {
        let writes = [&[case.lead.check()][..], &case.writes(false)[..]].concat();
        match self.coordination.commit(&writes).await {
            Ok(()) => {
                case.moved();
                true
            }
            Err(error) => {
                self.lost(case, &error);
                false
            }
        }
    }

    /// Ends a decision without doing anything more.
    pub(super) async fn finish(&self, case: &mut Case<'_>, outcome: Outcome, why: &str) -> Next {
        let now = Timestamp::now();
        case.memory.tell(outcome, why, now);
        let writes = [&[case.lead.check()][..], &case.writes(true)[..]].concat();
        match self.coordination.commit(&writes).await {
            Ok(()) => {
                self.close(&case.decision, outcome, why, now).await;
                Next::Over
            }
            Err(error) => {
                self.lost(case, &error);
                Next::Later
            }
        }
    }

    /// Counts and tells what came of a decision.
    pub(super) async fn close(&self, decision: &Decision, outcome: Outcome, why: &str, now: Timestamp) {
        self.metrics.count(outcome);
        self.said.lock().remove(&format!("decision {}", decision.name()));
        tracing::info!(rule = decision.rule, alert = decision.cause.alert, outcome = outcome.label(), "{why}");
        self.book.note(Line {
            at: now,
            rule: Some(decision.rule.clone()),
            alert: decision.cause.alert.clone(),
            outcome: Some(outcome),
            detail: why.to_owned(),
            count: 1,
        });
        let decided = Decided {
            rule: decision.rule.clone(),
            alert: decision.cause.alert.clone(),
            fingerprint: decision.cause.fingerprint.clone(),
            starts_at: decision.cause.starts_at,
            status: if decision.kind == Kind::Act { "firing" } else { "resolved" }.to_owned(),
            outcome: outcome.label().to_owned(),
            detail: why.to_owned(),
            selector: self.rules.read().get(&decision.rule).map(|rule| rule.select.to_string()).unwrap_or_default(),
            targets: decision.list.as_ref().map(|list| list.did.clone()).unwrap_or_default(),
        };
        if let Err(why) = self.actions.audit().write(Record::Decision { id: decision.id, at: now, decided }).await {
            tracing::error!(decision = %decision.id, "{why}; what came of it is not recorded");
        }
    }

    /// A write was refused or is not known: everything is read again before anything more is done.
    pub(super) fn lost(&self, case: &Case<'_>, error: &CoordinationError) {
        match error {
            CoordinationError::Changed { path, .. } if case.lead.is_at(path) => self.coordination.resign(),
            CoordinationError::Changed { .. }
            | CoordinationError::Crowded { .. }
            | CoordinationError::Refused { .. } => {
                let text = error.to_string();
                let before = self.said.lock().insert(format!("decision {}", case.node), text.clone());
                if before.as_ref() == Some(&text) {
                    tracing::debug!(rule = case.rule.name, "a decision is looked at anew: {text}");
                } else {
                    tracing::warn!(rule = case.rule.name, "a decision is looked at anew: {text}");
                }
            }
            CoordinationError::NotConnected | CoordinationError::Unanswered(_) => {
                tracing::debug!(rule = case.rule.name, "a decision waits: {error}");
            }
        }
    }
}

impl Case<'_> {
    /// What is written of the decision and of what rules remember; with the last, it is over.
    pub(super) fn writes(&self, is_last: bool) -> Vec<Write> {
        let pending = coordination::pending(&self.node);
        let decision = if is_last {
            Write::Delete(pending, self.version)
        } else {
            Write::Set(pending, self.decision.data(), self.version)
        };
        let version = self.memory_version.unwrap_or(0);
        let memory = Write::Set(coordination::rule(&self.rule.name), self.memory.data(), version);
        let together = Write::Set(coordination::rules(), self.together.data(), self.together_version);
        vec![decision, memory, together]
    }

    /// What [`Self::writes`] has was written.
    pub(super) fn moved(&mut self) {
        self.version += 1;
        self.memory_version = self.memory_version.map(|version| version + 1);
        self.together_version += 1;
    }

    /// What the budgets leave, for so many jobs in the rule's states.
    pub(super) fn room(&self, present: u64, now: Timestamp) -> (u64, Bound) {
        guard::room(self.rule, &self.memory, (&self.together, self.rules.budget), present, now)
    }
}

//! Executing decisions: one process is the leader, and executes them in the order in which they were accepted.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::decision::{Decision, DecisionKind};
use super::foreign::{Foreign, foreign};
use super::guard;
use super::memory::{Memory, SharedBudget, memory_of};
use super::metrics::RuleFigures;
use super::outcome::AlertOutcome;
use super::recent::RecentDecision;
use super::rule::{Mode, Rule, Rules};
use super::server::Shared;
use super::time::later;
use crate::actions::audit::{Decided, Record};
use queuekeeper_zookeeper::coordination::{self, CoordinationError, Leadership, Node, Snapshot, Write};

mod active;
mod begin;
mod item;
mod unanswered;

pub(super) use active::ActiveDecision;
use unanswered::Fate;
pub(super) use unanswered::UnansweredEnd;

/// How long a decision waits for a rule that this process does not have: another process may, during a rollout of a new
/// configuration.
const UNKNOWN_RULE_TIMEOUT: Duration = Duration::from_hours(1);

/// After how many failures a decision is abandoned.
const MAX_FAILURES: u32 = 6;

/// How the execution of a decision proceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// With the next item.
    Continue,
    /// It has finished.
    Finished,
    /// It is retried at the next poll.
    Retry,
}

impl Shared {
    /// Reads our own znodes after a change of them, so that pages show it. If that fails, the next poll reports it.
    pub(super) async fn refresh(&self) {
        if let Ok(snapshot) = self.coordination.read().await {
            *self.seen.write() = Some((snapshot, Timestamp::now()));
        }
    }

    /// Reads our own znodes, updates the metrics, and executes pending decisions if this process is the leader.
    pub(super) async fn poll(&self, shutdown: &CancellationToken) {
        // At shutdown the writer of the audit trail stops as well, which is no error.
        let Some(is_written) = shutdown.run_until_cancelled(self.check_audit_trail()).await else { return };
        // Nor is a ZooKeeper waited for that does not answer.
        let Some(read) = shutdown.run_until_cancelled(self.coordination.read()).await else { return };
        let snapshot = match read {
            Ok(snapshot) => snapshot,
            Err(error) => {
                tracing::debug!("cannot read the znodes below /queuekeeper: {error}");
                // Without rules nothing depends on them.
                let unread = Foreign::unread(&error).filter(|_| !self.rules.read().rules.is_empty());
                self.log_foreign(unread.as_slice());
                *self.unread.write() = unread;
                *self.seen.write() = None;
                return;
            }
        };
        *self.unread.write() = None;
        self.settle_unanswered(&snapshot).await;
        let now = Timestamp::now();
        let (strange, more) = foreign(&snapshot, now);
        self.log_foreign(&strange);
        self.metrics.show_foreign(strange.len() + more);
        let lead = self.coordination.lead();
        let rules = self.rules.read().clone();
        self.update_metrics(&snapshot, lead.is_some(), &rules, now);
        if let Some(lead) = &lead {
            self.remove_unused(lead, &snapshot, &rules, shutdown).await;
        }
        let (waits, is_paused) = (snapshot.pending.clone(), snapshot.paused.is_some());
        *self.seen.write() = Some((snapshot, Timestamp::now()));
        let Some(lead) = lead.filter(|_| is_written && !is_paused) else { return };
        for node in waits {
            if shutdown.is_cancelled() {
                return;
            }
            // A decision that cannot be continued is retried; it must not block the others, unless ZooKeeper or the
            // mirror is not available.
            if !self.process(&lead, &node, &rules, shutdown).await && self.check_synced(Timestamp::now()).is_err() {
                return;
            }
        }
    }

    /// Logs unexpected znodes, each once while it exists, and only the first ones.
    fn log_foreign(&self, strange: &[Foreign]) {
        /// How many are logged. Their names are untrusted, and there may be thousands.
        const LOGGED: usize = 20;
        let mut logged = self.logged.lock();
        let key = |found: &Foreign| format!("znode {}", found.path);
        logged.retain(|about, _| !about.starts_with("znode ") || strange.iter().any(|found| key(found) == *about));
        for found in strange.iter().take(LOGGED) {
            if logged.insert(key(found), found.what.clone()).as_ref() != Some(&found.what) {
                let Foreign { path, what, effect, fix, .. } = found;
                // The fix contains the path as well.
                tracing::warn!(znode = ?path, ?fix, "a znode below /queuekeeper {what}. {effect}");
            }
        }
    }

    fn update_metrics(&self, snapshot: &Snapshot, leads: bool, rules: &Rules, now: Timestamp) {
        let shared_budget =
            snapshot.all.as_ref().and_then(|node| SharedBudget::read(&node.data).ok()).unwrap_or_default();
        let dry = self.dry.lock();
        let figures = rules.rules.iter().filter(|rule| rule.mode != Mode::Off).map(|rule| {
            let (memory, shared_budget) = if rule.mode == Mode::Enforce {
                (memory_of(snapshot, &rule.name).unwrap_or_default(), &shared_budget)
            } else {
                (dry.memories.get(&rule.name).cloned().unwrap_or_default(), &dry.shared_budget)
            };
            RuleFigures {
                rule: rule.name.clone(),
                last_action: memory.last_action.filter(|_| rule.mode == Mode::Enforce),
                is_open: memory.breaker.is_some(),
                budget_left: guard::room(
                    &Rule { max_share: None, ..rule.clone() },
                    &memory,
                    (shared_budget, rules.budget),
                    0,
                    now,
                )
                .0,
                holds: if rule.mode == Mode::Enforce { memory.holds.len() } else { 0 },
            }
        });
        self.metrics.show(snapshot.pending.len(), snapshot.paused.is_some(), leads, figures.collect());
    }

    /// Removes the state of rules that are no longer configured and have nothing to remember.
    async fn remove_unused(&self, lead: &Leadership, snapshot: &Snapshot, rules: &Rules, shutdown: &CancellationToken) {
        let now = Timestamp::now();
        for (name, node) in &snapshot.rules {
            if shutdown.is_cancelled() {
                return;
            }
            let is_idle = Memory::read(&node.data).is_ok_and(|memory| memory.is_idle(now));
            let is_old = later(node.changed, Duration::from_hours(24)) < now;
            if rules.get(name).is_none() && is_idle && is_old {
                let writes = [lead.check(), Write::Delete(coordination::rule(name), node.version)];
                if let Err(error) = self.coordination.commit(&writes).await {
                    tracing::debug!(
                        rule = name,
                        "cannot remove the state of a rule that is no longer configured: {error}"
                    );
                }
            }
        }
    }

    /// Executes one decision. Returns whether the next ones can be executed now.
    async fn process(&self, lead: &Leadership, node: &Node, rules: &Rules, shutdown: &CancellationToken) -> bool {
        let now = Timestamp::now();
        // It cannot be deleted: its items would be executed, and the decision would start over again and again.
        if node.children > 0 {
            return true;
        }
        let Some(decision) = Decision::read(&node.data).ok().filter(|decision| decision.name() == node.name) else {
            let is_dropped = self.drop_node(lead, node).await;
            if is_dropped {
                tracing::error!(znode = coordination::pending(&node.name), "removed a znode that is not a decision");
                self.metrics.count(AlertOutcome::Invalid);
            }
            return is_dropped;
        };
        let is_misdated = decision.is_misdated(now);
        let decision = decision.dated(now);
        if decision.not_before.is_some_and(|at| at > now) {
            return true;
        }
        let Some(rule) = rules.get(&decision.rule).filter(|rule| rule.mode == Mode::Enforce) else {
            if !is_misdated && decision.at <= now && later(decision.at, UNKNOWN_RULE_TIMEOUT) > now {
                return true;
            }
            let is_dropped = self.drop_node(lead, node).await;
            if is_dropped {
                self.record_decision(
                    &decision,
                    AlertOutcome::NoMatch,
                    "its rule was removed or is no longer in mode enforce",
                    now,
                )
                .await;
            }
            return is_dropped;
        };
        if self.check_synced(now).is_err() {
            return false;
        }
        // The rule's state is read for each decision: the one before may have changed it.
        let Some(Ok(snapshot)) = shutdown.run_until_cancelled(self.coordination.read()).await else { return false };
        let Some(node) = snapshot.pending(&node.name).filter(|found| found.czxid == node.czxid) else { return true };
        let Ok(decision) = Decision::read(&node.data) else { return false };
        let decision = decision.dated(now);
        let Some(all) = &snapshot.all else {
            // The parent znodes were removed.
            if let Err(error) = self.coordination.make_folders().await {
                tracing::warn!("cannot create the znodes below /queuekeeper: {error}");
            }
            return false;
        };
        let (memory, shared_budget) = match (memory_of(&snapshot, &rule.name), SharedBudget::read(&all.data)) {
            (Ok(memory), Ok(shared_budget)) => (memory, shared_budget),
            (memory, _) => {
                let path = if memory.is_err() { coordination::rule(&rule.name) } else { coordination::rules() };
                let why = format!("the state of a rule is not valid; empty or delete {path}");
                tracing::error!(rule = rule.name, "{why}");
                let is_dropped = self.drop_node(lead, node).await;
                if is_dropped {
                    self.record_decision(&decision, AlertOutcome::Failed, &why, now).await;
                }
                return is_dropped;
            }
        };
        let mut active = ActiveDecision {
            lead,
            rules,
            rule,
            node: node.name.clone(),
            version: node.version,
            memory,
            memory_version: snapshot.rules.get(&rule.name).map(|node| node.version),
            shared_budget,
            shared_budget_version: all.version,
            decision,
            released: BTreeSet::new(),
            freed: BTreeSet::new(),
        };
        if !self.create_memory(&mut active).await {
            return false;
        }
        // The alert may fire again soon, or another one fires: while jobs wait for working storage, its collections
        // stay held.
        let undoing = active.decision.kind == DecisionKind::Undo && active.decision.list.is_none() && !is_misdated;
        if undoing && later(active.decision.at, rule.cooldown) > now && self.queue_view(now).waits() {
            return true;
        }
        if active.decision.list.is_none() {
            match self.begin(&mut active).await {
                Next::Continue => {}
                Next::Finished => return true,
                Next::Retry => return false,
            }
        }
        loop {
            if shutdown.is_cancelled() {
                return false;
            }
            match self.execute_next(&mut active).await {
                Next::Continue => {}
                Next::Finished => return true,
                Next::Retry => return false,
            }
        }
    }

    async fn drop_node(&self, lead: &Leadership, node: &Node) -> bool {
        let delete = Write::Delete(coordination::pending(&node.name), node.version);
        self.coordination.commit(&[lead.check(), delete]).await.is_ok()
    }

    /// Creates the znode of the rule's state, if it does not exist: transactions set it.
    async fn create_memory(&self, active: &mut ActiveDecision<'_>) -> bool {
        if active.memory_version.is_none() {
            let create = Write::Create(coordination::rule(&active.rule.name), active.memory.data());
            if let Err(error) = self.coordination.commit(&[active.lead.check(), create]).await {
                self.write_failed(active, &error);
                return false;
            }
            active.memory_version = Some(0);
        }
        true
    }

    /// Stores the decision and the rule's state, without an action on the queue. Returns whether it succeeded.
    pub(super) async fn save(&self, active: &mut ActiveDecision<'_>) -> bool {
        let writes = [&[active.lead.check()][..], &active.writes(false)[..]].concat();
        match self.coordination.commit(&writes).await {
            Ok(()) => {
                active.written();
                true
            }
            Err(error) => {
                self.write_failed(active, &error);
                false
            }
        }
    }

    /// Finishes a decision without a further action.
    pub(super) async fn finish(&self, active: &mut ActiveDecision<'_>, outcome: AlertOutcome, why: &str) -> Next {
        let now = Timestamp::now();
        active.memory.record_event(outcome, why, now);
        let writes = [&[active.lead.check()][..], &active.writes(true)[..]].concat();
        match self.coordination.commit(&writes).await {
            Ok(()) => {
                self.unanswered.lock().remove(&active.decision.id);
                self.record_decision(&active.decision, outcome, why, now).await;
                Next::Finished
            }
            Err(error) => {
                if matches!(error, CoordinationError::Unanswered(_)) {
                    let decision = active.decision.clone();
                    let end = UnansweredEnd { decision, outcome, why: why.to_owned(), at: now };
                    self.unanswered.lock().insert(active.decision.id, end);
                }
                self.write_failed(active, &error);
                Next::Retry
            }
        }
    }

    /// Records the ends of decisions that turn out to be written, though no answer came.
    async fn settle_unanswered(&self, snapshot: &Snapshot) {
        let ends: Vec<_> = self.unanswered.lock().values().cloned().collect();
        for end in ends {
            let fate = end.fate(snapshot);
            if fate == Fate::Done {
                self.record_decision(&end.decision, end.outcome, &end.why, end.at).await;
            }
            if fate != Fate::Open {
                self.unanswered.lock().remove(&end.decision.id);
            }
        }
    }

    /// Counts, logs and records the outcome of a decision.
    pub(super) async fn record_decision(&self, decision: &Decision, outcome: AlertOutcome, why: &str, now: Timestamp) {
        self.metrics.count(outcome);
        self.logged.lock().remove(&format!("decision {}", decision.name()));
        tracing::info!(rule = decision.rule, alert = decision.cause.alert, outcome = outcome.label(), "{why}");
        self.recent.note(RecentDecision {
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
            status: if decision.kind == DecisionKind::Act { "firing" } else { "resolved" }.to_owned(),
            outcome: outcome.label().to_owned(),
            detail: why.to_owned(),
            selector: self.rules.read().get(&decision.rule).map(|rule| rule.select.to_string()).unwrap_or_default(),
            targets: decision.list.as_ref().map(|list| list.did.clone()).unwrap_or_default(),
        };
        if let Err(why) = self.actions.audit().write(Record::Decision { id: decision.id, at: now, decided }).await {
            tracing::error!(decision = %decision.id, "{why}; the outcome of a decision was not recorded");
        }
    }

    /// A write was refused, or its outcome is unknown: everything is read again before the next write.
    pub(super) fn write_failed(&self, active: &ActiveDecision<'_>, error: &CoordinationError) {
        match error {
            CoordinationError::Changed { path, .. } if active.lead.is_at(path) => self.coordination.resign(),
            CoordinationError::Changed { .. }
            | CoordinationError::Crowded { .. }
            | CoordinationError::Refused { .. } => {
                let text = error.to_string();
                let before = self.logged.lock().insert(format!("decision {}", active.node), text.clone());
                if before.as_ref() == Some(&text) {
                    tracing::debug!(rule = active.rule.name, "retrying a decision: {text}");
                } else {
                    tracing::warn!(rule = active.rule.name, "retrying a decision: {text}");
                }
            }
            CoordinationError::NotConnected | CoordinationError::Unanswered(_) => {
                tracing::debug!(rule = active.rule.name, "a decision is waiting: {error}");
            }
        }
    }
}

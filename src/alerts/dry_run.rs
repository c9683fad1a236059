//! Dry runs: everything up to the actions.

use jiff::Timestamp;

use super::decision::{Scope, Trigger};
use super::evaluation::{Evaluation, Stop};
use super::guard;
use super::item::DecisionItem;
use super::memory::RuleHold;
use super::outcome::AlertOutcome;
use super::payload::Alert;
use super::rule::{Rule, RuleAction};
use super::server::{Dry, Shared};

/// How many targets are named.
const MAX_NAMED: usize = 100;

impl Shared {
    /// Evaluates a rule in dry run, and updates its state in this process as if it had acted.
    pub(super) fn dry_run(&self, rule: &Rule, alert: &Alert, scope: &Scope, now: Timestamp) -> Evaluation {
        let cause = Trigger::of(alert);
        let all = self.rules.read().budget;
        let mut dry = self.dry.lock();
        let Dry { memories, shared_budget } = &mut *dry;
        let memory = memories.entry(rule.name.clone()).or_default();
        let chosen = guard::admit(rule, memory, &cause, &scope.key(), now)
            .and_then(|()| self.queue_view(now).choose(rule, scope, memory));
        let choice = match chosen {
            Ok(choice) => choice,
            Err(stop) => return stop.into(),
        };
        let (room, bound) = guard::room(rule, memory, (shared_budget, all), choice.present, now);
        let wanted = choice.items.len();
        let items: Vec<DecisionItem> =
            choice.items.into_iter().take(usize::try_from(room).unwrap_or(usize::MAX)).collect();
        if items.is_empty() {
            let why = bound.why();
            if bound.trips() {
                memory.trip(why, now);
            }
            return Stop::new(AlertOutcome::Budget, bound.refusal(wanted)).into();
        }
        for item in &items {
            guard::take(rule, memory, shared_budget, all, &item.on, now);
            if rule.action == RuleAction::HoldCollections
                && let Some(collection) = item.collection()
            {
                memory.holds.retain(|hold| hold.collection != collection);
                let fingerprint = cause.fingerprint.clone();
                memory.holds.push(RuleHold { collection, since: now, fingerprint });
            }
        }
        memory.record_alert(&scope.key(), &cause.fingerprint, cause.starts_at, rule.cooldown, now);
        let limited = if items.len() < wanted { format!("; {}", bound.why()) } else { String::new() };
        let targets: Vec<_> = items.iter().map(|item| item.on.clone()).take(MAX_NAMED).collect();
        let detail =
            format!("would {} {} of {}: {}{limited}", rule.action.verb(), items.len(), choice.of, named(&targets));
        memory.record_event(AlertOutcome::DryRun, &detail, now);
        Evaluation { outcome: Some(AlertOutcome::DryRun), detail, targets, changes: true }
    }

    pub(super) fn dry_run_release(&self, rule: &Rule, alert: &Alert) -> Evaluation {
        let mut dry = self.dry.lock();
        let memory = dry.memories.entry(rule.name.clone()).or_default();
        let is_of = |hold: &RuleHold| hold.fingerprint == alert.fingerprint;
        let holds: Vec<_> =
            memory.holds.iter().filter(|hold| is_of(hold)).map(|hold| DecisionItem::hold(hold).on).collect();
        if !rule.is_undone || holds.is_empty() {
            return Stop::new(AlertOutcome::Resolved, "no hold would be released").into();
        }
        memory.holds.retain(|hold| !is_of(hold));
        let detail = format!("would release {} with the jobs held since", named(&holds));
        Evaluation { outcome: Some(AlertOutcome::Resolved), detail, targets: holds, changes: true }
    }
}

/// The first of many, in words.
fn named(targets: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = targets.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if targets.len() > SHOWN { format!("{shown} and {} more", targets.len() - SHOWN) } else { shown }
}

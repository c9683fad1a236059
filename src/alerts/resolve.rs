//! When an alert is resolved or fires again: pending decisions are cancelled, and holds are released or stay.

use jiff::Timestamp;

use super::accept::NotReceived;
use super::call::Call;
use super::decision::{Decision, DecisionKind, Scope, Trigger, act_name};
use super::evaluation::{Evaluation, Stop};
use super::outcome::AlertOutcome;
use super::payload::Alert;
use super::rule::Rule;
use super::server::Shared;
use queuekeeper_zookeeper::coordination::{self, CoordinationError, Snapshot, Write};

/// What was cancelled of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancelled {
    /// There is none on this alert.
    Nothing,
    /// All of it: its execution had not started.
    All,
    /// The rest of it.
    Rest,
}

impl Shared {
    /// The alert is firing: cancels a pending release of the rule's holds, unless its execution has started. Returns
    /// whether one was cancelled.
    pub(super) async fn keep_holds(&self, rule: &Rule, snapshot: &Snapshot) -> bool {
        let mut is_kept = false;
        for node in &snapshot.pending {
            let Ok(decision) = Decision::read(&node.data) else { continue };
            if decision.rule == rule.name && decision.kind == DecisionKind::Undo && !decision.is_started() {
                let delete = Write::Delete(coordination::pending(&node.name), node.version);
                match self.coordination.commit(&[delete]).await {
                    Ok(()) => {
                        is_kept = true;
                        tracing::info!(rule = rule.name, "cancelled the release of holds: the alert is firing");
                    }
                    Err(error) => tracing::debug!(rule = rule.name, "the holds are being released: {error}"),
                }
            }
        }
        is_kept
    }

    /// The alert is resolved: cancels what has not been executed, and releases the rule's holds if it is configured to.
    pub(super) async fn resolve<'a>(
        &self,
        rule: &'a Rule,
        alert: &Alert,
        scope: &Scope,
        (call, snapshot): (&mut Call<'a>, &'a Snapshot),
        now: Timestamp,
    ) -> Result<Evaluation, NotReceived> {
        let cancelled = self.cancel(rule, alert, scope, snapshot).await?;
        let resolved = |why: &str| Evaluation {
            changes: cancelled != Cancelled::Nothing,
            ..Stop::new(AlertOutcome::Resolved, why).into()
        };
        if cancelled == Cancelled::All {
            return Ok(resolved("cancelled before it started"));
        }
        if !rule.is_undone {
            let rest = cancelled == Cancelled::Rest;
            return Ok(resolved(if rest {
                "cancelled; the remaining items are not executed"
            } else {
                "nothing is released"
            }));
        }
        if call.memory(&rule.name).map_or(true, |memory| memory.holds.is_empty()) && cancelled == Cancelled::Nothing {
            return Ok(resolved("the rule holds no collection"));
        }
        if let Some(evaluation) = call.undone.get(&*rule.name) {
            return Ok(Evaluation { changes: cancelled != Cancelled::Nothing, ..evaluation.clone() });
        }
        let undoing = Decision::new(DecisionKind::Undo, rule, Trigger::of(alert), Scope::default(), now);
        let evaluation = self.add(&undoing, &mut call.waiting).await?;
        let changes = evaluation.changes || cancelled != Cancelled::Nothing;
        let evaluation = Evaluation { outcome: Some(AlertOutcome::Resolved), changes, ..evaluation };
        call.undone.insert(&rule.name, evaluation.clone());
        Ok(evaluation)
    }

    /// Cancels a decision on this alert, as far as it is not executed: all of it, or the rest of its list.
    async fn cancel(
        &self,
        rule: &Rule,
        alert: &Alert,
        scope: &Scope,
        snapshot: &Snapshot,
    ) -> Result<Cancelled, NotReceived> {
        /// How many attempts are made while the leader is executing it.
        const TRIES: usize = 20;
        let name = act_name(&rule.name, scope);
        let mut snapshot = snapshot.clone();
        for _ in 0..TRIES {
            let Some(node) = snapshot.pending(&name) else { return Ok(Cancelled::Nothing) };
            let is_it = |decision: &Decision| decision.cause.fingerprint == alert.fingerprint;
            let decision = Decision::read(&node.data).ok().filter(is_it);
            let Some(mut decision) = decision else { return Ok(Cancelled::Nothing) };
            let path = coordination::pending(&node.name);
            let (write, cancelled) = if let Some(list) = &mut decision.list {
                if list.items.is_empty() {
                    return Ok(Cancelled::Rest);
                }
                list.items.clear();
                list.limited = Some("the alert was resolved".to_owned());
                decision.not_before = None;
                (Write::Set(path, decision.data(), node.version), Cancelled::Rest)
            } else {
                (Write::Delete(path, node.version), Cancelled::All)
            };
            match self.coordination.commit(&[write]).await {
                Ok(()) => return Ok(cancelled),
                // The leader has executed an item in the meantime.
                Err(CoordinationError::Changed { .. }) => {}
                Err(error) => return Err(NotReceived::Unrecorded(error.to_string())),
            }
            snapshot = self.coordination.read().await.map_err(|error| NotReceived::NotSynced(error.to_string()))?;
        }
        Err(NotReceived::Unrecorded("the decision advances faster than it can be cancelled".to_owned()))
    }
}

//! An alert is over, or on again: what waits is cancelled, and what was done is taken back or stays.

use jiff::Timestamp;

use super::accept::{NotReceived, Verdict};
use super::call::Call;
use super::decision::{Cause, Decision, Kind, Scope, act_name};
use super::guard::Stop;
use super::outcome::Outcome;
use super::payload::Alert;
use super::rule::Rule;
use super::server::Shared;
use queuekeeper_zookeeper::coordination::{self, CoordinationError, Snapshot, Write};

/// What was taken away of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancelled {
    /// There is none on this alert.
    Nothing,
    /// All of it: it had not begun.
    All,
    /// The rest of it.
    Rest,
}

impl Shared {
    /// The alert is on: what waits to take back what the rule did is not done, unless it has begun. Gives whether something
    /// was taken away.
    pub(super) async fn keep_holds(&self, rule: &Rule, snapshot: &Snapshot) -> bool {
        let mut is_kept = false;
        for node in &snapshot.pending {
            let Ok(decision) = Decision::read(&node.data) else { continue };
            if decision.rule == rule.name && decision.kind == Kind::Undo && !decision.is_begun() {
                let delete = Write::Delete(coordination::pending(&node.name), node.version);
                match self.coordination.commit(&[delete]).await {
                    Ok(()) => {
                        is_kept = true;
                        tracing::info!(rule = rule.name, "what it holds stays held: its alert is on");
                    }
                    Err(error) => tracing::debug!(rule = rule.name, "what it holds is being released: {error}"),
                }
            }
        }
        is_kept
    }

    /// An alert is over: cancels what has not begun, and takes back what was done for it, where the rule says so.
    pub(super) async fn resolve<'a>(
        &self,
        rule: &'a Rule,
        alert: &Alert,
        scope: &Scope,
        (call, snapshot): (&mut Call<'a>, &'a Snapshot),
        now: Timestamp,
    ) -> Result<Verdict, NotReceived> {
        let cancelled = self.cancel(rule, alert, scope, snapshot).await?;
        let resolved = |why: &str| Verdict {
            changes: cancelled != Cancelled::Nothing,
            ..Stop::new(Outcome::Resolved, why).into()
        };
        if cancelled == Cancelled::All {
            return Ok(resolved("what was to be done had not begun, and is not done"));
        }
        if !rule.is_undone {
            let rest = cancelled == Cancelled::Rest;
            return Ok(resolved(if rest {
                "the rest of what was being done is not done"
            } else {
                "nothing is taken back"
            }));
        }
        if call.memory(&rule.name).map_or(true, |memory| memory.holds.is_empty()) && cancelled == Cancelled::Nothing {
            return Ok(resolved("nothing is held"));
        }
        if let Some(verdict) = call.undone.get(&*rule.name) {
            return Ok(Verdict { changes: cancelled != Cancelled::Nothing, ..verdict.clone() });
        }
        let undoing = Decision::new(Kind::Undo, rule, Cause::of(alert), Scope::default(), now);
        let verdict = self.add(&undoing, &mut call.waiting).await?;
        let changes = verdict.changes || cancelled != Cancelled::Nothing;
        let verdict = Verdict { outcome: Some(Outcome::Resolved), changes, ..verdict };
        call.undone.insert(&rule.name, verdict.clone());
        Ok(verdict)
    }

    /// Takes away of a decision on this alert what has not begun: all of it, or the rest of its list.
    async fn cancel(
        &self,
        rule: &Rule,
        alert: &Alert,
        scope: &Scope,
        snapshot: &Snapshot,
    ) -> Result<Cancelled, NotReceived> {
        /// How often it is tried beside a process that is just going on with it.
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
                // It went on meanwhile.
                Err(CoordinationError::Changed { .. }) => {}
                Err(error) => return Err(NotReceived::Unrecorded(error.to_string())),
            }
            snapshot = self.coordination.read().await.map_err(|error| NotReceived::NotSynced(error.to_string()))?;
        }
        Err(NotReceived::Unrecorded("what is being done goes on faster than it can be cancelled".to_owned()))
    }
}

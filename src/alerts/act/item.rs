//! One item of a decision: checked again, and committed in one transaction with the updated decision.

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};

use super::{ActiveDecision, MAX_FAILURES, Next};
use crate::actions::{Action, ActionKind, Actor, Reason, Refusal, Role, Source, WithWritesError};
use crate::alerts::decision::{Decision, DecisionKind, ItemList};
use crate::alerts::guard;
use crate::alerts::item::DecisionItem;
use crate::alerts::memory::RuleHold;
use crate::alerts::outcome::AlertOutcome;
use crate::alerts::rule::RuleAction;
use crate::alerts::server::Shared;
use crate::alerts::time::later;

/// How many of the executed items are named in the decision.
const MAX_NAMED: usize = 100;

impl Shared {
    /// Executes the next item of a decision.
    pub(super) async fn execute_next(&self, active: &mut ActiveDecision<'_>) -> Next {
        let now = Timestamp::now();
        if self.check_synced(now).is_err() {
            return Next::Retry;
        }
        let Some(item) = active.list().items.front().cloned() else { return self.end(active).await };
        let action = match self.action(active, &item, now) {
            Ok(action) => action,
            Err(why) => return self.skip(active, &item, &why).await,
        };
        if active.decision.kind == DecisionKind::Act && active.room(u64::MAX >> 1, now).0 == 0 {
            return self.stop(active, now).await;
        }
        let (actor, reason) = (active.actor(), active.decision.reason());
        let reason = Reason::new(&reason)
            .unwrap_or_else(|_| Reason::new(&active.rule.actor()).expect("a rule's name is short and not empty"));
        let (before, memory, shared_budget) =
            (active.decision.clone(), active.memory.clone(), active.shared_budget.clone());
        active.done(&item, now);
        // The last step of a decision is a transaction of its own: there may be further items to release.
        let writes = [&active.lead.writes()[..], &active.writes(false)[..]].concat();
        // The data of a hold contains its time in whole seconds, by which it is identified.
        let at = if action.kind() == ActionKind::Hold { whole_second(now) } else { now };
        match self.actions.execute_with_writes(&action, &actor, &reason, (active.decision.id, &writes), at).await {
            Ok(_) => {
                active.written();
                if active.decision.kind == DecisionKind::Undo {
                    active.released.insert((item.on, item.version));
                }
                Next::Continue
            }
            Err(error) => {
                (active.decision, active.memory, active.shared_budget) = (before, memory, shared_budget);
                self.not_done(active, &item, error, now).await
            }
        }
    }

    /// The action on an item, if the item still is as it was selected.
    fn action(&self, active: &ActiveDecision<'_>, item: &DecisionItem, now: Timestamp) -> Result<Action, String> {
        let target = item.target().ok_or("the item is not a target of an action")?;
        let queue_view = self.queue_view(now);
        match active.decision.kind {
            DecisionKind::Act => {
                queue_view.still(active.rule, &active.decision.scope, &target)?;
                if active.memory.attempts_on(&item.on) >= active.rule.attempts {
                    return Err("the limit of attempts is reached".to_owned());
                }
                item.action(active.rule.action, target).map_err(|refusal| refusal.to_string())
            }
            DecisionKind::Undo => {
                if !item.since.is_some_and(|since| queue_view.is_still_held(&target, since)) {
                    return Err("it is no longer Held".to_owned());
                }
                item.undoing(&active.rule.actor(), target).map_err(|refusal| refusal.to_string())
            }
        }
    }

    /// Handles an item whose action failed.
    async fn not_done(
        &self,
        active: &mut ActiveDecision<'_>,
        item: &DecisionItem,
        error: WithWritesError,
        now: Timestamp,
    ) -> Next {
        match error {
            WithWritesError::Write { path, why } => {
                if active.lead.is_at(&path) {
                    self.coordination.resign();
                } else {
                    tracing::debug!(rule = active.rule.name, path, %why, "retrying a decision");
                }
                Next::Retry
            }
            WithWritesError::Action(
                refusal @ (Refusal::Conflict { .. }
                | Refusal::Missing(_)
                | Refusal::Invalid(_)
                | Refusal::OtherRequest(_)
                | Refusal::TooMuch { .. }
                | Refusal::TooLarge(_)
                | Refusal::NoRoom(_)
                | Refusal::Forbidden { .. }),
            ) => self.skip(active, item, &refusal.to_string()).await,
            WithWritesError::Action(refusal @ Refusal::Unavailable(_)) => {
                tracing::debug!(rule = active.rule.name, "a decision is waiting: {refusal}");
                Next::Retry
            }
            // The decision shows whether the transaction was committed; it is read again.
            WithWritesError::Action(Refusal::Unknown(why) | Refusal::InPart(why)) => {
                tracing::warn!(rule = active.rule.name, "{why}; reading the decision again");
                self.metrics.count(AlertOutcome::Unknown);
                Next::Retry
            }
            WithWritesError::Action(Refusal::Failed(why)) => self.fail(active, &why, now).await,
        }
    }

    /// Skips an item that has changed.
    async fn skip(&self, active: &mut ActiveDecision<'_>, item: &DecisionItem, why: &str) -> Next {
        tracing::info!(rule = active.rule.name, item = item.on, "skipped an item: {why}");
        let list = active.list_mut();
        list.items.pop_front();
        list.passed += 1;
        if active.decision.kind == DecisionKind::Undo
            && let Some(collection) = item.collection()
        {
            // A user released it before, or holds it now: it is no longer the rule's.
            active.memory.holds.retain(|hold| hold.collection != collection);
        }
        if self.save(active).await { Next::Continue } else { Next::Retry }
    }

    /// Stops because another rule has used up the shared budget: the rest is not executed.
    async fn stop(&self, active: &mut ActiveDecision<'_>, now: Timestamp) -> Next {
        let (_, bound) = active.room(u64::MAX >> 1, now);
        if bound.trips() {
            active.memory.trip(bound.why(), now);
        }
        let list = active.list_mut();
        list.items.clear();
        list.limited = Some(bound.why().to_owned());
        if self.save(active).await { Next::Continue } else { Next::Retry }
    }

    /// Retries later after ZooKeeper refused a transaction, a limited number of times.
    async fn fail(&self, active: &mut ActiveDecision<'_>, why: &str, now: Timestamp) -> Next {
        self.metrics.count(AlertOutcome::Failed);
        active.decision.failures += 1;
        let failures = active.decision.failures;
        if failures >= MAX_FAILURES {
            return self.finish(active, AlertOutcome::GaveUp, &format!("it failed {failures} times: {why}")).await;
        }
        let pause = guard::pause_after(failures);
        active.decision.not_before = Some(later(now, pause));
        active.memory.record_event(
            AlertOutcome::Failed,
            &format!("{why}; retrying in {} min", pause.as_secs() / 60),
            now,
        );
        tracing::error!(rule = active.rule.name, failures, "a decision failed, will retry: {why}");
        // Other decisions are executed in the meantime.
        if self.save(active).await { Next::Finished } else { Next::Retry }
    }

    /// Finishes a decision whose list is processed, unless there is more to release.
    async fn end(&self, active: &mut ActiveDecision<'_>) -> Next {
        let now = Timestamp::now();
        if active.decision.kind == DecisionKind::Undo {
            let more = self.held_still(active, now);
            if !more.is_empty() {
                let list = active.list_mut();
                list.of += more.len();
                list.items.extend(more);
                return if self.save(active).await { Next::Continue } else { Next::Retry };
            }
        }
        let Decision { kind, cause, scope, .. } = &active.decision;
        let (verb, is_act) = match kind {
            DecisionKind::Act => (active.rule.action.past(), true),
            DecisionKind::Undo => ("released", false),
        };
        let (list, key) = (active.list(), scope.key());
        let why = format!("{}{}", list.in_words(verb), list.named());
        let outcome = if list.done > 0 { AlertOutcome::Executed } else { AlertOutcome::NothingToDo };
        if list.done > 0 && is_act {
            let cause = cause.clone();
            active.memory.record_alert(&key, &cause.fingerprint, cause.starts_at, active.rule.cooldown, now);
        }
        self.finish(active, outcome, &why).await
    }

    /// The batches and jobs that are Held because of the rule's holds, of collections that are free now.
    fn held_still(&self, active: &ActiveDecision<'_>, now: Timestamp) -> Vec<DecisionItem> {
        let queue_view = self.queue_view(now);
        let list = active.list();
        // Jobs whose release failed repeatedly are left to a user.
        if list.passed > list.done {
            return Vec::new();
        }
        // A job released just now may still be Held in the mirror.
        let is_free = |collection: &str| active.freed.contains(collection) || queue_view.is_free(collection);
        let free = list.held_from.iter().filter(|(collection, _)| is_free(collection));
        free.flat_map(|(collection, since)| {
            let held = queue_view.held_since(collection, *since);
            held.into_iter().map(|item| DecisionItem { since: Some(*since), ..item })
        })
        .filter(|item| !active.released.contains(&(item.on.clone(), item.version)))
        .collect()
    }
}

impl ActiveDecision<'_> {
    fn list(&self) -> &ItemList {
        self.decision.list.as_ref().expect("a decision has a list before its items are executed")
    }

    fn list_mut(&mut self) -> &mut ItemList {
        self.decision.list.get_or_insert_default()
    }

    /// The actor: an admin only where destructive actions are allowed and the rule has one.
    fn actor(&self) -> Actor {
        let may_all = self.rules.are_destructive_allowed && self.rule.action.kind().is_destructive();
        let role = if may_all && self.decision.kind == DecisionKind::Act { Role::Admin } else { Role::Operator };
        Actor { name: self.rule.actor(), role, source: Source::Alert, from: None }
    }

    /// Notes that an item is done, in all znodes of the transaction.
    fn done(&mut self, item: &DecisionItem, now: Timestamp) {
        let list = self.list_mut();
        list.items.pop_front();
        list.done += 1;
        if list.did.len() < MAX_NAMED {
            list.did.push(item.on.clone());
        }
        self.decision.not_before = None;
        match self.decision.kind {
            DecisionKind::Act => {
                guard::take(self.rule, &mut self.memory, &mut self.shared_budget, self.rules.budget, &item.on, now);
                if self.rule.action == RuleAction::HoldCollections
                    && let Some(collection) = item.collection()
                {
                    let fingerprint = self.decision.cause.fingerprint.clone();
                    self.memory.holds.push(RuleHold { collection, since: whole_second(now), fingerprint });
                }
            }
            DecisionKind::Undo => {
                if let Some(collection) = item.collection() {
                    self.memory.holds.retain(|hold| hold.collection != collection);
                    // A successful hold is not an attempt that counts.
                    self.memory.forget_attempts(Some(&item.on));
                    self.freed.insert(collection);
                }
            }
        }
    }
}

/// The instant as stored in the data of a hold.
fn whole_second(now: Timestamp) -> Timestamp {
    now.round(TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Trunc)).unwrap_or(now)
}

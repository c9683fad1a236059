//! Receiving a call of Alertmanager: decisions are stored before the response.

use jiff::Timestamp;
use tokio::time::Instant;

use super::call::{ACCEPTED, Call, UnchangedDecisions};
use super::decision::{Decision, DecisionKind, Scope, Trigger};
use super::evaluation::{Evaluation, Stop};
use super::guard;
use super::memory::{Memory, SharedBudget};
use super::outcome::AlertOutcome;
use super::payload::{Alert, BadPayload, Payload, Status};
use super::recent::RecentDecision;
use super::rule::{Mode, Rule, Rules};
use super::server::{Alerts, Shared};
use crate::actions::Actor;
use crate::actions::audit::{ActionId, Decided, NotWritten, Record, Unchanged};
use queuekeeper_zookeeper::coordination::{self, CoordinationError, Snapshot, Write};

/// How many decisions of all processes may be pending.
pub(super) const MAX_PENDING: usize = 1_000;

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Received {
    /// The decision about each alert by each rule that matches it.
    pub decisions: Vec<Decided>,
    /// How many alerts match no rule.
    pub unmatched: u64,
}

/// Why a call was rejected. Decisions that it stored before stay, and are not stored twice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReceived {
    /// It is not a supported message of Alertmanager. A retry does not help.
    #[error(transparent)]
    Invalid(#[from] BadPayload),
    /// Nothing can be decided now.
    #[error("{0}; nothing was decided, retry")]
    NotSynced(String),
    /// Too many calls or decisions are waiting.
    #[error("{0}; retry later")]
    Full(String),
    /// A decision could not be recorded in the audit trail.
    #[error("{0}; nothing was decided, retry")]
    NotWritten(#[from] NotWritten),
    /// A decision could not be stored.
    #[error("the decision cannot be stored: {0}; retry")]
    Unrecorded(String),
}

impl Alerts {
    /// Receives a call of Alertmanager. When this returns, its decisions are stored: the leader executes them, even if
    /// this process ends.
    ///
    /// # Errors
    /// When it is invalid, or cannot be decided or stored now.
    pub async fn receive(&self, body: &[u8], caller: &Actor, now: Timestamp) -> Result<Received, NotReceived> {
        let received = self.shared.receive(body, caller, now).await;
        if let Err(error) = &received {
            let outcome = match error {
                NotReceived::Invalid(_) => AlertOutcome::Invalid,
                NotReceived::NotSynced(_) => AlertOutcome::NotSynced,
                NotReceived::Full(_) => AlertOutcome::QueueFull,
                NotReceived::NotWritten(_) | NotReceived::Unrecorded(_) => AlertOutcome::Failed,
            };
            self.shared.metrics.count(outcome);
            let line = RecentDecision {
                at: now,
                rule: None,
                alert: String::new(),
                outcome: Some(outcome),
                detail: error.to_string(),
                count: 1,
            };
            self.shared.recent.note(line);
        }
        received
    }
}

impl Shared {
    async fn receive(&self, body: &[u8], caller: &Actor, now: Timestamp) -> Result<Received, NotReceived> {
        if !self.pace.take(&caller.name, Instant::now()) {
            return Err(NotReceived::Full("too many calls with this token".to_owned()));
        }
        let payload = Payload::read(body)?;
        let _permit =
            self.calls.try_acquire().map_err(|_| NotReceived::Full("too many concurrent calls".to_owned()))?;
        let rules = self.rules.read().clone();
        let matched = matches(&rules, &payload);
        if !matched.is_empty() {
            self.actions.audit().check_alerts().await?;
        }
        let snapshot = if matched.iter().any(|(_, rule)| rule.mode == Mode::Enforce) {
            Some(self.coordination.read().await.map_err(|error| NotReceived::NotSynced(error.to_string()))?)
        } else {
            None
        };
        let all = snapshot.as_ref().and_then(|snapshot| snapshot.all.as_ref());
        if all.is_some_and(|all| SharedBudget::read(&all.data).is_err()) {
            let why = format!("{} is not valid; set it to an empty value", coordination::rules());
            return Err(NotReceived::Unrecorded(why));
        }
        if matched.iter().any(|(alert, _)| alert.status == Status::Firing) {
            self.check_synced(now).map_err(NotReceived::NotSynced)?;
        }
        let mut received = Received::default();
        for alert in &payload.alerts {
            if !rules.rules.iter().any(|rule| rule.names(alert)) {
                received.unmatched += 1;
            }
        }
        self.metrics.count_many(AlertOutcome::NoMatch, received.unmatched);
        let mut call = Call::new(snapshot.as_ref());
        let (mut changes, mut unchanged) = (Vec::new(), UnchangedDecisions::default());
        for (alert, rule) in matched {
            // Each may take a while; other tasks must run in between.
            tokio::task::yield_now().await;
            let evaluation = self.decide(rule, alert, &mut call, now).await?;
            if let Some(outcome) = evaluation.outcome {
                self.metrics.count(outcome);
            }
            self.recent.note(RecentDecision {
                at: now,
                rule: Some(rule.name.clone()),
                alert: rule.alert.clone(),
                outcome: evaluation.outcome,
                detail: evaluation.detail.clone(),
                count: 1,
            });
            let decided = Decided {
                rule: rule.name.clone(),
                alert: rule.alert.clone(),
                fingerprint: alert.fingerprint.clone(),
                starts_at: alert.starts_at,
                status: if alert.status == Status::Firing { "firing" } else { "resolved" }.to_owned(),
                outcome: evaluation.outcome.map_or(ACCEPTED, AlertOutcome::label).to_owned(),
                detail: evaluation.detail,
                selector: rule.select.to_string(),
                targets: evaluation.targets,
            };
            if evaluation.changes {
                changes.push(decided.clone());
            } else {
                unchanged.add(&decided);
            }
            received.decisions.push(decided);
        }
        let (has_changes, more) = (!changes.is_empty(), unchanged.count());
        if has_changes {
            let record = Record::Alerts {
                id: ActionId::new(now),
                at: now,
                actor: caller.name.clone(),
                from: caller.from.map(|from| from.to_string()),
                receiver: payload.receiver,
                group: payload.group,
                truncated: payload.truncated,
                unmatched: received.unmatched,
                decisions: changes,
                more,
            };
            let written = self.actions.audit().write(record).await;
            written.map_err(|why| NotReceived::Unrecorded(why.to_string()))?;
        }
        // Decisions with a record of their own are not counted again.
        let (unmatched, truncated) = if has_changes { (0, 0) } else { (received.unmatched, payload.truncated) };
        if !has_changes || more > 0 {
            let actor = caller.name.clone();
            let sum =
                Unchanged { actor, unmatched, truncated, decisions: unchanged.decisions(), is_call: !has_changes };
            self.actions.audit().count(sum, now);
        }
        if payload.truncated > 0 {
            tracing::warn!(truncated = payload.truncated, "Alertmanager omitted alerts from a message (max_alerts)");
        }
        self.wake.notify_one();
        Ok(received)
    }

    async fn decide<'a>(
        &self,
        rule: &'a Rule,
        alert: &Alert,
        call: &mut Call<'a>,
        now: Timestamp,
    ) -> Result<Evaluation, NotReceived> {
        if let Some(why) = self.other_queue(alert) {
            return Ok(Stop::new(AlertOutcome::NoMatch, why).into());
        }
        let scope = match Scope::of(rule, alert) {
            Ok(scope) => scope,
            Err(narrow) => {
                let why = format!("its label {} has a value that the rule does not select", narrow.label());
                return Ok(Stop::new(AlertOutcome::NoMatch, why).into());
            }
        };
        match (alert.status, call.snapshot.filter(|_| rule.mode == Mode::Enforce)) {
            (Status::Firing, Some(snapshot)) => self.accept(rule, alert, scope, (call, snapshot), now).await,
            (Status::Resolved, Some(snapshot)) => self.resolve(rule, alert, &scope, (call, snapshot), now).await,
            (Status::Firing, None) => Ok(self.dry_run_once(rule, alert, &scope, call, now)),
            (Status::Resolved, None) => Ok(self.dry_run_release(rule, alert)),
        }
    }

    /// Evaluates an alert in dry run, unless the rule found nothing to do for another alert of the same scope.
    fn dry_run_once<'a>(
        &self,
        rule: &'a Rule,
        alert: &Alert,
        scope: &Scope,
        call: &mut Call<'a>,
        now: Timestamp,
    ) -> Evaluation {
        let place = (&*rule.name, scope.key());
        if let Some(Err(stop)) = call.decided.get(&place) {
            return stop.clone().into();
        }
        let evaluation = self.dry_run(rule, alert, scope, now);
        if let Some(outcome @ (AlertOutcome::NothingToDo | AlertOutcome::GaveUp)) = evaluation.outcome {
            call.decided.insert(place, Err(Stop::new(outcome, evaluation.detail.clone())));
        }
        evaluation
    }

    /// Accepts a decision, unless it is forbidden already. Budgets are checked when it is executed.
    async fn accept<'a>(
        &self,
        rule: &'a Rule,
        alert: &Alert,
        scope: Scope,
        (call, snapshot): (&mut Call<'a>, &'a Snapshot),
        now: Timestamp,
    ) -> Result<Evaluation, NotReceived> {
        if snapshot.paused.is_some() {
            return Ok(Stop::new(AlertOutcome::Paused, "automatic actions are paused").into());
        }
        let memory = match call.memory(&rule.name) {
            Ok(memory) => memory,
            Err(stop) => return Ok(stop.into()),
        };
        let is_kept = rule.is_undone && call.kept.insert(&rule.name) && self.keep_holds(rule, snapshot).await;
        let evaluation = self.accept_new(rule, alert, scope, (call, snapshot), &memory, now).await?;
        Ok(Evaluation { changes: evaluation.changes || is_kept, ..evaluation })
    }

    /// The same, with the rule's state.
    async fn accept_new<'a>(
        &self,
        rule: &'a Rule,
        alert: &Alert,
        scope: Scope,
        (call, _): (&mut Call<'a>, &'a Snapshot),
        memory: &Memory,
        now: Timestamp,
    ) -> Result<Evaluation, NotReceived> {
        let cause = Trigger::of(alert);
        let key = scope.key();
        if let Err(stop) = guard::admit(rule, memory, &cause, &key, now) {
            return Ok(stop.into());
        }
        let place = (&*rule.name, key);
        match call.decided.get(&place) {
            Some(Ok(())) => return Ok(duplicate()),
            Some(Err(stop)) => return Ok(stop.clone().into()),
            None => {}
        }
        let chosen = self.queue_view(now).choose(rule, &scope, memory).map(drop);
        call.decided.insert(place, chosen.clone());
        match chosen {
            Err(stop) => Ok(stop.into()),
            Ok(()) => self.add(&Decision::new(DecisionKind::Act, rule, cause, scope, now), &mut call.waiting).await,
        }
    }

    pub(super) async fn add(&self, decision: &Decision, waiting: &mut usize) -> Result<Evaluation, NotReceived> {
        if *waiting >= MAX_PENDING {
            return Err(NotReceived::Full(format!("{MAX_PENDING} decisions are pending already")));
        }
        let create = [Write::Create(coordination::pending(&decision.name()), decision.data())];
        let mut created = self.coordination.commit(&create).await;
        if created.as_ref().is_err_and(CoordinationError::is_missing) {
            // The parent znodes were removed, or not created yet.
            let made = self.coordination.make_folders().await;
            made.map_err(|error| NotReceived::Unrecorded(error.to_string()))?;
            created = self.coordination.commit(&create).await;
        }
        match created {
            Ok(()) => {
                *waiting += 1;
                let detail = match decision.kind {
                    DecisionKind::Act => "pending",
                    DecisionKind::Undo => "pending: the rule's holds are released",
                };
                Ok(Evaluation { outcome: None, detail: detail.to_owned(), targets: Vec::new(), changes: true })
            }
            Err(error) if error.is_there() => Ok(duplicate()),
            Err(error) => Err(NotReceived::Unrecorded(error.to_string())),
        }
    }
}

fn duplicate() -> Evaluation {
    Stop::new(AlertOutcome::Duplicate, "the same decision is pending already").into()
}

/// Each alert with each rule that matches it.
fn matches<'a>(rules: &'a Rules, payload: &'a Payload) -> Vec<(&'a Alert, &'a Rule)> {
    let mut found = Vec::new();
    for alert in &payload.alerts {
        for rule in &rules.rules {
            if rule.names(alert) {
                found.push((alert, rule));
            }
        }
    }
    found
}

//! Taking a call of Alertmanager: what is to be done is written down before it is answered.

use jiff::Timestamp;
use tokio::time::Instant;

use super::book::Line;
use super::call::{ACCEPTED, Call, Unchanging};
use super::decision::{Cause, Decision, Kind, Scope};
use super::guard::{self, Stop};
use super::memory::{Memory, Together};
use super::outcome::Outcome;
use super::payload::{Alert, BadPayload, Payload, Status};
use super::rule::{Mode, Rule, Rules};
use super::server::{Alerts, Shared};
use crate::actions::Actor;
use crate::actions::audit::{ActionId, Decided, NotWritten, Record, Unchanged};
use queuekeeper_zookeeper::coordination::{self, CoordinationError, Snapshot, Write};

/// How many decisions may wait, of all processes.
pub(super) const MOST_PENDING: usize = 1_000;

/// What came of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Received {
    /// What was decided of each alert by each rule that names it.
    pub decisions: Vec<Decided>,
    /// How many alerts no rule names.
    pub unmatched: u64,
}

/// Why a call was not taken. What of it was decided before stays so, and is not decided twice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReceived {
    /// It is no message of Alertmanager that we know. Sending it again does not help.
    #[error(transparent)]
    Invalid(#[from] BadPayload),
    /// Nothing can be decided now.
    #[error("{0}; nothing was decided, send it again")]
    NotSynced(String),
    /// Too much waits.
    #[error("{0}; send it again later")]
    Full(String),
    /// Whatever is decided could not be written down.
    #[error("{0}; nothing was decided, send it again")]
    NotWritten(#[from] NotWritten),
    /// It could not be written down.
    #[error("what was decided cannot be written down: {0}; send it again")]
    Unrecorded(String),
}

/// What a rule makes of an alert.
#[derive(Clone)]
pub(super) struct Verdict {
    /// `None` for what is accepted, and counts when it is done.
    pub(super) outcome: Option<Outcome>,
    pub(super) detail: String,
    pub(super) targets: Vec<String>,
    /// Whether something is or will be another by it, or would in a dry run: it is written down by itself, and what
    /// changes nothing is only counted.
    pub(super) changes: bool,
}

impl From<Stop> for Verdict {
    fn from(stop: Stop) -> Self {
        Self { outcome: Some(stop.outcome), detail: stop.why, targets: Vec::new(), changes: false }
    }
}

impl Alerts {
    /// Takes a call of Alertmanager. When this returns, what was decided is written down: it is done by whoever leads,
    /// though this process ends.
    ///
    /// # Errors
    /// When it is not understood, or cannot be decided or written down now.
    pub async fn receive(&self, body: &[u8], caller: &Actor, now: Timestamp) -> Result<Received, NotReceived> {
        let received = self.shared.receive(body, caller, now).await;
        if let Err(error) = &received {
            let outcome = match error {
                NotReceived::Invalid(_) => Outcome::Invalid,
                NotReceived::NotSynced(_) => Outcome::NotSynced,
                NotReceived::Full(_) => Outcome::QueueFull,
                NotReceived::NotWritten(_) | NotReceived::Unrecorded(_) => Outcome::Failed,
            };
            self.shared.metrics.count(outcome);
            let line = Line {
                at: now,
                rule: None,
                alert: String::new(),
                outcome: Some(outcome),
                detail: error.to_string(),
                count: 1,
            };
            self.shared.book.note(line);
        }
        received
    }
}

impl Shared {
    async fn receive(&self, body: &[u8], caller: &Actor, now: Timestamp) -> Result<Received, NotReceived> {
        if !self.pace.take(&caller.name, Instant::now()) {
            return Err(NotReceived::Full("this token has sent too many calls in a short time".to_owned()));
        }
        let payload = Payload::read(body)?;
        let _permit =
            self.calls.try_acquire().map_err(|_| NotReceived::Full("too many calls are looked after".to_owned()))?;
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
        if all.is_some_and(|all| Together::read(&all.data).is_err()) {
            let why = format!("{} cannot be read: empty it", coordination::rules());
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
        self.metrics.count_many(Outcome::NoMatch, received.unmatched);
        let mut call = Call::new(snapshot.as_ref());
        let (mut changes, mut unchanged) = (Vec::new(), Unchanging::default());
        for (alert, rule) in matched {
            // Each may take a while, and others want to be answered meanwhile.
            tokio::task::yield_now().await;
            let verdict = self.decide(rule, alert, &mut call, now).await?;
            if let Some(outcome) = verdict.outcome {
                self.metrics.count(outcome);
            }
            self.book.note(Line {
                at: now,
                rule: Some(rule.name.clone()),
                alert: rule.alert.clone(),
                outcome: verdict.outcome,
                detail: verdict.detail.clone(),
                count: 1,
            });
            let decided = Decided {
                rule: rule.name.clone(),
                alert: rule.alert.clone(),
                fingerprint: alert.fingerprint.clone(),
                starts_at: alert.starts_at,
                status: if alert.status == Status::Firing { "firing" } else { "resolved" }.to_owned(),
                outcome: verdict.outcome.map_or(ACCEPTED, Outcome::label).to_owned(),
                detail: verdict.detail,
                selector: rule.select.to_string(),
                targets: verdict.targets,
            };
            if verdict.changes {
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
        // What has a record of its own is not counted once more.
        let (unmatched, truncated) = if has_changes { (0, 0) } else { (received.unmatched, payload.truncated) };
        if !has_changes || more > 0 {
            let actor = caller.name.clone();
            let sum =
                Unchanged { actor, unmatched, truncated, decisions: unchanged.decisions(), is_call: !has_changes };
            self.actions.audit().count(sum, now);
        }
        if payload.truncated > 0 {
            tracing::warn!(truncated = payload.truncated, "Alertmanager left alerts out of a message (max_alerts)");
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
    ) -> Result<Verdict, NotReceived> {
        let scope = match Scope::of(rule, alert) {
            Ok(scope) => scope,
            Err(narrow) => {
                let why = format!("its label {} names none that the rule has", narrow.label());
                return Ok(Stop::new(Outcome::NoMatch, why).into());
            }
        };
        match (alert.status, call.snapshot.filter(|_| rule.mode == Mode::Enforce)) {
            (Status::Firing, Some(snapshot)) => self.accept(rule, alert, scope, (call, snapshot), now).await,
            (Status::Resolved, Some(snapshot)) => self.resolve(rule, alert, &scope, (call, snapshot), now).await,
            (Status::Firing, None) => Ok(self.rehearse_once(rule, alert, &scope, call, now)),
            (Status::Resolved, None) => Ok(self.rehearse_undoing(rule, alert)),
        }
    }

    /// Rehearses an alert, unless nothing was found to be done about another that narrows the rule in the same way.
    fn rehearse_once<'a>(
        &self,
        rule: &'a Rule,
        alert: &Alert,
        scope: &Scope,
        call: &mut Call<'a>,
        now: Timestamp,
    ) -> Verdict {
        let place = (&*rule.name, scope.key());
        if let Some(Err(stop)) = call.decided.get(&place) {
            return stop.clone().into();
        }
        let verdict = self.rehearse(rule, alert, scope, now);
        if let Some(outcome @ (Outcome::NothingToDo | Outcome::GaveUp)) = verdict.outcome {
            call.decided.insert(place, Err(Stop::new(outcome, verdict.detail.clone())));
        }
        verdict
    }

    /// Accepts what a rule is to do, unless something is against it already. Budgets are looked at when it is done.
    async fn accept<'a>(
        &self,
        rule: &'a Rule,
        alert: &Alert,
        scope: Scope,
        (call, snapshot): (&mut Call<'a>, &'a Snapshot),
        now: Timestamp,
    ) -> Result<Verdict, NotReceived> {
        if snapshot.paused.is_some() {
            return Ok(Stop::new(Outcome::Paused, "all automatic action is paused").into());
        }
        let memory = match call.memory(&rule.name) {
            Ok(memory) => memory,
            Err(stop) => return Ok(stop.into()),
        };
        let is_kept = rule.is_undone && call.kept.insert(&rule.name) && self.keep_holds(rule, snapshot).await;
        let verdict = self.accept_new(rule, alert, scope, (call, snapshot), &memory, now).await?;
        Ok(Verdict { changes: verdict.changes || is_kept, ..verdict })
    }

    /// The same, when it is known what the rule remembers.
    async fn accept_new<'a>(
        &self,
        rule: &'a Rule,
        alert: &Alert,
        scope: Scope,
        (call, _): (&mut Call<'a>, &'a Snapshot),
        memory: &Memory,
        now: Timestamp,
    ) -> Result<Verdict, NotReceived> {
        let cause = Cause::of(alert);
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
        let chosen = self.sight(now).choose(rule, &scope, memory).map(drop);
        call.decided.insert(place, chosen.clone());
        match chosen {
            Err(stop) => Ok(stop.into()),
            Ok(()) => self.add(&Decision::new(Kind::Act, rule, cause, scope, now), &mut call.waiting).await,
        }
    }

    pub(super) async fn add(&self, decision: &Decision, waiting: &mut usize) -> Result<Verdict, NotReceived> {
        if *waiting >= MOST_PENDING {
            return Err(NotReceived::Full(format!("{MOST_PENDING} decisions wait already")));
        }
        let create = [Write::Create(coordination::pending(&decision.name()), decision.data())];
        let mut created = self.coordination.commit(&create).await;
        if created.as_ref().is_err_and(CoordinationError::is_missing) {
            // Somebody removed the folder, or nobody has made it yet.
            let made = self.coordination.make_folders().await;
            made.map_err(|error| NotReceived::Unrecorded(error.to_string()))?;
            created = self.coordination.commit(&create).await;
        }
        match created {
            Ok(()) => {
                *waiting += 1;
                let detail = match decision.kind {
                    Kind::Act => "it is to be carried out",
                    Kind::Undo => "what the rule did is to be taken back",
                };
                Ok(Verdict { outcome: None, detail: detail.to_owned(), targets: Vec::new(), changes: true })
            }
            Err(error) if error.is_there() => Ok(duplicate()),
            Err(error) => Err(NotReceived::Unrecorded(error.to_string())),
        }
    }
}

fn duplicate() -> Verdict {
    Stop::new(Outcome::Duplicate, "the same waits to be carried out already").into()
}

/// Each alert with each rule that names it.
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

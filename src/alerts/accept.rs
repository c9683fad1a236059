//! Taking a call of Alertmanager: what is to be done is written down before it is answered.

use jiff::Timestamp;
use tokio::time::Instant;

use super::book::Line;
use super::call::{ACCEPTED, Call, Unchanging};
use super::decision::{Cause, Decision, Kind, Target, act_name};
use super::guard::{self, Stop};
use super::memory::{Memory, Together};
use super::outcome::Outcome;
use super::payload::{Alert, BadPayload, Payload, Status};
use super::rule::{Mode, Rule, Rules};
use super::server::{Alerts, Shared};
use crate::actions::Actor;
use crate::actions::audit::{Decided, OrderId, Record, Unchanged};
use crate::coordination::{self, CoordinationError, Snapshot, Write};

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
    /// It could not be written down.
    #[error("what was decided cannot be written down: {0}; send it again")]
    Unrecorded(String),
}

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

/// What a rule makes of an alert.
#[derive(Clone)]
pub(super) struct Verdict {
    /// `None` for what is accepted, and counts when it is done.
    pub(super) outcome: Option<Outcome>,
    pub(super) detail: String,
    pub(super) subjects: Vec<String>,
    /// Whether something is or will be another by it, or would in a dry run: it is written down by itself, and what
    /// changes nothing is only counted.
    pub(super) changes: bool,
}

impl From<Stop> for Verdict {
    fn from(stop: Stop) -> Self {
        Self { outcome: Some(stop.outcome), detail: stop.why, subjects: Vec::new(), changes: false }
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
                NotReceived::Unrecorded(_) => Outcome::Failed,
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
                subjects: verdict.subjects,
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
                id: OrderId::new(now),
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
        let target = match Target::of(rule, alert) {
            Ok(target) => target,
            Err(narrow) => {
                let why = format!("its label {} names none that the rule has", narrow.label());
                return Ok(Stop::new(Outcome::NoMatch, why).into());
            }
        };
        match (alert.status, call.snapshot.filter(|_| rule.mode == Mode::Enforce)) {
            (Status::Firing, Some(snapshot)) => self.accept(rule, alert, target, (call, snapshot), now).await,
            (Status::Resolved, Some(snapshot)) => self.resolve(rule, alert, &target, (call, snapshot), now).await,
            (Status::Firing, None) => Ok(self.rehearse_once(rule, alert, &target, call, now)),
            (Status::Resolved, None) => Ok(self.rehearse_undoing(rule, alert)),
        }
    }

    /// Rehearses an alert, unless nothing was found to be done about another that narrows the rule in the same way.
    fn rehearse_once<'a>(
        &self,
        rule: &'a Rule,
        alert: &Alert,
        target: &Target,
        call: &mut Call<'a>,
        now: Timestamp,
    ) -> Verdict {
        let place = (&*rule.name, target.key());
        if let Some(Err(stop)) = call.decided.get(&place) {
            return stop.clone().into();
        }
        let verdict = self.rehearse(rule, alert, target, now);
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
        target: Target,
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
        let verdict = self.accept_new(rule, alert, target, (call, snapshot), &memory, now).await?;
        Ok(Verdict { changes: verdict.changes || is_kept, ..verdict })
    }

    /// The same, when it is known what the rule remembers.
    async fn accept_new<'a>(
        &self,
        rule: &'a Rule,
        alert: &Alert,
        target: Target,
        (call, _): (&mut Call<'a>, &'a Snapshot),
        memory: &Memory,
        now: Timestamp,
    ) -> Result<Verdict, NotReceived> {
        let cause = Cause::of(alert);
        let key = target.key();
        if let Err(stop) = guard::admit(rule, memory, &cause, &key, now) {
            return Ok(stop.into());
        }
        let place = (&*rule.name, key);
        match call.decided.get(&place) {
            Some(Ok(())) => return Ok(duplicate()),
            Some(Err(stop)) => return Ok(stop.clone().into()),
            None => {}
        }
        let chosen = self.sight(now).choose(rule, &target, memory).map(drop);
        call.decided.insert(place, chosen.clone());
        match chosen {
            Err(stop) => Ok(stop.into()),
            Ok(()) => self.add(&Decision::new(Kind::Act, rule, cause, target, now), &mut call.waiting).await,
        }
    }

    /// The alert is on: what waits to take back what the rule did is not done, unless it has begun. Gives whether something
    /// was taken away.
    async fn keep_holds(&self, rule: &Rule, snapshot: &Snapshot) -> bool {
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
    async fn resolve<'a>(
        &self,
        rule: &'a Rule,
        alert: &Alert,
        target: &Target,
        (call, snapshot): (&mut Call<'a>, &'a Snapshot),
        now: Timestamp,
    ) -> Result<Verdict, NotReceived> {
        let cancelled = self.cancel(rule, alert, target, snapshot).await?;
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
        let undoing = Decision::new(Kind::Undo, rule, Cause::of(alert), Target::default(), now);
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
        target: &Target,
        snapshot: &Snapshot,
    ) -> Result<Cancelled, NotReceived> {
        /// How often it is tried beside a process that is just going on with it.
        const TRIES: usize = 20;
        let name = act_name(&rule.name, target);
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

    async fn add(&self, decision: &Decision, waiting: &mut usize) -> Result<Verdict, NotReceived> {
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
                Ok(Verdict { outcome: None, detail: detail.to_owned(), subjects: Vec::new(), changes: true })
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

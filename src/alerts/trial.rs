//! What would happen to a call of Alertmanager now, without any of it.

use jiff::Timestamp;

use super::decision::{Cause, Scope};
use super::guard;
use super::memory::{Together, memory_of};
use super::payload::{Alert, BadPayload, Payload, Status};
use super::rule::{Mode, Rule, Rules};
use super::select::Sight;
use crate::mirror::Store;
use queuekeeper_zookeeper::coordination::Snapshot;

/// What would come of one alert by one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The alert's name.
    pub alert: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// The rule; `None` where none names the alert.
    pub rule: Option<String>,
    /// Whether the rule only tells.
    pub is_dry: bool,
    /// Why nothing would be done, by its label; `None` where something would.
    pub outcome: Option<&'static str>,
    /// In words.
    pub detail: String,
    /// What would be done to, in order.
    pub targets: Vec<String>,
}

impl Trial {
    /// Tries each alert of a call with each rule that names it.
    ///
    /// # Errors
    /// When the body is no message of Alertmanager.
    pub fn all(
        rules: &Rules,
        body: &[u8],
        store: &Store,
        space: Option<i64>,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Result<Vec<Self>, BadPayload> {
        let payload = Payload::read(body)?;
        let sight = Sight { store, space, now };
        let mut trials = Vec::new();
        for alert in &payload.alerts {
            let named: Vec<_> = rules.rules.iter().filter(|rule| rule.names(alert)).collect();
            if named.is_empty() {
                trials.push(Self::of(alert, None, Some("no_match"), "no rule names it, or only one that is off"));
            }
            trials.extend(named.into_iter().map(|rule| Self::one(rules, rule, alert, sight, snapshot)));
        }
        Ok(trials)
    }

    fn of(alert: &Alert, rule: Option<&Rule>, outcome: Option<&'static str>, detail: impl Into<String>) -> Self {
        Self {
            alert: alert.name().to_owned(),
            fingerprint: alert.fingerprint.clone(),
            rule: rule.map(|rule| rule.name.clone()),
            is_dry: rule.is_some_and(|rule| rule.mode == Mode::DryRun),
            outcome,
            detail: detail.into(),
            targets: Vec::new(),
        }
    }

    fn one(rules: &Rules, rule: &Rule, alert: &Alert, sight: Sight<'_>, snapshot: &Snapshot) -> Self {
        let now = sight.now;
        let scope = match Scope::of(rule, alert) {
            Ok(scope) => scope,
            Err(narrow) => {
                let why = format!("its label {} names none that the rule has", narrow.label());
                return Self::of(alert, Some(rule), Some("no_match"), why);
            }
        };
        // What a rule in dry run remembers stands in its process only, and is not known here.
        let nothing = Snapshot { paused: snapshot.paused.clone(), ..Snapshot::default() };
        let snapshot = if rule.mode == Mode::DryRun { &nothing } else { snapshot };
        let memory = match memory_of(snapshot, &rule.name) {
            Ok(memory) => memory,
            Err(stop) => return Self::of(alert, Some(rule), Some(stop.outcome.label()), stop.why),
        };
        if alert.status == Status::Resolved {
            let holds = memory.holds.iter().filter(|hold| rule.is_undone && hold.fingerprint == alert.fingerprint);
            let targets: Vec<_> = holds.map(|hold| format!("collection:{}", hold.collection)).collect();
            let detail =
                if targets.is_empty() { "nothing is taken back" } else { "is released, with the jobs held since" };
            return Self { targets, ..Self::of(alert, Some(rule), Some("resolved"), detail) };
        }
        if snapshot.paused.is_some() && rule.mode == Mode::Enforce {
            return Self::of(alert, Some(rule), Some("paused"), "all automatic action is paused");
        }
        let chosen = guard::admit(rule, &memory, &Cause::of(alert), &scope.key(), now)
            .and_then(|()| sight.choose(rule, &scope, &memory));
        let choice = match chosen {
            Ok(choice) => choice,
            Err(stop) => return Self::of(alert, Some(rule), Some(stop.outcome.label()), stop.why),
        };
        let together = snapshot.all.as_ref().and_then(|all| Together::read(&all.data).ok()).unwrap_or_default();
        let (room, bound) = guard::room(rule, &memory, (&together, rules.budget), choice.present, now);
        let wanted = choice.items.len();
        if room == 0 {
            let open = if bound.trips() { ": the breaker would open" } else { "" };
            let why = format!("{}, and {wanted} would be to do{open}", bound.why());
            return Self::of(alert, Some(rule), Some("budget"), why);
        }
        let items = choice.items.into_iter().take(usize::try_from(room).unwrap_or(usize::MAX));
        let targets: Vec<_> = items.map(|item| item.on).collect();
        let limited = if targets.len() < wanted { format!("; {}", bound.why()) } else { String::new() };
        let detail = format!("{} {} of {}{limited}", rule.remedy.verb(), targets.len(), choice.of);
        Self { targets, ..Self::of(alert, Some(rule), None, detail) }
    }
}

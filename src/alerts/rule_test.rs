//! The response to a call of Alertmanager as of now, for `rules test`; nothing is executed or stored.

use jiff::Timestamp;

use super::decision::{Scope, Trigger};
use super::guard;
use super::memory::{SharedBudget, memory_of};
use super::payload::{Alert, BadPayload, Payload, Status};
use super::rule::{Mode, Rule, Rules};
use super::select::QueueView;
use crate::mirror::MirrorStore;
use queuekeeper_zookeeper::coordination::Snapshot;

/// The response of one rule to one alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleTest {
    /// The alert's name.
    pub alert: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// The rule; `None` if none matches the alert.
    pub rule: Option<String>,
    /// Whether the rule is in dry run.
    pub is_dry: bool,
    /// The label of the outcome if nothing would be done; `None` otherwise.
    pub outcome: Option<&'static str>,
    /// The outcome in words.
    pub detail: String,
    /// The targets, in order.
    pub targets: Vec<String>,
}

impl RuleTest {
    /// Evaluates each alert of a call with each rule that matches it.
    ///
    /// # Errors
    /// When the body is not a message of Alertmanager.
    pub fn all(
        rules: &Rules,
        body: &[u8],
        store: &MirrorStore,
        space: Option<i64>,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Result<Vec<Self>, BadPayload> {
        let payload = Payload::read(body)?;
        let queue_view = QueueView { store, space, now };
        let mut tests = Vec::new();
        for alert in &payload.alerts {
            let named: Vec<_> = rules.rules.iter().filter(|rule| rule.names(alert)).collect();
            if named.is_empty() {
                tests.push(Self::of(alert, None, Some("no_match"), "no rule matches it, or only a rule that is off"));
            }
            tests.extend(named.into_iter().map(|rule| Self::one(rules, rule, alert, queue_view, snapshot)));
        }
        Ok(tests)
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

    fn one(rules: &Rules, rule: &Rule, alert: &Alert, queue_view: QueueView<'_>, snapshot: &Snapshot) -> Self {
        let now = queue_view.now;
        let scope = match Scope::of(rule, alert) {
            Ok(scope) => scope,
            Err(narrow) => {
                let why = format!("its label {} has a value that the rule does not select", narrow.label());
                return Self::of(alert, Some(rule), Some("no_match"), why);
            }
        };
        // The state of a dry run is in the process that has the rule, and not known here.
        let nothing = Snapshot { paused: snapshot.paused.clone(), ..Snapshot::default() };
        let snapshot = if rule.mode == Mode::DryRun { &nothing } else { snapshot };
        let memory = match memory_of(snapshot, &rule.name) {
            Ok(memory) => memory,
            Err(stop) => return Self::of(alert, Some(rule), Some(stop.outcome.label()), stop.why),
        };
        if alert.status == Status::Resolved {
            let holds = memory.holds.iter().filter(|hold| rule.is_undone && hold.fingerprint == alert.fingerprint);
            let targets: Vec<_> = holds.map(|hold| format!("collection:{}", hold.collection)).collect();
            let detail = if targets.is_empty() {
                "nothing is released"
            } else {
                "released with the batches and jobs held since"
            };
            return Self { targets, ..Self::of(alert, Some(rule), Some("resolved"), detail) };
        }
        if snapshot.paused.is_some() && rule.mode == Mode::Enforce {
            return Self::of(alert, Some(rule), Some("paused"), "automatic actions are paused");
        }
        let chosen = guard::admit(rule, &memory, &Trigger::of(alert), &scope.key(), now)
            .and_then(|()| queue_view.choose(rule, &scope, &memory));
        let choice = match chosen {
            Ok(choice) => choice,
            Err(stop) => return Self::of(alert, Some(rule), Some(stop.outcome.label()), stop.why),
        };
        let shared_budget =
            snapshot.all.as_ref().and_then(|all| SharedBudget::read(&all.data).ok()).unwrap_or_default();
        let (room, bound) = guard::room(rule, &memory, (&shared_budget, rules.budget), choice.present, now);
        let wanted = choice.items.len();
        if room == 0 {
            let open = if bound.trips() { ": the breaker would open" } else { "" };
            let why = format!("{}{open}", bound.refusal(wanted));
            return Self::of(alert, Some(rule), Some("budget"), why);
        }
        let items = choice.items.into_iter().take(usize::try_from(room).unwrap_or(usize::MAX));
        let targets: Vec<_> = items.map(|item| item.on).collect();
        let limited = if targets.len() < wanted { format!("; {}", bound.why()) } else { String::new() };
        let detail = format!("{} {} of {}{limited}", rule.action.verb(), targets.len(), choice.of);
        Self { targets, ..Self::of(alert, Some(rule), None, detail) }
    }
}

//! Metrics of alerts and rules.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::outcome::AlertOutcome;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RuleLabel {
    rule: String,
}

type Seconds = Gauge<f64, AtomicU64>;

/// The counters of alerts and the gauges of rules; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    alerts: Family<OutcomeLabel, Counter>,
    last_action: Family<RuleLabel, Seconds>,
    breaker_open: Family<RuleLabel, Gauge>,
    budget_left: Family<RuleLabel, Gauge>,
    holds: Family<RuleLabel, Gauge>,
    pending: Gauge,
    paused: Gauge,
    leader: Gauge,
    foreign: Gauge,
    /// The rules that have gauges now.
    rules: Arc<Mutex<BTreeSet<String>>>,
}

/// The values of a rule's gauges.
#[derive(Clone, Debug)]
pub(super) struct RuleFigures {
    pub(super) rule: String,
    pub(super) last_action: Option<Timestamp>,
    pub(super) is_open: bool,
    pub(super) budget_left: u64,
    pub(super) holds: usize,
}

impl Metrics {
    /// Registers them, with every counter at 0.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for outcome in AlertOutcome::ALL {
            drop(metrics.alerts.get_or_create_owned(&OutcomeLabel { outcome: outcome.label() }));
        }
        registry.register(
            "queuekeeper_alerts",
            "Total number of alerts received from Alertmanager by outcome; an alert counts once for each rule that matches it",
            metrics.alerts.clone(),
        );
        registry.register(
            "queuekeeper_alert_rule_last_action_timestamp_seconds",
            "Unix time at which the rule last acted",
            metrics.last_action.clone(),
        );
        let of_rules = [
            (
                "queuekeeper_alert_rule_breaker_open",
                "Whether the breaker of the rule is open, which stops the rule until it is reset",
                &metrics.breaker_open,
            ),
            (
                "queuekeeper_alert_rule_budget_left",
                "Number of items that the budget of the rule allows now",
                &metrics.budget_left,
            ),
            ("queuekeeper_alert_rule_holds", "Number of collections held by the rule", &metrics.holds),
        ];
        for (name, help, family) in of_rules {
            registry.register(name, help, family.clone());
        }
        let of_all = [
            (
                "queuekeeper_alert_decisions_pending",
                "Number of accepted decisions of all processes that are not finished",
                &metrics.pending,
            ),
            ("queuekeeper_alert_actions_paused", "Whether automatic actions are paused", &metrics.paused),
            (
                "queuekeeper_alert_actions_leader",
                "Whether this process is the leader for automatic actions",
                &metrics.leader,
            ),
            ("queuekeeper_alert_foreign_znodes", "Number of unexpected znodes below /queuekeeper", &metrics.foreign),
        ];
        for (name, help, gauge) in of_all {
            registry.register(name, help, gauge.clone());
        }
        metrics
    }

    pub(super) fn count(&self, outcome: AlertOutcome) {
        self.count_many(outcome, 1);
    }

    pub(super) fn count_many(&self, outcome: AlertOutcome, number: u64) {
        self.alerts.get_or_create_owned(&OutcomeLabel { outcome: outcome.label() }).inc_by(number);
    }

    /// Sets the number of unexpected znodes.
    pub(super) fn show_foreign(&self, number: usize) {
        self.foreign.set(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Sets the gauges.
    pub(super) fn show(&self, pending: usize, is_paused: bool, leads: bool, rules: Vec<RuleFigures>) {
        self.pending.set(i64::try_from(pending).unwrap_or(i64::MAX));
        self.paused.set(i64::from(is_paused));
        self.leader.set(i64::from(leads));
        let mut shown = self.rules.lock();
        let present: BTreeSet<_> = rules.iter().map(|figures| figures.rule.clone()).collect();
        for gone in shown.difference(&present) {
            let label = RuleLabel { rule: gone.clone() };
            self.last_action.remove(&label);
            self.breaker_open.remove(&label);
            self.budget_left.remove(&label);
            self.holds.remove(&label);
        }
        *shown = present;
        for figures in rules {
            let label = RuleLabel { rule: figures.rule };
            self.breaker_open.get_or_create_owned(&label).set(i64::from(figures.is_open));
            let left = i64::try_from(figures.budget_left).unwrap_or(i64::MAX);
            self.budget_left.get_or_create_owned(&label).set(left);
            self.holds.get_or_create_owned(&label).set(i64::try_from(figures.holds).unwrap_or(i64::MAX));
            if let Some(at) = figures.last_action {
                self.last_action.get_or_create_owned(&label).set(at.as_millisecond() as f64 / 1000.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::{self, ActionKind};
    use crate::alerts::RuleAction;
    use crate::metrics::{Format, expose};

    #[test]
    fn actions_that_rules_can_execute_are_counted_from_the_start_and_no_others() {
        let mut registry = Registry::default();
        let _metrics = actions::Metrics::register(&mut registry);
        let text = expose(&registry, Format::Text).unwrap();
        let series: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(series.len(), 2 * ActionKind::ALL.len() + RuleAction::ALL.len(), "{series:#?}");
        for rule_action in RuleAction::ALL {
            let action = rule_action.kind();
            let done = format!(r#"queuekeeper_actions_total{{action="{action}",source="alert",outcome="done"}} 0"#);
            assert!(series.contains(&&*done), "{done} is not in {series:#?}");
        }
    }
}

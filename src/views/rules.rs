//! Rules: their configuration, state and decisions.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::actions::audit::Decided;
use crate::alerts::{EventRow, Mode, Overview, Received, RuleHold, RuleOverview};

/// The result of a call of Alertmanager.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ReceivedView {
    /// The decision of each matching rule on each alert.
    pub(crate) decisions: Vec<DecisionView>,
    /// How many alerts match no rule.
    pub(crate) unmatched: u64,
}

/// The decision of a rule on an alert.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct DecisionView {
    /// The rule.
    #[schema(example = "make-room")]
    pub(crate) rule: String,
    /// The alert's name.
    #[schema(example = "MerrittProvisioningStuck")]
    pub(crate) alert: String,
    /// Its fingerprint.
    pub(crate) fingerprint: String,
    /// `accepted` if it will be executed, else the outcome, as in the metrics.
    #[schema(example = "accepted")]
    pub(crate) outcome: String,
    /// In words.
    pub(crate) detail: String,
    /// The targets that an action would have, in a dry run; a hundred at most.
    pub(crate) targets: Vec<String>,
}

impl From<Received> for ReceivedView {
    fn from(received: Received) -> Self {
        let decision = |decided: Decided| {
            let Decided { rule, alert, fingerprint, outcome, detail, targets, .. } = decided;
            DecisionView { rule, alert, fingerprint, outcome, detail, targets }
        };
        Self { decisions: received.decisions.into_iter().map(decision).collect(), unmatched: received.unmatched }
    }
}

/// The state of all rules.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct RulesView {
    /// Each rule, in the order of the file.
    pub(crate) rules: Vec<RuleView>,
    /// Since when all automatic action is paused; null while it is not.
    pub(crate) paused_since: Option<Timestamp>,
    /// Who paused it; null if that is not recorded.
    pub(crate) paused_by: Option<String>,
    /// Why; null if that is not recorded.
    pub(crate) paused_why: Option<String>,
    /// Whether this process is the leader, which executes decisions.
    pub(crate) leads: bool,
    /// When queuekeeper's own znodes were last read; null while they cannot be read, and if no rule acts.
    pub(crate) read: Option<Timestamp>,
    /// How many items all rules together may still change now.
    pub(crate) budget_left: u64,
    /// The calls that this process refused last, the newest first; the decisions of each rule are listed with the rule.
    pub(crate) refused: Vec<RuleEventView>,
}

/// The state of one rule.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct RuleView {
    /// Its name.
    #[schema(example = "make-room")]
    pub(crate) name: String,
    /// The alert that it matches.
    #[schema(example = "MerrittProvisioningStuck")]
    pub(crate) alert: String,
    /// `off`, `dry-run` or `enforce`.
    #[schema(example = "dry-run")]
    pub(crate) mode: String,
    /// Its effect.
    #[schema(example = "hold_collections")]
    pub(crate) action: String,
    /// Since when its breaker is open; null while it is not.
    pub(crate) breaker_open_since: Option<Timestamp>,
    /// Why it is open.
    pub(crate) breaker_why: Option<String>,
    /// How many items it may still change now.
    pub(crate) budget_left: u64,
    /// The size of its budget, in items.
    pub(crate) budget_items: u32,
    /// The period of its budget, in seconds.
    pub(crate) budget_seconds: f64,
    /// The collections that it holds; in a dry run, would.
    pub(crate) holds: Vec<HoldView>,
    /// The decisions that are pending or being executed, in words.
    pub(crate) waiting: Vec<String>,
    /// The items that it gave up on, which are left to an operator, at most a hundred.
    pub(crate) left: Vec<String>,
    /// When it last executed an action, or would have in a dry run; null if never.
    pub(crate) last_action: Option<Timestamp>,
    /// Why its state cannot be read; null if it can.
    pub(crate) unreadable: Option<String>,
    /// Its decisions and their outcomes, the newest first.
    pub(crate) events: Vec<RuleEventView>,
}

/// A collection that a rule holds.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct HoldView {
    /// Its mnemonic.
    #[schema(example = "merritt_demo")]
    pub(crate) collection: String,
    /// Since when it has been held.
    pub(crate) since: Timestamp,
}

/// A decision, or a call that was refused.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct RuleEventView {
    /// When; of several identical ones, the last.
    pub(crate) at: Timestamp,
    /// The alert; empty for a call that was refused.
    pub(crate) alert: String,
    /// The outcome, as in the metrics; `accepted` if it will be executed.
    #[schema(example = "executed")]
    pub(crate) outcome: String,
    /// In words.
    pub(crate) detail: String,
    /// How many identical ones came in a row.
    pub(crate) count: u64,
}

impl RulesView {
    pub(crate) fn new(overview: Overview) -> Self {
        let Overview { rules, paused, leads, read, budget_left, events, .. } = overview;
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Self {
            rules: rules.into_iter().map(RuleView::new).collect(),
            paused_since: paused.as_ref().map(|pause| pause.since),
            paused_by: paused.as_ref().and_then(|pause| text(&pause.who)),
            paused_why: paused.as_ref().and_then(|pause| text(&pause.why)),
            leads,
            read,
            budget_left,
            refused: events.into_iter().filter(|events| events.rule.is_none()).map(RuleEventView::new).collect(),
        }
    }
}

impl RuleView {
    fn new(overview: RuleOverview) -> Self {
        let RuleOverview { rule, breaker, budget_left, holds, waiting, left, last_action, unreadable, events } =
            overview;
        let hold = |RuleHold { collection, since, .. }: RuleHold| HoldView { collection, since };
        Self {
            mode: rule.mode.label().to_owned(),
            action: rule.action.label().to_owned(),
            breaker_open_since: breaker.as_ref().map(|breaker| breaker.since),
            breaker_why: breaker.map(|breaker| breaker.why),
            budget_left,
            budget_items: rule.budget.items,
            budget_seconds: rule.budget.per.as_secs_f64(),
            holds: holds.into_iter().map(hold).collect(),
            waiting: waiting.into_iter().map(|(words, _)| words).collect(),
            left,
            last_action: last_action.filter(|_| rule.mode != Mode::Off),
            unreadable,
            events: events.into_iter().map(RuleEventView::new).collect(),
            name: rule.name,
            alert: rule.alert,
        }
    }
}

impl RuleEventView {
    fn new(events: EventRow) -> Self {
        let EventRow { at, alert, outcome, detail, count, .. } = events;
        let outcome = outcome.map_or("accepted", crate::alerts::AlertOutcome::label).to_owned();
        Self { at, alert, outcome, detail, count }
    }
}

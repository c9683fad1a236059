//! The rules that act on alerts: their state, decisions and controls.

use askama::Template;
use axum::extract::State as FromState;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Deserialize;

use super::actions::named;
use super::frame::{Frame, Section};
use super::render;
use crate::actions::{Reason, Refusal, Role, Source};
use crate::alerts::{AlertOutcome, EventRow, Mode, Overview, RuleOverview};
use crate::views::show::{Count, Moment, brief, counted};
use crate::web::http::identity::Identity;
use crate::web::http::params::Sent;
use crate::web::http::problem::Problem;
use crate::web::http::query::given;
use crate::web::state::State;

mod words;

/// The maximum length of a text in a list, in characters.
const LONG: usize = 300;

/// The maximum number of items that a rule gave up on and that are named.
const LEFT: usize = 10;

/// The rules, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "rules.html")]
struct RulesPage {
    frame: Frame,
    may_act: bool,
    /// Why the last form was refused; empty if it was not.
    refused: String,
    /// `None` for a server that accepts no alerts, or has no rules.
    known: Option<Known>,
}

#[derive(Debug)]
struct Known {
    events: String,
    /// Which process executes decisions, and when that was read.
    leads: String,
    paused: Option<Paused>,
    /// Whether the state of the rules cannot be read, so that none of them acts and none can be paused.
    is_unread: bool,
    rules: Vec<Shown>,
    /// Collections that are held by inactive rules.
    orphans: Vec<(String, String)>,
    calls: Vec<DecisionRow>,
}

#[derive(Debug)]
struct Paused {
    since: Moment,
    by: String,
    why: String,
}

/// A rule as the page shows it.
#[derive(Debug)]
struct Shown {
    name: String,
    mode: (&'static str, &'static str),
    when: String,
    does: String,
    limits: String,
    breaker: Option<(Moment, String)>,
    unreadable: String,
    budget: String,
    last: Option<Moment>,
    /// What stands there without a last action.
    without_last: &'static str,
    holds: Vec<(String, Moment)>,
    waiting: Vec<(String, Moment)>,
    left: Vec<(String, String)>,
    more_left: String,
    lines: Vec<DecisionRow>,
}

/// A decision.
#[derive(Debug)]
struct DecisionRow {
    at: Moment,
    outcome: (&'static str, String),
    detail: String,
    times: String,
}

/// A form of the page.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleForm {
    what: String,
    rule: Option<String>,
    reason: Option<String>,
}

/// `GET /rules`: the rules that act on alerts.
pub(super) async fn show(FromState(state): FromState<State>, who: Identity) -> Response {
    render(StatusCode::OK, &RulesPage::new(&state, &who, "./", String::new(), Timestamp::now()))
}

/// `POST /rules/change`: pauses or unpauses all automatic action, or resets a breaker.
pub(super) async fn change(
    FromState(state): FromState<State>,
    who: Identity,
    Sent(form): Sent<RuleForm>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let actor = state.authorize(&who, Role::Operator, Source::Web)?;
    let alerts = state.alerts()?;
    let reason = Reason::new(form.reason.as_deref().unwrap_or_default())
        .map_err(|error| Problem::from(Refusal::Invalid(error.to_string())));
    let done = match (form.what.as_str(), reason) {
        ("pause" | "unpause" | "reset", Err(problem)) => Err(problem),
        ("pause", Ok(reason)) => alerts.pause(&actor, &reason, now).await.map_err(Problem::from),
        ("unpause", Ok(reason)) => alerts.unpause(&actor, &reason, now).await.map_err(Problem::from),
        ("reset", Ok(reason)) => {
            let rule = given(form.rule.as_ref()).ok_or_else(|| Problem::bad("Which rule?"))?;
            alerts.reset(rule, &actor, &reason, now).await.map_err(Problem::from)
        }
        _ => return Err(Problem::bad("Invalid value of “what”; expected pause, unpause or reset.")),
    };
    match done {
        // Relative, because a proxy may serve us below any prefix.
        Ok(()) => Ok((StatusCode::SEE_OTHER, [(header::LOCATION, "../rules")]).into_response()),
        Err(problem) => {
            Ok(render(problem.status(), &RulesPage::new(&state, &who, "../", problem.detail.to_string(), now)))
        }
    }
}

impl RulesPage {
    fn new(state: &State, who: &Identity, root: &str, refused: String, now: Timestamp) -> Self {
        let frame = Frame::new(&state.view(now), root.to_owned(), Section::Rules);
        let overview = state.alerts().ok().map(|alerts| alerts.overview(now));
        let known = overview.filter(|overview| !overview.rules.is_empty() || !overview.orphans.is_empty());
        let known = known.map(|overview| Known::new(overview, &frame.root, now));
        Self { may_act: state.rights(who) >= Role::Operator, refused, known, frame }
    }
}

impl Known {
    /// What may be changed of all rules at once: its name, and the words of its button.
    fn change(&self) -> (&'static str, &'static str) {
        if self.paused.is_some() {
            ("unpause", "Unpause all automatic action")
        } else {
            ("pause", "Pause all automatic action")
        }
    }

    fn new(overview: Overview, root: &str, now: Timestamp) -> Self {
        let Overview { rules, orphans, paused, leads, read, budget_left, events, is_audit_unwritable, .. } = overview;
        let count = |mode: Mode| rules.iter().filter(|rule| rule.rule.mode == mode).count() as u64;
        let (enforced, dry) = (count(Mode::Enforce), count(Mode::DryRun));
        let is_paused = paused.is_some();
        let is_unread = enforced > 0 && read.is_none();
        let mut parts = vec![if is_unread {
            counted(enforced, "rule cannot act now", "rules cannot act now")
        } else if is_paused {
            counted(enforced, "rule would act, and is paused", "rules would act, and are paused")
        } else {
            counted(enforced, "rule acts", "rules act")
        }];
        if dry > 0 {
            parts.push(format!("{} what would be done", counted(dry, "only reports", "only report")));
        }
        let acting = if enforced == 0 {
            "No rule acts, so nothing is written to ZooKeeper.".to_owned()
        } else if let Some(read) = read {
            let who = if is_paused {
                "No process executes decisions while all automatic action is paused"
            } else if leads && is_audit_unwritable {
                "This process leads but executes no decisions, because it cannot write its audit file of alerts"
            } else if leads {
                "This process executes decisions"
            } else {
                "Another process executes decisions"
            };
            let fresh = Moment::new(read, now);
            let budget = counted(budget_left, "item", "items");
            format!("{who}; read {} ago. Budget left for all rules: {budget}.", fresh.ago)
        } else {
            "Decisions cannot be read from ZooKeeper now, so no alerts are accepted, and the rules cannot be paused."
                .to_owned()
        };
        let calls = events.into_iter().filter(|events| events.rule.is_none()).take(5);
        Self {
            events: format!("{}.", parts.join(", ")),
            leads: acting,
            paused: paused.map(|pause| Paused {
                since: Moment::new(pause.since, now),
                by: brief(&pause.who, LONG),
                why: unended(&brief(&pause.why, LONG)),
            }),
            orphans: orphans
                .into_iter()
                .map(|(rule, holds)| {
                    let held: Vec<_> = holds.iter().map(|hold| brief(&hold.collection, LONG)).collect();
                    (rule, held.join(", "))
                })
                .collect(),
            calls: calls.map(|events| DecisionRow::new(events, now)).collect(),
            is_unread,
            rules: rules.into_iter().map(|rule| Shown::new(rule, (is_paused, is_unread), root, now)).collect(),
        }
    }
}

/// A text that may be a sentence, for the middle of another.
fn unended(text: &str) -> String {
    text.trim_end().trim_end_matches('.').to_owned()
}

impl Shown {
    fn new(overview: RuleOverview, (is_paused, is_unread): (bool, bool), root: &str, now: Timestamp) -> Self {
        let RuleOverview { rule, breaker, budget_left, holds, waiting, left, last_action, unreadable, events } =
            overview;
        let more = left.len().saturating_sub(LEFT) as u64;
        Self {
            mode: match rule.mode {
                Mode::Off => ("done", "off"),
                Mode::DryRun => ("", "dry run"),
                Mode::Enforce if is_unread => ("warn", "cannot act"),
                Mode::Enforce if is_paused => ("warn", "paused"),
                Mode::Enforce if breaker.is_some() || unreadable.is_some() => ("bad", "stopped"),
                Mode::Enforce => ("work", "acts"),
            },
            when: words::when(&rule),
            does: words::does(&rule),
            limits: words::limits(&rule),
            breaker: breaker.map(|breaker| (Moment::new(breaker.since, now), unended(&brief(&breaker.why, LONG)))),
            unreadable: unreadable.map(|why| unended(&brief(&why, LONG))).unwrap_or_default(),
            budget: if is_unread {
                "unknown".to_owned()
            } else {
                format!("{} of {}", Count(budget_left), Count(rule.budget.items.into()))
            },
            without_last: if is_unread { "unknown" } else { "never" },
            last: last_action.map(|at| Moment::new(at, now)),
            holds: holds.iter().map(|hold| (brief(&hold.collection, LONG), Moment::new(hold.since, now))).collect(),
            waiting: waiting.iter().map(|(words, since)| (brief(words, LONG), Moment::new(*since, now))).collect(),
            left: left.iter().take(LEFT).map(|on| named(on, root)).collect(),
            more_left: if more > 0 { format!("and {} more", Count(more)) } else { String::new() },
            lines: events.into_iter().map(|events| DecisionRow::new(events, now)).collect(),
            name: rule.name,
        }
    }
}

impl DecisionRow {
    fn new(events: EventRow, now: Timestamp) -> Self {
        let EventRow { at, outcome, detail, count, .. } = events;
        Self {
            at: Moment::new(at, now),
            outcome: outcome_in_words(outcome),
            detail: brief(&detail, LONG),
            times: if count > 1 { format!("{} times", Count(count)) } else { String::new() },
        }
    }
}

/// What came of an alert: the class of its tag, and its name, which is its label in metrics and the audit trail.
fn outcome_in_words(outcome: Option<AlertOutcome>) -> (&'static str, String) {
    let Some(outcome) = outcome else { return ("work", "accepted".to_owned()) };
    let class = match outcome {
        AlertOutcome::Executed => "good",
        AlertOutcome::DryRun => "",
        AlertOutcome::Duplicate
        | AlertOutcome::Cooldown
        | AlertOutcome::NothingToDo
        | AlertOutcome::NoMatch
        | AlertOutcome::Resolved => "done",
        AlertOutcome::Paused | AlertOutcome::NotSynced => "warn",
        AlertOutcome::Budget
        | AlertOutcome::BreakerOpen
        | AlertOutcome::GaveUp
        | AlertOutcome::Invalid
        | AlertOutcome::Unauthorized
        | AlertOutcome::QueueFull
        | AlertOutcome::Failed
        | AlertOutcome::Unknown => "bad",
    };
    (class, outcome.label().replace('_', " "))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::alerts::{Breaker, Budget, Rule, RuleAction, Selector};

    fn rule(mode: Mode) -> RuleOverview {
        let rule = Rule {
            name: "again".to_owned(),
            alert: "A".to_owned(),
            labels: std::collections::BTreeMap::new(),
            mode,
            action: RuleAction::ResumeJobs,
            select: Selector::default(),
            narrow_by: Vec::new(),
            budget: Budget { items: 5, per: Duration::from_hours(1) },
            max_share: None,
            cooldown: Duration::from_mins(15),
            attempts: 3,
            is_undone: false,
        };
        RuleOverview {
            rule,
            breaker: None,
            budget_left: 5,
            holds: Vec::new(),
            waiting: Vec::new(),
            left: Vec::new(),
            last_action: None,
            unreadable: None,
            events: Vec::new(),
        }
    }

    #[test]
    fn only_what_acts_is_said_to_act() {
        let now = Timestamp::UNIX_EPOCH;
        let is = |rule: RuleOverview, is_paused| Shown::new(rule, (is_paused, false), "./", now).mode.1;
        assert_eq!(is(rule(Mode::Enforce), false), "acts");
        assert_eq!(is(rule(Mode::Enforce), true), "paused");
        assert_eq!(is(rule(Mode::DryRun), true), "dry run");
        let breaker = Breaker { since: now, why: "Too many.".to_owned() };
        let broken = || RuleOverview { breaker: Some(breaker.clone()), ..rule(Mode::Enforce) };
        assert_eq!(is(broken(), false), "stopped");
        assert_eq!(
            Shown::new(broken(), (false, false), "./", now).breaker.map(|(_, why)| why).as_deref(),
            Some("Too many")
        );

        let overview_as_of = |paused, read| Overview {
            rules: vec![rule(Mode::Enforce)],
            orphans: Vec::new(),
            paused,
            leads: true,
            read,
            budget_left: 100,
            events: Vec::new(),
            foreign: Vec::new(),
            more_foreign: 0,
            problem: None,
            is_audit_unwritable: false,
        };
        let overview = |paused| overview_as_of(paused, Some(now));
        let pause = crate::alerts::RulesPause { who: "ops".to_owned(), why: "Maintenance.".to_owned(), since: now };
        let acting = Known::new(overview(None), "./", now);
        assert_eq!((&*acting.events, acting.is_unread), ("1 rule acts.", false));
        let unread = Known::new(overview_as_of(None, None), "./", now);
        assert_eq!(
            (&*unread.events, unread.is_unread, unread.rules[0].mode.1),
            ("1 rule cannot act now.", true, "cannot act")
        );
        let paused = Known::new(overview(Some(pause)), "./", now);
        assert_eq!(paused.events, "1 rule would act, and is paused.");
        assert!(
            paused.leads.starts_with("No process executes decisions while all automatic action is paused;"),
            "{}",
            paused.leads
        );
        assert_eq!(paused.paused.map(|paused| paused.why).as_deref(), Some("Maintenance"));
    }
}

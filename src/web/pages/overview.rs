//! The overview.

use std::time::Duration;

use askama::Template;
use jiff::Timestamp;

use self::batches::Batches;
use self::curves::Curve;
use self::details::Details;
use self::pipeline::Pipeline;
use super::View;
use super::frame::{Frame, Section};
use crate::actions::Role;
use crate::alerts::RuleStatus;
use crate::views::overview::{self, Attention, Health, Recent, Severity};
use crate::views::show::{Moment, counted, machine};
use crate::views::status::Status;
use crate::web::icons;
use crate::words::moment;

mod batches;
mod curves;
mod details;
mod pipeline;

/// The overview, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "overview.html")]
pub struct Overview {
    frame: Frame,
    content: Option<Content>,
    /// Whether the reader may pause what acts automatically.
    may_act: bool,
    facts: Vec<details::Fact>,
}

/// What the mirror shows.
#[derive(Debug)]
struct Content {
    /// The instant that all but the verdict is as of, where that is not the present; else empty.
    as_of: String,
    verdict: Verdict,
    pipeline: Pipeline,
    attention: Vec<Item>,
    /// How many rules act on alerts; empty for none.
    acting: String,
    curves: Vec<Curve>,
    /// How far back the curves reach.
    window: &'static str,
    watched: Option<String>,
    batches: Batches,
    details: Details,
}

/// Whether the queue flows.
#[derive(Debug)]
struct Verdict {
    /// `good`, `warn` or `bad`.
    class: &'static str,
    /// The same without its time, for the title of the window, where nothing counts the seconds.
    title: String,
    /// Where the icon of the window is, relative to the root: red where something is urgent, with how much.
    icon: String,
    before: String,
    since: Option<Moment>,
    after: String,
}

/// One thing to look at.
#[derive(Debug)]
struct Item {
    class: &'static str,
    /// Its identity, for the script that updates the page.
    key: String,
    title: String,
    /// The word before its age: `for`, or `oldest` if it is that of the oldest of many.
    age: &'static str,
    since: Option<Moment>,
    /// As [`Content::as_of`].
    as_of: String,
    /// The time of day of `since`, if the title shows the age; else empty.
    clock: String,
    text: String,
    fix: String,
    page: Option<String>,
    link: &'static str,
}

impl Overview {
    /// Works out what the page says.
    #[must_use]
    pub fn new(view: &View, recent: &Recent) -> Self {
        let status = Status::new(&view.freshness, view.servers.clone(), view.now);
        let overview = view.summary.as_ref().map(|summary| {
            let overview = overview::Overview::new(status, summary, recent, view.now);
            Content::new(&overview, recent, view.now)
        });
        Self {
            frame: Frame::new(view, "./".to_owned(), Section::Overview),
            content: overview,
            may_act: false,
            facts: details::facts(view),
        }
    }

    /// The same for a reader of that role.
    pub(super) fn with_role(self, role: Role) -> Self {
        Self { may_act: role >= Role::Operator, ..self }
    }
}

impl Content {
    fn new(overview: &overview::Overview, recent: &Recent, now: Timestamp) -> Self {
        // What is not seen any more does not age.
        let stale_since = overview.status.stale_since;
        let as_of = stale_since.unwrap_or(now);
        let watched = Duration::from_secs(overview.watched_seconds);
        let pieces = u32::try_from(recent.history.points.len()).unwrap_or(u32::MAX);
        let minutes = recent.history.step.saturating_mul(pieces).as_secs() / 60;
        let (window, range) = match minutes {
            ..=10 => ("Last ten minutes", "15m"),
            11..=60 => ("Last hour", "1h"),
            61.. => ("Last six hours", "6h"),
        };
        Self {
            window,
            as_of: stale_since.map(machine).unwrap_or_default(),
            verdict: Verdict::new(overview, now),
            pipeline: Pipeline::new(overview, as_of),
            // The banner above says why the figures are old.
            attention: overview
                .attention
                .iter()
                .filter(|item| item.kind != "unsynced")
                .map(|item| Item::new(item, stale_since, now))
                .collect(),
            acting: acting(overview, recent),
            curves: curves::all(overview, recent, range, now),
            watched: (watched < Duration::from_mins(59)).then(|| crate::views::show::Ago(watched).to_string()),
            batches: Batches::new(overview),
            details: Details::new(overview, as_of),
        }
    }
}

/// How many rules act on alerts; empty for none, and while they are paused, which is among what needs attention.
fn acting(overview: &overview::Overview, recent: &Recent) -> String {
    let Some(status) = recent.automation.as_ref().filter(|status| status.paused.is_none()) else {
        return String::new();
    };
    let acting = |rule: &&RuleStatus| rule.is_enforced == Some(true) && rule.breaker.is_none();
    match status.rules.iter().filter(acting).count() as u64 {
        0 => String::new(),
        _ if !overview.status.connected => {
            "This process executes no action without a connection to ZooKeeper.".to_owned()
        }
        rules => format!("{} on alerts.", counted(rules, "rule acts", "rules act")),
    }
}

impl Verdict {
    fn new(overview: &overview::Overview, now: Timestamp) -> Self {
        let verdict = &overview.verdict;
        let urgent = overview.attention.iter().filter(|item| item.severity == Severity::Bad).count();
        let (before, after) = verdict.around.clone();
        // A queue may flow while much is broken beside it.
        let colour = if urgent > 0 { Health::Bad } else { verdict.health };
        Self {
            class: verdict.health.label(),
            title: verdict.title.clone(),
            icon: icons::path(colour.label(), urgent),
            before,
            since: verdict.since.map(|since| Moment::new(since, now)),
            after,
        }
    }
}

impl Item {
    fn new(item: &Attention, stale_since: Option<Timestamp>, now: Timestamp) -> Self {
        Self {
            class: match item.severity {
                Severity::Bad => "bad",
                Severity::Warn => "warn",
            },
            key: format!("{}-{}", item.kind, item.page.as_deref().unwrap_or_default()),
            title: item.title.clone(),
            age: if item.is_oldest { "oldest" } else { "for" },
            since: item.since.map(|since| Moment::new(since, stale_since.unwrap_or(now))),
            as_of: stale_since.map(machine).unwrap_or_default(),
            clock: item.since.filter(|_| item.kind == "stopped").map(moment).unwrap_or_default(),
            text: item.text.clone(),
            fix: item.fix.clone(),
            page: item.page.clone(),
            link: item.link,
        }
    }
}

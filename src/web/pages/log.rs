//! What has happened to a job or a batch, as lines of a log: who did it, and why.

use std::collections::HashSet;

use jiff::Timestamp;

use super::actions::{action_title, outcome};
use crate::views::audit::AuditItem;
use crate::views::show::{Moment, brief, counted, visible};
use crate::web::api;
use crate::web::state::State;
use crate::words;

/// How many actions are shown beside what was seen; the audit trail has all of them.
const ACTIONS: usize = 10;

/// The longest reason that is shown, in characters.
const LONG: usize = 200;

/// A line of a log.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) at: Moment,
    /// What it happened to, where that is not what the page is about, and its page.
    pub(super) subject: Option<(String, String)>,
    pub(super) text: String,
    /// Where the action is that it was: empty for none.
    pub(super) action: String,
}

/// A line of a log, to be put in order with others.
pub(super) type Dated = (Timestamp, Event);

impl Event {
    /// Something that happened to what the page is about.
    pub(super) fn new(at: Timestamp, text: String, now: Timestamp) -> Dated {
        (at, Self { at: Moment::new(at, now), subject: None, text, action: String::new() })
    }

    /// The same, of something else with a page of its own.
    pub(super) fn about((at, event): Dated, subject: (String, String)) -> Dated {
        (at, Self { subject: Some(subject), ..event })
    }
}

/// The latest first. Of what happened in one second, what comes later in the list is the later.
pub(super) fn in_order(mut events: Vec<Dated>) -> Vec<Event> {
    events.reverse();
    events.sort_by_key(|(at, _)| std::cmp::Reverse(at.as_second()));
    events.into_iter().map(|(_, event)| event).collect()
}

/// Who made a change, and why, behind what was changed: an operator, or the session of a daemon.
pub(super) fn by(operator: Option<(&str, &str)>, session: Option<(i64, Option<&str>)>) -> String {
    match (operator, session) {
        (Some((who, why)), _) => format!(", by {}: {}", visible(who), visible(why)),
        (None, Some((session, address))) if session != 0 => {
            format!(", by session {}", words::session(session, address))
        }
        (None, _) => String::new(),
    }
}

/// The last actions on a target that were requested, whether they changed it or not.
pub(super) fn actions(state: &State, target: &str, root: &str, now: Timestamp) -> Vec<Dated> {
    actions_on(state, [(target, None)], root, now)
}

/// The same on several targets, each action once, however many of them it is on. What is on one target alone is shown
/// with the target and its page, where these are given.
pub(super) fn actions_on<'a>(
    state: &State,
    targets: impl IntoIterator<Item = (&'a str, Option<(String, String)>)>,
    root: &str,
    now: Timestamp,
) -> Vec<Dated> {
    let mut seen = HashSet::new();
    let mut events = Vec::new();
    for (target, subject) in targets {
        for item in api::audit_on(state, target, ACTIONS).into_iter().filter(|item| seen.insert(item.id.clone())) {
            let event = requested(&item, root, now);
            events.push(match &subject {
                Some(subject) if item.count <= 1 => Event::about(event, subject.clone()),
                Some(_) | None => event,
            });
        }
    }
    // Those of one second are put in this order.
    events.reverse();
    events
}

fn requested(item: &AuditItem, root: &str, now: Timestamp) -> Dated {
    let others = if item.count > 1 { format!(" for {}", counted(item.count, "item", "items")) } else { String::new() };
    let text = format!(
        "{} requested{others} by {}: {} ({})",
        action_title(&item.action),
        visible(&item.actor),
        brief(&item.reason, LONG),
        outcome(&item.outcome).name.to_lowercase(),
    );
    let (at, event) = Event::new(item.at, text, now);
    (at, Event { action: format!("{root}actions/{}", item.id), ..event })
}

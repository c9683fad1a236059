//! One order: what it would do, asked once more before it is given.

use askama::Template;
use axum::extract::State as FromState;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Deserialize;

use super::frame::{Frame, Section};
use super::listing::{Choice, choices};
use super::render;
use crate::actions::audit::OrderId;
use crate::actions::{Action, Actor, Order, Prepared, Reason, Refusal, Seen, Source, Subject};
use crate::web::State;
use crate::web::api::orders::{action, bad_item, job_state, plan, priority};
use crate::web::identity::Identity;
use crate::web::layers::Told;
use crate::web::lists::given;
use crate::web::params::{Params, Sent};
use crate::web::problem::Problem;
use crate::web::query::{Pairs, address, refuse};
use crate::web::show::{Shown, shown, visible};
use crate::web::views::orders::plan_text;
use queuekeeper_queue::state::{JobState, State as _};

mod words;

pub(super) use words::{state_name, subject_in_words};

/// How much of a page, in bytes, the data that would be lost may take, and how much of it one znode's.
const LOST_ROOM: (usize, usize) = (40 << 10, 6 << 10);

/// How many characters the key of an order has at most.
const LONGEST_KEY: usize = 100;

/// An order as the pages ask for it: a link to its confirmation, and the form of that.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    action: String,
    on: Option<String>,
    /// A collection's mnemonic, in the place of `on`.
    collection: Option<String>,
    to: Option<String>,
    priority: Option<String>,
    force: Option<String>,
    with_jobs: Option<String>,
    /// What was seen of it.
    state: Option<String>,
    version: Option<String>,
    czxid: Option<String>,
    plan: Option<String>,
    reason: Option<String>,
    key: Option<String>,
}

impl Asked {
    fn order(&self) -> Result<Order, Problem> {
        let on = match (given(self.on.as_ref()), given(self.collection.as_ref())) {
            (Some(on), None) => on.to_owned(),
            (None, Some(collection)) => format!("collection:{}", collection.trim()),
            _ => return Err(Problem::bad("An order is on one thing, which “on” or “collection” names.")),
        };
        let subject = on.parse::<Subject>().map_err(|error| bad_item(&on, &error))?;
        let state = given(self.state.as_ref()).map(Into::into);
        let (version, czxid) = (number("version", self.version.as_ref())?, number("czxid", self.czxid.as_ref())?);
        let plan = given(self.plan.as_ref()).map(plan).transpose()?;
        let is_seen = state.is_some() || version.is_some() || czxid.is_some() || plan.is_some();
        Ok(Order {
            seen: is_seen.then_some(Seen { state, version, czxid, plan, hold: None }),
            to: job_state(given(self.to.as_ref()))?,
            priority: priority(number("priority", self.priority.as_ref())?)?,
            force: given(self.force.as_ref()).is_some(),
            with_jobs: given(self.with_jobs.as_ref()).is_some(),
            ..Order::new(action(&self.action)?, subject)
        })
    }

    fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }

    fn key(&self) -> Result<Option<&str>, Problem> {
        let key = given(self.key.as_ref());
        if key.is_some_and(|key| key.len() > LONGEST_KEY) {
            return Err(Problem::bad("The key of an order is shorter than that. Load the page again."));
        }
        Ok(key)
    }
}

fn number<T: std::str::FromStr>(name: &str, value: Option<&String>) -> Result<Option<T>, Problem> {
    given(value).map(|value| value.parse().map_err(|_| refuse(name, value))).transpose()
}

/// `GET /order`: what an order would do, and a button that gives it.
pub(super) async fn ask(
    FromState(state): FromState<State>,
    who: Identity,
    Params(asked): Params<Asked>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let mut order = asked.order()?;
    let actor = state.orderer(&who, order.action, &order.subject, Source::Web)?;
    words::fill(&state, &mut order);
    let planned = state.actions()?.plan(&order, &actor, asked.reason(), now).await;
    let status = match &planned {
        // The page says why, and that is what was asked for.
        Ok(_) | Err(Refusal::Conflict { .. }) => StatusCode::OK,
        Err(refusal) => Problem::from(refusal.clone()).status(),
    };
    Ok(tell(status, &OrderPage::new(&state, &asked, &order, &actor, planned, None, now)))
}

/// `POST /order`: gives an order, and leads to what comes of it.
pub(super) async fn give(
    FromState(state): FromState<State>,
    who: Identity,
    Sent(asked): Sent<Asked>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let mut order = asked.order()?;
    let actor = state.orderer(&who, order.action, &order.subject, Source::Web)?;
    let actions = state.actions()?;
    let refusal = match Reason::new(asked.reason()) {
        Err(none) => Refusal::Invalid(none.to_string()),
        Ok(reason) => match actions.execute(order.clone(), actor.clone(), reason, asked.key()?, now).await {
            Ok(taken) => return Ok(see_other(format!("orders/{}", taken.work.id))),
            Err(refusal) => refusal,
        },
    };
    // As it is now, whatever was seen before: to be looked at, and ordered again if that is still right.
    order.seen = None;
    words::fill(&state, &mut order);
    let planned = actions.plan(&order, &actor, asked.reason(), now).await;
    let status = Problem::from(refusal.clone()).status();
    Ok(tell(status, &OrderPage::new(&state, &asked, &order, &actor, planned, Some(refusal), now)))
}

/// Leads a browser on after a form, to an address that is relative to the form's own: a proxy may serve us anywhere.
pub(super) fn see_other(location: String) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
}

/// A page that says by itself why it has a status that is none of success.
pub(super) fn tell(status: StatusCode, page: &impl Template) -> Response {
    let mut response = render(status, page);
    if response.status() == status {
        response.extensions_mut().insert(Told);
    }
    response
}

/// What an order would do, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "order.html")]
struct OrderPage {
    frame: Frame,
    title: String,
    subject: String,
    subject_href: String,
    on: String,
    action: Action,
    means: &'static str,
    is_grave: bool,
    told: Option<Against>,
    plan: Option<Plan>,
    /// Where a job may be resumed; empty where that is not asked.
    states: Vec<Choice>,
    /// Empty where it is not asked.
    priority: String,
    /// What force does; empty where nothing is to be forced.
    force: &'static str,
    is_forced: bool,
    /// Whether it releases a collection's jobs with it; `None` where it cannot.
    with_jobs: Option<bool>,
    /// The same order by force, where only that helps; empty otherwise.
    by_force: String,
    actor: String,
    role: &'static str,
    reason: String,
    key: String,
}

/// What stands against it.
#[derive(Debug)]
struct Against {
    title: &'static str,
    text: String,
    /// Of those, the state that it is in now; empty where that is not known.
    state: String,
}

/// What it would do.
#[derive(Debug)]
struct Plan {
    before: String,
    after: String,
    seen: Seen,
    /// Of that, what was planned; empty where its subject has a version.
    shown: String,
    warnings: Vec<String>,
    lost: Vec<Lost>,
    operations: Vec<String>,
}

/// A znode whose data is gone then.
#[derive(Debug)]
struct Lost {
    path: String,
    data: Shown,
}

impl OrderPage {
    fn new(
        state: &State,
        asked: &Asked,
        order: &Order,
        actor: &Actor,
        planned: Result<Prepared, Refusal>,
        refused: Option<Refusal>,
        now: Timestamp,
    ) -> Self {
        let frame = Frame::new(&state.view(now), "./".to_owned(), Section::Audit);
        let (action, subject) = (order.action, &order.subject);
        let (plan, against) = match planned {
            Ok(prepared) => (Some(prepared), None),
            Err(refusal) => (None, Some(refusal)),
        };
        let force = words::force(action, subject);
        let is_conflict = matches!(against, Some(Refusal::Conflict { .. }));
        let by_force = if is_conflict && !order.force && !force.is_empty() {
            let on = subject.to_string();
            let again = [("action", action.label()), ("on", &on), ("force", "true"), ("reason", asked.reason())];
            let again: Pairs = again.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            address(&format!("{}order", frame.root), again.iter().filter(|(_, value)| !value.is_empty()))
        } else {
            String::new()
        };
        let is_given = refused.is_some();
        let told = refused.or(against).map(|refusal| Against::new(refusal, is_given));
        // Which operations there are depends on what is chosen first.
        let is_open = action == Action::SetPriority && given(asked.priority.as_ref()).is_none();
        let to = order.to.map(|state| state.label().to_owned());
        let is_job = matches!(subject, Subject::Job(_));
        let states = resumable();
        Self {
            title: words::title(action, subject),
            subject: subject_in_words(subject),
            subject_href: subject.page().map(|page| format!("{}{page}", frame.root)).unwrap_or_default(),
            on: subject.to_string(),
            means: words::means(action, subject),
            is_grave: words::is_grave(action) || plan.as_ref().is_some_and(|prepared| !prepared.removed.is_empty()),
            told,
            plan: plan.map(|prepared| Plan::new(prepared, is_open)),
            states: if action == Action::Resume && is_job { choices(to.as_ref(), states) } else { Vec::new() },
            priority: order.priority.map(|priority| priority.number().to_string()).unwrap_or_default(),
            force,
            is_forced: order.force,
            with_jobs: (action == Action::Release && matches!(subject, Subject::Collection(_)))
                .then_some(order.with_jobs),
            by_force,
            actor: if actor.name.is_empty() { "nobody".to_owned() } else { visible(&actor.name) },
            role: actor.role.label(),
            reason: asked.reason().to_owned(),
            key: OrderId::new(now).to_string(),
            action,
            frame,
        }
    }
}

/// The states that a failed job may be resumed in: their labels and names.
pub(super) fn resumable() -> impl Iterator<Item = (&'static str, &'static str)> {
    let states = JobState::Failed.next().iter().filter(|state| **state != JobState::Deleted);
    states.map(|state| (state.label(), state.name()))
}

impl Against {
    fn new(refusal: Refusal, is_given: bool) -> Self {
        let state =
            if let Refusal::Conflict { state: Some(state), .. } = &refusal { state_name(state) } else { String::new() };
        let title = match (&refusal, is_given) {
            (Refusal::Unknown(_), _) => "It is not known whether all of this was done",
            (Refusal::InPart(_), _) => "A part of this was done",
            (_, true) => "Nothing was done",
            (_, false) => "This cannot be done now",
        };
        Self { title, text: visible(&Problem::from(refusal).detail), state }
    }
}

impl Plan {
    fn new(prepared: Prepared, is_open: bool) -> Self {
        let (mut left, most) = LOST_ROOM;
        let lost = prepared.removed.iter().map(|(path, data)| {
            let data = shown(data, data.len() as u64, left.min(most));
            left = left.saturating_sub(data.text.len());
            Lost { path: visible(path), data }
        });
        let name = |label: Option<&str>| label.map(state_name).unwrap_or_default();
        let operations = if is_open { Vec::new() } else { prepared.operations() };
        Self {
            before: name(prepared.before),
            after: name(prepared.after),
            lost: lost.collect(),
            operations: operations.iter().map(|line| visible(line)).collect(),
            shown: prepared.seen.plan.map(plan_text).unwrap_or_default(),
            seen: prepared.seen,
            warnings: prepared.warnings.iter().map(|warning| visible(warning)).collect(),
        }
    }
}

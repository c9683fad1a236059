//! Bit errors: what is wrong with copies, and what is decided about them.

use askama::Template;
use axum::extract::State as FromState;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;

use super::super::action::{see_other, with_status};
use super::super::frame::Frame;
use super::super::render;
use super::tasks::Choice;
use super::{Fields, ProofLines, frame, proof_lines};
use crate::actions::mill::{Resolution, StopChange, WrongCopy};
use crate::actions::{Role, Source};
use crate::views::mill::{BitErrorItem, ErrorFilter, ResolutionItem, StopItem};
use crate::views::query::Parameters as _;
use crate::views::show::{Count, Moment, visible};
use crate::web::actions::reason;
use crate::web::http::identity::Identity;
use crate::web::http::params::{Params, Sent};
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair};
use crate::web::state::State;

#[derive(Debug, Template)]
#[template(path = "mill_errors.html")]
struct ErrorsPage {
    frame: Frame,
    /// Why nothing was requested; empty where it was.
    refused: String,
    stops: Vec<StopRow>,
    may_stop: bool,
    /// The stores in which they could be stopped.
    stores: Vec<String>,
    may_resume: bool,
    accounts: Vec<Choice>,
    errors: Vec<ErrorRow>,
    next: String,
}

/// Where no repair starts by itself.
#[derive(Debug)]
struct StopRow {
    /// The store; empty for all of them.
    store: String,
    user: String,
    reason: String,
    since: Moment,
}

/// What is wrong with a copy.
#[derive(Debug)]
struct ErrorRow {
    number: u64,
    /// The item, with its space.
    name: String,
    href: String,
    store: String,
    detail: String,
    /// Why it is not repaired yet.
    why: String,
    fix: String,
    proof: ProofLines,
    /// What the reader may decide now: what the button says, its value, and what it does.
    buttons: Vec<(String, &'static str, &'static str)>,
    found: Moment,
    seen: Moment,
    times: String,
}

/// `GET /mill/errors`: what is wrong with copies.
pub(in crate::web::pages) async fn list(
    FromState(state): FromState<State>,
    who: Identity,
    Params(filter): Params<ErrorFilter>,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &ErrorsPage::new(&state, &who, &filter, String::new()).await?))
}

/// `POST /mill/errors`: has a bit error resolved, or automatic repairs stopped or resumed.
pub(in crate::web::pages) async fn resolve(
    FromState(state): FromState<State>,
    who: Identity,
    Sent(fields): Sent<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    match request(&state, &who, &Fields(fields)).await {
        Ok(()) => Ok(see_other("errors".to_owned())),
        Err(problem) => {
            let page = ErrorsPage::new(&state, &who, &ErrorFilter::default(), problem.detail.to_string()).await?;
            Ok(with_status(problem.status(), &page))
        }
    }
}

async fn request(state: &State, who: &Identity, fields: &Fields) -> Result<(), Problem> {
    if let Some(change) = fields.all("repairs").next() {
        let change = match change {
            "stop" => StopChange::Stop,
            "resume" => StopChange::Resume,
            _ => return Err(Problem::bad("Invalid value of “repairs”; expected stop or resume.")),
        };
        let actor = state.authorize(who, change.role(), Source::Web)?;
        let reason = reason(fields.one("reason")?)?;
        state.mill_actions()?.change_stop(change, fields.one("store")?, &actor, &reason).await?;
        return Ok(());
    }
    let named = fields.all("resolution").next().unwrap_or(Resolution::Repair.as_str());
    let resolution = Resolution::named(named).ok_or_else(|| Problem::bad("There is no such resolution."))?;
    let actor = state.authorize(who, resolution.role(), Source::Web)?;
    let reason = reason(fields.one("reason")?)?;
    let number =
        fields.one("number")?.parse().map_err(|_| Problem::bad("The field number is the number of a bit error."))?;
    state.mill_actions()?.resolve(&WrongCopy::Error(number), resolution, &actor, &reason).await?;
    Ok(())
}

impl ErrorsPage {
    async fn new(state: &State, who: &Identity, filter: &ErrorFilter, refused: String) -> Result<Self, Problem> {
        let now = Timestamp::now();
        let list = state.mill()?.errors(filter).await?;
        let frame = frame(state, "../", now);
        let base = format!("{}mill/errors", frame.root);
        let accounts = list.accounts.iter().map(|(account, count)| Choice {
            name: account.clone(),
            count: Count(*count).to_string(),
            href: address(&base, &[pair("account", &**account)]),
            is_current: *account == list.account,
        });
        let account = list.account.clone();
        let next = list.next.map(|after| address(&base, &ErrorFilter { account, after, limit: filter.limit }.pairs()));
        let stop = |stop: &StopItem| StopRow {
            store: stop.store.clone(),
            user: visible(&stop.user),
            reason: visible(&stop.reason),
            since: Moment::new(stop.since, now),
        };
        let is_stopped = |store: &String| list.stops.iter().any(|stop| stop.store == *store);
        Ok(Self {
            stores: state.mill()?.store_names().into_iter().filter(|store| !is_stopped(store)).collect(),
            may_stop: state.rights(who) >= StopChange::Stop.role()
                && !list.stops.iter().any(|stop| stop.store.is_empty()),
            may_resume: state.rights(who) >= StopChange::Resume.role(),
            stops: list.stops.iter().map(stop).collect(),
            accounts: accounts.collect(),
            errors: list.errors.iter().map(|error| ErrorRow::new(error, &frame.root, state.rights(who), now)).collect(),
            next: next.unwrap_or_default(),
            refused,
            frame,
        })
    }
}

impl ErrorRow {
    fn new(error: &BitErrorItem, root: &str, rights: Role, now: Timestamp) -> Self {
        let may = |of: &&ResolutionItem| Resolution::named(of.name).is_some_and(|named| rights >= named.role());
        let possible = error.resolutions.iter().filter(may);
        let button = |of: &ResolutionItem| (label(of.name), of.name, of.does);
        let BitErrorItem { account, space, key, key_encoded, .. } = error;
        let of_item = format!("{root}mill/spaces/{account}/{space}/item");
        Self {
            number: error.number,
            name: format!("{space}/{key}"),
            href: address(&of_item, &[pair("key", &**key_encoded)]),
            store: error.store.clone(),
            detail: visible(&error.detail),
            why: visible(&error.why),
            fix: visible(&error.fix),
            proof: proof_lines(&error.proof),
            buttons: possible.map(button).collect(),
            found: Moment::new(error.found, now),
            seen: Moment::new(error.seen, now),
            times: Count(error.times).to_string(),
        }
    }
}

/// What the button of a resolution says.
fn label(name: &str) -> String {
    let mut label = name.to_owned();
    if let Some(first) = label.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    label
}

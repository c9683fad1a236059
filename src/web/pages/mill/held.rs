//! What the brake holds.

use askama::Template;
use axum::extract::State as FromState;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;

use super::super::action::{see_other, with_status};
use super::super::frame::Frame;
use super::super::render;
use super::tasks::{self, Choice, TaskRow};
use super::{Fields, frame};
use crate::actions::mill::{MillActionKind, TaskState};
use crate::views::mill::HeldFilter;
use crate::views::query::Parameters as _;
use crate::views::show::Count;
use crate::web::http::identity::Identity;
use crate::web::http::params::{Params, Sent};
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair};
use crate::web::state::State;

#[derive(Debug, Template)]
#[template(path = "mill_held.html")]
struct HeldPage {
    frame: Frame,
    /// Why nothing, or not everything, was decided; empty where all was.
    refused: String,
    groups: Vec<Choice>,
    destination: String,
    tasks: Vec<TaskRow>,
    next: String,
    may_decide: bool,
    /// Who may, in a sentence: `an admin`.
    decider: String,
}

/// `GET /mill/held`: what the brake holds.
pub(in crate::web::pages) async fn list(
    FromState(state): FromState<State>,
    who: Identity,
    Params(filter): Params<HeldFilter>,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &HeldPage::new(&state, &who, filter, String::new()).await?))
}

/// `POST /mill/held`: releases or drops what is held.
pub(in crate::web::pages) async fn decide(
    FromState(state): FromState<State>,
    who: Identity,
    Sent(fields): Sent<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    match tasks::decide(&state, &who, TaskState::Held, Fields(fields)).await {
        Ok(()) => Ok(see_other("held".to_owned())),
        Err(problem) => {
            let page = HeldPage::new(&state, &who, HeldFilter::default(), problem.detail.to_string()).await?;
            Ok(with_status(problem.status(), &page))
        }
    }
}

impl HeldPage {
    async fn new(state: &State, who: &Identity, filter: HeldFilter, refused: String) -> Result<Self, Problem> {
        let now = Timestamp::now();
        let list = state.mill()?.held(&filter).await?;
        let frame = frame(state, "../", now);
        let base = format!("{}mill/held", frame.root);
        let groups = list.groups.iter().map(|group| Choice {
            name: format!("{} in {}", group.account, group.destination),
            count: Count(group.held).to_string(),
            href: address(&base, &[pair("account", &*group.account), pair("destination", &*group.destination)]),
            is_current: group.account == list.account && group.destination == list.destination,
        });
        let (account, destination) = (list.account.clone(), list.destination.clone());
        let next = list
            .next
            .map(|after| address(&base, &HeldFilter { account, destination, after, limit: filter.limit }.pairs()));
        let needed = MillActionKind::ReleaseTask.role();
        Ok(Self {
            groups: groups.collect(),
            tasks: list.tasks.iter().map(|task| TaskRow::new(task, &frame.root, now)).collect(),
            destination: list.destination,
            next: next.unwrap_or_default(),
            may_decide: state.rights(who) >= needed,
            decider: needed.with_article(),
            refused,
            frame,
        })
    }
}

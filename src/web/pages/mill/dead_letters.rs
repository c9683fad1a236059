//! Dead letters: tasks that failed in every attempt.

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
use crate::views::mill::{DeadFilter, DeadGroup};
use crate::views::query::Parameters as _;
use crate::views::show::{Count, visible};
use crate::web::http::identity::Identity;
use crate::web::http::params::{Params, Sent};
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair};
use crate::web::state::State;

#[derive(Debug, Template)]
#[template(path = "mill_dead_letters.html")]
struct DeadPage {
    frame: Frame,
    refused: String,
    accounts: Vec<Choice>,
    groups: Vec<Group>,
    next: String,
    may_decide: bool,
}

/// Dead letters of one error.
#[derive(Debug)]
struct Group {
    error: String,
    kind: &'static str,
    count: String,
    /// The numbers of its tasks.
    numbers: String,
    examples: Vec<TaskRow>,
}

/// `GET /mill/dead-letters`: tasks that failed in every attempt, by error.
pub(in crate::web::pages) async fn list(
    FromState(state): FromState<State>,
    who: Identity,
    Params(filter): Params<DeadFilter>,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &DeadPage::new(&state, &who, filter, String::new()).await?))
}

/// `POST /mill/dead-letters`: retries or drops dead letters.
pub(in crate::web::pages) async fn decide(
    FromState(state): FromState<State>,
    who: Identity,
    Sent(fields): Sent<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    match tasks::decide(&state, &who, TaskState::Dead, Fields(fields)).await {
        Ok(()) => Ok(see_other("dead-letters".to_owned())),
        Err(problem) => {
            let page = DeadPage::new(&state, &who, DeadFilter::default(), problem.detail.to_string()).await?;
            Ok(with_status(problem.status(), &page))
        }
    }
}

impl DeadPage {
    async fn new(state: &State, who: &Identity, filter: DeadFilter, refused: String) -> Result<Self, Problem> {
        let now = Timestamp::now();
        let list = state.mill()?.dead_letters(&filter).await?;
        let frame = frame(state, "../", now);
        let base = format!("{}mill/dead-letters", frame.root);
        let accounts = list.accounts.iter().map(|(account, count)| Choice {
            name: account.clone(),
            count: Count(*count).to_string(),
            href: address(&base, &[pair("account", &**account)]),
            is_current: *account == list.account,
        });
        let account = list.account.clone();
        let next = list.next.map(|after| address(&base, &DeadFilter { account, after }.pairs()));
        Ok(Self {
            accounts: accounts.collect(),
            groups: list.groups.into_iter().map(|group| Group::new(group, &frame.root, now)).collect(),
            next: next.unwrap_or_default(),
            may_decide: state.rights(who) >= MillActionKind::RetryTask.role(),
            refused,
            frame,
        })
    }
}

impl Group {
    fn new(group: DeadGroup, root: &str, now: Timestamp) -> Self {
        let DeadGroup { error, kind, tasks, examples } = group;
        Self {
            error: visible(&error),
            kind,
            count: Count(tasks.len() as u64).to_string(),
            numbers: tasks.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
            examples: examples.iter().map(|task| TaskRow::new(task, root, now)).collect(),
        }
    }
}

//! What waits for a person: what the brake holds, and dead letters.

use askama::Template;
use axum::extract::State as FromState;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;

use super::super::action::{see_other, with_status};
use super::super::frame::Frame;
use super::super::render;
use super::{Fields, frame};
use crate::actions::Source;
use crate::actions::mill::{Decided, MillActionKind, TaskDecision, TaskState};
use crate::views::mill::{DeadFilter, DeadGroup, ErrorItem, HeldFilter, TaskItem};
use crate::views::query::Parameters as _;
use crate::views::show::{Count, Moment, visible};
use crate::web::actions::{reason, sentence};
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
}

#[derive(Debug, Template)]
#[template(path = "mill_dead.html")]
struct DeadPage {
    frame: Frame,
    refused: String,
    accounts: Vec<Choice>,
    groups: Vec<Group>,
    next: String,
    may_decide: bool,
}

/// Whose tasks are listed, or could be.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) name: String,
    pub(super) count: String,
    pub(super) href: String,
    pub(super) is_current: bool,
}

/// A task.
#[derive(Debug)]
pub(super) struct TaskRow {
    pub(super) number: u64,
    pub(super) kind: &'static str,
    /// The item, or the space.
    pub(super) name: String,
    pub(super) href: String,
    /// The store that it is about, or from which to which one it copies.
    pub(super) stores: String,
    pub(super) why: String,
    pub(super) since: Moment,
    /// Its failed attempts, the oldest first.
    pub(super) attempts: Vec<Attempt>,
}

/// A failed attempt at a task.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) at: Moment,
    pub(super) worker: String,
    pub(super) error: String,
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

/// `GET /mill/held`: what the brake holds.
pub(in crate::web::pages) async fn held(
    FromState(state): FromState<State>,
    who: Identity,
    Params(filter): Params<HeldFilter>,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &HeldPage::new(&state, &who, filter, String::new()).await?))
}

/// `POST /mill/held`: releases or drops what is held.
pub(in crate::web::pages) async fn decide_held(
    FromState(state): FromState<State>,
    who: Identity,
    Sent(fields): Sent<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    match decide(&state, &who, TaskState::Held, Fields(fields)).await {
        Ok(()) => Ok(see_other("held".to_owned())),
        Err(problem) => {
            let page = HeldPage::new(&state, &who, HeldFilter::default(), problem.detail.to_string()).await?;
            Ok(with_status(problem.status(), &page))
        }
    }
}

/// `GET /mill/dead-letters`: tasks that failed three times, by error.
pub(in crate::web::pages) async fn dead(
    FromState(state): FromState<State>,
    who: Identity,
    Params(filter): Params<DeadFilter>,
) -> Result<Response, Problem> {
    Ok(render(StatusCode::OK, &DeadPage::new(&state, &who, filter, String::new()).await?))
}

/// `POST /mill/dead-letters`: retries or drops dead letters.
pub(in crate::web::pages) async fn decide_dead(
    FromState(state): FromState<State>,
    who: Identity,
    Sent(fields): Sent<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    match decide(&state, &who, TaskState::Dead, Fields(fields)).await {
        Ok(()) => Ok(see_other("dead-letters".to_owned())),
        Err(problem) => {
            let page = DeadPage::new(&state, &who, DeadFilter::default(), problem.detail.to_string()).await?;
            Ok(with_status(problem.status(), &page))
        }
    }
}

/// Carries out the decision of a form. Not all of it being possible is a conflict, which says how much was done.
async fn decide(state: &State, who: &Identity, of: TaskState, fields: Fields) -> Result<(), Problem> {
    let decided = match fields.one("decision")? {
        "retry" => Decided::Retry,
        "drop" => Decided::Drop,
        _ => return Err(Problem::bad("Invalid value of “decision”; expected retry or drop.")),
    };
    let decision = TaskDecision { decided, of };
    let actor = state.authorize(who, decision.role(), Source::Web)?;
    let reason = reason(fields.one("reason")?)?;
    let numbers = fields.all("task").flat_map(|value| value.split(',')).map(str::parse::<u64>);
    let numbers: Vec<_> = numbers
        .collect::<Result<_, _>>()
        .map_err(|_| Problem::bad("Invalid value of “task”; expected the number of a task."))?;
    if numbers.is_empty() {
        return Err(Problem::bad("No task was chosen."));
    }
    let entry = state.mill_actions()?.decide(decision, &numbers, &actor, &reason).await?;
    let Some((_, why)) = entry.not_done.first() else { return Ok(()) };
    let why = format!("{}. The first that was not changed: {}", entry.detail.unwrap_or_default(), sentence(why));
    Err(Problem::new(StatusCode::CONFLICT, why))
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
        Ok(Self {
            groups: groups.collect(),
            tasks: list.tasks.iter().map(|task| TaskRow::new(task, &frame.root, now)).collect(),
            destination: list.destination,
            next: next.unwrap_or_default(),
            may_decide: state.rights(who) >= MillActionKind::ReleaseTask.role(),
            refused,
            frame,
        })
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

impl TaskRow {
    pub(super) fn new(task: &TaskItem, root: &str, now: Timestamp) -> Self {
        let TaskItem { number, kind, account, space, key, key_encoded, source, destination, created, errors, .. } =
            task;
        let of_space = format!("{root}mill/spaces/{account}/{space}");
        let href = key_encoded.as_ref().map(|key| address(&format!("{of_space}/item"), &[pair("key", &**key)]));
        let stores = match (source, destination) {
            (Some(source), Some(destination)) => format!("{source} to {destination}"),
            (one, other) => one.as_ref().or(other.as_ref()).cloned().unwrap_or_default(),
        };
        let attempt = |ErrorItem { time, worker, error }: &ErrorItem| Attempt {
            at: Moment::new(*time, now),
            worker: visible(worker),
            error: visible(error),
        };
        Self {
            number: *number,
            kind,
            name: format!("{space}{}", key.as_ref().map(|key| format!("/{key}")).unwrap_or_default()),
            href: href.unwrap_or(of_space),
            stores,
            why: errors.last().map(|error| visible(&error.error)).unwrap_or_default(),
            since: Moment::new(errors.last().map_or(*created, |error| error.time), now),
            attempts: errors.iter().map(attempt).collect(),
        }
    }
}

//! What the pages of tasks that wait for an operator have in common: their rows, and what is decided about them.

use axum::http::StatusCode;
use jiff::Timestamp;

use super::Fields;
use crate::actions::Source;
use crate::actions::mill::{Decided, TaskDecision, TaskState};
use crate::views::mill::{ErrorItem, TaskItem};
use crate::views::show::{Moment, visible};
use crate::web::actions::{reason, sentence};
use crate::web::http::identity::Identity;
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair};
use crate::web::state::State;

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

/// Carries out the decision of a form. Not all of it being possible is a conflict, which says how much was done.
pub(super) async fn decide(state: &State, who: &Identity, of: TaskState, fields: Fields) -> Result<(), Problem> {
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

//! Bulk actions: a list is frozen, shown, and executed as it was shown.

use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;

use super::action::{see_other, with_status};
use super::jobs::JobsPage;
use super::render;
use crate::actions::{Reason, Refusal, Role, Source, no_list};
use crate::web::http::identity::Identity;
use crate::web::http::params::Sent;
use crate::web::http::problem::Problem;
use crate::web::http::query::Pairs;
use crate::web::state::State;

mod confirmation;
mod form;

use confirmation::ListPage;
use form::{FreezeError, FreezeForm};

/// `POST /lists`: freezes the selected items, or all that match a filter, and redirects to the list. Where a field is
/// wrong, it answers with the list of jobs as it was, and with what is wrong beside the field.
pub(super) async fn freeze(
    FromState(state): FromState<State>,
    who: Identity,
    Sent(sent): Sent<Pairs>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let actor = state.authorize(&who, Role::Operator, Source::Web)?;
    let form = FreezeForm::read(sent)?;
    match form.freeze(&state, &actor, now) {
        Ok(frozen) => Ok(see_other(format!("lists/{}", frozen.id))),
        Err(FreezeError::Problem(problem)) => Err(problem),
        Err(FreezeError::Wrong(field, why)) => {
            let list_query = form.list.clone();
            let attempt = form.attempt((field, why));
            let page = JobsPage::new(&state, &list_query, state.rights(&who), Some(&attempt), now)?;
            Ok(with_status(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

/// The form of a frozen list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecuteForm {
    reason: Option<String>,
}

/// `GET /lists/{id}`: a frozen list, with a button that executes it.
pub(super) async fn show(
    FromState(state): FromState<State>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let actor = state.authorize(&who, Role::Operator, Source::Web)?;
    let id = id.parse().map_err(|_| gone())?;
    if state.actions()?.execution(id).is_some_and(|work| work.actor == actor.name) {
        return Ok(see_other(format!("../actions/{id}")));
    }
    let page = ListPage::new(&state, id, &actor, None, now).await?;
    Ok(render(StatusCode::OK, &page))
}

/// `POST /lists/{id}`: starts the action of a frozen list, and redirects to its progress.
pub(super) async fn execute(
    FromState(state): FromState<State>,
    who: Identity,
    Path(id): Path<String>,
    Sent(sent): Sent<ExecuteForm>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let actor = state.authorize(&who, Role::Operator, Source::Web)?;
    let id = id.parse().map_err(|_| gone())?;
    let reason = sent.reason.unwrap_or_default();
    let refusal = match Reason::new(&reason) {
        Err(none) => Refusal::Invalid(none.to_string()),
        Ok(given) => match state.actions()?.execute_frozen(id, actor.clone(), given, now) {
            Ok(work) => return Ok(see_other(format!("../actions/{}", work.id))),
            Err(refusal) => refusal,
        },
    };
    let problem = Problem::from(refusal);
    let status = problem.status();
    let page = ListPage::new(&state, id, &actor, Some((reason, problem.clone())), now).await.map_err(|_| problem)?;
    Ok(with_status(status, &page))
}

fn gone() -> Problem {
    no_list().into()
}

/// The list of jobs of that query string.
pub(super) fn back(root: &str, query: &str) -> String {
    if query.is_empty() { format!("{root}jobs") } else { format!("{root}jobs?{query}") }
}

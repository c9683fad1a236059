//! Pauses of the mill's work: made and ended.

use axum::extract::State as FromState;
use axum::response::Response;

use super::super::action::{see_other, with_status};
use super::{Fields, overview};
use crate::actions::Source;
use crate::actions::mill::{PauseChange, pause_scope};
use crate::web::actions::reason;
use crate::web::http::identity::Identity;
use crate::web::http::params::Sent;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// `POST /mill/pause`: pauses the work for an account, a store, or both.
pub(in crate::web::pages) async fn pause(
    FromState(state): FromState<State>,
    who: Identity,
    Sent(fields): Sent<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    answer(&state, &who, PauseChange::Pause, &Fields(fields)).await
}

/// `POST /mill/resume`: ends a pause.
pub(in crate::web::pages) async fn resume(
    FromState(state): FromState<State>,
    who: Identity,
    Sent(fields): Sent<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    answer(&state, &who, PauseChange::Resume, &Fields(fields)).await
}

async fn answer(state: &State, who: &Identity, change: PauseChange, fields: &Fields) -> Result<Response, Problem> {
    match act(state, who, change, fields).await {
        Ok(()) => Ok(see_other("../mill".to_owned())),
        Err(problem) => {
            let page = overview::page(state, who, "../", problem.detail.to_string()).await?;
            Ok(with_status(problem.status(), &page))
        }
    }
}

async fn act(state: &State, who: &Identity, change: PauseChange, fields: &Fields) -> Result<(), Problem> {
    let actor = state.authorize(who, change.role(), Source::Web)?;
    let (scope, reason) = (pause_scope(fields.one("account")?, fields.one("store")?)?, reason(fields.one("reason")?)?);
    state.mill_actions()?.change_pause(change, &scope, &actor, &reason).await?;
    Ok(())
}

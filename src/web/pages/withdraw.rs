//! Withdrawing a deposit: the question, and its answer.

use askama::Template;
use axum::extract::{Path, State as FromState};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Deserialize;

use super::action::with_status;
use super::frame::Frame;
use super::render;
use super::submit::frame;
use crate::actions::{ActionKind, Source, TargetKind};
use crate::views::deposits::DepositView;
use crate::web::deposits::deposit_id;
use crate::web::http::identity::Identity;
use crate::web::http::params::Sent;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// The question, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "withdraw.html")]
struct WithdrawPage {
    frame: Frame,
    id: String,
    name: String,
    /// What it does, and whether that can be undone.
    effect: String,
    /// How many jobs are deleted with it.
    jobs: u64,
    /// Whether the caller made it, and need not say why.
    is_own: bool,
    reason: String,
    /// Why it was not withdrawn; empty before it is requested.
    problem: String,
    may_withdraw: bool,
}

/// What the form says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WithdrawForm {
    reason: String,
}

impl WithdrawPage {
    fn new(state: &State, who: &Identity, deposit: DepositView, reason: String, problem: String) -> Self {
        let frame = frame(&state.view(Timestamp::now()), "../../", who);
        let DepositView { id, filename, depositor, processing, may_withdraw, .. } = deposit;
        let name = if filename.is_empty() { id.clone() } else { filename };
        Self {
            frame,
            id,
            name,
            effect: TargetKind::Batch.effect(ActionKind::Withdraw),
            jobs: processing,
            is_own: depositor == who.name,
            reason,
            problem,
            may_withdraw,
        }
    }
}

/// `GET /submit/{id}/withdraw`: asks whether a deposit is to be withdrawn.
pub(super) async fn ask(
    FromState(state): FromState<State>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let deposit = state.find_deposit(&id, &who, Source::Web).await?;
    Ok(render(StatusCode::OK, &WithdrawPage::new(&state, &who, deposit, String::new(), String::new())))
}

/// `POST /submit/{id}/withdraw`: withdraws a deposit, and redirects to its page.
pub(super) async fn give(
    FromState(state): FromState<State>,
    who: Identity,
    Path(id): Path<String>,
    Sent(form): Sent<WithdrawForm>,
) -> Result<Response, Problem> {
    let (intake, actor, _) = state.depositor(&who, Source::Web)?;
    let uuid = deposit_id(&id)?;
    match intake.withdraw(uuid, &actor, Some(&form.reason)).await {
        // Relative, because a proxy may serve us below any prefix.
        Ok(_) => Ok((StatusCode::SEE_OTHER, [(header::LOCATION, format!("../{id}"))]).into_response()),
        Err(refusal) => {
            let problem = Problem::from(refusal);
            let deposit = state.find_deposit(&id, &who, Source::Web).await?;
            let said = problem.detail.clone().into_owned();
            Ok(with_status(problem.status(), &WithdrawPage::new(&state, &who, deposit, form.reason, said)))
        }
    }
}

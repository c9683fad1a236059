//! Deposits: made at once from a URL, or uploaded in as many parts as it takes.

use axum::body::{Body as RequestBody, Bytes};
use axum::extract::{Path, State as FromState};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use queuekeeper_ingest::withdrawal::WITHDRAWN;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::Answer;
use crate::actions::Source;
use crate::actions::deposit::{DepositRequest, Taken};
use crate::views::deposits::{DepositList, DepositView};
use crate::web::deposits::{deposit_id, no_deposit};
use crate::web::http::identity::Identity;
use crate::web::http::json::Json;
use crate::web::http::key::key;
use crate::web::http::params::{Body, Params};
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// The header with the offset of what is uploaded, and in responses of what has come.
const OFFSET: &str = "upload-offset";

/// How many deposits are listed.
const LISTED: u32 = 100;

/// How a deposit is made.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(super) struct DepositQuery {
    /// Only check whether it would be accepted. The content at `url` is also requested; if `type` is a manifest, it is
    /// fetched and checked, and its URLs are requested for four seconds.
    dry_run: bool,
}

/// Which jobs of a deposit are listed.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(super) struct JobsQuery {
    /// Where the list of jobs begins: the `next` of an earlier answer.
    cursor: Option<String>,
}

/// `POST /api/v1/deposits`: makes a deposit, or begins its upload.
///
/// With `url`, the deposit is made immediately, and the daemons fetch the content. Without it, the response has the id
/// to which the content is uploaded with `PATCH`, in one or more parts. With the header `Idempotency-Key`, the same
/// deposit sent twice is made once, and its upload can be continued; a different deposit is refused with 422. A
/// withdrawn deposit stays withdrawn: sent again with its key, nothing is made, and the response has the deposit with
/// its outcome `withdrawn`. To make it again, use another key.
#[utoipa::path(
    post, path = "/deposits",
    params(
        DepositQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Any text of up to 200 characters; the same text whenever the same deposit is sent again"),
    ),
    request_body = DepositRequest,
    responses(
        (status = 200, body = DepositView, description = "It would be accepted (dry run), certain only if `urls_not_requested` is 0; or the deposit of this `Idempotency-Key` was withdrawn, and is not made again"),
        (status = 201, body = DepositView, description = "The deposit was made"),
        (status = 202, body = DepositView, description = "The content has to be uploaded, starting at `offset`"),
        (status = 400, description = "The request is not valid"),
        (status = 404, description = "This server accepts no deposits"),
        (status = 409, description = "Another request is uploading the same deposit"),
        (status = 422, description = "The `Idempotency-Key` was used for another deposit: the problem names the field"),
        (status = 413, description = "It is more than the caller may ever deposit in 24 hours"),
        (status = 429, description = "It is more than the caller may deposit in 24 hours or in a minute, or four dry runs are being checked; `Retry-After` is the minimum time to wait"),
        (status = 503, description = "A dry run was not checked within eight seconds"),
        (status = 507, description = "There is no room on the working storage"),
    ),
)]
pub(super) async fn make(
    FromState(state): FromState<State>,
    identity: Identity,
    headers: HeaderMap,
    Params(query): Params<DepositQuery>,
    Body(request): Body<DepositRequest>,
) -> Result<Response, Problem> {
    let (intake, actor, allowance) = state.depositor(&identity, Source::Api)?;
    let taken = intake.begin(request.clone(), &actor, &allowance, key(&headers)?, query.dry_run).await?;
    answer(&state, &identity, taken, &request).await
}

/// `PATCH /api/v1/deposits/{id}`: uploads the content of a deposit, or a part of it.
///
/// The header `Upload-Offset` is the position at which the part begins; it must be the number of bytes received so far.
/// The deposit is made once the `size` of the deposit is received or, without a `size`, once the request ends. The
/// received data of an interrupted request is kept for a day.
#[utoipa::path(
    patch, path = "/deposits/{id}",
    params(
        ("id" = String, Path, description = "The id of the deposit", example = "bid-9c1a0b5e-0000-4000-8000-000000000001"),
        ("Upload-Offset" = u64, Header, description = "The number of bytes received so far"),
    ),
    request_body(content_type = "application/octet-stream", description = "The content from that offset on"),
    responses(
        (status = 201, body = DepositView, description = "Everything was received, and the deposit was made"),
        (status = 202, body = DepositView, description = "The rest has to be uploaded"),
        (status = 400, description = "The request is not valid, more was received than announced, or the digest differs"),
        (status = 404, description = "There is no such upload of the caller"),
        (status = 409, description = "Another offset is expected, or another request is uploading"),
        (status = 413, description = "It is more than the caller may ever deposit in 24 hours"),
        (status = 422, description = "Another deposit was made under the same `Idempotency-Key` meanwhile"),
        (status = 429, description = "It is more than the caller may deposit in 24 hours or in a minute; `Retry-After` is the minimum time to wait"),
        (status = 507, description = "There is no room on the working storage"),
    ),
)]
pub(super) async fn upload(
    FromState(state): FromState<State>,
    identity: Identity,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: RequestBody,
) -> Result<Response, Problem> {
    let (intake, actor, allowance) = state.depositor(&identity, Source::Api)?;
    let uuid = deposit_id(&id)?;
    let offset = headers.get(OFFSET).and_then(|offset| offset.to_str().ok()?.parse().ok());
    let offset =
        offset.ok_or_else(|| Problem::bad("The header Upload-Offset must be the number of bytes received so far."))?;
    let Some((_, request)) = intake.uploading(uuid, &actor).await? else { return Err(no_deposit(&id)) };
    let taken = intake.append(uuid, offset, body.into_data_stream(), &actor, &allowance).await?;
    answer(&state, &identity, taken, &request).await
}

async fn answer(
    state: &State,
    identity: &Identity,
    taken: Taken,
    request: &DepositRequest,
) -> Result<Response, Problem> {
    let (status, view) = match taken {
        Taken::WouldBeTaken { unrequested, batches } => (
            StatusCode::OK,
            DepositView {
                state: "accepted".to_owned(),
                profile: request.profile.clone(),
                filename: request.filename.clone(),
                depositor: identity.name.clone(),
                size_bytes: request.size,
                urls_not_requested: Some(unrequested),
                batches,
                ..DepositView::default()
            },
        ),
        Taken::Withdrawn(id) => {
            let mut view = state.find_deposit(&id, identity, Source::Api).await?;
            // The mirror may not have seen it yet, and the catalogue may not have it.
            WITHDRAWN.clone_into(&mut view.state);
            view.outcome.get_or_insert_with(|| WITHDRAWN.to_owned());
            (StatusCode::OK, view)
        }
        Taken::Uploading(upload) => (StatusCode::ACCEPTED, DepositView::uploading(&upload, request)),
        Taken::Made(receipt) => {
            let mut view = state.find_deposit(&receipt.id, identity, Source::Api).await?;
            // The mirror may not have seen it yet.
            view.batch = Some(receipt.batch.to_string());
            if view.filename.is_empty() {
                view.filename.clone_from(&request.filename);
            }
            (StatusCode::CREATED, view)
        }
    };
    let mut response = (status, Json(&view)).into_response();
    if let Some(offset) = view.offset {
        response.headers_mut().insert(OFFSET, HeaderValue::from(offset));
    }
    Ok(response)
}

/// `POST /api/v1/deposits/{id}/failed`: submits the failed rows of a batch again, as a separate batch.
///
/// The batch must have been reported as Failed. What is submitted is a manifest of the rows whose jobs failed, without
/// those whose objects are stored: their jobs are resumed. Repeated requests give the same batch, unless that failed
/// before it had jobs or was withdrawn. From then on, the other jobs of the first batch cannot be resumed: each row
/// would be stored twice. The request needs no body. Of a deposit that became several batches, the failed rows of each
/// part are submitted again by the id of that part.
#[utoipa::path(
    post, path = "/deposits/{id}/failed",
    params(("id" = String, Path, description = "The id of the deposit", example = "bid-9c1a0b5e-0000-4000-8000-000000000001")),
    responses(
        (status = 201, body = DepositView, description = "The deposit of the failed rows"),
        (status = 400, description = "The caller may not deposit for this profile"),
        (status = 404, description = "There is no such deposit of the caller in the queue"),
        (status = 409, description = "It has no failed rows that can be submitted again"),
        (status = 429, description = "It is more than the caller may deposit in 24 hours or in a minute; `Retry-After` is the minimum time to wait"),
        (status = 507, description = "There is no room on the working storage"),
    ),
)]
pub(super) async fn failed(
    FromState(state): FromState<State>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let (intake, actor, allowance) = state.depositor(&identity, Source::Api)?;
    let receipt = intake.again(deposit_id(&id)?, &actor, &allowance).await?;
    answer(&state, &identity, Taken::Made(receipt), &DepositRequest::default()).await
}

/// Why a deposit is withdrawn.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WithdrawalRequest {
    /// Why; required for another user's deposit.
    #[schema(example = "the wrong files")]
    reason: Option<String>,
}

/// `POST /api/v1/deposits/{id}/withdraw`: withdraws a deposit: its batch is deleted with all its jobs, or nothing is
/// changed.
///
/// Of a deposit that became several batches, all are; withdraw it by its own id, not that of a further part.
///
/// It is possible until the first job leaves Pending. No report is sent; uploaded files are removed by cleanup, and
/// the deposit counts towards its depositor's daily limits until 24 hours after it was made. Withdrawing it again has
/// no effect. A depositor can withdraw their own deposits, without a body; an operator can withdraw any, with a reason.
#[utoipa::path(
    post, path = "/deposits/{id}/withdraw",
    params(("id" = String, Path, description = "The id of the deposit", example = "bid-9c1a0b5e-0000-4000-8000-000000000001")),
    request_body = Option<WithdrawalRequest>,
    responses(
        (status = 200, body = DepositView, description = "It is withdrawn"),
        (status = 202, body = DepositView, description = "It has very many jobs, and is being withdrawn: `withdrawing_since`"),
        (status = 404, description = "There is no such deposit of the caller in the queue"),
        (status = 409, description = "A job of it has left Pending, or a daemon has locked it; nothing is changed"),
    ),
)]
pub(super) async fn withdraw(
    FromState(state): FromState<State>,
    identity: Identity,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let (intake, actor, _) = state.depositor(&identity, Source::Api)?;
    let uuid = deposit_id(&id)?;
    let request: WithdrawalRequest = if body.is_empty() {
        WithdrawalRequest::default()
    } else {
        let request: Option<WithdrawalRequest> =
            serde_json::from_slice(&body).map_err(|error| Problem::bad(format!("The body is not valid: {error}.")))?;
        request.unwrap_or_default()
    };
    let is_done = intake.withdraw(uuid, &actor, request.reason.as_deref()).await?;
    let mut view = state.find_deposit(&id, &identity, Source::Api).await?;
    if !is_done {
        return Ok((StatusCode::ACCEPTED, Json(&view)).into_response());
    }
    // The mirror may not have seen it yet.
    WITHDRAWN.clone_into(&mut view.state);
    Ok(Json(&view).into_response())
}

/// `GET /api/v1/deposits`: the deposits of the caller, the newest first.
#[utoipa::path(
    get, path = "/deposits",
    responses(
        (status = 200, body = DepositList),
        (status = 403, description = "The caller's role does not allow deposits"),
        (status = 404, description = "This server accepts no deposits"),
    ),
)]
pub(super) async fn deposits(FromState(state): FromState<State>, identity: Identity) -> Answer<DepositList> {
    let (intake, actor, _) = state.depositor(&identity, Source::Api)?;
    let (found, source) = (intake.deposits(&actor, LISTED).await?, state.source());
    let view = |(deposit, parts): &(_, Vec<_>)| source.deposit(deposit, parts, Timestamp::now());
    Ok(Json(DepositList { items: found.iter().map(view).collect() }))
}

/// `GET /api/v1/deposits/{id}`: the state of a deposit.
#[utoipa::path(
    get, path = "/deposits/{id}",
    params(
        JobsQuery,
        ("id" = String, Path, description = "The id of the deposit", example = "bid-9c1a0b5e-0000-4000-8000-000000000001"),
    ),
    responses(
        (status = 200, body = DepositView),
        (status = 400, description = "The cursor is not valid"),
        (status = 403, description = "The caller's role does not allow deposits"),
        (status = 404, description = "There is no such deposit of the caller"),
    ),
)]
pub(super) async fn deposit(
    FromState(state): FromState<State>,
    identity: Identity,
    Path(id): Path<String>,
    Params(query): Params<JobsQuery>,
) -> Answer<DepositView> {
    let mut view = state.find_deposit(&id, &identity, Source::Api).await?;
    state.source().page_jobs(&mut view, query.cursor)?;
    Ok(Json(view))
}

/// `DELETE /api/v1/deposits/{id}`: cancels an upload that is not complete.
#[utoipa::path(
    delete, path = "/deposits/{id}",
    params(("id" = String, Path, description = "The id of the deposit", example = "bid-9c1a0b5e-0000-4000-8000-000000000001")),
    responses(
        (status = 204, description = "The received data was removed"),
        (status = 404, description = "There is no such upload of the caller"),
        (status = 409, description = "The deposit was made already, or a request is uploading it"),
    ),
)]
pub(super) async fn give_up(
    FromState(state): FromState<State>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let (intake, actor, _) = state.depositor(&identity, Source::Api)?;
    let uuid = deposit_id(&id)?;
    if intake.give_up(uuid, &actor).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    match intake.deposit(uuid, &actor).await? {
        Some(_) => Err(Problem::new(
            StatusCode::CONFLICT,
            "The deposit has already been made; only an upload can be cancelled.",
        )),
        None => Err(no_deposit(&id)),
    }
}

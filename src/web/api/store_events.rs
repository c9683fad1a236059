//! Messages of stores about their changes.

use axum::body::Bytes;
use axum::extract::State as FromState;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Answer, message};
use crate::actions::Role;
use crate::actions::store_events::{Marked, NotMarked};
use crate::web::actions::sentence;
use crate::web::http::identity::{AuthMethod, Identity};
use crate::web::http::json::Json;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// The route.
pub(super) fn router() -> OpenApiRouter<State> {
    OpenApiRouter::new().routes(routes!(store_events))
}

/// A message of S3, as far as it is used: a notification, or `MinIO`'s.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes what is read elsewhere")]
struct StoreEventsBody {
    /// The changes, at most 500; `detail-type` and `detail` in their place in a message of `EventBridge`.
    #[serde(rename = "Records")]
    #[schema(example = json!([]))]
    records: Vec<serde_json::Value>,
}

/// The result for the changes that a message names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::web) struct MarkedView {
    /// How many items will be checked.
    marked: usize,
    /// How many were already known: changes that queuekeeper made itself.
    known: usize,
    /// How many are not in the token's space.
    other: usize,
}

/// `POST /api/v1/store-events`: accepts messages of a store about its changes. Items are marked before the response.
///
/// It requires the role `store-events`, which allows nothing else, and a space below `store_events` in the file of
/// `--config.file`. The contents of a message are not trusted: the mill checks the item.
#[utoipa::path(
    post, path = "/store-events",
    request_body = StoreEventsBody,
    responses(
        (status = 200, body = MarkedView),
        (status = 400, description = "Not a message of EventBridge, S3 or MinIO"),
        (status = 404, description = "The token's space belongs to no account of the mill"),
        (status = 429, description = "The token has sent too many messages: retry"),
        (status = 503, description = "The catalogue cannot be written now: retry"),
    ),
)]
async fn store_events(
    FromState(state): FromState<State>,
    identity: Identity,
    body: Result<Bytes, BytesRejection>,
) -> Answer<MarkedView> {
    if identity.role != Role::StoreEvents {
        return Err(refused(&state, &identity));
    }
    let body = message(body)?;
    let events = state.store_events()?;
    let source = state.http().config_file().and_then(|file| file.event_source(&identity.name).cloned());
    let source = source.ok_or_else(|| {
        let why = format!("{} has no entry below store_events in the file of --config.file.", identity.name);
        Problem::new(StatusCode::FORBIDDEN, why)
    })?;
    let Marked { marked, known, other } = events.receive(&identity.name, &source, &body).await?;
    Ok(Json(MarkedView { marked, known, other }))
}

fn refused(state: &State, identity: &Identity) -> Problem {
    let why = "Messages of stores require a token of the role store-events. Create one with queuekeeper token NAME \
               --role store-events, and name its space below store_events in the file of --config.file.";
    if identity.method == AuthMethod::Anonymous {
        state.http().challenge(why)
    } else {
        Problem::new(StatusCode::FORBIDDEN, why)
    }
}

impl From<NotMarked> for Problem {
    fn from(error: NotMarked) -> Self {
        let why = sentence(&error.to_string());
        match error {
            NotMarked::Invalid(_) => Self::new(StatusCode::BAD_REQUEST, why),
            NotMarked::NoAccount(..) => Self::missing(why),
            NotMarked::TooMany(seconds) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, why).with(header::RETRY_AFTER, HeaderValue::from(seconds))
            }
            NotMarked::Catalogue(error) => {
                tracing::warn!(%error, "cannot accept messages of stores");
                let later = HeaderValue::from_static("5");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "The catalogue cannot be written now.")
                    .with(header::RETRY_AFTER, later)
            }
        }
    }
}

//! Alertmanager's webhook.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Request, State as FromState};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use jiff::Timestamp;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Answer, message};
use crate::actions::{Actor, Role, Source};
use crate::alerts::NotReceived;
use crate::views::rules::ReceivedView;
use crate::web::http::identity::{AuthMethod, Identity};
use crate::web::http::json::Json;
use crate::web::http::problem::Problem;
use crate::web::routes::ALERTS;
use crate::web::state::State;

/// The route.
pub(super) fn router() -> OpenApiRouter<State> {
    OpenApiRouter::new().routes(routes!(alerts))
}

/// A message of Alertmanager's webhook, version 4, as far as it is used.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes what is read elsewhere")]
struct AlertsBody {
    /// The version: `4`.
    #[schema(example = "4")]
    version: String,
    /// The alerts.
    #[schema(example = json!([]))]
    alerts: Vec<AlertBody>,
    /// How many alerts Alertmanager omitted.
    #[serde(rename = "truncatedAlerts")]
    truncated_alerts: Option<u64>,
}

/// An alert.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes what is read elsewhere")]
struct AlertBody {
    /// `firing` or `resolved`.
    #[schema(example = "firing")]
    status: String,
    /// Its labels.
    labels: std::collections::BTreeMap<String, String>,
    /// When it started to fire.
    #[serde(rename = "startsAt")]
    starts_at: Timestamp,
    /// Alertmanager's hash of its labels.
    #[schema(example = "0f1e2d3c4b5a6978")]
    fingerprint: String,
}

/// `POST /api/v1/alerts`: receives alerts from Alertmanager's webhook. Decisions are stored before the response.
///
/// It requires the role `alertmanager`, which allows nothing else. After a response of 2xx all accepted decisions will
/// be executed, even if this server ends; after 503 the message has to be sent again.
#[utoipa::path(
    post, path = "/alerts",
    request_body = AlertsBody,
    responses(
        (status = 200, body = ReceivedView),
        (status = 400, description = "Not a message of Alertmanager in version 4, or too many alerts"),
        (status = 404, description = "This server accepts no alerts"),
        (status = 503, description = "The alerts cannot be decided or recorded now: retry"),
    ),
)]
async fn alerts(
    FromState(state): FromState<State>,
    identity: Identity,
    body: Result<Bytes, BytesRejection>,
) -> Answer<ReceivedView> {
    if identity.role != Role::Alertmanager {
        return Err(refused(&state, &identity));
    }
    let body = message(body)?;
    let caller = Actor { name: identity.name, role: identity.role, source: Source::Alert, from: identity.peer };
    let received = state.alerts()?.receive(&body, &caller, Timestamp::now()).await?;
    Ok(Json(received.into()))
}

/// Counts requests that are refused before they get here.
pub(in crate::web) async fn count_unauthorized(
    FromState(state): FromState<State>,
    request: Request,
    next: Next,
) -> Response {
    let path = state.http().strip_prefix(request.uri().path());
    let is_alerts = request.method() == Method::POST && path == Some(ALERTS);
    let response = next.run(request).await;
    if is_alerts
        && matches!(response.status().as_u16(), 401 | 403 | 421)
        && let Some(alerts) = state.shared.alerts.get()
    {
        alerts.count_unauthorized();
    }
    response
}

/// Only this role may send alerts, so that the audit trail shows reliably which actions were caused by an alert.
fn refused(state: &State, identity: &Identity) -> Problem {
    let why = "Sending alerts requires a token of the role alertmanager. Create one with queuekeeper token alertmanager \
               --role alertmanager, and set it as credentials_file in Alertmanager's http_config.";
    if identity.method == AuthMethod::Anonymous {
        state.http().challenge(why)
    } else {
        Problem::new(StatusCode::FORBIDDEN, why)
    }
}

impl From<NotReceived> for Problem {
    fn from(error: NotReceived) -> Self {
        let why = crate::web::actions::sentence(&error.to_string());
        match error {
            NotReceived::Invalid(_) => Self::new(StatusCode::BAD_REQUEST, why),
            NotReceived::NotSynced(_)
            | NotReceived::Full(_)
            | NotReceived::NotWritten(_)
            | NotReceived::Unrecorded(_) => {
                let later = HeaderValue::from_static("5");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, why).with(header::RETRY_AFTER, later)
            }
        }
    }
}

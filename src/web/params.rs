//! Query parameters and bodies, taken whole or refused by name.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// The query string as a `T`; one that `T` does not take is a [`Problem`] that names the parameter. `T` denies unknown
/// fields: a filter with a slip in its name would show everything, and look as if it had filtered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Params<T>(pub(super) T);

impl<T, S> FromRequestParts<S> for Params<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => {
                let why = rejection.body_text();
                let why = why.strip_prefix("Failed to deserialize query string: ").unwrap_or(&why).to_owned();
                Err(Problem::bad(format!("The query string cannot be taken: {}.", super::show::visible(&why))))
            }
        }
    }
}

/// A JSON body as a `T`; one that `T` does not take is a [`Problem`] that names what is wrong with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<T, S> FromRequest<S> for Body<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let rejection = match Json::from_request(request, state).await {
            Ok(Json(body)) => return Ok(Self(body)),
            Err(rejection) => rejection,
        };
        let why = rejection.body_text();
        let why = why.split_once(": ").map_or(why.as_str(), |(_, why)| why);
        Err(match &rejection {
            JsonRejection::MissingJsonContentType(_) => Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "The body must be JSON, and say so: send it with Content-Type: application/json.",
            ),
            JsonRejection::BytesRejection(_) => {
                Problem::new(rejection.status(), "The body cannot be read, or is larger than anything that is taken.")
            }
            _ => Problem::bad(format!("The body cannot be taken: {}.", super::show::visible(why))),
        })
    }
}

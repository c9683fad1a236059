//! Query parameters and bodies, taken whole or refused by name.

use axum::body::Bytes;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::{Form, Json};
use serde::de::DeserializeOwned;

use super::problem::Problem;
use crate::views::query::{self, Pairs};
use crate::views::show::visible;

/// The query string as a `T`, a struct or a tuple of structs; one that `T` does not take is a [`Problem`] that names
/// the parameter. So is an unknown one: a filter with a slip in its name would show everything, and look as if it had
/// filtered.
#[derive(Clone, Copy, Debug)]
pub(in crate::web) struct Params<T>(pub(in crate::web) T);

impl<T, S> FromRequestParts<S> for Params<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        read(&parts.uri).map(Self)
    }
}

/// The parameters of a query string that stands by itself, with or without a question mark.
pub(in crate::web) fn pairs_of(query: &str) -> Result<Pairs, Problem> {
    let wrong = || Problem::bad("Not a valid query string; expected, for example, state=failed&batch=bid0000000042.");
    let uri: Uri = format!("/?{}", query.trim_start_matches('?')).parse().map_err(|_| wrong())?;
    Query::try_from_uri(&uri).map(|Query(pairs)| pairs).map_err(|_| wrong())
}

fn read<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    let pairs = Query::<Pairs>::try_from_uri(uri).map_err(|rejection| {
        let why = rejection.body_text();
        let why = why.split_once(": ").map_or(why.as_str(), |(_, why)| why);
        Problem::bad(format!("The query string is not valid: {}.", visible(why)))
    })?;
    Ok(query::read(&pairs)?)
}

/// The form of a page of ours as a `T`; one that `T` does not take is a [`Problem`] that names what is wrong with it.
#[derive(Clone, Copy, Debug)]
pub(in crate::web) struct Sent<T>(pub(in crate::web) T);

impl<T, S> FromRequest<S> for Sent<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match Form::from_request(request, state).await {
            Ok(Form(form)) => Ok(Self(form)),
            Err(rejection) => {
                let (status, why) = (rejection.status(), rejection.body_text());
                let why = why.split_once(": ").map_or(why.as_str(), |(_, why)| why);
                let status = if status == StatusCode::UNPROCESSABLE_ENTITY { StatusCode::BAD_REQUEST } else { status };
                Err(Problem::new(status, format!("The form is not valid: {}.", visible(why))))
            }
        }
    }
}

/// A JSON body as a `T`; one that `T` does not take is a [`Problem`] that names what is wrong with it.
#[derive(Clone, Copy, Debug)]
pub(in crate::web) struct Body<T>(pub(in crate::web) T);

impl<T, S> FromRequest<S> for Body<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let unreadable = "The body cannot be read, or exceeds the size limit.";
        let bytes = Bytes::from_request(Request::from_parts(parts.clone(), body), state).await;
        let bytes = bytes.map_err(|rejection| Problem::new(rejection.status(), unreadable))?;
        // As a list of values, without their names, it would be taken for an object, and an empty one for an empty
        // object.
        if bytes.trim_ascii_start().starts_with(b"[") {
            return Err(Problem::bad("The body is not valid: expected an object, found an array."));
        }
        let request = Request::from_parts(parts, bytes.into());
        let rejection = match Json::from_request(request, state).await {
            Ok(Json(body)) => return Ok(Self(body)),
            Err(rejection) => rejection,
        };
        let why = rejection.body_text();
        let why = why.split_once(": ").map_or(why.as_str(), |(_, why)| why);
        Err(match &rejection {
            JsonRejection::MissingJsonContentType(_) => Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "The body must be JSON; send it with Content-Type: application/json.",
            ),
            JsonRejection::BytesRejection(_) => Problem::new(rejection.status(), unreadable),
            _ => Problem::bad(format!("The body is not valid: {}.", visible(why))),
        })
    }
}

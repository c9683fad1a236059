//! Query parameters, taken whole or refused by name.

use axum::extract::{FromRequestParts, Query};
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

//! Query parameters, taken whole or refused by name.

use axum::extract::{FromRequestParts, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::problem::Problem;
use super::query::{Pairs, address};

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
        read(&parts.uri).map(Self)
    }
}

/// The same of parameters that come from elsewhere than a request.
pub(super) fn of_pairs<T: DeserializeOwned>(pairs: &Pairs) -> Result<T, Problem> {
    let address = address("/", pairs);
    let uri = address.parse().map_err(|error| Problem::bad(format!("The parameters cannot be taken: {error}.")))?;
    read(&uri)
}

fn read<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    match Query::try_from_uri(uri) {
        Ok(Query(params)) => Ok(params),
        Err(rejection) => {
            let why = rejection.body_text();
            let why = why.strip_prefix("Failed to deserialize query string: ").unwrap_or(&why).to_owned();
            Err(Problem::bad(format!("The query string cannot be taken: {}.", super::show::visible(&why))))
        }
    }
}

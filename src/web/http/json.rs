//! JSON responses.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::views::show::visible_json;

/// A value as JSON, with all invisible characters escaped.
#[derive(Clone, Copy, Debug)]
pub(in crate::web) struct Json<T>(pub(in crate::web) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_string(&self.0) {
            Ok(json) => {
                let kind = HeaderValue::from_static("application/json");
                ([(header::CONTENT_TYPE, kind)], visible_json(json)).into_response()
            }
            Err(error) => {
                tracing::error!(%error, "failed to serialize a response as JSON");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

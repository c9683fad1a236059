//! What a request gets that cannot be served: a problem document, a page, or a line, as it was asked for.

use std::borrow::Cow;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// The media type of a problem document (RFC 9457).
pub(super) const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was not served, and what to do. As JSON it is a problem document (RFC 9457).
// As a response it carries itself in the extensions; the layer that describes errors writes the body, because only it
// knows who asked. The description of the API takes over what stands above, and this is nothing for its readers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// What kind of problem this is: a URI; `about:blank` says no more than `status`.
    #[serde(rename = "type")]
    pub(crate) kind: Cow<'static, str>,
    /// The status in words.
    pub(crate) title: Cow<'static, str>,
    /// The HTTP status code.
    #[schema(minimum = 400, maximum = 599)]
    pub(crate) status: u16,
    /// What is wrong and what to do, in a sentence or two.
    pub(crate) detail: Cow<'static, str>,
    /// The values that are allowed, where the problem is one that is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<Cow<'static, str>>,
}

impl Problem {
    /// A problem with no more to its kind than the status.
    pub(super) fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: "about:blank".into(),
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            detail: detail.into(),
            allowed: Vec::new(),
        }
    }

    /// A parameter that cannot be taken.
    pub(super) fn bad(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Something that is not there.
    pub(super) fn missing(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// The queue has not been read yet.
    pub(super) fn no_image() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The queue has not been read yet, or its root is not there. The overview says why; try again in a moment.",
        )
    }

    /// The same with the values that would have been allowed.
    pub(super) fn allowing<T: Into<Cow<'static, str>>>(mut self, allowed: impl IntoIterator<Item = T>) -> Self {
        self.allowed = allowed.into_iter().map(Into::into).collect();
        self
    }

    /// The status as HTTP has it.
    pub(super) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The same in one line, for probes and terminals.
    pub(super) fn line(&self) -> String {
        let allowed =
            if self.allowed.is_empty() { String::new() } else { format!(" Allowed: {}.", self.allowed.join(", ")) };
        format!("{}{allowed}\n", self.detail)
    }

    /// The problem document.
    pub(super) fn document(&self) -> Response {
        let mut response = (self.status(), axum::Json(self)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(MEDIA_TYPE));
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

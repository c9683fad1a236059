//! What a request gets that cannot be served: a problem document, a page, or a line, as it was asked for.

use std::borrow::Cow;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::json::Json;
use crate::views::ViewError;
use crate::views::error::Explained;

/// The media type of a problem document (RFC 9457).
pub(in crate::web) const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was not served, and what to do. As JSON it is a problem document (RFC 9457).
// As a response it carries itself in the extensions; the layer that describes errors writes the body, because only it
// knows who asked. The description of the API takes over what stands above, and this is nothing for its readers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// What kind of problem this is: a URI; `about:blank` adds nothing to `status`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// The status in words.
    pub(crate) title: &'static str,
    /// The HTTP status code.
    #[schema(minimum = 400, maximum = 599)]
    pub(crate) status: u16,
    /// What is wrong and what to do, in a sentence or two.
    pub(crate) detail: Cow<'static, str>,
    /// The values that are allowed, where the problem is one that is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<Cow<'static, str>>,
    /// How the target of an action is now, where that stands against it.
    // Boxed, since every handler's result carries a problem and few problems carry this.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) present: Option<Box<Present>>,
    // Headers of the response, such as how to log in.
    #[serde(skip)]
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

/// How the target of an action is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Present {
    /// Its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<&'static str>,
    /// The version of its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<i32>,
}

impl Problem {
    /// A problem with no more to its kind than the status.
    pub(in crate::web) fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            allowed: Vec::new(),
            present: None,
            headers: Vec::new(),
        }
    }

    /// A parameter that cannot be taken.
    pub(in crate::web) fn bad(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Something that is not there.
    pub(in crate::web) fn missing(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// The same with the values that would have been allowed.
    pub(in crate::web) fn allowing<T: Into<Cow<'static, str>>>(mut self, allowed: impl IntoIterator<Item = T>) -> Self {
        self.allowed = allowed.into_iter().map(Into::into).collect();
        self
    }

    /// The same with a header.
    pub(in crate::web) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The status as HTTP has it.
    pub(in crate::web) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The same in one line, for probes and terminals.
    pub(crate) fn line(&self) -> String {
        let allowed =
            if self.allowed.is_empty() { String::new() } else { format!(" Allowed: {}.", self.allowed.join(", ")) };
        format!("{}{allowed}\n", self.detail)
    }

    /// The problem document.
    pub(in crate::web) fn document(&self) -> Response {
        let mut response = (self.status(), Json(self)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        response
    }
}

impl From<ViewError> for Problem {
    fn from(error: ViewError) -> Self {
        let explained = |status, Explained { detail, allowed }| Self { allowed, ..Self::new(status, detail) };
        match error {
            ViewError::NoMirror => Self::new(StatusCode::SERVICE_UNAVAILABLE, ViewError::NoMirror.to_string()),
            ViewError::Parameter(parameter) => explained(StatusCode::BAD_REQUEST, parameter),
            ViewError::NotFound(missing) => explained(StatusCode::NOT_FOUND, missing),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        for (name, value) in &self.headers {
            response.headers_mut().append(name.clone(), value.clone());
        }
        response.extensions_mut().insert(self);
        response
    }
}

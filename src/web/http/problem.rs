//! Error responses: a problem document, a page, or a line of text.

use std::borrow::Cow;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::json::Json;
use crate::views::ViewError;
use crate::views::error::Explained;

/// The media type of a problem document (RFC 9457).
pub(in crate::web) const MEDIA_TYPE: &str = "application/problem+json";

/// Marks an error response that already has a body.
#[derive(Clone, Copy, Debug)]
pub(in crate::web) struct HasMessage;

/// Marks a response to a request that was refused before it reached its route.
#[derive(Clone, Copy, Debug)]
pub(in crate::web) struct Refused;

/// Why a request was refused or failed, and what to do. As JSON it is a problem document (RFC 9457).
// As a response it is put into the extensions; `web::errors` writes the body, since its form depends on the request.
// This is not part of the doc comment, which becomes a description in the API document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The type of the problem, a URI; `about:blank` if `status` is sufficient.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub(crate) kind: Blank,
    /// The status in words.
    pub(crate) title: &'static str,
    /// The HTTP status code.
    #[schema(minimum = 400, maximum = 599)]
    pub(crate) status: u16,
    /// The problem and its solution, in a sentence or two.
    pub(crate) detail: Cow<'static, str>,
    /// The allowed values, if the problem is a value that is not allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<Cow<'static, str>>,
    /// The present state of the target, if it conflicts with the action.
    // Boxed, since every handler's result carries a problem and few problems carry this.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) present: Option<Box<Present>>,
    // The name of the parameter whose value is wrong, where the problem is that.
    #[serde(skip)]
    pub(in crate::web) parameter: Option<Box<str>>,
    // Further headers, such as how to log in.
    #[serde(skip)]
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

/// The type of every problem: there are no others than its status describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blank;

impl Serialize for Blank {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("about:blank")
    }
}

/// The present state of the target of an action.
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
    /// A problem that the status describes.
    pub(in crate::web) fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: Blank,
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            allowed: Vec::new(),
            present: None,
            parameter: None,
            headers: Vec::new(),
        }
    }

    /// An invalid parameter.
    pub(in crate::web) fn bad(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Something that does not exist.
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

    /// The response to a request that does not get to its route.
    pub(super) fn refuse(self) -> Response {
        let mut response = self.into_response();
        response.extensions_mut().insert(Refused);
        response
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
        let explained = |status, Explained { detail, allowed, parameter }: Explained| Self {
            allowed,
            parameter: (!parameter.is_empty()).then(|| parameter.into()),
            ..Self::new(status, detail)
        };
        match error {
            ViewError::NoMirror => Self::new(StatusCode::SERVICE_UNAVAILABLE, ViewError::NoMirror.to_string()),
            ViewError::Unavailable(why) => Self::new(StatusCode::SERVICE_UNAVAILABLE, why),
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

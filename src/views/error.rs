//! Why there is no answer.

use std::borrow::Cow;
use std::fmt;

use tokio::time::error::Elapsed;

use super::show::visible;
use crate::mirror::find::InvalidCursor;
use crate::mirror::lists::ListError;

/// How many characters of a wrong value an error quotes.
const QUOTED: usize = 64;

/// Why a question about the queue has no answer. The caller turns it into an HTTP status or an exit code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ViewError {
    /// There is no mirror of the queue yet.
    #[error(
        "The queue has not been read yet, or its root does not exist. The overview shows why; try again in a moment."
    )]
    NoMirror,
    /// A parameter is unknown, or has a value that is not allowed.
    #[error("{0}")]
    Parameter(Explained),
    /// The requested item does not exist.
    #[error("{0}")]
    NotFound(Explained),
    /// What has the answer cannot be read now.
    #[error("{0}")]
    Unavailable(String),
}

/// An error, and the allowed values if there are few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Explained {
    /// The error, in a sentence.
    pub(crate) detail: String,
    /// The values that are allowed.
    pub(crate) allowed: Vec<Cow<'static, str>>,
    /// The name of the parameter whose value is the error; empty for another error.
    pub(crate) parameter: String,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)?;
        if self.allowed.is_empty() { Ok(()) } else { write!(f, " Allowed: {}.", self.allowed.join(", ")) }
    }
}

impl ViewError {
    /// The catalogue took longer than a page waits for it.
    pub(crate) fn late(_: Elapsed) -> Self {
        Self::Unavailable("The catalogue did not answer within a second.".to_owned())
    }

    /// A value that is invalid for a parameter.
    pub(crate) fn value(name: &str, value: &str) -> Self {
        Self::parameter(format!("The parameter “{name}” cannot be “{}”.", quoted(value))).of(name)
    }

    /// The same with the reason, which is an error's text.
    pub(crate) fn value_because(name: &str, value: &str, why: impl fmt::Display) -> Self {
        Self::parameter(format!("The parameter “{name}” cannot be “{}”: {why}.", quoted(value))).of(name)
    }

    /// Invalid parameters.
    pub(crate) fn parameter(detail: impl Into<String>) -> Self {
        Self::Parameter(Explained { detail: detail.into(), allowed: Vec::new(), parameter: String::new() })
    }

    /// An item that does not exist.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::NotFound(Explained { detail: detail.into(), allowed: Vec::new(), parameter: String::new() })
    }

    /// The same as an error of the value of a parameter.
    pub(crate) fn of(mut self, name: &str) -> Self {
        match &mut self {
            Self::NoMirror | Self::Unavailable(_) => {}
            Self::Parameter(explained) | Self::NotFound(explained) => name.clone_into(&mut explained.parameter),
        }
        self
    }

    /// The same with the values that are allowed.
    pub(crate) fn allowing<T: Into<Cow<'static, str>>>(mut self, allowed: impl IntoIterator<Item = T>) -> Self {
        match &mut self {
            Self::NoMirror | Self::Unavailable(_) => {}
            Self::Parameter(explained) | Self::NotFound(explained) => {
                explained.allowed = allowed.into_iter().map(Into::into).collect();
            }
        }
        self
    }
}

impl From<InvalidCursor> for ViewError {
    fn from(error: InvalidCursor) -> Self {
        Self::parameter(format!("The parameter “cursor” is not valid: {error}. Omit it to get the first page."))
            .of("cursor")
    }
}

impl From<ListError> for ViewError {
    fn from(error: ListError) -> Self {
        match error {
            ListError::NoImage => Self::NoMirror,
            ListError::Cursor(error) => error.into(),
        }
    }
}

/// A value from a request, cut to a recognisable length.
pub(crate) fn quoted(value: &str) -> String {
    visible(&value.chars().take(QUOTED).collect::<String>())
}

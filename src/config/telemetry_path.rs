//! The path of the metrics.

use std::fmt;
use std::str::FromStr;

/// The first segments of paths that the pages and the API use; a test compares them with the routes.
pub(crate) const RESERVED: [&str; 26] = [
    "-",
    "access",
    "api",
    "audit",
    "batches",
    "charts",
    "daemons",
    "dashboards",
    "events",
    "failures",
    "faults",
    "icon",
    "jobs",
    "lists",
    "mill",
    "objects",
    "poster",
    "submit",
    "locks",
    "action",
    "actions",
    "rules",
    "search",
    "runbook",
    "static",
    "tree",
];

/// An absolute path without characters that are special in a route, such as `/metrics`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryPath(String);

impl TelemetryPath {
    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for TelemetryPath {
    fn default() -> Self {
        Self("/metrics".to_owned())
    }
}

/// A text that is not valid as the path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; expected a path such as /metrics, of letters, digits and - _ . ~ /")]
pub struct TelemetryPathError {
    why: &'static str,
}

impl FromStr for TelemetryPath {
    type Err = TelemetryPathError;

    fn from_str(text: &str) -> Result<Self, TelemetryPathError> {
        let refuse = |why| Err(TelemetryPathError { why });
        let Some(rest) = text.strip_prefix('/') else { return refuse("it does not begin with /") };
        if rest.is_empty() {
            return refuse("/ is the status page");
        }
        if !rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte)) {
            return refuse("it has a character with a special meaning in a path");
        }
        if rest.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
            return refuse("it has an empty segment, or a . or .. segment");
        }
        if rest.split('/').next().is_some_and(|first| RESERVED.contains(&first)) {
            return refuse("the name is reserved for a page");
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for TelemetryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_path_is_accepted_and_any_other_refused() {
        for text in ["/metrics", "/a/b-c_d.e~f", "/staticx"] {
            assert_eq!(text.parse::<TelemetryPath>().unwrap().as_str(), text);
        }
        for text in [
            "",
            "/",
            "metrics",
            "/{a}",
            "/*rest",
            "/a b",
            "/a?b",
            "/a//b",
            "/..",
            "/-/ready",
            "/static/a",
            "/jobs",
            "/é",
        ] {
            let error = text.parse::<TelemetryPath>().unwrap_err().to_string();
            assert!(error.contains("/metrics"), "{text}: {error}");
        }
    }
}

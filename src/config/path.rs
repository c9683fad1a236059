//! The path under which the metrics are served.

use std::fmt;
use std::str::FromStr;

/// What the status page has for itself, at the beginning of a path.
const TAKEN: [&str; 18] = [
    "-",
    "access",
    "api",
    "audit",
    "batches",
    "dashboards",
    "events",
    "failures",
    "faults",
    "jobs",
    "lists",
    "locks",
    "action",
    "actions",
    "rules",
    "runbook",
    "static",
    "tree",
];

/// An absolute path without anything that a route would take for a pattern, such as `/metrics`.
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

/// A text that cannot be the path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; a path is written as /metrics, of letters, digits and - _ . ~ /")]
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
            return refuse("it holds a character that has a meaning of its own in a path");
        }
        if rest.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
            return refuse("it has an empty segment, or one that points elsewhere");
        }
        if rest.split('/').next().is_some_and(|first| TAKEN.contains(&first)) {
            return refuse("a page of that name is there, or will be");
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
    fn a_plain_path_is_taken_and_anything_else_refused() {
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

//! Who requests something, and what he may request.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// What somebody may do. Each may do what those before it may, but for telling of alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Tell of alerts, and nothing else: not even look. Alertmanager's.
    Alertmanager,
    /// Look.
    Viewer,
    /// Request what can be undone: resume, hold, release, fail, set a priority, pause, report again.
    Operator,
    /// Request also what cannot: delete, purge, break a lock, remove what is broken.
    Admin,
}

impl Role {
    /// Every role, the least first.
    pub const ALL: [Self; 4] = [Self::Alertmanager, Self::Viewer, Self::Operator, Self::Admin];

    /// The name in files, tokens and answers.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Alertmanager => "alertmanager",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

/// There is no such role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("“{0}” is no role: viewer, operator and admin are, and alertmanager for what tells of alerts")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Self::ALL.into_iter().find(|role| role.label() == text).ok_or_else(|| UnknownRole(text.to_owned()))
    }
}

/// By what means an action came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A page of the status page.
    Web,
    /// The API.
    Api,
    /// A rule that an alert set off.
    Alert,
    /// The command line: another process, that keeps an audit file of its own.
    Cli,
}

impl Source {
    /// Every means, in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::Web, Self::Api, Self::Alert, Self::Cli];

    /// The name in the audit file, which is also the label value.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Api => "api",
            Self::Alert => "alert",
            Self::Cli => "cli",
        }
    }
}

/// Who requests something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// His name: of a user, a token or a rule, or `user@host`.
    pub name: String,
    /// What he may request.
    pub role: Role,
    /// By what means.
    pub source: Source,
    /// The address that he asked from; `None` where there is none.
    pub from: Option<IpAddr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_read_by_its_exact_name_and_each_may_do_more_than_the_last() {
        for role in Role::ALL {
            assert_eq!(role.label().parse(), Ok(role));
        }
        for text in ["", "Admin", "root", "admin "] {
            assert!(text.parse::<Role>().unwrap_err().to_string().contains("viewer, operator and admin"), "{text}");
        }
        assert!(Role::ALL.is_sorted_by(|a, b| a < b));
    }
}

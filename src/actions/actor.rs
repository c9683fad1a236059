//! Who requests an action, and their role.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// What a caller may do. Each role from `Viewer` on includes those between; those before it are only what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Send alerts, and nothing else, not even read. For Alertmanager.
    Alertmanager,
    /// Send messages of a store about its changes, and nothing else. For S3 and what speaks its protocol.
    StoreEvents,
    /// Make deposits and see what becomes of them, and nothing else.
    Depositor,
    /// Read.
    Viewer,
    /// Request what can be undone: resume, hold, release, fail, set a priority, pause, report again, repair; and
    /// withdraw a deposit, as its depositor may.
    Operator,
    /// Request what cannot be undone as well: delete, purge, break a lock, remove broken items.
    Admin,
}

impl Role {
    /// Every role, the least privileged first.
    pub const ALL: [Self; 6] =
        [Self::Alertmanager, Self::StoreEvents, Self::Depositor, Self::Viewer, Self::Operator, Self::Admin];

    /// The name in files, tokens and API responses.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Alertmanager => "alertmanager",
            Self::StoreEvents => "store-events",
            Self::Depositor => "depositor",
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
#[error(
    "unknown role “{0}”; expected viewer, operator, admin, depositor, alertmanager for a sender of alerts, or store-events for a store"
)]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Self::ALL.into_iter().find(|role| role.label() == text).ok_or_else(|| UnknownRole(text.to_owned()))
    }
}

/// The interface through which an action was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The web pages.
    Web,
    /// The API.
    Api,
    /// An alert rule.
    Alert,
    /// The command line, which is another process with an audit file of its own.
    Cli,
}

impl Source {
    /// Every source, in the order in which they are listed.
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

/// The user, token or rule that requests an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The name of a user, a token or a rule, or `user@host`.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The interface used.
    pub source: Source,
    /// The client's address, if there is one.
    pub from: Option<IpAddr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_parsed_from_its_exact_name_and_the_roles_are_ordered() {
        for role in Role::ALL {
            assert_eq!(role.label().parse(), Ok(role));
        }
        for text in ["", "Admin", "root", "admin "] {
            assert!(text.parse::<Role>().unwrap_err().to_string().contains("viewer, operator, admin"), "{text}");
        }
        assert!(Role::ALL.is_sorted_by(|a, b| a < b));
    }
}

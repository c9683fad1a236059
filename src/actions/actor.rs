//! Who requests an action, and their role.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// What a caller may do, as [`Role::summary`] says. Each role from `Viewer` on includes those between; those before it
/// are for one purpose. Which role an action requires is in its row: [`ActionSpec`](super::ActionSpec), or of the mill
/// [`MillActionKind`](super::mill::MillActionKind).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// For Alertmanager, which does not even read.
    Alertmanager,
    /// For S3 and what speaks its protocol.
    StoreEvents,
    /// For users and programs that deposit.
    Depositor,
    /// For users who look at the queue.
    Viewer,
    /// For users who keep the queue moving.
    Operator,
    /// For users who also decide what is destroyed.
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

    /// What it allows, in a few words.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Self::Alertmanager => "Send alerts, and nothing else",
            Self::StoreEvents => "Send messages of a store about its changes, and nothing else",
            Self::Depositor => "Make deposits, see what becomes of them, and nothing else",
            Self::Viewer => "Read",
            Self::Operator => "Also request actions that can be undone, and withdraw deposits",
            Self::Admin => {
                "Also request actions that cannot be undone, that destroy copies which the mill made, or that change what \
                 copies are checked against"
            }
        }
    }

    /// One who has it, as sentences name them: `an operator`.
    #[must_use]
    pub fn with_article(self) -> String {
        let label = self.label();
        let article = if label.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {label}")
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

/// There is no such role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown role “{0}”; expected one of {names}", names = Role::ALL.map(Role::label).join(", "))]
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
            let error = text.parse::<Role>().unwrap_err().to_string();
            let (_, names) = error.split_once("expected one of ").unwrap();
            assert_eq!(names.split(", ").collect::<Vec<_>>(), Role::ALL.map(Role::label), "{text}");
        }
        assert!(Role::ALL.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_role_has_the_article_that_it_is_spoken_with() {
        let spoken = [Role::Viewer, Role::Operator, Role::Admin].map(Role::with_article);
        assert_eq!(spoken, ["a viewer", "an operator", "an admin"]);
    }

    #[test]
    fn the_documentation_names_every_role_and_no_other() {
        let (_, table) = include_str!("../../docs/security.md").split_once("| role | may |\n").unwrap();
        let rows: Vec<_> = table.lines().skip(1).take_while(|line| line.starts_with('|')).collect();
        let named: Vec<_> = rows.iter().filter_map(|row| row.split('`').nth(1)).collect();
        assert_eq!(named, Role::ALL.map(Role::label));
        for (role, row) in Role::ALL.into_iter().zip(rows) {
            let begins = format!("| `{role}` | {}", role.summary()).to_lowercase();
            assert!(row.to_lowercase().starts_with(&begins), "{row} should begin with {begins}");
        }
    }
}

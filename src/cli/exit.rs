//! The exit codes of commands.

use crate::actions::Refusal;
use crate::mirror::LoadError;
use crate::views::ViewError;

use queuekeeper_zookeeper::ConnectError;

/// A failure during the execution, or at its start although the usage was right.
pub const FAILED: u8 = 1;

/// A flag, a value or a named file was wrong, or a program is not installed.
pub const BAD_USAGE: u8 = 2;

/// The action conflicts with the state of the queue, was not confirmed, or was interrupted before it started. Nothing
/// was done.
pub(super) const REFUSED: u8 = 3;

/// There is no such job, batch, request, lock, collection, group, object, version or file, or no such account, store,
/// space or item of the mill.
pub(super) const NOT_FOUND: u8 = 4;

/// Whether all of it was done is unknown: the connection was lost.
pub(super) const UNKNOWN: u8 = 5;

/// A part of a bulk action, or of an action in several transactions, was done.
pub(super) const IN_PART: u8 = 6;

/// Content or a report is not what was recorded, or could not be checked.
pub(super) const NOT_PROVEN: u8 = 7;

/// The exit codes, for the help.
pub(super) const CODES: &str = "\
Exit codes:
  0  success, or nothing to do; serve and demo: ended by SIGTERM or SIGINT
  1  failed: ZooKeeper cannot be reached or refuses access, a file cannot be
     written, an address cannot be bound
  2  wrong usage: a flag, a value or a named file is wrong, a confirmation is
     not possible, or a program is missing
  3  refused, and nothing was done: the state of the queue forbids it or has
     changed, another change holds the item, it was not confirmed, or it was
     interrupted before it started
  4  not found: there is no such job, batch, request, lock, collection, group,
     object, version or file, or no such account, store, space or item of the
     mill
  5  unknown: the connection was lost, and it is not known whether all of it
     was done; of many items, the outcome of at least one is unknown
  6  partly done: the rest was refused or failed, or it was interrupted
  7  mill verify: some content is not what was recorded, or could not be
     checked; mill compare: a listing and the content index differ; mill
     adopt: some content was left as it is; mill verify-reports: a report is
     changed, missing or inserted";

/// An error with its causes, each one once: many errors name their cause themselves.
pub(super) fn with_causes(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |mut line, cause| {
        let cause = cause.to_string();
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
        line
    })
}

/// A message with an exit code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(super) struct CommandError {
    /// The exit code.
    pub(super) code: u8,
    text: String,
}

impl CommandError {
    /// A message with this exit code.
    pub(super) fn new(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl From<ViewError> for CommandError {
    fn from(error: ViewError) -> Self {
        let code = match &error {
            ViewError::NoMirror | ViewError::Unavailable(_) => FAILED,
            ViewError::Parameter(_) => BAD_USAGE,
            ViewError::NotFound(_) => NOT_FOUND,
        };
        Self::new(code, error.to_string())
    }
}

impl From<LoadError> for CommandError {
    fn from(error: LoadError) -> Self {
        Self::new(FAILED, error.to_string())
    }
}

impl From<ConnectError> for CommandError {
    fn from(error: ConnectError) -> Self {
        Self::new(FAILED, error.to_string())
    }
}

impl From<queuekeeper_queue::Error> for CommandError {
    fn from(error: queuekeeper_queue::Error) -> Self {
        Self::new(FAILED, error.to_string())
    }
}

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::Forbidden { .. }
            | Refusal::Conflict { .. }
            | Refusal::OtherRequest(_)
            | Refusal::TooMuch { .. }
            | Refusal::TooLarge(_)
            | Refusal::NoRoom(_) => REFUSED,
            Refusal::Invalid(_) => BAD_USAGE,
            Refusal::Missing(_) => NOT_FOUND,
            Refusal::Unavailable(_) | Refusal::Failed(_) => FAILED,
            Refusal::Unknown(_) => UNKNOWN,
            Refusal::InPart(_) => IN_PART,
        };
        Self::new(code, refusal.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::actions::Role;

    #[test]
    fn an_error_and_its_causes_are_one_line_that_says_nothing_twice() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot read {0}: {1}")]
        struct Unread(&'static str, #[source] std::io::Error);

        let refused = std::io::Error::other("it is refused");
        let error = anyhow::Error::from(Unread("a", refused)).context("the web server failed");
        assert_eq!(with_causes(&error), "the web server failed: cannot read a: it is refused");
    }

    #[test]
    fn each_refusal_has_its_exit_code() {
        let text = || "why".to_owned();
        for (refusal, code) in [
            (Refusal::Forbidden { needs: Role::Admin, has: Role::Viewer }, 3),
            (Refusal::Invalid(text()), 2),
            (Refusal::Missing(text()), 4),
            (Refusal::Conflict { why: text(), state: None, version: None }, 3),
            (Refusal::Unavailable(text()), 1),
            (Refusal::Failed(text()), 1),
            (Refusal::Unknown(text()), 5),
            (Refusal::InPart(text()), 6),
        ] {
            let said = refusal.to_string();
            assert_eq!(CommandError::from(refusal), CommandError::new(code, said));
        }
    }

    #[test]
    fn the_guide_lists_the_codes_of_the_help() {
        let guide = include_str!("../../docs/operate.md");
        let rows = guide.split_once("| exit code | |\n|---|---|\n").unwrap().1;
        let mut listed = String::from("Exit codes:");
        for row in rows.lines().take_while(|line| line.starts_with('|')) {
            let (code, text) = row.trim_matches(['|', ' ']).split_once(" | ").unwrap();
            write!(listed, " {code} {}", text.replace('`', "")).unwrap();
        }
        assert_eq!(CODES.split_whitespace().collect::<Vec<_>>().join(" "), listed);
    }
}

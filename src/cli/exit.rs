//! What a command ends with that does not end well.

use crate::actions::Refusal;
use crate::mirror::LoadError;
use crate::web::Problem;

use queuekeeper_zookeeper::ConnectError;

/// The process could not go on, or could not begin although its usage was right.
pub const FAILED: u8 = 1;

/// A flag, a value or a file that it names was wrong, or something is not installed.
pub const BAD_USAGE: u8 = 2;

/// The queue stands against what was requested, somebody who was asked said no, or a
/// signal came before it began. Nothing was done.
pub(super) const REFUSED: u8 = 3;

/// There is no such job, batch, request, lock, collection or group.
pub(super) const NOT_FOUND: u8 = 4;

/// Whether all of it was done is not known: the connection was lost.
pub(super) const UNKNOWN: u8 = 5;

/// Of many items, or of one order in several transactions, a part was done.
pub(super) const IN_PART: u8 = 6;

/// The same for whoever reads the help.
pub(super) const CODES: &str = "\
Exit codes:
  0  done, or nothing was left to do; serve and demo: ended by SIGTERM or SIGINT
  1  failed: ZooKeeper cannot be reached or refuses us, a file cannot be written, an address cannot be listened on
  2  a wrong flag, value or file named by one, a question that nobody can answer, or something that is not installed
  3  refused, and nothing was done: the queue stands against it or has changed meanwhile, the answer was no, or it was
     interrupted before it began
  4  there is no such job, batch, request, lock, collection or group
  5  the connection was lost, and it is not known whether all of it was done
  6  a part was done: something stood against the rest, or it was interrupted";

/// An end that has a code of its own, and a line that says why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(super) struct Ending {
    /// The exit code.
    pub(super) code: u8,
    text: String,
}

impl Ending {
    /// An end with a code.
    pub(super) fn new(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl From<Problem> for Ending {
    fn from(problem: Problem) -> Self {
        let code = match problem.status {
            400 => BAD_USAGE,
            404 => NOT_FOUND,
            _ => FAILED,
        };
        Self::new(code, problem.line().trim_end())
    }
}

impl From<LoadError> for Ending {
    fn from(error: LoadError) -> Self {
        Self::new(FAILED, error.to_string())
    }
}

impl From<ConnectError> for Ending {
    fn from(error: ConnectError) -> Self {
        Self::new(FAILED, error.to_string())
    }
}

impl From<queuekeeper_queue::Error> for Ending {
    fn from(error: queuekeeper_queue::Error) -> Self {
        Self::new(FAILED, error.to_string())
    }
}

impl From<Refusal> for Ending {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::Forbidden { .. } | Refusal::Conflict { .. } => REFUSED,
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
    use super::*;
    use crate::actions::Role;

    #[test]
    fn each_refusal_ends_with_its_code() {
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
            assert_eq!(Ending::from(refusal), Ending::new(code, said));
        }
    }
}

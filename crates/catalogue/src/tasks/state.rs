//! What a task waits for.

use super::Unknown;
use crate::database::value::DatabaseRow;

/// What a task waits for. As text, its name in the catalogue, in metrics and on pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskState {
    /// A worker, or the end of the one that has it.
    Waiting,
    /// An operator who allows what it would do.
    Held,
    /// An operator who finds out why it failed.
    Dead,
    /// An operator who ends the pause that keeps it from workers.
    Paused,
    /// A store that cannot be read now: for a restore from its archive, or as its budget of the day is used up.
    Restore,
}

impl TaskState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Held, Self::Dead, Self::Paused, Self::Restore];

    /// The name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Dead => "dead",
            Self::Paused => "paused",
            Self::Restore => "restore",
        }
    }

    /// Whether it waits for an operator to decide what becomes of it.
    #[must_use]
    pub fn is_undecided(self) -> bool {
        match self {
            Self::Held | Self::Dead => true,
            Self::Waiting | Self::Paused | Self::Restore => false,
        }
    }

    pub(crate) fn read(row: &DatabaseRow, at: usize) -> Result<Self, sqlx::Error> {
        let named = |name: String| Self::ALL.into_iter().find(|state| state.as_str() == name).ok_or(Unknown(name));
        row.need(at, named)
    }
}

//! What may be done to jobs, one by one or to many.

use clap::{Args, ValueEnum};

use super::UsageError;
use crate::actions::{ActionKind, BulkAction};
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::state::{JobState, State as _};

/// What may be done to each of many jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum JobChange {
    /// Take a failed job back to work, after its last successful state or in the one that --to names
    Resume,
    /// Hold a pending job
    Hold,
    /// Let a held job go on
    Release,
    /// Fail a job that no daemon holds
    Fail,
    /// Give a job another priority: 0, the most urgent, to 99
    Priority,
    /// Set a failed or held job Deleted
    Delete,
    /// Remove the znodes of a job that is done with
    Purge,
}

impl JobChange {
    fn action(self) -> ActionKind {
        match self {
            Self::Resume => ActionKind::Resume,
            Self::Hold => ActionKind::Hold,
            Self::Release => ActionKind::Release,
            Self::Fail => ActionKind::Fail,
            Self::Priority => ActionKind::SetPriority,
            Self::Delete => ActionKind::Delete,
            Self::Purge => ActionKind::Purge,
        }
    }
}

/// What a change takes besides.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Acting")]
pub(super) struct ChangeArgs {
    /// The number that `priority` takes
    #[arg(value_name = "NUMBER")]
    number: Option<i64>,

    /// Where to resume
    #[arg(long, value_name = "STATE", value_parser = state)]
    to: Option<JobState>,
}

impl ChangeArgs {
    /// The change with what it takes.
    ///
    /// # Errors
    /// When something is missing, or does not belong to it.
    pub(super) fn each(&self, change: JobChange) -> Result<BulkAction, UsageError> {
        let priority = match (change, self.number) {
            (JobChange::Priority, Some(number)) => Priority::new(number).map(Some).ok_or_else(which)?,
            (JobChange::Priority, None) => return Err(which()),
            (_, None) => None,
            (_, Some(number)) => return Err(UsageError(format!("{number}: only `priority` takes a number"))),
        };
        if self.to.is_some() && change != JobChange::Resume {
            return Err(UsageError::flag("--to", "only `resume` takes it"));
        }
        Ok(BulkAction { action: change.action(), to: self.to, priority })
    }

    /// Refuses what only a change takes.
    pub(super) fn check_unused(&self) -> Result<(), UsageError> {
        match (self.number, self.to) {
            (None, None) => Ok(()),
            (Some(number), _) => Err(UsageError(format!("{number}: only `priority` takes a number"))),
            (None, Some(_)) => Err(UsageError::flag("--to", "only `resume` takes it")),
        }
    }
}

fn which() -> UsageError {
    UsageError("which priority? It is a number from 0, the most urgent, to 99".to_owned())
}

fn state(label: &str) -> Result<JobState, String> {
    let labels = || JobState::ALL.iter().map(|state| state.label()).collect::<Vec<_>>().join(", ");
    JobState::ALL
        .iter()
        .copied()
        .find(|state| state.label() == label)
        .ok_or_else(|| format!("the states are {}", labels()))
}

//! Repairs that a person asks for.

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::bit::BitError;
use queuekeeper_catalogue::repairs::{NewRepair, RepairStarted};
use queuekeeper_catalogue::tasks::{NewTask, Queue, TaskKind, TaskSubject};
use queuekeeper_store::StoreName;

use super::decisions::verdict_of;
use super::repair::{RepairLimits, RepairStart, start};
use crate::account::Account;

/// Who asks for a repair, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedRepair<'a> {
    /// The user.
    pub user: &'a str,
    /// Their reason.
    pub reason: &'a str,
    /// The store whose copy is to be written; without one, the first that has a good copy.
    pub source: Option<&'a StoreName>,
}

/// Why a repair that was asked for is not started.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Another copy does not repair it.
    #[error("this is nothing that another copy repairs: {0}")]
    Never(String),
    /// What the check saw, or the account's name of the space, is not readable.
    #[error("{0}")]
    Unreadable(String),
    /// The catalogue cannot be read or written.
    #[error(transparent)]
    Catalogue(#[from] queuekeeper_catalogue::Error),
}

/// Starts the repair of a copy of an account of which something is known to be wrong.
///
/// # Errors
/// Where another copy does not repair it, or the catalogue cannot be written.
pub async fn ask(
    catalogue: &Catalogue,
    account: &Account,
    error: &BitError,
    asked: AskedRepair<'_>,
) -> Result<RepairStarted, AskError> {
    let verdict = verdict_of(error).map_err(AskError::Unreadable)?;
    // What else is set decides only what the mill may start.
    if start(&verdict, &RepairLimits::default()) == RepairStart::Never {
        return Err(AskError::Never(error.detail.clone()));
    }
    let BitError { store, item, .. } = error;
    let space = account.of_store(&item.space);
    let space = space.ok_or_else(|| AskError::Unreadable(format!("the space {} is not the account's", item.space)))?;
    let AskedRepair { user, reason, source } = asked;
    let new = NewRepair { account: &account.name, store, item, user, reason, most_a_day: None };
    let subject = TaskSubject {
        kind: TaskKind::Repair,
        account: account.name.clone(),
        space,
        key: Some(item.key.clone()),
        destination: Some(store.clone()),
    };
    let task = NewTask { queue: Queue::BitError, subject, source: source.cloned() };
    Ok(catalogue.start_repair(&new, task).await?)
}

//! Requests to have a bit error resolved.

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::bit::BitError;
use queuekeeper_catalogue::repair_stops::RepairStarted;
use queuekeeper_catalogue::repairs::NewRepair;
use queuekeeper_catalogue::tasks::{NewTask, TaskKind, TaskQueue, TaskSubject};
use queuekeeper_store::StoreName;

use super::kept::verdict_of;
use super::verdict::{Offer, Remedy};
use crate::account::Account;

/// A request for a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemedyRequest<'a> {
    /// What is to be done.
    pub remedy: Remedy,
    /// Who requests it.
    pub user: &'a str,
    /// Their reason.
    pub reason: &'a str,
    /// The store whose copy is to be written; without one, the first that has a good copy.
    pub source: Option<&'a StoreName>,
}

/// Why a remedy that was requested is not started.
#[derive(Debug, thiserror::Error)]
pub enum RemedyError {
    /// It is none for what was found.
    #[error("{remedy} does not resolve this: {0}", remedy = .1.as_str())]
    Never(String, Remedy),
    /// What the check saw, or the account's name of the space, is not readable.
    #[error("{0}")]
    Unreadable(String),
    /// The catalogue cannot be read or written.
    #[error(transparent)]
    Catalogue(#[from] queuekeeper_catalogue::Error),
}

/// What can be done about a bit error of an account: no repair from another copy where it has one store.
///
/// # Errors
/// With one sentence, where what the check saw is not readable.
pub fn offers(account: &Account, error: &BitError) -> Result<Vec<Offer>, String> {
    let mut offers = verdict_of(error)?.offers;
    offers.retain(|offer| offer.remedy != Remedy::RepairFromCopy || account.stores.len() > 1);
    Ok(offers)
}

/// The task of the repair of a copy of an account; `None` where its space is not the account's.
#[must_use]
pub fn task_of(account: &Account, error: &BitError) -> Option<TaskSubject> {
    Some(TaskSubject {
        kind: TaskKind::Repair,
        account: account.name.clone(),
        space: account.of_store(&error.item.space)?,
        key: Some(error.item.key.clone()),
        destination: Some(error.store.clone()),
    })
}

/// Starts what is requested to be done about a copy of an account of which something is known to be wrong. A worker
/// does it.
///
/// # Errors
/// Where it is no remedy for what was found, or the catalogue cannot be written.
pub async fn request_remedy(
    catalogue: &Catalogue,
    account: &Account,
    error: &BitError,
    request: RemedyRequest<'_>,
) -> Result<RepairStarted, RemedyError> {
    let RemedyRequest { remedy, user, reason, source } = request;
    let offers = offers(account, error).map_err(RemedyError::Unreadable)?;
    if remedy == Remedy::WriteToProvider || !offers.iter().any(|offer| offer.remedy == remedy) {
        return Err(RemedyError::Never(error.detail.clone(), remedy));
    }
    let BitError { store, item, evidence, .. } = error;
    let subject = task_of(account, error);
    let subject = subject
        .ok_or_else(|| RemedyError::Unreadable(format!("the space {} does not belong to the account", item.space)))?;
    let content = evidence.content.as_deref().or(evidence.provider.as_deref());
    let (account, remedy) = (&*account.name, remedy.as_str());
    let new = NewRepair { account, store, item, user, reason, remedy, content, most_a_day: None };
    let task = NewTask { queue: TaskQueue::BitError, subject, source: source.cloned() };
    Ok(catalogue.start_repair(&new, task).await?)
}

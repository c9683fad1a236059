//! Making a copy be what its source is.

mod carry;
pub mod decide;
mod look;
mod whole;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::brake::BrakeLimit;
use queuekeeper_catalogue::tasks::{TakenTask, TaskKind, TaskOutcome};
use queuekeeper_store::store::Store;
use queuekeeper_store::{Algorithm, SpaceName, StoreName};

use crate::account::Account;
use crate::limits::StoreLimits;
use crate::stores::AccountStores;
use crate::worker::{Lease, Processed, Processor};

/// What the duplication worker needs.
#[derive(Clone)]
pub struct Duplicator {
    /// What is recorded of content, and the brake.
    pub catalogue: Catalogue,
    /// The accounts, by name.
    pub accounts: BTreeMap<String, Account>,
    /// The stores, each so that its changes are recorded.
    pub stores: AccountStores,
    /// How much may be destroyed within a day.
    pub limit: BrakeLimit,
    /// How long after its source was deleted a copy is deleted, and how long what was deleted or written over is kept
    /// aside.
    pub delete_after: Duration,
    /// The present instant.
    pub clock: fn() -> Timestamp,
}

/// The digest that every copy is recorded with, besides those that its source is recorded with.
const ALGORITHM: Algorithm = Algorithm::Sha256;

/// The space of a store in which is kept what was deleted or written over.
pub const ASIDE: &str = "x-queuekeeper-aside";

#[async_trait]
impl Processor for Duplicator {
    fn kind(&self) -> TaskKind {
        TaskKind::Duplicate
    }

    async fn process(&self, task: &TakenTask, lease: &Lease) -> Processed {
        self.begin(task, lease).await.unwrap_or_else(|why| TaskOutcome::Failed(why).into())
    }
}

/// Where a task copies from and to.
struct Places<'a> {
    source: &'a Arc<dyn Store>,
    destination: &'a Arc<dyn Store>,
    /// The space as both stores name it.
    space: SpaceName,
    /// What the account is allowed at the destination; `None` for everything.
    limits: Option<&'a StoreLimits>,
}

impl Duplicator {
    async fn begin(&self, task: &TakenTask, lease: &Lease) -> Result<Processed, String> {
        let subject = &task.subject;
        let account = Account::find(&self.accounts, &subject.account)?;
        let space = account.require_space(&subject.space)?;
        let none = || "the task names no source, or no destination".to_owned();
        let [from, to] = [&task.source, &subject.destination];
        let (from, to) = (from.as_ref().ok_or_else(none)?, to.as_ref().ok_or_else(none)?);
        // What is left out is neither made nor changed nor deleted.
        if subject.key.as_ref().is_some_and(|key| account.leaves_out(to, key).is_some()) {
            return Ok(TaskOutcome::Done.into());
        }
        if let Some(wait) = account.put_off(Some(from), to, (self.clock)()) {
            return Ok(wait.into());
        }
        // What fails with the copy that is read in its place is tried again with the source itself.
        let is_first = task.attempts <= 1;
        let source = if is_first && !self.is_elsewhere_paused(account, from).await? {
            AccountStores::source
        } else {
            AccountStores::get
        };
        let source = source(&self.stores, &account.name, from, lease)?;
        let destination = self.stores.get(&account.name, to, lease)?;
        let limits = account.limits.get(to);
        let places = Places { source: &source, destination: &destination, space, limits };
        Ok(match &subject.key {
            Some(key) => self.item(task, &places, key, lease).await,
            None => self.space(&places).await,
        })
    }

    /// Whether another store is to be read in place of a source, and is paused.
    async fn is_elsewhere_paused(&self, account: &Account, source: &StoreName) -> Result<bool, String> {
        let elsewhere = account.limits.get(source).and_then(|limits| limits.read_from.as_ref());
        let Some(elsewhere) = elsewhere else { return Ok(false) };
        let pauses = self.catalogue.pauses().await.map_err(|error| error.to_string())?;
        Ok(pauses.iter().any(|pause| pause.scope.stops(&account.name, [elsewhere])))
    }
}

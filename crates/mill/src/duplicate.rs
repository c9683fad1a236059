//! Making a copy be what its source is.

mod carry;
pub mod decide;
mod look;
mod whole;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::brake::BrakeLimit;
use queuekeeper_catalogue::tasks::{Outcome, TakenTask, TaskKind};
use queuekeeper_store::store::Store;
use queuekeeper_store::{Algorithm, SpaceName, StoreName};

use crate::account::Account;
use crate::worker::{Lease, Processed, Processor};

/// What the duplication worker needs.
#[derive(Clone)]
pub struct Duplicator {
    /// What is recorded of content, and the brake.
    pub catalogue: Catalogue,
    /// The accounts, by name.
    pub accounts: BTreeMap<String, Account>,
    /// The stores, each so that its changes are recorded.
    pub stores: BTreeMap<StoreName, Arc<dyn Store>>,
    /// How much may be destroyed within a day.
    pub limit: BrakeLimit,
    /// How long after its source was deleted a copy is deleted, and how long what was deleted or written over is kept aside.
    pub delete_after: Duration,
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
        match self.places(task) {
            Ok(places) => match &task.subject.key {
                Some(key) => self.item(task, &places, key, lease).await,
                None => self.space(&places).await,
            },
            Err(why) => Outcome::Failed(why).into(),
        }
    }
}

/// Where a task copies from and to.
struct Places<'a> {
    source: &'a Arc<dyn Store>,
    destination: &'a Arc<dyn Store>,
    /// The space as both stores name it.
    space: SpaceName,
}

impl Duplicator {
    fn places(&self, task: &TakenTask) -> Result<Places<'_>, String> {
        let subject = &task.subject;
        let account = self.accounts.get(&subject.account);
        let account = account.ok_or_else(|| format!("account {:?} is not in the configuration", subject.account))?;
        let space = account.in_stores(&subject.space);
        let space = space
            .ok_or_else(|| format!("the space {} has no name in the stores of {}", subject.space, account.name))?;
        let store = |name: &Option<StoreName>| {
            let name = name.as_ref().ok_or_else(|| "the task names no source, or no destination".to_owned())?;
            self.stores.get(name).ok_or_else(|| format!("the store {name} is not in the configuration"))
        };
        Ok(Places { source: store(&task.source)?, destination: store(&subject.destination)?, space })
    }
}

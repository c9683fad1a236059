//! What spaces have, counted once a day by a listing; and a task that does nothing, by which one sees that workers
//! work.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::tasks::{NewTask, TakenTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject};
use queuekeeper_store::name::NameError;
use queuekeeper_store::{SpaceName, StoreName};
use uuid::Uuid;

use crate::account::Account;
use crate::missing::listing;
use crate::stores::AccountStores;
use crate::worker::{Lease, Processed, Processor};

/// The producer's name in the catalogue.
pub const PRODUCER: &str = "stats";

/// How often spaces are counted.
const EVERY: Duration = Duration::from_hours(24);

/// The space that a task which does nothing names.
const NO_SPACE: &str = "x-queuekeeper-noop";

/// What counts spaces, and asks for that.
#[derive(Clone)]
pub struct StorageStats {
    /// Where the figures go, and the tasks.
    pub catalogue: Catalogue,
    /// The accounts, by name.
    pub accounts: BTreeMap<String, Account>,
    /// The stores.
    pub stores: AccountStores,
    /// The present instant.
    pub clock: fn() -> Timestamp,
}

impl StorageStats {
    /// Asks for a count of each space, where the last time is a day ago; the answer is for how many, `None` where it is
    /// not due or another process leads. What is paused is left to the next day.
    ///
    /// # Errors
    /// When a store cannot be listed, or the catalogue written. Nothing is requested then.
    pub async fn produce(&self, holder: Uuid, lease: Duration) -> Result<Option<usize>, String> {
        let said = |error: queuekeeper_catalogue::Error| error.to_string();
        let lead = self.catalogue.lead(PRODUCER, holder, lease).await.map_err(said)?;
        let Some(lead) = lead.filter(|lead| lead.is_due) else { return Ok(None) };
        let (pauses, mut tasks) = (self.catalogue.pauses().await.map_err(said)?, Vec::new());
        for account in self.accounts.values() {
            let is_paused = |name: &StoreName| pauses.iter().any(|pause| pause.scope.stops(&account.name, [name]));
            for name in account.stores.values().filter(|name| !is_paused(name)) {
                let store = self.stores.get(&account.name, name, &Lease::unlimited())?;
                let spaces = store.spaces().await.map_err(|error| error.to_string())?;
                for space in spaces.iter().filter_map(|space| account.of_store(space)) {
                    tasks.push(task(TaskKind::StorageStats, account, space, Some(name)));
                }
            }
        }
        // A process that dies between the two asks for the same again.
        self.catalogue.put_tasks(&tasks).await.map_err(said)?;
        self.catalogue.begin_loop(&lead, &[], EVERY).await.map_err(said)?;
        Ok(Some(tasks.len()))
    }

    async fn count(&self, subject: &TaskSubject, lease: &Lease) -> Result<TaskOutcome, String> {
        let account = Account::find(&self.accounts, &subject.account)?;
        let name = subject.require_destination()?;
        if let Some(wait) = account.put_off(None, name, (self.clock)()) {
            return Ok(wait);
        }
        let space = account.require_space(&subject.space)?;
        let (mut items, mut bytes) = (0, 0);
        let mut listed = listing(&self.stores.get(&account.name, name, lease)?, &space, b"", None).await?;
        while let Some(item) = listed.next().await {
            let item = item.map_err(|error| error.to_string())?;
            items += 1;
            bytes += item.size;
            lease.progressed();
        }
        let recorded = self.catalogue.record_space_stats(&account.name, name, &subject.space, (items, bytes)).await;
        recorded.map(|()| TaskOutcome::Done).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Processor for StorageStats {
    fn kind(&self) -> TaskKind {
        TaskKind::StorageStats
    }

    async fn process(&self, task: &TakenTask, lease: &Lease) -> Processed {
        match self.count(&task.subject, lease).await {
            Ok(outcome) => outcome.into(),
            Err(why) => TaskOutcome::Failed(why).into(),
        }
    }
}

/// Does nothing.
pub struct Noop;

#[async_trait]
impl Processor for Noop {
    fn kind(&self) -> TaskKind {
        TaskKind::Noop
    }

    async fn process(&self, _task: &TakenTask, _lease: &Lease) -> Processed {
        TaskOutcome::Done.into()
    }
}

/// A task of an account that does nothing.
///
/// # Errors
/// Never: the space that it names has a name.
pub fn noop(account: &Account) -> Result<NewTask, NameError> {
    Ok(task(TaskKind::Noop, account, NO_SPACE.parse()?, None))
}

fn task(kind: TaskKind, account: &Account, space: SpaceName, store: Option<&StoreName>) -> NewTask {
    let subject = TaskSubject { kind, account: account.name.clone(), space, key: None, destination: store.cloned() };
    NewTask { queue: TaskQueue::DuplicationLow, subject, source: None }
}

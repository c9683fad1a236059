//! What a mill does once, for those who ask for it: a command, or cron.

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{LEAD, Mill};
use crate::asides::{self, Removed};
use crate::bit;
use crate::policy::Policies;
use crate::producer::{PRODUCER, Step};
use crate::stats::{self, noop};

impl Mill {
    /// Goes on with the loop until it is done, waits, cannot go on, or is to stop. The next loop is for the next call,
    /// however soon it is due.
    ///
    /// # Errors
    /// When the catalogue or a store cannot be read; what was done is saved.
    pub async fn produce_once(&self, stop: &CancellationToken) -> Result<Step, String> {
        let policies = Policies::default();
        self.read_policies(&policies).await;
        // As a mill that runs does: what comes after this look is followed.
        self.follow(&self.auditor(&policies), &Notify::new()).await;
        let producer = self.producer(&policies, &self.account_stores());
        let ended = loop {
            if stop.is_cancelled() {
                break Ok(Step::Stopped);
            }
            match producer.step().await {
                Ok(Step::Advanced) => {}
                ended => break ended,
            }
            match self.catalogue.loop_state(PRODUCER).await {
                Ok(state) if state.as_ref().is_some_and(|state| state.ended.is_some()) => break Ok(Step::Idle),
                Ok(_) => {}
                Err(error) => break Err(error.to_string()),
            }
        };
        self.resign(PRODUCER, producer.holder).await;
        ended
    }

    /// Goes on with the loop of checks until it is done, waits, cannot go on, or is to stop.
    ///
    /// # Errors
    /// When the catalogue or a store cannot be read; what was done is saved.
    pub async fn check_once(&self, stop: &CancellationToken) -> Result<Step, String> {
        let settings = self.settings.bit.clone().unwrap_or_default();
        let producer = self.bit_producer(&settings, &self.account_stores());
        let ended = loop {
            if stop.is_cancelled() {
                break Ok(Step::Stopped);
            }
            match producer.step().await {
                Ok(Step::Advanced) => {}
                ended => break ended,
            }
        };
        self.resign(bit::producer::PRODUCER, producer.holder).await;
        ended
    }

    /// Asks for a count of each space, where that is due: of how many, `None` where it is not.
    ///
    /// # Errors
    /// When a store cannot be listed, or the catalogue written.
    pub async fn stats_once(&self) -> Result<Option<usize>, String> {
        let holder = Uuid::now_v7();
        let asked = self.stats(&self.account_stores()).produce(holder, LEAD).await;
        self.resign(stats::PRODUCER, holder).await;
        asked
    }

    /// Removes what need not be kept aside any longer, where that is due; `None` where it is not.
    ///
    /// # Errors
    /// When the catalogue cannot be read or written.
    pub async fn asides_once(&self) -> Result<Option<Removed>, String> {
        let holder = Uuid::now_v7();
        let removed = self.asides().remove(holder, LEAD).await;
        self.resign(asides::PRODUCER, holder).await;
        removed
    }

    /// Asks for a task that does nothing, for each account: how many there are.
    ///
    /// # Errors
    /// When the catalogue cannot be written.
    pub async fn noop_once(&self) -> Result<usize, String> {
        let tasks = self.accounts.values().map(noop).collect::<Result<Vec<_>, _>>();
        let tasks = tasks.map_err(|error| error.to_string())?;
        self.catalogue.put_tasks(&tasks).await.map_err(|error| error.to_string())?;
        Ok(tasks.len())
    }
}

//! Withdrawing a deposit.

use jiff::Timestamp;
use queuekeeper_ingest::deposit::id_of;
use queuekeeper_ingest::withdrawal;
use queuekeeper_queue::record::WithdrawnNote;
use uuid::Uuid;

use super::shared::{Intake, unavailable};
use crate::actions::action::{Action, Requested};
use crate::actions::table::BatchAction;
use crate::actions::{Actor, Reason, Refusal, Role};

/// The reason of a depositor who gives none.
const BY_ITS_DEPOSITOR: &str = "no reason given";

impl Intake {
    /// Withdraws a deposit: its batch is deleted with all its jobs, or nothing is changed. A depositor does that for
    /// their own, an operator for any, with a reason. Gives whether it is done: a large one takes a while.
    ///
    /// # Errors
    /// When it is not the caller's, or a job of it has left Pending; then nothing is changed.
    pub async fn withdraw(&self, uuid: Uuid, actor: &Actor, reason: Option<&str>) -> Result<bool, Refusal> {
        let missing = || Refusal::Missing(format!("there is no deposit {} of yours in the queue", id_of(uuid)));
        let original = self.deposit(uuid, actor).await?.ok_or_else(|| {
            if actor.role <= Role::Depositor {
                return missing();
            }
            let id = id_of(uuid);
            Refusal::Missing(format!(
                "the catalogue has no deposit {id}; withdraw its batch, if there is one: /batches/{id}"
            ))
        })?;
        let is_owners = original.deposit.depositor == actor.name;
        let reason = match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
            None if is_owners => BY_ITS_DEPOSITOR,
            reason => reason.unwrap_or_default(),
        };
        let reason = Reason::new(reason).map_err(|error| Refusal::Invalid(format!("reason: {error}")))?;
        let actions = &self.shared.actions;
        let queue = actions.shared.connected.queue_at_hand()?;
        let batch = queue.find_batch(&id_of(uuid)).await?.ok_or_else(missing)?;
        let loaded = queue.load_batch(batch).await?;
        let is_withdrawn = WithdrawnNote::of_batch(loaded.state(), &loaded.message()).is_some();
        if !is_withdrawn {
            let action = Action::from(Requested::Batch(batch, BatchAction::Withdraw));
            let action = if is_owners { action.of_owner() } else { action };
            let accepted = actions.execute(action, actor.clone(), reason, None, Timestamp::now()).await?;
            if accepted.outcome.is_none() {
                return Ok(false);
            }
        }
        let catalogue = &self.shared.services.catalogue;
        withdrawal::record(catalogue, &id_of(uuid)).await.map_err(|error| unavailable(&error))?;
        Ok(true)
    }
}

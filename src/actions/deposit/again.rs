//! The failed rows of a batch, deposited again.

use queuekeeper_ingest::again::{AgainError, failed_rows, uuid_of_failed};
use queuekeeper_ingest::deposit::{Receipt, id_of};
use uuid::Uuid;

use super::Allowance;
use super::shared::{Intake, Payload, Sender, disk};
use crate::actions::{Actor, Refusal, Role};

impl Intake {
    /// Submits the failed rows of a deposit's batch again, as a batch of their own; the same one each time.
    ///
    /// # Errors
    /// When it is not the caller's, or has no failed rows that can be submitted again; then nothing is made.
    pub async fn again(&self, uuid: Uuid, actor: &Actor, allowance: &Allowance) -> Result<Receipt, Refusal> {
        let missing = || Refusal::Missing(format!("there is no deposit {} of yours in the queue", id_of(uuid)));
        // Operators may also do it for a batch that another program has made.
        let original = self.deposit(uuid, actor).await?;
        if original.is_none() && actor.role <= Role::Depositor {
            return Err(missing());
        }
        // Whoever asks for it: it stays the deposit of whose rows they are, and they follow it.
        let depositor = original.map_or_else(|| actor.name.clone(), |original| original.deposit.depositor);
        let queue = self.shared.actions.shared.connected.queue_at_hand()?;
        let batch = queue.find_batch(&id_of(uuid)).await?.ok_or_else(missing)?;
        let (services, again) = (&self.shared.services, uuid_of_failed(uuid));
        let rows = failed_rows(&queue, &services.working, batch).await.map_err(|error| match error {
            AgainError::Refused(why) => Refusal::conflict(why),
            AgainError::Queue(error) => error.into(),
        });
        if let Some(batch) = queue.find_batch(&id_of(again)).await? {
            // It was made before, and what has become of its rows since does not matter.
            let kind = rows.ok().and_then(|rows| rows.deposit.kind);
            let kind = kind.unwrap_or(queuekeeper_ingest::kind::DepositType::BatchManifest);
            return Ok(Receipt { batch, id: id_of(again), kind });
        }
        let rows = rows?;
        let profile = &rows.deposit.profile;
        if allowance.profiles.as_ref().is_some_and(|profiles| !profiles.contains(profile)) {
            return Err(Refusal::Invalid(format!("profile: you may not deposit for {profile:?} any more")));
        }
        self.check_room(rows.manifest.len() as u64).await?;
        // What a request has left that was broken off is of no use.
        let left = self.open(again).await?;
        disk("remove the upload", move || left.remove()).await?;
        let mut upload = self.open(again).await?;
        let (manifest, deposit) = (rows.manifest, rows.deposit);
        let upload = disk("write the manifest", move || upload.write(&manifest).map(|()| upload)).await?;
        let sender = Sender { actor, depositor, allowance, key: None };
        self.make(again, &deposit, Payload::Uploaded(upload), sender).await
    }
}

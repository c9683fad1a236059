//! The failed rows of a batch, deposited again.

use queuekeeper_ingest::deposit::Receipt;
use queuekeeper_ingest::kind::DepositType;
use queuekeeper_ingest::resubmit::{Resubmission, failed_rows, resubmission};
use queuekeeper_ingest::spec::id_of;
use uuid::Uuid;

use super::Allowance;
use super::shared::{Intake, Payload, Sender, disk};
use crate::actions::{Actor, Refusal, Role};

impl Intake {
    /// Submits the failed rows of a deposit's batch again, as a batch of their own; the same one each time, unless it
    /// failed before it had jobs, or was withdrawn.
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
        // Whichever user requests it: it stays the deposit of the one whose rows they are, who follows it.
        let depositor = original.map_or_else(|| actor.name.clone(), |original| original.deposit.depositor);
        let queue = self.shared.actions.shared.connected.queue_at_hand()?;
        let batch = queue.find_batch(&id_of(uuid)).await?.ok_or_else(missing)?;
        let services = &self.shared.services;
        let rows = failed_rows(&queue, &services.working, &services.catalogue, batch).await;
        let again = match resubmission(&queue, Some(&services.catalogue), uuid).await? {
            // What has become of its rows since does not matter.
            Resubmission::Made(again, batch) => {
                let kind = rows.ok().and_then(|rows| rows.deposit.kind).unwrap_or(DepositType::BatchManifest);
                return Ok(Receipt { batch, id: id_of(again), kind });
            }
            Resubmission::Gone(again, outcome) => {
                let why = format!("they were submitted again as {}, which has ended ({outcome})", id_of(again));
                return Err(Refusal::conflict(format!("{why} and is no longer in the queue")));
            }
            Resubmission::Open(again) => {
                let why = "they were submitted too often, and each batch ended without a result";
                again.ok_or_else(|| Refusal::conflict(why))?
            }
        };
        let rows = rows?;
        let profile = &rows.deposit.profile;
        if allowance.profiles.as_ref().is_some_and(|profiles| !profiles.contains(profile)) {
            return Err(Refusal::Invalid(format!("profile: you may no longer deposit for {profile:?}")));
        }
        if !self.has_profile(profile) {
            return Err(Refusal::Invalid(format!("profile: {profile:?} no longer exists")));
        }
        self.check_room(rows.manifest.len() as u64).await?;
        // What a request has left that was broken off is of no use.
        let left = self.open(again).await?;
        disk("remove the upload", move || left.remove()).await?;
        let mut upload = self.open(again).await?;
        let (manifest, deposit) = (rows.manifest, rows.deposit);
        let upload = disk("write the manifest", move || upload.write(&manifest).map(|()| upload)).await?;
        let reason = Some(format!("the failed rows of {}", id_of(uuid)));
        let sender = Sender { actor, depositor, allowance, key: None, reason };
        self.or_discard(again, self.make(again, &deposit, Payload::Uploaded(upload), sender)).await
    }
}

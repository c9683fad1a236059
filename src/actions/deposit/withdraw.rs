//! Withdrawing a deposit.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use queuekeeper_catalogue::deposits::Deposit;
use queuekeeper_ingest::spec::id_of;
use queuekeeper_ingest::withdrawal;
use queuekeeper_queue::Queue;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::record::WithdrawnNote;
use uuid::Uuid;

use super::shared::{Intake, unavailable};
use crate::actions::accept::{Accepted, CALLER_TIMEOUT};
use crate::actions::action::{Action, Requested};
use crate::actions::table::BatchAction;
use crate::actions::{Actor, Reason, Refusal, Role};

/// The reason of a depositor who gives none.
const BY_ITS_DEPOSITOR: &str = "no reason given";

/// How long it is waited for another client that withdraws a batch.
const OTHER_LIMIT: Duration = Duration::from_secs(30);

const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Intake {
    /// Withdraws a deposit: its batch is deleted with all its jobs, or nothing is changed; of several batches, all are,
    /// by the daemons where this process ends between two of them. A depositor does that for their own, an operator for
    /// any, with a reason. Gives whether it is done: a large one takes a while.
    ///
    /// # Errors
    /// When it is not the caller's, or a job of it has left Pending; then nothing is changed. [`Refusal::InPart`] where
    /// a job of a later batch has, after the first ones were withdrawn.
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
        if let Some((first, number)) = original.part_of {
            let why = format!("it is part {number} of {}; withdraw that deposit, with all its parts", id_of(first));
            return Err(Refusal::conflict(why));
        }
        let queue = self.shared.actions.shared.connected.queue_at_hand()?;
        let mut parts = vec![Part::find(&queue, uuid).await?.ok_or_else(missing)?];
        parts.extend(self.further(&queue, &original).await?);
        let mut all = Withdrawal { original, parts, is_owners, actor: actor.clone(), reason };
        if let [first] = &all.parts[..]
            && !first.is_withdrawn
        {
            let first = first.clone();
            if self.start(&all, &first).await?.outcome.is_none() {
                return Ok(false);
            }
            self.record(&first).await?;
            self.first_is_withdrawn(&queue, &mut all).await?;
        }
        if all.parts.iter().any(|part| !part.is_withdrawn) {
            return self.withdraw_parts(queue, all).await;
        }
        for part in &all.parts {
            self.record(part).await?;
        }
        Ok(true)
    }

    /// The further batches of a deposit that are in the queue.
    async fn further(&self, queue: &Queue, original: &Deposit) -> Result<Vec<Part>, Refusal> {
        let mut found = Vec::new();
        for part in self.parts(original).await? {
            found.extend(Part::find(queue, part.deposit.batch).await?);
        }
        Ok(found)
    }

    /// Looks for further batches again: they may have been made until the lock of the first one was ours. From now on,
    /// none is made.
    async fn first_is_withdrawn(&self, queue: &Queue, all: &mut Withdrawal) -> Result<(), Refusal> {
        let further = self.further(queue, &all.original).await?;
        all.parts.truncate(1);
        all.parts.iter_mut().for_each(|first| first.is_withdrawn = true);
        all.parts.extend(further);
        Ok(())
    }

    /// Withdraws the batches of a deposit, the first one first, since its jobs are the next to leave Pending. Gives
    /// whether that is done; it goes on where its caller does not wait for it.
    async fn withdraw_parts(&self, queue: Queue, mut all: Withdrawal) -> Result<bool, Refusal> {
        // Nothing was withdrawn yet: then all or nothing.
        if !all.parts.iter().any(|part| part.is_withdrawn) {
            for part in &all.parts {
                let plan = queue.plan_withdrawal(part.batch).await.map_err(Refusal::of_withdrawal)?;
                if let Some(why) = plan.hindrance {
                    return Err(Refusal::conflict(why));
                }
            }
        }
        let intake = self.clone();
        let task = self.shared.actions.shared.tasks.spawn(async move {
            let is_begun = all.parts.iter().any(|part| part.is_withdrawn);
            let mut hindered = None;
            if let Some(first) = all.parts.first().filter(|part| !part.is_withdrawn).cloned() {
                match intake.withdraw_part(&queue, &all, &first).await {
                    Ok(()) => intake.first_is_withdrawn(&queue, &mut all).await?,
                    Err(refusal) if !is_begun => return Err(refusal),
                    Err(refusal) => hindered = Some((first.batch, refusal)),
                }
            }
            let mut done = all.parts.iter().filter(|part| part.is_withdrawn).count();
            for part in all.parts.iter().skip(1).filter(|part| !part.is_withdrawn) {
                match intake.withdraw_part(&queue, &all, part).await {
                    Ok(()) => done += 1,
                    Err(refusal) => drop(hindered.get_or_insert((part.batch, refusal))),
                }
            }
            let Some((batch, why)) = hindered else { return Ok(()) };
            let of = all.parts.len();
            let why = format!("{done} of its {of} batches were withdrawn, but {batch} continues: {why}");
            tracing::warn!(%batch, "{why}");
            Err(Refusal::InPart(why))
        });
        match tokio::time::timeout(CALLER_TIMEOUT, task).await {
            Ok(Ok(outcome)) => outcome.map(|()| true),
            Ok(Err(error)) => Err(Refusal::Failed(format!("the withdrawal was interrupted: {error}"))),
            Err(_elapsed) => Ok(false),
        }
    }

    async fn withdraw_part(&self, queue: &Queue, all: &Withdrawal, part: &Part) -> Result<(), Refusal> {
        let started = self.start(all, part).await;
        let ended = match started {
            Ok(started) if started.outcome.is_none() => started.execution.finished().await.map(drop),
            started => started.map(drop),
        };
        if let Err(refusal) = ended {
            // The daemons withdraw it as well, once the first one is.
            let limit = Instant::now() + OTHER_LIMIT;
            while Part::find(queue, part.uuid).await?.is_some_and(|part| part.is_locked) && Instant::now() < limit {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            if !Part::find(queue, part.uuid).await?.is_some_and(|part| part.is_withdrawn) {
                return Err(refusal);
            }
        }
        self.record(part).await
    }

    async fn start(&self, all: &Withdrawal, part: &Part) -> Result<Accepted, Refusal> {
        let action = Action::from(Requested::Batch(part.batch, BatchAction::Withdraw));
        let action = if all.is_owners { action.of_owner() } else { action };
        self.shared.actions.execute(action, all.actor.clone(), all.reason.clone(), None, Timestamp::now()).await
    }

    async fn record(&self, part: &Part) -> Result<(), Refusal> {
        let recorded = withdrawal::record(&self.shared.services.catalogue, &id_of(part.uuid)).await;
        recorded.map_err(|error| unavailable(&error))
    }
}

/// A withdrawal of a deposit.
struct Withdrawal {
    original: Deposit,
    /// Its batches, the first one first.
    parts: Vec<Part>,
    /// Whether it is its depositor who withdraws it.
    is_owners: bool,
    actor: Actor,
    reason: Reason,
}

/// A batch of a deposit that is withdrawn.
#[derive(Clone)]
struct Part {
    uuid: Uuid,
    batch: BatchId,
    is_withdrawn: bool,
    is_locked: bool,
}

impl Part {
    /// The batch, if it is in the queue.
    async fn find(queue: &Queue, uuid: Uuid) -> Result<Option<Self>, Refusal> {
        let Some(batch) = queue.find_batch(&id_of(uuid)).await? else { return Ok(None) };
        let loaded = queue.load_batch(batch).await?;
        let is_withdrawn = WithdrawnNote::of_batch(loaded.state(), &loaded.message()).is_some();
        Ok(Some(Self { uuid, batch, is_withdrawn, is_locked: loaded.lock().is_some() }))
    }
}

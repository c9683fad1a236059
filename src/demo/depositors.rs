//! Depositors: new submissions keep coming.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::collections::FILMS;
use super::dice::Dice;
use super::pace::Pace;
use super::person::{Person, unless_lost};
use super::scenario::{LARGE_OBJECTS, Scenario, SubmissionKind};
use super::world::World;
use queuekeeper_ingest::deposit::DepositError;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::StateFolder;
use queuekeeper_queue::state::{BatchState, JobState, State as _};
use queuekeeper_queue::{Error, Queue};

/// The maximum number of batches that wait to be acquired, however long the queue is paused.
const WAITING_BATCHES: usize = 6;

/// With alerts, how many more large objects their depositor sends while the collection is held, so that there is
/// something held: few, so that they cause no other stall when they are released.
const MORE_LARGE: usize = 2;

/// How much they send at most, in bytes: objects stay in their store, which is in the temporary directory of this
/// machine.
const MOST_BYTES: u64 = 8 << 30;

/// All depositors.
pub(super) struct Depositors {
    world: Arc<World>,
    scenario: Scenario,
    dice: Dice,
    next_large: Instant,
    /// How many more large objects are sent while their collection is held.
    more_large: usize,
    /// The last batches that no daemon had acquired.
    waiting: Vec<BatchId>,
    /// How many bytes they have sent, at most.
    sent: u64,
}

/// When the first large submission arrives, from the start: the overview knows by then how fast the queue flows. With
/// alerts it is later, when Prometheus has seen the queue flow.
pub(super) fn first_large(pace: Pace, alerts: bool) -> Duration {
    pace.time(if alerts { 40.0 } else { 28.0 }).min(Duration::from_secs(75))
}

impl Depositors {
    /// Continues a scenario whose first submissions exist.
    pub(super) fn new(world: &Arc<World>, scenario: Scenario) -> Self {
        let next_large = Instant::now() + first_large(world.pace, world.alerts);
        let (dice, world) = (Dice::new(world.seed, "depositors"), Arc::clone(world));
        Self { world, scenario, dice, next_large, more_large: 0, waiting: Vec::new(), sent: 0 }
    }

    async fn submit(&mut self, queue: &Queue, kind: SubmissionKind) -> Result<(), Error> {
        let submission = self.scenario.next(kind);
        self.world.origins.keep(&submission);
        let (deposit, manifest) = submission.deposit(self.world.origins.address(submission.of()));
        let made = deposit.refer(queue, None, submission.uuid, &manifest).await;
        let made = match made {
            Ok(receipt) => Ok(receipt.batch),
            Err(DepositError::Queue(error)) => Err(error),
            Err(error) => {
                tracing::warn!(%error, "a deposit of the demo was refused");
                return Ok(());
            }
        };
        let Some(batch) = unless_lost("a submission", made)? else { return Ok(()) };
        self.waiting.push(batch);
        self.sent += submission.of().sizes.1 * submission.objects.len() as u64;
        if self.sent >= MOST_BYTES {
            tracing::warn!("the depositors have sent 8 GiB, the limit of this demo: restart it for more");
        }
        let (jobs, collection) = (submission.objects.len(), submission.collection);
        if matches!(kind, SubmissionKind::Large { .. }) {
            *self.world.large.lock() = Some(batch);
            tracing::info!(%batch, collection, jobs, "an urgent submission of large objects arrived");
        } else {
            tracing::debug!(%batch, collection, jobs, "a submission arrived");
        }
        Ok(())
    }

    /// Whether there are enough batches that no daemon has acquired.
    async fn waits(&mut self, queue: &Queue) -> Result<bool, Error> {
        let mut waiting = Vec::new();
        for id in std::mem::take(&mut self.waiting) {
            let batch = unless_lost("reading a batch", queue.load_batch(id).await)?;
            if batch.is_some_and(|batch| batch.state() == Some(BatchState::Pending)) {
                waiting.push(id);
            }
        }
        self.waiting = waiting;
        Ok(self.waiting.len() >= WAITING_BATCHES)
    }

    async fn deposit(&mut self, queue: &Queue) -> Result<(), Error> {
        if self.sent >= MOST_BYTES || self.waits(queue).await? {
            return Ok(());
        }
        if Instant::now() >= self.next_large {
            let now = Instant::now();
            let pace = self.world.pace;
            self.next_large = now + pace.time(self.dice.float(600.0, 900.0));
            self.more_large = if self.world.alerts { MORE_LARGE } else { 0 };
            return self.submit(queue, SubmissionKind::Large { objects: LARGE_OBJECTS }).await;
        }
        if self.more_large > 0 && queue.held_collection(FILMS.mnemonic).await?.is_some() {
            self.more_large -= 1;
            return self.submit(queue, SubmissionKind::Large { objects: 1 }).await;
        }
        let counts = queue.count_entries().await?;
        let under_way: u32 = JobState::ALL
            .iter()
            .filter(|state| state.is_worked_on())
            .filter_map(|state| counts.get(&StateFolder::Known(*state)))
            .sum();
        let enough = (self.world.jobs / 8).clamp(12, MOST_UNDER_WAY);
        if usize::try_from(under_way).unwrap_or(usize::MAX) >= enough {
            return Ok(());
        }
        let most = most_objects(self.world.jobs);
        let kind = if self.dice.happens(0.15) {
            SubmissionKind::OfHeld { turn: usize::try_from(self.dice.between(0, 2)).unwrap_or(0), most }
        } else {
            SubmissionKind::Ordinary { most }
        };
        self.submit(queue, kind).await
    }
}

/// How many jobs are under way at most: each takes space, and more would only wait.
const MOST_UNDER_WAY: usize = 80;

/// The maximum number of objects of a batch, so that a small demo has several batches too.
pub(super) fn most_objects(jobs: usize) -> usize {
    (jobs / 6).clamp(3, 400)
}

impl Person for Depositors {
    fn name(&self) -> &'static str {
        "depositors"
    }

    async fn work(&mut self, queue: Queue) -> Result<Infallible, Error> {
        loop {
            self.deposit(&queue).await?;
            sleep(self.world.pace.time(2.0)).await;
        }
    }
}

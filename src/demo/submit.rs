//! Depositors and readers: new batches and access requests keep coming.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::daemon::{Daemon, unless_lost};
use super::dice::Dice;
use super::pace::Pace;
use super::scenario::{self, LARGE_OBJECTS, Scenario, SubmissionKind};
use super::world::World;
use queuekeeper_queue::path::{AccessQueue, StateFolder};
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Error, Queue};

/// The maximum number of batches that wait to be acquired, however long the queue is paused.
const WAITING_BATCHES: usize = 6;

/// The maximum number of requests in an access queue, in any state.
const MAX_REQUESTS: usize = 40;

/// With alerts, the depositor of a large submission sends one more object after each of these seconds: the stall's
/// alert is firing by then, and a hold of the collection keeps them from making the stall longer. They are few, so that
/// they cause no other stall when they are released.
const MORE_LARGE_SECONDS: [f64; 2] = [60.0, 68.0];

/// All depositors and readers.
#[derive(Debug)]
pub(super) struct Depositors {
    world: Arc<World>,
    scenario: Scenario,
    dice: Dice,
    next_large: Instant,
    /// When the next submission of each kind arrives, the latest first.
    more_large: Vec<Instant>,
}

/// When the first large submission arrives, from the start of the simulation: the overview knows by then how fast the
/// queue flows. With alerts it is later, when Prometheus has seen the queue flow.
pub(super) fn first_large(pace: Pace, alerts: bool) -> Duration {
    pace.time(if alerts { 40.0 } else { 28.0 }).min(Duration::from_secs(75))
}

impl Depositors {
    /// Continues a scenario whose first submissions exist.
    pub(super) fn new(world: &Arc<World>, scenario: Scenario) -> Self {
        let next_large = Instant::now() + first_large(world.pace, world.alerts);
        let dice = Dice::new(world.seed, "depositors");
        Self { world: Arc::clone(world), scenario, dice, next_large, more_large: Vec::new() }
    }

    async fn submit(&mut self, queue: &Queue, kind: SubmissionKind) -> Result<(), Error> {
        let submission = self.scenario.next(kind);
        let now = Timestamp::now();
        let (uuid, jobs, collection) = (submission.uuid.clone(), submission.objects.len(), submission.collection);
        let data = submission.data(now);
        self.world.manifests.leave(submission);
        match unless_lost("a submission", queue.create_batch(&data, now).await)? {
            Some(batch) if matches!(kind, SubmissionKind::Large { .. }) => {
                tracing::info!(%batch, collection, jobs, "an urgent submission of very large objects arrived");
            }
            Some(batch) => tracing::debug!(%batch, collection, jobs, "a submission arrived"),
            None => self.world.manifests.remove(&uuid),
        }
        Ok(())
    }

    async fn deposit(&mut self, queue: &Queue) -> Result<(), Error> {
        if self.world.manifests.len() >= WAITING_BATCHES {
            return Ok(());
        }
        if Instant::now() >= self.next_large {
            let now = Instant::now();
            let pace = self.world.pace;
            self.next_large = now + pace.time(self.dice.float(300.0, 420.0));
            if self.world.alerts {
                self.more_large = MORE_LARGE_SECONDS.iter().rev().map(|after| now + pace.time(*after)).collect();
            }
            return self.submit(queue, SubmissionKind::Large { objects: LARGE_OBJECTS }).await;
        }
        if self.more_large.pop_if(|due| Instant::now() >= *due).is_some() {
            return self.submit(queue, SubmissionKind::Large { objects: 1 }).await;
        }
        let counts = queue.count_entries().await?;
        let pending = counts.get(&StateFolder::Known(JobState::Pending)).copied().unwrap_or(0);
        let enough = (self.world.jobs / 8).max(12);
        if usize::try_from(pending).unwrap_or(usize::MAX) >= enough {
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

    async fn ask(&mut self, queue: &Queue) -> Result<(), Error> {
        for (access, probability) in [(AccessQueue::Small, 0.5), (AccessQueue::Large, 0.12)] {
            if self.dice.happens(probability) && queue.requests(access).await?.len() < MAX_REQUESTS {
                let now = Timestamp::now();
                let token = scenario::token(&mut self.dice, access == AccessQueue::Large, now);
                unless_lost("an access request", queue.create_request(access, &token, now).await)?;
            }
        }
        Ok(())
    }
}

/// The maximum number of objects of a batch, so that a small demo has several batches too.
pub(super) fn most_objects(jobs: usize) -> usize {
    (jobs / 6).clamp(3, 400)
}

impl Daemon for Depositors {
    fn name(&self) -> &'static str {
        "depositors"
    }

    async fn work(&mut self, queue: Queue) -> Result<Infallible, Error> {
        loop {
            self.deposit(&queue).await?;
            self.ask(&queue).await?;
            sleep(self.world.pace.time(2.0)).await;
        }
    }
}

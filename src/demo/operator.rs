//! The operator: resumes and deletes failed jobs, holds one collection after the other, and runs the nightly cleanup.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::collections::{self, HELD_IN_TURN, HOLD_REASON};
use super::dice::Dice;
use super::pace::Pace;
use super::person::{Person, unless_lost};
use super::storage::{ENLARGED_BYTES, SIZE_BYTES};
use super::world::World;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::{AccessState, BatchState, JobState};
use queuekeeper_queue::{Batch, Error, ItemChange, JobChange, Queue};

/// How many failed jobs are read at once, in search of a batch to repair.
const READ_AT_ONCE: usize = 60;

/// How many finished access requests are kept.
const KEPT_REQUESTS: usize = 20;

/// The operator of the demo.
pub(super) struct Operator {
    world: Arc<World>,
    dice: Dice,
    /// Since when each job is in Provisioning, as far as was seen.
    provisioning: HashMap<JobId, Instant>,
    /// The index of the held collection.
    turn: usize,
    next_turn: Instant,
    next_repairing: Instant,
    /// The minimum and maximum time between two searches for failed jobs, in seconds.
    repair_seconds: (f64, f64),
    relief: Relief,
}

/// What is done about a stall: the first one is ended, as the overview recommends; others end by themselves, as do all
/// with alerts, whose rules act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relief {
    /// Working storage will be enlarged.
    Due,
    /// It was, and has not got its usual size again.
    Given,
    Over,
}

/// For how many seconds the first stall lasts: long enough to read on the overview what stalls the queue, and why.
const RELIEF_SECONDS: f64 = 16.0;

/// For how long it lasts at least, at any rate.
const LEAST_RELIEF: Duration = Duration::from_secs(4);

/// How many jobs that wait in Provisioning are a stall: the daemons let those pass at once for which there is room.
const STALLED: usize = 3;

/// How often the operator looks after everything, in seconds.
const ROUND_SECONDS: f64 = 5.0;

/// The interval of the searches for failed jobs, in seconds.
const REPAIR_SECONDS: (f64, f64) = (10.0, 30.0);

/// The same with alerts, so that there is something left for the rules.
const REPAIR_SECONDS_WITH_ALERTS: (f64, f64) = (60.0, 120.0);

impl Operator {
    /// An operator who has held the first of the collections.
    pub(super) fn new(world: &Arc<World>) -> Self {
        let now = Instant::now();
        let repair_seconds = if world.alerts { REPAIR_SECONDS_WITH_ALERTS } else { REPAIR_SECONDS };
        let (next_turn, next_repairing) = (now + world.pace.time(360.0), now + world.pace.time(2.0 * repair_seconds.0));
        let dice = Dice::new(world.seed, "operator");
        let relief = if world.alerts { Relief::Over } else { Relief::Due };
        Self {
            world: Arc::clone(world),
            dice,
            provisioning: HashMap::new(),
            turn: 0,
            next_turn,
            next_repairing,
            repair_seconds,
            relief,
        }
    }

    /// How long the first stall lasts, about.
    pub(super) fn relief(pace: Pace) -> Duration {
        Self::lasts(pace) + pace.time(ROUND_SECONDS / 2.0)
    }

    /// For how long jobs wait before that is a stall to be relieved.
    fn lasts(pace: Pace) -> Duration {
        pace.time(RELIEF_SECONDS).max(LEAST_RELIEF)
    }

    /// Enlarges working storage while a deposit fills it, and takes what was added back when that has passed.
    async fn relieve(&mut self, queue: &Queue) -> Result<(), Error> {
        let World { storage, pace, .. } = &*self.world;
        let before = std::mem::take(&mut self.provisioning);
        for entry in queue.entries(JobState::Provisioning).await?.entries {
            let since = before.get(&entry.job).copied().unwrap_or_else(Instant::now);
            self.provisioning.insert(entry.job, since);
        }
        let least = Self::lasts(*pace);
        let waiting = self.provisioning.values().filter(|since| since.elapsed() >= least).count();
        match self.relief {
            Relief::Due if waiting >= STALLED => {
                storage.set(ENLARGED_BYTES);
                self.relief = Relief::Given;
                tracing::info!(waiting, "the operator doubled working storage: jobs leave Provisioning again");
            }
            Relief::Given if self.is_large_done(queue).await? => {
                storage.set(SIZE_BYTES);
                self.relief = Relief::Over;
                tracing::info!("the operator took the added working storage back");
            }
            Relief::Due | Relief::Given | Relief::Over => {}
        }
        Ok(())
    }

    /// Whether the large deposit has been reported, so that its jobs need no room any more.
    async fn is_large_done(&self, queue: &Queue) -> Result<bool, Error> {
        let Some(batch) = *self.world.large.lock() else { return Ok(false) };
        let batch = unless_lost("reading a batch", queue.load_batch(batch).await)?;
        let state = batch.and_then(|batch| batch.state());
        Ok(!matches!(state, Some(BatchState::Pending | BatchState::Processing | BatchState::Reporting)))
    }

    /// Releases the held collection with its jobs, and holds the next.
    async fn hold_another(&mut self, queue: &Queue) -> Result<(), Error> {
        let released = HELD_IN_TURN[self.turn % HELD_IN_TURN.len()];
        self.turn += 1;
        let held = HELD_IN_TURN[self.turn % HELD_IN_TURN.len()];
        if let Some(hold) = queue.held_collection(released).await? {
            unless_lost("releasing a collection", queue.unlock(&hold.lock).await)?;
        }
        let mut jobs = 0;
        for entry in queue.entries(JobState::Held).await?.entries {
            let Some(job) = unless_lost("reading a job", queue.load_job(entry.job).await)? else { continue };
            if job.configuration().value.collection == released {
                let change = JobChange::to(JobState::Pending).by_operator();
                let changed = queue.change_job(&job, &change, Timestamp::now()).await;
                jobs += usize::from(unless_lost("releasing a held job", changed)?.is_some());
            }
        }
        for id in queue.batches().await? {
            let Some(batch) = unless_lost("reading a batch", queue.load_batch(id).await)? else { continue };
            if batch.state() == Some(BatchState::Held) && batch.submitted().value.collection == released {
                let change = ItemChange::to(BatchState::Pending).by_operator();
                unless_lost("releasing a held batch", queue.change_batch(&batch, &change, Timestamp::now()).await)?;
            }
        }
        let hold = queue.hold_collection(held, "operator", HOLD_REASON, Timestamp::now()).await;
        unless_lost("holding a collection", hold)?;
        tracing::info!(released, jobs, held, "the operator released a collection and held another");
        Ok(())
    }

    /// Searches for a batch that was reported with failed jobs, if there are more of these than are kept for display.
    async fn repair(&mut self, queue: &Queue) -> Result<(), Error> {
        let failed = queue.entries(JobState::Failed).await?.entries;
        if failed.len() <= (self.world.jobs / 60).max(4) {
            return Ok(());
        }
        let mut seen = BTreeSet::new();
        for entry in failed.iter().take(READ_AT_ONCE) {
            let Some(job) = unless_lost("reading a job", queue.load_job(entry.job).await)? else { continue };
            let Ok(id) = job.batch() else { continue };
            if !seen.insert(id) {
                continue;
            }
            let Some(batch) = unless_lost("reading a batch", queue.load_batch(id).await)? else { continue };
            if batch.state() == Some(BatchState::Failed) && is_made_up(&batch) {
                return self.repair_batch(queue, &batch).await;
            }
        }
        Ok(())
    }

    async fn repair_batch(&mut self, queue: &Queue, batch: &Batch) -> Result<(), Error> {
        if self.dice.happens(0.1) {
            let message = "deleted by the operator: the depositor sends it again";
            let plan = queue.plan_delete(batch, message, Timestamp::now()).await;
            let Some(plan) = unless_lost("deleting a batch", plan)? else { return Ok(()) };
            if unless_lost("deleting a batch", queue.execute(&plan, 0, |_| ControlFlow::Continue(())).await)?.is_some()
            {
                tracing::debug!(batch = %batch.id, "the operator deleted a batch");
            }
            return Ok(());
        }
        let mut repaired = 0;
        for id in queue.batch_report(batch.id).await?.failed {
            let Some(job) = unless_lost("reading a job", queue.load_job(id).await)? else { continue };
            let is_hopeless = job.status().value.retry_count.is_some_and(|retries| retries >= 3);
            let change = if is_hopeless || self.dice.happens(0.15) {
                JobChange::to(JobState::Deleted).with_message("deleted by the operator").by_operator()
            } else {
                JobChange::resume()
            };
            let changed = queue.change_job(&job, &change, Timestamp::now()).await;
            repaired += usize::from(unless_lost("repairing a job", changed)?.is_some());
        }
        if repaired > 0 {
            let change = ItemChange::to(BatchState::UpdateReporting).by_operator();
            unless_lost("a batch's new report", queue.change_batch(batch, &change, Timestamp::now()).await)?;
            tracing::debug!(batch = %batch.id, jobs = repaired, "the operator repaired a batch");
        }
        Ok(())
    }

    /// Purges the oldest finished batches, while there are more jobs than configured.
    async fn clean_up(&mut self, queue: &Queue) -> Result<(), Error> {
        let jobs: u32 = queue.count_entries().await?.values().sum();
        let most = self.world.jobs + self.world.jobs / 10;
        let mut excess = usize::try_from(jobs).unwrap_or(usize::MAX).saturating_sub(self.world.jobs);
        if excess + self.world.jobs <= most {
            return Ok(());
        }
        let (mut purged_batches, mut purged_jobs) = (0, 0);
        for id in queue.batches().await? {
            let Some(batch) = unless_lost("reading a batch", queue.load_batch(id).await)? else { continue };
            if !matches!(batch.state(), Some(BatchState::Completed | BatchState::Deleted)) || !is_made_up(&batch) {
                continue;
            }
            let Some(plan) = unless_lost("purging a batch", queue.plan_purge(&batch).await)? else { continue };
            if unless_lost("purging a batch", queue.execute(&plan, 0, |_| ControlFlow::Continue(())).await)?.is_some() {
                purged_batches += 1;
                purged_jobs += plan.jobs();
                excess = excess.saturating_sub(plan.jobs());
            }
            if excess == 0 {
                break;
            }
        }
        if purged_batches > 0 {
            tracing::info!(batches = purged_batches, jobs = purged_jobs, "the cleanup purged old batches");
        }
        Ok(())
    }

    /// Purges old finished requests, and failed ones.
    async fn clean_up_requests(queue: &Queue) -> Result<(), Error> {
        for access in [AccessQueue::Small, AccessQueue::Large] {
            let mut ids = queue.requests(access).await?;
            ids.truncate(ids.len().saturating_sub(KEPT_REQUESTS));
            for id in ids {
                let Some(request) = unless_lost("reading a request", queue.load_request(access, id).await)? else {
                    continue;
                };
                if request.state() == Some(AccessState::Failed) {
                    let change = ItemChange::to(AccessState::Deleted).by_operator();
                    let deleted = queue.change_request((access, id), &change, Timestamp::now()).await;
                    unless_lost("deleting a request", deleted)?;
                } else if matches!(request.state(), Some(AccessState::Completed | AccessState::Deleted)) {
                    unless_lost("purging a request", queue.purge_request(&request).await)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a batch is of a made-up depositor. What visitors deposit is theirs.
fn is_made_up(batch: &Batch) -> bool {
    collections::find(&batch.submitted().value.collection).is_some()
}

impl Person for Operator {
    fn name(&self) -> &'static str {
        "operator"
    }

    async fn work(&mut self, queue: Queue) -> Result<Infallible, Error> {
        loop {
            if Instant::now() >= self.next_turn {
                self.next_turn = Instant::now() + self.world.pace.time(360.0);
                self.hold_another(&queue).await?;
            }
            if Instant::now() >= self.next_repairing {
                let (from, to) = self.repair_seconds;
                self.next_repairing = Instant::now() + self.world.pace.time(self.dice.float(from, to));
                self.repair(&queue).await?;
            }
            self.clean_up(&queue).await?;
            Self::clean_up_requests(&queue).await?;
            self.relieve(&queue).await?;
            sleep(self.world.pace.time(ROUND_SECONDS)).await;
        }
    }
}

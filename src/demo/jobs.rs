//! The daemons of the job states: one for each, which takes a job, keeps it locked while it works, and passes it on.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::catalogue::FILMS;
use super::daemon::Daemon;
use super::details::Details;
use super::dice::Dice;
use super::duty::{Duty, WorkDuration};
use super::shift::Shift;
use super::world::World;
use queuekeeper_queue::state::State as _;
use queuekeeper_queue::{Error, JobPoll, Queue};

/// An object of this size takes twice the time of a small one, one of five times this size six times.
const SLOW_BYTES: f64 = 100.0 * (1u64 << 30) as f64;

/// The same with alerts: the first large object finishes some time after the alert of a stall.
const SLOW_BYTES_WITH_ALERTS: f64 = 50.0 * (1u64 << 30) as f64;

/// The daemon of one state.
#[derive(Debug)]
pub(super) struct JobDaemon {
    world: Arc<World>,
    duty: &'static Duty,
    dice: Dice,
}

impl JobDaemon {
    pub(super) fn new(world: &Arc<World>, duty: &'static Duty) -> Self {
        let dice = Dice::new(world.seed, ("daemon", duty.state.label()));
        Self { world: Arc::clone(world), duty, dice }
    }

    /// The duration of the work on a job.
    fn time(&mut self, bytes: u64) -> Duration {
        let pace = self.world.pace;
        let mut spread = self.dice.float(0.4, 1.6);
        let mut slow_bytes = SLOW_BYTES;
        if self.world.alerts && bytes >= FILMS.sizes.0 {
            // They finish soon one after the other, so that the stall ends once.
            spread = 0.95 + 0.1 * (spread - 0.4) / 1.2;
            slow_bytes = SLOW_BYTES_WITH_ALERTS;
        }
        match self.duty.duration {
            WorkDuration::Arrivals => pace.between_jobs().mul_f64(spread),
            WorkDuration::Short => pace.time(0.5),
            WorkDuration::Size => pace.work(self.duty.crew).mul_f64(spread * (1.0 + bytes as f64 / slow_bytes)),
            WorkDuration::Crew => pace.work(self.duty.crew).mul_f64(spread),
        }
    }
}

impl Daemon for JobDaemon {
    fn name(&self) -> &'static str {
        self.duty.state.label()
    }

    async fn work(&mut self, queue: Queue) -> Result<Infallible, Error> {
        let mut at_work = FuturesUnordered::new();
        let mut list: Option<(JobPoll, Instant)> = None;
        loop {
            while at_work.len() < self.duty.crew {
                // A list is soon outdated: more urgent jobs arrive, and a pause must be noticed.
                let fresh = list.take().filter(|(_, since)| since.elapsed() < self.world.pace.poll());
                let (mut poll, since) = match fresh {
                    Some(fresh) => fresh,
                    None => (queue.poll_jobs(self.duty.state).await?, Instant::now()),
                };
                let Some(job) = poll.next(Timestamp::now()).await? else {
                    for passed in &poll.skipped {
                        tracing::debug!(path = %passed.path, reason = ?passed.reason, "skipped");
                    }
                    break;
                };
                let details = Details::of(self.world.seed, &job.job);
                let time = self.time(details.bytes);
                let (world, duty) = (Arc::clone(&self.world), self.duty);
                let shift = Shift { world, duty, queue: queue.clone(), job, details, time };
                at_work.push(shift.work());
                list = Some((poll, since));
            }
            tokio::select! {
                Some(done) = at_work.next() => done?,
                () = sleep(self.world.pace.poll()) => {}
            }
        }
    }
}

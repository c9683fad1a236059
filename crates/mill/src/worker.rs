//! Workers: they take tasks, have them processed, and come to an end with them.

mod lease;
mod stop;
mod take_order;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::bit::CheckedPart;
use queuekeeper_catalogue::tasks::{EndedTask, NewTask, TakenTask, TaskKind, TaskOutcome, TaskQueue, Tasks};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

pub use lease::{Lease, Times};
pub(crate) use stop::{CHANGING, Stop};
use take_order::TakeOrder;

use crate::metrics::MillMetrics;

/// How many tasks are taken at once, and how many are ended at once.
const TENS: usize = 10;

/// How long to wait for more workers that become free, where there is more to do: tasks that take less are taken
/// together.
const TOGETHER: Duration = Duration::from_millis(10);

/// How much of the time of grace the catalogue has to say what was taken as the workers were stopped.
const TAKING: Duration = Duration::from_secs(5);

/// How long to wait at least for a task that is about to be visible.
const AT_LEAST: Duration = Duration::from_millis(50);

/// How a processor comes to an end with a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processed {
    /// How.
    pub outcome: TaskOutcome,
    /// What is to be done next.
    pub follow_ups: Vec<NewTask>,
    /// What was checked.
    pub checked: Option<CheckedPart>,
}

impl From<TaskOutcome> for Processed {
    fn from(outcome: TaskOutcome) -> Self {
        Self { outcome, follow_ups: Vec::new(), checked: None }
    }
}

/// What processes tasks of one kind.
#[async_trait]
pub trait Processor: Send + Sync + 'static {
    /// The kind.
    fn kind(&self) -> TaskKind;

    /// Processes a task. It may be dropped at any point at which it waits: when its lease ends, or when the worker
    /// stops.
    async fn process(&self, task: &TakenTask, lease: &Lease) -> Processed;
}

/// What workers need.
pub struct Workers {
    /// Where the tasks are.
    pub catalogue: Catalogue,
    /// What they can process. A kind that none of them has is never taken.
    pub processors: Vec<Arc<dyn Processor>>,
    /// Which queues they take from, the first one first.
    pub queues: Vec<TaskQueue>,
    /// Whose tasks they take.
    pub accounts: Vec<String>,
    /// How many tasks are processed at once.
    pub number: usize,
    /// The name that they have in the history of a task.
    pub name: String,
    /// How long things take.
    pub times: Times,
    /// What says that there may be tasks.
    pub wake: Arc<Notify>,
    /// What counts how long tasks take.
    pub metrics: MillMetrics,
}

/// What a look at the queues has found.
enum Found {
    /// Tasks, which are ours now.
    Tasks(Vec<TakenTask>),
    /// None that may be begun: after what time the next one becomes visible, where that is known.
    Next(Option<Duration>),
}

/// Waits for a free worker; where there is more to do, a moment longer for as many as tasks are taken at once. The
/// answer is whether there will be any.
async fn await_free(free: &Semaphore, number: usize, has_more: bool) -> bool {
    let Ok(permit) = free.acquire().await else { return false };
    drop(permit);
    if has_more {
        let wanted = u32::try_from(number.min(TENS)).unwrap_or(1);
        let _as_many_as_are_free = timeout(TOGETHER, free.acquire_many(wanted)).await;
    }
    true
}

impl Workers {
    /// Takes and processes tasks until the token is cancelled. Then what ends in the time of grace is ended, and the
    /// rest is given back.
    pub async fn run(self, stop: CancellationToken) {
        let workers = Arc::new(self);
        for processor in &workers.processors {
            let _exported_from_the_start = workers.metrics.duration(processor.kind());
        }
        let free = Arc::new(Semaphore::new(workers.number));
        let (ended, to_end) = mpsc::channel(workers.number.max(1));
        let ender = tokio::spawn(Arc::clone(&workers).end_all(to_end));
        let mut running = JoinSet::new();
        let give_back = CancellationToken::new();
        let mut order = TakeOrder::new(workers.queues.clone(), workers.accounts.clone());
        let mut wait = workers.times.shortest_wait;
        let mut has_more = false;
        let mut grace = workers.times.grace;
        while !stop.is_cancelled() {
            while running.try_join_next().is_some() {}
            // No other task acquires any: what is free now stays so.
            let Some(is_open) = stop.run_until_cancelled(await_free(&free, workers.number, has_more)).await else {
                break;
            };
            if !is_open {
                break;
            }
            let asked = Instant::now();
            let limit = free.available_permits().min(TENS);
            // What is taken is ours until its lease ends, so this is not given up halfway.
            let too_late = async {
                stop.cancelled().await;
                sleep(TAKING).await;
            };
            let found = tokio::select! {
                found = workers.take(&mut order, limit, &stop) => Some(found),
                () = too_late => None,
            };
            if stop.is_cancelled() {
                grace = grace.saturating_sub(asked.elapsed().min(TAKING));
            }
            let Some(found) = found else { break };
            let taken = match found {
                Found::Tasks(taken) => taken,
                Found::Next(next) => {
                    has_more = false;
                    let next = next.map(|next| next.max(AT_LEAST));
                    tokio::select! {
                        () = stop.cancelled() => break,
                        () = workers.wake.notified() => wait = workers.times.shortest_wait,
                        () = sleep(next.unwrap_or(wait)), if next.is_some_and(|next| next < wait) => {}
                        () = sleep(wait) => wait = (wait * 2).min(workers.times.longest_wait),
                    }
                    continue;
                }
            };
            has_more = taken.len() == limit;
            wait = workers.times.shortest_wait;
            if stop.is_cancelled() {
                for task in taken {
                    let (outcome, follow_ups) = (TaskOutcome::GivenBack, Vec::new());
                    let of_task = EndedTask { task, outcome, follow_ups, checked: None };
                    let _closed_with_the_ender = ended.send(of_task).await;
                }
                break;
            }
            for task in taken {
                let Ok(permit) = Arc::clone(&free).acquire_owned().await else { continue };
                let (workers, ended, give_back) = (Arc::clone(&workers), ended.clone(), give_back.clone());
                running.spawn(async move {
                    let processed = workers.process(&task, asked, &give_back).await;
                    let Processed { outcome, follow_ups, checked } = processed;
                    let _closed_with_the_ender = ended.send(EndedTask { task, outcome, follow_ups, checked }).await;
                    drop(permit);
                });
            }
        }
        let ended_in_time = timeout(grace, async { while running.join_next().await.is_some() {} }).await;
        if ended_in_time.is_err() {
            give_back.cancel();
            while running.join_next().await.is_some() {}
        }
        drop(ended);
        if let Err(error) = ender.await {
            tracing::error!(%error, "could not record the end of tasks; they are repeated when their leases end");
        }
    }

    /// The next tasks, at most so many; no further queue is looked at once this is to stop. Queues are looked at before
    /// anything is taken from them: most of them are empty.
    async fn take(&self, order: &mut TakeOrder, limit: usize, stop: &CancellationToken) -> Found {
        let kinds: Vec<_> = self.processors.iter().map(|processor| processor.kind()).collect();
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let mut first: Option<Duration> = None;
        for (queue, account) in order.next() {
            if stop.is_cancelled() {
                break;
            }
            let tasks = Tasks { queue, account: &account, kinds: &kinds, limit };
            match self.take_from(&tasks).await {
                Ok(Found::Tasks(taken)) => return Found::Tasks(taken),
                Ok(Found::Next(next)) => first = first.into_iter().chain(next).min(),
                Err(error) => {
                    tracing::warn!(%error, "cannot take tasks; retrying");
                    return Found::Next(None);
                }
            }
        }
        Found::Next(first)
    }

    async fn take_from(&self, tasks: &Tasks<'_>) -> Result<Found, queuekeeper_catalogue::Error> {
        let next = self.catalogue.next_task(tasks).await?;
        if next.is_none_or(|next| !next.is_zero()) {
            return Ok(Found::Next(next));
        }
        let taken = self.catalogue.take_tasks(tasks, &self.name, self.times.lease).await?;
        // Others have them, or a pause stops them.
        Ok(if taken.is_empty() { Found::Next(None) } else { Found::Tasks(taken) })
    }

    async fn process(&self, task: &TakenTask, taken: Instant, give_back: &CancellationToken) -> Processed {
        let processor = self.processors.iter().find(|processor| processor.kind() == task.subject.kind);
        let Some(processor) = processor else { return TaskOutcome::GivenBack.into() };
        let (lease, began) = (Lease::unlimited(), Instant::now());
        let processed = tokio::select! {
            biased;
            processed = processor.process(task, &lease) => processed,
            () = give_back.cancelled() => TaskOutcome::GivenBack.into(),
            why = lease.keep(&self.catalogue, task, self.times, taken) => TaskOutcome::Failed(why.to_owned()).into(),
        };
        self.metrics.duration(processor.kind()).observe(began.elapsed());
        processed
    }

    /// Writes the ends of tasks, those that have come meanwhile together.
    async fn end_all(self: Arc<Self>, mut ended: mpsc::Receiver<EndedTask>) {
        let mut tasks = Vec::with_capacity(TENS);
        while ended.recv_many(&mut tasks, TENS).await > 0 {
            let has_follow_ups = tasks.iter().any(|task| !task.follow_ups.is_empty());
            self.end(&tasks).await;
            if has_follow_ups {
                self.wake.notify_one();
            }
            tasks.clear();
        }
    }

    /// Writes the ends of tasks, again and again while the catalogue is away and their leases last.
    async fn end(&self, tasks: &[EndedTask]) {
        let began = Instant::now();
        loop {
            match self.catalogue.end_tasks(tasks).await {
                Ok(ours) => {
                    for (task, _) in tasks.iter().zip(ours).filter(|(_, ours)| !ours) {
                        tracing::warn!(
                            task = task.task.id,
                            "another worker has taken this task; its end is not recorded"
                        );
                    }
                    return;
                }
                Err(error) if error.is_temporary() && began.elapsed() < self.times.lease => {
                    tracing::warn!(%error, "cannot record the end of tasks yet; retrying");
                    sleep(self.times.margin / 60).await;
                }
                Err(error) => {
                    tracing::error!(%error, "cannot record the end of tasks; they are repeated when their leases end");
                    return;
                }
            }
        }
    }
}

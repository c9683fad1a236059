//! What the daemons share while one session lasts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::record::BatchWait;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Error, JobChanged, LockedJob, Queue};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::fence::Fence;
use super::store_holds::StoreHolds;
use super::volume_grants::Volumes;
use super::workers::Workers;
use crate::daemon::Daemon;
use crate::services::Services;
use crate::withdrawal::Restored;

/// How soon the grants of ended jobs are removed where none waits for the room: those of many jobs go in one write.
const REMOVAL: Duration = Duration::from_secs(1);

/// How soon a daemon looks again whose look has failed.
const LOOK_SOON: Duration = Duration::from_secs(1);

/// How often jobs that wait for space are looked at where nothing reports a change: what others remove frees some, too.
pub(super) const ROUND: Duration = Duration::from_secs(1);

/// A session of the daemons.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) services: Arc<Services>,
    pub(crate) queue: Queue,
    pub(crate) fence: Fence,
    workers: BTreeMap<Daemon, Workers>,
    /// Wakes each daemon.
    wakes: BTreeMap<Daemon, Arc<Notify>>,
    /// Whether `ingest` is paused.
    pub(crate) paused: watch::Sender<bool>,
    /// The stores that are held.
    pub(crate) holds: StoreHolds,
    /// On which volumes the files of jobs are.
    pub(super) volumes: Volumes,
    /// Whether no more work is taken.
    pub(crate) stopping: watch::Receiver<bool>,
    /// The jobs that are at work here: what happens in the folders of their states is their own doing.
    carried: Mutex<BTreeSet<JobId>>,
    /// The jobs that were given up here: another process may have been at work on them meanwhile.
    lost: Mutex<BTreeSet<JobId>>,
    /// The batches whose jobs are being created here, and those that were given up.
    expanding: Mutex<BTreeSet<BatchId>>,
    /// How many items each daemon listed last.
    listed: Mutex<BTreeMap<Daemon, u32>>,
    /// Whether jobs waited for room when those in Provisioning were looked at last.
    pub(super) is_room_wanted: AtomicBool,
    /// Whether the grants of ended jobs are removed soon.
    is_removal_due: AtomicBool,
    /// Which batches are withdrawn again.
    pub(crate) restored: Restored,
    /// The batches that were given back before all their jobs existed, as the process's znode names them.
    pub(crate) waits: watch::Sender<Vec<BatchWait>>,
    /// The batches whose jobs of ours have ended, to be looked at for their reports.
    ended_batches: Mutex<BTreeSet<BatchId>>,
    /// The workers at work.
    pub(crate) running: Mutex<JoinSet<()>>,
    /// What wakes daemons after a pause.
    timers: Mutex<JoinSet<()>>,
}

/// What was at work when a session ended.
#[derive(Clone, Debug, Default)]
pub(super) struct AtWork {
    /// The jobs.
    pub(super) jobs: BTreeSet<JobId>,
    /// The batches whose jobs were being created.
    pub(super) batches: BTreeSet<BatchId>,
}

impl AtWork {
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.batches.is_empty()
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.jobs.extend(other.jobs);
        self.batches.extend(other.batches);
    }
}

impl Session {
    pub(crate) fn new(services: Arc<Services>, queue: Queue, fence: Fence, stopping: watch::Receiver<bool>) -> Self {
        let bounds = services.workers.borrow().clone();
        let workers = bounds.into_iter().map(|(daemon, bounds)| (daemon, Workers::new(bounds))).collect();
        let holds = StoreHolds::of(services.stores.keys());
        let volumes = Volumes::beside(services.working.volume());
        let wakes = Daemon::ALL.into_iter().map(|daemon| (daemon, Arc::default())).collect();
        Self {
            services,
            queue,
            fence,
            workers,
            wakes,
            paused: watch::Sender::new(false),
            holds,
            volumes,
            stopping,
            carried: Mutex::default(),
            lost: Mutex::default(),
            expanding: Mutex::default(),
            listed: Mutex::default(),
            is_room_wanted: AtomicBool::new(true),
            is_removal_due: AtomicBool::new(false),
            restored: Restored::default(),
            waits: watch::Sender::default(),
            ended_batches: Mutex::default(),
            running: Mutex::default(),
            timers: Mutex::default(),
        }
    }

    /// The workers of a daemon; `None` where it does not run here.
    pub(crate) fn workers(&self, daemon: Daemon) -> Option<Arc<Semaphore>> {
        self.workers.get(&daemon).map(Workers::permits)
    }

    /// The workers of all daemons that run here.
    pub(super) fn all_workers(&self) -> impl Iterator<Item = (Daemon, &Workers)> {
        self.workers.iter().map(|(daemon, workers)| (*daemon, workers))
    }

    /// A worker of a daemon, as soon as one is free; `is_awaited` says whether a job waits for it. `None` where the
    /// daemon does not run here.
    pub(super) async fn worker(&self, daemon: Daemon, is_awaited: bool) -> Option<OwnedSemaphorePermit> {
        let workers = self.workers.get(&daemon)?;
        if is_awaited { workers.of_waiting().await } else { workers.permits().acquire_owned().await.ok() }
    }

    /// What wakes a daemon.
    pub(crate) fn wake(&self, daemon: Daemon) -> Arc<Notify> {
        self.wakes.get(&daemon).cloned().unwrap_or_default()
    }

    /// Whether a daemon takes work now, as far as the pause of `ingest` decides that.
    pub(crate) fn may_take(&self, daemon: Daemon) -> bool {
        let is_paused = daemon.stops_with_ingest() && *self.paused.borrow();
        !(is_paused || *self.stopping.borrow())
    }

    /// A worker of a daemon that is free now, to go on with a job that this process holds.
    pub(crate) fn worker_of(&self, daemon: Daemon) -> Option<OwnedSemaphorePermit> {
        let workers = self.workers.get(&daemon).filter(|_| self.may_take(daemon))?;
        workers.permits().try_acquire_owned().ok()
    }

    /// A job is at work here, until it is put down.
    pub(super) fn carry(&self, job: JobId) {
        self.carried.lock().insert(job);
    }

    /// A job is not at work here any more: from now on, the daemons take it as any other.
    pub(super) fn put_down(&self, job: JobId) {
        self.carried.lock().remove(&job);
    }

    /// A job was given up here, which others may take.
    pub(super) fn lose(&self, job: JobId) {
        self.lost.lock().insert(job);
        self.put_down(job);
    }

    /// The jobs of a batch are being created here, or are not any more.
    pub(crate) fn expands(&self, batch: BatchId, is_at_work: bool) {
        let mut expanding = self.expanding.lock();
        if is_at_work {
            expanding.insert(batch)
        } else {
            expanding.remove(&batch)
        };
    }

    /// What is at work here or was given up.
    pub(super) fn at_work(&self) -> AtWork {
        let jobs = self.carried.lock().union(&self.lost.lock()).copied().collect();
        AtWork { jobs, batches: self.expanding.lock().clone() }
    }

    /// Whether a job is at work here.
    pub(super) fn carries(&self, job: JobId) -> bool {
        self.carried.lock().contains(&job)
    }

    /// A daemon has listed so many items.
    pub(crate) fn has_listed(&self, daemon: Daemon, items: usize) {
        self.listed.lock().insert(daemon, u32::try_from(items).unwrap_or(u32::MAX));
    }

    /// How many items a daemon listed last.
    pub(super) fn listed(&self, daemon: Daemon) -> u32 {
        self.listed.lock().get(&daemon).copied().unwrap_or_default()
    }

    /// A grant has ended. Where jobs wait, they get what is free at once; else it is removed soon.
    fn grant_ended(&self, job: JobId, keeps_volume: bool) {
        if keeps_volume {
            self.services.grants.failed(job);
        } else {
            self.services.grants.ended(job);
        }
        if self.is_room_wanted.load(Ordering::Relaxed) {
            self.wake(Daemon::Provisioning).notify_one();
        } else if !self.is_removal_due.swap(true, Ordering::Relaxed) {
            self.wake_after(Daemon::Provisioning, REMOVAL);
        }
    }

    /// The grants of the jobs that have ended until now are being removed: those that end from now on need another
    /// round.
    pub(super) fn removal_begins(&self) {
        self.is_removal_due.store(false, Ordering::Relaxed);
    }

    /// A job has left our hands.
    pub(crate) fn left(&self, job: &LockedJob, changed: &JobChanged) {
        self.put_down(job.id());
        match changed.to {
            JobState::Completed | JobState::Failed => {
                self.grant_ended(job.id(), changed.to == JobState::Failed && self.keeps_volume(&job.job));
                if let Ok(batch) = job.job.batch() {
                    self.may_be_due(batch);
                }
            }
            // The watch wakes the next daemon where it is on another host; this is faster.
            to => {
                if let Some(next) = Daemon::of_state(to) {
                    self.wake(next).notify_one();
                }
            }
        }
    }

    /// A batch may be due for its report: a job of it has ended, or all of them exist now.
    pub(crate) fn may_be_due(&self, batch: BatchId) {
        self.ended_batches.lock().insert(batch);
        self.wake(Daemon::Report).notify_one();
        self.wake(Daemon::UpdateReport).notify_one();
    }

    /// Batches may be due for their reports, and could not be looked at now.
    pub(crate) fn look_later(&self, batches: impl IntoIterator<Item = BatchId>, pause: Duration) {
        let mut ended = self.ended_batches.lock();
        let before = ended.len();
        ended.extend(batches);
        if ended.len() > before {
            self.wake_after(Daemon::Report, pause);
        }
    }

    /// The queue was paused, or is not any more: each daemon looks again, also one that is just looking.
    pub(crate) fn wake_all(&self) {
        self.wakes.values().for_each(|wake| wake.notify_one());
    }

    /// A job was given back, and may be taken again after a pause.
    pub(crate) fn delayed(&self, state: JobState, pause: Duration) {
        if let Some(daemon) = Daemon::of_state(state) {
            self.wake_after(daemon, pause);
        }
    }

    /// Wakes a daemon after a pause.
    pub(crate) fn wake_after(&self, daemon: Daemon, pause: Duration) {
        let wake = self.wake(daemon);
        let mut timers = self.timers.lock();
        while timers.try_join_next().is_some() {}
        timers.spawn(async move {
            tokio::time::sleep(pause + Duration::from_millis(1)).await;
            wake.notify_one();
        });
    }

    /// Starts a worker.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut running = self.running.lock();
        while running.try_join_next().is_some() {}
        running.spawn(work);
    }

    /// Waits until something may have changed for a daemon.
    pub(crate) async fn pause(&self, daemon: Daemon, longest: Duration) {
        let (wake, mut stopping) = (self.wake(daemon), self.stopping.clone());
        tokio::select! {
            () = wake.notified() => {}
            _ = stopping.changed() => {}
            () = tokio::time::sleep(longest) => {}
        }
    }

    /// The same for a daemon that has looked for work. A look that failed by what may pass, such as a lost connection,
    /// is retried soon: the daemon has not seen what woke it, and nothing reports that once more.
    pub(crate) async fn pause_after_look(&self, daemon: Daemon, is_retried: bool) {
        let look_again = self.services.settings.look_again;
        self.pause(daemon, if is_retried { look_again.min(LOOK_SOON) } else { look_again }).await;
    }

    /// The batches whose jobs have ended since the last call.
    pub(crate) fn take_ended_batches(&self) -> BTreeSet<BatchId> {
        std::mem::take(&mut *self.ended_batches.lock())
    }

    /// Whether a job needs no room and no other attempt: it has ended, failed, is held, or is gone.
    pub(crate) async fn has_ended(&self, job: JobId) -> Result<bool, Error> {
        use JobState as S;
        match self.queue.load_job(job).await {
            Ok(job) => Ok(matches!(job.state(), Some(S::Completed | S::Deleted | S::Failed | S::Held))),
            Err(Error::Missing(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

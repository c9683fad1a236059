//! What can be locked, each in a world of its own, and a queue whose connection can be cut at any request.

use std::time::Duration;

use queuekeeper_queue::path::{AccessQueue, LockFolder};
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{
    ConflictKind, Due, Error, ItemChange, JobChange, Lock, LockedBatch, LockedJob, LockedRequest, Queue, Unlocked,
};

use queuekeeper_testkit::queue::{EPHEMERAL, World, base, borrowed, job, now};
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::wait::eventually;
use queuekeeper_testkit::wire::{Cut, Point, Wire};

pub(super) const LIMIT: Duration = Duration::from_secs(20);

/// How long a call waits for each answer where none can come. Answers that do come may take longer on a busy machine.
const NO_ANSWER: Duration = Duration::from_secs(12);

/// How often what is to be cut is done again at most, where an answer came too late before the cut.
const ATTEMPTS: u32 = 5;

/// What can be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockedItem {
    Job,
    Batch,
    Request,
    Object,
}

pub(super) const ITEMS: [LockedItem; 3] = [LockedItem::Job, LockedItem::Batch, LockedItem::Request];

/// One of them that we hold.
#[derive(Debug)]
pub(super) enum Handle {
    Job(Box<LockedJob>),
    Batch(Box<LockedBatch>),
    Request(Box<LockedRequest>),
    Object(Lock),
}

impl LockedItem {
    pub(super) fn item(self) -> &'static str {
        match self {
            Self::Job => "/jobs/jid0000000001",
            Self::Batch => "/batches/bid0000000001",
            Self::Request => "/access/small/qid0000000000",
            Self::Object => unreachable!("it has no znode but its lock"),
        }
    }

    pub(super) fn lock(self) -> String {
        if self == Self::Object { "/locks/storage/ark_1_2".to_owned() } else { format!("{}/lock", self.item()) }
    }

    /// How many requests a change of it makes that was taken just now before the one that changes it.
    pub(super) fn looks(self) -> usize {
        match self {
            Self::Job | Self::Request => 1,
            // What it is then is known from its acquisition, and an object's lock has no state.
            Self::Batch | Self::Object => 0,
        }
    }

    pub(super) async fn take(self, queue: &Queue) -> Result<Option<Handle>, Error> {
        Ok(match self {
            Self::Job => queue.acquire_job(JobState::Pending, now()).await?.0.map(|it| Handle::Job(Box::new(it))),
            Self::Batch => queue.acquire_batch(Due::Jobs, now()).await?.0.map(|it| Handle::Batch(Box::new(it))),
            Self::Request => queue.acquire_request(AccessQueue::Small).await?.0.map(|it| Handle::Request(Box::new(it))),
            Self::Object => match queue.lock_object(LockFolder::Storage, "ark:/1/2").await {
                Ok(lock) => Some(Handle::Object(lock)),
                Err(Error::Conflict(conflict)) if matches!(conflict.kind, ConflictKind::Locked { .. }) => None,
                Err(error) => return Err(error),
            },
        })
    }
}

impl Handle {
    pub(super) fn lock(&self) -> &Lock {
        match self {
            Self::Job(job) => &job.lock,
            Self::Batch(batch) => &batch.lock,
            Self::Request(request) => &request.lock,
            Self::Object(lock) => lock,
        }
    }

    pub(super) async fn step(&mut self, queue: &Queue) -> Result<(), Error> {
        match self {
            Self::Job(job) => queue.step_job(job, &JobChange::success(), now()).await.map(drop),
            Self::Batch(batch) => queue.step_batch(batch, &ItemChange::success(), now()).await.map(drop),
            Self::Request(request) => queue.step_request(request, &ItemChange::success(), now()).await.map(drop),
            Self::Object(_) => unreachable!("it has no state"),
        }
    }

    pub(super) async fn finish(&self, queue: &Queue) -> Result<(), Error> {
        match self {
            Self::Job(job) => queue.finish_job(job, &JobChange::success(), now()).await.map(drop),
            Self::Batch(batch) => queue.finish_batch(batch, &ItemChange::success(), now()).await.map(drop),
            Self::Request(request) => {
                queue.finish_request(request, &ItemChange::success(), None, now()).await.map(drop)
            }
            Self::Object(lock) => queue.unlock(lock).await.map(|unlocked| assert_eq!(unlocked, Unlocked::Released)),
        }
    }

    pub(super) async fn unlock(&self, queue: &Queue) -> Unlocked {
        self.try_unlock(queue).await.unwrap()
    }

    pub(super) async fn try_unlock(&self, queue: &Queue) -> Result<Unlocked, Error> {
        match self {
            Self::Job(job) => queue.unlock_job(job).await,
            Self::Batch(batch) => queue.unlock_batch(batch).await,
            Self::Request(request) => queue.unlock_request(request).await,
            Self::Object(lock) => queue.unlock(lock).await,
        }
    }
}

/// A world with one Pending item of each kind, and a queue whose requests go through a wire, which counts those that
/// change something.
pub(super) struct Setting {
    pub(super) world: World,
    pub(super) wire: Wire,
    pub(super) queue: Queue,
}

impl Setting {
    pub(super) async fn new() -> Self {
        Self::with(Wire::of_changes(shared().await.port()).await).await
    }

    /// Each request is counted.
    pub(super) async fn of_requests() -> Self {
        Self::with(Wire::start(shared().await.port()).await).await
    }

    async fn with(wire: Wire) -> Self {
        let mut nodes = base();
        nodes.extend(job(1, "Pending"));
        let pending = r#"{"status":"Pending","message":""}"#;
        for (path, data) in [
            ("/queuekeeper", ""),
            ("/queuekeeper/held", ""),
            ("/locks/storage", ""),
            ("/batches/bid0000000001", ""),
            ("/batches/bid0000000001/submission", "{}"),
            ("/batches/bid0000000001/status", pending),
            ("/access/small/qid0000000000", ""),
            ("/access/small/qid0000000000/token", "{}"),
            ("/access/small/qid0000000000/status", pending),
        ] {
            nodes.push((path.to_owned(), data.to_owned()));
        }
        let world = World::new(&borrowed(&nodes)).await;
        let client = connect(&format!("{}{}", wire.connect_string(), world.chroot)).await;
        Self { world, wire, queue: Queue::new(client).with_time_limit(LIMIT) }
    }

    /// The same session, whose calls soon give up waiting.
    pub(super) fn impatient(&self) -> Queue {
        self.queue.clone().with_time_limit(NO_ANSWER)
    }

    pub(super) async fn status_version(&self, kind: LockedItem) -> i32 {
        self.world.stat(&format!("{}/status", kind.item())).await.version
    }

    /// The names of what our sessions say that they hold.
    pub(super) async fn held(&self) -> Vec<String> {
        let mut names = self.world.raw.list_children("/queuekeeper/held").await.unwrap();
        names.sort_unstable();
        names
    }

    pub(super) async fn holding(&self) {
        eventually(LIMIT, "the answer is held back", async || self.wire.is_holding()).await;
    }

    /// What an operator and a daemon in Java do: the lock is broken, and made by another.
    pub(super) async fn retake(&self, kind: LockedItem) {
        self.world.raw.delete(&kind.lock(), None).await.unwrap();
        self.world.raw.create(&kind.lock(), b"", &EPHEMERAL).await.unwrap();
    }

    /// Does it, by [`Self::impatient`], while the connection is cut there for long, and gives what came of it after that
    /// is over. Where an answer came too late before the cut, it is done again.
    pub(super) async fn cut<T>(
        &self,
        point: Point,
        mut work: impl AsyncFnMut(&Queue) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let queue = self.impatient();
        self.wire.arm(Some((point, Cut::Long)));
        for _ in 0..ATTEMPTS {
            let came = work(&queue).await;
            if self.wire.was_cut() {
                self.wire.restore();
                return came;
            }
            assert!(came.is_err_and(|error| error.is_connection()), "{point:?}: it came without the cut");
        }
        panic!("{point:?}: the connection was not cut");
    }
}

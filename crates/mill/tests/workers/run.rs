//! Workers take, process, give back and give up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::tasks::{NewTask, QueueFigures, TakenTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject};
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_mill::worker::{Lease, Processed, Processor, Times, Workers};
use queuekeeper_store::Key;
use tempfile::TempDir;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

const QUEUES: [TaskQueue; 2] = [TaskQueue::Audit, TaskQueue::DuplicationHigh];

/// Waits that a test never sees the end of, but for the lease.
const TIMES: Times = Times {
    lease: Duration::from_secs(30),
    stall: Duration::from_secs(20),
    margin: Duration::from_secs(1),
    shortest_wait: Duration::from_mins(1),
    longest_wait: Duration::from_mins(1),
    grace: Duration::from_mins(1),
};

fn task(kind: TaskKind, queue: TaskQueue, account: &str, key: &str) -> NewTask {
    let subject = TaskSubject {
        kind,
        account: account.to_owned(),
        space: "space".parse().unwrap(),
        key: Key::new(key.as_bytes()).ok(),
        destination: Some("replica".parse().unwrap()),
    };
    NewTask { queue, subject, source: None }
}

async fn catalogue() -> (Catalogue, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("catalogue.db").display());
    (Catalogue::open(&url).await.unwrap(), directory)
}

fn workers(catalogue: &Catalogue, processors: Vec<Arc<dyn Processor>>, times: Times) -> Workers {
    Workers {
        catalogue: catalogue.clone(),
        processors,
        queues: QUEUES.to_vec(),
        accounts: vec!["one".to_owned(), "two".to_owned()],
        number: 4,
        name: "worker-1".to_owned(),
        times,
        wake: Arc::new(Notify::new()),
        metrics: MillMetrics::default(),
    }
}

async fn figures(catalogue: &Catalogue) -> Vec<QueueFigures> {
    let figures = catalogue.task_figures().await.unwrap();
    figures.into_iter().filter(|of| of.waiting + of.taken + of.held + of.dead > 0).collect()
}

/// Each item that was changed is to be copied.
struct Looks;

#[async_trait]
impl Processor for Looks {
    fn kind(&self) -> TaskKind {
        TaskKind::Audit
    }

    async fn process(&self, task: &TakenTask, _lease: &Lease) -> Processed {
        let mut copy = task.subject.clone();
        copy.kind = TaskKind::Duplicate;
        let follow_ups = vec![NewTask { queue: TaskQueue::DuplicationHigh, subject: copy, source: None }];
        Processed { outcome: TaskOutcome::Done, follow_ups, checked: None }
    }
}

/// Says when it has begun, and ends when it is allowed to.
struct Copies {
    begun: Semaphore,
    allowed: Semaphore,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

impl Copies {
    fn new(allowed: usize) -> Arc<Self> {
        let (at_once, most_at_once) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { begun: Semaphore::new(0), allowed: Semaphore::new(allowed), at_once, most_at_once })
    }

    async fn wait_for(&self, number: u32) {
        self.begun.acquire_many(number).await.unwrap().forget();
    }
}

#[async_trait]
impl Processor for Copies {
    fn kind(&self) -> TaskKind {
        TaskKind::Duplicate
    }

    async fn process(&self, _task: &TakenTask, _lease: &Lease) -> Processed {
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        self.begun.add_permits(1);
        self.allowed.acquire().await.unwrap().forget();
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        TaskOutcome::Done.into()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_can_be_processed_is_done_with_what_follows_from_it_and_the_rest_is_left() {
    let (catalogue, _directory) = catalogue().await;
    let number = |account: &str, count: usize| -> Vec<_> {
        (0..count).map(|at| task(TaskKind::Audit, TaskQueue::Audit, account, &format!("{at}"))).collect()
    };
    let unknown =
        [task(TaskKind::Repair, TaskQueue::Audit, "one", "r"), task(TaskKind::Audit, TaskQueue::Audit, "three", "t")];
    for tasks in [number("one", 30), number("two", 25), unknown.to_vec()] {
        catalogue.put_tasks(&tasks).await.unwrap();
    }
    let copies = Copies::new(0);
    let workers = workers(&catalogue, vec![Arc::new(Looks), Arc::clone(&copies) as _], TIMES);
    let wake = Arc::clone(&workers.wake);
    let stop = CancellationToken::new();
    let run = tokio::spawn(workers.run(stop.clone()));
    copies.wait_for(4).await;
    // What is requested later is done, too.
    copies.allowed.add_permits(1000);
    copies.wait_for(51).await;
    catalogue.put_tasks(&number("two", 26)).await.unwrap();
    wake.notify_one();
    copies.wait_for(26).await;
    stop.cancel();
    run.await.unwrap();
    assert_eq!(copies.most_at_once.load(Ordering::SeqCst), 4);
    let left = figures(&catalogue).await;
    assert_eq!((left.len(), left[0].queue, left[0].waiting, left[0].taken), (1, TaskQueue::Audit, 2, 0));
    assert_eq!(catalogue.check().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whenever_they_are_stopped_no_task_stays_theirs() {
    let (catalogue, _directory) = catalogue().await;
    for trial in 0..40 {
        let tasks =
            (0..50).map(|at| task(TaskKind::Duplicate, TaskQueue::DuplicationHigh, "one", &format!("{trial}/{at}")));
        catalogue.put_tasks(&tasks.collect::<Vec<_>>()).await.unwrap();
        let copies = Copies::new(1000);
        let workers = workers(&catalogue, vec![Arc::clone(&copies) as _], TIMES);
        let stop = CancellationToken::new();
        let run = tokio::spawn(workers.run(stop.clone()));
        copies.wait_for(1).await;
        // Others are being looked for, taken, or ended.
        tokio::time::sleep(Duration::from_micros(173) * trial).await;
        stop.cancel();
        run.await.unwrap();
        let left = figures(&catalogue).await;
        assert!(left.iter().all(|of| of.taken == 0), "{trial}: {left:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_stops_ends_what_it_can_and_gives_back_the_rest_as_it_was() {
    let (catalogue, _directory) = catalogue().await;
    let tasks: Vec<_> =
        (0..4).map(|at| task(TaskKind::Duplicate, TaskQueue::DuplicationHigh, "one", &format!("{at}"))).collect();
    catalogue.put_tasks(&tasks).await.unwrap();
    let copies = Copies::new(1);
    let times = Times { grace: Duration::from_millis(100), ..TIMES };
    let stop = CancellationToken::new();
    let run = tokio::spawn(workers(&catalogue, vec![Arc::clone(&copies) as _], times).run(stop.clone()));
    copies.wait_for(4).await;
    stop.cancel();
    run.await.unwrap();
    let left = figures(&catalogue).await;
    assert_eq!((left.len(), left[0].waiting, left[0].taken), (1, 3, 0));
    let again = queuekeeper_catalogue::tasks::Tasks {
        queue: TaskQueue::DuplicationHigh,
        account: "one",
        kinds: &[TaskKind::Duplicate],
        limit: 10,
    };
    let taken = catalogue.take_tasks(&again, "worker-2", TIMES.lease).await.unwrap();
    assert_eq!(taken.iter().map(|task| task.attempts).collect::<Vec<_>>(), [1, 1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_without_progress_fails_and_waits_for_its_next_attempt() {
    let (catalogue, _directory) = catalogue().await;
    catalogue.put_tasks(&[task(TaskKind::Duplicate, TaskQueue::DuplicationHigh, "one", "a")]).await.unwrap();
    let copies = Copies::new(0);
    // The worker looks after each fifth of the lease: the first look extends it, and the second one ends the task. Where
    // that came behind the end of the lease, the task would be taken once more.
    let times = Times { lease: Duration::from_secs(15), stall: Duration::from_secs(4), ..TIMES };
    let stop = CancellationToken::new();
    let run = tokio::spawn(workers(&catalogue, vec![Arc::clone(&copies) as _], times).run(stop.clone()));
    copies.wait_for(1).await;
    let failed = async {
        while figures(&catalogue).await[0].taken > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), failed).await.unwrap();
    stop.cancel();
    run.await.unwrap();
    let left = figures(&catalogue).await;
    assert_eq!((left[0].waiting, left[0].taken), (1, 0));
    assert_eq!(copies.begun.available_permits(), 0);
}

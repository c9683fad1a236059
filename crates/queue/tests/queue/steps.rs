//! The steps of a job that is held: one request each, and no blindness for what another did meanwhile.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::time::Duration;

use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::Path;
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_queue::{BatchReport, Due, Error, ItemChange, JobChange, LockedJob, Queue, Transaction};

use queuekeeper_testkit::queue::{PERSISTENT, World, base, borrowed, data, job, now};
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::wire::Wire;

/// A queue whose requests are counted.
struct Counted {
    world: World,
    wire: Wire,
}

impl Counted {
    async fn new(nodes: &[(&str, &str)]) -> Self {
        let mut world = World::new(nodes).await;
        let wire = Wire::start(shared().await.port()).await;
        let client = connect(&format!("{}{}", wire.connect_string(), world.chroot)).await;
        world.queue = Queue::new(client).with_time_limit(Duration::from_mins(1));
        Self { world, wire }
    }

    /// Makes a step, and gives how many requests that took.
    async fn step(&self, job: &mut LockedJob) -> usize {
        self.wire.arm(None);
        self.world.queue.step_job(job, &JobChange::success(), now()).await.unwrap();
        self.wire.requests()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_one_request_where_nobody_else_has_touched_the_job() {
    let counted = Counted::new(&borrowed(&[base(), job(1, "Pending")].concat())).await;
    let world = &counted.world;
    let mut job = world.queue.acquire_job(JobState::Pending, now()).await.unwrap().0.unwrap();
    assert_eq!(counted.step(&mut job).await, 2, "the first one looks what is around the job");
    for state in [JobState::Provisioning, JobState::Downloading] {
        assert_eq!((counted.step(&mut job).await, job.state), (1, state));
    }

    // An entry and a reference that were lost are made again, and what is too much goes.
    let place = |state: &str| format!("/jobs/states/{state}/05-jid0000000001");
    world.raw.delete(&place("downloading"), None).await.unwrap();
    world.raw.create(&place("failed"), b"", &PERSISTENT).await.unwrap();
    let reference = "/batches/bid0000000000/states/batch-processing/jid0000000001";
    world.raw.delete(reference, None).await.unwrap();
    counted.step(&mut job).await;
    let tree = data(&world.tree().await);
    let entries: Vec<_> = tree.keys().filter(|path| path.ends_with("05-jid0000000001")).collect();
    assert_eq!(entries, [&place("processing")]);
    assert!(tree.contains_key(reference));
    assert_eq!(counted.step(&mut job).await, 2, "it looks once more");
    assert_eq!((counted.step(&mut job).await, job.state), (1, JobState::Recording));

    // What another wrote is not written over.
    let status = "/jobs/jid0000000001/status";
    world.raw.set_data(status, br#"{"status":"Recording","retry_count":0}"#, None).await.unwrap();
    let refused = world.queue.step_job(&mut job, &JobChange::success(), now()).await;
    assert!(matches!(&refused, Err(Error::Conflict(conflict)) if conflict.path.to_string() == status), "{refused:?}");
    world.raw.delete("/jobs/jid0000000001/lock", None).await.unwrap();
    let lost = world.queue.finish_job(&job, &JobChange::success(), now()).await;
    assert!(
        matches!(&lost, Err(Error::Conflict(conflict)) if conflict.path.to_string().ends_with("/lock")),
        "{lost:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_a_batch_that_is_gone_is_finished_all_the_same() {
    let counted = Counted::new(&borrowed(&[base(), job(1, "Recording")].concat())).await;
    let world = &counted.world;
    let mut job = world.queue.acquire_job(JobState::Recording, now()).await.unwrap().0.unwrap();
    counted.step(&mut job).await;
    for path in data(&world.tree().await).keys().rev().filter(|path| path.starts_with("/batches/bid0000000000")) {
        world.raw.delete(path, None).await.unwrap();
    }
    world.queue.finish_job(&job, &JobChange::success(), now()).await.unwrap();
    let tree = data(&world.tree().await);
    assert!(tree.contains_key("/jobs/states/completed/05-jid0000000001"), "{tree:#?}");
    assert!(!tree.keys().any(|path| path.starts_with("/batches/bid0000000000")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_changed_in_one_request_and_fails_together_with_the_creation_of_its_jobs() {
    let counted = Counted::new(&[]).await;
    let world = &counted.world;
    let batch = world.queue.create_batch(br#"{"batchID":"u","profile":"demo"}"#, now()).await.unwrap();
    let locked = world.queue.acquire_batch(Due::Jobs, now()).await.unwrap().0.unwrap();
    counted.wire.arm(None);
    world.queue.finish_batch(&locked, &ItemChange::to(BatchState::Reporting), now()).await.unwrap();
    assert_eq!(counted.wire.requests(), 1);
    let json = world.json(&format!("/batches/{batch}/status")).await;
    assert_eq!(json["status"], "Reporting");

    // Otherwise a daemon would take up the creation, and make jobs of a batch that is Failed.
    let batch = world.queue.create_batch(br#"{"batchID":"v","profile":"demo"}"#, now()).await.unwrap();
    let mut poll = world.queue.poll_batches(Due::Jobs).await.unwrap().expanded();
    let locked = poll.next(now()).await.unwrap().unwrap();
    let expansion = format!("/queuekeeper/expansions/{batch}");
    assert!(world.exists(&expansion).await);
    world.queue.finish_batch(&locked, &ItemChange::to(BatchState::Failed), now()).await.unwrap();
    assert!(!world.exists(&expansion).await);
    assert!(world.exists(&format!("/batches/{batch}/states/batch-processing")).await);
    assert!(!world.exists(&format!("/batches/{batch}/lock")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_follows_a_job_whose_priority_was_changed_and_fails_with_what_it_takes_along() {
    let counted = Counted::new(&borrowed(&[base(), job(1, "Pending")].concat())).await;
    let world = &counted.world;
    let mut job = world.queue.acquire_job(JobState::Pending, now()).await.unwrap().0.unwrap();
    counted.step(&mut job).await;
    let [old, new] = ["05", "09"].map(|priority| format!("/jobs/states/estimating/{priority}-jid0000000001"));
    world.raw.set_data("/jobs/jid0000000001/priority", b"9", None).await.unwrap();
    world.raw.create(&new, b"", &PERSISTENT).await.unwrap();
    world.raw.delete(&old, None).await.unwrap();
    counted.step(&mut job).await;
    let entries = async || -> Vec<String> {
        data(&world.tree().await).into_keys().filter(|path| path.ends_with("-jid0000000001")).collect()
    };
    assert_eq!(entries().await, ["/jobs/states/provisioning/09-jid0000000001"]);

    // An entry that is there before its time is no obstacle either.
    counted.step(&mut job).await;
    world.raw.create("/jobs/states/processing/09-jid0000000001", b"", &PERSISTENT).await.unwrap();
    counted.step(&mut job).await;
    assert_eq!(entries().await, ["/jobs/states/processing/09-jid0000000001"]);

    // What is refused for the sake of something else is not tried again with a look at the job.
    counted.step(&mut job).await;
    let there = Path::expansion(BatchId::new(5));
    world.queue.commit(Transaction::new().create(there.clone(), "x")).await.unwrap();
    for also in
        [Transaction::new().create(there, "x"), Transaction::new().delete(Path::expansion(BatchId::new(6)), None)]
    {
        let change = JobChange::success().with_also(also.clone());
        counted.wire.arm(None);
        let error = world.queue.step_job(&mut job, &change, now()).await.unwrap_err();
        assert!(error.to_string().contains("/queuekeeper/expansions/"), "{error}");
        assert_eq!(counted.wire.requests(), 2, "the step, and a look for why it was refused: {error}");
    }
    assert_eq!(entries().await, ["/jobs/states/storing/09-jid0000000001"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_is_written_changes_nothing_else_of_a_batch_that_is_held() {
    let world = World::new(&borrowed(&base())).await;
    let locked = world.queue.acquire_batch(Due::Report, now()).await.unwrap().0.unwrap();
    let jobs = |numbers: &[u32]| numbers.iter().copied().map(JobId::new).collect::<Vec<_>>();
    for (version, failed) in [(0, vec![1, 2]), (1, vec![2])] {
        let before = data(&world.tree().await);
        let report = BatchReport { failed: jobs(&failed), completed: jobs(&[3]), ..BatchReport::default() };
        world.queue.write_report(&locked, &report, now()).await.unwrap();
        let path = "/batches/bid0000000000/status-report";
        assert_eq!(world.stat(path).await.version, version);
        let written = world.queue.load_batch(BatchId::new(0)).await.unwrap().last_report().unwrap();
        assert_eq!((written.failed, written.completed), (jobs(&failed), jobs(&[3])));
        let changed = data(&world.tree().await).into_iter().filter(|(at, text)| before.get(at) != Some(text));
        assert_eq!(changed.map(|(at, _)| at).collect::<Vec<_>>(), [path]);
    }
    let status = "/batches/bid0000000000/status";
    world.raw.set_data(status, br#"{"status":"Reporting"}"#, None).await.unwrap();
    let error = world.queue.write_report(&locked, &BatchReport::default(), now()).await.unwrap_err();
    assert!(matches!(&error, Error::Conflict(conflict) if conflict.path.to_string() == status), "{error}");
}

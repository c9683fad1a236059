//! What plans show beside their transactions, and what they refuse before anything is written.

use queuekeeper_queue::id::{BatchId, JobId, Priority};
use queuekeeper_queue::path::{self, Path};
use queuekeeper_queue::state::{BatchState, JobState, State};
use queuekeeper_queue::{BatchTarget, Error, JobChange, JobTarget, Queue};
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use std::ops::ControlFlow;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use queuekeeper_testkit::queue::{EPHEMERAL, PERSISTENT, World, base, borrowed, data, job, now};
use queuekeeper_testkit::server::connect;

const BATCH: BatchId = BatchId::new(0);

/// The base's batch in a state, and jobs of it.
fn nodes(batch: &str, jobs: &[(u32, &str)]) -> Vec<(String, String)> {
    let mut nodes = base();
    for (path, data) in &mut nodes {
        if path.ends_with("/status") {
            *data = data.replace("Reporting", batch);
        }
    }
    nodes.extend(jobs.iter().flat_map(|(number, state)| job(*number, state)));
    nodes
}

fn target(number: u32, priority: i64) -> JobTarget {
    JobTarget::new(JobId::new(number)).located_in(BATCH, Priority::new(priority).expect("two digits"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_tells_the_state_of_the_batch_and_the_hold_on_the_collection_however_it_was_guessed() {
    let world = World::new(&borrowed(&nodes("Failed", &[(1, "Held"), (2, "Failed"), (3, "Failed")]))).await;
    let hold = world.queue.hold_collection("demo", "me", "disk", now()).await.unwrap();
    world.queue.hold_collection("other", "you", "tape", now()).await.unwrap();
    let release = JobChange::to(JobState::Pending).by_operator();
    let before = world.tree().await;
    let job = world.queue.load_job(JobId::new(1)).await.unwrap();
    let mut plans = Vec::new();
    for target in [
        JobTarget::new(JobId::new(1)),
        target(1, 5),
        target(1, 5).in_collection("demo"),
        target(1, 7).in_collection("other"),
        target(1, 5).in_collection("no/name"),
        JobTarget::from(&job),
    ] {
        let plan = world.queue.plan_job_change(target, &release, now()).await.unwrap();
        assert_eq!((plan.batch, plan.batch_state, plan.hold.as_ref()), (BATCH, Some(BatchState::Failed), Some(&hold)));
        plans.push(plan);
    }
    assert!(plans.iter().all(|plan| *plan == plans[0]));
    // To Pending by the action's own rule, and to a state where a hold does not matter.
    let resumed =
        world.queue.plan_job_change(target(2, 5).in_collection("demo"), &JobChange::resume(), now()).await.unwrap();
    assert_eq!((resumed.to, resumed.hold), (JobState::Downloading, None));
    assert_eq!(world.tree().await, before);
    world.queue.unlock(&hold.lock).await.unwrap();
    let free = world.queue.plan_job_change(target(1, 5).in_collection("demo"), &release, now()).await.unwrap();
    assert_eq!(free.hold, None);
    world.queue.commit_job_plan(&free).await.unwrap();
    assert_eq!(world.json("/jobs/jid0000000001/status").await["status"], "Pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_not_released_while_its_own_batch_is_being_withdrawn_whichever_was_guessed() {
    let other = BatchId::new(8);
    let release = JobChange::to(JobState::Pending).by_operator();
    for (withdrawn, is_refused) in [(BATCH, true), (other, false)] {
        let world = World::new(&borrowed(&nodes("Failed", &[(1, "Held")]))).await;
        let mark = format!("/queuekeeper/withdrawals/{withdrawn}");
        world.make(&[("/queuekeeper", ""), ("/queuekeeper/withdrawals", ""), (&mark, "")]).await;
        let of_other = JobTarget::new(JobId::new(1)).located_in(other, Priority::MAX);
        for target in [target(1, 5), target(1, 7), of_other, JobTarget::new(JobId::new(1))] {
            let plan = world.queue.plan_job_change(target, &release, now()).await;
            assert_eq!(matches!(plan, Err(Error::Invalid { .. })), is_refused, "{withdrawn}: {plan:?}");
        }
    }
}

/// Another change of the priority moves the entry while a plan is made, between the look at the job and that at its
/// entry.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_found_the_entry_elsewhere_is_refused_where_the_priority_has_changed_since() {
    let world = World::new(&borrowed(&nodes("Processing", &[(1, "Pending")]))).await;
    let [pending, held] =
        ["pending", "held"].map(|folder| move |priority| format!("/jobs/states/{folder}/{priority}-jid0000000001"));
    world.raw.delete(&pending("05"), None).await.unwrap();
    world.raw.create(&pending("25"), b"", &PERSISTENT).await.unwrap();
    let hold = JobChange::to(JobState::Held).by_operator();
    let plan = world.queue.plan_job_change(JobId::new(1), &hold, now()).await.unwrap();
    world.raw.set_data("/jobs/jid0000000001/priority", b"25", None).await.unwrap();
    assert!(matches!(world.queue.commit_job_plan(&plan).await, Err(Error::Conflict(_))));
    let plan = world.queue.plan_job_change(JobId::new(1), &hold, now()).await.unwrap();
    world.queue.commit_job_plan(&plan).await.unwrap();
    assert!(world.tree().await.contains_key(&held("25")));

    // One that is elsewhere for good is no obstacle.
    let world = World::new(&borrowed(&nodes("Processing", &[(1, "Pending")]))).await;
    world.raw.delete(&pending("05"), None).await.unwrap();
    world.raw.create(&pending("25"), b"", &PERSISTENT).await.unwrap();
    let plan = world.queue.plan_job_change(JobId::new(1), &hold, now()).await.unwrap();
    world.queue.commit_job_plan(&plan).await.unwrap();
    let tree = world.tree().await;
    assert!(tree.contains_key(&held("05")) && !tree.contains_key(&pending("25")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_purged_after_its_batchs_report_and_not_before() {
    for state in BatchState::ALL {
        let world = World::new(&borrowed(&nodes(state.name(), &[(1, "Completed"), (2, "Storing")]))).await;
        let before = world.tree().await;
        let good = target(1, 5).at_version(0);
        let plan = world.queue.plan_purge_job(good.clone()).await;
        let is_reported = matches!(state, BatchState::Completed | BatchState::Failed | BatchState::Deleted);
        if !is_reported {
            let error = plan.unwrap_err();
            assert!(error.to_string().contains(&format!("its batch bid0000000000 is {state}")), "{error}");
            assert_eq!(world.tree().await, before);
            continue;
        }
        let plan = plan.unwrap();
        // A wrong guess or none costs time and changes nothing.
        for other in [
            target(1, 9),
            JobTarget::new(JobId::new(1)),
            JobTarget::new(JobId::new(1)).located_in(BatchId::new(8), Priority::MAX),
        ] {
            assert_eq!(world.queue.plan_purge_job(other).await.unwrap(), plan);
        }
        assert!(matches!(world.queue.plan_purge_job(good.at_version(3)).await, Err(Error::Conflict(_))));
        assert!(matches!(world.queue.plan_purge_job(target(2, 5)).await, Err(Error::Invalid { .. })));
        assert_eq!(world.tree().await, before);
        // The report is to be made again: what was planned before that is refused.
        let status = "/batches/bid0000000000/status";
        world.raw.set_data(status, br#"{"status":"UpdateReporting"}"#, None).await.unwrap();
        let changed = world.tree().await;
        assert!(matches!(world.queue.commit(&plan.transaction).await, Err(Error::Conflict(_))));
        assert_eq!(world.tree().await, changed);
        // Its batch is gone: no daemon will report it any more.
        for path in world.tree().await.into_keys().rev().filter(|path| path.starts_with("/batches/")) {
            world.raw.delete(&path, None).await.unwrap();
        }
        let mut expected = data(&world.tree().await);
        let plan = world.queue.plan_purge_job(target(1, 5)).await.unwrap();
        world.queue.commit(&plan.transaction).await.unwrap();
        expected.retain(|path, _| !path.contains("jid0000000001"));
        assert_eq!(data(&world.tree().await), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_finds_a_job_without_reference_by_the_list_or_by_asking_all_jobs() {
    let reference = "/batches/bid0000000000/states/batch-deleted/jid0000000002";
    let entry = "/jobs/states/deleted/05-jid0000000001";
    for list in [None, Some(vec![JobId::new(2), JobId::new(1), JobId::new(77)])] {
        let mut nodes = nodes("Deleted", &[(1, "Deleted"), (2, "Deleted")]);
        nodes.retain(|(path, _)| path != reference && path != entry);
        let world = World::new(&borrowed(&nodes)).await;
        let target = BatchTarget::from(BATCH).at_version(0);
        let target = list.iter().fold(target, |target, list| target.with_jobs(list.clone()));
        let plan = world.queue.plan_purge(target).await.unwrap();
        assert_eq!((plan.from, plan.version, plan.jobs()), (BatchState::Deleted, 0, 2));
        world.queue.execute(&plan, 0, |_| ControlFlow::Continue(())).await.unwrap();
        assert!(world.tree().await.keys().all(|path| !path.contains("jid") && !path.contains("bid0000000000")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_with_a_locked_job_is_neither_deleted_nor_purged_and_nothing_is_written() {
    for (batch, jobs, locked) in [
        ("Failed", [(1, "Failed"), (2, "Failed")], 2),
        ("Failed", [(1, "Failed"), (2, "Completed")], 2),
        ("Deleted", [(1, "Deleted"), (2, "Completed")], 1),
    ] {
        let world = World::new(&borrowed(&nodes(batch, &jobs))).await;
        world.raw.create(&format!("/jobs/jid{locked:010}/lock"), b"", &EPHEMERAL).await.unwrap();
        let before = world.tree().await;
        let error = match batch {
            "Deleted" => world.queue.plan_purge(BATCH).await.unwrap_err(),
            _ => world.queue.plan_delete(BATCH, "given up", now()).await.unwrap_err(),
        };
        let holder = format!("/jobs/jid{locked:010}/lock is held by session {}", world.raw.session_id());
        assert!(error.to_string().starts_with(&holder), "{error}");
        assert_eq!(world.tree().await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_status_was_changed_more_often_than_its_other_znodes_is_purged_whole() {
    let world = World::new(&borrowed(&nodes("Failed", &[(2, "Deleted")]))).await;
    let status = "/jobs/jid0000000002/status";
    let data = world.raw.get_data(status).await.unwrap().0;
    world.raw.set_data(status, &data, None).await.unwrap();
    let plan = world.queue.plan_purge_job(target(2, 5).at_version(1)).await.unwrap();
    world.queue.commit(&plan.transaction).await.unwrap();
    assert!(!world.exists("/jobs/jid0000000002").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_lock_that_was_seen_is_broken_and_only_the_pause_that_was_seen_is_ended() {
    let world = World::new(&borrowed(&nodes("Reporting", &[(1, "Storing")]))).await;
    let path = "/jobs/jid0000000001/lock";
    world.raw.create(path, b"", &EPHEMERAL).await.unwrap();
    let seen = world.queue.find_lock(&Path::parse(path)).await.unwrap().unwrap();
    assert_eq!(seen.session, Some(world.raw.session_id()));
    let plan = world.queue.plan_break_lock(&seen).await.unwrap();
    let expected = "check /jobs/jid0000000001/status at version 0\ndelete /jobs/jid0000000001/lock at version 0\n";
    assert_eq!(plan.to_string(), expected);
    // Its holder finished after all and changed the state: a later holder's lock stays.
    world.raw.delete(path, None).await.unwrap();
    world.raw.set_data("/jobs/jid0000000001/status", br#"{"status":"Recording"}"#, None).await.unwrap();
    world.raw.create(path, b"", &EPHEMERAL).await.unwrap();
    let before = world.tree().await;
    let error = world.queue.commit(&plan).await.unwrap_err();
    assert!(error.to_string().contains("has changed since it was seen"), "{error}");
    let error = world.queue.plan_break_lock(&seen).await.unwrap_err();
    assert!(error.to_string().contains("has another holder"), "{error}");
    assert_eq!(world.tree().await, before);

    // The lock of any item goes with the status that was read beside it.
    world.make(&[("/access/small/qid0000000001", ""), ("/access/small/qid0000000001/status", "{}")]).await;
    for item in ["/batches/bid0000000000", "/access/small/qid0000000001"] {
        let lock = format!("{item}/lock");
        world.raw.create(&lock, b"", &EPHEMERAL).await.unwrap();
        let seen = world.queue.find_lock(&Path::parse(&lock)).await.unwrap().unwrap();
        let plan = world.queue.plan_break_lock(&seen).await.unwrap();
        assert_eq!(plan.to_string(), format!("check {item}/status at version 0\ndelete {lock} at version 0\n"));
    }

    let ingest = path::QueueName::Ingest;
    let pause = world.queue.pause(ingest, "me", "disk", now()).await.unwrap();
    let hold = world.queue.hold_collection("demo", "me", "disk", now()).await.unwrap();
    for path in ["/locks/queue/ingest", "/locks/collections/demo"] {
        world.raw.delete(path, None).await.unwrap();
        world.raw.create(path, b"", &PERSISTENT).await.unwrap();
    }
    let before = world.tree().await;
    assert!(matches!(world.queue.plan_unpause(ingest, Some(&pause.lock)).await, Err(Error::Conflict(_))));
    assert!(matches!(world.queue.plan_release_collection("demo", Some(&hold.lock)).await, Err(Error::Conflict(_))));
    let pause = world.queue.paused(ingest).await.unwrap().unwrap();
    let plan = world.queue.plan_unpause(ingest, Some(&pause.lock)).await.unwrap();
    assert_eq!(world.tree().await, before);
    world.queue.commit(&plan).await.unwrap();
    assert_eq!(world.queue.paused(ingest).await.unwrap(), None);
}

/// How many packets a server has received.
async fn received(server: &PrivateServer) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.expect("the server listens");
    stream.write_all(b"srvr").await.expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("the server answers");
    let line = answer.lines().find_map(|line| line.strip_prefix("Received: ")).expect("it counts packets");
    line.parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_planned_where_it_is_thought_to_be_costs_one_round_trip() {
    const TIMES: u64 = 100;
    // A server of its own: only our packets are counted there, and a ping now and then.
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let (raw, client) = (connect(&server.connect_string()).await, connect(&server.connect_string()).await);
    let world = World { raw, queue: Queue::new(client), chroot: String::new() };
    world.make(&borrowed(&nodes("Failed", &[(1, "Held"), (2, "Deleted")]))).await;
    let release = JobChange::to(JobState::Pending).by_operator();
    let before = received(&server).await;
    for _ in 0..TIMES {
        let held = target(1, 5).in_collection("demo").at_version(0);
        world.queue.plan_job_change(held, &release, now()).await.unwrap();
        world.queue.plan_priority(target(1, 5), Priority::MAX).await.unwrap();
        world.queue.plan_purge_job(target(2, 5).at_version(0)).await.unwrap();
    }
    let packets = received(&server).await - before;
    assert!((3 * TIMES..3 * TIMES + TIMES / 2).contains(&packets), "{packets} packets for {} plans", 3 * TIMES);
}

//! Deleting and purging whole batches, interrupted after each transaction.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use queuekeeper_queue::id::{BatchId, JobId, RequestId};
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::JobOutcome;
use queuekeeper_queue::{BulkPlan, CleanUpProgress, Error, Progress, Queue};

use queuekeeper_testkit::queue::{EPHEMERAL, World, base, borrowed, data, job, now};
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::wire::{Cut, Point, Wire};

const JOBS: u32 = 7;

/// A batch in a state with seven jobs, the last but one of another state, and another batch with a job.
async fn world(batch: &str, jobs: &str) -> World {
    let mut nodes = base();
    for (path, data) in &mut nodes {
        if path.ends_with("/status") {
            *data = data.replace("Reporting", batch);
        }
    }
    for number in 1..=JOBS {
        nodes.extend(job(number, if number == 6 { "Completed" } else { jobs }));
    }
    // Faults that a purge must not trip over: an unexpected znode, a second entry, a missing entry.
    nodes.push(("/jobs/jid0000000002/notes".into(), "x".into()));
    nodes.push(("/jobs/jid0000000002/notes/today".into(), "y".into()));
    nodes.push(("/jobs/states/pending/104-jid0000000003".into(), String::new()));
    nodes.retain(|(path, _)| !(path.starts_with("/jobs/states/") && path.ends_with("/05-jid0000000004")));
    nodes.push(("/batches/bid0000000001".into(), String::new()));
    nodes.push(("/batches/bid0000000001/status".into(), r#"{"status":"Reporting"}"#.into()));
    nodes.push(("/jobs/jid0000000090".into(), String::new()));
    nodes.push(("/jobs/jid0000000090/bid".into(), "bid0000000001".into()));
    let world = World::new(&borrowed(&nodes)).await;
    World { queue: world.queue.clone().with_jobs_per_transaction(2), ..world }
}

/// Each job that exists has exactly one reference, and each reference its job.
async fn check_references(world: &World) {
    let Ok(report) = world.queue.batch_report(BatchId::new(0)).await else { return };
    let mut referred: Vec<JobId> = JobOutcome::ALL.iter().flat_map(|outcome| report.of(*outcome)).copied().collect();
    referred.sort_unstable();
    let tree = world.tree().await;
    let jobs = (1..=JOBS).map(JobId::new).filter(|job| tree.contains_key(&format!("/jobs/{job}")));
    assert_eq!(referred, jobs.collect::<Vec<_>>());
}

async fn execute(queue: &Queue, plan: &BulkPlan, chunks: usize) {
    for chunk in &plan.chunks[..chunks] {
        queue.commit(&chunk.transaction).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_that_is_interrupted_anywhere_and_begun_again_leaves_a_clean_tree() {
    for done in 0..=5 {
        let world = world("Deleted", "Deleted").await;
        let mut expected = data(&world.tree().await);
        let gone = |path: &str| {
            path.contains("bid0000000000")
                || path == "/batch-uuids/uuid-0"
                || (1..=JOBS).any(|number| path.contains(&format!("jid{number:010}")))
        };
        expected.retain(|path, _| !gone(path));
        let plan = world.queue.plan_purge(BatchId::new(0)).await.unwrap();
        assert_eq!((plan.chunks.len(), plan.jobs()), (5, 7));
        execute(&world.queue, &plan, done).await;
        check_references(&world).await;
        if done < 5 {
            let rest = world.queue.plan_purge(BatchId::new(0)).await.unwrap();
            let mut reported = Vec::new();
            let report = |progress: Progress| {
                reported.push(progress.jobs);
                ControlFlow::Continue(())
            };
            world.queue.execute(&rest, 0, report).await.unwrap();
            assert_eq!(reported.len(), rest.chunks.len());
            assert_eq!(reported.last().copied().unwrap(), rest.jobs());
        }
        assert_eq!(data(&world.tree().await), expected, "after {done} transactions");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_is_interrupted_anywhere_and_begun_again_deletes_all_but_what_is_completed() {
    for done in 0..=4 {
        let world = world("Failed", "Failed").await;
        let plan = world.queue.plan_delete(BatchId::new(0), "given up", now()).await.unwrap();
        assert_eq!((plan.chunks.len(), plan.jobs()), (4, 6));
        execute(&world.queue, &plan, done).await;
        check_references(&world).await;
        if done < 4 {
            let rest = world.queue.plan_delete(BatchId::new(0), "given up", now()).await.unwrap();
            world.queue.execute(&rest, 0, |_| ControlFlow::Continue(())).await.unwrap();
        }
        let report = world.queue.batch_report(BatchId::new(0)).await.unwrap();
        assert_eq!((report.deleted.len(), report.completed.len(), report.len()), (6, 1, 7));
        assert_eq!(world.json("/batches/bid0000000000/status").await["status"], "Deleted");
        assert!(!world.exists("/batches/bid0000000000/states/batch-processing").await);
        for number in [1, 2, 3, 4, 5, 7] {
            assert!(world.exists(&format!("/jobs/states/deleted/05-jid{number:010}")).await);
            assert_eq!(world.json(&format!("/jobs/jid{number:010}/status")).await["retry_count"], 1);
        }
        let mut reported = Vec::new();
        let stopped = world.queue.clean_up(|at| {
            reported.push((at.batches, at.of_batches, at.purge.chunks));
            ControlFlow::Break(())
        });
        let stopped = stopped.await.unwrap();
        assert_eq!((stopped.purged.len(), stopped.kept.len(), stopped.left, &*reported), (0, 0, 1, &[(0, 1, 1)][..]));
        // What was deleted can be cleaned up, though it has no batch-processing.
        let cleaned = world.queue.clean_up(|_| ControlFlow::Continue(())).await.unwrap();
        assert_eq!((cleaned.purged.len(), cleaned.kept), (1, vec![]));
        assert!(world.tree().await.keys().all(|path| !path.contains("bid0000000000")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_at_work_is_deleted_or_purged() {
    let world = world("Failed", "Storing").await;
    let before = world.tree().await;
    let error = world.queue.plan_delete(BatchId::new(0), "", now()).await.unwrap_err();
    assert!(matches!(error, Error::Transition { .. }), "{error}");
    let error = world.queue.plan_purge(BatchId::new(0)).await.unwrap_err();
    assert!(error.to_string().contains("it is Failed"), "{error}");
    assert!(world.queue.plan_purge_job(JobId::new(1)).await.is_err());
    let plan = world.queue.plan_purge_job(JobId::new(6)).await.unwrap();
    assert_eq!(world.tree().await, before);
    world.queue.commit(&plan.transaction).await.unwrap();
    assert!(world.tree().await.keys().all(|path| !path.contains("jid0000000006")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_up_that_is_stopped_says_how_many_batches_are_left_beside_those_purged_and_kept() {
    let mut nodes = base();
    for (path, data) in &mut nodes {
        if path.ends_with("/status") {
            *data = data.replace("Reporting", "Completed");
        }
    }
    for number in 1..=3 {
        let path = format!("/batches/bid{number:010}");
        let states = ["", "/batch-deleted"].map(|folder| (format!("{path}/states{folder}"), String::new()));
        nodes.extend([(path.clone(), String::new()), (format!("{path}/status"), r#"{"status":"Deleted"}"#.to_owned())]);
        nodes.extend(states);
    }
    let of_third = |text: &str| text.replace("bid0000000000", "bid0000000002");
    let jobs = (1..=3).flat_map(|number| job(number, "Deleted"));
    nodes.extend(jobs.map(|(path, data)| (of_third(&path), of_third(&data))));
    let world = World::new(&borrowed(&nodes)).await;
    world.raw.create("/batches/bid0000000001/lock", b"", &EPHEMERAL).await.unwrap();
    let queue = world.queue.clone().with_jobs_per_transaction(2);
    let stop_at_third = |at: CleanUpProgress| {
        if at.batch == BatchId::new(2) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let stopped = queue.clean_up(stop_at_third).await.unwrap();
    let kept: Vec<_> = stopped.kept.iter().map(|(batch, _)| *batch).collect();
    assert_eq!((stopped.purged, kept, stopped.left), (vec![BatchId::new(0)], vec![BatchId::new(1)], 2));
    let rest = queue.clean_up(|_| ControlFlow::Continue(())).await.unwrap();
    assert_eq!((rest.purged, rest.left), ([2, 3].map(BatchId::new).to_vec(), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_up_ends_where_the_connection_does_and_blames_no_batch_for_it() {
    let world = world("Deleted", "Deleted").await;
    let wire = Wire::start(shared().await.port()).await;
    let client = connect(&format!("{}{}", wire.connect_string(), world.chroot)).await;
    let queue = Queue::new(client).with_time_limit(Duration::from_secs(3)).with_jobs_per_transaction(2);
    let cut = |progress: CleanUpProgress| {
        assert_eq!(progress.batch, BatchId::new(0));
        wire.arm(Some((Point::Unsent(1), Cut::Long)));
        ControlFlow::Continue(())
    };
    // On a busy machine an answer may come too late before the cut, which ends it as well.
    for _ in 0..5 {
        let ended = queue.clean_up(cut).await;
        assert!(ended.as_ref().is_err_and(Error::is_connection), "{ended:?}");
        if wire.was_cut() {
            return;
        }
    }
    panic!("the connection was not cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_purged_whole_when_nothing_is_to_be_done_to_it_any_more() {
    let mut nodes = base();
    for (number, state) in [(1, "Completed"), (2, "Deleted"), (3, "Processing"), (4, "Completed")] {
        let path = format!("/access/large/qid{number:010}");
        let status = format!(r#"{{"status":"{state}"}}"#);
        let children = [("", ""), ("/status", &status), ("/token", "{}"), ("/notes", ""), ("/notes/today", "x")];
        nodes.extend(children.map(|(node, data)| (format!("{path}{node}"), data.to_owned())));
    }
    let world = World::new(&borrowed(&nodes)).await;
    world.raw.create("/access/large/qid0000000004/lock", b"", &EPHEMERAL).await.unwrap();
    let mut refused = Vec::new();
    for number in 1..=4 {
        let request = (AccessQueue::Large, RequestId::new(number));
        if let Err(error) = world.queue.purge_request(request).await {
            refused.push((number, matches!(error, Error::Conflict(_))));
        }
    }
    assert_eq!(refused, [(3, false), (4, true)], "one is at work, one is locked");
    let left = world.raw.list_children("/access/large").await.unwrap().into_iter().collect::<BTreeSet<_>>();
    assert_eq!(left, ["qid0000000003", "qid0000000004"].map(str::to_owned).into());
}

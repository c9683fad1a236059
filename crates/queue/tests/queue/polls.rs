//! What polls for batches and access requests hand out, and what they pass over and why.

use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_queue::{Due, JobPoll, Queue, SkipReason, SkippedItem};
use zookeeper_client::{Acl, AuthId, Permission};

use queuekeeper_testkit::queue::{EPHEMERAL, World, base, borrowed, job, now};
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::wire::Wire;

/// What is passed over, by its path, and a word for why.
fn reasons(skipped: &[SkippedItem]) -> Vec<(String, &'static str)> {
    let reason = |item: &SkippedItem| match item.reason {
        SkipReason::Unfinished => "unfinished",
        SkipReason::Unloadable(_) => "unloadable",
        _ => "otherwise",
    };
    skipped.iter().map(|item| (item.path.to_string(), reason(item))).collect()
}

/// An item's znode, and some of the children that it should have.
fn item(path: &str, children: &[(&str, &str)]) -> Vec<(String, String)> {
    let children = children.iter().map(|(name, data)| (format!("{path}/{name}"), (*data).to_owned()));
    std::iter::once((path.to_owned(), String::new())).chain(children).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_has_none_of_its_children_is_called_unfinished() {
    let (status, submission) = (("status", r#"{"status":"Pending"}"#), ("submission", r#"{"batchID":"u"}"#));
    let token = ("token", r#"{"token":"t"}"#);
    let mut nodes = base();
    for (number, children) in [(1, vec![]), (2, vec![status]), (3, vec![submission])] {
        nodes.extend(item(&format!("/batches/bid{number:010}"), &children));
    }
    for (number, children) in [(1, vec![]), (2, vec![status]), (3, vec![token])] {
        nodes.extend(item(&format!("/access/small/qid{number:010}"), &children));
    }
    let world = World::new(&borrowed(&nodes)).await;
    let mut batches = world.queue.poll_batches(Due::Jobs).await.unwrap();
    assert!(batches.next(now()).await.unwrap().is_none());
    let mut requests = world.queue.poll_requests(AccessQueue::Small).await.unwrap();
    assert!(requests.next().await.unwrap().is_none());
    for (skipped, path) in [(batches.skipped, "/batches/bid"), (requests.skipped, "/access/small/qid")] {
        let expected = [(1, "unfinished"), (2, "unloadable"), (3, "unloadable")];
        assert_eq!(reasons(&skipped), expected.map(|(number, why)| (format!("{path}{number:010}"), why)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_polls_for_batches_cost_hardly_grows_with_those_that_nothing_is_due_for() {
    let submission = ("submission", r#"{"batchID":"u"}"#);
    let folder = ("states/batch-processing", "");
    let world = World::new(&borrowed(&base())).await;
    let idle = ["Completed", "Failed", "Deleted", "Held"];
    let due = [(Due::Jobs, "Pending"), (Due::Report, "Reporting"), (Due::UpdatedReport, "UpdateReporting")];
    let states = idle.into_iter().cycle().take(400).chain(due.map(|(_, state)| state));
    let states: Vec<_> = (1..).zip(states).collect();
    for some in states.chunks(100) {
        let batches = some.iter().flat_map(|(number, state)| {
            let status = format!(r#"{{"status":"{state}"}}"#);
            let mut children = vec![submission, ("status", &status)];
            if !["Pending", "Held"].contains(state) {
                children.extend([("states", ""), folder]);
            }
            item(&format!("/batches/bid{number:010}"), &children)
        });
        world.make(&borrowed(&batches.collect::<Vec<_>>())).await;
    }
    let wire = Wire::start(shared().await.port()).await;
    let queue = Queue::new(connect(&format!("{}{}", wire.connect_string(), world.chroot)).await);
    for (number, (due, state)) in (401..).zip(due) {
        wire.arm(None);
        let mut poll = queue.poll_batches(due).await.unwrap();
        // That of `base`.
        poll.retain(|batch| batch != BatchId::new(0));
        let locked = poll.next(now()).await.unwrap().unwrap();
        assert_eq!(locked.batch.id, BatchId::new(number), "{state}");
        assert!(poll.next(now()).await.unwrap().is_none());
        // All values of all batches are 250 requests, and the states alone are 4, where the answers are small.
        assert!(wire.requests() < 60, "{state}: {} requests", wire.requests());
        // One that is held may be due again, and the others may not.
        let state_of = |batch: &BatchId| states.iter().find(|(number, _)| *number == batch.number());
        let past: Vec<_> = poll.past.iter().filter_map(state_of).map(|(_, state)| *state).collect();
        assert!(idle.iter().all(|state| past.contains(state) == (*state != "Held")), "{past:?}");
        assert_eq!(poll.skipped, []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_cannot_be_read_keeps_none_back_that_comes_before_it() {
    let mut nodes = base();
    let submission = ("submission", r#"{"batchID":"u"}"#);
    for number in 1..=20 {
        let status = ("status", if number == 1 { r#"{"status":"Pending"}"# } else { r#"{"status":"Completed"}"# });
        nodes.extend(item(&format!("/batches/bid{number:010}"), &[submission, status]));
    }
    let world = World::new(&borrowed(&nodes)).await;
    let acl = [Acl::new(Permission::WRITE, AuthId::anyone())];
    world.raw.set_acl("/batches/bid0000000020/status", &acl, None).await.unwrap();
    let mut poll = world.queue.poll_batches(Due::Jobs).await.unwrap();
    let taken = poll.next(now()).await.unwrap().map(|locked| locked.batch.id);
    assert_eq!(taken, Some(BatchId::new(1)));
    let error = poll.next(now()).await.unwrap_err();
    assert!(!error.is_connection() && error.to_string().contains("bid0000000020"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_a_held_collection_is_set_held_by_who_expands_it_and_no_other_batch_is() {
    for (is_expanded, is_held) in [(true, true), (true, false), (false, true)] {
        let mut nodes = base();
        let children = [("submission", r#"{"batchID":"u","profile":"demo"}"#), ("status", r#"{"status":"Pending"}"#)];
        nodes.extend(item("/batches/bid0000000001", &children));
        let world = World::new(&borrowed(&nodes)).await;
        let collection = if is_held { "demo" } else { "other" };
        world.queue.hold_collection(collection, "me", "disk", now()).await.unwrap();
        let mut poll = world.queue.poll_batches(Due::Jobs).await.unwrap();
        if is_expanded {
            poll = poll.expanded();
        }
        let taken = poll.next(now()).await.unwrap().map(|locked| locked.batch.id);
        let (batch, is_set_held) = (BatchId::new(1), is_expanded && is_held);
        let expected = if is_set_held { (None, vec![batch]) } else { (Some(batch), vec![]) };
        assert_eq!((taken, poll.held), expected, "{is_expanded} {is_held}");
        let state = world.queue.load_batch(batch).await.unwrap().state();
        assert_eq!(state, Some(if is_set_held { BatchState::Held } else { BatchState::Processing }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_another_works_on_is_not_reported_whatever_is_wrong_with_it() {
    let mut nodes = [base(), job(1, "Pending")].concat();
    nodes.retain(|(path, _)| path != "/jobs/jid0000000001/space_needed");
    let world = World::new(&borrowed(&nodes)).await;
    let lock = "/jobs/jid0000000001/lock";
    world.raw.create(lock, b"", &EPHEMERAL).await.unwrap();
    let mut poll = world.queue.poll_jobs(JobState::Pending).await.unwrap();
    assert!(poll.next(now()).await.unwrap().is_none());
    assert_eq!(poll.skipped, []);
    world.raw.delete(lock, None).await.unwrap();
    let mut poll = world.queue.poll_jobs(JobState::Pending).await.unwrap();
    assert!(poll.next(now()).await.unwrap().is_none());
    assert_eq!(reasons(&poll.skipped), [("/jobs/states/pending/05-jid0000000001".to_owned(), "unloadable")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_purged_after_it_was_read_is_passed_over_without_a_word() {
    let world = World::new(&borrowed(&[base(), job(1, "Pending"), job(2, "Pending")].concat())).await;
    let mut poll = world.queue.poll_jobs(JobState::Pending).await.unwrap();
    assert!(poll.next(now()).await.unwrap().is_some_and(|locked| locked.id() == JobId::new(1)));
    for path in world.tree().await.into_keys().rev().filter(|path| path.contains("jid0000000002")) {
        world.raw.delete(&path, None).await.unwrap();
    }
    assert!(poll.next(now()).await.unwrap().is_none());
    assert_eq!(poll.skipped, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_does_not_want_is_left_as_it_is() {
    let mut nodes = base();
    for number in 1..=4 {
        nodes.extend(job(number, "Pending"));
        let children = [("submission", r#"{"batchID":"u"}"#), ("status", r#"{"status":"Pending"}"#)];
        nodes.extend(item(&format!("/batches/bid{number:010}"), &children));
    }
    let world = World::new(&borrowed(&nodes)).await;
    let mut jobs = world.queue.poll_jobs(JobState::Pending).await.unwrap();
    let left = |jobs: &JobPoll| jobs.jobs().map(JobId::number).collect::<Vec<_>>();
    assert_eq!((left(&jobs), jobs.is_at_end()), (vec![1, 2, 3, 4], false));
    jobs.retain(|id| id != JobId::new(1));
    assert_eq!(left(&jobs), [2, 3, 4]);
    let taken = jobs.next_if(now(), |job| job.id != JobId::new(2)).await.unwrap().unwrap();
    assert_eq!((taken.id(), jobs.is_at_end()), (JobId::new(3), false));
    let taken = jobs.next(now()).await.unwrap().unwrap();
    assert_eq!((taken.id(), left(&jobs), jobs.is_at_end()), (JobId::new(4), vec![], true));
    assert!(jobs.next(now()).await.unwrap().is_none() && jobs.skipped.is_empty());

    let mut batches = world.queue.poll_batches(Due::Jobs).await.unwrap();
    batches.retain(|id| id != BatchId::new(1));
    let taken = batches.next_if(now(), |batch| batch.id != BatchId::new(2)).await.unwrap().unwrap();
    assert_eq!(taken.batch.id, BatchId::new(3));
    assert_eq!(batches.next(now()).await.unwrap().unwrap().batch.id, BatchId::new(4));
    assert!(batches.next(now()).await.unwrap().is_none() && batches.skipped.is_empty());
    let locks: Vec<_> = world.tree().await.into_keys().filter(|path| path.ends_with("/lock")).collect();
    let locked = ["/batches/bid0000000003", "/batches/bid0000000004", "/jobs/jid0000000003", "/jobs/jid0000000004"];
    assert_eq!(locks, locked.map(|item| format!("{item}/lock")));
}

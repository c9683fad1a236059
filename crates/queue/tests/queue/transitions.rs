//! Every pair of states of every machine: what is allowed leaves exactly the designed tree, what is refused leaves all
//! as it was, to the last version.

use std::collections::BTreeMap;

use queuekeeper_queue::id::{BatchId, JobId, RequestId};
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::{AccessState, BatchState, JobState, State};
use queuekeeper_queue::{Error, ItemChange, JobChange, JobTarget};
use serde_json::json;

use queuekeeper_testkit::queue::{World, base, borrowed, data, folder, job, now, outcome};

/// The design's table: the states that may follow, those that only an operator may request in brackets.
const JOBS: [(&str, &str); 12] = [
    ("Pending", "Estimating Held Failed"),
    ("Held", "[Pending] [Deleted]"),
    ("Estimating", "Provisioning Failed"),
    ("Provisioning", "Downloading Failed"),
    ("Downloading", "Processing Failed"),
    ("Processing", "Storing Failed"),
    ("Storing", "Recording Failed"),
    ("Recording", "Notify Failed"),
    ("Notify", "Completed Failed"),
    (
        "Failed",
        "[Pending] [Estimating] [Provisioning] [Downloading] [Processing] [Storing] [Recording] [Notify] [Deleted]",
    ),
    ("Completed", ""),
    ("Deleted", ""),
];

const BATCHES: [(&str, &str); 8] = [
    ("Pending", "Processing Held"),
    // Deleted is not here: a batch is deleted with its jobs, in many transactions.
    ("Held", "[Pending]"),
    ("Processing", "Reporting Failed"),
    ("Reporting", "Completed Failed"),
    ("Failed", "[UpdateReporting]"),
    ("UpdateReporting", "Completed Failed"),
    ("Completed", ""),
    ("Deleted", ""),
];

const REQUESTS: [(&str, &str); 5] = [
    ("Pending", "Processing"),
    ("Processing", "Completed Failed"),
    ("Failed", "[Pending] Processing [Deleted]"),
    ("Completed", ""),
    ("Deleted", ""),
];

fn is_allowed(next: &str, to: &str, operator: bool) -> bool {
    next.split(' ').any(|word| word == to || (operator && word == format!("[{to}]")))
}

fn is_refused<T: std::fmt::Debug>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Transition { .. } | Error::Invalid { .. }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_goes_where_it_may_and_nowhere_else() {
    let mut changes = 0;
    for (from, next) in JOBS {
        let mut nodes = base();
        nodes.extend(job(1, from));
        let mut world = World::new(&borrowed(&nodes)).await;
        for (to, _) in JOBS {
            for operator in [false, true] {
                let change = JobChange::to(JobState::from_name(to).unwrap()).with_message("why");
                let change = if operator { change.by_operator() } else { change };
                let before = world.tree().await;
                let result = world.queue.change_job(JobId::new(1), &change, now()).await;
                if !is_allowed(next, to, operator) {
                    assert!(is_refused(&result), "{from} -> {to}: {result:?}");
                    assert_eq!(world.tree().await, before, "{from} -> {to}");
                    continue;
                }
                changes += 1;
                let done = result.unwrap();
                assert_eq!((done.from.name(), done.to.name(), done.version), (from, to, 1));
                let by_daemon = !operator;
                let expected = after(data(&before), (from, to), by_daemon);
                assert_eq!(data(&world.tree().await), expected, "{from} -> {to}");
                // The next change starts from the same state, in a queue of its own.
                world = World::new(&borrowed(&nodes)).await;
            }
        }
    }
    // Seventeen that anyone may request, and eleven more that an operator may.
    assert_eq!(changes, 2 * 17 + 11);
}

/// The tree of the design after a change of job 1.
fn after(mut tree: BTreeMap<String, String>, (from, to): (&str, &str), by_daemon: bool) -> BTreeMap<String, String> {
    let jid = "jid0000000001";
    tree.remove(&format!("/jobs/states/{}/05-{jid}", folder(from))).expect("a job has an entry");
    tree.insert(format!("/jobs/states/{}/05-{jid}", folder(to)), String::new());
    tree.remove(&format!("/batches/bid0000000000/states/{}/{jid}", outcome(from))).expect("a job has a reference");
    tree.insert(format!("/batches/bid0000000000/states/{}/{jid}", outcome(to)), String::new());
    let aside = |state| ["Failed", "Held", "Deleted"].contains(&state);
    let last = if aside(from) || aside(to) { "Provisioning" } else { from };
    let retries = if from == "Failed" && to != "Deleted" { 2 } else { 1 };
    let mut status = json!({
        "status": to, "last_modified": "2026-03-02 18:17:05 +0000", "last_successful_status": last,
        "retry_count": retries, "message": "why", "by": "java",
    });
    if by_daemon && from == "Pending" && to != "Held" {
        status["consumption_date"] = "2026-03-02T18:17:05Z".into();
    }
    tree.insert(format!("/jobs/{jid}/status"), status.to_string());
    tree
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_goes_where_it_may_and_nowhere_else() {
    for (from, next) in BATCHES {
        for (to, _) in BATCHES {
            for operator in [false, true] {
                let is_acquired = from != "Pending";
                let mut nodes = base();
                for (path, data) in &mut nodes {
                    if path.ends_with("/status") {
                        *data = format!(r#"{{"status":"{from}","last_modified":"x","message":"","by":"java"}}"#);
                    }
                }
                nodes.retain(|(path, _)| {
                    let folder = path.strip_prefix("/batches/bid0000000000/states");
                    folder.is_none_or(|folder| is_acquired && (from != "Held" || folder.is_empty()))
                });
                let world = World::new(&borrowed(&nodes)).await;
                let change = ItemChange::to(BatchState::from_name(to).unwrap()).with_message("why");
                let change = if operator { change.by_operator() } else { change };
                let before = world.tree().await;
                let result = world.queue.change_batch(BatchId::new(0), &change, now()).await;
                if !is_allowed(next, to, operator) {
                    assert!(is_refused(&result), "{from} -> {to}: {result:?}");
                    assert_eq!(world.tree().await, before, "{from} -> {to}");
                    continue;
                }
                result.unwrap();
                let mut expected = data(&before);
                let status = json!({
                    "status": to, "last_modified": "2026-03-02 18:17:05 +0000", "message": "why", "by": "java",
                });
                expected.insert("/batches/bid0000000000/status".into(), status.to_string());
                match (from, to) {
                    ("Pending", _) => expected.insert("/batches/bid0000000000/states".into(), String::new()),
                    ("Held", "Pending") => expected.remove("/batches/bid0000000000/states"),
                    _ => None,
                };
                assert_eq!(data(&world.tree().await), expected, "{from} -> {to}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_goes_where_it_may_and_nowhere_else() {
    for (from, next) in REQUESTS {
        for (to, _) in REQUESTS {
            for operator in [false, true] {
                let status = format!(r#"{{"status":"{from}","last_modified":"x","message":"","by":"java"}}"#);
                let nodes = [
                    ("/access", ""),
                    ("/access/large", ""),
                    ("/access/large/qid0000000000", ""),
                    ("/access/large/qid0000000000/token", r#"{"token":"t"}"#),
                    ("/access/large/qid0000000000/status", &status),
                ];
                let world = World::new(&nodes).await;
                let change = ItemChange::to(AccessState::from_name(to).unwrap()).with_message("why");
                let change = if operator { change.by_operator() } else { change };
                let before = world.tree().await;
                let target = (AccessQueue::Large, RequestId::new(0));
                let result = world.queue.change_request(target, &change, now()).await;
                if !is_allowed(next, to, operator) {
                    assert!(is_refused(&result), "{from} -> {to}: {result:?}");
                    assert_eq!(world.tree().await, before, "{from} -> {to}");
                    continue;
                }
                result.unwrap();
                let mut expected = data(&before);
                let status = json!({
                    "status": to, "last_modified": "2026-03-02 18:17:05 +0000", "message": "why", "by": "java",
                });
                expected.insert("/access/large/qid0000000000/status".into(), status.to_string());
                assert_eq!(data(&world.tree().await), expected, "{from} -> {to}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_meant_for_another_version_or_a_held_job_says_who_and_since_when() {
    let mut nodes = base();
    nodes.extend(job(1, "Failed"));
    let world = World::new(&borrowed(&nodes)).await;
    let before = world.tree().await;
    let late = JobTarget::new(JobId::new(1)).at_version(7);
    let error = world.queue.change_job(late, &JobChange::resume(), now()).await.unwrap_err();
    assert!(error.to_string().contains("version 0 since"), "{error}");
    assert_eq!(world.tree().await, before);

    world.raw.create("/jobs/jid0000000001/lock", b"", &queuekeeper_testkit::queue::EPHEMERAL).await.unwrap();
    let before = world.tree().await;
    let error = world.queue.change_job(JobId::new(1), &JobChange::resume(), now()).await.unwrap_err();
    let holder = format!("/jobs/jid0000000001/lock is held by session {} since", world.raw.session_id());
    assert!(error.to_string().starts_with(&holder), "{error}");
    assert!(error.may_be_retried());
    assert_eq!(world.tree().await, before);
}

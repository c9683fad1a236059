//! Every page of a queue in which everything is there once: no number has the wrong plural, and no sentence a wrong
//! mark.

use std::sync::Arc;

use queuekeeper::mirror::failures::FailureGroup;
use queuekeeper::web::pages::Recent;
use queuekeeper_queue::state::{JobState, State as _};
use serde_json::Value;

use super::page::page_of;
use super::world::{ADMIN, LIMIT, World};
use crate::support::figures;
use queuekeeper_testkit::wait::eventually;
use queuekeeper_testkit::wording::{lines_of, wrong};

/// Every page that lists or counts something, and what the API says of the same.
/// Beside the pages that need no id.
const PAGES: &[&str] = &[
    "/jobs?state=failed",
    "/jobs?state=failed&min_retries=1&locked=false&collection=demo",
    "/jobs?state=pending&min_age=1d",
    "/jobs/jid0000000001",
    "/batches?state=reporting",
    "/batches/bid0000000007",
    "/locks?kind=job",
    "/tree/jobs",
    "/tree/jobs/jid0000000001",
    "/action?action=resume&on=jid0000000001",
    "/action?action=delete&on=bid0000000007",
    "/action?action=clean_up&on=batches",
    "/action?action=release&on=collection:demo",
    "/action?action=pause&on=queue:ingest",
];

const API: &[&str] = &[
    "overview",
    "jobs",
    "jobs/jid0000000001",
    "jobs/jid0000000001/diagnosis",
    "failures",
    "batches",
    "batches/bid0000000007",
    "access",
    "locks",
    "faults",
    "audit",
    "openapi.json",
];

/// All texts of a JSON value, a line each.
fn texts(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What is wrong anywhere in what a server shows now.
async fn found(world: &World) -> Vec<String> {
    let mut all = Vec::new();
    for path in queuekeeper::web::pages::addresses().chain(PAGES.iter().copied()) {
        let page = world.get(ADMIN, path).await;
        assert!([200, 404, 409].contains(&page.code), "{path}: {} {}", page.code, page.text);
        all.extend(wrong(&lines_of(&page.text)).into_iter().map(|text| format!("{path}: {text}")));
    }
    for path in API {
        let mut text = String::new();
        texts(&world.json(&format!("/api/v1/{path}")).await, &mut text);
        all.extend(wrong(&text).into_iter().map(|text| format!("/api/v1/{path}: {text}")));
        let doubled = text.lines().filter(|line| line.trim().contains("  "));
        all.extend(doubled.map(|text| format!("/api/v1/{path}: two spaces: {text}")));
    }
    let metrics = world.get(ADMIN, "/metrics").await.text;
    let help: String = metrics.lines().filter(|line| line.starts_with("# HELP")).collect::<Vec<_>>().join("\n");
    all.extend(wrong(&help).into_iter().map(|text| format!("/metrics: {text}")));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_has_a_wrong_plural_or_mark_where_there_is_one_of_everything() {
    let world = Box::pin(World::start()).await;
    assert_eq!(found(&world).await, [""; 0], "of an empty queue");
    world.failed_job(1, "").await;
    assert_eq!(found(&world).await, [""; 0], "of one job that failed and says nothing");
    for (path, data) in [
        ("/access/small/qid0000000000", ""),
        ("/access/small/qid0000000000/status", r#"{"status":"Failed","message":"no such object"}"#),
        ("/access/small/qid0000000000/token", r#"{"token":"t-0","cloud-content-byte":1}"#),
        ("/batch-uuids/uuid-7", "bid0000000007"),
        ("/locks/collections/demo", r#"{"who":"ada","why":"tried"}"#),
        ("/locks/queue/accessLarge", r#"{"who":"ada","why":"tried."}"#),
        ("/locks/storage/ark_99999_fk4x", ""),
        ("/jobs/states/pending/07-jid0000000099", ""),
        ("/jobs/strange", "1"),
    ] {
        world.create(path, data).await;
    }
    for (number, state) in (2..).zip(["Pending", "Processing", "Held", "Completed"]) {
        world.job(number, state, "404 for the manifest.").await;
    }
    let is_counted = async || world.json("/api/v1/faults").await["total"].as_u64() >= Some(1);
    eventually(LIMIT, "a fault is counted", is_counted).await;
    assert_eq!(found(&world).await, [""; 0], "of one of everything");

    // An action over one job, and its end.
    let form = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let asked = form(&[("action", "resume"), ("which", "all"), ("jobs", "state=failed")]);
    let list = world.post(ADMIN, "/lists", &asked, "same-origin").await;
    let page = world.get(ADMIN, &format!("/{}", list.location)).await;
    assert!(page.text.contains("Resume 1 job"), "{}", page.text);
    assert_eq!(wrong(&lines_of(&page.text)), [""; 0], "of a list of one");
    let given = world.post(ADMIN, &format!("/{}", list.location), &form(&[("reason", "tried")]), "same-origin").await;
    let action = format!("/{}", given.location.trim_start_matches("../"));
    eventually(LIMIT, "the action is done", async || {
        world.get(ADMIN, &action).await.text.contains("The action was executed.")
    })
    .await;
    assert_eq!(wrong(&lines_of(&world.get(ADMIN, &action).await.text)), [""; 0], "of an action over one");
    assert_eq!(found(&world).await, [""; 0], "with an action in the audit trail");
}

/// The overview of a queue with so many of everything that it can tell of.
fn overview(number: u64) -> String {
    let mut summary = figures::full();
    for state in JobState::ALL.iter().copied().map(Some).chain([None]) {
        let jobs = summary.jobs.get_mut(state);
        (jobs.count, jobs.locked, jobs.retried, jobs.retries) = (number, number, number, number);
    }
    summary.waiting_for_space = number;
    summary.collections_held = number;
    summary.unreadable = number;
    summary.retries_max = 1;
    for faults in &mut summary.faults {
        faults.count = number;
        faults.since = Some(figures::ago(9_000));
    }
    let group = |key: &str, pattern: &str| FailureGroup {
        key: key.parse().unwrap(),
        last_successful: Some(JobState::Provisioning),
        pattern: pattern.to_owned(),
        message: Arc::default(),
        count: number,
        resumed: number,
        oldest: Some(figures::ago(6_300)),
        newest: Some(figures::ago(60)),
        jobs: Vec::new(),
        batches: Vec::new(),
        batch_count: 0,
        collections: Vec::new(),
        collection_count: 0,
    };
    let groups = [group("00000000000000ff", ""), group("00000000000000fe", "404 for #")];
    let failures = groups.into_iter().filter(|_| number > 0).collect();
    let recent = Recent { failures, failure_groups: 2, ..Recent::default() };
    page_of(figures::live(), Some(summary), &recent)
}

#[test]
fn the_overview_has_no_wrong_plural_or_mark_whatever_it_counts() {
    for number in [0, 1, 2] {
        assert_eq!(wrong(&lines_of(&overview(number))), [""; 0], "of {number}");
    }
}

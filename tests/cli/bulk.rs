//! Bulk actions.

use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::program::queuekeeper;
use super::world::World;
use queuekeeper_testkit::server::shared;
use queuekeeper_testkit::wait::eventually;
use queuekeeper_testkit::wire::Wire;

const LIMIT: Duration = Duration::from_mins(1);

const SURE: [&str; 3] = ["--yes", "--reason", "the disk is replaced"];

#[tokio::test]
async fn all_matching_items_are_done_and_failed_ones_are_named() {
    let world = World::new("bulk").await;
    world.batch(1, "Reporting").await;
    for number in 100..400 {
        world.job(number, 1, "Failed", "no space left on device 7").await;
    }
    world.ephemeral("/jobs/jid0000000150/lock").await;
    world.run_with("jobs resume", &SURE).await.is(2, &["set a filter, or --all"]);
    world.run_with("jobs resume --state failed --limit 5", &SURE).await.is(2, &["--limit", "cannot be used with"]);
    world.run_with("jobs resume --state deleted --text nowhere", &SURE).await.is(0, &["no job matches"]);

    let failures = world.run("failures -o json").await.json();
    let group = failures["items"][0]["group"].as_str().unwrap();
    assert_eq!(failures["items"][0]["count"], 300);
    let ran = world.run_with(&format!("jobs --state failed --group {group} resume"), &SURE).await;
    ran.is(6, &["299 done, 1 not done", "jid0000000150"]);
    for number in [100, 250, 399] {
        assert_eq!(world.state(number).await["status"], "Storing");
    }
    // The locked one, and the one of another group.
    assert_eq!(
        [world.state(150).await["status"].clone(), world.state(9).await["status"].clone()],
        ["Failed", "Failed"]
    );
    let (requested, outcomes): (Vec<_>, Vec<_>) =
        world.audit().into_iter().partition(|line| line["record"] == "requested");
    assert_eq!((requested.len(), &requested[0]["count"]), (1, &300.into()));
    assert_eq!(outcomes.len(), 301, "one for each and one for all");

    let view = world.run_with("jobs --batch 1 --state storing priority 1 -o json", &SURE).await.json();
    assert_eq!((&view["done"], &view["not_done"]), (&299.into(), &0.into()));
    let tree = world.tree().await;
    assert_eq!(tree.keys().filter(|path| path.starts_with("/jobs/states/storing/01-")).count(), 299);

    // All but some; one that is not among them is a mistake, and nothing is done.
    let line = "jobs --batch 1 --state storing priority 2 --except jid0000000200 --except";
    world.run_with(&format!("{line} jid0000000150"), &SURE).await.is(2, &["--except", "jid0000000150 does not match"]);
    world.run_with(&format!("{line} 201"), &SURE).await.is(0, &["297 done"]);
    let tree = world.tree().await;
    let left = tree.keys().filter(|path| path.starts_with("/jobs/states/storing/01-"));
    assert_eq!(left.count(), 2, "the two that were left out");
    world.run("jobs --except jid0000000200").await.is(2, &["--except", "ACTION"]);
}

#[tokio::test]
async fn a_collection_is_released_with_its_batches_and_jobs_in_that_order() {
    let world = World::new("release").await;
    world.run("collection release c10 --dry-run").await.is(0, &["1 Held job stays Held"]);
    // A batch that came meanwhile was held before any job was made of it.
    let batch = "/batches/bid0000000077";
    for (node, data) in [
        ("", ""),
        ("/submission", r#"{"batchID":"uuid-77","profile":"c10"}"#),
        ("/status", r#"{"status":"Held","last_modified":"2026-11-20T10:00:00Z"}"#),
    ] {
        world.create(&format!("{batch}{node}"), data).await;
    }
    world.run("collection release c10 --dry-run").await.is(0, &["1 Held job and 1 Held batch stay Held unless"]);
    world
        .run_with("collection release c10 --with-jobs", &SURE)
        .await
        .is(0, &["release collection:c10: done", "2 done"]);
    assert_eq!(world.state(10).await["status"], "Pending");
    let tree = world.tree().await;
    assert!(!tree.contains_key("/locks/collections/c10"));
    assert!(String::from_utf8_lossy(&tree[&format!("{batch}/status")].0).contains("\"Pending\""), "{tree:?}");
    // Both are recorded before they are released.
    let lines = world.audit();
    let records: Vec<_> = lines.iter().map(|line| line["record"].as_str().unwrap()).collect();
    assert_eq!(records, ["requested", "started", "outcome", "outcome", "outcome"]);
    let started = &lines[1];
    assert_eq!(started["targets"], serde_json::json!(["bid0000000077", "jid0000000010"]));
    assert_eq!(started["before_each"], serde_json::json!(["held", "held"]));
}

/// The complete lines of the audit file. The last one may be incomplete.
fn audited(world: &World) -> Vec<Value> {
    let text =
        std::fs::read_to_string(world.home.path().join(".local/state/queuekeeper/audit.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// How many changes of a bulk action are answered: then it stands still, and cannot end before it is stopped.
const ANSWERED: usize = 100;

/// Executes a bulk action until the outcome of an item is recorded that satisfies the condition. Nothing answers it any
/// more after some of its changes.
async fn begin(world: &World, wire: &Wire, line: &str, is_wanted: impl Fn(&Value) -> bool) -> Child {
    wire.hold(ANSWERED);
    let (_, chroot) = world.address.split_once('/').unwrap();
    let line = format!("{line} --zookeeper {}/{chroot}", wire.connect_string());
    let arguments: Vec<_> = line.split(' ').chain(SURE).collect();
    let child = queuekeeper(world.home.path(), &arguments).spawn().unwrap();
    let has_some = || audited(world).iter().any(|line| line["record"] == "outcome" && is_wanted(line));
    eventually(LIMIT, "some of it is done", async || has_some()).await;
    child
}

/// Sets the priority of all jobs of a batch.
async fn begin_priority(world: &World, wire: &Wire, priority: u8) -> Child {
    let after = format!("priority {priority}");
    begin(world, wire, &format!("jobs --batch 1 priority {priority}"), |line| line["after"] == after).await
}

fn kill(mut child: Child) {
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_trail_and_the_tree_show_what_a_killed_process_did_and_a_hangup_cancels_an_action() {
    const JOBS: usize = 1_200;
    let world = World::new("killed").await;
    world.batch(1, "Reporting").await;
    let jobs = 100..100 + u32::try_from(JOBS).unwrap();
    futures::future::join_all(jobs.clone().map(|number| world.job(number, 1, "Failed", "no space"))).await;

    let wire = Wire::of_changes(shared().await.port()).await;
    kill(begin_priority(&world, &wire, 1).await);
    let lines = audited(&world);
    let (requested, outcomes): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line["record"] == "requested");
    let (mut targets, mut before) = (Vec::new(), Vec::new());
    for line in &requested {
        assert_eq!(
            (&line["priority"], &line["count"], &line["action"]),
            (&1.into(), &JOBS.into(), &"set_priority".into())
        );
        targets.extend(line["targets"].as_array().unwrap());
        before.extend(line["before_each"].as_array().unwrap());
    }
    assert_eq!((targets.len(), before.len()), (JOBS, JOBS));
    assert!(before.iter().all(|before| **before == "priority 5"), "{before:?}");
    for outcome in &outcomes {
        assert_eq!([&outcome["before"], &outcome["after"]], ["priority 5", "priority 1"], "{outcome}");
    }
    // Each job is unchanged, or as requested; those with a recorded outcome are as recorded.
    let tree = world.tree().await;
    for number in jobs {
        let jid = format!("jid{number:010}");
        let has = |priority: &str| tree.contains_key(&format!("/jobs/states/failed/{priority}-{jid}"));
        let is_recorded = outcomes.iter().any(|outcome| outcome["target"] == jid);
        assert!(has("01") || (has("05") && !is_recorded), "{jid}");
    }

    // The next process records the unknown outcome, and SIGHUP cancels an action as Ctrl-C does.
    let child = begin_priority(&world, &wire, 2).await;
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    wire.restore();
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
    let printed = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.code() == Some(6) && printed.contains("not started"), "{ended:?}");
    let lines = audited(&world);
    let whole: Vec<_> = lines.iter().filter(|line| line["record"] == "outcome" && line["target"].is_null()).collect();
    assert_eq!([&whole[0]["outcome"], &whole[1]["outcome"]], ["unknown", "cancelled"], "{whole:?}");
    assert_eq!(whole[0]["id"], requested[0]["id"]);
    assert_eq!(whole.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_data_that_a_killed_repair_has_replaced_is_in_the_audit_trail() {
    let world = World::new("killed_repair").await;
    world.batch(1, "Reporting").await;
    let jobs = 100..400;
    let space = |number: u32| format!("/jobs/jid{number:010}/space_needed");
    let lost = |number: u32| format!("{number} or so");
    futures::future::join_all(jobs.clone().map(async |number| {
        world.job(number, 1, "Pending", "").await;
        world.client.set_data(&space(number), lost(number).as_bytes(), None).await.unwrap();
    }))
    .await;
    let wire = Wire::of_changes(shared().await.port()).await;
    kill(begin(&world, &wire, "faults unloadable_job --repair", |line| line["target"].is_string()).await);

    let started: Vec<_> = audited(&world).into_iter().filter(|line| line["record"] == "started").collect();
    let mut repaired = 0;
    for number in jobs {
        let (now, _) = world.client.get_data(&space(number)).await.unwrap();
        if now == lost(number).as_bytes() {
            continue;
        }
        repaired += 1;
        let target = format!("fault:unloadable_job:/jobs/jid{number:010}");
        let line = started.iter().find(|line| line["targets"][0] == target).unwrap_or_else(|| panic!("{target}"));
        let operations = line["operations"].to_string();
        assert!(operations.contains(&format!("{} was {}", space(number), lost(number))), "{operations}");
    }
    assert!(repaired > 0);
}

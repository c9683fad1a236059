//! The actions of rules, and their results.

use std::sync::atomic::Ordering;

use jiff::Timestamp;
use queuekeeper::actions::audit::Record;
use queuekeeper::alerts::NotChanged;
use queuekeeper_queue::JobChange;
use queuekeeper_queue::path::{EntryName, Path};
use queuekeeper_queue::state::JobState;
use serde_json::json;

use super::changes::{answered, changed};
use super::world::{LIMIT, PERSISTENT, World, alert, failed_jobs, operator, resume, rules, stuck};
use queuekeeper_testkit::tree::read_tree;
use queuekeeper_testkit::wait::{eventually, eventually_some};

const TWENTY: &str = "mode: enforce\nselect: {max_retries: 2, limit: 20}\nbudget: {items: 20, per: 1h}\ncooldown: 1s";

const HOLD: &str = "alerts:
  rules:
    - name: make-room
      alert: MerrittProvisioningStuck
      labels: {cause: waiting_for_space}
      mode: enforce
      action: hold_collections
      select: {limit: 1}
      budget: {items: 3, per: 1h}
      cooldown: 1s
      on_resolved: release
";

const PROVISIONING: [JobState; 2] = [JobState::Estimating, JobState::Provisioning];

#[tokio::test(flavor = "multi_thread")]
async fn failed_jobs_are_resumed_within_the_budget_and_no_further() {
    let world = World::new().await;
    let keeper = world.keeper(resume(TWENTY)).await;
    keeper.ready(true).await;
    let jobs = world.failed(30).await;
    keeper.sees(JobState::Failed, 30).await;
    assert_eq!(keeper.outcome(failed_jobs("01")).await, "accepted");
    keeper.settled(&world).await;
    assert_eq!(world.count(&jobs, JobState::Failed).await, 10);
    keeper.counts("executed", 1).await;
    assert_eq!(keeper.done(), 20);
    // The record of each names the decision.
    let decided = eventually_some(LIMIT, "the decision is recorded", async || {
        keeper.records().iter().find(|record| matches!(record, Record::Decision { .. })).map(Record::id)
    })
    .await;
    let records = keeper.records();
    let decisions = records.iter().filter_map(|record| match record {
        Record::Requested { decision, .. } => Some(*decision),
        _ => None,
    });
    assert_eq!(decisions.collect::<Vec<_>>(), [Some(decided); 20]);
    // Each of them is resumed as by an operator, with a reason.
    let status = world.raw.get_data(&format!("/jobs/{}/status", jobs[0])).await.unwrap().0;
    let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
    assert_eq!(status["retry_count"], 1);
    assert!(status["message"].as_str().unwrap().contains("rule again"), "{status}");

    // More exceeds the budget: the breaker opens, and stays open until it is reset.
    keeper.sees(JobState::Failed, 10).await;
    assert_eq!(keeper.outcome_when_cool(failed_jobs("02")).await, "accepted");
    keeper.settled(&world).await;
    keeper.counts("budget", 1).await;
    assert_eq!(keeper.done(), 20);
    eventually(LIMIT, "the breaker is exported", async || {
        keeper.series("queuekeeper_alert_rule_breaker_open{rule=\"again\"}") == Some(1.0)
    })
    .await;
    assert_eq!(keeper.outcome(failed_jobs("03")).await, "breaker_open");
    let (actor, reason) = operator();
    let reset = async || keeper.alerts.reset("again", &actor, &reason, Timestamp::now()).await;
    changed(reset).await;
    let again = answered(reset).await;
    assert!(matches!(again, Err(NotChanged::Already(_))), "{again:?}");
    // A reset returns no tokens to the budget.
    assert_eq!(keeper.outcome(failed_jobs("04")).await, "accepted");
    keeper.settled(&world).await;
    keeper.counts("budget", 2).await;
    assert_eq!(keeper.done(), 20);
    keeper.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_limited_by_its_share_and_by_the_attempts_on_each_job() {
    let world = World::new().await;
    let share = "mode: enforce\nselect: {limit: 20}\nbudget: {items: 20, per: 1h}\nmax_share: 0.25\ncooldown: 1s";
    let keeper = world.keeper(resume(share)).await;
    keeper.ready(true).await;
    let jobs = world.failed(12).await;
    keeper.sees(JobState::Failed, 12).await;
    keeper.outcome(failed_jobs("01")).await;
    keeper.settled(&world).await;
    assert_eq!(world.count(&jobs, JobState::Failed).await, 9, "a quarter of all");
    keeper.end().await;

    // Jobs that fail again and again are left to a user, which is reported.
    let world = World::new().await;
    let twice = "mode: enforce\nselect: {limit: 5}\nbudget: {items: 20, per: 1h}\nattempts: 2\ncooldown: 1s";
    let keeper = world.keeper(resume(twice)).await;
    keeper.ready(true).await;
    let jobs = world.failed(1).await;
    for round in 0..3 {
        keeper.sees(JobState::Failed, 1).await;
        let outcome = keeper.outcome_when_cool(failed_jobs(&format!("0{round}"))).await;
        assert_eq!(outcome, if round < 2 { "accepted" } else { "gave_up" });
        keeper.settled(&world).await;
        if round < 2 {
            world.take(&jobs, &[JobState::Failed]).await;
        }
    }
    assert_eq!((keeper.done(), keeper.counted("gave_up")), (2, 1));
    keeper.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_neediest_collection_is_held_and_what_the_rule_held_is_released() {
    let world = World::new().await;
    let keeper = world.keeper(rules(HOLD)).await;
    keeper.ready(true).await;
    let (small, large) = (world.jobs("small", 2, 1_000).await, world.jobs("large", 2, 9_000).await);
    world.take(&small[..1], &PROVISIONING).await;
    world.take(&large[..1], &PROVISIONING).await;
    keeper.sees(JobState::Provisioning, 2).await;
    // No job waits while there is space, and it is unknown if that is not measured.
    assert_eq!(keeper.outcome(stuck("firing")).await, "nothing_to_do");
    keeper.space.store(10_000, Ordering::Relaxed);
    assert_eq!(keeper.outcome(stuck("firing")).await, "nothing_to_do");
    keeper.space.store(500, Ordering::Relaxed);
    // The cause is unknown.
    let other = alert(
        "firing",
        &json!({"alertname": "MerrittProvisioningStuck", "cause": "locked"}),
        "aa",
        "2026-11-21T10:00:00Z",
    );
    assert_eq!(keeper.send(&[other]).await.unmatched, 1);
    assert_eq!(keeper.outcome(stuck("firing")).await, "accepted");
    keeper.settled(&world).await;
    let hold = world.queue.held_collection("large").await.unwrap().unwrap();
    assert_eq!(hold.who, "rule make-room");
    assert!(world.queue.held_collection("small").await.unwrap().is_none());
    assert_eq!(world.queue.held_collections().await.unwrap(), ["large"]);
    // At the next alert the limit of held collections is reached, whatever the budget.
    assert_eq!(keeper.outcome_when_cool(stuck("firing")).await, "nothing_to_do");

    // The daemons hold its Pending job; one was Held before, by a user, and is not the rule's.
    let before = world.jobs("small", 1, 0).await;
    world.take(&before, &[JobState::Held]).await;
    world.take(&large[1..], &[JobState::Held]).await;
    // Another one of that collection is Held by a user since then, with a reason.
    let by_hand = world.jobs("large", 1, 0).await;
    let hold = JobChange::to(JobState::Held).with_message("a court says so");
    world.queue.change_job(by_hand[0], &hold, Timestamp::now()).await.unwrap();
    keeper.sees(JobState::Held, 3).await;
    assert_eq!(keeper.outcome(stuck("resolved")).await, "resolved");
    keeper.settled(&world).await;
    assert_eq!(world.queue.held_collections().await.unwrap(), [""; 0]);
    assert_eq!(world.state(large[1]).await, JobState::Pending);
    assert_eq!(world.state(before[0]).await, JobState::Held);
    assert_eq!(world.state(by_hand[0]).await, JobState::Held);
    // A repetition changes nothing.
    assert_eq!(keeper.outcome(stuck("resolved")).await, "resolved");
    keeper.settled(&world).await;
    assert_eq!(keeper.done(), 3, "held, released, and one job released");
    keeper.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_stay_while_jobs_wait_and_when_the_alert_fires_again() {
    let world = World::new().await;
    let keeper = world.keeper(rules(&HOLD.replace("cooldown: 1s", "cooldown: 1h"))).await;
    keeper.ready(true).await;
    // Together they claim 2^64 bytes, which overflows a u64, but they still need the most.
    let (most, rest) = (world.jobs("large", 2, i64::MAX.unsigned_abs()).await, world.jobs("large", 1, 2).await);
    let small = world.jobs("small", 1, 1_000).await;
    world.take(&[most, rest, small].concat(), &PROVISIONING).await;
    keeper.sees(JobState::Provisioning, 4).await;
    keeper.space.store(500, Ordering::Relaxed);
    assert_eq!(keeper.outcome(stuck("firing")).await, "accepted");
    keeper.settled(&world).await;
    let held = async || world.queue.held_collections().await.unwrap();
    assert_eq!(held().await, ["large"]);
    // Resolved for a moment, as after a restart of Prometheus or with a second queuekeeper: jobs wait as before.
    assert_eq!(keeper.outcome(stuck("resolved")).await, "resolved");
    assert_eq!(world.pending().await, ["make-room.undo"]);
    let mut again = stuck("firing");
    again["fingerprint"] = "fedcba9876543210".into();
    assert_eq!(keeper.outcome(again.clone()).await, "cooldown");
    assert!(world.pending().await.is_empty(), "it is on: nothing is taken back");
    assert_eq!(held().await, ["large"]);
    // Resolved, and there is room: the collection is released, whichever alert it was held for.
    again["status"] = "resolved".into();
    assert_eq!(keeper.outcome(again).await, "resolved");
    assert_eq!(held().await, ["large"], "not before there is room");
    keeper.space.store(i64::MAX, Ordering::Relaxed);
    keeper.settled(&world).await;
    assert_eq!(held().await, [""; 0]);
    keeper.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_wait_for_a_grant_make_room_too() {
    let world = World::new().await;
    let keeper = world.keeper(rules(HOLD)).await;
    keeper.ready(true).await;
    let jobs = world.jobs("large", 1, 9_000).await;
    world.take(&jobs, &PROVISIONING).await;
    keeper.sees(JobState::Provisioning, 1).await;
    // The volume has room, and all of it is granted.
    keeper.space.store(10_000, Ordering::Relaxed);
    let create = async |path: &str, data: &str| {
        // The leader has made the folder of all.
        match world.raw.create(path, data.as_bytes(), &PERSISTENT).await {
            Ok(_) | Err(zookeeper_client::Error::NodeExists) => {}
            Err(error) => panic!("{path}: {error}"),
        }
    };
    for folder in ["/queuekeeper", "/queuekeeper/space", "/queuekeeper/daemons"] {
        create(folder, "").await;
    }
    create("/queuekeeper/space/volume", r#"{"grants":{"jid0000000900":{"bytes":9000,"since":1000}}}"#).await;
    assert_eq!(keeper.outcome(stuck("firing")).await, "nothing_to_do", "no daemon of queuekeeper grants anything");
    let note = json!({"host": "worker1", "pid": 7, "version": "1", "since": 1000, "volume": "volume",
        "workers": {"provisioning": 1}});
    create("/queuekeeper/daemons/a", &note.to_string()).await;
    eventually(LIMIT, "the daemon is known", async || keeper.outcome_when_cool(stuck("firing")).await == "accepted")
        .await;
    keeper.settled(&world).await;
    assert_eq!(world.queue.held_collections().await.unwrap(), ["large"]);
    keeper.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hold_of_a_user_is_not_the_rules() {
    let world = World::new().await;
    let keeper = world.keeper(rules(HOLD)).await;
    keeper.ready(true).await;
    let jobs = world.jobs("large", 2, 9_000).await;
    world.take(&jobs[..1], &PROVISIONING).await;
    keeper.sees(JobState::Provisioning, 1).await;
    keeper.space.store(500, Ordering::Relaxed);
    keeper.outcome(stuck("firing")).await;
    keeper.settled(&world).await;
    // A user releases it and holds it again, for another reason.
    let hold = world.queue.held_collection("large").await.unwrap().unwrap();
    world.queue.unlock(&hold.lock).await.unwrap();
    world.queue.hold_collection("large", "alice", "she knows why", Timestamp::now()).await.unwrap();
    world.take(&jobs[1..], &[JobState::Held]).await;
    keeper.sees(JobState::Held, 1).await;
    assert_eq!(keeper.outcome(stuck("resolved")).await, "resolved");
    keeper.settled(&world).await;
    assert_eq!(world.queue.held_collection("large").await.unwrap().unwrap().who, "alice");
    assert_eq!(world.state(jobs[1]).await, JobState::Held);
    keeper.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orphan_entry_is_removed_and_held_jobs_of_a_free_collection_are_released() {
    let world = World::new().await;
    let both = "alerts:
  rules:
    - name: orphans
      alert: MerrittQueueHeadBlocked
      mode: enforce
      action: repair_faults
      select: {faults: [orphan_entry], limit: 10}
      narrow_by: [fault]
      budget: {items: 10, per: 1h}
      cooldown: 1s
    - name: free
      alert: MerrittHeldCollectionBacklog
      mode: enforce
      action: release_jobs
      select: {limit: 10}
      narrow_by: [collection]
      budget: {items: 10, per: 1h}
      cooldown: 1s
";
    let keeper = world.keeper(rules(both)).await;
    keeper.ready(true).await;
    let jobs = world.jobs("demo", 4, 0).await;
    let orphan = Path::entry(JobState::Storing, queuekeeper_queue::id::Priority::default(), jobs[0]);
    assert_eq!(orphan.to_string(), format!("/jobs/states/storing/{}", EntryName { priority: 5, job: jobs[0] }));
    world.raw.mkdir("/jobs/states/storing", &PERSISTENT).await.unwrap();
    world.raw.create(&orphan.to_string(), b"", &PERSISTENT).await.unwrap();
    let labels = |fault: &str| json!({"alertname": "MerrittQueueHeadBlocked", "fault": fault});
    let blocked = |fault| alert("firing", &labels(fault), "0a", "2026-11-21T10:00:00Z");
    // A fault that the rule does not select, although the alert has it as a label.
    assert_eq!(keeper.outcome(blocked("unloadable_job")).await, "no_match");
    assert_eq!(keeper.outcome(blocked("../../jobs")).await, "no_match");
    eventually(LIMIT, "the orphan counts", async || keeper.outcome(blocked("orphan_entry")).await == "accepted").await;
    keeper.settled(&world).await;
    let is_gone = world.raw.check_stat(&orphan.to_string()).await.unwrap().is_none();
    assert!(is_gone, "{:#?}", keeper.records());
    assert_eq!(world.state(jobs[0]).await, JobState::Pending, "the entry only, never a job");

    // Two are Held and free, one is Held and so is its collection.
    let kept = world.jobs("kept", 1, 0).await;
    world.take(&jobs[1..3], &[JobState::Held]).await;
    world.take(&kept, &[JobState::Held]).await;
    world.queue.hold_collection("kept", "alice", "why", Timestamp::now()).await.unwrap();
    keeper.sees(JobState::Held, 3).await;
    let held = |collection: &str| {
        let labels = json!({"alertname": "MerrittHeldCollectionBacklog", "collection": collection});
        alert("firing", &labels, "0b", "2026-11-21T10:00:00Z")
    };
    assert_eq!(keeper.outcome(held("nowhere")).await, "no_match", "only values that exist");
    assert_eq!(keeper.outcome(held("../locks")).await, "no_match");
    assert_eq!(keeper.outcome(held("demo")).await, "accepted");
    keeper.settled(&world).await;
    assert_eq!(world.count(&jobs, JobState::Held).await, 0);
    assert_eq!(world.state(kept[0]).await, JobState::Held);
    keeper.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_changes_nothing_and_reports_what_it_would_have_done() {
    let world = World::new().await;
    // The alerts that come within the cooldown have some time for it.
    let dry = resume(&TWENTY.replace("enforce", "dry-run").replace("cooldown: 1s", "cooldown: 10s"));
    let keeper = world.keeper(dry).await;
    keeper.ready(false).await;
    world.failed(30).await;
    keeper.sees(JobState::Failed, 30).await;
    let before = read_tree(&world.raw, "/jobs", &[]).await;
    let received = keeper.send(&[failed_jobs("01")]).await;
    let [decided] = &received.decisions[..] else { panic!("{received:?}") };
    assert_eq!((decided.outcome.as_str(), decided.targets.len()), ("dry_run", 20));
    assert!(decided.detail.starts_with("would resume 20 of 30: jid0000000000, "), "{}", decided.detail);
    // It has the same limits.
    assert_eq!(keeper.outcome(failed_jobs("01")).await, "duplicate");
    assert_eq!(keeper.outcome(failed_jobs("02")).await, "cooldown");
    assert_eq!(keeper.outcome_when_cool(failed_jobs("03")).await, "budget");
    assert_eq!(keeper.outcome(failed_jobs("04")).await, "breaker_open");
    assert_eq!(read_tree(&world.raw, "/jobs", &[]).await, before);
    let ours = world.raw.list_children("/queuekeeper").await.unwrap_or_default();
    let made = ours.iter().filter(|name| ["pending", "rules", "election"].contains(&name.as_str()));
    assert_eq!(made.count(), 0, "nothing of ours is made for it: {ours:?}");
    // It is in the audit trail, although no action was requested.
    let dry_runs = keeper.records().into_iter().filter(|record| matches!(record, Record::Alerts { decisions, .. } if decisions.iter().any(|decided| decided.outcome == "dry_run" && decided.targets.len() == 20)));
    assert_eq!((dry_runs.count(), keeper.done()), (1, 0));
    keeper.end().await;
}

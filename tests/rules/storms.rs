//! Very many alerts, and their cost.

use jiff::Timestamp;
use queuekeeper::actions::audit::Record;
use queuekeeper::alerts::NotReceived;
use queuekeeper_queue::state::JobState;
use std::time::Duration;

use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use serde_json::{Value, json};

use super::changes::changed;
use super::world::{Keeper, PERSISTENT, World, alert, operator, rules};

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_alerts_do_what_one_does() {
    let world = World::new().await;
    let both = "alerts:
  rules:
    - name: again
      alert: MerrittJobsFailed
      mode: enforce
      action: resume_jobs
      select: {limit: 5}
      narrow_by: [collection]
      budget: {items: 8, per: 1h}
      cooldown: 1h
";
    let keeper = world.keeper(rules(both)).await;
    keeper.ready(true).await;
    let jobs = world.failed(20).await;
    keeper.sees(JobState::Failed, 20).await;
    let one = |number: usize| {
        let labels = json!({"alertname": "MerrittJobsFailed", "instance": format!("i{number}")});
        alert("firing", &labels, &format!("{number:016x}"), "2026-11-21T10:00:00Z")
    };
    let mut outcomes = std::collections::BTreeMap::new();
    for group in 0..100 {
        let alerts: Vec<Value> = (0..100).map(|number| one(group * 100 + number)).collect();
        let received = keeper.send(&alerts).await;
        for decided in received.decisions {
            *outcomes.entry(decided.outcome).or_insert(0) += 1;
        }
    }
    keeper.settled(&world).await;
    assert_eq!(outcomes.values().sum::<usize>(), 10_000, "{outcomes:?}");
    // One may be accepted just when another finishes; the leader polls again.
    assert!(outcomes["accepted"] < 10, "{outcomes:?}");
    assert_eq!(world.count(&jobs, JobState::Failed).await, 15);
    assert_eq!(keeper.done(), 5);
    // Invented collections have no effect.
    let invented = |number: usize| {
        let labels = json!({"alertname": "MerrittJobsFailed", "collection": format!("c{number}")});
        alert("firing", &labels, &format!("{number:016x}"), "2026-11-21T10:00:00Z")
    };
    let alerts: Vec<Value> = (0..500).map(invented).collect();
    let received = keeper.send(&alerts).await;
    assert!(received.decisions.iter().all(|decided| decided.outcome == "no_match"));
    assert!(world.pending().await.is_empty());
    keeper.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_alerts_in_one_call_cost_as_much_as_one() {
    // A server of its own, whose transactions are counted.
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let world = World::on(&server).await;
    let (holding, resuming) = (
        "{name: hold, alert: Full, mode: enforce, action: hold_collections, on_resolved: release, \
         select: {states: [provisioning], limit: 1}, budget: {items: 1, per: 1h}, cooldown: 1m}",
        "{name: again, alert: Failed, mode: enforce, action: resume_jobs, select: {limit: 1}, \
         budget: {items: 1, per: 1h}, cooldown: 1m, max_share: 1}",
    );
    let rules = rules(&format!("alerts:\n  rules:\n    - {holding}\n    - {resuming}\n"));
    let address = world.address(None, &server.connect_string());
    let keeper = Keeper::start(&address, rules.clone(), Duration::from_secs(30)).await;
    keeper.ready(true).await;
    keeper.end().await;
    // Its znodes exist, and nothing is executed any more.
    let mut keeper = Keeper::start(&address, rules, Duration::from_secs(30)).await;
    keeper.only_answers();
    world.failed(3).await;
    keeper.sees(JobState::Failed, 3).await;
    let call = |name: &str, status: &str| -> Vec<Value> {
        let labels = json!({"alertname": name});
        (0..1_000).map(|number| alert(status, &labels, &format!("{number:x}"), "2026-11-21T10:00:00Z")).collect()
    };
    let mut number = 0;
    let mut zxid = async || {
        number += 1;
        let created = world.raw.create(&format!("/mark{number}"), b"", &PERSISTENT).await.unwrap();
        created.0.czxid
    };
    let before = zxid().await;
    let received = keeper.send(&call("Failed", "firing")).await;
    let count = |outcome: &str| received.decisions.iter().filter(|decided| decided.outcome == outcome).count();
    assert_eq!((count("accepted"), count("duplicate")), (1, 999));
    assert_eq!(world.pending().await.len(), 1);
    // The audit trail has the decisions to be executed, and the number of the others.
    let records = keeper.records();
    let Some(Record::Alerts { decisions, more, .. }) = records.last() else { panic!("{records:?}") };
    assert_eq!((decisions.len(), &*decisions[0].outcome, *more), (1, "accepted", 999));
    keeper.send(&call("Full", "resolved")).await;
    keeper.send(&call("Nobody", "firing")).await;
    // As many calls as the rate limit allows: nothing in them is new, and so they are counted, or refused.
    let (actor, reason) = operator();
    changed(async || keeper.alerts.pause(&actor, &reason, Timestamp::now()).await).await;
    let size = || [keeper.read("").len(), keeper.read(".alerts").len()];
    let (sizes, mut unwritten) = (size(), 0);
    for number in 0..240 {
        let call = call("Failed", if number % 2 == 0 { "firing" } else { "resolved" });
        match keeper.receive(&call).await {
            Ok(received) => {
                unwritten += received.decisions.iter().filter(|decided| decided.outcome != "accepted").count();
            }
            Err(NotReceived::Full(why)) => assert!(why.contains("too many calls"), "{why}"),
            // ZooKeeper did not answer in time.
            Err(NotReceived::NotSynced(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let grown = [size()[0] - sizes[0], size()[1] - sizes[1]];
    // The sums of a minute take less space than ten calls of ten alerts would.
    assert!(unwritten > 100_000 && grown[0] == 0 && grown[1] < 40_000, "{unwritten} {grown:?}");
    let of_operators: Vec<Record> = keeper.read("").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(of_operators.iter().all(|record| matches!(record, Record::Requested { .. } | Record::Outcome { .. })));
    assert!(of_operators.iter().any(|record| matches!(record, Record::Requested { actor, .. } if actor == "oscar")));
    let transactions = zxid().await - before;
    assert!(transactions < 20, "{transactions}");
    keeper.end().await;
}

//! Very many alerts, and what they cost.

use queuekeeper::queue::state::JobState;
use serde_json::{Value, json};

use super::world::{World, alert, rules};

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
      cooldown: 1m
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
        let received = keeper.tell(&alerts).await;
        for decided in received.decisions {
            *outcomes.entry(decided.outcome).or_insert(0) += 1;
        }
    }
    keeper.settled(&world).await;
    assert_eq!(outcomes.values().sum::<usize>(), 10_000, "{outcomes:?}");
    // One may be accepted just when another is done; whoever carries it out looks again.
    assert!(outcomes["accepted"] < 10, "{outcomes:?}");
    assert_eq!(world.count(&jobs, JobState::Failed).await, 15);
    assert_eq!(keeper.done(), 5);
    // Whoever invents collections gets nothing for it.
    let invented = |number: usize| {
        let labels = json!({"alertname": "MerrittJobsFailed", "collection": format!("c{number}")});
        alert("firing", &labels, &format!("{number:016x}"), "2026-11-21T10:00:00Z")
    };
    let alerts: Vec<Value> = (0..500).map(invented).collect();
    let received = keeper.tell(&alerts).await;
    assert!(received.decisions.iter().all(|decided| decided.outcome == "no_match"));
    assert!(world.pending().await.is_empty());
    keeper.end().await;
}

//! `status` shows the same as the overview of a server.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::api::Server;
use super::mill_verify::rot;
use super::stores::command;
use super::world::World;
use queuekeeper_testkit::wait::eventually;

const LIMIT: Duration = Duration::from_mins(1);

const RULES: &str = "alerts:
  rules:
    - name: again
      alert: MerrittJobsFailed
      mode: enforce
      action: resume_jobs
      select: {limit: 5}
      budget: {items: 20, per: 1h}
      cooldown: 1m
      attempts: 4
    - name: make-room
      alert: MerrittProvisioningStuck
      mode: enforce
      action: hold_collections
      select: {limit: 1}
      budget: {items: 3, per: 1h}
      cooldown: 1m
      on_resolved: release
    - name: odd
      alert: MerrittFaults
      mode: enforce
      action: repair_faults
      select: {faults: [orphan_entry], limit: 5}
      budget: {items: 3, per: 1h}
      cooldown: 1m
";

/// The znodes of rules that need attention for every reason.
async fn rules_at_work(world: &World) {
    let since = "2026-11-21T10:00:00Z";
    let hold = |collection: &str| json!({"collection": collection, "since": since, "fingerprint": "aa"});
    world.create("/queuekeeper/pending", "").await;
    world.create("/queuekeeper/rules", "").await;
    let breaker = json!({"breaker": {"since": since, "why": "it wanted 40 of 20"}, "left": ["jid0000000009"]});
    for (rule, memory) in [
        ("again", breaker.to_string()),
        ("make-room", json!({"holds": [hold("c10")]}).to_string()),
        ("gone", json!({"holds": [hold("c1"), hold("c2")]}).to_string()),
        ("odd", "no memory".to_owned()),
    ] {
        world.create(&format!("/queuekeeper/rules/{rule}"), &memory).await;
    }
    let decision = json!({
        "id": uuid::Uuid::now_v7(), "kind": "undo", "rule": "make-room", "scope": {}, "at": Timestamp::now(),
        "cause": {"alert": "MerrittProvisioningStuck", "fingerprint": "aa", "starts_at": since},
    });
    world.create("/queuekeeper/pending/make-room.undo", &decision.to_string()).await;
}

/// The visible part of each item, in order.
fn attention(overview: &Value) -> Vec<Value> {
    let items = overview["attention"].as_array().unwrap().iter();
    // Since when a fault exists depends on who has been watching.
    let seen = |item: &Value| {
        let mut item = item.clone();
        item.as_object_mut().unwrap().remove("since");
        item
    };
    items.map(seen).collect()
}

#[tokio::test]
async fn it_prints_the_attention_list_of_the_overview() {
    let world = World::new("attention").await;
    world.create("/locks/queue/accessSmall", r#"{"who":"ops@here","why":"a full disk"}"#).await;
    world.create("/jobs/states/storing/05-jid0000000001", "").await;
    world.create("/jobs/strange", "").await;
    world.create("/queuekeeper", "").await;
    // While this exists no action is executed, and the rest stays as it is.
    world.create("/queuekeeper/paused", r#"{"who":"oscar","why":"a test"}"#).await;
    rules_at_work(&world).await;
    std::fs::write(world.home.path().join("config.yml"), RULES).unwrap();
    let file = world.home.path().join("config.yml");
    let file = file.to_str().unwrap();
    let storage = ["--storage.path", world.home.path().to_str().unwrap(), "--storage.threshold", "0.000001"];
    // So low that any job in Provisioning waits for space.
    let server =
        Server::start_with(&world, &[&["--config.file", file, "--audit.file", "-"], &storage[..]].concat()).await;
    let with_rules = [&["--config.file", file], &storage[..]].concat();
    let status = async || attention(&world.run_with("status -o json", &with_rules).await.json());
    let ours = status().await;
    let kinds: Vec<_> = ours.iter().map(|item| item["kind"].as_str().unwrap()).collect();
    for kind in [
        "paused",
        "orphan_entry",
        "failed",
        "unreadable",
        "breaker_open",
        "automation_gave_up",
        "automation_orphan",
        "automation_failing",
        "automation_paused",
        "automation_at_work",
        "automation_holds",
        "automation_foreign",
        "waiting_for_space",
    ] {
        assert!(kinds.contains(&kind), "{kind} is not in {kinds:?}");
    }
    let paused = ours.iter().find(|item| item["kind"] == "paused").unwrap()["text"].as_str().unwrap();
    assert!(paused.starts_with("By “ops@here”; reason: “a full disk”. "), "{paused}");
    // Anew each time: how full the disk is may change meanwhile.
    eventually(LIMIT, "the server shows the same", async || attention(&server.ask("overview").await) == status().await)
        .await;
    eventually(LIMIT, "the text output has the same, in the same order", async || {
        let ours = status().await;
        let ran = world.run_with("status", &with_rules).await;
        let places: Option<Vec<_>> = ours.iter().map(|item| ran.out.find(item["title"].as_str().unwrap())).collect();
        places.is_some_and(|places| places.is_sorted())
    })
    .await;

    // Without the rules' configuration, the state in their znodes is shown, and what is unknown is marked.
    let ran = world.run("status").await;
    ran.is(
        0,
        &[
            "All automatic action is paused",
            "The breaker of the rule again is open",
            "The rule again gave up on 1 item",
            "The rule make-room is paused with unfinished decisions",
            "The rule make-room holds 1 collection",
            "The rule gone holds 2 collections",
            "--config.file",
            "--storage.path",
        ],
    );
    for claim in ["An inactive rule still holds", "4 times", "It releases them once"] {
        assert!(!ran.out.contains(claim), "{claim:?} cannot be known: {ran:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn open_bit_errors_need_attention_and_so_does_a_catalogue_that_cannot_be_read() {
    let world = World::new("bit-errors").await;
    let home = world.home.path();
    let objects = home.join("objects");
    std::fs::create_dir(&objects).unwrap();
    let text = format!(
        "stores:\n  main: {{url: \"file://{}\"}}\ncatalogue: {{url: \"sqlite:catalogue.db\"}}\n\
         mill: {{accounts: {{one: {{stores: {{\"1\": main}}}}}}, policies: {{directory: policies}}}}\n",
        objects.display()
    );
    std::fs::write(home.join("config.yml"), text).unwrap();
    std::fs::write(home.join("content"), "content").unwrap();
    let content = home.join("content").display().to_string();
    let file = home.join("config.yml").display().to_string();
    let status = async || world.run_with("status", &["--config.file", &file]).await;
    command(home, &format!("store put {content} main/theses/a --create-space")).await.is(0, &[]);
    let none = status().await;
    assert!(none.code == 0 && !none.out.contains("bit error"), "{none:?}");
    rot(&objects.join("theses/a"));
    command(home, "mill verify one/main/theses/a").await.is(7, &["content damaged"]);
    let found = status().await;
    found.is(0, &["!! 1 open bit error, since ", "A copy in a store differs from its records."]);
    std::fs::rename(home.join("catalogue.db"), home.join("away.db")).unwrap();
    let away = status().await;
    away.is(0, &["The number of open bit errors is unknown", "The catalogue cannot be read: "]);
    assert!(!home.join("catalogue.db").exists(), "nothing is made");
}

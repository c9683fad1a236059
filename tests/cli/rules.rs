//! `rules check` and `rules test`, with the shipped rules and with invalid ones.

use serde_json::json;

use super::program::run;
use super::reader::Reader;
use super::world::World;
use queuekeeper_testkit::documentation::{block, commands};
use queuekeeper_testkit::tree::read_tree;

const SHIPPED: &str = include_str!("../../dashboards/queuekeeper/config.yml");

fn payload(labels: &serde_json::Value, status: &str) -> String {
    let alert = json!({"status": status, "labels": labels, "startsAt": "2026-11-21T10:00:00Z", "fingerprint": "0f1e"});
    json!({"version": "4", "receiver": "queuekeeper", "alerts": [alert]}).to_string()
}

#[tokio::test]
async fn the_shipped_rules_are_valid_and_errors_have_their_place() {
    let home = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let right = write("right.yml", SHIPPED);
    let ran = run(home.path(), &["rules", "check", &right]).await;
    ran.is(
        0,
        &["right.yml is valid: 4 rules", "make-room (dry-run)", "try-again", "free-the-head", "release-the-forgotten"],
    );
    let line = SHIPPED.lines().position(|line| line.contains("max_share: 0.25")).unwrap() + 1;
    let wrong = write("wrong.yml", &SHIPPED.replace("max_share: 0.25", "max_share: 25"));
    run(home.path(), &["rules", "check", &right, &wrong])
        .await
        .is(2, &["wrong.yml", &format!("line {line}: rule try-again: max_share")]);
    run(home.path(), &["rules", "check", "nothing.yml"]).await.is(2, &["nothing.yml"]);
    run(home.path(), &["rules"]).await.is(2, &["check"]);
}

#[tokio::test]
async fn a_test_shows_what_would_happen_now_and_does_nothing() {
    let world = World::new("rules").await;
    let write = |name: &str, text: &str| {
        let path = world.home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let rules = write("rules.yml", &SHIPPED.replace("mode: dry-run", "mode: enforce"));
    let failed = write("failed.json", &payload(&json!({"alertname": "MerrittJobsFailed"}), "firing"));
    let before = read_tree(&world.client, "/", &[]).await;
    let test = async |alert: &str| world.run(&format!("rules test {rules} --alert {alert}")).await;
    let ran = test(&failed).await;
    ran.is(0, &["MerrittJobsFailed (0f1e), try-again: would_act", "resume 1 of 1", "jid0000000009"]);
    let stuck = json!({"alertname": "MerrittProvisioningStuck", "cause": "waiting_for_space"});
    let stuck = write("stuck.json", &payload(&stuck, "firing"));
    test(&stuck).await.is(0, &["make-room: nothing_to_do", "set --storage.path"]);
    let other = write("other.json", &payload(&json!({"alertname": "Other"}), "firing"));
    test(&other).await.is(0, &["Other (0f1e), no rule: no_match"]);
    let over = write("over.json", &payload(&json!({"alertname": "MerrittJobsFailed"}), "resolved"));
    test(&over).await.is(0, &["try-again: resolved", "nothing is released"]);
    let ran = world.run(&format!("rules test {rules} --alert {failed} -o json")).await;
    assert_eq!(ran.is(0, &[]).json()[0]["outcome"], "would_act");

    assert!(read_tree(&world.client, "/", &[]).await == before, "nothing was written");

    // The shared budget counts, and so does the pause.
    world.create("/queuekeeper", "").await;
    world.create("/queuekeeper/paused", "").await;
    test(&failed).await.is(0, &["try-again: paused"]);
    world.client.delete("/queuekeeper/paused", None).await.unwrap();
    world.create("/queuekeeper/rules", "").await;
    world.create("/queuekeeper/rules/try-again", "garbage").await;
    test(&failed).await.is(0, &["try-again: failed", "delete /queuekeeper/rules/try-again"]);
    let future = write("future.json", r#"{"version": "5"}"#);
    test(&future).await.is(2, &["future.json", "\"5\""]);
    let junk = write("junk.json", "{");
    test(&junk).await.is(2, &["junk.json", "unexpected end of JSON (line 1"]);
    test("nothing.json").await.is(2, &["--alert", "nothing.json"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rule_of_the_documentation_is_tried_by_its_commands() {
    let world = World::new("documented-rule").await;
    let mut reader = Reader::new();
    reader.replace("zk1:2181/merritt", &world.address);
    reader.replace("/data/ingest", world.home.path().display().to_string());
    std::fs::write(reader.at("config.yml"), block("docs/alerts.md", "alerts:\n  rules:")).unwrap();
    let firing = payload(&json!({"alertname": "MerrittJobsFailed"}), "firing");
    std::fs::write(reader.at("payload.json"), firing).unwrap();
    let mut terminal = reader.terminal();
    let lines = commands(block("docs/alerts.md", "queuekeeper rules check "));
    let [check, test] = &lines[..] else { panic!("{lines:#?}") };
    let checked = terminal.follow(check);
    assert!(checked.contains("config.yml is valid: 1 rule") && checked.contains("try-again (dry-run)"), "{checked}");
    let tested = terminal.follow(test);
    assert!(tested.contains("try-again (dry run): would_act") && tested.contains("resume 1 of 1"), "{tested}");
}

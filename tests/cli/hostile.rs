//! Names and messages with control sequences for terminals.

use super::world::{World, status};

/// Colours, a title, a response that the terminal sends, C1 controls, direction marks, a newline.
const EVIL: &str = "\u{1b}[31m\u{1b}]0;x\u{7}\u{1b}[6n\u{9b}2J\u{7f}\u{202e}evil\u{2066}\u{200b}\nnew\r\u{8}line";

#[tokio::test]
async fn no_control_sequence_of_a_znode_reaches_a_terminal() {
    let world = World::new("hostile").await;
    world.job(20, 0, "Failed", EVIL).await;
    world.job(21, 0, EVIL, EVIL).await;
    world.client.set_data("/batches/bid0000000000/status", status("Reporting", EVIL).as_bytes(), None).await.unwrap();
    let submission = serde_json::json!({"batchID": "uuid-0", "profile": EVIL, "submitter": EVIL, "filename": EVIL});
    let submission = submission.to_string();
    world.client.set_data("/batches/bid0000000000/submission", submission.as_bytes(), None).await.unwrap();
    let token = serde_json::json!({"token": EVIL}).to_string();
    world.client.set_data("/access/small/qid0000000000/token", token.as_bytes(), None).await.unwrap();
    world.create("/locks/storage/\u{202e}evil\u{2066}", "").await;
    world.create("/locks/collections/\u{202e}evil\u{2066}", "").await;
    let pause = serde_json::json!({"who": EVIL, "why": EVIL}).to_string();
    world.create("/locks/queue/ingest", &pause).await;
    for line in [
        "status",
        "jobs",
        "jobs --all",
        "job 20",
        "job 21",
        "job 21 why",
        "failures",
        "batches",
        "batch bid0000000000",
        "access",
        "locks",
        "queue",
        "collection",
        "faults",
        "jobs --state failed resume --dry-run",
        "job 20 resume --dry-run",
        "queue unpause ingest --dry-run",
    ] {
        for output in ["", " -o json", " -o csv"] {
            let ran = world.run(&format!("{line}{output}")).await;
            is_harmless(&ran.out);
            is_harmless(&ran.err);
            let is_list = !["status", "job ", "batch "].iter().any(|no_list| line.starts_with(no_list));
            let is_refused = output.ends_with("csv") && (!is_list || line.contains("--dry-run"));
            assert_eq!(ran.code, if is_refused { 2 } else { 0 }, "{ran:?}");
        }
    }
    // Arguments are repeated in messages.
    for arguments in
        [["jobs", "--collection", EVIL], ["jobs", "--group", EVIL], ["job", EVIL, "why"], ["batch", EVIL, "purge"]]
    {
        let arguments = [&arguments[..], &["--zookeeper", &world.address, "--dry-run"]].concat();
        let ran = super::program::run(world.home.path(), &arguments).await;
        assert!(matches!(ran.code, 2 | 4), "{ran:?}");
        is_harmless(&ran.err);
    }
    // No other text is lost.
    let jobs = world.run("jobs --state failed --text evil -o json").await.json();
    assert_eq!(jobs["items"][0]["message"], EVIL);
}

#[track_caller]
fn is_harmless(text: &str) {
    let hidden = |found: &char| {
        (found.is_control() && *found != '\n')
            || matches!(found, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert_eq!(text.chars().find(hidden), None, "{text:?}");
}

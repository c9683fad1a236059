//! Actions: their effects, exit codes and audit records.

use super::program::run;
use super::world::{World, status};

const SURE: [&str; 3] = ["--yes", "--reason", "the disk is replaced"];

#[tokio::test]
async fn each_action_does_what_its_name_says_or_is_refused_with_its_code() {
    let world = World::new("acting").await;
    world.ephemeral("/jobs/jid0000000003/lock").await;
    world.batch(1, "Failed").await;
    world.job(20, 1, "Failed", "no such file").await;
    world.batch(5, "Failed").await;
    world.batch(2, "Completed").await;
    world.batch(3, "Held").await;
    world.batch(4, "Held").await;
    for (line, code, printed) in [
        ("job 9 resume", 0, &["resume jid0000000009, failed to storing: done"][..]),
        ("job 9 fail", 0, &["storing to failed"]),
        ("job 9 resume --to downloading", 0, &["failed to downloading"]),
        ("job 9 resume", 3, &["jid0000000009"]),
        ("job 0 hold", 0, &["pending to held"]),
        ("job 0 release", 0, &["held to pending"]),
        ("job 10 release", 0, &["held to pending", "collection is still held"]),
        ("job 3 fail", 3, &["jid0000000003/lock"]),
        ("job 1 priority 3", 0, &["set_priority jid0000000001"]),
        ("job 1 priority 100", 2, &["0, the most urgent, to 99"]),
        ("job 1 priority", 2, &["0, the most urgent, to 99"]),
        ("job 1 hold 3", 2, &["3: only `priority` supports it"]),
        ("job 1 hold --to pending", 2, &["--to: only `resume` supports it"]),
        ("job 1 delete", 3, &["jid0000000001"]),
        ("job 99 resume", 4, &["/jobs/jid0000000099"]),
        ("job 3 break-lock", 3, &["is not a fault", "with force"]),
        ("job 3 break-lock --force", 0, &["loses it"]),
        ("job 3 break-lock --force", 4, &["no longer locked"]),
        ("lock /jobs/jid0000000003/lock break", 4, &["no longer locked"]),
        ("lock /jobs break", 2, &["not the path of a lock", "queuekeeper locks"]),
        ("batch bid0000000001 report-again", 0, &["failed to update"]),
        ("batch bid0000000005 report-again", 3, &["it has no jobs that could be reported"]),
        ("batch uuid-2 purge", 0, &["purge bid0000000002"]),
        ("batch uuid-2 purge", 4, &["no batch uuid-2"]),
        ("batch bid0000000003 delete", 0, &["delete bid0000000003"]),
        ("batch bid0000000004 release", 0, &["held to pending"]),
        ("batch bid0000000004 delete --force", 2, &["--force: only `release` supports it"]),
        ("access small qid0000000000 resume", 0, &["failed to pending"]),
        ("access small qid0000000000 purge", 3, &["qid0000000000"]),
        ("access small qid0000000007 delete", 4, &["qid0000000007"]),
        ("queue pause ingest", 0, &["Until it is unpaused, only the inventory daemon takes jobs"]),
        ("queue pause ingest", 3, &["already paused"]),
        ("queue unpause ingest", 0, &["unpause queue:ingest: done"]),
        ("queue unpause ingest", 3, &["not paused"]),
        ("queue pause", 2, &["QUEUE"]),
        ("collection hold demo", 0, &["hold collection:demo: done"]),
        ("collection hold demo", 3, &["already held"]),
        ("collection release demo", 0, &["release collection:demo: done"]),
        ("collection hold a/b", 2, &["a/b is not a valid collection mnemonic"]),
    ] {
        world.run_with(line, &SURE).await.is(code, printed);
    }
    assert_eq!(world.state(9).await["status"], "Downloading");
    assert_eq!(world.state(9).await["retry_count"], 2);
    let tree = world.tree().await;
    assert!(tree.contains_key("/jobs/states/estimating/03-jid0000000001"));
    assert!(!tree.contains_key("/batches/bid0000000002") && !tree.contains_key("/batches/bid0000000003"));
}

#[tokio::test]
async fn each_action_is_recorded_with_user_and_reason_in_two_records() {
    let world = World::new("audit").await;
    let view = world.run_with("job 9 resume -o json", &SURE).await.json();
    assert_eq!(
        (&view["outcome"], &view["before"], &view["after"]),
        (&"done".into(), &"failed".into(), &"storing".into())
    );
    world.run_with("job 9 resume", &SURE).await.is(3, &[]);
    let audit = world.audit();
    let [requested, outcome] = [&audit[0], &audit[1]];
    assert_eq!((&requested["id"], &outcome["id"]), (&view["id"], &view["id"]));
    assert_eq!((&requested["record"], &outcome["record"]), (&"requested".into(), &"outcome".into()));
    assert_eq!((&requested["source"], &requested["reason"]), (&"cli".into(), &"the disk is replaced".into()));
    assert_eq!((&requested["targets"][0], &outcome["outcome"]), (&"jid0000000009".into(), &"done".into()));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let actor = requested["actor"].as_str().unwrap();
    assert!(actor.ends_with(&format!("@{host}")) && actor.len() > host.len() + 1, "{actor}");

    // Another file, by flag and by environment variable.
    let file = world.home.path().join("elsewhere.jsonl");
    let flag = ["--audit.file", file.to_str().unwrap()];
    world.run_with("queue pause accessLarge", &[&SURE[..], &flag].concat()).await.is(0, &[]);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 2);
    // An action that cannot be recorded is not executed.
    let before = world.tree().await;
    let folder = ["--audit.file", world.home.path().to_str().unwrap()];
    world
        .run_with("queue unpause accessLarge", &[&SURE[..], &folder].concat())
        .await
        .is(1, &["audit", "nothing was done"]);
    assert!(world.tree().await == before);
}

#[tokio::test]
async fn without_a_terminal_nothing_is_done_and_a_dry_run_only_shows() {
    let world = World::new("dry").await;
    world.create("/jobs/states/storing/05-jid0000000001", "").await;
    let before = world.tree().await;
    for line in [
        "job 9 resume",
        "batch bid0000000000 delete",
        "batches clean-up",
        "access small qid0000000000 resume",
        "queue pause ingest",
        "collection hold demo",
        "jobs resume --state failed",
        "faults --repair",
        "lock /locks/collections/c10 break",
    ] {
        world.run(line).await.is(2, &["cannot be confirmed", "--yes", "--dry-run"]);
        // An action requires a reason.
        world.run(&format!("{line} --yes")).await.is(2, &["--reason"]);
        world.run_with(&format!("{line} --yes"), &["--reason", " "]).await.is(2, &["--reason", "requires a reason"]);
    }
    for (line, code, printed) in [
        ("job 9 resume", 0, &["resume jid0000000009, failed to storing", "/jobs/jid0000000009/status"][..]),
        ("queue pause ingest", 0, &["only the inventory daemon takes jobs", "/locks/queue/ingest"]),
        (
            "collection release c10 --with-jobs",
            0,
            &["1 Held job is released with the collection", "/locks/collections/c10"],
        ),
        ("batches clean-up", 0, &["there is nothing to purge"]),
        ("jobs resume --state failed", 0, &["Resume of 1 job", "jid0000000009"]),
        ("faults --repair", 0, &["/jobs/states/storing/05-jid0000000001"]),
        ("job 9 hold", 3, &["jid0000000009"]),
    ] {
        world.run(&format!("{line} --dry-run")).await.is(code, printed);
    }
    let view = world.run("job 9 resume --dry-run -o json").await.json();
    assert_eq!((&view["outcome"], &view["operations"].as_array().unwrap().len()), (&"dry_run".into(), &7));
    assert!(world.tree().await == before, "a dry run has written something");
    assert_eq!(world.audit(), [] as [serde_json::Value; 0]);
}

#[tokio::test]
async fn the_environment_can_set_the_connection_but_never_confirm() {
    let world = World::new("variable").await;
    let ran = tokio::task::spawn_blocking({
        let (home, address) = (world.home.path().to_owned(), world.address.clone());
        move || {
            let mut command = super::program::queuekeeper(&home, &["queue", "pause", "ingest"]);
            command
                .env("QUEUEKEEPER_ZOOKEEPER", address)
                .env("QUEUEKEEPER_YES", "true")
                .env("QUEUEKEEPER_REASON", "why");
            command.output().unwrap()
        }
    });
    assert_eq!(ran.await.unwrap().status.code(), Some(2));
    assert!(!world.tree().await.contains_key("/locks/queue/ingest"));
}

#[tokio::test]
async fn new_znodes_get_the_configured_acl() {
    let world = World::new("acl").await;
    let acl = ["--zookeeper.acl", "world:anyone:crwd"];
    world.run_with("queue pause ingest", &[&SURE[..], &acl].concat()).await.is(0, &[]);
    let (found, _) = world.client.get_acl("/locks/queue/ingest").await.unwrap();
    assert_eq!(found[0].permission().to_string(), "READ|WRITE|CREATE|DELETE");
    run(world.home.path(), &["queue", "--zookeeper.acl", "anyone"])
        .await
        .is(2, &["--zookeeper.acl", "scheme:id:permissions"]);
}

#[tokio::test]
async fn repairs_fix_faults_name_them_and_remove_no_job() {
    let world = World::new("repair").await;
    let set = async |path: &str, data: &str| world.client.set_data(path, data.as_bytes(), None).await.unwrap();
    world.create("/jobs/states/storing/05-jid0000000001", "").await;
    world.create("/jobs/states/storing/05-jid0000000777", "").await;
    world.client.delete("/jobs/states/pending/05-jid0000000000", None).await.unwrap();
    let spent = status("Failed", "").replace("\"retry_count\":0", "\"retry_count\":3");
    set("/jobs/jid0000000009/status", &spent).await;
    let printed = [
        "retries_exhausted: it cannot be repaired automatically",
        "create /jobs/states/pending/05-jid0000000000",
        "3 done",
    ];
    world.run_with("faults --repair", &SURE).await.is(0, &printed);
    world.run("faults").await.is(0, &["retries_exhausted", "jid0000000009"]);
    let faults = world.run("faults -o json").await.json();
    assert_eq!(faults["total"], 1, "{faults:#}");
    let tree = world.tree().await;
    assert!(tree.contains_key("/jobs/states/pending/05-jid0000000000"));
    assert!(!tree.keys().any(|path| path.starts_with("/jobs/states/storing/05-jid0000000001")));

    // Jobs that the daemons cannot load; for all but one the rest of the tree implies the correct values.
    set("/jobs/jid0000000000/status", r#"{"status":"pending","retry_count":0,"by":"ruby"}"#).await;
    set("/jobs/jid0000000001/status", r#"{"status":"Estimating"}"#).await;
    set("/jobs/jid0000000001/priority", "high").await;
    world.client.delete("/jobs/jid0000000002/space_needed", None).await.unwrap();
    world.create("/jobs/jid0000000003/metadata", "[]").await;
    set("/jobs/jid0000000004/configuration", "{").await;
    let printed = [
        "jid0000000000: set /jobs/jid0000000000/status at version 1 = {\"status\":\"Pending\"",
        "set /jobs/jid0000000001/priority at version 1 = 5; /jobs/jid0000000001/priority was high",
        "create /jobs/jid0000000002/space_needed = 0",
        "/jobs/jid0000000003/metadata was []",
        "jid0000000004: /jobs/jid0000000004: it cannot be repaired",
        "configuration is not JSON",
        "4 done, 1 not done",
    ];
    world.run_with("faults unloadable_job --repair", &SURE).await.is(6, &printed);
    assert_eq!(world.state(0).await["by"], "ruby");
    let before = world.tree().await;
    let alone = "faults unloadable_job --repair --item /jobs/jid0000000004";
    world.run_with(alone, &SURE).await.is(3, &["cannot be repaired", "purge it by its name"]);
    world.run_with("jobs --state processing purge", &SURE).await.is(3, &["purge it by itself", "0 done, 1 not done"]);
    assert!(world.tree().await == before, "what cannot be repaired is left alone");
    world.run_with("job 4 purge", &SURE).await.is(0, &["purge jid0000000004: done", "Its depositor is not notified"]);
    let tree = world.tree().await;
    assert!(!tree.keys().any(|path| path.contains("jid0000000004")));
    assert!((0..4).all(|number| tree.contains_key(&format!("/jobs/jid000000000{number}"))));
}

//! Commands that only read: their output and exit codes.

use std::path::Path;
use std::process::Stdio;

use queuekeeper_testkit::process::free_port;

use super::program::{queuekeeper, run};
use super::world::World;

#[tokio::test]
async fn each_command_shows_its_data_and_ends_with_its_exit_code() {
    let world = World::new("looking").await;
    world.create("/locks/queue/accessSmall", r#"{"who":"ops@here","why":"a full disk"}"#).await;
    world.ephemeral("/jobs/jid0000000003/lock").await;
    world.create("/jobs/states/storing/05-jid0000000001", "").await;
    world.create("/jobs/strange", "").await;
    world.create("/queuekeeper", "").await;
    world.create("/queuekeeper/election", "").await;
    world.create("/queuekeeper/election/\u{202e}candidate-0000000000", "").await;
    for (line, code, printed) in [
        ("status", 0, &["12 jobs in 1 batch at", "The small access queue is paused", "STATE", "provisioning"][..]),
        (
            "status",
            0,
            &[
                "/queuekeeper/election/\\u{202e}candidate-0000000000 has a name that queuekeeper does not use",
                "Ages assume that the clocks of this host and of ZooKeeper agree",
            ],
        ),
        ("jobs", 0, &["JOB", "MESSAGE", "jid0000000000  pending", "jid0000000011  deleted"]),
        ("jobs --state failed --state held", 0, &["jid0000000009", "jid0000000010"]),
        ("jobs --locked", 0, &["jid0000000003", "yes"]),
        ("jobs --limit 3", 0, &["3 of 12 jobs; --all shows all of them"]),
        ("jobs --text nowhere", 0, &["no job matches"]),
        ("jobs --fault orphan_entry", 0, &["jid0000000001"]),
        ("jobs --state failing", 2, &["--state", "possible values", "pending"]),
        ("jobs --min-age soon", 2, &["--min-age", "soon", "a number is missing"]),
        ("jobs --collection nobody", 4, &["no job of the collection “nobody”", "Allowed:", "c10"]),
        ("jobs --group 0123456789abcdef", 4, &["no failed job in the group"]),
        ("jobs --batch jid1", 2, &["batch", "its number, such as 42"]),
        (
            "job jid0000000003",
            0,
            &["State         downloading", "by session 0x", "/jobs/states/downloading/05-jid0000000003"],
        ),
        ("job 3", 0, &["jid0000000003"]),
        ("job jid0000000999", 4, &["there is no job jid0000000999"]),
        ("job jid3", 2, &["not a job id", "jid0000000042"]),
        (
            "job jid0000000001 why",
            0,
            &["Its entry is in a state other than", "/jobs/states/storing/05-jid0000000001", "Fix:"],
        ),
        ("job jid0000000999 why", 4, &["There is no job jid0000000999"]),
        ("job jid0000000001 teleport", 2, &["ACTION", "break-lock"]),
        ("jobs --limit 2 --sort id -o csv", 0, &["id,state,", "\njid0000000001,estimating,", "2 of 12 jobs"]),
        ("jobs --all -o csv delete --yes --reason tried", 2, &["--output: csv is available for lists only"]),
        ("job 3 -o csv", 2, &["invalid value 'csv'", "table, json"]),
        ("queue -o csv", 0, &["name,paused_since,by,reason\n", "\naccessSmall,20", ",ops@here,a full disk\n"]),
        ("failures", 0, &["GROUP", "FIRST", "LATEST", "storing"]),
        ("batches", 0, &["bid0000000000  reporting", "uuid-0"]),
        ("batches --state failed", 0, &["no batch matches"]),
        ("batch bid0000000000", 0, &["12: 9 not done, 1 failed, 1 completed, 1 deleted", "uuid-0"]),
        ("batch 0", 0, &["bid0000000000"]),
        ("batch 999", 4, &["no batch with the id or UUID “bid0000000999”"]),
        ("batch uuid-0", 0, &["bid0000000000"]),
        ("batch uuid-1", 4, &["no batch with the id or UUID “uuid-1”"]),
        ("access", 0, &["small  qid0000000000  failed", "2.0 KiB", "t-0", "no such object"]),
        ("access large", 0, &["no request matches"]),
        ("access small qid0000000001", 4, &["no such request"]),
        ("access medium", 2, &["small, large"]),
        ("locks", 0, &["/jobs/jid0000000003/lock", "persistent", "/locks/collections/c10"]),
        ("locks", 0, &["KIND", "\n\n/locks/queue/accessSmall: by ops@here: a full disk\n"]),
        (
            "locks --kind queue",
            0,
            &["/locks/queue/accessSmall", "\n\n/locks/queue/accessSmall: by ops@here: a full disk\n"],
        ),
        ("locks --session 7", 2, &["session", "0x100005a3c2e0001"]),
        ("queue", 0, &["ingest       not paused", "accessSmall  paused", "ops@here  a full disk"]),
        ("collection", 0, &["c10         held"]),
        ("faults", 0, &["orphan_entry", "/jobs/jid0000000001", "Fix:"]),
        ("faults", 0, &["1 znode cannot be read:", "/jobs/strange"]),
        ("faults missing_entry", 0, &["no fault matches"]),
        (
            "faults no_daemon",
            0,
            &[
                "no matching fault is confirmed",
                "a single walk cannot show whether it lasts",
                "(no_daemon): ",
                "a fault after 5 min",
            ],
        ),
        (
            "status",
            0,
            &[
                " under way, oldest wait ",
                "A single read cannot show whether the queue is moving; --watch can.",
                "(no_daemon): ",
                "a fault after 5 min",
                "Not included: working storage",
            ],
        ),
        // With its diagnosis, as a batch.
        ("job 9", 0, &["jid0000000009", "It failed in Storing", "Fix: Resolve the problem named in the message"]),
        ("faults nothing", 2, &["possible values", "orphan_entry"]),
    ] {
        world.run(line).await.is(code, printed);
    }
}

#[tokio::test]
async fn all_pages_of_a_list_are_shown_with_all() {
    let world = World::new("paging").await;
    world.batch(1, "Reporting").await;
    for number in 100..700 {
        world.job(number, 1, "Pending", "").await;
    }
    let whole = world.run("jobs --batch 1 --sort id --all -o json").await.json();
    let ids: Vec<_> = whole["items"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap()).collect();
    assert!(ids.len() == 600 && ids.is_sorted(), "{}", ids.len());
    assert_eq!((&whole["total"], &whole["next"]), (&600.into(), &serde_json::Value::Null));
    let first = world.run("jobs --batch 1 --sort id --limit 400 -o json").await.json();
    let cursor = first["next"].as_str().unwrap();
    let second = world.run(&format!("jobs --batch 1 --sort id --limit 400 -o json --cursor {cursor}")).await.json();
    assert_eq!(second["items"][0]["id"], "jid0000000500");
    assert_eq!(world.run("jobs --batch 1 --all").await.out.lines().count(), 601);
}

#[tokio::test]
async fn without_zookeeper_the_error_has_one_line_with_the_remedy() {
    let unused = format!("127.0.0.1:{}", free_port());
    let home = tempfile::tempdir().unwrap();
    for command in ["status", "jobs", "job 1", "queue", "faults", "faults --repair --yes --reason tried"] {
        let words: Vec<_> = command.split(' ').collect();
        let ran = run(home.path(), &[&words[..], &["--zookeeper", &unused]].concat()).await;
        ran.is(1, &["no ZooKeeper server can be used", "connection refused"]);
        assert_eq!((ran.err.lines().count(), &*ran.out), (1, ""), "{ran:?}");
    }
}

#[tokio::test]
async fn completions_and_manual_pages_are_generated_and_the_help_has_the_exit_codes() {
    let home = Path::new("/");
    for (shell, printed) in [
        ("bash", &["complete -F", "break-lock", "min-age"][..]),
        ("zsh", &["#compdef queuekeeper", "break-lock", "min-age"]),
        // Values of positional arguments are not completed.
        ("fish", &["complete -c queuekeeper", "min-age"]),
    ] {
        run(home, &["completion", shell]).await.is(0, printed);
    }
    let pages = tempfile::tempdir().unwrap();
    let directory = pages.path().join("man");
    run(home, &["man-pages", directory.to_str().unwrap()]).await.is(0, &[]);
    for (name, has) in [
        ("queuekeeper", &["queuekeeper\\-serve(1)", "Exit codes:"][..]),
        ("queuekeeper-serve", &["QUEUEKEEPER_STORAGE_PATH"]),
        ("queuekeeper-mill-run", &["QUEUEKEEPER_MILL_WORKERS", "Run the mill"]),
    ] {
        let page = std::fs::read_to_string(directory.join(format!("{name}.1"))).unwrap();
        assert!(page.starts_with(".ie") && has.iter().all(|part| page.contains(part)), "{page}");
    }
    for file in std::fs::read_dir(&directory).unwrap() {
        let page = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let lines: Vec<_> = page.lines().collect();
        let is_bare = |pair: &&[&str]| pair[0].starts_with("\\fB\\-\\-") && pair[1].is_empty();
        assert_eq!(lines.windows(2).find(is_bare), None, "a flag without a description");
    }
    run(home, &["man-pages", "/proc/nowhere"]).await.is(1, &["cannot create /proc/nowhere"]);
    for command in ["status", "jobs", "job", "batch", "locks", "queue", "collection", "faults"] {
        run(home, &[command, "--help"])
            .await
            .is(0, &["--zookeeper.auth-file", "Exit codes:\n  0  success", "  5  unknown: the conn"]);
        let short = run(home, &[command, "-h"]).await;
        assert!(short.code == 0 && !short.out.contains("--zookeeper.tls-ca-file"), "{short:?}");
    }
}

#[tokio::test]
async fn a_closed_pipe_is_not_a_failure_of_any_command() {
    let world = World::new("closed").await;
    let files = world.home.path();
    std::fs::write(files.join("config.yml"), "users: {}\n").unwrap();
    std::fs::write(files.join("web.yml"), "{}\n").unwrap();
    for line in [
        "status",
        "jobs",
        "jobs -o json --all",
        "job 3",
        "job 3 why",
        "failures",
        "batches",
        "batch bid0000000000",
        "access",
        "locks",
        "queue",
        "collection",
        "faults",
        "job 9 resume --yes --reason tried",
        "dump",
        "--help",
        "--version",
        "completion bash",
        "man-pages man",
        "token ci --role viewer",
        "check-config config.yml",
        "check-web-config web.yml",
        "rules check config.yml",
        "dashboards files",
    ] {
        // The pipe is closed from the start.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = queuekeeper(files, &line.split(' ').collect::<Vec<_>>());
        command.env("QUEUEKEEPER_ZOOKEEPER", &world.address).current_dir(files);
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        let ended = tokio::task::spawn_blocking(move || command.status()).await.unwrap().unwrap();
        assert_eq!(ended.code(), Some(0), "{line}");
    }
}

#[tokio::test]
async fn no_line_is_longer_than_the_terminal_and_no_header_is_cut() {
    let world = World::new("narrow").await;
    world.create("/locks/queue/accessSmall", r#"{"who":"ops@here","why":"a full disk on the second host"}"#).await;
    world.create("/jobs/states/storing/05-jid0000000001", "").await;
    world.ephemeral("/jobs/jid0000000003/lock").await;
    world.job(12, 0, "Failed", &"a long message ".repeat(20)).await;
    for line in [
        "status",
        "jobs",
        "job 3",
        "failures",
        "batches",
        "batch bid0000000000",
        "access",
        "locks",
        "queue",
        "collection",
        "faults",
    ] {
        for columns in [40, 80, 120] {
            // It creates a terminal of its own, with the size of this one.
            let program = env!("CARGO_BIN_EXE_queuekeeper");
            let mut command = std::process::Command::new("script");
            command.args(["-qec", &format!("stty cols {columns} rows 50 && {program} {line}"), "/dev/null"]);
            command.env("QUEUEKEEPER_ZOOKEEPER", &world.address).env("HOME", world.home.path()).stdin(Stdio::null());
            let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success() && text.lines().count() > 1, "{line}: {text}");
            // The progress line is printed before the result, and cleared with a carriage return.
            let shown = text.lines().map(|line| line.trim_end_matches('\r').rsplit('\r').next().unwrap());
            for shown in shown.map(|line| line.trim_start_matches("\u{1b}[2K")) {
                assert!(shown.chars().count() <= columns, "{line}: {shown:?} in {text}");
                let mut letters = shown.chars().filter(|letter| letter.is_alphabetic()).peekable();
                let is_header = letters.peek().is_some() && letters.all(char::is_uppercase);
                assert!(!is_header || !shown.contains('…'), "{line}: {shown:?} in {text}");
            }
        }
    }
}

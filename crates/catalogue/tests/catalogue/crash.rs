//! Processes that are killed at any instant.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use queuekeeper_catalogue::Catalogue;
use queuekeeper_store::audit::{AuditSink as _, Change, Settlement};
use queuekeeper_testkit::process::Program;
use uuid::Uuid;

use super::support::{LEASE, done, intent, look, new_postgres_url, on_both};

const LIMIT: Duration = Duration::from_mins(1);

/// Where the child finds the catalogue; without it, it does nothing.
const URL: &str = "QUEUEKEEPER_TEST_CATALOGUE";

/// This test binary, running [`child`].
fn spawn(url: &str) -> Program {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "catalogue::crash::child", "--ignored", "--nocapture", "--test-threads=1"]);
    Program(command.env(URL, url).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap())
}

/// Settles one intent after the other, and prints the identifier of each that is settled.
#[tokio::test]
#[ignore = "the process that the tests of this file kill"]
async fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    let catalogue = Catalogue::open(&url).await.unwrap();
    for number in 0u32.. {
        let intent = intent(&(number % 7).to_be_bytes());
        if catalogue.begin(&intent, Duration::ZERO).await.is_ok() {
            // One that an earlier child left is resolved in the parent.
            if catalogue.settle(&intent, &done(Change::Add, 1)).await.is_ok() {
                let mut out = std::io::stdout().lock();
                writeln!(out, "settled {}", intent.id).unwrap();
                out.flush().unwrap();
            }
        }
    }
}

/// Takes over what is left open, until nothing is and all fits. A server may still do what a process requested last
/// that is gone.
async fn settle_what_is_left(catalogue: &Catalogue, url: &str) {
    let deadline = Instant::now() + LIMIT;
    loop {
        while let Some(left) = catalogue.take_left(&"main".parse().unwrap(), LEASE).await.unwrap() {
            catalogue.settle(&left, &Settlement::NotDone).await.unwrap();
        }
        let findings = catalogue.check().await.unwrap();
        let open = look(url, "SELECT CAST(COUNT(*) AS TEXT) FROM intents").await;
        if findings.is_empty() && open == ["0"] {
            return;
        }
        assert!(Instant::now() < deadline, "{open:?} are open: {findings:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

on_both! {
    async fn what_was_settled_when_a_process_was_killed_is_recorded_and_nothing_else(world: World) {
        let mut settled = Vec::new();
        for round in 1..=6 {
            let mut child = spawn(&world.url);
            let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
            let ids = lines.filter_map(|line| Some(line.unwrap().strip_prefix("settled ")?.parse::<Uuid>().unwrap()));
            settled.extend(ids.take(3 * round));
            drop(child);
            settle_what_is_left(&world.catalogue, &world.url).await;
        }
        let events = world.catalogue.events_after(0, 1000).await.unwrap();
        let recorded = events.iter().map(|event| event.intent).collect::<std::collections::BTreeSet<_>>();
        assert!(settled.len() == 63 && settled.iter().all(|id| recorded.contains(id)));
    }
}

/// Kills a process that makes the schema, at more and more of its way.
async fn kill_while_it_opens(url: &str) {
    let mut child = spawn(url);
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    // It has begun: the test harness says what it runs before that.
    lines.find(|line| line.as_ref().unwrap().contains("running")).unwrap().unwrap();
    for millis in [0, 2, 5, 10, 20, 40] {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        drop(std::mem::replace(&mut child, spawn(url)));
    }
    drop(child);
    let catalogue = Catalogue::open(url).await.unwrap();
    assert_eq!(Catalogue::open(url).await.unwrap().id(), catalogue.id());
    settle_what_is_left(&catalogue, url).await;
    catalogue.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_whose_maker_was_killed_opens() {
    for _round in 0..3 {
        let directory = tempfile::tempdir().unwrap();
        kill_while_it_opens(&format!("sqlite:{}", directory.path().join("catalogue.db").display())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_whose_maker_was_killed_opens() {
    for _round in 0..3 {
        kill_while_it_opens(&new_postgres_url()).await;
    }
}

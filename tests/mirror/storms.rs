//! Random storms of changes: once they are over, the mirror says what the tree says.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]
#![expect(clippy::print_stdout, reason = "how much of a storm it was, for whoever runs the long form")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use queuekeeper::mirror::Writer;
use queuekeeper_queue::fault::{Fault, Limits};
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use zookeeper_client::{Acls, Client, CreateMode};

use super::chaos::Chaos;
use super::harness::{LIMIT, Mirror, config, connect, create};
use super::writes::{delete_all, folders, new_batch, play};
use queuekeeper_testkit::proxy::{Newcomers, Proxy};
use queuekeeper_testkit::wait::eventually;

/// How many storms there are. The long form, by hand: `QUEUEKEEPER_TEST_STORMS=200`.
fn storms() -> u64 {
    std::env::var("QUEUEKEEPER_TEST_STORMS").ok().and_then(|storms| storms.parse().ok()).unwrap_or(4)
}

/// How many groups of writes a storm has.
const GROUPS: usize = 1_200;

async fn storm(client: &Client, seed: u64) {
    let mut chaos = Chaos::new(seed);
    let mut writes = folders();
    writes.extend(new_batch("bid0000000000"));
    for group in 0..GROUPS {
        writes.extend(chaos.writes());
        if writes.len() > 200 {
            play(client, &writes).await;
            writes.clear();
        }
        if group % 100 == 99 {
            play(client, &writes).await;
            writes.clear();
            delete_all(client, &chaos.subtree()).await;
            if group < GROUPS / 2 && chaos.one_in(2) {
                // For a while, most of what is written has no place.
                continue;
            }
            writes.extend(folders());
            writes.extend(new_batch("bid0000000000"));
        }
    }
    play(client, &writes).await;
}

/// Every job that came into a state and did not leave it is in it: whatever was seen, what was counted adds up.
fn assert_steps_add_up(mirror: &Mirror) {
    let mut standing: BTreeMap<String, i64> = BTreeMap::new();
    for (step, count) in mirror.steps() {
        let (from, to) = step.split_once("->").unwrap();
        let count = i64::try_from(count).unwrap();
        *standing.entry(from.to_owned()).or_default() -= count;
        *standing.entry(to.to_owned()).or_default() += count;
    }
    let (jobs, _) = mirror.store.jobs(0..usize::MAX).unwrap();
    for job in jobs {
        let has_status = job.status_version >= 0;
        let state = job.state.map_or("other", |state| queuekeeper_queue::state::State::label(state));
        let state = if has_status { state } else { "none" };
        *standing.entry(state.to_owned()).or_default() -= 1;
    }
    standing.remove("none");
    standing.retain(|_, jobs| *jobs != 0);
    assert!(standing.is_empty(), "more or fewer are counted in these states than there are: {standing:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mirror_equals_the_tree_after_every_storm() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let root = connect(&server.connect_string()).await;
    for seed in 1..=storms() {
        create(&root, &format!("/storm{seed}"), b"").await;
        let at = format!("{}/storm{seed}", server.connect_string());
        let (first, second) = (connect(&at).await, connect(&at).await);
        let mirror = Mirror::start(&at);
        mirror.equals(&first).await;

        // Two writers at once, and a mirror that comes into the middle of it.
        let started = std::time::Instant::now();
        let late = async {
            storm(&first, seed).await;
            Mirror::start(&at)
        };
        let (late, ()) = tokio::join!(late, async {
            storm(&second, seed + 1000).await;
            storm(&second, seed + 2000).await;
        });
        let took = started.elapsed();
        let facts = mirror.equals(&first).await;
        mirror.ages_are_right(&first).await;
        late.equals(&first).await;
        assert_steps_add_up(&mirror);
        assert!(mirror.walks("drift_check") > 0, "the tree was compared during the storm");
        // One that only walks finds the same as those that heard of every change.
        let new = Mirror::start(&at);
        new.equals(&first).await;
        for mirror in [&mirror, &late, &new] {
            assert_eq!(mirror.drift(), 0, "seed {seed}");
        }
        let events = mirror.count("queuekeeper_mirror_events_total");
        assert!(events > 1_000 && facts.len() > 200, "{events} events, {} facts: no storm", facts.len());
        println!("seed {seed}: {events} events in {took:?}, {} facts", facts.len());

        // All gone, locks with their sessions first.
        drop(second);
        for path in ["/jobs", "/batches", "/access", "/locks", "/batch-uuids", "/junk"] {
            delete_all(&first, path).await;
        }
        mirror.equals(&first).await;
        assert_steps_add_up(&mirror);
        mirror.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_is_survived_by_a_mirror_whose_connection_is_cut_all_the_time() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let root = connect(&server.connect_string()).await;
    create(&root, "/storm", b"").await;
    let client = connect(&format!("{}/storm", server.connect_string())).await;
    let proxy = Proxy::start(server.port()).await;
    let mirror = Mirror::with(config(&format!("{}/storm", proxy.connect_string())), Some(Duration::from_millis(20)));
    mirror.is_synced().await;
    let storm = async {
        for seed in 1..=3 {
            storm(&client, seed).await;
        }
    };
    let mut cuts = 0;
    let cutting = async {
        loop {
            // At any point of a watch, a walk, a check, or of following.
            for reads in [1, 40, 400, 4_000] {
                let before = mirror.count("queuekeeper_mirror_reads_total");
                proxy.cut(Newcomers::Close);
                proxy.restore();
                cuts += 1;
                eventually(LIMIT, "it reads on", async || {
                    mirror.count("queuekeeper_mirror_reads_total") >= before + reads
                })
                .await;
            }
        }
    };
    tokio::select! {
        () = storm => {}
        () = cutting => unreachable!("it goes on for ever"),
    }
    mirror.equals_within(LIMIT, &client, &BTreeSet::new()).await;
    assert_steps_add_up(&mirror);
    let walks = mirror.walks("reconnect");
    println!("{cuts} cuts, {walks} walks");
    assert!(cuts > 5 && walks > 5 && mirror.walks("expired") == 0, "{cuts} cuts, {walks} walks");
    assert_eq!(mirror.drift(), 0);
    let events = mirror.count("queuekeeper_mirror_events_total");
    create(&client, "/jobs/jid0000000999", b"").await;
    mirror.equals(&client).await;
    assert!(mirror.count("queuekeeper_mirror_events_total") > events);
}

/// How often many jobs are created at once at least, and how many. A busy machine compares more rarely: it goes on
/// until the tree was compared this often meanwhile.
const BURSTS: u32 = 4;
const BURST: u32 = 100;
const CHECKS: u64 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_of_a_burst_shows_a_fault_while_the_tree_is_compared() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let root = connect(&server.connect_string()).await;
    create(&root, "/burst", b"").await;
    let client = connect(&format!("{}/burst", server.connect_string())).await;
    play(&client, &folders()).await;
    play(&client, &new_batch("bid0000000000")).await;
    let proxy = Proxy::start(server.port()).await;
    // Far less than it takes to read what a burst has changed.
    let limits = Limits { grace: Duration::from_millis(5), ..Limits::default() };
    let address = format!("{}/burst", proxy.connect_string());
    let mirror = Mirror::with_writer(Writer::with_limits(limits), config(&address), Some(Duration::from_millis(1)));
    mirror.is_synced().await;
    proxy.slow(Duration::from_millis(10));
    let checks = mirror.walks("drift_check");
    let broken = || {
        let summary = mirror.store.summary(Timestamp::now(), None)?;
        let counts = [Fault::MissingEntry, Fault::MissingReference].map(|fault| summary.faults[fault as usize].count);
        counts.iter().any(|count| *count > 0).then_some(counts)
    };
    let bursts = async {
        for burst in 0.. {
            if burst >= BURSTS && mirror.walks("drift_check") >= checks + CHECKS {
                break;
            }
            join_all((0..BURST).map(|number| create_job(&client, burst * BURST + number))).await;
            eventually(LIMIT, "all is seen", async || mirror.store.behind(Timestamp::now()).is_zero()).await;
        }
    };
    let watched = async {
        loop {
            assert_eq!(broken(), None, "jobs without entry, without reference");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        done = tokio::time::timeout(LIMIT, bursts) => done.expect("the tree is compared while jobs are created"),
        () = watched => unreachable!("it goes on for ever"),
    }
    mirror.equals(&client).await;
    assert_eq!(broken(), None);
}

/// A healthy job, in one transaction.
async fn create_job(client: &Client, job: u32) {
    let (jid, batch) = (format!("jid{job:010}"), "bid0000000000");
    let mut writer = client.new_multi_writer();
    let anyone = CreateMode::Persistent.with_acls(Acls::anyone_all());
    for (path, data) in [
        (format!("/jobs/{jid}"), ""),
        (format!("/jobs/{jid}/bid"), batch),
        (format!("/jobs/{jid}/priority"), "5"),
        (format!("/jobs/{jid}/status"), r#"{"status":"Pending","retry_count":0}"#),
        (format!("/jobs/states/pending/05-{jid}"), ""),
        (format!("/batches/{batch}/states/batch-processing/{jid}"), ""),
    ] {
        writer.add_create(&path, data.as_bytes(), &anyone).unwrap();
    }
    writer.commit().await.unwrap();
}

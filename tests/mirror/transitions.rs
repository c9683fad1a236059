//! What is counted of jobs and batches as they move, to the single step and the millisecond.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use queuekeeper_testkit::queue::JOB_STATES;
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use zookeeper_client::Client;

use super::harness::{Mirror, connect, create};
use super::writes::{Write, delete_all, folders, new_batch, new_job, play, status};

fn at(job: u32) -> String {
    format!("/jobs/jid{job:010}/status")
}

/// One transaction through several states.
fn jump(job: u32, states: &[&str]) -> Write {
    Write::Multi(states.iter().map(|state| Write::Set(at(job), status(state, 0))).collect())
}

/// What was added to the counted steps since the last look.
fn new_steps(mirror: &Mirror, before: &mut BTreeMap<String, u64>) -> Vec<String> {
    let now = mirror.steps();
    let mut added = Vec::new();
    for (step, count) in &now {
        let more = count - before.get(step).copied().unwrap_or(0);
        added.extend((0..more).map(|_| step.clone()));
    }
    *before = now;
    added
}

/// Durations observed: how many, and their sum in milliseconds.
fn durations(mirror: &Mirror) -> (u64, u128) {
    let counts =
        mirror.samples().into_iter().filter(|(name, _)| name.starts_with("merritt_job_state_duration_seconds_count"));
    let sum = mirror.seconds("merritt_job_state_duration_seconds_sum");
    // Half a millisecond more, since the sum of fractions may fall short of one.
    let sum = Duration::from_secs_f64(sum) + Duration::from_micros(500);
    (counts.map(|(_, count)| count.parse::<u64>().unwrap()).sum(), sum.as_millis())
}

async fn changed_at(client: &Client, job: u32) -> u128 {
    client.get_data(&at(job)).await.unwrap().1.mtime.try_into().unwrap()
}

#[tokio::test]
async fn steps_jumps_and_durations_are_counted_as_they_happened() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let root = connect(&server.connect_string()).await;
    create(&root, "/queue", b"").await;
    let connect_string = format!("{}/queue", server.connect_string());
    let client = connect(&connect_string).await;
    play(&client, &folders()).await;
    play(&client, &new_batch("bid0000000000")).await;
    play(&client, &[new_job(1, "bid0000000000", 5)]).await;
    let mirror = Mirror::start(&connect_string);
    mirror.equals(&client).await;
    let watched = Instant::now();
    // What was there before the mirror has not been seen to happen; every allowed step is exported from the start.
    let mut seen = mirror.steps();
    assert!(seen.is_empty());
    assert_eq!(mirror.count(r#"merritt_job_transitions_total{from="failed",to="storing"}"#), 0);
    assert!(!mirror.samples().contains_key(r#"merritt_job_transitions_total{from="completed",to="pending"}"#));

    // Step by step, each seen: 8 steps, and a duration for each state left, by the server's clock.
    let began = changed_at(&client, 1).await;
    for states in JOB_STATES[..9].windows(2) {
        client.set_data(&at(1), &status(states[1], 0), None).await.unwrap();
        mirror.equals(&client).await;
        let expected = states.join("->").to_lowercase();
        assert_eq!(new_steps(&mirror, &mut seen), [expected]);
        let left = format!("merritt_job_state_duration_seconds_count{{state=\"{}\"}}", states[0].to_lowercase());
        assert_eq!(mirror.count(&left), 1);
    }
    let ended = changed_at(&client, 1).await;
    assert_eq!(durations(&mirror), (8, ended - began));

    // In one leap: each step that was passed, and no duration.
    play(&client, &[new_job(2, "bid0000000000", 5)]).await;
    mirror.equals(&client).await;
    assert_eq!(new_steps(&mirror, &mut seen), ["none->pending"]);
    play(&client, &[jump(2, &["Estimating", "Provisioning", "Downloading"])]).await;
    mirror.equals(&client).await;
    let mut expected = ["pending->estimating", "estimating->provisioning", "provisioning->downloading"];
    expected.sort_unstable();
    assert_eq!(new_steps(&mirror, &mut seen), expected);
    // Off the path in a leap, from an unknown state.
    play(&client, &[jump(2, &["Processing", "Failed"])]).await;
    mirror.equals(&client).await;
    assert_eq!(new_steps(&mirror, &mut seen), ["downloading->failed"]);
    assert_eq!(durations(&mirror), (8, ended - began));

    // Back by an operator's hand: a step, and a duration.
    let failed = changed_at(&client, 2).await;
    client.set_data(&at(2), &status("Processing", 1), None).await.unwrap();
    mirror.equals(&client).await;
    assert_eq!(new_steps(&mirror, &mut seen), ["failed->processing"]);
    let resumed = changed_at(&client, 2).await;
    assert_eq!(durations(&mirror), (9, ended - began + resumed - failed));

    // The same state written again is no step; garbage and unknown states are `other`.
    client.set_data(&at(2), &status("Processing", 2), None).await.unwrap();
    mirror.equals(&client).await;
    assert!(new_steps(&mirror, &mut seen).is_empty());
    client.set_data(&at(2), &status("Teleporting", 2), None).await.unwrap();
    mirror.equals(&client).await;
    assert_eq!(new_steps(&mirror, &mut seen), ["processing->other"]);
    client.set_data(&at(2), b"[]", None).await.unwrap();
    mirror.equals(&client).await;
    assert!(new_steps(&mirror, &mut seen).is_empty());

    // Gone, and another one made under its id in the same transaction.
    delete_all(&client, "/jobs/jid0000000001").await;
    mirror.equals(&client).await;
    assert_eq!(new_steps(&mirror, &mut seen), ["completed->none"]);
    play(&client, &[new_job(3, "bid0000000000", 5)]).await;
    mirror.equals(&client).await;
    assert_eq!(new_steps(&mirror, &mut seen), ["none->pending"]);
    let again = vec![Write::Delete(at(3)), Write::Create(at(3), status("Held", 0))];
    play(&client, &[Write::Multi(again)]).await;
    mirror.equals(&client).await;
    assert_eq!(new_steps(&mirror, &mut seen), ["none->held", "pending->none"]);
    assert_eq!(durations(&mirror).0, 9);

    // Batches alike.
    let batch =
        |from: &str, to: &str| mirror.count(&format!("merritt_batch_transitions_total{{from=\"{from}\",to=\"{to}\"}}"));
    client.set_data("/batches/bid0000000000/status", &status("Completed", 0), None).await.unwrap();
    mirror.equals(&client).await;
    assert_eq!([batch("processing", "reporting"), batch("reporting", "completed")], [1, 1]);
    delete_all(&client, "/batches/bid0000000000").await;
    mirror.equals(&client).await;
    assert_eq!([batch("completed", "none"), batch("none", "processing")], [1, 0]);

    // Every change but the removals was dated, and none took long: at any moment, what was not seen yet was one
    // transaction, of 8 znodes, and perhaps the root's znode.
    let delays = mirror.count("queuekeeper_mirror_delay_seconds_count");
    let together = mirror.seconds("queuekeeper_mirror_delay_seconds_sum");
    let longest = 9.0 * watched.elapsed().as_secs_f64();
    assert!(delays >= 20 && together <= longest, "{delays} delays of {together} s, longer than {longest} s");
    assert_eq!(mirror.drift(), 0);
}

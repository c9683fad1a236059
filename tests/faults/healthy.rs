//! Healthy daemons at full speed, with transactions and with separate writes, and not one fault meanwhile.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_queue::fault::{Fault, Limits};
use queuekeeper_queue::state::{JobState, State};
use queuekeeper_queue::{JobChange, NewJob, Queue};
use tokio::task::JoinSet;
use zookeeper_client::{Acls, Client, CreateMode};

use super::world::{Mirror, World, outcome, status};

/// How many transitions they make.
const WORK: u64 = 30_000;

/// The variable that sets another number.
const MORE_WORK: &str = "QUEUEKEEPER_TEST_TRANSITIONS";

/// How long that may take, on however slow a machine.
const LIMIT: Duration = Duration::from_mins(30);

/// For how long a writer, or the server, may be held up between two writes of a step. The usual grace is two seconds,
/// and a busy machine may hold up either for as long.
const HELD_UP: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn healthy_daemons_at_full_speed_show_no_fault() {
    let world = World::new("healthy").await;
    let limits = Limits { grace: HELD_UP, creation: HELD_UP, ..Limits::default() };
    let mirror = Mirror::start(&world, limits).await;
    let (ended, transitions) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut daemons = JoinSet::new();
    for number in 0..3 {
        let (client, done, made) = (world.another().await, ended.clone(), transitions.clone());
        daemons.spawn(async move {
            let mut id = number;
            while !done.load(Ordering::Relaxed) {
                separate_writes(&client, 1_000_000 + id, &made).await;
                id += 3;
            }
        });
        let (queue, done, made) =
            (Queue::new(world.another().await).with_time_limit(LIMIT), ended.clone(), transitions.clone());
        daemons.spawn(async move {
            while !done.load(Ordering::Relaxed) {
                transactions(&queue, &made).await;
            }
        });
    }
    let work = std::env::var(MORE_WORK).map_or(WORK, |work| work.parse().unwrap());
    let began = tokio::time::Instant::now();
    // No fault shows before that time has gone by.
    while transitions.load(Ordering::Relaxed) < work || began.elapsed() < 3 * HELD_UP {
        assert!(began.elapsed() < LIMIT, "only {transitions:?} transitions were made");
        let summary = mirror.store.summary(Timestamp::now(), None).unwrap();
        let faulty = Fault::ALL.into_iter().find(|fault| summary.faults(*fault).count > 0);
        assert!(faulty.is_none(), "{:#?}", mirror.store.faults(faulty.unwrap(), 5, Timestamp::now(), None));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    ended.store(true, Ordering::Relaxed);
    daemons.join_all().await;
    queuekeeper_testkit::wait::eventually(Duration::from_mins(2), "it comes to rest", async || {
        mirror.labels_after(60).await.is_empty()
    })
    .await;
}

/// One job from its creation to its deletion, each step in separate writes as the Java daemons make them.
async fn separate_writes(client: &Client, number: u32, transitions: &AtomicU64) {
    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let jid = format!("jid{number:010}");
    let job = format!("/jobs/{jid}");
    let entry = |state: JobState| format!("/jobs/states/{}/05-{jid}", state.label());
    let reference = |state: JobState| format!("/batches/bid0000000000/states/{}/{jid}", outcome(state.name()));
    let make = async |path: &str, data: &str| {
        client.create(path, data.as_bytes(), &persistent).await.unwrap();
    };
    make(&job, "").await;
    for (name, data) in [("bid", "bid0000000000"), ("configuration", r#"{"profile":"demo"}"#), ("priority", "5")] {
        make(&format!("{job}/{name}"), data).await;
    }
    make(&format!("{job}/space_needed"), "0").await;
    make(&format!("{job}/identifiers"), &format!(r#"{{"primary_id":"ark:/2/{number}"}}"#)).await;
    make(&format!("{job}/status"), &status("Pending", 0)).await;
    make(&entry(JobState::Pending), "").await;
    make(&reference(JobState::Pending), "").await;
    let mut state = JobState::Pending;
    while let Some(next) = state.success() {
        let lock = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        client.create(&format!("{job}/lock"), b"", &lock).await.unwrap();
        let storage = format!("/locks/storage/ark_2_{number}");
        if state == JobState::Storing {
            make(&storage, "").await;
        }
        client.set_data(&format!("{job}/status"), status(next.name(), 0).as_bytes(), None).await.unwrap();
        client.delete(&entry(state), None).await.unwrap();
        make(&entry(next), "").await;
        if reference(state) != reference(next) {
            client.delete(&reference(state), None).await.unwrap();
            make(&reference(next), "").await;
        }
        if state == JobState::Storing {
            client.delete(&storage, None).await.unwrap();
        }
        client.delete(&format!("{job}/lock"), None).await.unwrap();
        transitions.fetch_add(1, Ordering::Relaxed);
        state = next;
    }
    for name in ["status", "identifiers", "space_needed", "priority", "configuration", "bid"] {
        client.delete(&format!("{job}/{name}"), None).await.unwrap();
    }
    client.delete(&entry(state), None).await.unwrap();
    client.delete(&reference(state), None).await.unwrap();
    client.delete(&job, None).await.unwrap();
}

/// Some jobs through all states at once, each step one transaction.
async fn transactions(queue: &Queue, transitions: &AtomicU64) {
    let batch = "bid0000000000".parse().unwrap();
    let jobs = vec![NewJob::new(r#"{"profile":"demo"}"#); 40];
    let ids = queue.create_jobs(batch, &jobs, Timestamp::now()).await.unwrap();
    let lead = async |id| {
        let mut state = JobState::Pending;
        while let Some(next) = state.success() {
            queue.change_job(id, &JobChange::to(next), Timestamp::now()).await.unwrap();
            transitions.fetch_add(1, Ordering::Relaxed);
            state = next;
        }
    };
    futures::future::join_all(ids.into_iter().map(lead)).await;
}

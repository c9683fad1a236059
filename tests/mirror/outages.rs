//! Connections that are cut or stalled, sessions that expire, a server that is killed: the mirror says that it is
//! behind, catches up, counts what happened and nothing else, and hears events again.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use queuekeeper::mirror::Freshness;
use queuekeeper_queue::id::JobId;
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{Config, PrivateServer};
use zookeeper_client::Client;

use super::harness::{LIMIT, Mirror, config, connect, create};
use super::writes::{delete_all, folders, new_batch, new_job, play, status};
use queuekeeper_testkit::proxy::{Direction, Newcomers, Proxy};
use queuekeeper_testkit::wait::{eventually, eventually_some};

/// What a script has done to the jobs, to be compared with what the mirror has counted.
#[derive(Default)]
struct Script {
    steps: BTreeMap<String, u64>,
    states: BTreeMap<u32, &'static str>,
}

impl Script {
    fn count(&mut self, from: &str, to: &str) {
        *self.steps.entry(format!("{}->{}", from.to_lowercase(), to.to_lowercase())).or_default() += 1;
    }

    async fn create(&mut self, client: &Client, job: u32) {
        play(client, &[new_job(job, "bid0000000000", 5)]).await;
        self.count("none", "pending");
        self.states.insert(job, "Pending");
    }

    async fn set(&mut self, client: &Client, job: u32, state: &'static str) {
        client.set_data(&format!("/jobs/jid{job:010}/status"), &status(state, 0), None).await.unwrap();
        let old = self.states.insert(job, state).unwrap();
        self.count(old, state);
    }

    async fn delete(&mut self, client: &Client, job: u32) {
        delete_all(client, &format!("/jobs/jid{job:010}")).await;
        let old = self.states.remove(&job).unwrap();
        self.count(old, "none");
    }

    /// The mirror equals the tree and has counted what was done; then it hears of one more change, by an event.
    async fn is_followed(&mut self, mirror: &Mirror, client: &Client) {
        mirror.equals_within(LIMIT, client, &std::collections::BTreeSet::new()).await;
        assert_eq!(mirror.steps(), self.steps);
        let freshness = mirror.store.freshness();
        assert!(freshness.is_connected() && freshness.problem.is_none(), "{freshness:?}");
        for _attempt in 0..5 {
            let (events, walks) = (mirror.count("queuekeeper_mirror_events_total"), mirror.walks("reconnect"));
            let last = self.states.keys().next_back().unwrap() + 1;
            self.create(client, last).await;
            mirror.equals(client).await;
            assert_eq!(mirror.steps(), self.steps);
            if mirror.count("queuekeeper_mirror_events_total") >= events + 8 {
                return;
            }
            // On a busy machine, a connection may be lost by itself, and then a walk finds the job.
            assert!(mirror.walks("reconnect") > walks, "a job of 8 znodes was not heard of");
        }
        panic!("the connection is lost again and again");
    }
}

async fn becomes_stale(mirror: &Mirror, what: &str) -> Freshness {
    eventually_some(LIMIT, what, async || {
        let freshness = mirror.store.freshness();
        (freshness.stale_since.is_some() && !freshness.is_synced() && freshness.problem.is_some()).then_some(freshness)
    })
    .await
}

#[tokio::test]
async fn after_every_outage_the_mirror_equals_the_tree_and_hears_events_again() {
    let mut server = PrivateServer::start(Options::default()).await.unwrap();
    let root = connect(&server.connect_string()).await;
    create(&root, "/queue", b"").await;
    let client = connect(&format!("{}/queue", server.connect_string())).await;
    play(&client, &folders()).await;
    play(&client, &new_batch("bid0000000000")).await;
    let proxy = Proxy::start(server.port()).await;
    let through =
        Config { session_timeout: Duration::from_secs(20), ..config(&format!("{}/queue", proxy.connect_string())) };
    // Without drift checks: nothing but walks and events may repair it.
    let mirror = Mirror::with(through, None);
    mirror.is_synced().await;
    let mut script = Script::default();
    for job in 1..=6 {
        script.create(&client, job).await;
    }
    script.is_followed(&mirror, &client).await;
    let Freshness { session, last_walk, .. } = mirror.store.freshness();

    // Cut, while things go on; found again in the same session, if that was soon.
    let cut = Instant::now();
    proxy.cut(Newcomers::Close);
    let stale = becomes_stale(&mirror, "the cut is noticed").await;
    assert!(!stale.is_connected() && last_walk.is_some() && stale.last_walk == last_walk);
    assert!(mirror.store.job(JobId::new(1)).is_some(), "the old image is still shown");
    script.set(&client, 1, "Estimating").await;
    script.set(&client, 2, "Failed").await;
    script.delete(&client, 3).await;
    script.create(&client, 20).await;
    proxy.restore();
    let found = eventually_some(LIMIT, "a connection", async || mirror.store.freshness().session).await;
    // After a second without a connection, there may be another session.
    if cut.elapsed() < Duration::from_millis(900) {
        assert_eq!(Some(found), session);
    }
    script.is_followed(&mirror, &client).await;
    assert!(mirror.walks("reconnect") >= 1 && mirror.walks("expired") == 0);
    assert!(mirror.store.freshness().last_walk > last_walk);

    // Several cuts in a row, some of them in the middle of a walk.
    for job in 30..36 {
        proxy.cut(Newcomers::Close);
        script.create(&client, job).await;
        proxy.restore();
        eventually(LIMIT, "a connection", async || mirror.store.freshness().is_connected()).await;
    }
    script.is_followed(&mirror, &client).await;

    // Stalled: no event comes, and after a while the silence is noticed.
    for (direction, job) in [(Direction::ToClient, 4), (Direction::Both, 5)] {
        proxy.stall(direction);
        script.set(&client, job, "Held").await;
        becomes_stale(&mirror, "the silence is noticed").await;
        proxy.restore();
        script.is_followed(&mirror, &client).await;
    }

    // Cut for longer than the session lasts.
    let session = mirror.store.freshness().session;
    let expired = mirror.walks("expired");
    proxy.cut(Newcomers::Refuse);
    eventually(LIMIT, "the session is given up", async || {
        let problem = mirror.store.freshness().problem.unwrap_or_default();
        problem.contains("connection refused")
    })
    .await;
    script.set(&client, 1, "Provisioning").await;
    script.delete(&client, 2).await;
    proxy.restore();
    script.is_followed(&mirror, &client).await;
    assert!(mirror.store.freshness().session.is_some() && mirror.store.freshness().session != session);
    assert_eq!(mirror.walks("expired"), expired + 1);

    // The server killed and started again with its data.
    server.kill().unwrap();
    becomes_stale(&mirror, "the kill is noticed").await;
    server.restart().await.unwrap();
    let client = connect(&format!("{}/queue", server.connect_string())).await;
    script.set(&client, 1, "Downloading").await;
    script.is_followed(&mirror, &client).await;

    // Suspended with all connections open, as a long pause of its collector.
    server.suspend();
    becomes_stale(&mirror, "the pause is noticed").await;
    server.resume();
    let client = connect(&format!("{}/queue", server.connect_string())).await;
    script.is_followed(&mirror, &client).await;
    mirror.stop().await;
}

//! A queue made with raw writes, and a mirror that follows it.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use prometheus_client::registry::Registry;
use queuekeeper::mirror::{self, FoundFault, Metrics, MirrorStore, Writer};
use queuekeeper_queue::fault::{Fault, Limits};
use queuekeeper_testkit::queue::JOB_STATES;
use queuekeeper_testkit::server::{config, connect, shared};
use queuekeeper_testkit::wait::{eventually, eventually_some};
use queuekeeper_zookeeper::Sessions;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use zookeeper_client::{Acls, Client, CreateMode};

/// Generous: the machine may be busy with other servers.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// As usual, but that the absence of daemons is no fault for a day: in these tests there are none.
pub(crate) fn without_daemons() -> Limits {
    Limits { no_daemon: Duration::from_hours(24), ..Limits::default() }
}

pub(crate) struct World {
    pub(crate) client: Client,
    address: String,
}

impl World {
    /// A queue of its own below a chroot, healthy: its folders and one batch in Reporting with a job in each state.
    pub(crate) async fn new(name: &str) -> Self {
        let world = Self::empty(name).await;
        for path in [
            "/access",
            "/access/small",
            "/access/large",
            "/batch-uuids",
            "/batches",
            "/jobs",
            "/jobs/states",
            "/locks",
            "/locks/queue",
            "/locks/collections",
            "/locks/storage",
            "/locks/inventory",
        ] {
            world.create(path, "").await;
        }
        for state in JOB_STATES {
            world.create(&format!("/jobs/states/{}", state.to_lowercase()), "").await;
        }
        // Where the job in Held belongs: of a free collection it would be a fault.
        world.create("/locks/collections/c10", "").await;
        world.batch(0, "Reporting").await;
        for (number, state) in (0..).zip(JOB_STATES) {
            world.job(number, state).await;
        }
        world
    }

    /// A chroot without anything in it.
    pub(crate) async fn empty(name: &str) -> Self {
        let server = shared().await.connect_string();
        let root = connect(&server).await;
        root.create(&format!("/{name}"), b"", &CreateMode::Persistent.with_acls(Acls::anyone_all())).await.unwrap();
        let address = format!("{server}/{name}");
        Self { client: connect(&address).await, address }
    }

    pub(crate) async fn another(&self) -> Client {
        connect(&self.address).await
    }

    pub(crate) async fn create(&self, path: &str, data: &str) {
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        self.client.create(path, data.as_bytes(), &options).await.unwrap();
    }

    pub(crate) async fn ephemeral(&self, path: &str) {
        self.client.create(path, b"", &CreateMode::Ephemeral.with_acls(Acls::anyone_all())).await.unwrap();
    }

    pub(crate) async fn set(&self, path: &str, data: &str) {
        self.client.set_data(path, data.as_bytes(), None).await.unwrap();
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.client.delete(path, None).await.unwrap();
    }

    /// An acquired batch, in one transaction.
    pub(crate) async fn batch(&self, number: u32, state: &str) {
        let bid = format!("/batches/bid{number:010}");
        let mut writer = self.client.new_multi_writer();
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        for (path, data) in [
            (bid.clone(), String::new()),
            (format!("{bid}/submission"), format!(r#"{{"batchID":"uuid-{number}","profile":"demo"}}"#)),
            (format!("{bid}/status"), format!(r#"{{"status":"{state}","message":""}}"#)),
            (format!("{bid}/states"), String::new()),
            (format!("{bid}/states/batch-processing"), String::new()),
            (format!("{bid}/states/batch-failed"), String::new()),
            (format!("{bid}/states/batch-completed"), String::new()),
            (format!("{bid}/states/batch-deleted"), String::new()),
            (format!("/batch-uuids/uuid-{number}"), format!("bid{number:010}")),
        ] {
            writer.add_create(&path, data.as_bytes(), &options).unwrap();
        }
        writer.commit().await.unwrap();
    }

    /// A healthy job of batch 0 with priority 5, in one transaction.
    pub(crate) async fn job(&self, number: u32, state: &str) {
        let jid = format!("jid{number:010}");
        let mut writer = self.client.new_multi_writer();
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        for (path, data) in [
            (format!("/jobs/{jid}"), String::new()),
            (format!("/jobs/{jid}/bid"), "bid0000000000".to_owned()),
            (format!("/jobs/{jid}/configuration"), format!(r#"{{"profile":"c{number}"}}"#)),
            (format!("/jobs/{jid}/identifiers"), format!(r#"{{"primary_id":"ark:/1/{number}"}}"#)),
            (format!("/jobs/{jid}/status"), status(state, 0)),
            (format!("/jobs/{jid}/priority"), "5".to_owned()),
            (format!("/jobs/{jid}/space_needed"), "1000".to_owned()),
            (format!("/jobs/states/{}/05-{jid}", state.to_lowercase()), String::new()),
            (format!("/batches/bid0000000000/states/{}/{jid}", outcome(state)), String::new()),
        ] {
            writer.add_create(&path, data.as_bytes(), &options).unwrap();
        }
        writer.commit().await.unwrap();
    }
}

pub(crate) fn outcome(state: &str) -> &'static str {
    match state {
        "Failed" => "batch-failed",
        "Completed" => "batch-completed",
        "Deleted" => "batch-deleted",
        _ => "batch-processing",
    }
}

pub(crate) fn status(state: &str, retries: u32) -> String {
    format!(r#"{{"status":"{state}","last_successful_status":null,"retry_count":{retries},"message":""}}"#)
}

/// A mirror at work; it ends when dropped.
pub(crate) struct Mirror {
    pub(crate) store: MirrorStore,
    _task: AbortOnDropHandle<()>,
}

impl Mirror {
    /// Starts one and waits until it follows the tree.
    pub(crate) async fn start(world: &World, limits: Limits) -> Self {
        let writer = Writer::with_limits(limits);
        let store = writer.store();
        let metrics = Metrics::register(&mut Registry::default());
        let run = mirror::run(Sessions::new(config(&world.address)), writer, metrics, None, CancellationToken::new());
        let task = AbortOnDropHandle::new(tokio::spawn(async move { run.await.unwrap() }));
        eventually(LIMIT, "the mirror is synced", async || store.freshness().is_synced()).await;
        Self { store, _task: task }
    }

    /// The faults that will count after so many seconds, if nothing changes until then: as soon as nothing waits to be
    /// read, which is not known to last until then.
    pub(crate) async fn after(&self, seconds: i64) -> Vec<FoundFault> {
        eventually_some(LIMIT, "the mirror is current", async || {
            let now = Timestamp::now() + SignedDuration::from_secs(seconds);
            let is_current = || self.store.horizon(now) == now;
            let before = is_current();
            let of_kind = |fault| self.store.faults(fault, 100, now, Some(500)).unwrap();
            let faults: Vec<_> = Fault::ALL.into_iter().flat_map(of_kind).collect();
            (before && is_current()).then_some(faults)
        })
        .await
    }

    pub(crate) async fn labels_after(&self, seconds: i64) -> Vec<&'static str> {
        self.after(seconds).await.iter().map(|found| found.fault.label()).collect()
    }
}

//! A queue created with raw writes, below a chroot of its own.

use queuekeeper_testkit::queue::JOB_STATES;
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::tree::{Tree, read_tree};
use tempfile::TempDir;
use zookeeper_client::{Acls, Client, CreateMode};

use super::program::{Ran, run};

/// A queue, and a home directory for the command line.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) address: String,
    pub(crate) home: TempDir,
}

impl World {
    /// A queue with one batch in Reporting, a job of it in each state, and a failed access request.
    pub(crate) async fn new(name: &str) -> Self {
        let server = shared().await.connect_string();
        let root = connect(&server).await;
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        root.create(&format!("/{name}"), b"", &options).await.unwrap();
        let address = format!("{server}/{name}");
        let world = Self { client: connect(&address).await, address, home: TempDir::new().unwrap() };
        for path in ["/access", "/access/small", "/access/large", "/batch-uuids", "/batches", "/jobs", "/jobs/states"] {
            world.create(path, "").await;
        }
        for path in ["/locks", "/locks/queue", "/locks/collections", "/locks/storage", "/locks/inventory"] {
            world.create(path, "").await;
        }
        for state in JOB_STATES {
            world.create(&format!("/jobs/states/{}", state.to_lowercase()), "").await;
        }
        // The collection of the Held job: if it were not held, the job would be a fault.
        world.create("/locks/collections/c10", "").await;
        world.batch(0, "Reporting").await;
        for (number, state) in (0..).zip(JOB_STATES) {
            world.job(number, 0, state, "").await;
        }
        world.create("/access/small/qid0000000000", "").await;
        world.create("/access/small/qid0000000000/status", &status("Failed", "no such object")).await;
        world.create("/access/small/qid0000000000/token", r#"{"token":"t-0","cloud-content-byte":2048}"#).await;
        world
    }

    pub(crate) async fn create(&self, path: &str, data: &str) {
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        self.client.create(path, data.as_bytes(), &options).await.unwrap();
    }

    pub(crate) async fn ephemeral(&self, path: &str) {
        self.client.create(path, b"", &CreateMode::Ephemeral.with_acls(Acls::anyone_all())).await.unwrap();
    }

    /// An acquired batch, in one transaction.
    pub(crate) async fn batch(&self, number: u32, state: &str) {
        let bid = format!("/batches/bid{number:010}");
        let mut writer = self.client.new_multi_writer();
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        for (path, data) in [
            (bid.clone(), String::new()),
            (format!("{bid}/submission"), format!(r#"{{"batchID":"uuid-{number}","profile":"demo"}}"#)),
            (format!("{bid}/status"), status(state, "")),
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

    /// A job of priority 5, healthy if its state is one and of a collection of its own, in one transaction.
    pub(crate) async fn job(&self, number: u32, batch: u32, state: &str, message: &str) {
        let (jid, bid) = (format!("jid{number:010}"), format!("bid{batch:010}"));
        let mut writer = self.client.new_multi_writer();
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let configuration = serde_json::json!({"profile": format!("c{number}"), "filename": format!("{message}.zip")});
        // If the state is invalid, the entry stays in the state before.
        let is_state = state.bytes().all(|byte| byte.is_ascii_alphabetic());
        let folder = if is_state { state.to_lowercase() } else { "failed".to_owned() };
        let outcome = match state {
            "Failed" => "batch-failed",
            "Completed" => "batch-completed",
            "Deleted" => "batch-deleted",
            _ => "batch-processing",
        };
        for (path, data) in [
            (format!("/jobs/{jid}"), String::new()),
            (format!("/jobs/{jid}/bid"), bid.clone()),
            (format!("/jobs/{jid}/configuration"), configuration.to_string()),
            (format!("/jobs/{jid}/identifiers"), format!(r#"{{"primary_id":"ark:/1/{number}"}}"#)),
            (format!("/jobs/{jid}/status"), status(state, message)),
            (format!("/jobs/{jid}/priority"), "5".to_owned()),
            (format!("/jobs/{jid}/space_needed"), "1000".to_owned()),
            (format!("/jobs/states/{folder}/05-{jid}"), String::new()),
            (format!("/batches/{bid}/states/{outcome}/{jid}"), String::new()),
        ] {
            writer.add_create(&path, data.as_bytes(), &options).unwrap();
        }
        writer.commit().await.unwrap();
    }

    /// Runs a command on this queue, with arguments separated by spaces.
    pub(crate) async fn run(&self, line: &str) -> Ran {
        self.run_with(line, &[]).await
    }

    /// The same with arguments that contain spaces.
    pub(crate) async fn run_with(&self, line: &str, more: &[&str]) -> Ran {
        let mut arguments: Vec<_> = line.split_whitespace().collect();
        arguments.extend(["--zookeeper", &self.address]);
        arguments.extend(more);
        run(self.home.path(), &arguments).await
    }

    pub(crate) async fn tree(&self) -> Tree {
        // Actions that depend on an age write to it.
        read_tree(&self.client, "/", &["/queuekeeper/clock"]).await
    }

    /// The status text of a job.
    pub(crate) async fn state(&self, number: u32) -> serde_json::Value {
        let (data, _) = self.client.get_data(&format!("/jobs/jid{number:010}/status")).await.unwrap();
        serde_json::from_slice(&data).unwrap()
    }

    /// The lines of the default audit file.
    pub(crate) fn audit(&self) -> Vec<serde_json::Value> {
        let file = self.home.path().join(".local/state/queuekeeper/audit.jsonl");
        let lines = std::fs::read_to_string(file).unwrap_or_default();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub(crate) fn status(state: &str, message: &str) -> String {
    let last = (state == "Failed").then_some("Processing");
    serde_json::json!({"status": state, "last_successful_status": last, "retry_count": 0, "message": message})
        .to_string()
}

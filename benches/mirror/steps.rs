//! Bare steps of jobs: the transactions that an action makes, written straight to ZooKeeper, with nothing around them.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt, TryStreamExt};
use zookeeper_client::{Acls, Client, CreateMode};

use crate::fill::{batch_of, state_of};

/// How many are in flight at once: as many as of an action over many.
const IN_FLIGHT: usize = 32;

/// How many of a hundred jobs fail, with those that [`fill`](crate::fill::fill) wrote so.
const FAILED_PERCENT: usize = 5;

/// The reason that is passed to the program with an action: its steps are to write as many bytes as these.
pub(crate) const REASON: &str = "storage node is back";

/// A step from one state to another: the name of the one that is entered, and the folders and references of both.
pub(crate) struct Step {
    status: &'static str,
    entries: [&'static str; 2],
    references: [&'static str; 2],
}

/// From Failed to the state after the last successful one.
pub(crate) const RESUME: Step = Step {
    status: "Downloading",
    entries: ["failed", "downloading"],
    references: ["batch-failed", "batch-processing"],
};

/// And back.
pub(crate) const FAIL: Step =
    Step { status: "Failed", entries: ["downloading", "failed"], references: ["batch-processing", "batch-failed"] };

const FAIL_PENDING: Step = Step { entries: ["pending", "failed"], ..FAIL };

/// A job, and the version that its status has.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) job: usize,
    version: i32,
}

impl Target {
    pub(crate) fn new(job: usize) -> Self {
        Self { job, version: 0 }
    }

    pub(crate) fn jid(&self) -> String {
        format!("jid{:010}", self.job)
    }

    /// Reads what the program has to look at: the job's znodes, and its batch, reference and entry.
    pub(crate) async fn read(&self, client: &Client, outcome: &str, folder: &str) -> anyhow::Result<()> {
        const NODES: [&str; 7] =
            ["bid", "configuration", "status", "priority", "space_needed", "identifiers", "metadata"];
        let (jid, batch) = (self.jid(), format!("/batches/bid{:010}", batch_of(self.job)));
        let mut reader = client.new_multi_reader();
        reader.add_get_data(&format!("/jobs/{jid}"))?;
        for node in NODES {
            reader.add_get_data(&format!("/jobs/{jid}/{node}"))?;
        }
        for path in [batch.clone(), format!("{batch}/states"), format!("{batch}/status")] {
            reader.add_get_data(&path)?;
        }
        reader.add_get_data(&format!("{batch}/states/{outcome}/{jid}"))?;
        reader.add_get_data(&format!("/jobs/states/{folder}/05-{jid}"))?;
        let found = reader.commit().await?;
        let is_missing = |found: &_| matches!(found, zookeeper_client::MultiReadResult::Error { .. });
        anyhow::ensure!(!found.iter().any(is_missing), "{jid} has all its znodes");
        Ok(())
    }

    /// Takes the job a step.
    pub(crate) async fn take(&self, client: &Client, step: &Step) -> anyhow::Result<()> {
        let (jid, batch) = (self.jid(), format!("/batches/bid{:010}", batch_of(self.job)));
        let (lock, persistent) = (format!("/jobs/{jid}/lock"), &CreateMode::Persistent.with_acls(Acls::anyone_all()));
        let status = format!(
            r#"{{"status":"{}","last_modified":"2026-03-02 10:17:05 -0800","last_successful_status":"Provisioning","retry_count":1,"message":"{REASON}"}}"#,
            step.status
        );
        let mut writer = client.new_multi_writer();
        writer.add_create(&lock, b"", &CreateMode::Ephemeral.with_acls(Acls::anyone_all()))?;
        writer.add_set_data(&format!("/jobs/{jid}/status"), status.as_bytes(), Some(self.version))?;
        writer.add_delete(&format!("/jobs/states/{}/05-{jid}", step.entries[0]), None)?;
        writer.add_create(&format!("/jobs/states/{}/05-{jid}", step.entries[1]), b"", persistent)?;
        writer.add_delete(&format!("{batch}/states/{}/{jid}", step.references[0]), None)?;
        writer.add_create(&format!("{batch}/states/{}/{jid}", step.references[1]), b"", persistent)?;
        writer.add_delete(&lock, None)?;
        writer.commit().await?;
        Ok(())
    }

    /// Gives a pending job another priority than its first.
    pub(crate) async fn set_priority(&self, client: &Client, priority: u8) -> anyhow::Result<()> {
        let jid = self.jid();
        let lock = format!("/jobs/{jid}/lock");
        let mut writer = client.new_multi_writer();
        writer.add_create(&lock, b"", &CreateMode::Ephemeral.with_acls(Acls::anyone_all()))?;
        writer.add_check_version(&format!("/jobs/{jid}/status"), self.version)?;
        writer.add_set_data(&format!("/jobs/{jid}/priority"), priority.to_string().as_bytes(), Some(0))?;
        writer.add_delete(&format!("/jobs/states/pending/05-{jid}"), None)?;
        let entry = format!("/jobs/states/pending/{priority:02}-{jid}");
        writer.add_create(&entry, b"", &CreateMode::Persistent.with_acls(Acls::anyone_all()))?;
        writer.add_delete(&lock, None)?;
        writer.commit().await?;
        Ok(())
    }
}

/// Jobs that go from Failed to work and back, all of them together.
pub(crate) struct Moving(pub(crate) Vec<Target>);

impl Moving {
    /// The failed jobs of a queue that was filled with so many, and as many more as are to fail.
    pub(crate) async fn fail(client: &Client, jobs: usize) -> anyhow::Result<Self> {
        let of = |name: &'static str| (0..jobs).filter(move |job| state_of(*job).0 == name).map(Target::new);
        let mut failed = Self(of("Failed").collect());
        let more = (jobs * FAILED_PERCENT / 100).saturating_sub(failed.0.len());
        let mut pending = Self(of("Pending").take(more).collect());
        pending.take(client, &FAIL_PENDING).await?;
        failed.0.append(&mut pending.0);
        Ok(failed)
    }

    /// Takes all of them a step, and gives how long that took.
    pub(crate) async fn take(&mut self, client: &Client, step: &Step) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let steps = self.0.iter().map(|target| target.take(client, step));
        stream::iter(steps).buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
        let took = started.elapsed();
        self.were_taken();
        Ok(took)
    }

    /// Another took all of them a step.
    pub(crate) fn were_taken(&mut self) {
        self.0.iter_mut().for_each(|target| target.version += 1);
    }
}

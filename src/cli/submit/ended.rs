//! How a deposit ended, all its batches together.

use std::fmt;
use std::time::Duration;

use queuekeeper_ingest::deposit::id_of;
use queuekeeper_ingest::parts::uuid_of_part;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::{BatchReport, Queue};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::cli::output::Spinner;

/// How often the batch is looked at while it is waited for.
const LOOK: Duration = Duration::from_millis(200);

/// How a deposit ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) state: String,
    pub(super) completed: u64,
    pub(super) failed: u64,
    /// Its batches, where there are several.
    pub(super) parts: Vec<Part>,
    /// Those of its objects.
    pub(super) arks: Vec<String>,
}

/// A batch of several.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) number: u64,
    pub(super) batch: String,
    pub(super) id: String,
    pub(super) state: String,
}

/// How a batch ended.
pub(super) struct Reported {
    batch: BatchId,
    pub(super) state: BatchState,
    jobs: BatchReport,
}

impl Ended {
    /// How all batches of a deposit ended: it has failed where one has.
    pub(super) async fn of(queue: &Queue, reports: &[Reported], uuid: Uuid) -> anyhow::Result<Self> {
        let (mut completed, mut failed, mut all, mut parts) = (0, 0, Vec::new(), Vec::new());
        for (number, report) in (1..).zip(reports) {
            completed += report.jobs.completed.len() as u64;
            failed += report.jobs.failed.len() as u64;
            all.extend(arks(queue, &report.jobs).await?);
            let (batch, id) = (report.batch.to_string(), id_of(uuid_of_part(uuid, number)));
            parts.push(Part { number, batch, id, state: report.state.to_string() });
        }
        let worst = parts.iter().find(|part| part.state != BatchState::Completed.to_string()).or(parts.first());
        let state = worst.map(|part| part.state.clone()).unwrap_or_default();
        if parts.len() == 1 {
            parts.clear();
        }
        Ok(Self { state, completed, failed, parts, arks: all })
    }
}

impl Reported {
    /// What the first failed job failed by, or the batch itself where it came to no jobs.
    pub(super) async fn first_failure(&self, queue: &Queue) -> anyhow::Result<String> {
        let (batch, failed) = (self.batch, &self.jobs.failed);
        let Some(id) = failed.first() else {
            let loaded = queue.load_batch(batch).await?;
            return Ok(format!("{batch} failed: {}", loaded.message()));
        };
        let job = queue.load_job(*id).await?;
        let why = job.status().value.message.into_owned();
        Ok(match failed.len() {
            1 => format!("{id} failed: {why}"),
            more => format!("{more} jobs failed, the first, {id}: {why}"),
        })
    }
}

impl Part {
    /// What a receipt says of it.
    pub(super) fn as_json(&self) -> Value {
        json!({"part": self.number, "batch": self.batch, "id": self.id, "state": self.state})
    }
}

impl fmt::Display for Part {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "part {}: {} ({}), {}", self.number, self.batch, self.id, self.state)
    }
}

/// Waits for a batch's report.
pub(super) async fn followed(queue: &Queue, batch: BatchId) -> anyhow::Result<Reported> {
    let spinner = Spinner::start("waiting for the report");
    let ended = loop {
        let loaded = queue.load_batch(batch).await?;
        match loaded.check_loadable()? {
            state @ (BatchState::Completed | BatchState::Failed | BatchState::Deleted) => break state,
            _ => tokio::time::sleep(LOOK).await,
        }
    };
    drop(spinner);
    Ok(Reported { batch, state: ended, jobs: queue.batch_report(batch).await? })
}

/// The ARKs of a batch's objects.
async fn arks(queue: &Queue, report: &BatchReport) -> anyhow::Result<Vec<String>> {
    let mut arks = Vec::new();
    for id in &report.completed {
        let job = queue.load_job(*id).await?;
        arks.push(job.identifiers().value.ark.into_owned());
    }
    Ok(arks)
}

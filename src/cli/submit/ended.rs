//! How a deposit ended, all its batches together.

use std::fmt;
use std::time::Duration;

use queuekeeper_ingest::parts::uuid_of_part;
use queuekeeper_ingest::spec::id_of;
use queuekeeper_ingest::warnings;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::{BatchReport, Queue};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::cli::output::Spinner;
use crate::views::show::visible;
use crate::words::{count, counted};

/// How often the batch is looked at while it is waited for.
const LOOK: Duration = Duration::from_millis(200);

/// How many jobs with warnings are named.
const MOST_WARNED: usize = 20;

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
    pub(super) warned: Warned,
}

/// Its jobs with warnings: what is odd about their packages, and was no reason to refuse them.
#[derive(Debug, Default)]
pub(super) struct Warned {
    pub(super) total: u64,
    /// The first of them.
    jobs: Vec<WarnedJob>,
}

#[derive(Debug)]
struct WarnedJob {
    job: String,
    warnings: String,
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
        let (mut completed, mut failed, mut parts) = (0, 0, Vec::new());
        let (mut all, mut warned) = (Vec::new(), Warned::default());
        for (number, report) in (1..).zip(reports) {
            completed += report.jobs.completed.len() as u64;
            failed += report.jobs.failed.len() as u64;
            for id in &report.jobs.completed {
                let job = queue.load_job(*id).await?;
                all.push(job.identifiers().value.ark.into_owned());
                if let Some(warnings) = warnings::in_message(&job.status().value.message) {
                    warned.add(&id.to_string(), warnings);
                }
            }
            let (batch, id) = (report.batch.to_string(), id_of(uuid_of_part(uuid, number)));
            parts.push(Part { number, batch, id, state: report.state.to_string() });
        }
        let worst = parts.iter().find(|part| part.state != BatchState::Completed.to_string()).or(parts.first());
        let state = worst.map(|part| part.state.clone()).unwrap_or_default();
        if parts.len() == 1 {
            parts.clear();
        }
        Ok(Self { state, completed, failed, parts, arks: all, warned })
    }
}

impl Warned {
    fn add(&mut self, job: &str, warnings: &str) {
        self.total += 1;
        self.name(job, warnings);
    }

    fn name(&mut self, job: &str, warnings: &str) {
        if self.jobs.len() < MOST_WARNED {
            self.jobs.push(WarnedJob { job: job.to_owned(), warnings: warnings.to_owned() });
        }
    }

    /// Adds what a server says of a batch.
    pub(super) fn add_batch(&mut self, view: &Value) {
        let warned = &view["warned"];
        self.total += warned["total"].as_u64().unwrap_or(0);
        for job in warned["items"].as_array().into_iter().flatten() {
            let [name, warnings] = ["job", "warnings"].map(|key| job[key].as_str().unwrap_or_default());
            self.name(name, warnings);
        }
    }

    /// What a receipt says of them.
    pub(super) fn as_json(&self) -> Value {
        let job = |WarnedJob { job, warnings }: &WarnedJob| json!({"job": job, "warnings": warnings});
        json!({"total": self.total, "items": self.jobs.iter().map(job).collect::<Vec<_>>()})
    }

    /// The same in lines; none where there are no warnings.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let total = (self.total > 0).then(|| format!("with warnings: {}", counted(self.total, "job", "jobs")));
        let jobs = self.jobs.iter().map(|WarnedJob { job, warnings }| format!("{job}: {}", visible(warnings)));
        let more = self.total.saturating_sub(self.jobs.len() as u64);
        let more = (more > 0).then(|| format!("and {} more", count(more)));
        total.into_iter().chain(jobs).chain(more)
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

//! The batches in progress.

use crate::views::overview::{BatchInProgress, Overview};
use crate::views::show::{Count, counted};

/// The batches in progress that are shown, and how many are not.
#[derive(Debug)]
pub(super) struct Batches {
    pub(super) rows: Vec<OverviewBatchRow>,
    /// How many more there are, in words; empty where all are shown.
    pub(super) more: String,
}

/// One batch.
#[derive(Debug)]
pub(super) struct OverviewBatchRow {
    pub(super) batch: String,
    pub(super) deposit: String,
    pub(super) owner: String,
    pub(super) ended: String,
    pub(super) jobs: String,
    pub(super) failed: String,
    /// How far it is, in words.
    pub(super) text: String,
    /// Where it is completed, failed, and deleted, in percent of the bar.
    pub(super) parts: Vec<(&'static str, String, String)>,
    pub(super) outlook: String,
    /// The same by the clock; empty where it is not known when it ends.
    pub(super) at: String,
}

impl Batches {
    pub(super) fn new(overview: &Overview) -> Self {
        let shown = overview.batches_in_progress.len() as u64;
        let more = overview.batches_in_progress_count.saturating_sub(shown);
        Self {
            rows: overview.batches_in_progress.iter().map(row).collect(),
            more: if more > 0 { counted(more, "batch more", "batches more") } else { String::new() },
        }
    }
}

fn row(batch: &BatchInProgress) -> OverviewBatchRow {
    let deposit = [&batch.filename, &batch.title].into_iter().find(|text| !text.is_empty());
    let owner: Vec<&str> =
        [&*batch.collection, &*batch.submitter].into_iter().filter(|text| !text.is_empty()).collect();
    let mut text = vec![format!("{} completed", Count(batch.completed))];
    for (count, what) in [(batch.failed, "failed"), (batch.deleted, "deleted"), (batch.open, "to do")] {
        if count > 0 {
            text.push(format!("{} {what}", Count(count)));
        }
    }
    let mut x = 0.0;
    let mut parts = Vec::new();
    for (count, class) in [(batch.completed, "done"), (batch.failed, "failed"), (batch.deleted, "gone")] {
        let width = count as f64 / (batch.jobs as f64).max(1.0) * 100.0;
        if count > 0 {
            parts.push((class, format!("{x:.2}"), format!("{width:.2}")));
        }
        x += width;
    }
    OverviewBatchRow {
        batch: batch.batch.clone(),
        deposit: deposit.cloned().unwrap_or_default(),
        owner: owner.join(" · "),
        ended: Count(batch.jobs - batch.open).to_string(),
        jobs: Count(batch.jobs).to_string(),
        failed: if batch.failed > 0 { format!("{} failed", Count(batch.failed)) } else { String::new() },
        text: text.join(", "),
        parts,
        outlook: batch.outlook.ends.clone(),
        at: batch.outlook.instants(),
    }
}

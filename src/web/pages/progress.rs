//! Parts of a whole, drawn and in words: how far a batch is, how old locks are.

use super::listing::age_in_words;
use crate::mirror::{AGE_LABELS, ByAge};
use crate::views::batches::BatchItem;
use crate::views::parameter::AgeBand;
use crate::views::show::{Count, counted, percent};
use queuekeeper_queue::state::{BatchState, State as _};

/// The jobs of a batch by outcome.
#[derive(Debug)]
pub(super) struct Progress {
    /// In words: `1,204 jobs: 900 completed, 4 failed, 300 not done`.
    pub(super) text: String,
    /// How much of it has ended; empty where there is nothing to do.
    pub(super) ended: String,
    pub(super) parts: Vec<Part>,
}

/// A part of the bar, in percent of its width.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) class: &'static str,
    pub(super) x: String,
    pub(super) width: String,
}

impl Progress {
    pub(super) fn new(batch: &BatchItem) -> Self {
        let jobs = batch.jobs;
        // While they are being created, those that are still to come count too.
        let all = batch.rows.unwrap_or(0).max(jobs.total);
        let count = |outcome: Option<u32>| u64::from(outcome.unwrap_or(0));
        let outcomes = [
            ("done", "completed", count(jobs.completed)),
            ("failed", "failed", count(jobs.failed)),
            ("gone", "deleted", count(jobs.deleted)),
            ("open", "not finished", count(jobs.processing)),
        ];
        let mut x = 0.0;
        let mut parts = Vec::new();
        for (class, _, count) in outcomes.into_iter().filter(|(class, _, count)| *count > 0 && *class != "open") {
            let width = count as f64 / all as f64 * 100.0;
            parts.push(Part { class, x: format!("{x:.2}"), width: format!("{width:.2}") });
            x += width;
        }
        let each: Vec<_> = outcomes
            .iter()
            .filter(|(_, _, count)| *count > 0)
            .map(|(_, name, count)| format!("{} {name}", Count(*count)))
            .collect();
        let text = match jobs.total {
            0 if is_over(batch) => "no jobs".to_owned(),
            0 if batch.acquired => "no jobs yet".to_owned(),
            0 => "not acquired yet".to_owned(),
            total if total < all => {
                format!("{} of {} created so far: {}", Count(total), counted(all, "job", "jobs"), each.join(", "))
            }
            total => format!("{}: {}", counted(total, "job", "jobs"), each.join(", ")),
        };
        let ended = jobs.total - count(jobs.processing);
        // A job that is not done keeps it from being called whole.
        let part = ended as f64 / (all as f64).max(1.0);
        let ended = match (all, all - ended) {
            (0, _) => String::new(),
            (_, 0) => percent(1.0),
            (_, _) => percent(part.min(0.99)),
        };
        Self { text, ended, parts }
    }
}

/// Whether no more jobs of a batch are to come.
fn is_over(batch: &BatchItem) -> bool {
    [BatchState::Completed, BatchState::Failed, BatchState::Deleted].iter().any(|state| state.label() == batch.state)
}

/// Ages, drawn.
#[derive(Debug)]
pub(super) struct Ages {
    /// The same in words.
    pub(super) text: String,
    pub(super) parts: Vec<Part>,
}

impl Ages {
    /// The bands side by side, youngest first.
    pub(super) fn new(by_age: &ByAge) -> Self {
        let total: u64 = by_age.iter().sum();
        let (mut text, mut parts, mut x) = (Vec::new(), Vec::new(), 0.0);
        for ((band, class), count) in AGE_LABELS.into_iter().enumerate().zip(by_age).filter(|(_, count)| **count > 0) {
            let width = *count as f64 / total as f64 * 100.0;
            parts.push(Part { class, x: format!("{x:.2}"), width: format!("{width:.2}") });
            x += width;
            text.push(format!("{} for {}", Count(*count), age_in_words(AgeBand(band))));
        }
        Self { text: text.join(", "), parts }
    }
}

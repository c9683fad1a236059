//! Comparisons of what stores list with the content index, on the page of a space.

use jiff::Timestamp;

use crate::views::mill::ComparisonItem;
use crate::views::show::{Moment, Size};

/// What a store lists, beside the content index.
#[derive(Debug)]
pub(super) struct ComparedRow {
    pub(super) store: String,
    pub(super) at: Moment,
    pub(super) words: String,
    pub(super) tag: &'static str,
    pub(super) agreeing: String,
    pub(super) size: Size,
    /// Where its table lies.
    pub(super) place: String,
}

impl ComparedRow {
    pub(super) fn new(comparison: &ComparisonItem, now: Timestamp) -> Self {
        Self {
            store: comparison.store.clone(),
            at: Moment::new(comparison.ended, now),
            words: comparison.words(),
            tag: if comparison.differing > 0 { "bad" } else { "good" },
            agreeing: comparison.agreeing_words(),
            size: Size::new(comparison.agreeing.bytes),
            place: comparison.place.clone(),
        }
    }
}

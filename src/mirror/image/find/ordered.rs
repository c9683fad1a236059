//! Taking jobs from where they lie in order already: by the instant of entering their state.

use super::Filter;
use super::scan::Value;
use super::select::{Selection, TURNED};
use crate::mirror::bands::Bands;

impl Filter<'_> {
    /// Whether it asks for nothing but the state, the lock, and the instant of entering.
    pub(super) fn is_by_state(&self) -> bool {
        // All fields by name: one that is forgotten here would not filter.
        let Self { kinds: _, entered_until: _, few, collection, batch, min_retries, sets, text } = self;
        let is_by_sets = few.is_none() && sets.is_empty() && text.is_none();
        is_by_sets && collection.is_none() && batch.is_none() && *min_retries == 0
    }

    /// How many of a set pass, by the instant of entering.
    pub(super) fn rank_in_order(&self, set: &Bands<5>) -> usize {
        let until = self.entered_until.unwrap_or(i64::MAX);
        set.items().rank(|(entered_ms, _)| *entered_ms <= until)
    }

    /// Counts the jobs that pass, and puts those before a selection that may be on its page, with their numbers in
    /// place of their rows. The sets have all the jobs of the states that are requested, each with what its places have
    /// above the instant.
    pub(super) fn take_in_order<'a>(
        &self,
        sets: impl Iterator<Item = (u128, &'a Bands<5>)>,
        is_turned: bool,
        selection: &mut Selection,
    ) {
        let until = self.entered_until.unwrap_or(i64::MAX);
        let is_wanted = |(entered_ms, _): &(i64, u32)| *entered_ms <= until;
        let start = selection.start();
        for (group, set) in sets {
            let place = |(entered_ms, number): &(i64, u32)| {
                let place = group | u128::from(entered_ms.wide()) << 32 | u128::from(*number);
                if is_turned { place ^ TURNED } else { place }
            };
            let is_behind = |item: &(i64, u32)| start.is_none_or(|start| place(item) > start);
            let jobs = set.items();
            let total = jobs.rank(is_wanted);
            if is_turned {
                let is_first = |item: &(i64, u32)| is_wanted(item) && is_behind(item);
                selection.count(total, jobs.rank(is_first));
                put(jobs.before(is_first), place, selection);
            } else {
                let is_passed = |item: &(i64, u32)| !is_behind(item);
                let passed = jobs.rank(is_passed).min(total);
                selection.count(total, total - passed);
                put(jobs.behind(is_passed).take(total - passed), place, selection);
            }
        }
    }
}

/// Puts items before a selection, as many as may be on its page.
fn put(items: impl Iterator<Item = (i64, u32)>, place: impl Fn(&(i64, u32)) -> u128, selection: &mut Selection) {
    for item in items.take(selection.limit()) {
        let place = place(&item);
        if place > selection.end() {
            break;
        }
        selection.push(place, item.1);
    }
}

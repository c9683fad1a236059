//! Jobs by collection.
//!
//! A collection's name is text of a znode: anything may stand there, as often as somebody likes. So only the largest
//! get series, and the rest are one.

use std::fmt;

use crate::metrics::encode::Families;
use crate::mirror::{ByState, CollectionFigures, state_label};
use crate::queue::state::JobState;

/// The label value for what has no series of its own.
const OVERFLOW: &str = "overflow";

/// No mnemonic of a collection is longer, in bytes; what is, is no mnemonic.
const LONGEST: usize = 128;

type Jobs = ByState<JobState, u64>;

pub(super) fn write(families: &mut Families<'_>, figures: &[CollectionFigures], limit: usize) -> fmt::Result {
    let distinct = figures.iter().filter(|figures| !figures.collection.is_empty()).count();
    families.count("merritt_collections", "Collections that have jobs here.", distinct as u64)?;
    let members = members(figures, limit);
    let samples = members.iter().flat_map(|(collection, jobs)| {
        jobs.iter().map(move |(state, count)| ([("collection", *collection), ("state", state_label(state))], *count))
    });
    families.gauges(
        "merritt_collection_jobs",
        "Jobs of the collections with the most, in each state; all others are the collection overflow.",
        samples,
    )
}

/// The largest collections, by size and then by name, and the rest at the end.
fn members(figures: &[CollectionFigures], limit: usize) -> Vec<(&str, Jobs)> {
    let total = |figures: &CollectionFigures| figures.jobs.iter().map(|(_, count)| *count).sum::<u64>();
    let mut ranked: Vec<_> = figures.iter().map(|figures| (total(figures), figures)).collect();
    ranked.sort_by(|(more, a), (less, b)| less.cmp(more).then_with(|| a.collection.cmp(&b.collection)));
    let mut members: Vec<(&str, Jobs)> = Vec::new();
    let mut rest = Jobs::default();
    for (_, figures) in ranked {
        if members.len() < limit && is_label(&figures.collection) {
            members.push((&figures.collection, figures.jobs.clone()));
        } else {
            for (state, count) in figures.jobs.iter() {
                *rest.get_mut(state) += count;
            }
        }
    }
    members.push((OVERFLOW, rest));
    members
}

/// Whether a name can be a label value of its own. To Prometheus an empty one is no label at all. A collection of the overflow's name would make its series come
/// twice, and Prometheus would refuse the whole scrape.
fn is_label(collection: &str) -> bool {
    !collection.is_empty()
        && collection != OVERFLOW
        && collection.len() <= LONGEST
        && !collection.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collection(name: &str, pending: u64) -> CollectionFigures {
        let mut jobs = Jobs::default();
        *jobs.get_mut(Some(JobState::Pending)) = pending;
        CollectionFigures { collection: name.into(), jobs }
    }

    #[test]
    fn the_largest_are_named_and_nothing_is_lost() {
        let long = "x".repeat(LONGEST + 1);
        let figures = [
            collection("b", 5),
            collection("small", 1),
            collection("a", 5),
            collection("overflow", 100),
            collection("two\nlines", 100),
            collection(&long, 100),
            collection("", 7),
        ];
        let members: Vec<_> =
            members(&figures, 3).into_iter().map(|(name, jobs)| (name, *jobs.get(Some(JobState::Pending)))).collect();
        assert_eq!(members, [("a", 5), ("b", 5), ("small", 1), ("overflow", 307)]);
    }
}

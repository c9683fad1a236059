//! Jobs by collection.
//!
//! A collection's name is text of a znode: anything may stand there, any number of times. So only the largest
//! get series, and the rest are one.

use std::borrow::Cow;
use std::fmt;

use crate::metrics::encode::Families;
use crate::mirror::{ByState, CollectionFigures, state_label};
use queuekeeper_queue::state::JobState;

/// The label value for what has no series of its own.
const OVERFLOW: &str = "overflow";

/// No mnemonic of a collection is longer, in bytes; what is, is no mnemonic.
const LONGEST: usize = 128;

type Jobs = ByState<JobState, u64>;

pub(super) fn write(families: &mut Families<'_>, figures: &[CollectionFigures], limit: usize) -> fmt::Result {
    let distinct = figures.iter().filter(|figures| !figures.collection.is_empty()).count();
    families.count("merritt_collections", "Number of collections that have jobs in the queue.", distinct as u64)?;
    let members = members(figures, limit);
    let samples = members.iter().flat_map(|(collection, jobs)| {
        jobs.iter().map(move |(state, count)| ([("collection", &**collection), ("state", state_label(state))], *count))
    });
    families.gauges(
        "merritt_collection_jobs",
        "Number of jobs by collection and state, for the collections with the most jobs; all others are counted as overflow.",
        samples,
    )
}

/// The largest collections, by size and then by name, and the rest at the end.
fn members(figures: &[CollectionFigures], limit: usize) -> Vec<(Cow<'_, str>, Jobs)> {
    let total = |figures: &CollectionFigures| figures.jobs.iter().map(|(_, count)| *count).sum::<u64>();
    let mut ranked: Vec<_> = figures.iter().map(|figures| (total(figures), figures)).collect();
    ranked.sort_by(|(more, a), (less, b)| less.cmp(more).then_with(|| a.collection.cmp(&b.collection)));
    let mut members: Vec<(Cow<'_, str>, Jobs)> = Vec::new();
    let mut rest = Jobs::default();
    for (_, figures) in ranked {
        let label = label(&figures.collection);
        // One that is another's escapes, letter by letter, would make its series come twice.
        let is_new = || members.iter().all(|(other, _)| *other != label);
        if members.len() < limit && is_label(&figures.collection) && is_new() {
            members.push((label, figures.jobs.clone()));
        } else {
            for (state, count) in figures.jobs.iter() {
                *rest.get_mut(state) += count;
            }
        }
    }
    members.push((OVERFLOW.into(), rest));
    members
}

/// Whether a name can be a label value of its own. To Prometheus an empty one is no label at all. A collection of the
/// overflow's name would make its series come twice, and Prometheus would refuse the whole scrape.
fn is_label(collection: &str) -> bool {
    !collection.is_empty() && collection != OVERFLOW && collection.len() <= LONGEST
}

/// A name as a label value, with escapes for what does not show, such as the marks that turn the direction of what
/// follows.
fn label(collection: &str) -> Cow<'_, str> {
    let is_plain = |found: char| matches!(found, '"' | '\'' | '\\') || found.escape_debug().len() == 1;
    if collection.chars().all(is_plain) {
        return Cow::Borrowed(collection);
    }
    let mut label = String::with_capacity(collection.len() + 8);
    for found in collection.chars() {
        if is_plain(found) { label.push(found) } else { label.extend(found.escape_debug()) }
    }
    Cow::Owned(label)
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
            members(&figures, 4).into_iter().map(|(name, jobs)| (name, *jobs.get(Some(JobState::Pending)))).collect();
        let expected = [("two\\nlines", 100), ("a", 5), ("b", 5), ("small", 1), ("overflow", 207)];
        assert_eq!(members, expected.map(|(name, count)| (Cow::from(name), count)));
    }

    #[test]
    fn what_does_not_show_is_escaped_and_no_two_names_become_one() {
        for (name, expected) in [
            ("Zürich \"ö\" 待 \\", "Zürich \"ö\" 待 \\"),
            ("a\u{202e}b\u{200b}\u{9b}", "a\\u{202e}b\\u{200b}\\u{9b}"),
            ("\u{1b}[31m", "\\u{1b}[31m"),
        ] {
            assert_eq!(label(name), expected);
        }
        let figures = [collection("a\u{202e}", 5), collection("a\\u{202e}", 3)];
        let counts = members(&figures, 4).into_iter().map(|(name, jobs)| (name, *jobs.get(Some(JobState::Pending))));
        assert_eq!(counts.collect::<Vec<_>>(), [("a\\u{202e}".into(), 5), ("overflow".into(), 3)]);
    }
}

//! Jobs by collection.
//!
//! A collection's name is text of a znode: anything may stand there, any number of times. So only the largest
//! get series, and the rest are one.

use std::borrow::Cow;
use std::fmt;

use crate::metrics::encode::Families;
use crate::mirror::{ByState, LargestCollections, state_label};
use queuekeeper_queue::state::JobState;

/// The label value for what has no series of its own.
const OVERFLOW: &str = "overflow";

/// No mnemonic of a collection is longer, in bytes; what is, is no mnemonic.
const LONGEST: usize = 128;

type Jobs = ByState<JobState, u64>;

/// How many more collections than get series are looked at, for the names that cannot be labels.
const SPARE: usize = 50;

/// How many of the largest collections have to be known for series of `limit` of them.
pub(super) fn candidates(limit: usize) -> usize {
    limit + SPARE
}

pub(super) fn write(families: &mut Families<'_>, figures: &LargestCollections, limit: usize) -> fmt::Result {
    families.count("merritt_collections", "Number of collections that have jobs in the queue.", figures.all)?;
    let members = members(figures, limit);
    let samples = members.iter().flat_map(|(collection, jobs)| {
        jobs.iter().map(move |(state, count)| ([("collection", &**collection), ("state", state_label(state))], *count))
    });
    families.gauges(
        "merritt_collection_jobs",
        "Number of jobs by collection and state, for the collections with the most unfinished jobs; all others are counted as overflow.",
        samples,
    )
}

/// The largest collections and the rest at the end.
fn members(figures: &LargestCollections, limit: usize) -> Vec<(Cow<'_, str>, Jobs)> {
    let mut members: Vec<(Cow<'_, str>, Jobs)> = Vec::new();
    let mut rest = figures.rest.clone();
    for figures in &figures.largest {
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
    use crate::mirror::CollectionFigures;

    /// Collections in this order, with so many Pending jobs, and 3 jobs of others.
    fn figures(pending: &[(&str, u64)]) -> LargestCollections {
        let jobs = |count| {
            let mut jobs = Jobs::default();
            *jobs.get_mut(Some(JobState::Pending)) = count;
            jobs
        };
        let collection =
            |(name, count): &(&str, u64)| CollectionFigures { collection: (*name).into(), jobs: jobs(*count) };
        let largest = pending.iter().map(collection).collect();
        LargestCollections { all: pending.len() as u64, largest, rest: jobs(3) }
    }

    /// The label values for at most four of them, with their Pending jobs.
    fn named(pending: &[(&str, u64)]) -> Vec<(String, u64)> {
        let figures = figures(pending);
        let members = members(&figures, 4).into_iter();
        members.map(|(name, jobs)| (name.into_owned(), *jobs.get(Some(JobState::Pending)))).collect()
    }

    fn expected(pending: &[(&str, u64)]) -> Vec<(String, u64)> {
        pending.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn the_largest_are_named_and_nothing_is_lost() {
        let long = "x".repeat(LONGEST + 1);
        let found =
            named(&[("two\nlines", 100), ("overflow", 99), (&long, 98), ("a", 5), ("b", 5), ("c", 2), ("d", 1)]);
        assert_eq!(found, expected(&[("two\\nlines", 100), ("a", 5), ("b", 5), ("c", 2), ("overflow", 201)]));
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
        let found = named(&[("a\u{202e}", 5), ("a\\u{202e}", 3)]);
        assert_eq!(found, expected(&[("a\\u{202e}", 5), ("overflow", 6)]));
    }
}

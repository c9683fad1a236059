//! The filter of the list of jobs, as a form.

use std::cmp::Reverse;

use crate::mirror::find::{Direction, JobOrder};
use crate::mirror::{ByState, CollectionFigures};
use crate::views::jobs::JobFilter;
use crate::views::page::Limit;
use crate::views::parameter::{Labelled as _, OneOf};
use crate::views::query::Parameters as _;
use crate::views::show::{Count, visible};
use crate::views::{NONE, PageQuery};
use crate::web::http::query::address;
use crate::web::pages::listing::{Choice, choices_of};
use crate::web::state::State;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::state::{JobState, State as _};

/// How many collections are offered; any other can be typed.
const COLLECTIONS: usize = 200;

/// The ages that are offered, as a chosen one is displayed.
const AGES: [&str; 7] = ["1m", "10m", "1h", "6h", "1d", "1w", "30d"];

/// What the form shows.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) text: String,
    /// The states that are requested: the form keeps them.
    pub(super) states: Vec<&'static str>,
    /// Links that ask for one more state, or one less.
    pub(super) pills: Vec<Pill>,
    pub(super) collection: String,
    /// The largest collections, to choose from while typing.
    pub(super) collections: Vec<String>,
    pub(super) batch: String,
    pub(super) ages: Vec<Choice>,
    pub(super) min_retries: String,
    pub(super) locked: Vec<Choice>,
    pub(super) faults: Vec<Choice>,
    pub(super) group: String,
    pub(super) sorts: Vec<Choice>,
    pub(super) directions: Vec<Choice>,
    /// How many jobs a page has; empty where that is as always.
    pub(super) limit: String,
    /// Whether a filter holds that is folded away.
    pub(super) is_open: bool,
}

/// A state to filter by at a click, and how many jobs of it there are by all other filters.
#[derive(Debug)]
pub(super) struct Pill {
    pub(super) name: &'static str,
    pub(super) href: String,
    /// Empty before the first walk.
    pub(super) count: String,
    pub(super) is_chosen: bool,
}

fn choice(value: &str, name: &str, is_chosen: bool) -> Choice {
    Choice { value: value.to_owned(), name: name.to_owned(), is_chosen }
}

fn pills((filter, page): &(JobFilter, PageQuery), counts: Option<&ByState<JobState, usize>>, base: &str) -> Vec<Pill> {
    let pill = |name, count: Option<usize>, chosen: Vec<OneOf<Option<JobState>>>, is_chosen| {
        let other = JobFilter { state: chosen, ..filter.clone() };
        Pill {
            name,
            href: address(base, other.pairs().iter().chain(&page.size().pairs())),
            count: count.map(|count| Count(count as u64).to_string()).unwrap_or_default(),
            is_chosen,
        }
    };
    let all = counts.map(|counts| counts.iter().map(|(_, count)| *count).sum());
    let of_state = |state| {
        let is_chosen = filter.state.contains(&OneOf(state));
        let mut chosen = filter.state.clone();
        if is_chosen {
            chosen.retain(|other| *other != OneOf(state));
        } else {
            chosen.push(OneOf(state));
        }
        let count = counts.map(|counts| *counts.get(state));
        pill(state.map_or("Other", JobState::name), count, chosen, is_chosen)
    };
    let states = Option::<JobState>::all().into_iter().map(of_state);
    [pill("All", all, Vec::new(), filter.state.is_empty())].into_iter().chain(states).collect()
}

fn text(value: Option<&impl ToString>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

impl Form {
    /// `counts` are the jobs by all filters but that of the state, and `base` is the list without any.
    pub(super) fn new(
        state: &State,
        list_query: &(JobFilter, PageQuery),
        counts: Option<&ByState<JobState, usize>>,
        base: &str,
    ) -> Self {
        let (filter, page) = list_query;
        let age = text(filter.min_age.as_ref());
        let mut ages: Vec<&str> = AGES.into();
        if !age.is_empty() && !ages.contains(&&*age) {
            ages.push(&age);
        }
        let locked = |value: bool, name| choice(&value.to_string(), name, filter.locked == Some(value));
        Self {
            text: text(filter.text.as_ref()),
            states: filter.state.iter().map(|state| state.label()).collect(),
            pills: pills(list_query, counts, base),
            collection: filter.collection.clone().unwrap_or_default(),
            collections: collections(state),
            batch: text(filter.batch.as_ref()),
            ages: ages.iter().map(|value| choice(value, &spelled(value), **value == *age)).collect(),
            min_retries: text(filter.min_retries.as_ref()),
            locked: vec![locked(true, "yes"), locked(false, "no")],
            faults: choices_of(filter.fault, Fault::title),
            group: text(filter.group.as_ref()),
            sorts: choices_of(Some(filter.sort), sort_name),
            directions: choices_of(Some(filter.direction), direction_name),
            limit: if page.limit == Limit::default() { String::new() } else { page.limit.to_string() },
            is_open: filter.collection.is_some()
                || filter.batch.is_some()
                || filter.min_age.is_some()
                || filter.min_retries.is_some()
                || filter.locked.is_some()
                || filter.fault.is_some(),
        }
    }
}

/// The collections with the most jobs, by name.
pub(in crate::web::pages) fn collections(state: &State) -> Vec<String> {
    let mut all: Vec<_> = state.shared.store.collections().unwrap_or_default();
    let jobs = |figures: &CollectionFigures| figures.jobs.iter().map(|(_, jobs)| *jobs).sum::<u64>();
    // One with characters that do not show could not be distinguished from others in the list.
    let is_plain = |name: &str| !name.is_empty() && name.len() <= 64 && visible(name) == name;
    all.retain(|figures| is_plain(&figures.collection));
    all.sort_by_key(|figures| Reverse(jobs(figures)));
    all.truncate(COLLECTIONS);
    let mut names: Vec<_> = all.into_iter().map(|figures| figures.collection.to_string()).collect();
    names.sort();
    names
}

fn sort_name(sort: JobOrder) -> &'static str {
    match sort {
        JobOrder::Unfinished => "unfinished first, then time in state",
        JobOrder::Entered => "time in state",
        JobOrder::Id => "job id",
        JobOrder::Priority => "priority",
        JobOrder::SpaceNeeded => "space needed",
        JobOrder::Retries => "retries",
        JobOrder::Batch => "batch",
    }
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "lowest or longest first",
        Direction::Descending => "highest or shortest first",
    }
}

/// An age in the words of the pages; one of several units as it was requested.
fn spelled(age: &str) -> String {
    let digits = age.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let unit = match (&age[digits.len()..], digits) {
        ("s", _) => "s",
        ("m", _) => "min",
        ("h", _) => "h",
        ("d", "1") => "day",
        ("w", "1") => "week",
        ("w", _) => "weeks",
        ("d", _) => "days",
        (_, _) => return age.to_owned(),
    };
    let is_one = digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_one { format!("{digits} {unit}") } else { age.to_owned() }
}

/// A filter in words.
pub(super) fn said(name: &str, value: &str) -> String {
    let value = visible(value);
    match name {
        "text" => format!("with “{value}”"),
        "state" => {
            let state = JobState::ALL.iter().find(|state| state.label() == value);
            format!("in {}", state.map_or("an unknown state", |state| state.name()))
        }
        "collection" if value == NONE => "without a collection".to_owned(),
        "collection" | "batch" => format!("of {value}"),
        "min_age" => format!("in its state for {} or more", spelled(&value)),
        "min_retries" if value == "1" => "resumed once or more".to_owned(),
        "min_retries" => format!("resumed {value} times or more"),
        "locked" if value == "true" => "locked".to_owned(),
        "locked" => "not locked".to_owned(),
        "fault" => {
            let title = Fault::from_label(&value).map_or_else(|| value.clone(), |fault| fault.title().to_owned());
            format!("with the fault: {title}")
        }
        "group" => format!("in the failure group {value}"),
        other => format!("{} {value}", other.replace('_', " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::PrometheusDuration;

    #[test]
    fn an_age_that_is_offered_is_displayed_as_it_is_offered_once_it_is_chosen() {
        for age in AGES {
            assert_eq!(age.parse::<PrometheusDuration>().unwrap().to_string(), age);
        }
    }
}

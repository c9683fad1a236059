//! What fails, and whether it is one cause or many.

use askama::Template;
use jiff::Timestamp;

use super::frame::{Frame, Section};
use super::listing::{ListRequest, Shown, Sorting, if_walked, sortings};
use crate::actions::Role;
use crate::mirror::lists::FailureOrder;
use crate::views::failures::{FailureItem, FailureList, FailureSort};
use crate::views::query::Parameters as _;
use crate::views::show::{Count, Moment, brief, counted};
use crate::views::{NONE, PageQuery};
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair, query_of};
use crate::web::state::State;
use queuekeeper_queue::state::{JobState, State as _};

/// How many characters of a message stand in the list.
const LONG: usize = 400;

/// How many characters of a name do.
const SHORT: usize = 60;

/// The failures in groups, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "failures.html")]
pub(super) struct FailuresPage {
    frame: Frame,
    may_resume: bool,
    /// `None` before the first walk.
    list: Option<FailureTable>,
}

#[derive(Debug)]
struct FailureTable {
    shown: Shown,
    sortings: Vec<Sorting>,
    groups: Vec<Group>,
}

/// A group as the page shows it.
#[derive(Debug)]
struct Group {
    key: String,
    count: String,
    /// Its part of all failed jobs, in percent of the width of its bar.
    share: String,
    share_text: String,
    failed_in: String,
    pattern: String,
    /// An example; empty where it says no more than the pattern.
    message: String,
    oldest: Option<Moment>,
    newest: Option<Moment>,
    resumed: String,
    href: String,
    /// What finds its jobs.
    query: String,
    jobs: Vec<Link>,
    more_jobs: String,
    batches: Vec<Link>,
    more_batches: String,
    collections: Vec<Link>,
    more_collections: String,
}

/// Where something is, and how many of it.
#[derive(Debug)]
struct Link {
    name: String,
    href: String,
    count: String,
}

impl FailuresPage {
    pub(super) fn new(
        state: &State,
        list_query: &(FailureSort, PageQuery),
        role: Role,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let view = state.view(now);
        let frame = Frame::new(&view, "./".to_owned(), Section::Failures);
        let list = if_walked(state.source().failures(list_query.0, &list_query.1))?;
        let figures = view.summary.as_ref().map(|summary| {
            let failed = summary.jobs.get(Some(JobState::Failed));
            (failed.count.saturating_sub(failed.by_operator), failed.by_operator)
        });
        let list = list.map(|list| FailureTable::new(&list, list_query, figures.unwrap_or_default(), &frame.root, now));
        Ok(Self { may_resume: role >= Role::Operator, frame, list })
    }
}

impl FailureTable {
    fn new(
        list: &FailureList,
        list_query: &(FailureSort, PageQuery),
        (failed, by_operator): (u64, u64),
        root: &str,
        now: Timestamp,
    ) -> Self {
        let summary = match (failed, list.total) {
            (_, 0) => "No job has failed.".to_owned(),
            (1, _) => "1 job has failed.".to_owned(),
            (failed, 1) => format!("{} jobs have failed, all with the same message.", Count(failed)),
            (failed, groups) => format!("{} jobs have failed, in {} groups.", Count(failed), Count(groups)),
        };
        let summary = match by_operator {
            0 => summary,
            1 => format!("{summary} An operator moved 1 job to Failed."),
            jobs => format!("{summary} Operators set {} jobs Failed.", Count(jobs)),
        };
        let of = ListRequest::new("failures", ["group", "groups"], list_query);
        let counts = [list.total, list.before, list.items.len() as u64];
        let href = |sort| {
            address(&format!("{root}failures"), &[FailureSort { sort }.pairs(), list_query.1.size().pairs()].concat())
        };
        Self {
            shown: Shown { summary, ..Shown::new(of, root, counts, list.next.as_deref()) },
            sortings: if list.total > 1 { sortings(list_query.0.sort, sort_in_words, href) } else { Vec::new() },
            groups: list.items.iter().map(|item| Group::new(item, failed, root, now)).collect(),
        }
    }
}

fn sort_in_words(order: FailureOrder) -> &'static str {
    match order {
        FailureOrder::Largest => "most jobs",
        FailureOrder::Newest => "latest failure",
        FailureOrder::Oldest => "earliest failure",
    }
}

impl Group {
    fn new(item: &FailureItem, failed: u64, root: &str, now: Timestamp) -> Self {
        let jobs =
            |name: &str, value: &str| address(&format!("{root}jobs"), &[pair("group", &item.group), pair(name, value)]);
        let link = |id: &String| Link { name: id.clone(), href: format!("{root}jobs/{id}"), count: String::new() };
        let batches = item.batches.iter().map(|share| Link {
            name: share.batch.clone(),
            href: jobs("batch", &share.batch),
            count: Count(share.count).to_string(),
        });
        let collections = item.collections.iter().map(|share| Link {
            name: if share.collection.is_empty() {
                "no collection".to_owned()
            } else {
                brief(&share.collection, SHORT)
            },
            href: jobs("collection", if share.collection.is_empty() { NONE } else { &share.collection }),
            count: Count(share.count).to_string(),
        });
        let more = |count: u64, named: usize| {
            let rest = count.saturating_sub(named as u64);
            if rest > 0 { format!("and {} more", Count(rest)) } else { String::new() }
        };
        // The two figures are of two moments, and of a group no more than all can have failed.
        let share = (item.count as f64 / failed.max(item.count).max(1) as f64) * 100.0;
        let state = JobState::ALL.iter().find(|state| state.label() == item.failed_in);
        let resumed = match item.resumed {
            0 => "none was resumed before".to_owned(),
            resumed if resumed == item.count && resumed > 1 => "each was resumed before".to_owned(),
            1 if item.count == 1 => "it was resumed before".to_owned(),
            resumed => format!("{} resumed before", counted(resumed, "was", "were")),
        };
        Self {
            key: item.group.clone(),
            count: Count(item.count).to_string(),
            share: format!("{share:.2}"),
            share_text: format!("{share:.0} % of all failed jobs"),
            failed_in: state.map_or(item.failed_in, |state| state.name()).to_owned(),
            pattern: if item.pattern.is_empty() { "(no message)".to_owned() } else { brief(&item.pattern, LONG) },
            message: if item.message.trim() == item.pattern { String::new() } else { brief(&item.message, LONG) },
            oldest: item.oldest.map(|at| Moment::new(at, now)),
            newest: item.newest.filter(|_| item.newest != item.oldest).map(|at| Moment::new(at, now)),
            resumed,
            href: address(&format!("{root}jobs"), &[pair("group", &item.group)]),
            query: query_of(&[pair("group", &item.group)]),
            jobs: item.jobs.iter().map(link).collect(),
            more_jobs: more(item.count, item.jobs.len()),
            batches: batches.collect(),
            more_batches: more(item.batch_count, item.batches.len()),
            collections: collections.collect(),
            more_collections: more(item.collection_count, item.collections.len()),
        }
    }
}

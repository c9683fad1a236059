//! Which jobs: the filter, and the page of the list that it gives.

use askama::Template;
use jiff::Timestamp;

use super::frame::{Frame, Section};
use super::jobs::form::Form;
use super::jobs::row::Row;
use super::listing::Pages;
use crate::actions::{Role, TargetKind};
use crate::mirror::find::{Direction, JobSort};
use crate::views::jobs::{JobFilter, JobList};
use crate::views::parameter::OneOf;
use crate::views::query::{self, Parameters as _};
use crate::views::show::{Count, counted};
use crate::views::{PageQuery, ViewError};
use crate::web::actions::resumable;
use crate::web::http::problem::Problem;
use crate::web::http::query::{Pairs, address, query_of};
use crate::web::state::State;

pub(super) mod form;
mod row;

/// The list of jobs, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "jobs.html")]
pub(super) struct JobsPage {
    frame: Frame,
    form: Form,
    chips: Vec<Chip>,
    /// The list without any filter.
    clear: String,
    bulk: Option<Bulk>,
    /// `None` before the first walk.
    list: Option<List>,
}

/// What may be done to many jobs at once.
#[derive(Debug)]
struct Bulk {
    actions: Vec<(&'static str, &'static str)>,
    /// Where jobs may be resumed.
    states: Vec<(&'static str, &'static str)>,
    /// How many there are by the filter.
    count: String,
    /// The filter.
    query: String,
}

impl Bulk {
    /// What that reader may do; `None` for nothing.
    fn new(filter: &JobFilter, total: usize, role: Role) -> Option<Self> {
        let all = TargetKind::Job.actions().iter();
        let actions: Vec<_> = all.filter(|spec| role >= spec.role).map(|spec| spec.kind).collect();
        (!actions.is_empty()).then(|| Self {
            actions: actions.iter().map(|action| (action.label(), action.title())).collect(),
            states: resumable().collect(),
            count: Count(total as u64).to_string(),
            query: query_of(&filter.filters()),
        })
    }
}

/// A filter that holds, and the list without it.
#[derive(Debug)]
struct Chip {
    text: String,
    href: String,
    /// How many jobs there are by this filter alone; only worked out where there are none by all of them.
    alone: String,
    /// How many there would be without it, likewise; empty for none.
    without: String,
}

#[derive(Debug)]
struct List {
    /// How many there are, in a sentence.
    summary: String,
    /// Which of them are shown; empty where all are.
    shown: String,
    rows: Vec<Row>,
    heads: Vec<Head>,
    pages: Pages,
    /// The same query of the API.
    json: String,
}

/// The head of a column: sorts by it where it is a link.
#[derive(Debug)]
struct Head {
    name: &'static str,
    class: &'static str,
    href: String,
    /// The value of `aria-sort`; empty where the list is not sorted by it.
    sorted: &'static str,
}

impl JobsPage {
    /// The page that a filter asks for.
    pub(super) fn new(
        state: &State,
        asked: &(JobFilter, PageQuery),
        role: Role,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let (filter, page) = asked;
        let view = state.view(now);
        let frame = Frame::new(&view, "./".to_owned(), Section::Jobs);
        let base = format!("{}jobs", frame.root);
        let (list, counts) = match state.source().jobs_by_state(filter, page, now) {
            Ok((list, counts)) => (Some(list), Some(counts)),
            Err(ViewError::NoMirror) => (None, None),
            Err(error) => return Err(error.into()),
        };
        let form = Form::new(state, asked, counts.as_ref());
        let is_empty = list.as_ref().is_some_and(|list| list.total == 0);
        let order = [filter.order(), page.size().pairs()].concat();
        let chips = chips(state, filter, &order, &base, is_empty, now);
        let bulk = Bulk::new(filter, list.as_ref().map_or(0, |list| list.total), role);
        let list = list.as_ref().map(|list| List::new(list, filter, &order, &frame, now));
        Ok(Self { form, chips, bulk, clear: address(&base, &order), list, frame })
    }
}

fn chips(state: &State, filter: &JobFilter, order: &Pairs, base: &str, is_empty: bool, now: Timestamp) -> Vec<Chip> {
    let all = filter.filters();
    let chip = |at: usize| {
        let rest: Pairs =
            all.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, pair)| pair.clone()).collect();
        let total = |pairs: &[(String, String)]| {
            let wider: JobFilter = query::read(pairs).ok().filter(|_| is_empty)?;
            Some(state.source().jobs(&wider, &PageQuery::first(1), now).ok()?.total as u64)
        };
        let without = (all.len() > 1).then(|| total(&rest)).flatten().filter(|total| *total > 0);
        let (name, value) = &all[at];
        let said = |total| if total == 0 { "no job".to_owned() } else { counted(total, "job", "jobs") };
        Chip {
            text: form::said(name, value),
            href: address(base, rest.iter().chain(order)),
            alone: total(&all[at..=at]).map(said).unwrap_or_default(),
            without: without.map(said).unwrap_or_default(),
        }
    };
    (0..all.len()).map(chip).collect()
}

impl List {
    fn new(list: &JobList, filter: &JobFilter, order: &Pairs, frame: &Frame, now: Timestamp) -> Self {
        let base = &format!("{}jobs", frame.root);
        let pairs = [filter.filters(), order.clone()].concat();
        let is_filtered = filter.is_filtered();
        let summary = match (list.total, is_filtered) {
            (0, false) => "There are no jobs in the queue.".to_owned(),
            (0, true) => "No job matches.".to_owned(),
            (1, true) => "1 job matches.".to_owned(),
            (total, true) => format!("{} jobs match.", Count(total as u64)),
            (total, false) => format!("{} in the queue.", counted(total as u64, "job", "jobs")),
        };
        let (first, last) = (list.before + 1, list.before + list.items.len());
        let shown = if list.items.is_empty() || list.items.len() == list.total {
            String::new()
        } else {
            format!("{} to {} of them:", Count(first as u64), Count(last as u64))
        };
        Self {
            summary,
            shown,
            heads: heads(filter, order, base),
            pages: Pages::new(base, &pairs, list.previous.as_deref(), list.next.as_deref()),
            json: address(&format!("{}api/v1/jobs", frame.root), &pairs),
            rows: list.items.iter().map(|item| Row::new(item, &frame.root, now)).collect(),
        }
    }
}

fn heads(filter: &JobFilter, order: &Pairs, base: &str) -> Vec<Head> {
    let columns = [
        ("Job", "", Some((JobSort::Id, Direction::Ascending))),
        ("In state", "num", Some((JobSort::Entered, Direction::Ascending))),
        ("Collection, batch", "", None),
        ("Priority", "num", Some((JobSort::Priority, Direction::Ascending))),
        ("Retries", "num", Some((JobSort::Retries, Direction::Descending))),
        ("Space", "num", Some((JobSort::SpaceNeeded, Direction::Descending))),
        ("Last message", "", None),
    ];
    let head = |(name, class, by): (_, _, Option<(JobSort, Direction)>)| {
        let Some((sort, first)) = by else { return Head { name, class, href: String::new(), sorted: "" } };
        let is_current = filter.sort.0 == sort;
        let direction = match (is_current, filter.direction.0) {
            (false, _) => first,
            (true, Direction::Ascending) => Direction::Descending,
            (true, Direction::Descending) => Direction::Ascending,
        };
        let other = JobFilter { sort: OneOf(sort), direction: OneOf(direction), ..filter.clone() }.pairs();
        let size = order.iter().filter(|(name, _)| name == "limit");
        let sorted = match (is_current, filter.direction.0) {
            (false, _) => "",
            (true, Direction::Ascending) => "ascending",
            (true, Direction::Descending) => "descending",
        };
        Head { name, class, href: address(base, other.iter().chain(size)), sorted }
    };
    columns.map(head).into()
}

//! Which jobs: the filter, and the page of the list that it gives.

use askama::Template;
use jiff::Timestamp;

use super::frame::{Frame, Section};
use super::inputs::Control;
use super::jobs::form::Form;
use super::jobs::row::JobRow;
use super::listing::{ColumnHead, Pages, if_walked};
use crate::actions::Role;
use crate::mirror::find::{Direction, JobOrder};
use crate::views::PageQuery;
use crate::views::jobs::{JobFilter, JobList};
use crate::views::parameter::OneOf;
use crate::views::query::{self, Parameters as _};
use crate::views::show::{Count, counted};
use crate::web::http::problem::Problem;
use crate::web::http::query::{Pairs, address};
use crate::web::state::State;
use queuekeeper_queue::state::{JobState, State as _};

mod bar;
pub(super) mod form;
mod row;

pub(super) use bar::{Attempt, Field, Which};

use bar::Bar;

/// The list of jobs, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "jobs.html")]
pub(super) struct JobsPage {
    frame: Frame,
    form: Form,
    chips: Vec<Chip>,
    /// The list without any filter.
    clear: String,
    /// What the reader may do to many jobs at once; `None` for nothing.
    bar: Option<Bar>,
    /// `None` before the first walk.
    list: Option<JobTable>,
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
struct JobTable {
    /// How many there are, in a sentence.
    summary: String,
    /// Which of them are shown; empty where all are.
    shown: String,
    /// In which order, where no head of a column says so.
    order: &'static str,
    rows: Vec<JobRow>,
    heads: Vec<ColumnHead>,
    pages: Pages,
    /// The same query of the API.
    json: String,
    /// The whole list as CSV.
    csv: String,
}

impl JobsPage {
    /// The page that a filter asks for; after an attempt to act on its jobs, with what was wrong with that.
    pub(super) fn new(
        state: &State,
        list_query: &(JobFilter, PageQuery),
        role: Role,
        attempt: Option<&Attempt>,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let (filter, page) = list_query;
        let view = state.view(now);
        let frame = Frame::new(&view, "./".to_owned(), Section::Jobs);
        let base = format!("{}jobs", frame.root);
        let (list, counts) = if_walked(state.source().jobs_by_state(filter, page, now))?.unzip();
        let form = Form::new(state, list_query, counts.as_ref(), &base);
        let is_empty = list.as_ref().is_some_and(|list| list.total == 0);
        let order = [filter.order(), page.size().pairs()].concat();
        let chips = chips(state, filter, &order, &base, is_empty, now);
        let bar = Bar::new(list_query, list.as_ref(), role, attempt);
        let mut list = list.as_ref().map(|list| JobTable::new(list, filter, &order, &frame, now));
        for row in list.iter_mut().flat_map(|list| &mut list.rows) {
            row.is_chosen = attempt.is_some_and(|attempt| attempt.items.contains(&row.id));
        }
        Ok(Self { form, chips, bar, clear: address(&base, &order), list, frame })
    }

    /// Whether it shows what was wrong with an attempt, and stays as it is until that is put right.
    fn is_still(&self) -> bool {
        self.bar.as_ref().is_some_and(Bar::is_wrong)
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

impl JobTable {
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
            format!("{} to {} of them", Count(first as u64), Count(last as u64))
        };
        let is_finished = |state: &OneOf<Option<JobState>>| state.0.is_some_and(JobState::is_final);
        let (some, all) = (filter.state.iter().any(is_finished), filter.state.iter().all(is_finished));
        let has_both = filter.state.is_empty() || some != all;
        let in_words = match (filter.sort.0, filter.direction.0) {
            _ if list.total < 2 => "",
            (JobOrder::Unfinished, Direction::Ascending) if has_both => "Unfinished first, longest in state on top",
            (JobOrder::Unfinished, Direction::Descending) if has_both => "Unfinished first, shortest in state on top",
            (JobOrder::Unfinished, Direction::Ascending) => "Longest in state on top",
            (JobOrder::Unfinished, Direction::Descending) => "Shortest in state on top",
            // The head of a column says so.
            _ => "",
        };
        Self {
            summary,
            shown,
            order: in_words,
            heads: heads(filter, order, base),
            pages: Pages::new(base, &pairs, list.previous.as_deref(), list.next.as_deref()),
            json: address(&format!("{}api/v1/jobs", frame.root), &pairs),
            csv: address(&format!("{}api/v1/jobs.csv", frame.root), &filter.pairs()),
            rows: list.items.iter().map(|item| JobRow::new(item, &frame.root, now)).collect(),
        }
    }
}

fn heads(filter: &JobFilter, order: &Pairs, base: &str) -> Vec<ColumnHead> {
    let columns = [
        ("Job", "", Some((JobOrder::Id, Direction::Ascending))),
        ("In state", "num", Some((JobOrder::Entered, Direction::Ascending))),
        ("Collection, batch", "", Some((JobOrder::Batch, Direction::Ascending))),
        ("Priority", "num", Some((JobOrder::Priority, Direction::Ascending))),
        ("Retries", "num", Some((JobOrder::Retries, Direction::Descending))),
        ("Space", "num", Some((JobOrder::SpaceNeeded, Direction::Descending))),
        ("Last message", "", None),
    ];
    let head = |(name, class, by): (_, _, Option<(JobOrder, Direction)>)| {
        let Some((sort, first)) = by else { return ColumnHead::plain(name, class) };
        let current = Some(filter.direction.0).filter(|_| filter.sort.0 == sort);
        let direction = match current {
            None => first,
            Some(Direction::Ascending) => Direction::Descending,
            Some(Direction::Descending) => Direction::Ascending,
        };
        let other = JobFilter { sort: OneOf(sort), direction: OneOf(direction), ..filter.clone() }.pairs();
        let size = order.iter().filter(|(name, _)| name == "limit");
        // The longest in their state have the earliest instants: of what the column shows, the order is the other one.
        let is_ascending = current.map(|direction| (direction == Direction::Ascending) != (sort == JobOrder::Entered));
        ColumnHead::sorting(name, class, address(base, other.iter().chain(size)), is_ascending)
    };
    columns.map(head).into()
}

//! What the pages of lists have in common: their links, their forms, and how much of a list is shown.

use std::fmt::Write as _;

use crate::views::parameter::{AgeBand, Labelled, OneOf};
use crate::views::query::Parameters;
use crate::views::show::{Count, brief, counted};
use crate::views::{PageQuery, ViewError};
use crate::web::http::problem::Problem;
use crate::web::http::query::{Pairs, address, given, pair};
use queuekeeper_queue::path::{OwnNode, Path};
use queuekeeper_queue::state::State as _;

/// How many characters of a text stand in a list.
pub(super) const SHORT: usize = 60;

/// The same of a message.
pub(super) const LONG: usize = 160;

/// An answer; `None` before the first walk.
pub(super) fn if_walked<T>(answer: Result<T, ViewError>) -> Result<Option<T>, Problem> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ViewError::NoMirror) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The ways to other pages; empty for none.
#[derive(Debug, Default)]
pub(super) struct Pages {
    pub(super) first: String,
    pub(super) previous: String,
    pub(super) next: String,
}

impl Pages {
    /// `base` is the address without a cursor, and `pairs` its parameters.
    pub(super) fn new(base: &str, pairs: &Pairs, previous: Option<&str>, next: Option<&str>) -> Self {
        let at = |cursor: &str| address(base, pairs.iter().chain([&pair("cursor", cursor)]));
        Self {
            first: previous.map(|_| address(base, pairs)).unwrap_or_default(),
            previous: previous.map(at).unwrap_or_default(),
            next: next.map(at).unwrap_or_default(),
        }
    }

    pub(super) fn are_none(&self) -> bool {
        self.first.is_empty() && self.next.is_empty()
    }
}

/// The head of a column: sorts by it where it is a link.
#[derive(Debug)]
pub(super) struct ColumnHead {
    pub(super) name: &'static str,
    pub(super) class: &'static str,
    pub(super) href: String,
    /// The value of `aria-sort`; empty where the list is not sorted by it.
    pub(super) sorted: &'static str,
}

impl ColumnHead {
    /// One that does not sort.
    pub(super) fn plain(name: &'static str, class: &'static str) -> Self {
        Self { name, class, href: String::new(), sorted: "" }
    }

    /// One that leads to the list sorted by it. `is_ascending` is how the list is sorted by it now; `None` for by
    /// something else.
    pub(super) fn sorting(name: &'static str, class: &'static str, href: String, is_ascending: Option<bool>) -> Self {
        let sorted = match is_ascending {
            None => "",
            Some(true) => "ascending",
            Some(false) => "descending",
        };
        Self { name, class, href, sorted }
    }

    /// One that sorts by some of a list's orders, of which each is ascending or not: it leads to the one behind the
    /// present one, and else to the first of them.
    pub(super) fn by<T: Copy + PartialEq>(
        (name, class): (&'static str, &'static str),
        orders: &[(T, bool)],
        present: T,
        href: impl Fn(T) -> String,
    ) -> Self {
        let at = orders.iter().position(|(order, _)| *order == present);
        let next = at.map_or(0, |at| (at + 1) % orders.len());
        Self::sorting(name, class, href(orders[next].0), at.map(|at| orders[at].1))
    }
}

/// An order that a list can be in, and where it is in that order.
#[derive(Clone, Debug)]
pub(super) struct Sorting {
    pub(super) name: &'static str,
    pub(super) href: String,
    pub(super) is_present: bool,
}

/// The orders of a list that has no columns.
pub(super) fn sortings<T: Labelled>(
    present: OneOf<T>,
    name: impl Fn(T) -> &'static str,
    href: impl Fn(OneOf<T>) -> String,
) -> Vec<Sorting> {
    let all = T::all().into_iter().map(OneOf);
    all.map(|order| Sorting { name: name(order.0), href: href(order), is_present: order == present }).collect()
}

/// A choice of a form.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) name: String,
    pub(super) is_chosen: bool,
}

/// The choices of a field, as its values and their names.
pub(super) fn choices<V: Into<String>, N: Into<String>>(
    chosen: Option<&String>,
    all: impl IntoIterator<Item = (V, N)>,
) -> Vec<Choice> {
    let choice = |(value, name): (V, N)| {
        let value = value.into();
        Choice { is_chosen: given(chosen) == Some(&value), name: name.into(), value }
    };
    all.into_iter().map(choice).collect()
}

/// The choices of a parameter, with their names.
pub(super) fn choices_of<T: Labelled, N: Into<String>>(chosen: Option<OneOf<T>>, name: impl Fn(T) -> N) -> Vec<Choice> {
    let choice = |value: T| Choice {
        value: value.label().to_owned(),
        name: name(value).into(),
        is_chosen: chosen == Some(OneOf(value)),
    };
    T::all().into_iter().map(choice).collect()
}

/// An age band in words.
pub(super) fn age_in_words(AgeBand(band): AgeBand) -> String {
    const ENDS: [&str; 5] = ["1 min", "10 min", "1 h", "6 h", "1 day"];
    match (band.checked_sub(1).and_then(|from| ENDS.get(from)), ENDS.get(band)) {
        (None, Some(to)) => format!("up to {to}"),
        (Some(from), Some(to)) => format!("{from} to {to}"),
        (Some(from), None) => format!("more than {from}"),
        (None, None) => String::new(),
    }
}

/// A part of a list: how much there is, and the ways to the rest of it.
#[derive(Debug)]
pub(super) struct Shown {
    /// How many there are, in a sentence.
    pub(super) summary: String,
    /// Which of them are shown; empty where all are.
    pub(super) range: String,
    pub(super) pages: Pages,
    /// The same query of the API.
    pub(super) json: String,
    /// The whole list as CSV.
    pub(super) csv: String,
    /// The list without any filter; empty where none holds.
    pub(super) clear: String,
}

/// The request for a list, and the words for its items.
pub(super) struct ListRequest<'a> {
    /// Where the page is, from the root, and where the list is below the API.
    pub(super) name: &'a str,
    /// One of it, and many.
    pub(super) words: [&'a str; 2],
    /// What was requested, but for the cursor.
    pub(super) pairs: Pairs,
    /// The same but for the size of the page.
    pub(super) whole: Pairs,
    pub(super) is_filtered: bool,
}

impl<'a> ListRequest<'a> {
    pub(super) fn new(name: &'a str, words: [&'a str; 2], (filter, page): &(impl Parameters, PageQuery)) -> Self {
        let whole = [filter.filters(), filter.order()].concat();
        let pairs = [whole.clone(), page.size().pairs()].concat();
        Self { name, words, pairs, whole, is_filtered: filter.is_filtered() }
    }
}

impl Shown {
    pub(super) fn new(of: ListRequest<'_>, root: &str, [total, before, here]: [u64; 3], next: Option<&str>) -> Self {
        let ListRequest { name, words: [one, many], pairs, whole, is_filtered } = of;
        let summary = match (total, is_filtered) {
            (0, false) => format!("There are no {many}."),
            (0, true) => format!("No {one} matches."),
            (1, true) => format!("1 {one} matches."),
            (total, true) => format!("{} {many} match.", Count(total)),
            (total, false) => format!("{}.", counted(total, one, many)),
        };
        let range = if here == total || here == 0 {
            String::new()
        } else {
            format!("{} to {} of them", Count(before + 1), Count(before + here))
        };
        let base = format!("{root}{name}");
        let mut pages = Pages::new(&base, &pairs, None, next);
        if before > 0 || (here == 0 && total > 0) {
            pages.first = address(&base, &pairs);
        }
        let json = address(&format!("{root}api/v1/{name}"), &pairs);
        let csv = address(&format!("{root}api/v1/{name}.csv"), &whole);
        Self { summary, range, pages, json, csv, clear: if is_filtered { base } else { String::new() } }
    }
}

/// An address with one parameter.
pub(super) fn with(base: &str, name: &str, value: &str) -> String {
    address(base, &[pair(name, value)])
}

/// The page of any node below the chroot.
pub(super) fn tree(root: &str, path: &str) -> String {
    let mut href = format!("{root}tree");
    for part in path.split('/').filter(|part| !part.is_empty()) {
        // A part that is a dot or two would be another path to a browser; none such is a znode's name.
        href.push('/');
        href.push_str(&segment(part));
    }
    href
}

/// A part of a path, as an address has it.
pub(super) fn segment(part: &str) -> String {
    let mut segment = String::new();
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => segment.push(byte.into()),
            other => {
                // Writing to a string does not fail.
                let _ = write!(segment, "%{other:02X}");
            }
        }
    }
    segment
}

/// A node, as pages name and link it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) href: String,
}

impl Node {
    /// The node itself, whatever it is.
    pub(super) fn of(path: &str, root: &str) -> Self {
        Self { name: brief(path, LONG), href: tree(root, path) }
    }

    /// The page of what a path is: a job's, a batch's, the jobs of a state, the held stores; of everything else the
    /// node.
    pub(super) fn item(path: &str, root: &str) -> Self {
        if let Some(OwnNode::StoreHold(store)) = Path::own(path).and_then(|path| path.own_node()) {
            return Self { name: brief(&store, LONG), href: format!("{root}locks#stores") };
        }
        match Path::parse(path) {
            Path::Job(job) | Path::JobNode(job, _) => Self { name: job.to_string(), href: format!("{root}jobs/{job}") },
            Path::Batch(batch) | Path::BatchNode(batch, _) => {
                Self { name: batch.to_string(), href: format!("{root}batches/{batch}") }
            }
            Path::StateFolder(folder) if let Some(state) = folder.state() => {
                Self { name: state.name().to_owned(), href: with(&format!("{root}jobs"), "state", state.label()) }
            }
            _ => Self::of(path, root),
        }
    }
}

#[cfg(test)]
mod tests {
    use utoipa::IntoParams;

    use super::*;
    use crate::views::access::AccessFilter;
    use crate::views::audit::AuditFilter;
    use crate::views::batches::BatchFilter;
    use crate::views::jobs::JobFilter;
    use crate::views::locks::LockFilter;

    #[test]
    fn the_form_of_a_list_has_a_field_for_each_of_its_filters() {
        fn names<F: IntoParams>() -> Vec<String> {
            F::into_params(|| None).into_iter().map(|parameter| parameter.name).collect()
        }
        for (form, filters) in [
            (include_str!("../../../templates/jobs.html"), names::<JobFilter>()),
            (include_str!("../../../templates/batches.html"), names::<BatchFilter>()),
            (include_str!("../../../templates/access.html"), names::<AccessFilter>()),
            (include_str!("../../../templates/locks.html"), names::<LockFilter>()),
            (include_str!("../../../templates/audit.html"), names::<AuditFilter>()),
        ] {
            assert!(!filters.is_empty());
            for filter in &filters {
                assert!(form.contains(&format!("name=\"{filter}\"")), "no field for {filter}:\n{form}");
            }
        }
    }

    #[test]
    fn a_node_is_linked_as_what_it_is_and_any_name_stays_one_part_of_its_path() {
        for (path, name, href) in [
            ("/jobs/jid0000000042/lock", "jid0000000042", "../jobs/jid0000000042"),
            ("/batches/bid0000000007", "bid0000000007", "../batches/bid0000000007"),
            ("/jobs/states/failed", "Failed", "../jobs?state=failed"),
            ("/locks/storage/a b?c#é<", "/locks/storage/a b?c#é<", "../tree/locks/storage/a%20b%3Fc%23%C3%A9%3C"),
            ("/", "/", "../tree"),
        ] {
            let node = Node::item(path, "../");
            assert_eq!((&*node.name, &*node.href), (name, href));
        }
    }

    #[test]
    fn what_is_shown_of_a_list_is_reported() {
        let of = |is_filtered| ListRequest {
            name: "locks",
            words: ["lock", "locks"],
            pairs: vec![pair("kind", "job"), pair("limit", "2")],
            whole: vec![pair("kind", "job")],
            is_filtered,
        };
        for (is_filtered, counts, summary, shown) in [
            (false, [0, 0, 0], "There are no locks.", ""),
            (true, [0, 0, 0], "No lock matches.", ""),
            (true, [1, 0, 1], "1 lock matches.", ""),
            (false, [1234, 100, 50], "1,234 locks.", "101 to 150 of them"),
        ] {
            let list = Shown::new(of(is_filtered), "./", counts, None);
            assert_eq!((&*list.summary, &*list.range), (summary, shown));
        }
        let list = Shown::new(of(false), "./", [3, 2, 1], None);
        assert_eq!(list.pages.first, "./locks?kind=job&limit=2");
        assert_eq!(list.json, "./api/v1/locks?kind=job&limit=2");
        assert_eq!(list.csv, "./api/v1/locks.csv?kind=job");
        assert!(!list.pages.are_none());
        let words: Vec<_> = AgeBand::all().into_iter().map(age_in_words).collect();
        assert_eq!(words[0], "up to 1 min");
        assert_eq!(words[5], "more than 1 day");
    }
}

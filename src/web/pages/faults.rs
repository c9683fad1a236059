//! What is broken in the tree.

use askama::Template;
use jiff::Timestamp;

use super::buttons::{Button, Buttons};
use super::frame::{Frame, Section};
use super::listing::{ListRequest, Node, Shown, Sorting, if_walked, sortings, with};
use crate::actions::Role;
use crate::mirror::lists::FaultOrder;
use crate::views::PageQuery;
use crate::views::faults::{FaultFilter, FaultItem, FaultList};
use crate::views::query::Parameters as _;
use crate::views::show::{Count, Moment, counted};
use crate::web::http::problem::Problem;
use crate::web::http::query::address;
use crate::web::state::State;
use queuekeeper_queue::fault::Fault as Kind;

/// The faults, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "faults.html")]
pub(super) struct FaultsPage {
    frame: Frame,
    /// The kind that is shown; empty for all of them.
    only: &'static str,
    /// `None` before the first walk.
    list: Option<FaultTable>,
}

#[derive(Debug)]
struct FaultTable {
    shown: Shown,
    /// The kinds that something shows.
    found: Vec<FaultKindRow>,
    /// Those that are looked for and that nothing shows.
    clean: Vec<FaultKindRow>,
    /// The orders that the faults can be in; empty for one fault.
    sortings: Vec<Sorting>,
    groups: Vec<Group>,
    /// How many znodes cannot be read; empty for none, and where one kind of fault is shown.
    unreadable: String,
    /// Of these, the ones that are named.
    paths: Vec<Node>,
    /// Whether there are more than these.
    has_more_paths: bool,
}

/// A kind of fault.
#[derive(Debug)]
struct FaultKindRow {
    label: &'static str,
    title: &'static str,
    effect: &'static str,
    count: String,
    since: Option<Moment>,
    href: String,
    is_current: bool,
}

/// The faults of a kind that are on the page.
#[derive(Debug)]
struct Group {
    title: &'static str,
    faults: Vec<Fault>,
}

/// A fault as pages show it.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) item: Node,
    pub(super) since: Moment,
    pub(super) how: &'static str,
    pub(super) effect: &'static str,
    pub(super) fix: &'static str,
    pub(super) nodes: Vec<Node>,
    /// Repairs it, where the reader may.
    pub(super) repair: Option<Button>,
    /// Purges the item that shows it, where it may be one that nothing else helps and the reader may.
    pub(super) purge: Option<Button>,
}

/// A fault as pages show it.
pub(super) fn fault(found: &FaultItem, buttons: Buttons<'_>, now: Timestamp) -> Fault {
    let (kind, root) = (Kind::from_label(found.fault), buttons.root);
    Fault {
        repair: kind.and_then(|kind| buttons.fault(kind, &found.item)),
        purge: kind.and_then(|kind| buttons.purge_of(kind, &found.item)),
        item: Node::item(&found.item, root),
        since: Moment::new(found.since, now),
        how: found.how,
        effect: found.effect,
        fix: found.fix,
        nodes: found.nodes.iter().map(|path| Node::of(path, root)).collect(),
    }
}

impl FaultsPage {
    pub(super) fn new(
        state: &State,
        list_query: &(FaultFilter, PageQuery),
        role: Role,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let (filter, page) = list_query;
        let view = state.view(now);
        let frame = Frame::new(&view, "./".to_owned(), Section::Faults);
        let list = if_walked(state.source().faults(filter, page, now))?;
        let only = filter.fault.map_or("", |fault| fault.0.title());
        let list = list.map(|list| FaultTable::new(&list, list_query, Buttons::new(&frame.root, role), now));
        Ok(Self { frame, only, list })
    }
}

fn sort_in_words(order: FaultOrder) -> &'static str {
    match order {
        FaultOrder::Kind => "kind",
        FaultOrder::Oldest => "oldest",
        FaultOrder::Newest => "newest",
    }
}

impl FaultTable {
    fn new(list: &FaultList, list_query: &(FaultFilter, PageQuery), buttons: Buttons<'_>, now: Timestamp) -> Self {
        let root = buttons.root;
        let counts = [list.total, list.before, list.items.len() as u64];
        let of = ListRequest::new("faults", ["fault", "faults"], list_query);
        let lines = list.kinds.iter().map(|kind| FaultKindRow {
            label: kind.fault,
            title: kind.title,
            effect: kind.effect,
            count: Count(kind.count).to_string(),
            since: kind.since.map(|since| Moment::new(since, now)),
            href: with(&format!("{root}faults"), "fault", kind.fault),
            is_current: list_query.0.fault.is_some_and(|fault| fault.label() == kind.fault),
        });
        let (found, clean) = lines.partition(|line| line.count != "0");
        let href = |sort| {
            let other = FaultFilter { sort, ..list_query.0.clone() };
            address(&format!("{root}faults"), &[other.pairs(), list_query.1.size().pairs()].concat())
        };
        let mut groups: Vec<Group> = Vec::new();
        for item in &list.items {
            let title = Kind::from_label(item.fault).map_or(item.fault, Kind::title);
            let fault = fault(item, buttons, now);
            match groups.last_mut() {
                Some(group) if group.title == title => group.faults.push(fault),
                Some(_) | None => groups.push(Group { title, faults: vec![fault] }),
            }
        }
        let (unreadable, paths) = match list.unreadable_znodes {
            0 => (String::new(), Vec::new()),
            _ if list_query.0.fault.is_some() => (String::new(), Vec::new()),
            znodes => {
                let paths = list.unreadable.iter().map(|path| Node::of(path, root)).collect();
                (format!("{} cannot be read", counted(znodes, "znode", "znodes")), paths)
            }
        };
        Self {
            shown: Shown::new(of, root, counts, list.next.as_deref()),
            sortings: if list.total > 1 { sortings(list_query.0.sort, sort_in_words, href) } else { Vec::new() },
            found,
            clean,
            groups,
            has_more_paths: (paths.len() as u64) < list.unreadable_znodes,
            unreadable,
            paths,
        }
    }
}

//! Who holds what.

use askama::Template;
use jiff::Timestamp;

use super::buttons::{Button, Buttons};
use super::frame::{Frame, Section};
use super::jobs::form::collections;
use super::listing::{Choice, ColumnHead, ListRequest, Node, SHORT, Shown, age_in_words, choices_of, if_walked, with};
use super::progress::Ages;
use crate::actions::{ActionKind, Role, Target};
use crate::mirror::lists::LockOrder;
use crate::mirror::{LockKind, Summary};
use crate::views::PageQuery;
use crate::views::held::HeldStore;
use crate::views::locks::{LockFilter, LockItem, LockList, SessionItem};
use crate::views::parameter::{Holder, OneOf};
use crate::views::query::Parameters as _;
use crate::views::show::{Count, Moment, brief, counted, requested};
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair, query_of};
use crate::web::state::State;
use queuekeeper_queue::path::{JobNode, LockFolder, Path, QueueName};

/// The locks, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "locks.html")]
pub(super) struct LocksPage {
    frame: Frame,
    filter: LockFilter,
    page: PageQuery,
    kinds: Vec<Choice>,
    ages: Vec<Choice>,
    sorts: Vec<Choice>,
    /// Whether a filter is set: all of them are folded away.
    is_open: bool,
    figures: Vec<LockKindRow>,
    /// Pauses what is not paused, where the reader may.
    pauses: Vec<Button>,
    /// Whether the reader may hold a collection.
    may_hold: bool,
    collections: Vec<String>,
    stores: Vec<StoreRow>,
    /// `None` before the first walk.
    list: Option<LockTable>,
}

/// A store that is held.
#[derive(Debug)]
struct StoreRow {
    store: String,
    since: Option<Moment>,
    /// Who holds it, and why; empty where that is not recorded.
    requested: String,
    button: Option<Button>,
}

/// The locks of a kind.
#[derive(Debug)]
struct LockKindRow {
    name: &'static str,
    description: &'static str,
    count: String,
    is_empty: bool,
    oldest: Option<Moment>,
    bar: Ages,
    href: String,
}

#[derive(Debug)]
struct LockTable {
    shown: Shown,
    heads: Vec<ColumnHead>,
    rows: Vec<LockRow>,
    sessions: Vec<Session>,
    more_sessions: String,
}

/// A session that holds locks.
#[derive(Debug)]
struct Session {
    /// Empty for the persistent locks.
    id: String,
    /// From where it is connected; empty if unknown.
    address: String,
    locks: String,
    jobs: String,
    href: String,
    is_own: bool,
}

/// A lock as the list shows it.
#[derive(Debug)]
struct LockRow {
    kind: &'static str,
    guards: String,
    /// Where what it guards is; empty where nothing leads there.
    href: String,
    since: Option<Moment>,
    /// Empty for a persistent lock.
    session: String,
    session_href: String,
    /// From where the session is connected; empty if unknown.
    address: String,
    /// What is shown in the place of a session.
    instead: &'static str,
    /// Who paused the queue or holds the collection, and why; empty where that is not recorded.
    requested: String,
    node: Node,
    button: Option<Button>,
    /// What finds the held jobs of a held collection; empty for every other lock.
    held: String,
}

impl LocksPage {
    pub(super) fn new(
        state: &State,
        list_query: (LockFilter, PageQuery),
        role: Role,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let (filter, page) = &list_query;
        let view = state.view(now);
        let frame = Frame::new(&view, "./".to_owned(), Section::Locks);
        let list = if_walked(state.source().locks(filter, page, now))?;
        let own = view.freshness.session.clone().unwrap_or_default();
        let list = list.map(|list| LockTable::new(&list, &list_query, &own, Buttons::new(&frame.root, role), now));
        let line = |kind| view.summary.as_ref().map(|summary| LockKindRow::new(summary, kind, &frame.root, now));
        Ok(Self {
            kinds: choices_of(filter.kind, LockKind::title),
            ages: choices_of(filter.age, age_in_words),
            sorts: choices_of(Some(filter.sort), sort_in_words),
            is_open: filter.is_filtered(),
            figures: LockKind::ALL.into_iter().filter_map(line).collect(),
            pauses: if role >= Role::Operator {
                pauses(view.summary.as_ref(), Buttons::new(&frame.root, role))
            } else {
                Vec::new()
            },
            stores: state
                .source()
                .held_stores()
                .iter()
                .map(|held| StoreRow::new(held, &frame.root, role, now))
                .collect(),
            may_hold: role >= Role::Operator,
            collections: if role >= Role::Operator { collections(state) } else { Vec::new() },
            list,
            filter: list_query.0,
            page: list_query.1,
            frame,
        })
    }
}

/// What pauses the queues that are not paused.
fn pauses(summary: Option<&Summary>, buttons: Buttons<'_>) -> Vec<Button> {
    let open = [QueueName::Ingest, QueueName::AccessSmall, QueueName::AccessLarge].into_iter();
    let open = open.filter(|queue| summary.is_none_or(|summary| summary.paused(*queue).is_none()));
    let named = |queue| {
        let text = match queue {
            QueueName::Ingest => "Pause the ingest queue",
            QueueName::AccessSmall => "Pause the small access queue",
            QueueName::AccessLarge => "Pause the large access queue",
        };
        Some(Button { text, ..buttons.on(ActionKind::Pause, &Target::Queue(queue))? })
    };
    open.filter_map(named).collect()
}

impl StoreRow {
    fn new(held: &HeldStore, root: &str, role: Role, now: Timestamp) -> Self {
        let target = held.store.parse().ok().map(Target::Store);
        Self {
            store: brief(&held.store, SHORT),
            since: held.since.map(|since| Moment::new(since, now)),
            requested: requested(&held.by, &held.reason),
            button: target.and_then(|target| Buttons::new(root, role).on(ActionKind::Release, &target)),
        }
    }
}

fn sort_in_words(order: LockOrder) -> &'static str {
    match order {
        LockOrder::Oldest => "oldest first",
        LockOrder::Newest => "newest first",
        LockOrder::Guards => "by kind and name",
        LockOrder::Session => "by session",
    }
}

fn heads((filter, page): &(LockFilter, PageQuery), root: &str) -> Vec<ColumnHead> {
    let href = |sort| {
        let other = LockFilter { sort: OneOf(sort), ..filter.clone() };
        address(&format!("{root}locks"), &[other.pairs(), page.size().pairs()].concat())
    };
    // The column shows how long, not since when.
    let orders = [(LockOrder::Oldest, false), (LockOrder::Newest, true)];
    vec![
        ColumnHead::by(("Guards", ""), &[(LockOrder::Guards, true)], filter.sort.0, href),
        ColumnHead::by(("Age", "num"), &orders, filter.sort.0, href),
        ColumnHead::by(("Session", ""), &[(LockOrder::Session, true)], filter.sort.0, href),
        ColumnHead::plain("Znode", ""),
    ]
}

fn description(kind: LockKind) -> &'static str {
    match kind {
        LockKind::Job => "a daemon works on the job",
        LockKind::Batch => "a daemon creates its jobs, or its report",
        LockKind::Access => "a daemon assembles the object",
        LockKind::Storage => "no other version of the object is stored at the same time",
        LockKind::Inventory => "no other version of the object is recorded at the same time",
        LockKind::LocalId => "no other ARK is minted for it at the same time",
        LockKind::Queue => "its daemons take no items, except the inventory daemon",
        LockKind::Collection => "held: its pending batches and jobs become Held",
    }
}

impl LockKindRow {
    fn new(summary: &Summary, kind: LockKind, root: &str, now: Timestamp) -> Self {
        let figures = summary.locks(kind);
        Self {
            name: kind.title(),
            description: description(kind),
            count: Count(figures.count).to_string(),
            is_empty: figures.count == 0,
            oldest: figures.oldest.map(|oldest| Moment::new(oldest, now)),
            bar: Ages::new(&figures.by_age),
            href: with(&format!("{root}locks"), "kind", kind.label()),
        }
    }
}

impl LockTable {
    fn new(
        list: &LockList,
        list_query: &(LockFilter, PageQuery),
        own: &str,
        buttons: Buttons<'_>,
        now: Timestamp,
    ) -> Self {
        let root = buttons.root;
        let of = ListRequest::new("locks", ["lock", "locks"], list_query);
        let counts = [list.total, list.before, list.items.len() as u64];
        let holder = |session: &SessionItem| {
            let id = session.session.clone().unwrap_or_default();
            let href = with(&format!("{root}locks"), "session", if id.is_empty() { Holder::PERSISTENT } else { &id });
            let jobs = if session.jobs > 0 { Count(session.jobs).to_string() } else { String::new() };
            let address = session.address.clone().unwrap_or_default();
            let is_own = id == own && !id.is_empty();
            Session { locks: Count(session.locks).to_string(), jobs, href, is_own, address, id }
        };
        let more = list.session_count.saturating_sub(list.sessions.len()) as u64;
        Self {
            shown: Shown::new(of, root, counts, list.next.as_deref()),
            heads: heads(list_query, root),
            rows: list.items.iter().map(|item| LockRow::new(item, buttons, now)).collect(),
            sessions: list.sessions.iter().map(holder).collect(),
            more_sessions: if more > 0 { counted(more, "session", "sessions") } else { String::new() },
        }
    }
}

impl LockRow {
    fn new(item: &LockItem, buttons: Buttons<'_>, now: Timestamp) -> Self {
        let root = buttons.root;
        let kind = LockKind::ALL.into_iter().find(|kind| kind.label() == item.kind);
        let session = item.session.clone().unwrap_or_default();
        let path = Path::parse(&item.path);
        Self {
            kind: kind.map_or(item.kind, LockKind::title),
            guards: match &path {
                Path::QueueLock(queue) => format!("the {} queue", queue.in_words()),
                _ => brief(&item.guards, SHORT),
            },
            href: guarded(&path, root),
            since: item.created.map(|created| Moment::new(created, now)),
            session_href: with(&format!("{root}locks"), "session", &session),
            session,
            address: item.address.clone().unwrap_or_default(),
            instead: match item.persistent {
                Some(true) => "persistent",
                Some(false) => "",
                None => "not readable",
            },
            requested: requested(item.by.as_deref().unwrap_or_default(), item.reason.as_deref().unwrap_or_default()),
            node: Node::of(&item.path, root),
            button: buttons.lock(&path, item.czxid),
            held: match &path {
                Path::NamedLock(LockFolder::Collections, mnemonic) if buttons.may(Role::Operator) => {
                    query_of(&[pair("state", "held"), pair("collection", &**mnemonic)])
                }
                _ => String::new(),
            },
        }
    }
}

/// Where what a lock guards is; empty where nothing leads there.
fn guarded(lock: &Path, root: &str) -> String {
    match lock {
        Path::JobNode(job, JobNode::Lock) => format!("{root}jobs/{job}"),
        Path::BatchNode(batch, _) => format!("{root}batches/{batch}"),
        Path::RequestNode(queue, request, _) => {
            address(&format!("{root}access"), &[pair("queue", queue.name()), pair("text", request.to_string())])
        }
        // A lock's name has lost the identifier's slashes; its last part is the same in both.
        Path::NamedLock(LockFolder::Storage | LockFolder::Inventory, name) => name
            .rsplit('_')
            .next()
            .filter(|part| part.len() > 2)
            .map(|part| with(&format!("{root}jobs"), "text", part))
            .unwrap_or_default(),
        Path::NamedLock(LockFolder::Collections, mnemonic) => with(&format!("{root}jobs"), "collection", mnemonic),
        Path::QueueLock(QueueName::Ingest) => format!("{root}jobs"),
        Path::QueueLock(QueueName::AccessSmall) => with(&format!("{root}access"), "queue", "small"),
        Path::QueueLock(QueueName::AccessLarge) => with(&format!("{root}access"), "queue", "large"),
        _ => String::new(),
    }
}

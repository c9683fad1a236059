//! The tree as it is: any znode below the chroot.

use askama::Template;
use axum::extract::{Path, State as FromState};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;

use super::action::with_status;
use super::frame::{Frame, Section, root_from};
use super::{View, render};
use crate::mirror::{Children, Node};
use crate::views::Session;
use crate::views::show::{Count, Moment, Shown, Size, shown, visible};
use crate::web::api::tree::{TreeQuery, read};
use crate::web::http::accept::wants_page;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::links;
use crate::web::state::State;
use queuekeeper_queue::path::{NodePath, Path as Znode};

/// How much of the page the data may take, in bytes.
const DATA_ROOM: usize = 40 << 10;

/// How much of it the names of children may take; a znode's name may be nearly as long as a request.
const NAMES_ROOM: usize = 30 << 10;

/// `GET /tree`: the root of the tree, which is the chroot.
pub(super) async fn root(state: FromState<State>, uri: Uri, headers: HeaderMap, which: Params<TreeQuery>) -> Response {
    tree(state, Path(String::new()), uri, headers, which).await
}

/// `GET /tree/{path}`: what is really there?
///
/// `uri` is the address below the route prefix: the way up to the root ends there, and not at the server's root.
pub(super) async fn tree(
    FromState(state): FromState<State>,
    Path(path): Path<String>,
    uri: Uri,
    headers: HeaderMap,
    Params(which): Params<TreeQuery>,
) -> Response {
    match read(&state, &path, &which).await {
        Ok((node, children)) => {
            let page = Page::new(&state.view(Timestamp::now()), root_from(uri.path()), &node, &children, &which);
            render(StatusCode::OK, &page)
        }
        // The header and the banner show since when ZooKeeper cannot be read.
        Err(problem) if problem.status() == StatusCode::SERVICE_UNAVAILABLE && wants_page(&headers) => {
            let frame = Frame::new(&state.view(Timestamp::now()), root_from(uri.path()), Section::Tree);
            with_status(problem.status(), &Unread { frame, problem: &problem })
        }
        Err(problem) => problem.into_response(),
    }
}

/// What is shown in the place of a znode that cannot be read now.
#[derive(Debug, Template)]
#[template(path = "tree_unread.html")]
struct Unread<'a> {
    frame: Frame,
    problem: &'a Problem,
}

#[derive(Debug, Template)]
#[template(path = "tree.html")]
struct Page {
    frame: Frame,
    /// The last name of the path.
    name: String,
    crumbs: Vec<Link>,
    /// A page that says more of what the znode belongs to.
    better: Option<Link>,
    data: Shown,
    size: Size,
    stat: Vec<Fact>,
    children: Vec<Link>,
    /// Which of the children these are, in words.
    range: String,
    first: Option<String>,
    next: Option<String>,
}

#[derive(Debug)]
struct Link {
    text: String,
    href: String,
}

#[derive(Debug)]
struct Fact {
    name: &'static str,
    value: String,
    moment: Option<Moment>,
}

impl Page {
    fn new(view: &View, root: String, node: &Node, children: &Children, which: &TreeQuery) -> Self {
        let path = &node.path;
        let mut known = None;
        let mut crumbs = vec![Link { text: "/".to_owned(), href: "tree".to_owned() }];
        let mut at = NodePath::root();
        for name in path.names() {
            at = at.child(name).unwrap_or(at);
            // An unexpected znode below a job or batch also belongs to it.
            known = better(&at.known()).or(known);
            crumbs.push(Link { text: cut(name), href: links::tree(&at) });
        }
        let name = path.names().last().map_or_else(|| "/".to_owned(), cut);
        let mut limiter = NAMES_ROOM;
        let mut shown_children = Vec::new();
        for name in &children.names {
            let Ok(child) = path.child(name) else { continue };
            let link = Link { text: cut(name), href: links::tree(&child) };
            let taken = link.text.len() + link.href.len();
            // At least one has to be shown, or the next page could never be reached.
            if taken > limiter && !shown_children.is_empty() {
                break;
            }
            limiter = limiter.saturating_sub(taken);
            shown_children.push((name, link));
        }
        let (first, last) = (children.before + 1, children.before + shown_children.len());
        let query = |after: Option<&str>| {
            let limit = (!which.limit.is_usual()).then(|| format!("limit={}", which.limit));
            let after = after.map(|after| format!("after={}", links::segment(after)));
            let query: Vec<_> = limit.into_iter().chain(after).collect();
            let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
            format!("{}{query}", links::tree(path))
        };
        let next = shown_children.last().filter(|_| last < children.total).map(|(name, _)| query(Some(name)));
        let range = match (children.total, shown_children.len()) {
            (0, _) => String::new(),
            (total, 0) => Count(total as u64).to_string(),
            (total, shown) if shown == total => Count(total as u64).to_string(),
            (total, _) => format!("{} to {} of {}", Count(first as u64), Count(last as u64), Count(total as u64)),
        };
        Self {
            frame: Frame::new(view, root, Section::Tree),
            name,
            crumbs,
            better: known,
            data: shown(&node.data, node.stat.data_length, DATA_ROOM),
            size: Size::new(node.stat.data_length),
            stat: stat(node, view.now),
            children: shown_children.into_iter().map(|(_, link)| link).collect(),
            range,
            first: (children.before > 0).then(|| query(None)),
            next,
        }
    }
}

/// The page of the job or batch that a znode belongs to.
fn better(path: &Znode) -> Option<Link> {
    match path {
        Znode::Job(job) | Znode::JobNode(job, _) | Znode::Reference(_, _, job) => {
            Some(Link { text: format!("job {job}"), href: format!("jobs/{job}") })
        }
        Znode::Entry(_, entry) => {
            Some(Link { text: format!("job {}", entry.job), href: format!("jobs/{}", entry.job) })
        }
        Znode::Batch(batch) | Znode::BatchNode(batch, _) | Znode::BatchOutcome(batch, _) => {
            Some(Link { text: format!("batch {batch}"), href: format!("batches/{batch}") })
        }
        Znode::Root
        | Znode::BatchUuids
        | Znode::BatchUuid(_)
        | Znode::Batches
        | Znode::Jobs
        | Znode::JobStates
        | Znode::StateFolder(_)
        | Znode::Access
        | Znode::AccessQueue(_)
        | Znode::Request(..)
        | Znode::RequestNode(..)
        | Znode::Locks
        | Znode::QueueLocks
        | Znode::QueueLock(_)
        | Znode::LockFolder(_)
        | Znode::NamedLock(..)
        | Znode::PublishedLocalIds
        | Znode::PublishedLocalId(_)
        | Znode::Foreign
        | Znode::Own(_)
        | Znode::Unexpected(_) => None,
    }
}

/// A name as far as there is room for it.
fn cut(name: &str) -> String {
    const MOST: usize = 200;
    let mut text = visible(&name.chars().take(MOST).collect::<String>());
    if name.chars().nth(MOST).is_some() {
        text.push('…');
    }
    text
}

fn stat(node: &Node, now: Timestamp) -> Vec<Fact> {
    let stat = &node.stat;
    let fact = |name, value: String| Fact { name, value, moment: None };
    // The few znodes that ZooKeeper makes by itself say that they are from 1970.
    let moment = |name, at, zxid| match zxid {
        0 => fact(name, "by ZooKeeper".to_owned()),
        _ => Fact { name, value: String::new(), moment: Some(Moment::new(at, now)) },
    };
    let owner = Session::of(stat.ephemeral_owner);
    vec![
        moment("Created", stat.created, stat.czxid),
        moment("Data written", stat.modified, stat.mzxid),
        fact("Data version", stat.version.to_string()),
        fact("Children version", stat.cversion.to_string()),
        fact("ACL version", stat.aversion.to_string()),
        fact("Kind", owner.map_or_else(|| "persistent".to_owned(), |owner| format!("ephemeral, session {owner}"))),
        fact("Children", Count(stat.children).to_string()),
        fact("czxid", format!("0x{:x}", stat.czxid)),
        fact("mzxid", format!("0x{:x}", stat.mzxid)),
        fact("pzxid", format!("0x{:x}", stat.pzxid)),
    ]
}

//! Locks: how many of each kind, who holds them, and a list of them.

use clap::Args;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::error::ViewError;
use super::held::HeldStore;
use super::page::PageQuery;
use super::parameter::{AgeBand, Holder, OneOf, Text};
use super::{ViewSource, session_text};
use crate::mirror::lists::{self, ListedLock, LockOrder, Page, SessionLocks};
use crate::mirror::{AGE_LABELS, LockKind, Summary};
use queuekeeper_queue::path::Path;

/// How many sessions are listed.
const SESSIONS: usize = 20;

// The derived parameter descriptions resolve aliases, but not type arguments.
type OneLockKind = OneOf<LockKind>;
type Age = OneOf<AgeBand>;
type Sort = OneOf<LockOrder>;

/// Which locks, and in which order; all filters must match.
#[derive(Clone, Debug, Default, Deserialize, Serialize, Args, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
#[command(next_help_heading = "Which locks")]
pub(crate) struct LockFilter {
    /// Of this kind.
    #[arg(long, value_name = "KIND")]
    #[param(inline)]
    pub(crate) kind: Option<OneLockKind>,

    /// Of this age: a band, named by its end.
    #[arg(long, value_name = "AGE")]
    #[param(inline)]
    pub(crate) age: Option<Age>,

    /// Held by this session, as 0x100005a3c2e0001; `none` for persistent locks, which no session holds.
    #[arg(long, value_name = "SESSION")]
    #[param(value_type = Option<String>, pattern = "^(none|0x[0-9a-f]{1,16})?$", example = "0x100005a3c2e0001")]
    pub(crate) session: Option<Text<Holder>>,

    /// The sort order: `oldest` or `newest` first, by what they protect, or by session; locks that are not readable
    /// come last.
    #[arg(long, value_name = "ORDER", default_value_t)]
    #[param(inline)]
    pub(crate) sort: Sort,
}

impl ViewSource<'_> {
    /// A page of the locks that match.
    ///
    /// # Errors
    /// For a cursor of another list.
    pub(crate) fn locks(&self, filter: &LockFilter, page: &PageQuery, now: Timestamp) -> Result<LockList, ViewError> {
        let LockFilter { kind, age, session, sort } = filter;
        let wanted = lists::LockQuery {
            kind: kind.map(|kind| kind.0),
            age: age.map(|age| age.0.0),
            session: session.map(|session| session.0.0),
            order: sort.0,
        };
        let found = self.store.lock_list(wanted, &page.part()?, now)?;
        let sessions = self.store.sessions(SESSIONS).ok_or(ViewError::NoMirror)?;
        let list = LockList::new(&self.summary(now)?, sessions, found, |session| self.address(session));
        Ok(LockList { held_stores: self.held_stores(), ..list })
    }
}

/// A lock.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct LockItem {
    /// Its kind.
    #[schema(example = "job")]
    pub(crate) kind: &'static str,
    /// The path of the lock.
    #[schema(example = "/jobs/jid0000000042/lock")]
    pub(crate) path: String,
    /// What it protects: the id of a job, batch or request, the encoded name of an object or local id, a queue's
    /// name, a collection's mnemonic.
    #[schema(example = "jid0000000042")]
    pub(crate) guards: String,
    /// The session that holds it, in the notation of ZooKeeper's log. Null for a persistent lock, which
    /// belongs to no session, and for one that is not readable with these credentials.
    pub(crate) session: Option<String>,
    /// From where the session is connected; null if unknown (see `--mirror.session-addresses`).
    #[schema(example = "10.0.0.5:40834 (worker1.example.org)")]
    pub(crate) address: Option<String>,
    /// Whether it is persistent; null if it is not readable.
    pub(crate) persistent: Option<bool>,
    /// When it was created; null if it is not readable.
    pub(crate) created: Option<Timestamp>,
    /// Who paused the queue or holds the collection; empty if that is not recorded, null for a lock on anything else.
    #[schema(example = "anna")]
    pub(crate) by: Option<String>,
    /// The reason for the pause or the hold; empty if that is not recorded, null for a lock on anything else.
    pub(crate) reason: Option<String>,
    /// The transaction that created it, which identifies the lock in actions; null if it is not readable.
    pub(crate) czxid: Option<i64>,
}

/// The locks of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct LockKindItem {
    /// The kind.
    #[schema(example = "storage")]
    pub(crate) kind: &'static str,
    /// Locks held.
    pub(crate) count: u64,
    /// When the oldest was created.
    pub(crate) oldest: Option<Timestamp>,
    /// Locks by age; the bands are not cumulative.
    pub(crate) ages: Vec<AgeCount>,
}

/// Items of an age.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct AgeCount {
    /// The band, named by its end, as in the metrics.
    #[schema(example = "10m")]
    pub(crate) age: &'static str,
    /// How many.
    pub(crate) count: u64,
}

/// A session that holds locks.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct SessionItem {
    /// Its id, in the notation of ZooKeeper's log; null for persistent locks, which belong to no session.
    pub(crate) session: Option<String>,
    /// From where it is connected; null if unknown (see `--mirror.session-addresses`).
    #[schema(example = "10.0.0.5:40834 (worker1.example.org)")]
    pub(crate) address: Option<String>,
    /// All the locks that it holds.
    pub(crate) locks: u64,
    /// Of these, those on jobs.
    pub(crate) jobs: u64,
}

/// The locks: by kind, by session, and a page of them.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct LockList {
    /// Every kind of lock.
    pub(crate) kinds: Vec<LockKindItem>,
    /// The sessions that hold the most locks, twenty at most.
    pub(crate) sessions: Vec<SessionItem>,
    /// How many sessions hold locks.
    pub(crate) session_count: usize,
    /// The stores that are held: not by a lock, but by a znode of queuekeeper's own.
    pub(crate) held_stores: Vec<HeldStore>,
    /// How many locks match on all pages.
    pub(crate) total: u64,
    /// How many of them come before this page.
    pub(crate) before: u64,
    /// The cursor of the next page; null on the last one.
    pub(crate) next: Option<String>,
    /// The locks of this page.
    pub(crate) items: Vec<LockItem>,
}

impl LockItem {
    fn new(lock: &ListedLock, address: impl Fn(i64) -> Option<String>) -> Self {
        Self {
            kind: lock.kind.label(),
            path: lock.path.to_string(),
            guards: guarded(&lock.path),
            session: lock.stat.and_then(|stat| session_text(stat.session)),
            address: lock.stat.and_then(|stat| address(stat.session)),
            persistent: lock.stat.map(|stat| stat.session == 0),
            created: lock.created,
            by: lock.pause.as_ref().map(|pause| pause.who.to_string()),
            reason: lock.pause.as_ref().map(|pause| pause.why.to_string()),
            czxid: lock.stat.map(|stat| stat.czxid),
        }
    }
}

/// What a lock protects, from its name.
fn guarded(lock: &Path) -> String {
    match lock {
        Path::JobNode(job, _) => job.to_string(),
        Path::BatchNode(batch, _) => batch.to_string(),
        Path::RequestNode(_, request, _) => request.to_string(),
        Path::QueueLock(queue) => queue.name().to_owned(),
        Path::NamedLock(_, name) | Path::PublishedLocalId(name) => name.to_string(),
        other => other.to_string(),
    }
}

impl LockList {
    /// `address` gives from where a session is connected, where the servers report it.
    pub(crate) fn new(
        summary: &Summary,
        sessions: (Vec<SessionLocks>, usize),
        page: Page<ListedLock>,
        address: impl Fn(i64) -> Option<String>,
    ) -> Self {
        let kind = |kind: LockKind| {
            let figures = summary.locks(kind);
            let ages = AGE_LABELS.into_iter().zip(figures.by_age).map(|(age, count)| AgeCount { age, count });
            LockKindItem { kind: kind.label(), count: figures.count, oldest: figures.oldest, ages: ages.collect() }
        };
        let session = |of: SessionLocks| SessionItem {
            session: session_text(of.session),
            address: address(of.session),
            locks: of.locks,
            jobs: of.jobs,
        };
        let Page { items, total, before, next } = page;
        Self {
            kinds: LockKind::ALL.map(kind).into(),
            sessions: sessions.0.into_iter().map(session).collect(),
            session_count: sessions.1,
            held_stores: Vec::new(),
            total,
            before,
            next: next.map(|next| next.to_string()),
            items: items.iter().map(|lock| LockItem::new(lock, &address)).collect(),
        }
    }
}

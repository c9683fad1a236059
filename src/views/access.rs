//! Access requests in lists.

use clap::Args;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::error::ViewError;
use super::page::PageQuery;
use super::parameter::{AgeBand, OneOf, SearchFor};
use super::{ViewSource, session_text};
use crate::actions::access::MadeRequest;
use crate::mirror::lists::{Page, RequestOrder, RequestQuery};
use crate::mirror::{Request, state_label};
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::AccessState;

// The derived parameter descriptions resolve aliases, but not type arguments.
type Queue = OneOf<AccessQueue>;
type State = OneOf<Option<AccessState>>;
type Age = OneOf<AgeBand>;
type Sort = OneOf<RequestOrder>;

/// Which access requests, and in which order; all filters must match.
#[derive(Clone, Debug, Default, Deserialize, Serialize, Args, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
#[command(next_help_heading = "Which requests")]
pub(crate) struct AccessFilter {
    /// Of this queue.
    #[arg(value_name = "QUEUE", help_heading = None::<&str>)]
    #[param(inline)]
    pub(crate) queue: Option<Queue>,

    /// In this state; `other` for an unknown status.
    #[arg(long, value_name = "STATE")]
    #[param(inline)]
    pub(crate) state: Option<State>,

    /// In its state for this long: a band, named by its end.
    #[arg(long, value_name = "AGE")]
    #[param(inline)]
    pub(crate) age: Option<Age>,

    /// With this text in id or token, case-insensitive.
    #[arg(long, value_name = "TEXT")]
    #[param(inline)]
    pub(crate) text: Option<SearchFor>,

    /// The sort order; `waiting` lists unfinished ones first, the longest in their state on top.
    #[arg(long, value_name = "ORDER", default_value_t)]
    #[param(inline)]
    pub(crate) sort: Sort,
}

impl ViewSource<'_> {
    /// A page of the access requests that match.
    ///
    /// # Errors
    /// For a cursor of another list.
    pub(crate) fn access(
        &self,
        filter: &AccessFilter,
        page: &PageQuery,
        now: Timestamp,
    ) -> Result<AccessList, ViewError> {
        let AccessFilter { queue, state, age, text, sort } = filter;
        let wanted = RequestQuery {
            queue: queue.map(|queue| queue.0),
            state: state.map(|state| state.0),
            age: age.map(|age| age.0.0),
            text: text.as_ref().and_then(SearchFor::owned),
        };
        let found = self.store.request_list(&wanted, sort.0, &page.part()?, now)?;
        Ok(AccessList::new(found, |session| self.address(session), now))
    }
}

/// A request for the assembly of an object. Texts may hold anything and are cut to 512 bytes each.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct AccessItem {
    /// Its id, unique within its queue.
    #[schema(example = "qid0000000042")]
    pub(crate) id: String,
    /// Its queue: `small` or `large`.
    #[schema(example = "small")]
    pub(crate) queue: &'static str,
    /// Its state; `other` if its status is missing, unreadable or unknown.
    #[schema(example = "pending")]
    pub(crate) state: &'static str,
    /// The text of its status, if it is not a known state in the daemons' spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status_text: Option<String>,
    /// The version of its status, the precondition of actions; -1 if it has no status.
    pub(crate) status_version: i32,
    /// When it entered its state.
    pub(crate) entered: Option<Timestamp>,
    /// The daemons' message about the last step, or why the request waits.
    pub(crate) message: String,
    /// Whether it is locked.
    pub(crate) locked: bool,
    /// The session that holds its lock, in the notation of ZooKeeper's log; null for none, and for a persistent
    /// lock.
    pub(crate) session: Option<String>,
    /// From where the session is connected; null if unknown (see `--mirror.session-addresses`).
    #[schema(example = "10.0.0.5:40834 (worker1.example.org)")]
    pub(crate) address: Option<String>,
    /// The token that the requester polls with.
    pub(crate) token: String,
    /// The size of the requested object in bytes; 0 if unknown.
    pub(crate) requested_bytes: u64,
    /// The URL of the archive of a completed request; null for none, and once it has expired.
    #[schema(example = "https://queue.example.edu/access/download/1772820000/0f3a/7c1e.zip")]
    pub(crate) url: Option<String>,
    /// Until when it is there; null if that is not known.
    pub(crate) expires: Option<Timestamp>,
}

/// A page of access requests.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct AccessList {
    /// How many requests match on all pages.
    pub(crate) total: u64,
    /// How many of them come before this page.
    pub(crate) before: u64,
    /// The cursor of the next page; null on the last one.
    pub(crate) next: Option<String>,
    /// The requests of this page.
    pub(crate) items: Vec<AccessItem>,
}

/// An access request that was created.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct MadeAccess {
    /// Its queue: `small` or `large`.
    #[schema(example = "small")]
    pub(crate) queue: &'static str,
    /// Its id, unique within its queue.
    #[schema(example = "qid0000000042")]
    pub(crate) id: String,
    /// The token to find it by.
    pub(crate) token: String,
    /// The object.
    #[schema(example = "ark:/99999/fk4abc1234")]
    pub(crate) ark: String,
    /// The number of the version that it gets.
    pub(crate) version: u32,
    /// How many bytes the files have.
    pub(crate) requested_bytes: u64,
}

impl From<&MadeRequest> for MadeAccess {
    fn from(made: &MadeRequest) -> Self {
        let MadeRequest { archive, requested } = made;
        Self {
            queue: requested.queue.name(),
            id: requested.id.to_string(),
            token: archive.token.clone(),
            ark: archive.ark.to_string(),
            version: requested.version,
            requested_bytes: requested.bytes,
        }
    }
}

impl AccessItem {
    fn new(request: &Request, address: impl Fn(i64) -> Option<String>, now: Timestamp) -> Self {
        let is_there = request.state == Some(AccessState::Completed)
            && !request.url.is_empty()
            && request.expires.is_none_or(|expires| expires > now);
        Self {
            id: request.id.to_string(),
            queue: request.queue.name(),
            state: state_label(request.state),
            status_text: Some(request.status_text.to_string()).filter(|text| !text.is_empty()),
            status_version: request.status_version,
            entered: request.entered,
            message: request.message.to_string(),
            locked: request.lock.is_some(),
            session: request.lock.and_then(|lock| session_text(lock.session)),
            address: request.lock.and_then(|lock| address(lock.session)),
            token: request.token.to_string(),
            requested_bytes: request.requested_bytes,
            url: is_there.then(|| request.url.to_string()),
            expires: request.expires,
        }
    }
}

impl AccessList {
    /// `address` gives from where a session is connected, where the servers report it.
    fn new(page: Page<Request>, address: impl Fn(i64) -> Option<String>, now: Timestamp) -> Self {
        let Page { items, total, before, next } = page;
        let next = next.map(|next| next.to_string());
        let items = items.iter().map(|request| AccessItem::new(request, &address, now)).collect();
        Self { total, before, next, items }
    }
}

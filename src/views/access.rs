//! Access requests in lists.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::mirror::lists::Page;
use crate::mirror::{Request, state_label};
use crate::views::session_text;

/// A request for the assembly of an object. Texts are anything at all, cut to 512 bytes each.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct AccessItem {
    /// Its id, which is of its queue alone.
    #[schema(example = "qid0000000042")]
    pub(crate) id: String,
    /// Its queue: `small` or `large`.
    #[schema(example = "small")]
    pub(crate) queue: &'static str,
    /// Its state; `other` where its status is missing, unreadable, or one that nobody knows.
    #[schema(example = "pending")]
    pub(crate) state: &'static str,
    /// The status text, where it names no state that we know or is spelled as the daemons do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) odd_status: Option<String>,
    /// The version of its status, for actions: they are refused where it has changed. -1 where it has none.
    pub(crate) status_version: i32,
    /// When it entered its state.
    pub(crate) entered: Option<Timestamp>,
    /// What the daemons said of the last step.
    pub(crate) message: String,
    /// Whether it is locked.
    pub(crate) locked: bool,
    /// The session that holds its lock, as ZooKeeper's own log writes it; null for none.
    pub(crate) session: Option<String>,
    /// The token that the requester polls with.
    pub(crate) token: String,
    /// How many bytes it asks for; 0 where that is unknown.
    pub(crate) requested_bytes: u64,
}

/// A page of access requests.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct AccessList {
    /// How many requests match on all pages.
    pub(crate) total: u64,
    /// How many of them come before this page.
    pub(crate) before: u64,
    /// The cursor of the page behind; null on the last one.
    pub(crate) next: Option<String>,
    /// The requests of this page.
    pub(crate) items: Vec<AccessItem>,
}

impl AccessItem {
    fn new(request: &Request) -> Self {
        Self {
            id: request.id.to_string(),
            queue: request.queue.name(),
            state: state_label(request.state),
            odd_status: Some(request.odd_status.to_string()).filter(|text| !text.is_empty()),
            status_version: request.status_version,
            entered: request.entered,
            message: request.message.to_string(),
            locked: request.lock.is_some(),
            session: request.lock.and_then(|lock| session_text(lock.session)),
            token: request.token.to_string(),
            requested_bytes: request.requested_bytes,
        }
    }
}

impl AccessList {
    pub(crate) fn new(page: Page<Request>) -> Self {
        let Page { items, total, before, next } = page;
        let next = next.map(|next| next.to_string());
        Self { total, before, next, items: items.iter().map(AccessItem::new).collect() }
    }
}

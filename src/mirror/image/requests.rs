//! The access requests of the image.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;
use jiff::Timestamp;

use super::item::Item;
use super::row::{LockStat, Nodes};
use crate::mirror::read::Found;
use crate::mirror::summary::ByState;
use crate::mirror::text::cut;
use queuekeeper_queue::id::RequestId;
use queuekeeper_queue::path::{AccessQueue, RequestNode};
use queuekeeper_queue::record::{Decoded, Token, refused};
use queuekeeper_queue::state::AccessState;

/// One request for assembly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) item: Item<AccessState>,
    pub(super) token: Arc<str>,
    pub(super) requested_bytes: u64,
    /// Where the result is; empty for none, and for one that is no address of the web or too long to be kept.
    pub(super) url: Arc<str>,
    pub(super) expires: Option<Timestamp>,
}

/// The longest address of a result that is kept, in bytes.
const MOST_URL_BYTES: usize = 2_048;

impl Entry {
    /// Sets what a node says. Gives whether its value was malformed.
    fn set(&mut self, node: Option<RequestNode>, found: &Found) -> bool {
        let (data, stat) = found.node().map_or((None, None), |(data, stat)| (Some(data), Some(stat)));
        match node {
            None => self.item.set_own(stat),
            Some(RequestNode::Status) => return self.item.set_status(found),
            Some(RequestNode::Token) => {
                let Decoded { value, malformed } =
                    data.map_or(Decoded { value: Token::default(), malformed: None }, Token::decode);
                self.token = cut(&value.token).into();
                self.requested_bytes = value.content_bytes.unwrap_or(0);
                let is_kept = ["https://", "http://"].iter().any(|scheme| value.url.starts_with(scheme))
                    && value.url.len() <= MOST_URL_BYTES
                    && value.url.bytes().all(|byte| byte.is_ascii_graphic());
                self.url = if is_kept { value.url.into() } else { Arc::default() };
                self.expires = value.expires;
                return data.is_some_and(|data| refused(data, malformed).is_err());
            }
            Some(RequestNode::Lock) => self.item.set_lock(stat),
        }
        false
    }
}

/// The requests of one state of one queue.
#[derive(Debug, Default)]
pub(super) struct StateFigures {
    pub(super) entered: BTreeSet<(i64, RequestId)>,
    /// Wide enough for any number of requests that each ask for the most that a znode can say.
    pub(super) requested_bytes: u128,
}

/// The requests of one queue.
#[derive(Debug, Default)]
pub(super) struct Requests {
    entries: HashMap<RequestId, Entry>,
    pub(super) states: ByState<AccessState, StateFigures>,
    pub(super) locks: HashMap<RequestId, LockStat>,
}

/// Every request, and the figures over them.
#[derive(Debug, Default)]
pub(super) struct Access {
    small: Requests,
    large: Requests,
    pub(super) znodes: i64,
    pub(super) unreadable: i64,
}

impl Access {
    pub(super) fn queue(&self, queue: AccessQueue) -> &Requests {
        match queue {
            AccessQueue::Small => &self.small,
            AccessQueue::Large => &self.large,
        }
    }

    pub(super) fn is_unreadable(&self, queue: AccessQueue, request: RequestId, node: Option<RequestNode>) -> bool {
        let bit = node.map_or(Nodes::SELF, |node| node as u8);
        self.queue(queue).get(request).is_some_and(|entry| entry.item.unreadable.has(bit))
    }

    /// Takes note of what a read found at a request's znode (`None`) or one of its children. Gives whether that is new.
    pub(super) fn apply(
        &mut self,
        queue: AccessQueue,
        request: RequestId,
        node: Option<RequestNode>,
        found: &Found,
    ) -> bool {
        let requests = match queue {
            AccessQueue::Small => &mut self.small,
            AccessQueue::Large => &mut self.large,
        };
        let old = requests.entries.remove(&request).unwrap_or_default();
        let mut new = old.clone();
        let malformed = new.set(node, found);
        new.item.note(node.map_or(Nodes::SELF, |node| node as u8), found, malformed);
        self.znodes += new.item.nodes.count() - old.item.nodes.count();
        self.unreadable += new.item.unreadable.count() - old.item.unreadable.count();
        if !old.item.nodes.is_empty() {
            let figures = requests.states.get_mut(old.item.state);
            figures.entered.remove(&(old.item.entered_ms, request));
            figures.requested_bytes -= u128::from(old.requested_bytes);
            requests.locks.remove(&request);
        }
        let changed = old != new;
        if !new.item.nodes.is_empty() {
            let figures = requests.states.get_mut(new.item.state);
            figures.entered.insert((new.item.entered_ms, request));
            figures.requested_bytes += u128::from(new.requested_bytes);
            if let Some(lock) = new.item.lock {
                requests.locks.insert(request, lock);
            }
            requests.entries.insert(request, new);
        }
        changed
    }
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, request: RequestId) -> Option<&Entry> {
        self.entries.get(&request)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (RequestId, &Entry)> {
        self.entries.iter().map(|(request, entry)| (*request, entry))
    }
}

#[cfg(test)]
mod tests;

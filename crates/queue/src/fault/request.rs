//! The faults of an access request.

use super::finding::{NodeSet, Sink};
use super::item::{
    HOLDS_OTHER, LACKS_ZNODE, LockFacts, UNKNOWN_STATUS, by_shape, detect_bare, detect_item_lock, known,
};
use super::{Fault, Limits};
use crate::id::RequestId;
use crate::path::{AccessQueue, Path, RequestNode};
use crate::state::{AccessState, State};

/// What is known of an access request.
#[derive(Clone, Debug)]
pub struct RequestFacts {
    /// Its queue.
    pub queue: AccessQueue,
    /// Its id.
    pub id: RequestId,
    /// The znodes that are there, by [`RequestNode`].
    pub present: NodeSet,
    /// Of these, the ones that hold something else than they should.
    pub malformed: NodeSet,
    /// Of these, the ones that are not readable with these credentials, and not reported.
    pub denied: NodeSet,
    /// Its state; `None` for one that is missing or not known.
    pub state: Option<AccessState>,
    /// Whether its status is spelled as the daemons do.
    pub is_canonical: bool,
    /// When it entered its state, in milliseconds by the servers' clock; `i64::MAX` where that is not known.
    pub entered_ms: i64,
    /// When its znode was created, likewise.
    pub created_ms: i64,
    /// The lock on it.
    pub lock: Option<LockFacts>,
}

/// Detects the faults of an access request.
pub fn detect_request(request: &RequestFacts, limits: &Limits, sink: &mut Sink<'_>) {
    const READ: [RequestNode; 2] = [RequestNode::Status, RequestNode::Token];
    if request.present.is_empty() {
        return;
    }
    if request.present.is_bare(RequestNode::Lock as u8) {
        return detect_bare(&Path::Request(request.queue, request.id), request.created_ms, limits, sink);
    }
    let node = |node: RequestNode| Path::RequestNode(request.queue, request.id, node);
    let hint = known(request.entered_ms).or(known(request.created_ms));
    let mut report = |how, hint, nodes: &dyn Fn() -> Vec<Path>| {
        sink(by_shape(Fault::UnloadableRequest, how, limits.grace, hint, nodes));
    };
    let missing = |node: &RequestNode| !request.present.has(*node as u8);
    // They do without a token.
    if missing(&RequestNode::Status) {
        let nodes = || vec![node(RequestNode::Status)];
        report(LACKS_ZNODE, known(request.created_ms), &nodes);
    }
    let malformed = |node: &RequestNode| request.malformed.has(*node as u8);
    if READ.iter().any(malformed) {
        let nodes = || READ.into_iter().filter(malformed).map(node).collect();
        report(HOLDS_OTHER, hint, &nodes);
    } else if request.present.minus(request.denied).has(RequestNode::Status as u8) && !request.is_canonical {
        report(UNKNOWN_STATUS, hint, &|| vec![node(RequestNode::Status)]);
    }
    if let Some(lock) = request.lock {
        let at_rest = request.state.is_some_and(|state| !state.is_worked_on());
        let entered_ms = known(request.entered_ms).unwrap_or(lock.created_ms);
        let limit = limits.request_lock.get(request.state);
        detect_item_lock(lock, &node(RequestNode::Lock), entered_ms, at_rest, limit, limits, sink);
    }
}

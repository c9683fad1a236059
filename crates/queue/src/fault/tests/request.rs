//! What the rules find of an access request.

use super::*;
use crate::id::RequestId;
use crate::path::{AccessQueue, RequestNode};
use crate::state::AccessState;

const Q: &str = "/access/large/qid0000000003";

fn set(children: &[RequestNode]) -> NodeSet {
    NodeSet::from_bits(children.iter().fold(1 << NodeSet::OWN, |bits, node| bits | 1 << (*node as u8)))
}

/// A request in Processing of which nothing is wrong.
fn request() -> RequestFacts {
    RequestFacts {
        queue: AccessQueue::Large,
        id: RequestId::new(3),
        present: set(&[RequestNode::Status, RequestNode::Token]),
        malformed: NodeSet::default(),
        denied: NodeSet::default(),
        state: Some(AccessState::Processing),
        is_canonical: true,
        entered_ms: ENTERED,
        created_ms: CREATED,
        lock: None,
    }
}

fn of(request: &RequestFacts) -> Vec<String> {
    found(|limits, sink| detect_request(request, limits, sink))
}

#[test]
fn a_request_shows_what_keeps_it_from_being_loaded() {
    let healthy = [request(), RequestFacts { present: NodeSet::default(), ..request() }];
    assert_eq!(healthy.each_ref().map(of), [[""; 0]; 2]);
    let bare = RequestFacts { present: set(&[RequestNode::Lock]), ..request() };
    assert_eq!(of(&bare), [format!("unfinished_creation since 1000000 lasting 0 from 1005000: {Q}")]);
    let unloadable =
        |at: i64, nodes: &str| format!("unloadable_request seen, {at} at the earliest lasting 2000: {nodes}");
    let no_status = RequestFacts { present: set(&[RequestNode::Token]), is_canonical: false, ..request() };
    assert_eq!(of(&no_status), [unloadable(CREATED, &format!("{Q}/status"))]);
    let no_token = RequestFacts { present: set(&[RequestNode::Status]), ..request() };
    assert_eq!(of(&no_token), [""; 0]);
    let garbage = RequestFacts { malformed: set(&[RequestNode::Token]).without(NodeSet::OWN), ..request() };
    assert_eq!(of(&garbage), [unloadable(ENTERED, &format!("{Q}/token"))]);
    let odd = RequestFacts { is_canonical: false, entered_ms: i64::MAX, ..request() };
    assert_eq!(of(&odd), [unloadable(CREATED, &format!("{Q}/status"))]);
    assert_eq!(of(&RequestFacts { denied: set(&[RequestNode::Status]), ..odd }), [""; 0]);
}

#[test]
fn a_request_shows_a_lock_that_is_left() {
    let leaked = |from: i64| format!("leaked_lock since 2000005 lasting 0 from {from}: {Q}/lock");
    let locked = RequestFacts { lock: Some(lock(ENTERED + 5)), ..request() };
    let (minute, day) = (60_000, 24 * 3_600_000);
    assert_eq!(of(&locked), [leaked(ENTERED + 5 + day)]);
    assert_eq!(of(&RequestFacts { entered_ms: ENTERED + 7, ..locked.clone() }), [leaked(ENTERED + 7 + day)]);
    assert_eq!(of(&RequestFacts { entered_ms: i64::MAX, ..locked.clone() }), [leaked(ENTERED + 5 + day)]);
    for (state, limit) in [
        (Some(AccessState::Pending), 10 * minute),
        (None, 10 * minute),
        (Some(AccessState::Completed), minute / 2),
        (Some(AccessState::Failed), minute / 2),
    ] {
        assert_eq!(of(&RequestFacts { state, ..locked.clone() }), [leaked(ENTERED + 5 + limit)], "{state:?}");
    }
}

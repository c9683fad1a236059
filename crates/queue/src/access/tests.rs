//! An access request by its znodes.

use super::*;
use crate::error::ConflictKind;
use crate::record::Malformed;
use crate::testing::request;

const Q: &str = "/access/small/qid0000000003";

const NODES: [(RequestNode, &str); 2] =
    [(RequestNode::Token, r#"{"token":"t"}"#), (RequestNode::Status, r#"{"status":"Failed"}"#)];

fn locked() -> Request {
    request(&[&NODES[..], &[(RequestNode::Lock, "")]].concat())
}

#[test]
fn a_request_is_what_its_znodes_say() {
    let all = locked();
    assert_eq!((&*all.content().value.token, all.state(), all.version()), ("t", Some(AccessState::Failed), Some(3)));
    assert_eq!(all.entered(), Some(Timestamp::from_second(2).unwrap()));
    assert_eq!(all.lock().map(|lock| lock.path.to_string()), Some(format!("{Q}/lock")));
    assert!(all.token_stat.is_some() && all.status_found().is_some());
    let bare = request(&[]);
    assert_eq!((bare.state(), bare.version(), bare.entered(), bare.lock()), (None, None, None, None));
    assert!(bare.token.is_none() && bare.status_found().is_none() && bare.content().value == Token::default());
    assert!(Request::from_found(AccessQueue::Small, RequestId::new(3), [Found::Nothing]).is_none());
}

#[test]
fn a_request_is_loadable_by_the_daemons_or_shows_what_they_reject() {
    assert_eq!(request(&NODES).check_loadable(), Ok(AccessState::Failed));
    for (nodes, expected) in [
        (&NODES[1..], "token does not exist"),
        (&NODES[..1], "status does not exist"),
        (&[(RequestNode::Token, "[]"), NODES[1]], "token is JSON, but not an object"),
        (&[NODES[0], (RequestNode::Status, "x")], "status is not JSON (line 1, column 1)"),
        (
            &[NODES[0], (RequestNode::Status, r#"{"status":"failed"}"#)],
            "status status is not the name of a state as the daemons write it",
        ),
    ] {
        assert_eq!(request(nodes).check_loadable().unwrap_err().to_string(), format!("{Q}/{expected}"));
    }
    assert_eq!([request(&NODES), request(&[])].map(|request| request.check_token()), [Ok(()), Ok(())]);
    assert_eq!(request(&[(RequestNode::Token, "[]")]).check_token(), Err(Malformed::NotObject));
}

#[test]
fn a_change_applies_only_to_what_its_caller_saw() {
    let seen = RequestTarget::from(&request(&NODES));
    assert_eq!((seen.queue, seen.id, seen.version), (AccessQueue::Small, RequestId::new(3), Some(3)));
    assert_eq!((seen.check(&request(&NODES)), seen.held()), (Ok(()), None));
    let status = Path::parse(&format!("{Q}/status"));
    let changed = ConflictKind::Changed { seen: 4, found: 3, since: Timestamp::from_second(2).unwrap() };
    assert_eq!(seen.clone().at_version(4).check(&request(&NODES)), Err(Error::conflict(status.clone(), changed)));
    let bare = RequestTarget::from((AccessQueue::Small, RequestId::new(3)));
    assert_eq!(bare.check(&request(&[])), Err(Error::Missing(status)));
    let lock = locked().lock().unwrap();
    let held = ConflictKind::Locked { session: None, since: lock.since };
    assert_eq!(bare.check(&locked()), Err(Error::conflict(lock.path.clone(), held)));
    let pending = PendingUpdate::default();
    let ours = LockedRequest { request: locked(), state: AccessState::Failed, version: 3, lock: lock.clone(), pending };
    let ours = RequestTarget::from(&ours);
    assert_eq!((ours.check(&locked()), ours.held(), ours.lock_path()), (Ok(()), Some(&lock), lock.path.clone()));
    assert_eq!(ours.version, Some(3));
}

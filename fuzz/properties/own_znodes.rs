//! Our own znodes below `/queuekeeper`: decisions, what rules remember, and the kill switch.

use std::collections::BTreeMap;

use jiff::Timestamp;
use queuekeeper::alerts::fuzzing::{decision, memory, see, together};
use queuekeeper_zookeeper::coordination::{ForeignNode, ForeignReason, Node, Snapshot};

use super::board;

/// Puts the bytes into each of them, and checks what is reported.
///
/// # Panics
/// When what is read is not written as what reads as the same, when the rules' overview is not bounded, or when the
/// server fails.
pub fn check(data: &[u8]) {
    for again in [decision, memory, together] {
        if let Some(written) = again(data) {
            assert_eq!(again(&written).as_ref(), Some(&written), "what is written is read as what it was");
        }
    }
    let node = |name: &str| Node {
        name: name.to_owned(),
        data: data.to_vec(),
        version: 0,
        czxid: 1,
        created: Timestamp::UNIX_EPOCH,
        changed: Timestamp::UNIX_EPOCH,
        children: i32::from(data.len() % 2 == 1),
    };
    let rules = ["again", "full", "gone"].map(|name| (name.to_owned(), node(name)));
    let snapshot = Snapshot {
        pending: vec![node("again.act.0011223344556677"), node("full.undo")],
        rules: BTreeMap::from(rules),
        all: Some(node("rules")),
        paused: Some(node("paused")),
        foreign: vec![ForeignNode {
            path: format!("/queuekeeper/election/{}", String::from_utf8_lossy(data)),
            reason: ForeignReason::UnknownName,
        }],
        more_foreign: data.len(),
    };
    board::with(|board| {
        let now: Timestamp = "2026-03-02T18:17:05Z".parse().expect("this is an instant");
        see(&board.alerts, snapshot, now);
        let overview = board.alerts.overview(now);
        assert_eq!(overview.rules.len(), 4, "every rule is shown");
        for rule in &overview.rules {
            assert!(rule.events.len() <= 20, "the events of a rule are bounded");
        }
        let pause = overview.paused.expect("the switch is there");
        assert!(pause.who.chars().count() <= 500 && pause.why.chars().count() <= 500, "a note is bounded");
        for page in ["/rules", "/api/v1/rules", "/"] {
            let answer = board.get(page).expect("this is an address");
            assert!(answer.status.is_success(), "{page}: {}", answer.body);
        }
        see(&board.alerts, Snapshot::default(), now);
    });
}

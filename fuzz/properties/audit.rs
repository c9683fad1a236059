//! The audit file, read back when a server starts.

use queuekeeper::actions::audit::{Audit, AuditQuery, Destination, Rotation};

use super::board::{self, Board};

/// Reads the bytes as such a file, and checks what is reported.
///
/// # Panics
/// When it reports more actions than there are lines, finds what was not requested, or the server fails.
pub fn check(data: &[u8]) {
    let opened = Audit::open(Destination::File(board::file("trail", data), Rotation::default()));
    let (audit, _writer) = opened.expect("whatever stands in it, the trail goes on");
    let all = audit.find(&AuditQuery { limit: 500, ..AuditQuery::default() });
    let lines = data.split(|byte| *byte == b'\n').count();
    assert!(all.entries.len() <= lines.min(500), "{} actions in {lines} lines", all.entries.len());
    assert!(all.entries.is_sorted_by(|newer, older| newer.id >= older.id), "the newest come first");
    for entry in &all.entries {
        assert_eq!(audit.entry(entry.id).map(|found| found.id), Some(entry.id), "an action is found by its id");
        assert!(entry.targets.len() <= 20 && entry.not_done.len() <= 100, "an action is bounded");
        let query = AuditQuery { actor: Some(entry.actor.clone()), limit: 500, ..AuditQuery::default() };
        let of_actor = audit.find(&query).entries;
        assert!(of_actor.iter().all(|found| found.actor == entry.actor), "only what was asked for is found");
        assert!(of_actor.iter().any(|found| found.id == entry.id), "all that was asked for is found");
    }
    let Some(entry) = all.entries.first() else { return };
    let board = Board::new(data);
    for page in ["/audit", "/api/v1/audit", "/audit?text=qk", "/"] {
        let answer = board.get(page).expect("this is an address");
        assert!(answer.status.is_success(), "{page}: {}", answer.body);
    }
    for page in [format!("/actions/{}", entry.id), format!("/api/v1/actions/{}", entry.id)] {
        let answer = board.get(&page).expect("this is an address");
        assert!(answer.status.is_success(), "{page}: {}", answer.body);
    }
}

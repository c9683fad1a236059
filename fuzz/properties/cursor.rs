//! Cursors, and the other names in addresses.

use queuekeeper::actions::audit::ActionId;
use queuekeeper::mirror::failures::FailureKey;
use queuekeeper::mirror::find::{Direction, JobCursor, JobOrder, SEARCH_LIMIT, SearchText};
use queuekeeper::mirror::lists::Cursor;
use queuekeeper_queue::fault::Fault;

use super::{board, shown};

/// Reads the bytes as each kind, and asks the lists for the page there.
///
/// # Panics
/// When what is accepted is not written as what is accepted again, or the server fails.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match text.parse::<JobCursor>() {
        Ok(cursor) => {
            shown::again(&cursor);
            assert_eq!(cursor.to_string(), text, "only what would be written is a cursor");
            let sorts = JobOrder::ALL.into_iter().flat_map(|sort| Direction::ALL.map(|direction| (sort, direction)));
            assert_eq!(
                sorts.filter(|(sort, direction)| cursor.is_of(*sort, *direction)).count(),
                1,
                "it is of one list"
            );
        }
        Err(error) => shown::error(error, 200),
    }
    match text.parse::<FailureKey>() {
        Ok(key) => shown::again(&key),
        Err(error) => shown::error(error, 200),
    }
    match text.parse::<Cursor>() {
        Ok(cursor) => shown::again(&cursor),
        Err(error) => shown::error(error, 200),
    }
    if let Ok(id) = text.parse::<ActionId>() {
        assert_eq!(id.to_string().parse().ok(), Some(id), "an action's id is the same again");
    }
    assert!(Fault::from_label(&text).is_none_or(|fault| fault.label() == text), "a fault has one name");
    match SearchText::new(&text) {
        Ok(search) => assert!(search.is_none_or(|search| search.as_str().chars().count() <= SEARCH_LIMIT)),
        Err(error) => shown::error(error, 200),
    }
    let escaped: String = data.iter().flat_map(|byte| ['%', hex(byte >> 4), hex(byte & 0xf)]).collect();
    board::with(|board| {
        for list in ["jobs", "failures", "batches", "access", "locks", "faults", "audit"] {
            let Some(answer) = board.get(&format!("/api/v1/{list}?limit=2&cursor={escaped}")) else { return };
            let status = answer.status.as_u16();
            assert!(matches!(status, 200 | 400), "{list} at {text:?}: {status} {}", answer.body);
        }
        for item in [
            "jobs",
            "batches",
            "actions",
            "lists",
            "faults",
            "runbook",
            "static",
            "api/v1/jobs",
            "api/v1/batches",
            "api/v1/actions",
        ] {
            let Some(answer) = board.get(&format!("/{item}/{escaped}")) else { return };
            assert!(
                answer.body.len() < 200_000 || answer.status.is_success(),
                "the answer for something missing is too long"
            );
        }
    });
}

fn hex(digit: u8) -> char {
    char::from_digit(digit.into(), 16).expect("four bits are one digit")
}

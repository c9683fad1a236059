//! What is requested over the API: actions, lists to freeze, and what comes with them.

use axum::body::Body;
use axum::http::{HeaderValue, Request, StatusCode, header};
use queuekeeper::actions::{ActionKind, MAX_ITEMS, Reason, Role};

use super::{board, shown};

/// Sends the bytes as each kind of action, once with them as the key that makes it happen once.
///
/// # Panics
/// When something is done without a connection, or the server fails.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Reason::new(&text) {
        Ok(reason) => {
            let text = reason.as_str();
            assert!(!text.chars().any(char::is_control) && (1..=500).contains(&text.chars().count()), "{text:?}");
            assert_eq!(Reason::new(text).as_ref(), Ok(&reason), "a reason is one as it is");
        }
        Err(error) => shown::error(error, 300),
    }
    // Of these, only what one is written as is one.
    assert!(text.parse::<ActionKind>().map_or(true, |action| action.label() == text), "{text} is no action");
    assert!(text.parse::<Role>().map_or(true, |role| role.to_string() == text), "{text} is no role");
    board::with(|board| {
        for address in
            ["/api/v1/actions", "/api/v1/rules/pause", "/api/v1/lists/0/execute", "/api/v1/rules/again/reset"]
        {
            let answer = board.post(address, data, false).expect("this can be sent");
            assert!(!answer.status.is_success() || is_dry_run(&text), "{address}: {}", answer.body);
        }
        let frozen = board.post("/api/v1/lists", data, false).expect("this can be sent");
        if frozen.status.is_success() {
            assert_eq!(frozen.status, StatusCode::CREATED);
            let count = frozen.json()["count"].as_u64();
            assert!(count.is_some_and(|count| count <= MAX_ITEMS as u64), "a list is bounded");
        }
        let Ok(key) = HeaderValue::from_bytes(data) else { return };
        let request = Request::post("/api/v1/actions")
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .header("idempotency-key", key);
        board.ask(request, Body::from(r#"{"action":"resume","on":"jid0000000001","reason":"fuzzing"}"#));
    });
}

/// Whether it only asks what would be done.
fn is_dry_run(text: &str) -> bool {
    text.contains("dry_run")
}

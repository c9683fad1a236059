//! The headers `Host` and `Origin`.

use axum::body::Body;
use axum::http::{HeaderValue, Request, StatusCode, header};

use super::board;

/// Sends requests to the host of the first line, the second of them from a page whose origin is the second line.
///
/// # Panics
/// When a host is taken for ours that is not, or the server fails.
pub fn check(data: &[u8]) {
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let (host, origin) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let (Ok(host), Ok(origin)) = (HeaderValue::from_bytes(host), HeaderValue::from_bytes(origin)) else { return };
    board::with(|board| {
        let request = Request::get("/-/healthy").header(header::HOST, &host);
        let Some(answer) = board.ask(request, Body::empty()) else { return };
        let is_ours = host.to_str().is_ok_and(|host| {
            let host = host.to_ascii_lowercase();
            is_localhost(host.strip_suffix(':').unwrap_or(&host))
        });
        let expected =
            if is_ours { &[StatusCode::OK][..] } else { &[StatusCode::BAD_REQUEST, StatusCode::MISDIRECTED_REQUEST] };
        assert!(expected.contains(&answer.status), "{host:?} was answered with {}: {}", answer.status, answer.body);
        assert!(answer.body.len() < 2_000, "a refusal is short");
        let request = Request::post("/api/v1/actions")
            .header(header::HOST, "localhost")
            .header(header::ORIGIN, &origin)
            .header(header::CONTENT_TYPE, "application/json");
        let Some(answer) = board.ask(request, Body::from("{}")) else { return };
        let is_ours = origin.to_str().is_ok_and(|origin| {
            let host = origin.strip_prefix("http://").map(str::to_ascii_lowercase);
            host.is_some_and(|host| is_localhost(host.strip_suffix(':').unwrap_or(&host)))
        });
        let expected = if is_ours { StatusCode::BAD_REQUEST } else { StatusCode::FORBIDDEN };
        assert_eq!(answer.status, expected, "a page of {origin:?} requested something: {}", answer.body);
    });
}

/// Whether it is our name, without a port or with ours, which may have zeros before it.
fn is_localhost(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, "80"));
    matches!(name, "localhost" | "localhost.") && port.trim_start_matches('0') == "80"
}

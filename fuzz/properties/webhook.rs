//! Alertmanager's webhook.

use queuekeeper::alerts::{Alert, Payload};

use super::{board, shown};

/// Reads the bytes as a message, and sends them to a server with rules.
///
/// # Panics
/// When what is read is not bounded, when it is refused other than by the server, or when the server fails.
pub fn check(data: &[u8]) {
    let read = Payload::read(data);
    match &read {
        Ok(payload) => {
            for text in [&payload.receiver, &payload.group] {
                assert!(
                    text.chars().count() <= 200 && !text.chars().any(char::is_control),
                    "{text:?} goes to the audit"
                );
            }
            assert!(payload.alerts.len() <= 1_000, "alerts are bounded");
            payload.alerts.iter().for_each(is_bounded);
        }
        Err(error) => shown::error(error, 300),
    }
    board::with(|board| {
        let answer = board.post("/api/v1/alerts", data, true).expect("this can be sent");
        if read.is_err() {
            assert!(answer.status.is_client_error(), "{} for what is no message", answer.status);
        }
        let page = board.get("/rules").expect("this is an address");
        assert!(page.status.is_success(), "{}", page.body);
    });
}

fn is_bounded(alert: &Alert) {
    assert!(alert.labels.len() <= 64, "labels are bounded");
    let is_bounded = |text: &String| text.len() <= 1_024;
    assert!(alert.labels.iter().all(|(name, value)| is_bounded(name) && is_bounded(value)), "labels are bounded");
    let is_hex = alert.fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase());
    assert!(is_hex && (1..=64).contains(&alert.fingerprint.len()), "a fingerprint is one: {}", alert.fingerprint);
}

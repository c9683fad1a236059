//! The probes.

use std::time::Duration;

use axum::extract::State as FromState;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;

use super::http::problem::HasMessage;
use super::state::State;
use crate::mirror::Freshness;
use crate::views::show::Ago;

/// `GET /-/healthy`: the process is alive.
pub(super) async fn healthy() -> Response {
    plain(StatusCode::OK, "healthy\n".to_owned())
}

/// `GET /-/ready`: the mirror is loaded, and not stale for longer than `--mirror.stale-after`.
pub(super) async fn ready(FromState(state): FromState<State>) -> Response {
    match readiness_of(&state, Timestamp::now()) {
        Ok(()) => plain(StatusCode::OK, "ready\n".to_owned()),
        Err(why) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
    }
}

/// The same of one queue.
pub(super) fn readiness_of(state: &State, now: Timestamp) -> Result<(), String> {
    readiness(&state.shared.store.freshness(), now, state.shared.config.mirror.stale_after)
}

pub(super) fn plain(status: StatusCode, body: String) -> Response {
    let mut response = (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response();
    response.extensions_mut().insert(HasMessage);
    response
}

/// Whether the mirror is usable, and if not why, in one line.
///
/// # Errors
/// Where there is no mirror, or it has been stale for longer than `stale_after`.
pub fn readiness(freshness: &Freshness, now: Timestamp, stale_after: Duration) -> Result<(), String> {
    let connection = if freshness.is_connected() { "connected to ZooKeeper" } else { "not connected to ZooKeeper" };
    let because = freshness.problem.as_deref().map(|problem| format!(": {}", one_line(problem))).unwrap_or_default();
    let stale_for = freshness.stale_for(now);
    if !freshness.was_synced {
        return Err(format!("the queue has not been read yet, {connection}{because}"));
    }
    if stale_for > stale_after {
        return Err(format!("the mirror has been stale for {}, {connection}{because}", Ago(stale_for)));
    }
    Ok(())
}

/// The text of a problem may come from a server: the response of a probe is one line.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ready_once_the_mirror_is_loaded_and_not_too_old() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let limit = Duration::from_secs(10);
        let mut freshness = Freshness::default();
        assert_eq!(
            readiness(&freshness, now, limit),
            Err("the queue has not been read yet, not connected to ZooKeeper".to_owned())
        );
        freshness.session = Some("0x1000".to_owned());
        freshness.problem = Some("the root is not\nreadable".to_owned());
        assert_eq!(
            readiness(&freshness, now, limit),
            Err("the queue has not been read yet, connected to ZooKeeper: the root is not readable".to_owned())
        );
        // As where the chroot is missing.
        freshness.last_walk = Some(now);
        assert!(readiness(&freshness, now, limit).is_err());
        freshness = Freshness { last_walk: Some(now), was_synced: true, ..Freshness::default() };
        freshness.stale_since = Some(now - limit);
        assert_eq!(readiness(&freshness, now, limit), Ok(()));
        freshness.stale_since = Some(now - Duration::from_secs(72));
        assert_eq!(
            readiness(&freshness, now, limit),
            Err("the mirror has been stale for 1 min, not connected to ZooKeeper".to_owned())
        );
    }
}

//! Live pages: what changes on a page that somebody looks at, as server-sent events.
//!
//! A page marks what changes (see [`super::pages`]) and knows nothing of this. For each distinct page that is looked at
//! by readers of one role a task renders it again through the pages' own routes when the image has changed, and all of
//! them get the regions that differ. Neither holds a lock while it renders or sends.

mod hub;
mod page;
mod regions;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State as FromState;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::{Stream, unfold};
use jiff::Timestamp;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};

pub(super) use self::hub::Hub;
use self::hub::{Full, Seat};
use self::page::{Refused, Seen, render};
use self::regions::Shot;
use super::State;
use super::identity::Identity;
use super::params::Params;
use super::problem::Problem;
use crate::actions::Role;

/// Where the events are.
pub(super) const ROUTE: &str = "/events";

/// How often a stream says that it is still there, and how far behind it is.
const BEAT: Duration = Duration::from_secs(5);

/// When to come back after being turned away, in seconds.
const RETRY_AFTER: &str = "30";

/// The longest address of a page, in bytes.
const LONGEST: usize = 2_048;

/// Which page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// Its path with its query, relative to the root: `jobs?state=failed`; empty for the overview.
    page: String,
}

/// `GET /events?page=PAGE`: what changes on a page, for as long as somebody listens.
pub(super) async fn events(
    FromState(state): FromState<State>,
    who: Identity,
    Params(asked): Params<Asked>,
) -> Response {
    match listen(&state, &asked.page, state.rights(&who)).await {
        Ok(seat) => stream(state, seat),
        Err(refused) => refused,
    }
}

async fn listen(state: &State, page: &str, role: Role) -> Result<Seat, Response> {
    let hub = &state.shared.hub;
    let permit = hub.enter().map_err(turned_away)?;
    let page = page.trim_start_matches('/');
    if page.len() > LONGEST {
        return Err(Problem::bad(format!("No page has an address of more than {LONGEST} bytes.")).into_response());
    }
    let seen = Seen { address: format!("/{page}"), role };
    if let Some(seat) = hub.join(&seen) {
        return Ok(Seat { permit, shots: seat });
    }
    // Whoever asks first renders it, and so learns what is wrong with the address.
    let first = render(&page::router(state), &seen, None).await.map_err(Refused::response)?;
    let shots = hub.open(state, seen, Arc::new(first)).map_err(turned_away)?;
    Ok(Seat { permit, shots })
}

fn turned_away(full: Full) -> Response {
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, full.to_string());
    let mut response = problem.into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    response
}

fn stream(state: State, seat: Seat) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        // Said to nginx, which would keep the events to itself until there are 4 KiB of them.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(told(state, seat))).into_response()
}

/// The events of one reader: all regions at first, and then what differs; in between, signs of life.
fn told(state: State, mut seat: Seat) -> impl Stream<Item = Result<Bytes, Infallible>> {
    // What is there already is news to a reader who has just come.
    seat.shots.mark_changed();
    let reader = (state, seat, None::<Arc<Shot>>, Instant::now());
    unfold(reader, async |(state, mut seat, mut seen, mut next_beat)| {
        let end = state.shared.hub.ended();
        loop {
            tokio::select! {
                () = end.cancelled() => return None,
                changed = seat.shots.changed() => {
                    // The page is gone when its task is, and the reader comes back to be told so.
                    changed.ok()?;
                    let shot = Arc::clone(&seat.shots.borrow_and_update());
                    let news = shot.since(seen.as_deref());
                    seen = Some(shot);
                    if let Some(news) = news {
                        return Some((Ok(news), (state, seat, seen, next_beat)));
                    }
                }
                () = sleep_until(next_beat) => {
                    next_beat = Instant::now() + BEAT;
                    let beat = beat(&state, seat.shots.borrow().waited);
                    return Some((Ok(beat), (state, seat, seen, next_beat)));
                }
            }
        }
    })
}

/// That the stream lives, what time it is here, and how far the page is behind: for how long changes wait for the image
/// now, and how long the last one had to wait for the page.
fn beat(state: &State, waited: Duration) -> Bytes {
    let now = Timestamp::now();
    let behind = (state.shared.store.behind(now) + waited).as_secs_f64();
    Bytes::from(format!("event: beat\ndata: {{\"now\":\"{now:.3}\",\"behind_seconds\":{behind:.1}}}\n\n"))
}

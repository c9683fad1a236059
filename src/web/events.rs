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
use axum::extract::{Extension, State as FromState};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::{Stream, unfold};
use jiff::Timestamp;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

pub(super) use self::hub::Hub;
use self::hub::{Full, Place, Reader};
use self::page::{Refused, Seen, render};
use self::regions::Shot;
use super::State;
use super::http::auth::Standing;
use super::http::params::Params;
use super::http::problem::Problem;
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
pub(super) struct PageQuery {
    /// Its path with its query, relative to the root: `jobs?state=failed`; empty for the overview.
    page: String,
}

/// One reader: his place, what he looks at, and by what he was let in.
struct Seat {
    #[expect(dead_code, reason = "it is given back by being dropped")]
    place: Place,
    shots: watch::Receiver<Arc<Shot>>,
    standing: Standing,
    role: Role,
}

/// `GET /events?page=PAGE`: what changes on a page, for as long as somebody listens and may.
pub(super) async fn events(
    FromState(state): FromState<State>,
    Extension(standing): Extension<Standing>,
    Params(asked): Params<PageQuery>,
) -> Response {
    match listen(&state, &asked.page, standing).await {
        Ok(seat) => stream(state, seat),
        Err(refused) => refused,
    }
}

async fn listen(state: &State, page: &str, standing: Standing) -> Result<Seat, Response> {
    let (hub, role) = (&state.shared.hub, state.rights(&standing.identity));
    let page = page.trim_start_matches('/');
    if page.len() > LONGEST {
        return Err(Problem::bad(format!("No page has an address of more than {LONGEST} bytes.")).into_response());
    }
    let seen = Seen { address: format!("/{page}"), role };
    let place = hub.enter(Reader::of(&standing.identity), &seen).map_err(turned_away)?;
    if let Some(shots) = hub.join(&seen) {
        return Ok(Seat { place, shots, standing, role });
    }
    // Whoever asks first renders it, and so learns what is wrong with the address.
    let first = render(&page::router(state), &seen, None).await.map_err(Refused::response)?;
    let shots = hub.open(state, seen, Arc::new(first)).map_err(turned_away)?;
    Ok(Seat { place, shots, standing, role })
}

fn turned_away(full: Full) -> Response {
    let status = if full.is_own_share() { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut response = Problem::new(status, full.to_string()).into_response();
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
///
/// Nothing is sent to a reader whom the same credentials would not let in any more, or who would see another page: his
/// stream ends when the files have changed, and at the latest with the first beat after his token's time is over.
fn told(state: State, mut seat: Seat) -> impl Stream<Item = Result<Bytes, Infallible>> {
    // What is there already is news to a reader who has just come.
    seat.shots.mark_changed();
    let reloads = state.shared.reloads.subscribe();
    let reader = (state, seat, reloads, None::<Arc<Shot>>, Instant::now());
    unfold(reader, async |(state, mut seat, mut reloads, mut seen, mut next_beat)| {
        let end = state.shared.hub.ended();
        loop {
            let news = tokio::select! {
                () = end.cancelled() => return None,
                // The state is ours too, and with it the sender.
                _ = reloads.changed() => None,
                changed = seat.shots.changed() => {
                    // The page is gone when its task is, and the reader comes back to be told so.
                    changed.ok()?;
                    let shot = Arc::clone(&seat.shots.borrow_and_update());
                    let news = shot.since(seen.as_deref());
                    seen = Some(shot);
                    news
                }
                () = sleep_until(next_beat) => {
                    next_beat = Instant::now() + BEAT;
                    Some(beat(&state, seat.shots.borrow().waited))
                }
            };
            if state.still_is(&seat.standing, Timestamp::now()) != Some(seat.role) {
                let name = &seat.standing.identity.name;
                tracing::debug!(name, "ended a live page whose reader is not let in any more, or has another role");
                return None;
            }
            if let Some(news) = news {
                return Some((Ok(news), (state, seat, reloads, seen, next_beat)));
            }
        }
    })
}

/// That the stream lives, what time it is here, and how far the page is behind: for how long changes wait for the image
/// now, and how long the last one had to wait for the page; null while the image follows nothing.
fn beat(state: &State, waited: Duration) -> Bytes {
    let now = Timestamp::now();
    let store = &state.shared.store;
    // Of figures that follow nothing the header says how old they are, and there may never have been any.
    let behind = if store.freshness().is_synced() {
        format!("{:.1}", (store.behind(now) + waited).as_secs_f64())
    } else {
        "null".to_owned()
    };
    Bytes::from(format!("event: beat\ndata: {{\"now\":\"{now:.3}\",\"behind_seconds\":{behind}}}\n\n"))
}

//! Live pages: changes of an open page as server-sent events.
//!
//! A page marks its live regions (see [`super::pages`]) and does not depend on this module. For each distinct page that
//! readers of one role have open, a task renders it again through the pages' own routes when the mirror has changed,
//! and all of these readers get the regions that differ. No lock is held while rendering or sending.

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
use self::hub::{LimitReached, Reader, StreamSlot};
use self::page::{PageView, RenderError, render};
use self::regions::Snapshot;
use super::http::auth::Authentication;
use super::http::params::Params;
use super::http::problem::Problem;
use super::state::State;
use crate::actions::Role;

/// The path of the events.
pub(super) const ROUTE: &str = "/events";

/// The interval of heartbeats, which also report how far the page is behind.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The `Retry-After` of a refused stream, in seconds.
const RETRY_AFTER: &str = "30";

/// The longest address of a page, in bytes.
const MAX_ADDRESS_BYTES: usize = 2_048;

/// The page to follow.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    /// Its path with its query, relative to the root: `jobs?state=failed`; empty for the overview.
    page: String,
}

/// One reader of one page.
struct Subscription {
    #[expect(dead_code, reason = "it is released when dropped")]
    slot: StreamSlot,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    authentication: Authentication,
    role: Role,
}

/// `GET /events?page=PAGE`: the changes of a page, for as long as the client listens and its credentials are valid.
pub(super) async fn events(
    FromState(state): FromState<State>,
    Extension(hub): Extension<Arc<Hub>>,
    Extension(authentication): Extension<Authentication>,
    Params(query): Params<PageQuery>,
) -> Response {
    match subscribe(&state, &hub, &query.page, authentication).await {
        Ok(subscription) => stream(state, hub, subscription),
        Err(response) => response,
    }
}

async fn subscribe(
    state: &State,
    hub: &Arc<Hub>,
    page: &str,
    authentication: Authentication,
) -> Result<Subscription, Response> {
    let role = state.rights(&authentication.identity);
    let page = page.trim_start_matches('/');
    if page.len() > MAX_ADDRESS_BYTES {
        return Err(
            Problem::bad(format!("The address of the page is longer than {MAX_ADDRESS_BYTES} bytes.")).into_response()
        );
    }
    let view = PageView { address: format!("/{page}"), role };
    let slot = hub.enter(Reader::of(&authentication.identity), &view).map_err(refused)?;
    if let Some(snapshots) = hub.join(&view) {
        return Ok(Subscription { slot, snapshots, authentication, role });
    }
    // The first reader's request renders the page, so that an invalid address is answered with its error.
    let first = render(&page::router(state), &view, None).await.map_err(RenderError::response)?;
    let snapshots = hub.open(state, view, Arc::new(first)).map_err(refused)?;
    Ok(Subscription { slot, snapshots, authentication, role })
}

fn refused(limit: LimitReached) -> Response {
    let status = if limit.is_own_share() { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut response = Problem::new(status, limit.to_string()).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    response
}

fn stream(state: State, hub: Arc<Hub>, subscription: Subscription) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        // Otherwise nginx buffers events until it has 4 KiB.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(event_stream(state, hub, subscription))).into_response()
}

/// The events of one reader: first all regions, then those that differ, and heartbeats.
///
/// The stream ends when the reader's credentials are not valid any more or its role has changed: after a reload of the
/// files, and at the latest at the first heartbeat after its token expired.
fn event_stream(
    state: State,
    hub: Arc<Hub>,
    mut subscription: Subscription,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    // The present rendering is new to this reader.
    subscription.snapshots.mark_changed();
    let reloads = state.shared.reloader.subscribe();
    let reader = (state, hub, subscription, reloads, None::<Arc<Snapshot>>, Instant::now());
    unfold(reader, async |(state, hub, mut subscription, mut reloads, mut sent, mut next_heartbeat)| {
        let end = hub.ended();
        loop {
            let changes = tokio::select! {
                () = end.cancelled() => return None,
                // The sender is part of the state and outlives this stream.
                _ = reloads.changed() => None,
                changed = subscription.snapshots.changed() => {
                    // The task has ended because the page is gone: the reader reconnects and gets the error.
                    changed.ok()?;
                    let snapshot = Arc::clone(&subscription.snapshots.borrow_and_update());
                    let changes = snapshot.since(sent.as_deref());
                    sent = Some(snapshot);
                    changes
                }
                () = sleep_until(next_heartbeat) => {
                    next_heartbeat = Instant::now() + HEARTBEAT;
                    Some(heartbeat(&state, subscription.snapshots.borrow().waited))
                }
            };
            let authentication = &subscription.authentication;
            let is_valid = state.http().is_still_valid(authentication, Timestamp::now());
            if !is_valid || state.rights(&authentication.identity) != subscription.role {
                let name = &authentication.identity.name;
                tracing::debug!(name, "closed an event stream: credentials no longer valid, or role changed");
                return None;
            }
            if let Some(changes) = changes {
                return Some((Ok(changes), (state, hub, subscription, reloads, sent, next_heartbeat)));
            }
        }
    })
}

/// The server's time, and how far the page is behind: how long changes have been waiting for the mirror, plus how long
/// the last one waited for the page; null while the mirror is stale.
fn heartbeat(state: &State, waited: Duration) -> Bytes {
    let now = Timestamp::now();
    let store = &state.shared.store;
    // The header of a page shows the age of a stale mirror.
    let behind = if store.freshness().is_synced() {
        format!("{:.1}", (store.behind(now) + waited).as_secs_f64())
    } else {
        "null".to_owned()
    };
    Bytes::from(format!("event: beat\ndata: {{\"now\":\"{now:.3}\",\"behind_seconds\":{behind}}}\n\n"))
}

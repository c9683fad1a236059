//! Room for connections, and who leaves when there is none.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Room for so many connections at once.
///
/// When it is full, the one that has waited longest for its client to ask for something leaves for the next: a thousand
/// connections that do nothing keep nobody out. Where all of them are being answered, the next waits.
#[derive(Debug)]
pub(super) struct Room {
    limit: usize,
    places: Mutex<Places>,
    /// Somebody has left or has become idle.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Places {
    next: u64,
    taken: HashMap<u64, Taken>,
}

#[derive(Debug)]
struct Taken {
    /// How many requests are being answered.
    busy: usize,
    /// Since when there is none.
    idle_since: Instant,
    leave: CancellationToken,
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Arc<Room>,
    number: u64,
    /// Cancelled when it has to leave.
    pub(super) leave: CancellationToken,
}

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub(super) struct Busy {
    place: Arc<Place>,
}

impl Room {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, places: Mutex::default(), changed: Notify::new() })
    }

    /// Takes a place, as soon as there is one.
    pub(super) async fn enter(self: &Arc<Self>) -> Place {
        loop {
            if let Some(place) = self.try_enter() {
                return place;
            }
            // Who leaves in between is remembered.
            self.changed.notified().await;
        }
    }

    fn try_enter(self: &Arc<Self>) -> Option<Place> {
        let mut places = self.places.lock();
        if places.taken.len() >= self.limit {
            let idle = places.taken.iter().filter(|(_, taken)| taken.busy == 0);
            let number = idle.min_by_key(|(_, taken)| taken.idle_since).map(|(number, _)| *number)?;
            if let Some(gone) = places.taken.remove(&number) {
                gone.leave.cancel();
            }
        }
        let number = places.next;
        places.next += 1;
        let leave = CancellationToken::new();
        places.taken.insert(number, Taken { busy: 0, idle_since: Instant::now(), leave: leave.clone() });
        drop(places);
        Some(Place { room: Arc::clone(self), number, leave })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.places.lock().taken.remove(&self.number);
        self.room.changed.notify_one();
    }
}

impl Busy {
    /// Keeps the place as long as the answer takes.
    pub(super) fn new(place: Arc<Place>) -> Self {
        if let Some(taken) = place.room.places.lock().taken.get_mut(&place.number) {
            taken.busy += 1;
        }
        Self { place }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let room = &self.place.room;
        if let Some(taken) = room.places.lock().taken.get_mut(&self.place.number) {
            taken.busy -= 1;
            taken.idle_since = Instant::now();
        }
        room.changed.notify_one();
    }
}

/// The body of an answer, whose connection is busy until it was given away.
pub(super) struct Answer {
    pub(super) body: Body,
    pub(super) _busy: Busy,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_is_idle_for_longest_leaves_and_who_is_busy_stays() {
        let room = Room::new(2);
        let first = Arc::new(room.enter().await);
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = Arc::new(room.enter().await);
        let busy = Busy::new(Arc::clone(&first));
        // The first is older, but busy.
        let third = room.enter().await;
        assert!(second.leave.is_cancelled() && !first.leave.is_cancelled());
        // One that had to leave frees nothing when it ends.
        drop(second);
        assert_eq!(room.places.lock().taken.len(), 2);

        let third = Arc::new(third);
        let also_busy = Busy::new(Arc::clone(&third));
        let mut fourth = std::pin::pin!(room.enter());
        assert!(fourth.as_mut().now_or_never().is_none(), "everyone is busy");
        drop(busy);
        let fourth = fourth.await;
        assert!(first.leave.is_cancelled() && !third.leave.is_cancelled());
        drop((also_busy, third, fourth, first));
        assert!(room.places.lock().taken.is_empty());
    }
}

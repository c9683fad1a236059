//! ConnectionLimiter for connections, and who leaves when there is none.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::web::http::host::network;

/// ConnectionLimiter for so many connections at once.
///
/// When it is full, the one that has waited longest for its client to ask for something, or to send the body that it said
/// would come, leaves for the next: a thousand connections that do nothing keep nobody out. Where all of them are being
/// answered, the next waits.
///
/// One address has three quarters of it at most, so that nobody alone can keep all others waiting.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    limit: usize,
    /// The most places of one address.
    share: usize,
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
    /// Where its client is.
    peer: IpAddr,
    /// How many requests are being answered.
    busy: usize,
    /// Since when there is none.
    idle_since: Instant,
    leave: CancellationToken,
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    limiter: Arc<ConnectionLimiter>,
    number: u64,
    /// Cancelled when it has to leave.
    pub(super) leave: CancellationToken,
}

/// A request, until it is answered and this is dropped.
#[derive(Debug)]
pub(super) struct Busy {
    place: Arc<Place>,
    /// Whether it is our turn: all of it has come.
    has_begun: AtomicBool,
}

/// Whether there is a place.
enum Entered {
    Yes(Place),
    /// As soon as somebody leaves.
    Later,
    /// Its address has as many as it may have, and all of them are busy.
    No,
}

impl ConnectionLimiter {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, share: (limit * 3 / 4).max(1), places: Mutex::default(), changed: Notify::new() })
    }

    /// Takes a place for a client at that address, as soon as there is one; `None` where it has too many of them.
    pub(super) async fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        loop {
            match self.try_enter(peer) {
                Entered::Yes(place) => return Some(place),
                Entered::No => return None,
                // Who leaves in between is remembered.
                Entered::Later => self.changed.notified().await,
            }
        }
    }

    fn try_enter(self: &Arc<Self>, peer: IpAddr) -> Entered {
        let peer = network(peer);
        let mut places = self.places.lock();
        let is_over = places.taken.values().filter(|taken| taken.peer == peer).count() >= self.share;
        if is_over || places.taken.len() >= self.limit {
            let may_leave = |taken: &Taken| taken.busy == 0 && (!is_over || taken.peer == peer);
            let idle = places.taken.iter().filter(|(_, taken)| may_leave(taken));
            let Some(number) = idle.min_by_key(|(_, taken)| taken.idle_since).map(|(number, _)| *number) else {
                return if is_over { Entered::No } else { Entered::Later };
            };
            if let Some(gone) = places.taken.remove(&number) {
                gone.leave.cancel();
            }
        }
        let number = places.next;
        places.next += 1;
        let leave = CancellationToken::new();
        places.taken.insert(number, Taken { peer, busy: 0, idle_since: Instant::now(), leave: leave.clone() });
        drop(places);
        Entered::Yes(Place { limiter: Arc::clone(self), number, leave })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.limiter.places.lock().taken.remove(&self.number);
        self.limiter.changed.notify_one();
    }
}

impl Busy {
    /// A request that came on that place, and of which there may be more to come.
    pub(super) fn new(place: Arc<Place>) -> Arc<Self> {
        if let Some(taken) = place.limiter.places.lock().taken.get_mut(&place.number) {
            taken.idle_since = Instant::now();
        }
        Arc::new(Self { place, has_begun: AtomicBool::new(false) })
    }

    /// Keeps the place from now on, as long as the answer takes.
    pub(super) fn begin(&self) {
        if self.has_begun.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(taken) = self.place.limiter.places.lock().taken.get_mut(&self.place.number) {
            taken.busy += 1;
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let limiter = &self.place.limiter;
        if self.has_begun.load(Ordering::Relaxed)
            && let Some(taken) = limiter.places.lock().taken.get_mut(&self.place.number)
        {
            taken.busy -= 1;
            taken.idle_since = Instant::now();
        }
        limiter.changed.notify_one();
    }
}

/// The body of a request, whose answer begins when all of it has come.
pub(super) struct RequestBody {
    pub(super) body: Incoming,
    pub(super) busy: Arc<Busy>,
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || (frame.is_ready() && self.body.is_end_stream()) {
            self.busy.begin();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer, whose connection is busy until it was given away.
pub(super) struct Answer {
    pub(super) body: Body,
    pub(super) _busy: Arc<Busy>,
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

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    async fn enter(limiter: &Arc<ConnectionLimiter>, last: u8) -> Arc<Place> {
        Arc::new(limiter.enter(address(last)).await.unwrap())
    }

    fn busy(place: &Arc<Place>) -> Arc<Busy> {
        let busy = Busy::new(Arc::clone(place));
        busy.begin();
        busy
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_idle_for_longest_leaves_and_who_is_busy_stays() {
        let limiter = ConnectionLimiter::new(2);
        let first = enter(&limiter, 1).await;
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = enter(&limiter, 2).await;
        let of_first = busy(&first);
        // The first is older, but busy.
        let third = enter(&limiter, 3).await;
        assert!(second.leave.is_cancelled() && !first.leave.is_cancelled());
        // One that had to leave frees nothing when it ends.
        drop(second);
        assert_eq!(limiter.places.lock().taken.len(), 2);

        let of_third = busy(&third);
        let mut fourth = std::pin::pin!(limiter.enter(address(4)));
        assert!(fourth.as_mut().now_or_never().is_none(), "everyone is busy");
        drop(of_first);
        let fourth = fourth.await;
        assert!(first.leave.is_cancelled() && !third.leave.is_cancelled());
        drop((of_third, third, fourth, first));
        assert!(limiter.places.lock().taken.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_not_sent_all_of_a_request_is_not_busy_yet() {
        let limiter = ConnectionLimiter::new(1);
        let first = enter(&limiter, 1).await;
        let sending = Busy::new(Arc::clone(&first));
        let second = enter(&limiter, 2).await;
        assert!(first.leave.is_cancelled());
        // What comes too late changes nothing.
        sending.begin();
        drop((sending, first));
        let _of_second = busy(&second);
        assert!(limiter.enter(address(3)).now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_has_three_quarters_of_the_room_and_no_more() {
        let limiter = ConnectionLimiter::new(8);
        let mut kept = Vec::new();
        for _ in 0..6 {
            let place = enter(&limiter, 1).await;
            kept.push((busy(&place), place));
        }
        assert!(limiter.enter(address(1)).await.is_none(), "it has as many as it may have, and all are busy");
        for last in [2, 3] {
            let place = enter(&limiter, last).await;
            kept.push((busy(&place), place));
        }
        // One of its own makes room for it, and none of the others'.
        drop(kept.remove(0).0);
        let next = enter(&limiter, 1).await;
        assert!(!next.leave.is_cancelled() && kept.iter().all(|(_, place)| !place.leave.is_cancelled()));
        // Whoever has a network of IPv6 is one.
        let limiter = ConnectionLimiter::new(4);
        let of = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
        let mut kept = Vec::new();
        for last in 0..3 {
            let place = Arc::new(limiter.enter(of(last)).await.unwrap());
            kept.push((busy(&place), place));
        }
        assert!(limiter.enter(of(3)).await.is_none());
    }
}

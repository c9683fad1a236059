//! The limit for connections, and which one is evicted when it is reached.

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

use crate::web::http::address::network;

/// A limit for connections open at once.
///
/// At the limit, a new connection evicts the one that has been idle for longest: that waits for a request, or for the
/// rest of one. So any number of idle connections cannot lock others out. Where all have a request in flight, a new one
/// waits.
///
/// One address has three quarters of the slots at most, so that it cannot make all others wait.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    limit: usize,
    /// The most slots of one address.
    share: usize,
    slots: Mutex<Slots>,
    /// A slot was released or has become idle.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Slots {
    next_id: u64,
    used: HashMap<u64, SlotState>,
}

#[derive(Debug)]
struct SlotState {
    /// The address of the client.
    peer: IpAddr,
    /// How many complete requests are in flight.
    active: usize,
    /// Since when there is none.
    idle_since: Instant,
    evicted: CancellationToken,
}

/// The slot of a connection, released when it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    limiter: Arc<ConnectionLimiter>,
    id: u64,
    /// Cancelled when the connection is evicted.
    pub(super) evicted: CancellationToken,
}

/// A request, until its response was sent and this is dropped.
#[derive(Debug)]
pub(super) struct ActiveRequest {
    slot: Arc<ConnectionSlot>,
    /// Whether all of it was received, so that its connection is not idle.
    has_started: AtomicBool,
}

/// The outcome of asking for a slot.
enum Admission {
    Admitted(ConnectionSlot),
    /// All slots are active.
    Wait,
    /// Its address has its share of the slots, and all of them are active.
    Refused,
}

impl ConnectionLimiter {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, share: (limit * 3 / 4).max(1), slots: Mutex::default(), changed: Notify::new() })
    }

    /// Acquires a slot for a client at that address, as soon as there is one; `None` where the address has too many.
    pub(super) async fn acquire(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionSlot> {
        loop {
            match self.try_acquire(peer) {
                Admission::Admitted(slot) => return Some(slot),
                Admission::Refused => return None,
                // A notification in between is stored.
                Admission::Wait => self.changed.notified().await,
            }
        }
    }

    fn try_acquire(self: &Arc<Self>, peer: IpAddr) -> Admission {
        let peer = network(peer);
        let mut slots = self.slots.lock();
        let is_over = slots.used.values().filter(|slot| slot.peer == peer).count() >= self.share;
        if is_over || slots.used.len() >= self.limit {
            let is_evictable = |slot: &SlotState| slot.active == 0 && (!is_over || slot.peer == peer);
            let idle = slots.used.iter().filter(|(_, slot)| is_evictable(slot));
            let Some(id) = idle.min_by_key(|(_, slot)| slot.idle_since).map(|(id, _)| *id) else {
                return if is_over { Admission::Refused } else { Admission::Wait };
            };
            if let Some(idle) = slots.used.remove(&id) {
                idle.evicted.cancel();
            }
        }
        let id = slots.next_id;
        slots.next_id += 1;
        let evicted = CancellationToken::new();
        slots.used.insert(id, SlotState { peer, active: 0, idle_since: Instant::now(), evicted: evicted.clone() });
        drop(slots);
        Admission::Admitted(ConnectionSlot { limiter: Arc::clone(self), id, evicted })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.limiter.slots.lock().used.remove(&self.id);
        self.limiter.changed.notify_one();
    }
}

impl ActiveRequest {
    /// A request on that connection, whose body may not be complete yet.
    pub(super) fn new(slot: Arc<ConnectionSlot>) -> Arc<Self> {
        if let Some(state) = slot.limiter.slots.lock().used.get_mut(&slot.id) {
            state.idle_since = Instant::now();
        }
        Arc::new(Self { slot, has_started: AtomicBool::new(false) })
    }

    /// Keeps the connection from being evicted from now on, until the response was sent.
    pub(super) fn start(&self) {
        if self.has_started.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(state) = self.slot.limiter.slots.lock().used.get_mut(&self.slot.id) {
            state.active += 1;
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let limiter = &self.slot.limiter;
        if self.has_started.load(Ordering::Relaxed)
            && let Some(state) = limiter.slots.lock().used.get_mut(&self.slot.id)
        {
            state.active -= 1;
            state.idle_since = Instant::now();
        }
        limiter.changed.notify_one();
    }
}

/// The body of a request, which starts the request when all of it was received.
pub(super) struct RequestBody {
    pub(super) body: Incoming,
    pub(super) active: Arc<ActiveRequest>,
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || (frame.is_ready() && self.body.is_end_stream()) {
            self.active.start();
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

/// The body of a response, whose connection is active until it was sent.
pub(super) struct ResponseBody {
    pub(super) body: Body,
    pub(super) _active: Arc<ActiveRequest>,
}

impl HttpBody for ResponseBody {
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

    async fn acquire(limiter: &Arc<ConnectionLimiter>, last: u8) -> Arc<ConnectionSlot> {
        Arc::new(limiter.acquire(address(last)).await.unwrap())
    }

    fn start(slot: &Arc<ConnectionSlot>) -> Arc<ActiveRequest> {
        let active = ActiveRequest::new(Arc::clone(slot));
        active.start();
        active
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_idle_for_longest_is_evicted_and_active_ones_stay() {
        let limiter = ConnectionLimiter::new(2);
        let first = acquire(&limiter, 1).await;
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = acquire(&limiter, 2).await;
        let of_first = start(&first);
        // The first is older, but active.
        let third = acquire(&limiter, 3).await;
        assert!(second.evicted.is_cancelled() && !first.evicted.is_cancelled());
        // An evicted connection releases nothing when it is closed.
        drop(second);
        assert_eq!(limiter.slots.lock().used.len(), 2);

        let of_third = start(&third);
        let mut fourth = std::pin::pin!(limiter.acquire(address(4)));
        assert!(fourth.as_mut().now_or_never().is_none(), "all are active");
        drop(of_first);
        let fourth = fourth.await;
        assert!(first.evicted.is_cancelled() && !third.evicted.is_cancelled());
        drop((of_third, third, fourth, first));
        assert!(limiter.slots.lock().used.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_until_all_of_a_request_was_received() {
        let limiter = ConnectionLimiter::new(1);
        let first = acquire(&limiter, 1).await;
        let sending = ActiveRequest::new(Arc::clone(&first));
        let second = acquire(&limiter, 2).await;
        assert!(first.evicted.is_cancelled());
        // After the eviction this changes nothing.
        sending.start();
        drop((sending, first));
        let _of_second = start(&second);
        assert!(limiter.acquire(address(3)).now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_has_three_quarters_of_the_slots_at_most() {
        let limiter = ConnectionLimiter::new(8);
        let mut kept = Vec::new();
        for _ in 0..6 {
            let slot = acquire(&limiter, 1).await;
            kept.push((start(&slot), slot));
        }
        assert!(limiter.acquire(address(1)).await.is_none(), "it has its share, and all are active");
        for last in [2, 3] {
            let slot = acquire(&limiter, last).await;
            kept.push((start(&slot), slot));
        }
        // It evicts one of its own, and none of the others.
        drop(kept.remove(0).0);
        let next = acquire(&limiter, 1).await;
        assert!(!next.evicted.is_cancelled() && kept.iter().all(|(_, slot)| !slot.evicted.is_cancelled()));
        // An IPv6 network counts as one address.
        let limiter = ConnectionLimiter::new(4);
        let of = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
        let mut kept = Vec::new();
        for last in 0..3 {
            let slot = Arc::new(limiter.acquire(of(last)).await.unwrap());
            kept.push((start(&slot), slot));
        }
        assert!(limiter.acquire(of(3)).await.is_none());
    }
}

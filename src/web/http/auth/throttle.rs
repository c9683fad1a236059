//! Growing delays after failed logins.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::web::http::address::network;

/// The first delay; each further one is twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(100);

/// The longest delay.
const MAX_DELAY: Duration = Duration::from_secs(5);

/// How many failures above the free ones lead to the longest delay.
const MAX_STEPS: u32 = 6;

/// How many addresses are tracked. Beyond that the one whose last failure is the longest ago is dropped, and as long as
/// that many have failed recently, all logins are delayed.
const MAX_ADDRESSES: usize = 1024;

/// One address. A few mistyped passwords are normal.
const PER_ADDRESS: ThrottlePolicy = ThrottlePolicy { free: 3, recovery: Duration::from_secs(30) };

/// All addresses together. After a change of passwords, each program fails first with its old one.
const GLOBAL: ThrottlePolicy = ThrottlePolicy { free: 100, recovery: Duration::from_secs(1) };

/// How failures turn into a delay.
#[derive(Clone, Copy)]
struct ThrottlePolicy {
    /// This many failures cause none.
    free: u32,
    /// One failure is forgotten each time.
    recovery: Duration,
}

/// Failures that still count.
#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    /// When the count was updated.
    at: Instant,
}

/// Failed logins, by the address that they came from and all together.
///
/// The delay is before the verification and not after it: otherwise a client that guesses could hang up as soon as the
/// response is late, and know that the guess was wrong.
#[derive(Debug, Default)]
pub(super) struct LoginThrottle {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    by_address: HashMap<Option<IpAddr>, Failures>,
    global: Option<Failures>,
}

impl Failures {
    /// Those that still count at `now`.
    fn now(self, policy: ThrottlePolicy, now: Instant) -> Self {
        let every = policy.recovery;
        let gone = now.saturating_duration_since(self.at).as_millis() / every.as_millis();
        let gone = u32::try_from(gone).unwrap_or(u32::MAX);
        match self.count.checked_sub(gone).filter(|left| *left > 0) {
            Some(count) => Self { count, at: self.at + every * gone },
            None => Self { count: 0, at: now },
        }
    }

    fn add(before: Option<Self>, policy: ThrottlePolicy, now: Instant) -> Self {
        let before = before.map_or(Self { count: 0, at: now }, |before| before.now(policy, now));
        Self { count: (before.count + 1).min(policy.free + MAX_STEPS), ..before }
    }

    fn delay(before: Option<Self>, policy: ThrottlePolicy, now: Instant) -> Duration {
        let count = before.map_or(0, |before| before.now(policy, now).count);
        count.checked_sub(policy.free).map_or(Duration::ZERO, |steps| (FIRST_DELAY * 2u32.pow(steps)).min(MAX_DELAY))
    }
}

impl LoginThrottle {
    /// The delay of a login from that address now: for its own failures; and for those of all addresses only where it
    /// has failed itself, or where more addresses have failed than can be tracked. So guesses from elsewhere do not
    /// delay an address without failures.
    pub(super) fn delay(&self, peer: Option<IpAddr>) -> Duration {
        let (now, inner) = (Instant::now(), self.inner.lock());
        let own = inner.by_address.get(&peer.map(network)).copied();
        let has_failed = own.is_some_and(|own| own.now(PER_ADDRESS, now).count > 0);
        let is_flood = || {
            let is_fresh = |failures: &&Failures| failures.now(PER_ADDRESS, now).count > 0;
            inner.by_address.len() >= MAX_ADDRESSES
                && inner.by_address.values().filter(is_fresh).count() >= MAX_ADDRESSES
        };
        let own_delay = Failures::delay(own, PER_ADDRESS, now);
        if has_failed || is_flood() { own_delay.max(Failures::delay(inner.global, GLOBAL, now)) } else { own_delay }
    }

    /// Records a failure. That of an address which is delayed for its own failures counts for that address only.
    pub(super) fn failed(&self, peer: Option<IpAddr>) {
        let (now, peer, mut inner) = (Instant::now(), peer.map(network), self.inner.lock());
        let before = inner.by_address.get(&peer).copied();
        if Failures::delay(before, PER_ADDRESS, now).is_zero() {
            inner.global = Some(Failures::add(inner.global, GLOBAL, now));
        }
        if before.is_none() && inner.by_address.len() >= MAX_ADDRESSES {
            let oldest = inner.by_address.iter().min_by_key(|(_, failures)| failures.at).map(|(peer, _)| *peer);
            oldest.map(|oldest| inner.by_address.remove(&oldest));
        }
        inner.by_address.insert(peer, Failures::add(before, PER_ADDRESS, now));
    }

    /// Forgets the failures of an address, after a login from there was verified.
    pub(super) fn reset(&self, peer: Option<IpAddr>) {
        self.inner.lock().by_address.remove(&peer.map(network));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn each_failure_beyond_a_few_doubles_the_delay_and_time_or_a_success_ends_it() {
        let throttle = LoginThrottle::default();
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|text| Some(address(text)));
        let mut delays = Vec::new();
        for _ in 0..12 {
            delays.push(u64::try_from(throttle.delay(one).as_millis()).unwrap());
            throttle.failed(one);
        }
        assert_eq!(delays, [0, 0, 0, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
        assert_eq!(throttle.delay(other), Duration::ZERO);
        // One is forgotten every 30 s, however many there were.
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(throttle.delay(one), Duration::from_millis(1600));
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(throttle.delay(one), Duration::from_millis(800));
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(throttle.delay(one), Duration::ZERO);
        for _ in 0..12 {
            throttle.failed(one);
        }
        throttle.reset(one);
        assert_eq!(throttle.delay(one), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_table_is_bounded_and_a_flood_of_addresses_is_delayed() {
        let throttle = LoginThrottle::default();
        for n in 0..10_000u32 {
            throttle.failed(Some(IpAddr::V4(n.into())));
        }
        assert_eq!(throttle.inner.lock().by_address.len(), MAX_ADDRESSES);
        assert_eq!(throttle.delay(Some(address("203.0.113.9"))), MAX_DELAY);
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(throttle.delay(Some(address("203.0.113.9"))), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_without_failures_is_not_delayed_for_those_of_others() {
        let throttle = LoginThrottle::default();
        let [first, mistyped] = ["203.0.113.9", "203.0.113.10"].map(|text| Some(address(text)));
        // One address that guesses as fast as it can.
        for _ in 0..10_000 {
            throttle.failed(Some(address("192.0.2.1")));
            tokio::time::advance(Duration::from_millis(300)).await;
        }
        throttle.failed(mistyped);
        assert_eq!([throttle.delay(first), throttle.delay(mistyped)], [Duration::ZERO; 2]);
        // Many addresses: only those that have failed are delayed.
        for n in 0..500u32 {
            throttle.failed(Some(IpAddr::V4(n.into())));
        }
        assert_eq!([throttle.delay(first), throttle.delay(mistyped)], [Duration::ZERO, MAX_DELAY]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_ipv6_network_counts_as_one_address() {
        let throttle = LoginThrottle::default();
        for n in 0..5 {
            throttle.failed(Some(address(&format!("2001:db8::{n}"))));
        }
        assert_eq!(throttle.delay(Some(address("2001:db8::ffff"))), FIRST_DELAY * 4);
        assert_eq!(throttle.delay(Some(address("2001:db8:0:1::1"))), Duration::ZERO);
    }
}

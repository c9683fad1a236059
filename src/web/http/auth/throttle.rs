//! Who fails again and again waits longer and longer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::web::http::host::network;

/// The first wait; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(100);

/// The longest wait.
const LONGEST: Duration = Duration::from_secs(5);

/// How many failures above the free ones lead to the longest wait.
const STEPS: u32 = 6;

/// How many addresses are remembered. Beyond that the one whose last failure is the longest ago is forgotten, and as long
/// as that many have failed lately, everyone who logs in is slowed.
const MOST_ADDRESSES: usize = 1024;

/// One address. Somebody mistypes.
const OF_ONE: Kind = Kind { free: 3, forgotten_every: Duration::from_secs(30) };

/// All of them together. With passwords renewed, each program's first tries with the old one fail.
const OF_ALL: Kind = Kind { free: 100, forgotten_every: Duration::from_secs(1) };

/// How many failures slow nobody, and how fast they are forgotten.
#[derive(Clone, Copy)]
struct Kind {
    free: u32,
    forgotten_every: Duration,
}

/// Failures that are not forgotten yet.
#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    /// When the count was right.
    at: Instant,
}

/// Failed logins, by the address that they came from and all together.
///
/// The wait is before a password is verified and not after it: else whoever guesses hangs up as soon as the answer is
/// late, and knows.
#[derive(Debug, Default)]
pub(super) struct LoginThrottle {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    of_one: HashMap<Option<IpAddr>, Failures>,
    of_all: Option<Failures>,
}

impl Failures {
    /// What is left of them.
    fn now(self, kind: Kind, now: Instant) -> Self {
        let every = kind.forgotten_every;
        let gone = now.saturating_duration_since(self.at).as_millis() / every.as_millis();
        let gone = u32::try_from(gone).unwrap_or(u32::MAX);
        match self.count.checked_sub(gone).filter(|left| *left > 0) {
            Some(count) => Self { count, at: self.at + every * gone },
            None => Self { count: 0, at: now },
        }
    }

    fn more(before: Option<Self>, kind: Kind, now: Instant) -> Self {
        let before = before.map_or(Self { count: 0, at: now }, |before| before.now(kind, now));
        Self { count: (before.count + 1).min(kind.free + STEPS), ..before }
    }

    fn wait(before: Option<Self>, kind: Kind, now: Instant) -> Duration {
        let count = before.map_or(0, |before| before.now(kind, now).count);
        count.checked_sub(kind.free).map_or(Duration::ZERO, |steps| (FIRST * 2u32.pow(steps)).min(LONGEST))
    }
}

impl LoginThrottle {
    /// How long somebody from there waits now: for the failures of that address, and for those of all only where it has
    /// failed itself, or where there are more addresses than can be remembered. Who has failed at nothing waits for
    /// nobody who guesses elsewhere.
    pub(super) fn wait(&self, peer: Option<IpAddr>) -> Duration {
        let (now, inner) = (Instant::now(), self.inner.lock());
        let own = inner.of_one.get(&peer.map(network)).copied();
        let has_failed = own.is_some_and(|own| own.now(OF_ONE, now).count > 0);
        let is_flood = || {
            let is_fresh = |failures: &&Failures| failures.now(OF_ONE, now).count > 0;
            inner.of_one.len() >= MOST_ADDRESSES && inner.of_one.values().filter(is_fresh).count() >= MOST_ADDRESSES
        };
        let of_one = Failures::wait(own, OF_ONE, now);
        if has_failed || is_flood() { of_one.max(Failures::wait(inner.of_all, OF_ALL, now)) } else { of_one }
    }

    /// Remembers a failure. One of an address that is slowed for its own counts for that address alone.
    pub(super) fn failed(&self, peer: Option<IpAddr>) {
        let (now, peer, mut inner) = (Instant::now(), peer.map(network), self.inner.lock());
        let before = inner.of_one.get(&peer).copied();
        if Failures::wait(before, OF_ONE, now).is_zero() {
            inner.of_all = Some(Failures::more(inner.of_all, OF_ALL, now));
        }
        if before.is_none() && inner.of_one.len() >= MOST_ADDRESSES {
            let oldest = inner.of_one.iter().min_by_key(|(_, failures)| failures.at).map(|(peer, _)| *peer);
            oldest.map(|oldest| inner.of_one.remove(&oldest));
        }
        inner.of_one.insert(peer, Failures::more(before, OF_ONE, now));
    }

    /// Forgets the failures of an address, from which somebody has shown a right password.
    pub(super) fn forgive(&self, peer: Option<IpAddr>) {
        self.inner.lock().of_one.remove(&peer.map(network));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn each_failure_beyond_a_few_doubles_the_wait_and_time_or_a_success_end_it() {
        let throttle = LoginThrottle::default();
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|text| Some(address(text)));
        let mut waits = Vec::new();
        for _ in 0..12 {
            waits.push(u64::try_from(throttle.wait(one).as_millis()).unwrap());
            throttle.failed(one);
        }
        assert_eq!(waits, [0, 0, 0, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
        assert_eq!(throttle.wait(other), Duration::ZERO);
        // Each half minute one is forgotten, however many there were.
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(throttle.wait(one), Duration::from_millis(1600));
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(throttle.wait(one), Duration::from_millis(800));
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(throttle.wait(one), Duration::ZERO);
        for _ in 0..12 {
            throttle.failed(one);
        }
        throttle.forgive(one);
        assert_eq!(throttle.wait(one), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_addresses_takes_no_more_room_and_slows_itself() {
        let throttle = LoginThrottle::default();
        for n in 0..10_000u32 {
            throttle.failed(Some(IpAddr::V4(n.into())));
        }
        assert_eq!(throttle.inner.lock().of_one.len(), MOST_ADDRESSES);
        assert_eq!(throttle.wait(Some(address("203.0.113.9"))), LONGEST);
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(throttle.wait(Some(address("203.0.113.9"))), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_failed_at_nothing_does_not_wait_for_those_who_guess_elsewhere() {
        let throttle = LoginThrottle::default();
        let [first, mistyped] = ["203.0.113.9", "203.0.113.10"].map(|text| Some(address(text)));
        // One address that never stops, as fast as it is let.
        for _ in 0..10_000 {
            throttle.failed(Some(address("192.0.2.1")));
            tokio::time::advance(Duration::from_millis(300)).await;
        }
        throttle.failed(mistyped);
        assert_eq!([throttle.wait(first), throttle.wait(mistyped)], [Duration::ZERO; 2]);
        // Many addresses: only those wait that have failed.
        for n in 0..500u32 {
            throttle.failed(Some(IpAddr::V4(n.into())));
        }
        assert_eq!([throttle.wait(first), throttle.wait(mistyped)], [Duration::ZERO, LONGEST]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_a_whole_network_of_ipv6_is_one() {
        let throttle = LoginThrottle::default();
        for n in 0..5 {
            throttle.failed(Some(address(&format!("2001:db8::{n}"))));
        }
        assert_eq!(throttle.wait(Some(address("2001:db8::ffff"))), FIRST * 4);
        assert_eq!(throttle.wait(Some(address("2001:db8:0:1::1"))), Duration::ZERO);
    }
}

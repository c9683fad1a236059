//! How the servers' clock stands to ours.
//!
//! The instants of the tree are the servers', and the ages that people read are counted by our clock. ZooKeeper has no
//! request for the time, and the mirror writes nothing, so the difference is learnt from changes as they are seen: a
//! change cannot be seen before it was made.

use jiff::Timestamp;

/// Clocks that are kept by NTP agree within this; a difference this small may as well be the way of the news.
const TRUSTED_MS: i64 = 100;

/// How long a window is open. Two windows together are remembered: long enough that a slow quarter of a minute is no
/// offset, short enough that a corrected clock is.
const WINDOW_MS: i64 = 5 * 60 * 1000;

/// By how many milliseconds the servers' clock is ahead of ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offset(i64);

impl Offset {
    /// An instant of ours by the servers' clock, in milliseconds.
    pub(super) fn to_server(self, own: Timestamp) -> i64 {
        own.as_millisecond().saturating_add(self.0)
    }

    /// An instant of the servers' by our clock. One out of all bounds becomes the nearest that can be said.
    pub(super) fn to_own(self, server_ms: i64) -> Timestamp {
        let own = server_ms.saturating_sub(self.0);
        let bounds = Timestamp::MIN.as_millisecond()..=Timestamp::MAX.as_millisecond();
        Timestamp::from_millisecond(own.clamp(*bounds.start(), *bounds.end())).unwrap_or(Timestamp::MAX)
    }
}

/// Learns the [`Offset`] from changes and the instants at which they were seen.
///
/// Seen `s` by our clock, made `m` by the servers', the offset is at least `m - s`; the largest of many such bounds is
/// nearly exact, short by the fastest way of the news. Bounds are forgotten after one to two windows, since clocks are
/// corrected now and then.
#[derive(Debug, Default)]
pub(super) struct Clock {
    current: Option<i64>,
    previous: Option<i64>,
    opened_ms: i64,
}

impl Clock {
    /// Takes note of a change made at `made_ms` by the servers' clock and seen at `seen` by ours.
    pub(super) fn saw(&mut self, made_ms: i64, seen: Timestamp) {
        let seen_ms = seen.as_millisecond();
        // Our own clock may be set back, too.
        if !(0..WINDOW_MS).contains(&(seen_ms - self.opened_ms)) {
            self.previous = self.current.take();
            self.opened_ms = seen_ms;
        }
        self.current = self.current.max(Some(made_ms.saturating_sub(seen_ms)));
    }

    /// The offset as far as it is known; none before the first change.
    pub(super) fn offset(&self) -> Offset {
        match self.current.max(self.previous) {
            Some(bound) if !(-TRUSTED_MS..=0).contains(&bound) => Offset(bound),
            Some(_) | None => Offset(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(ms).unwrap()
    }

    #[test]
    fn clocks_that_agree_have_no_offset_however_slow_the_news() {
        let mut clock = Clock::default();
        assert_eq!(clock.offset(), Offset(0));
        for delay in [3, 40, 2_000, 7] {
            clock.saw(1_000_000, at(1_000_000 + delay));
        }
        assert_eq!(clock.offset(), Offset(0));
    }

    #[test]
    fn a_server_ahead_or_behind_is_found_and_forgotten_again() {
        for true_offset in [90_000, -90_000] {
            let mut clock = Clock::default();
            for i in 0..1000 {
                clock.saw(1_000_000 + i * 10 + true_offset, at(1_000_000 + i * 10 + 5 + i % 7));
            }
            assert_eq!(clock.offset(), Offset(true_offset - 5));
            assert_eq!(clock.offset().to_own(1_000_000 + true_offset), at(1_000_005));
            for window in 1..=2 {
                let now = 1_000_000 + window * 2 * WINDOW_MS;
                clock.saw(now, at(now + 5));
            }
            assert_eq!(clock.offset(), Offset(0));
        }
    }

    #[test]
    fn no_instant_is_out_of_bounds() {
        for at in [i64::MIN, i64::MAX, 0] {
            let _ = Offset(90).to_own(at);
            let _ = Offset(-90).to_own(at);
        }
    }
}

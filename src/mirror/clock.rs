//! How the servers' clock stands to ours.
//!
//! The instants of the tree are the servers', and the ages that people read are counted by our clock. ZooKeeper has no
//! request for the time, and the mirror writes nothing, so the difference is learnt from changes as they are seen: a
//! change cannot be seen before it was made. On a quiet tree nothing changes; there it is learnt from a write that
//! another part makes for us (see [`Timekeeper`](super::Timekeeper)), which lies between two moments of ours.

use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// Clocks that are kept by NTP agree within this; a difference this small may as well be the way of the news.
const TRUSTED_MS: i64 = 100;

/// How long a window is open. Two windows together are remembered: long enough that a slow quarter of a minute is no
/// offset, short enough that a corrected clock is.
const WINDOW: Duration = Duration::from_mins(5);

/// Readings of two clocks this close to each other are of one moment.
const CLOSE: Duration = Duration::from_millis(5);

/// How often two clocks are read again until their readings are close.
const READINGS: usize = 5;

/// By how many milliseconds the servers' clock is ahead of ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offset(i64);

impl Offset {
    #[cfg(test)]
    pub(super) const fn of_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// The same in milliseconds.
    pub(super) fn as_ms(self) -> i64 {
        self.0
    }

    /// An instant of ours by the servers' clock, in milliseconds.
    pub(super) fn to_server(self, own: Timestamp) -> i64 {
        own.as_millisecond().saturating_add(self.0)
    }

    /// The same as an instant. One out of all bounds becomes the nearest that can be said.
    pub(super) fn to_server_time(self, own: Timestamp) -> Timestamp {
        Self(0).to_own(self.to_server(own))
    }

    /// An instant of the servers' by our clock. One out of all bounds becomes the nearest that can be said.
    pub(super) fn to_own(self, server_ms: i64) -> Timestamp {
        let own = server_ms.saturating_sub(self.0);
        let bounds = Timestamp::MIN.as_millisecond()..=Timestamp::MAX.as_millisecond();
        Timestamp::from_millisecond(own.clamp(*bounds.start(), *bounds.end())).unwrap_or(Timestamp::MAX)
    }
}

/// An instant by our clock and by the time that has gone by, which no setting of a clock changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    own: Timestamp,
    /// Since the machine was started.
    elapsed: Duration,
}

impl Moment {
    /// The time that goes by is taken from a clock that goes on while the machine is suspended: the servers' does, too.
    ///
    /// A thread that has to wait for a processor between the two readings would find our clock set forward. So readings
    /// that lie far apart are made again, a few times; then the closest are as good as it gets.
    pub(super) fn now() -> Self {
        closest(|| {
            let before = uptime();
            let own = Timestamp::now();
            (uptime().saturating_sub(before), Self { own, elapsed: before })
        })
    }

    /// This moment, had our clock been set forward by so many milliseconds before it.
    #[cfg(test)]
    pub(super) fn set_by(self, ms: i64) -> Self {
        Self { own: self.own + jiff::SignedDuration::from_millis(ms), ..self }
    }

    pub(super) fn own(self) -> Timestamp {
        self.own
    }

    /// From an earlier moment to this one.
    pub(super) fn since(self, earlier: Self) -> Duration {
        self.elapsed.saturating_sub(earlier.elapsed)
    }

    /// By how many milliseconds our clock was set forward between an earlier moment and this one; 0 where it was not.
    pub(super) fn set_since(self, earlier: Self) -> i64 {
        let set_by = self.ahead_us().saturating_sub(earlier.ahead_us()) / 1_000;
        if (-TRUSTED_MS..=TRUSTED_MS).contains(&set_by) { 0 } else { set_by }
    }

    fn elapsed_us(self) -> i64 {
        i64::try_from(self.elapsed.as_micros()).unwrap_or(i64::MAX)
    }

    /// By how much our clock is ahead of the time that has gone by. It stays the same until our clock is set; in
    /// milliseconds, two roundings would come between.
    fn ahead_us(self) -> i64 {
        self.own.as_microsecond().saturating_sub(self.elapsed_us())
    }
}

/// The offset as it was at a moment, for later callers: our clock may have been set since, and nothing changed
/// from which that could be seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct OffsetAt {
    offset: Offset,
    at: Moment,
}

impl Default for OffsetAt {
    /// None that is known of.
    fn default() -> Self {
        Self { offset: Offset(0), at: Moment::now() }
    }
}

/// The first of some readings that is close, or else the closest. Each comes with how far its clocks were read apart.
fn closest<T>(mut read: impl FnMut() -> (Duration, T)) -> T {
    let mut closest = read();
    for _ in 0..READINGS {
        if closest.0 < CLOSE {
            break;
        }
        let next = read();
        if next.0 < closest.0 {
            closest = next;
        }
    }
    closest.1
}

/// The time since the machine was started.
fn uptime() -> Duration {
    let up = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(up.tv_sec).unwrap_or(0), u32::try_from(up.tv_nsec).unwrap_or(0))
}

impl OffsetAt {
    pub(super) fn new(offset: Offset, at: Moment) -> Self {
        Self { offset, at }
    }

    /// The offset now. It stays what it is, to the millisecond, unless our clock was set.
    pub(super) fn offset(self, now: Moment) -> Offset {
        Offset(self.offset.0.saturating_sub(now.set_since(self.at)))
    }
}

/// Learns the [`Offset`] from changes and the moments at which they were seen.
///
/// Seen at `s` by our clock, made `m` by the servers', the offset is at least `m - s`; the largest of many such bounds
/// is nearly exact, short by the fastest way of the news. What is remembered counts `s` by the time that has gone by,
/// so that our clock may be set at any time. Bounds are forgotten after one to two windows, since the servers' clocks
/// are corrected now and then, too.
#[derive(Debug, Default)]
pub(super) struct Clock {
    current_us: Option<i64>,
    previous_us: Option<i64>,
    opened: Duration,
    /// What the offset is at most, by the last write that was made to learn it; `None` where there was none, or where a
    /// change has shown since that the servers' clock was set.
    most_us: Option<i64>,
}

impl Clock {
    /// Takes note of a write made at `made_ms` by the servers' clock, not before and not after two moments. What was
    /// learnt before and does not agree with it is forgotten: a clock was set.
    pub(super) fn measured(&mut self, made_ms: i64, (before, after): (Moment, Moment)) {
        let most_us = made_ms.saturating_add(1).saturating_mul(1_000).saturating_sub(before.elapsed_us());
        for bound in [&mut self.current_us, &mut self.previous_us] {
            *bound = bound.filter(|bound| *bound <= most_us);
        }
        self.most_us = Some(most_us);
        self.saw(made_ms, after);
    }

    /// Whether the offset is known from both sides, and so is not only what it is at least.
    pub(super) fn is_measured(&self) -> bool {
        self.most_us.is_some()
    }

    /// Whether anything is known of it.
    pub(super) fn is_known(&self) -> bool {
        self.current_us.or(self.previous_us).is_some()
    }

    /// Takes note of a change made at `made_ms` by the servers' clock and seen at `seen`.
    pub(super) fn saw(&mut self, made_ms: i64, seen: Moment) {
        if seen.elapsed.saturating_sub(self.opened) >= WINDOW {
            self.previous_us = self.current_us.take();
            self.opened = seen.elapsed;
        }
        let bound_us = made_ms.saturating_mul(1_000).saturating_sub(seen.elapsed_us());
        self.current_us = self.current_us.max(Some(bound_us));
        self.most_us = self.most_us.filter(|most_us| bound_us <= *most_us);
    }

    /// The offset now as far as it is known; none before the first change.
    pub(super) fn offset(&self, now: Moment) -> Offset {
        let Some(bound_us) = self.current_us.max(self.previous_us) else { return Offset(0) };
        let offset = |bound_us: i64| bound_us.saturating_sub(now.ahead_us()).div_euclid(1_000);
        let (least, most) = (offset(bound_us), self.most_us.map(offset));
        // As far as is known the clocks may agree, and then they do.
        let may_agree = least <= 0 && (least >= -TRUSTED_MS || most.is_some_and(|most| most >= 0));
        Offset(if may_agree { 0 } else { least })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_MS: i64 = 5 * 60 * 1_000;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(ms).unwrap()
    }

    /// So long after the start, with our clock at it plus something.
    fn moment(elapsed_ms: i64, own_ms: i64) -> Moment {
        Moment { own: at(own_ms), elapsed: Duration::from_millis(elapsed_ms.try_into().unwrap()) }
    }

    #[test]
    fn a_moment_tells_what_has_gone_by_and_by_how_much_our_clock_was_set() {
        let earlier = moment(10_000, 1_000_000);
        let later = |set_by| moment(40_000, 1_030_000 + set_by);
        assert_eq!(later(60_000).since(earlier), Duration::from_secs(30));
        assert_eq!(later(60_000).own().as_millisecond(), 1_090_000);
        for (set_by, seen) in [
            (60_000, 60_000),
            (-60_000, -60_000),
            (TRUSTED_MS + 1, TRUSTED_MS + 1),
            (TRUSTED_MS, 0),
            (-TRUSTED_MS, 0),
            (-TRUSTED_MS - 1, -TRUSTED_MS - 1),
        ] {
            assert_eq!(later(set_by).set_since(earlier), seen);
        }
        let now = Moment::now();
        assert!(now.since(Moment::now()).is_zero(), "none of the future has gone by");
        assert!(!now.elapsed.is_zero(), "the machine was started before");
        assert_eq!(Offset(5_000).to_server_time(earlier.own()).as_millisecond(), 1_005_000);
    }

    #[test]
    fn clocks_are_read_again_until_their_readings_are_close() {
        let close = CLOSE.as_millis().try_into().unwrap();
        for (apart_ms, chosen, read) in [
            (vec![close - 1, 0], 0, 1),
            (vec![close, close - 1, 0], 1, 2),
            (vec![9, 7, 8, 6, 6, 50, 0], 3, READINGS + 1),
        ] {
            let mut readings = apart_ms.into_iter().map(Duration::from_millis).zip(0..);
            let mut count = 0;
            let next = || {
                count += 1;
                readings.next().unwrap()
            };
            assert_eq!((closest(next), count), (chosen, read));
        }
    }

    #[test]
    fn clocks_that_agree_have_no_offset_however_slow_the_news() {
        let mut clock = Clock::default();
        let now = |delay: i64| moment(5 + delay, 1_000_000 + delay);
        assert_eq!(clock.offset(now(0)), Offset(0));
        for delay in [3, 40, 2_000, 7] {
            clock.saw(1_000_000, now(delay));
        }
        assert_eq!(clock.offset(now(9_000)), Offset(0));
    }

    #[test]
    fn a_server_ahead_or_behind_is_found_and_forgotten_again() {
        for true_offset in [90_000, -90_000] {
            let mut clock = Clock::default();
            for i in 0..1000 {
                let seen = i * 10 + 5 + i % 7;
                clock.saw(1_000_000 + i * 10 + true_offset, moment(seen, 1_000_000 + seen));
            }
            let offset = clock.offset(moment(20_000, 1_020_000));
            assert_eq!(offset, Offset(true_offset - 5));
            assert_eq!(offset.to_own(1_000_000 + true_offset), at(1_000_005));
            for window in 1..=2 {
                let seen = window * 2 * WINDOW_MS;
                clock.saw(1_000_000 + seen, moment(seen + 5, 1_000_000 + seen + 5));
            }
            let seen = 5 * WINDOW_MS;
            assert_eq!(clock.offset(moment(seen, 1_000_000 + seen)), Offset(0));
        }
    }

    #[test]
    fn our_own_clock_may_be_set_at_any_time() {
        for set_by in [3_600_000, -3_600_000, 500] {
            let mut clock = Clock::default();
            clock.saw(9_000_000, moment(10, 9_000_003));
            assert_eq!(clock.offset(moment(20, 9_000_013)), Offset(0));
            // Nothing has been seen since.
            let known = OffsetAt::new(clock.offset(moment(20, 9_000_013)), moment(20, 9_000_013));
            assert_eq!(known.offset(moment(30, 9_000_023)), Offset(0));
            assert_eq!(known.offset(moment(30, 9_000_023 + set_by)), Offset(-set_by));
            let offset = clock.offset(moment(30, 9_000_023 + set_by));
            assert_eq!(offset, Offset(-3 - set_by));
            assert_eq!(offset.to_server(at(9_000_023 + set_by)), 9_000_020);
            clock.saw(9_000_030, moment(42, 9_000_035 + set_by));
            assert_eq!(clock.offset(moment(42, 9_000_035 + set_by)), Offset(-3 - set_by));
        }
    }

    #[test]
    fn a_write_of_known_moments_overrules_what_was_learnt_before() {
        // (the servers' clock before, what it is set to, how long the write takes, the offset then)
        for (before, after, takes, expected) in [
            (0, 0, 3_000, 0),
            (3_600_000, 0, 5, 0),
            (0, 3_600_000, 5, 3_600_000 - 5),
            (0, -3_600_000, 5, -3_600_000 - 5),
            (90_000, 90_000, 3_000, 90_000 - 7),
        ] {
            let mut clock = Clock::default();
            assert!(!clock.is_known());
            clock.saw(1_000_000 + before, moment(7, 1_000_007));
            assert!(clock.is_known() && !clock.is_measured());
            clock.measured(1_010_000 + after, (moment(10_000, 1_010_000), moment(10_000 + takes, 1_010_000 + takes)));
            assert!(clock.is_measured());
            let now = moment(20_000, 1_020_000);
            let offset = clock.offset(now).as_ms();
            assert!((offset - expected).abs() <= 7, "{before} {after}: {offset}");
            // A change that shows more than can be shows that the servers' clock was set again.
            clock.saw(1_030_000 + after + 60_000, moment(30_000, 1_030_000));
            assert!(!clock.is_measured());
            assert_eq!(clock.offset(now).as_ms(), after + 60_000);
        }
    }

    #[test]
    fn a_write_that_takes_long_shows_an_offset_only_where_the_clocks_cannot_agree() {
        // (how long after it was begun the write was made by a clock that may be ahead or behind, the offset then)
        for (made, expected) in [(-2, -3_002), (-1, 0), (0, 0), (3_000, 0), (3_001, 1)] {
            let mut clock = Clock::default();
            clock.measured(1_010_000 + made, (moment(10_000, 1_010_000), moment(13_000, 1_013_000)));
            assert_eq!(clock.offset(moment(20_000, 1_020_000)), Offset(expected), "{made}");
        }
    }

    #[test]
    fn rounding_makes_no_offset() {
        for us in 0..2_000 {
            // A change in the very millisecond in which it is seen, and read at any part of another.
            let at = |us: i64| Moment {
                own: Timestamp::from_microsecond(1_000_000_700 + us).unwrap(),
                elapsed: Duration::from_micros(u64::try_from(5_900 + us).unwrap()),
            };
            let mut clock = Clock::default();
            clock.saw((1_000_000_700 + us) / 1_000, at(us));
            for later in [0, 1, 299, 300, 999] {
                assert_eq!(clock.offset(at(us + later)), Offset(0), "{us} {later}");
            }
        }
    }

    #[test]
    fn no_instant_is_out_of_bounds() {
        for at in [i64::MIN, i64::MAX, 0] {
            let _ = Offset(90).to_own(at);
            let _ = Offset(-90).to_own(at);
            let mut clock = Clock::default();
            clock.saw(at, moment(7, 1_000_000));
            let _ = clock.offset(moment(8, 1_000_000)).to_server(Timestamp::MAX);
        }
    }
}

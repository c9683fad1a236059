//! How full the volume was over the last hours.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use super::Space;
use crate::mirror::HISTORY;

/// How often a sample is kept at most, in milliseconds.
const STEP_MS: i64 = 10_000;

/// How far back they reach, in milliseconds: as far as the figures of the mirror.
#[expect(clippy::cast_possible_wrap, reason = "hours are few seconds")]
const KEPT_MS: i64 = HISTORY.as_secs() as i64 * 1_000;

/// The samples, oldest first: when, in milliseconds since 1970, and the used part of the volume, 0 to 1.
#[derive(Debug, Default)]
pub(super) struct Past {
    samples: VecDeque<(i64, f64)>,
}

impl Past {
    /// Keeps a sample. Of those of ten seconds, the fullest one is kept.
    pub(super) fn note(&mut self, at: Timestamp, space: Space) {
        if space.size_bytes == 0 {
            return;
        }
        let at_ms = at.as_millisecond();
        let used = space.size_bytes.saturating_sub(space.free_bytes) as f64 / space.size_bytes as f64;
        // The clock was set back: what was recorded for instants to come was not then.
        while self.samples.back().is_some_and(|(last, _)| *last > at_ms) {
            self.samples.pop_back();
        }
        while self.samples.front().is_some_and(|(first, _)| first.saturating_add(KEPT_MS) < at_ms) {
            self.samples.pop_front();
        }
        match self.samples.back_mut() {
            Some((last, fullest)) if last.div_euclid(STEP_MS) == at_ms.div_euclid(STEP_MS) => {
                (*last, *fullest) = (at_ms, fullest.max(used));
            }
            _ => self.samples.push_back((at_ms, used)),
        }
    }

    /// The largest used part in each of so many steps from `from` to `now`. A step begins with the last sample before
    /// it, for as long as a sample `holds`; with `None`, until the next one.
    pub(super) fn used(
        &self,
        from: Timestamp,
        step: Duration,
        steps: usize,
        holds: Option<Duration>,
        now: Timestamp,
    ) -> Vec<Option<f64>> {
        let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let (mut begin, step_ms, now_ms) = (from.as_millisecond(), ms(step).max(1), now.as_millisecond());
        let holds_ms = holds.map_or(i64::MAX, ms);
        let mut samples = self.samples.iter().copied().peekable();
        let mut before: Option<(i64, f64)> = None;
        let mut used = Vec::with_capacity(steps);
        for _ in 0..steps {
            let end = begin.saturating_add(step_ms);
            while let Some(sample) = samples.next_if(|(at, _)| *at < begin) {
                before = Some(sample);
            }
            let holds = |(at, _): &(i64, f64)| at.saturating_add(holds_ms) > begin && begin <= now_ms;
            let mut most = before.filter(holds).map(|(_, used)| used);
            while let Some((at, used)) = samples.next_if(|(at, _)| *at < end) {
                most = Some(most.map_or(used, |most| most.max(used)));
                before = Some((at, used));
            }
            used.push(most);
            begin = end;
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn full(percent: u64) -> Space {
        Space { size_bytes: 100, free_bytes: 100 - percent }
    }

    #[test]
    fn a_step_has_its_fullest_moment_and_what_it_began_with() {
        let mut past = Past::default();
        for (second, percent) in [(0, 10), (3, 90), (6, 20), (25, 30), (200, 40)] {
            past.note(at(second), full(percent));
        }
        let used = |from, steps, holds: Option<u64>| {
            past.used(at(from), Duration::from_secs(20), steps, holds.map(Duration::from_secs), at(205))
        };
        let holding = used(0, 12, Some(60));
        let expected = [Some(0.9), Some(0.9), Some(0.3), Some(0.3), Some(0.3), None, None, None, None, None];
        assert_eq!(holding[..10], expected);
        assert_eq!(holding[10..], [Some(0.4), None], "nothing is known of what comes");
        assert_eq!(used(40, 3, None), [Some(0.3), Some(0.3), Some(0.3)], "what was reported stays");
        assert_eq!(used(-40, 2, None), [None, None]);
    }

    #[test]
    fn six_hours_are_kept_and_a_clock_that_is_set_back_takes_back_what_was_to_come() {
        let mut past = Past::default();
        for second in (0..8 * 3600).step_by(10) {
            past.note(at(second), full(50));
        }
        assert_eq!(past.samples.len(), 6 * 360 + 1);
        past.note(at(7 * 3600), full(60));
        assert_eq!(past.samples.back().map(|(_, used)| *used), Some(0.6));
        past.note(at(7 * 3600 + 20), Space { size_bytes: 0, free_bytes: 0 });
        assert_eq!(past.used(at(7 * 3600 + 10), Duration::from_secs(10), 1, None, at(7 * 3600 + 60)), [Some(0.6)]);
    }
}

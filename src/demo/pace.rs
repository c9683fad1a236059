//! How fast the demo goes: every time in it scales with the rate of transitions.

use std::time::Duration;

/// The steps that a job takes from Pending to Completed.
const STEPS: f64 = 8.0;

/// The rate at which the times in the demo's code are meant.
const NATURAL_RATE: f64 = 10.0;

/// The rate of transitions a second, and the times that follow from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    rate: f64,
}

impl Pace {
    /// That many transitions a second, above 0, over all jobs.
    pub(super) fn new(rate: f64) -> Self {
        Self { rate }
    }

    /// The time between two jobs that begin.
    pub(super) fn between_jobs(self) -> Duration {
        Duration::from_secs_f64(STEPS / self.rate)
    }

    /// What takes `seconds` at ten transitions a second.
    pub(super) fn time(self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds * NATURAL_RATE / self.rate)
    }

    /// The time between two looks for work: never so short that looking is all that happens, nor so long that a pause
    /// would seem to be overlooked.
    pub(super) fn poll(self) -> Duration {
        self.time(0.3).clamp(Duration::from_millis(15), Duration::from_secs(1))
    }

    /// The mean time that one of `crew` workers takes for a job, so that all of them together are busy for 60 % of the
    /// time: what piled up in a stall is worked off afterwards.
    pub(super) fn work(self, crew: usize) -> Duration {
        self.between_jobs().mul_f64(0.6 * crew as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_rate_makes_everything_quicker_in_proportion() {
        let (slow, fast) = (Pace::new(10.0), Pace::new(100.0));
        assert_eq!(slow.between_jobs(), Duration::from_millis(800));
        assert_eq!(fast.between_jobs(), Duration::from_millis(80));
        assert_eq!(fast.time(30.0), Duration::from_secs(3));
        assert_eq!(slow.work(5), slow.between_jobs() * 3);
        assert_eq!(Pace::new(10_000.0).poll(), Duration::from_millis(15));
        assert_eq!(Pace::new(0.1).poll(), Duration::from_secs(1));
    }
}

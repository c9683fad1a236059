//! The speed of the demo: all times scale with the rate of transitions.

use std::time::Duration;

/// The steps that a job takes from Pending to Completed.
const STEPS: f64 = 8.0;

/// The rate at which the times in the demo's code are unscaled.
const NATURAL_RATE: f64 = 10.0;

/// The rate of transitions per second, and the times that follow from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    rate: f64,
}

impl Pace {
    /// This many transitions per second, above 0, over all jobs.
    pub(super) fn new(rate: f64) -> Self {
        Self { rate }
    }

    /// The time between two jobs that start.
    pub(super) fn between_jobs(self) -> Duration {
        Duration::from_secs_f64(STEPS / self.rate)
    }

    /// The time for what takes `seconds` at ten transitions per second.
    pub(super) fn time(self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds * NATURAL_RATE / self.rate)
    }

    /// The mean time that one of `crew` workers takes for a job, such that all of them together are busy 60 % of the
    /// time: the backlog of a stall shrinks afterwards.
    pub(super) fn work(self, crew: usize) -> Duration {
        self.between_jobs().mul_f64(0.6 * crew as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_rate_makes_everything_proportionally_faster() {
        let (slow, fast) = (Pace::new(10.0), Pace::new(100.0));
        assert_eq!(slow.between_jobs(), Duration::from_millis(800));
        assert_eq!(fast.between_jobs(), Duration::from_millis(80));
        assert_eq!(fast.time(30.0), Duration::from_secs(3));
        assert_eq!(slow.work(5), slow.between_jobs() * 3);
    }
}

//! One measurement of the servers' clock, for a caller that asks once.

use jiff::Timestamp;

use super::clock::{Clock, Moment};

/// When a write was made by the servers' clock, and between which moments of ours.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    made: Timestamp,
    between: (Moment, Moment),
}

impl Measured {
    /// Awaits `ask`, which makes a write and gives the instant at which it was made, by the servers' clock.
    ///
    /// # Errors
    /// As `ask`.
    pub async fn by<E>(ask: impl Future<Output = Result<Timestamp, E>>) -> Result<Self, E> {
        let before = Moment::now();
        let made = ask.await?;
        Ok(Self { made, between: (before, Moment::now()) })
    }

    /// An instant of our clock by the servers'.
    #[must_use]
    pub fn server_time(self, own: Timestamp) -> Timestamp {
        let mut clock = Clock::default();
        clock.measured(self.made.as_millisecond(), self.between);
        clock.offset(Moment::now()).to_server_time(own)
    }

    pub(super) fn parts(self) -> (Timestamp, (Moment, Moment)) {
        (self.made, self.between)
    }
}

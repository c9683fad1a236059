//! The servers' time, by which the age of everything in the tree is told.

use jiff::Timestamp;

use super::refusal::Refusal;
use crate::mirror::{Measured, Store};

/// How the servers' time is known.
#[derive(Clone, Debug)]
pub enum Clock {
    /// As the image knows it; without one, and where that knows nothing, the clocks are taken to agree.
    Mirror,
    /// By a measurement of one's own.
    Measured(Measured),
    /// It could not be measured, for this reason. What goes by an age is refused.
    Unknown(String),
}

impl Clock {
    /// An instant of our clock by the servers'.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] where their clock could not be measured: a wrong one makes a live lock a leaked one.
    pub(super) fn server_time(&self, store: Option<&Store>, own: Timestamp) -> Result<Timestamp, Refusal> {
        let why = match (self, store) {
            (Self::Measured(measured), _) => return Ok(measured.server_time(own)),
            (Self::Unknown(why), _) => why.clone(),
            (Self::Mirror, None) => return Ok(own),
            (Self::Mirror, Some(store)) => match store.freshness().clock {
                clock if clock.is_measured => return Ok(store.server_time(own)),
                clock => match clock.problem {
                    None => return Ok(store.server_time(own)),
                    Some(why) => why,
                },
            },
        };
        Err(Refusal::Unavailable(format!(
            "the age of what seems broken cannot be told, because the clock of the ZooKeeper servers could not be \
             measured ({why}); nothing was done. Let queuekeeper create and write /queuekeeper/clock"
        )))
    }
}

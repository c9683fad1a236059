//! The servers' time, by which the age of everything in the tree is told.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;

use super::refusal::Refusal;
use crate::mirror::{Measured, Store};

/// How the servers' time is known.
#[derive(Clone)]
pub enum Clock {
    /// As the image knows it; without one, and where that knows nothing, the clocks are taken to agree.
    Mirror,
    /// By a measurement that is made when something goes by an age. Where it says why there is none, that is refused.
    Measured(MeasureClock),
}

/// Measures the servers' clock, or says why not.
pub type MeasureClock = Arc<dyn Fn() -> BoxFuture<'static, Result<Measured, String>> + Send + Sync>;

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mirror => "Mirror",
            Self::Measured(_) => "Measured",
        })
    }
}

impl Clock {
    /// An instant of our clock by the servers'.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] where their clock could not be measured: a wrong one makes a live lock a leaked one.
    pub(super) async fn server_time(&self, store: Option<&Store>, own: Timestamp) -> Result<Timestamp, Refusal> {
        let why = match (self, store) {
            (Self::Measured(ask), _) => match ask().await {
                Ok(measured) => return Ok(measured.server_time(own)),
                Err(why) => why,
            },
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

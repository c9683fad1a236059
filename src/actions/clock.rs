//! The servers' time, from which every age in the tree is computed.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;

use super::refusal::Refusal;
use crate::mirror::{Measured, MirrorStore};

/// The source of the servers' time.
#[derive(Clone)]
pub enum Clock {
    /// The mirror's measurement. Without a mirror or a measurement, the clocks are assumed to agree.
    Mirror,
    /// A measurement that is taken when an action depends on an age. If it fails, the action is refused.
    Measured(MeasureClock),
}

/// Measures the servers' clock, or returns why it cannot.
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
    /// Converts an instant of our clock to the servers'.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] if their clock could not be measured: with a wrong one, a live lock looks like a leaked
    /// one.
    pub(super) async fn server_time(&self, store: Option<&MirrorStore>, own: Timestamp) -> Result<Timestamp, Refusal> {
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
            "the age of the item is unknown, because the clock of the ZooKeeper servers could not be \
             measured ({why}); nothing was done. Grant queuekeeper the right to create and write /queuekeeper/clock"
        )))
    }
}

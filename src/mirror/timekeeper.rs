//! Requests of the servers' time, where the tree is too quiet to show it.
//!
//! ZooKeeper has no request for the time, but it dates every write. The mirror writes nothing; the caller gives
//! it the instant of a write that is made for this purpose alone.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::clock::Moment;
use super::store::{MirrorStore, Writer};

/// How often our own clock is looked at: how long ages may be wrong after it was set.
const TICK: Duration = Duration::from_secs(1);

/// How far apart two questions are at least, however often a clock is set and a connection is lost.
const SPACING: Duration = Duration::from_secs(10);

/// Why the servers' time is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTime {
    /// No server answers at the moment.
    #[error("{0}")]
    Unanswered(String),
    /// The write that would show it is refused.
    #[error("{0}")]
    Refused(String),
}

/// Learns how the servers' clock stands to ours by asking for the time: at the start, after each new connection, when a
/// clock was set, and from time to time.
#[derive(Debug)]
pub struct Timekeeper {
    store: MirrorStore,
}

impl Writer {
    /// What learns the servers' time by asking for it, where there is a server to ask. The image waits for its first
    /// answer, for two seconds at most, so that nothing is called old that only seems so.
    #[must_use]
    pub fn timekeeper(&self) -> Timekeeper {
        self.expect_time();
        Timekeeper { store: self.store() }
    }
}

impl Timekeeper {
    /// Asks for the time each `period` and whenever there is reason to, until `shutdown`. `ask` makes a write and gives
    /// the instant at which it was made, by the servers' clock.
    pub async fn run<F>(self, period: Duration, ask: impl Fn() -> F, shutdown: CancellationToken)
    where
        F: Future<Output = Result<Timestamp, NoTime>>,
    {
        shutdown.run_until_cancelled(self.keep(period, ask)).await;
    }

    async fn keep<F>(self, period: Duration, ask: impl Fn() -> F)
    where
        F: Future<Output = Result<Timestamp, NoTime>>,
    {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // When it was last requested, in which session of the mirror's, and with what success.
        let mut last: Option<(Moment, Option<String>, bool)> = None;
        let mut logged = None;
        loop {
            ticks.tick().await;
            let was_set = self.store.heed_clock();
            let freshness = self.store.freshness();
            let is_due = last.as_ref().is_none_or(|(at, session, is_known)| {
                let is_new = freshness.session.is_some() && freshness.session != *session;
                // A change may have shown since that the servers' clock was set.
                let is_wrong = *is_known && !freshness.clock.is_measured;
                let since = Moment::now().since(*at);
                was_set || since >= period || ((is_new || is_wrong) && since >= SPACING)
            });
            if !is_due {
                continue;
            }
            let before = Moment::now();
            let answer = ask().await;
            let after = Moment::now();
            match answer {
                Ok(made) => {
                    self.store.measured(made, (before, after));
                    last = Some((after, freshness.session, true));
                }
                Err(NoTime::Unanswered(why)) => {
                    self.store.not_measured(why);
                    last = None;
                }
                Err(NoTime::Refused(why)) => {
                    self.store.not_measured(why);
                    last = Some((after, freshness.session, false));
                }
            }
            self.log(&mut logged);
        }
    }

    /// Says how the clocks stand to each other, once as long as that stays so.
    fn log(&self, logged: &mut Option<String>) {
        let clock = self.store.freshness().clock;
        let now = match (&clock.problem, clock.difference()) {
            (None, None) => None,
            (None, Some(ahead)) => Some(format!(
                "the clock of the ZooKeeper servers is {} s {} the clock of this host; ages are computed from the servers' clock",
                ahead.abs().as_secs(),
                if ahead.is_positive() { "ahead of" } else { "behind" }
            )),
            (Some(problem), _) => Some(format!(
                "the time of the ZooKeeper servers cannot be measured, and ages may be off by the difference between the \
                 clocks: {problem}"
            )),
        };
        match &now {
            Some(text) if *logged != now => warn!("{text}"),
            None if logged.is_some() => info!("the clocks of this host and of the ZooKeeper servers agree"),
            Some(_) | None => {}
        }
        *logged = now;
    }
}

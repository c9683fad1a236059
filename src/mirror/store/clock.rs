//! What is known of the servers' clock, for everyone who asks for an age.

use jiff::Timestamp;

use super::{MirrorStore, Shared, Writer};
use crate::mirror::clock::{Clock, Moment, Offset, OffsetAt};
use crate::mirror::freshness::ServerClock;
use crate::mirror::history::shifted;

/// What was learnt of the servers' clock.
#[derive(Debug, Default)]
pub(super) struct ClockState {
    clock: Clock,
    published: OffsetAt,
    /// By which clock of ours all instants are that the store keeps.
    dated: Option<Moment>,
    /// Why the time could not be requested, as long as it cannot.
    problem: Option<String>,
}

/// Whether the servers' time is being requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FirstTime {
    /// No: nothing asks for it, or it is known.
    #[default]
    Over,
    /// Yes.
    Awaited,
}

impl Shared {
    /// By how much the servers' clock is ahead of ours now.
    pub(super) fn offset(&self) -> Offset {
        self.clock.read().published.offset(Moment::now())
    }

    pub(super) fn server_clock(&self) -> ServerClock {
        let learnt = self.clock.read();
        let ahead_ms = learnt.clock.is_known().then(|| learnt.published.offset(Moment::now()).as_ms());
        ServerClock { ahead_ms, is_measured: learnt.clock.is_measured(), problem: learnt.problem.clone() }
    }

    /// Where our clock was set since the last time, moves along what is dated by it, and says so.
    pub(super) fn heed_clock(&self) -> bool {
        let now = Moment::now();
        let mut learnt = self.clock.write();
        let before = *learnt.dated.get_or_insert(now);
        let by_ms = now.set_since(before);
        if by_ms == 0 {
            return false;
        }
        // What others ask for meanwhile waits for this lock or comes by the old date; it is a matter of microseconds.
        learnt.dated = Some(now);
        drop(learnt);
        self.history.write().shift(by_ms);
        let mut freshness = self.freshness.write();
        let freshness = &mut *freshness;
        for at in [&mut freshness.stale_since, &mut freshness.last_event, &mut freshness.last_walk] {
            *at = at.map(|at| shifted(at, by_ms));
        }
        let mut behind_since = self.behind_since.write();
        *behind_since = behind_since.map(|at| shifted(at, by_ms));
        true
    }

    /// Applies new knowledge of the clock, and publishes the offset.
    fn learn(&self, learn: impl FnOnce(&mut ClockState)) {
        let mut learnt = self.clock.write();
        let now = Moment::now();
        let before = learnt.published.offset(now);
        learn(&mut learnt);
        let offset = learnt.clock.offset(now);
        learnt.published = OffsetAt::new(offset, now);
        self.nodes.set_offset(learnt.published);
        drop(learnt);
        if offset != before {
            self.has_changed();
        }
    }
}

impl Writer {
    /// From now on the image waits for the servers' time: something asks for it.
    pub(in crate::mirror) fn expect_time(&self) {
        self.shared.first_time.send_replace(FirstTime::Awaited);
    }

    /// Waits until the servers' time is known, if it is being requested.
    pub(in crate::mirror) async fn first_time(&self) {
        /// A connection that takes longer may never come.
        const LIMIT: std::time::Duration = std::time::Duration::from_secs(2);
        let mut first_time = self.shared.first_time.subscribe();
        // In time or not, what is known then is what there is.
        let _ = tokio::time::timeout(LIMIT, first_time.wait_for(|first| *first == FirstTime::Over)).await;
    }

    /// Takes note of changes made at instants of the servers' clock, in milliseconds, which were all seen at one
    /// moment.
    pub(in crate::mirror) fn saw(&self, made_ms: impl Iterator<Item = i64>, seen: Moment) {
        self.shared.learn(|learnt| made_ms.for_each(|made_ms| learnt.clock.saw(made_ms, seen)));
    }

    /// Takes note of the latest instant that the tree shows, which was seen at a moment. One that is still to come
    /// by our clock shows that the servers' is ahead, unless that was set since: a measurement is better. One that lies
    /// back shows nothing.
    pub(in crate::mirror) fn saw_latest(&self, made_ms: Option<i64>, seen: Moment) {
        let to_come = made_ms.filter(|made_ms| *made_ms > seen.own().as_millisecond());
        let Some(made_ms) = to_come else { return };
        self.shared.learn(|learnt| {
            if !learnt.clock.is_measured() {
                learnt.clock.saw(made_ms, seen);
            }
        });
    }

    /// By how much the servers' clock is ahead of ours now.
    pub(in crate::mirror) fn offset(&self) -> Offset {
        self.shared.offset()
    }
}

impl MirrorStore {
    /// An instant of the servers' clock by ours.
    #[must_use]
    pub fn own_time(&self, at: Timestamp) -> Timestamp {
        self.shared.offset().to_own(at.as_millisecond())
    }

    /// An instant of our clock by the servers'.
    #[must_use]
    pub fn server_time(&self, own: Timestamp) -> Timestamp {
        self.shared.offset().to_server_time(own)
    }

    /// Where our clock was set since the last time, moves along what is dated by it, and says so.
    pub(in crate::mirror) fn heed_clock(&self) -> bool {
        self.shared.heed_clock()
    }

    /// Takes note of a write made at an instant of the servers' clock, between two moments.
    pub(in crate::mirror) fn measured(&self, made: Timestamp, between: (Moment, Moment)) {
        self.shared.learn(|learnt| {
            learnt.clock.measured(made.as_millisecond(), between);
            learnt.problem = None;
        });
        self.shared.first_time.send_replace(FirstTime::Over);
    }

    /// Takes note that the servers' time cannot be requested.
    pub(in crate::mirror) fn not_measured(&self, problem: String) {
        self.shared.clock.write().problem = Some(problem);
        self.shared.first_time.send_replace(FirstTime::Over);
    }
}

#[cfg(test)]
mod tests;

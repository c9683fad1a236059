//! Requests that wait until they are tried again.

use std::collections::BTreeMap;

use jiff::Timestamp;
use parking_lot::Mutex;
use queuekeeper_queue::id::RequestId;
use queuekeeper_queue::path::AccessQueue;

/// A request that could not be assembled yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delay {
    pub(super) since: Timestamp,
    pub(super) attempts: u32,
    pub(super) not_before: Timestamp,
    /// Whether it waits no longer than the store is held.
    pub(super) is_for_hold: bool,
}

/// The requests that this session has given back, and not taken again.
#[derive(Debug, Default)]
pub(super) struct Delays(Mutex<BTreeMap<(AccessQueue, RequestId), Delay>>);

impl Delays {
    pub(super) fn put(&self, access: AccessQueue, request: RequestId, delay: Delay) {
        self.0.lock().insert((access, request), delay);
    }

    /// The delay of a request that is taken again.
    pub(super) fn take(&self, access: AccessQueue, request: RequestId) -> Option<Delay> {
        self.0.lock().remove(&(access, request))
    }

    /// Whether a request is not to be taken yet at an instant.
    pub(super) fn is_waiting(&self, access: AccessQueue, request: RequestId, at: Timestamp, is_held: bool) -> bool {
        self.0.lock().get(&(access, request)).is_some_and(|delay| delay.is_waiting(at, is_held))
    }

    /// Forgets the requests of a queue that could be taken at an instant and were not: they are gone, or were ended
    /// elsewhere.
    pub(super) fn prune(&self, access: AccessQueue, at: Timestamp, is_held: bool) {
        self.0.lock().retain(|(of, _), delay| *of != access || delay.is_waiting(at, is_held));
    }
}

impl Delay {
    fn is_waiting(&self, at: Timestamp, is_held: bool) -> bool {
        self.not_before > at && (is_held || !self.is_for_hold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_taken_though_it_could_be_is_forgotten() {
        let (delays, now) = (Delays::default(), Timestamp::UNIX_EPOCH);
        let (small, large) = (AccessQueue::Small, AccessQueue::Large);
        let delay = |seconds, is_for_hold| {
            let not_before = Timestamp::from_second(seconds).unwrap();
            Delay { since: now, attempts: 1, not_before, is_for_hold }
        };
        let [over, later, held] = [1, 2, 3].map(RequestId::new);
        delays.put(small, over, delay(0, false));
        delays.put(large, over, delay(0, false));
        delays.put(small, later, delay(60, false));
        delays.put(small, held, delay(60, true));
        assert!(!delays.is_waiting(small, over, now, true));
        assert!(delays.is_waiting(small, held, now, true) && !delays.is_waiting(small, held, now, false));
        delays.prune(small, now, true);
        assert_eq!((delays.take(small, over), delays.take(large, over)), (None, Some(delay(0, false))));
        delays.prune(small, now, false);
        assert_eq!((delays.take(small, held), delays.take(small, later)), (None, Some(delay(60, false))));
    }
}

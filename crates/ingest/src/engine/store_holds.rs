//! What is known of holds on stores.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::{Error, Queue};
use queuekeeper_store::StoreName;
use tokio::sync::watch;
use tokio::time::Instant;

/// What is known of the stores of this process.
#[derive(Debug)]
pub(crate) struct StoreHolds {
    pub(super) held: BTreeMap<StoreName, watch::Sender<bool>>,
    /// The jobs that were passed over, and since when there are any: they are not read again with each job that comes.
    pub(super) passed: Mutex<(BTreeSet<JobId>, Option<Instant>)>,
}

impl StoreHolds {
    pub(super) fn of<'a>(stores: impl Iterator<Item = &'a StoreName>) -> Self {
        let held = stores.map(|store| (store.clone(), watch::Sender::new(false))).collect();
        Self { held, passed: Mutex::default() }
    }

    /// Looks which stores are held, and gives whether that is news.
    pub(super) async fn look(&self, queue: &Queue) -> Result<bool, Error> {
        let mut is_news = false;
        for (store, held) in &self.held {
            let known = held.subscribe();
            let is_held = queue.held_store(store.as_str()).await?.is_some();
            is_news |= learn(held, &known, is_held);
        }
        Ok(is_news)
    }

    pub(super) fn is_held(&self, store: &StoreName) -> bool {
        self.held.get(store).is_some_and(|held| *held.borrow())
    }

    pub(super) fn forget_passed(&self) {
        *self.passed.lock() = Default::default();
    }
}

/// Keeps what a look has found, unless a watch has said something since `known` was taken: then the look may be the
/// older of the two, and the watch would not repeat what it said. Gives whether that is news.
fn learn(held: &watch::Sender<bool>, known: &watch::Receiver<bool>, is_held: bool) -> bool {
    held.send_if_modified(|held| {
        // An error means that there is no sender.
        let is_news = *held != is_held && !known.has_changed().unwrap_or(true);
        if is_news {
            *held = is_held;
        }
        is_news
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_began_before_a_watch_has_answered_is_not_believed_over_it() {
        let held = watch::Sender::new(false);
        for is_held in [true, false] {
            // It read before the hold was set, or released, and ends after the watch has seen that.
            let known = held.subscribe();
            held.send_replace(is_held);
            assert!(!learn(&held, &known, !is_held));
            assert_eq!(*held.borrow(), is_held);
            // Likewise where the watch has only confirmed what was known.
            let known = held.subscribe();
            held.send_replace(is_held);
            assert!(!learn(&held, &known, !is_held));
            // Without a word of the watch, the look counts.
            let known = held.subscribe();
            assert!(learn(&held, &known, !is_held) && !learn(&held, &known, is_held));
            assert_eq!(*held.borrow(), !is_held);
        }
    }
}

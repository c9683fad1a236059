//! How many requests a store gets at the same time: fewer where it says that it is busy, slowly more where it is not.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// A limit of requests under way, between 1 and a maximum.
///
/// A store that is busy halves it, as many requests without that as are allowed at once raise it by one. Those that
/// wait get their turn in the order in which they came.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    turns: Arc<Semaphore>,
    most: usize,
    state: Mutex<State>,
    changed: Box<dyn OnChange>,
}

trait OnChange: Fn(usize) + Send + Sync {}

impl<F: Fn(usize) + Send + Sync> OnChange for F {}

impl std::fmt::Debug for dyn OnChange {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("OnChange")
    }
}

#[derive(Debug)]
struct State {
    allowed: usize,
    /// How many turns that are taken now are not given back.
    excess: usize,
    successes: usize,
    lowered: Option<Instant>,
}

/// A turn: one request under way. Dropped, it is over, and says nothing about how busy the store is.
#[derive(Debug)]
pub struct Turn {
    limit: Arc<ConcurrencyLimit>,
    permit: Option<OwnedSemaphorePermit>,
    began: Instant,
}

impl ConcurrencyLimit {
    /// A limit that begins at its maximum, which is at least 1, and reports each value to `changed`.
    pub fn new(most: usize, changed: impl Fn(usize) + Send + Sync + 'static) -> Arc<Self> {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        changed(most);
        let state = State { allowed: most, excess: 0, successes: 0, lowered: None };
        let turns = Arc::new(Semaphore::new(most));
        Arc::new(Self { turns, most, state: Mutex::new(state), changed: Box::new(changed) })
    }

    /// How many are allowed now.
    #[must_use]
    pub fn allowed(&self) -> usize {
        self.state.lock().allowed
    }

    /// Waits for a turn.
    ///
    /// # Panics
    /// Never: the semaphore is not closed.
    pub async fn turn(self: &Arc<Self>) -> Turn {
        let permit = Arc::clone(&self.turns).acquire_owned().await.expect("the semaphore is never closed");
        Turn { limit: Arc::clone(self), permit: Some(permit), began: Instant::now() }
    }

    fn raise(&self) {
        let mut state = self.state.lock();
        state.successes += 1;
        if state.successes < state.allowed || state.allowed == self.most {
            return;
        }
        state.successes = 0;
        state.allowed += 1;
        if state.excess > 0 {
            state.excess -= 1;
        } else {
            self.turns.add_permits(1);
        }
        (self.changed)(state.allowed);
    }

    fn lower(&self, began: Instant) {
        let mut state = self.state.lock();
        state.successes = 0;
        // Requests of one burst are refused together, and say the same thing once.
        if state.lowered.is_some_and(|lowered| began <= lowered) {
            return;
        }
        state.lowered = Some(Instant::now());
        let allowed = state.allowed.div_ceil(2).max(1);
        let fewer = state.allowed - allowed;
        state.excess += fewer - self.turns.forget_permits(fewer);
        state.allowed = allowed;
        (self.changed)(allowed);
    }
}

impl Turn {
    /// Ends the turn of a request that was answered.
    pub fn succeeded(self) {
        self.limit.raise();
    }

    /// Ends the turn of a request that the store was too busy for.
    pub fn was_refused_as_busy(self) {
        self.limit.lower(self.began);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.limit.state.lock();
        if let Some(permit) = self.permit.take()
            && state.excess > 0
        {
            state.excess -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_busy_store_halves_it_once_for_each_burst_and_successes_raise_it_by_one_a_round() {
        let reported = Arc::new(AtomicUsize::new(0));
        let shared = Arc::clone(&reported);
        let limit = ConcurrencyLimit::new(8, move |allowed| shared.store(allowed, Ordering::Relaxed));
        let mut turns = Vec::new();
        for _ in 0..8 {
            turns.push(limit.turn().await);
        }
        assert!(limit.turn().now_or_never().is_none(), "a ninth");
        turns.drain(..6).for_each(Turn::was_refused_as_busy);
        assert_eq!((limit.allowed(), reported.load(Ordering::Relaxed)), (4, 4));
        tokio::time::advance(Duration::from_secs(1)).await;
        turns.push(limit.turn().await);
        turns.push(limit.turn().await);
        assert!(limit.turn().now_or_never().is_none(), "a fifth");
        turns.drain(..).for_each(Turn::succeeded);
        assert_eq!(limit.allowed(), 5);

        for _ in 0..9 {
            tokio::time::advance(Duration::from_secs(1)).await;
            limit.turn().await.was_refused_as_busy();
        }
        assert_eq!(limit.allowed(), 1);
        let only = limit.turn().await;
        assert!(limit.turn().now_or_never().is_none(), "a second");
        drop(only);
        for _ in 0..100 {
            limit.turn().await.succeeded();
        }
        assert_eq!((limit.allowed(), reported.load(Ordering::Relaxed)), (8, 8));
        for _ in 0..8 {
            turns.push(limit.turn().now_or_never().expect("as many as at first"));
        }
        assert!(limit.turn().now_or_never().is_none(), "a ninth");
    }
}

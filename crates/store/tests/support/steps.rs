//! Points at which a process may die.

#![allow(dead_code, reason = "each test file takes what it needs")]

use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The steps of an operation, counted; at one of them it stops for good, as a process that is killed.
#[derive(Clone)]
pub(crate) struct Steps(Arc<Shared>);

struct Shared {
    taken: AtomicUsize,
    last: AtomicUsize,
    stopped: Mutex<CancellationToken>,
}

impl Default for Steps {
    fn default() -> Self {
        let stopped = Mutex::default();
        Self(Arc::new(Shared { taken: AtomicUsize::new(0), last: AtomicUsize::new(usize::MAX), stopped }))
    }
}

impl Steps {
    /// Begins to count anew: so many steps are taken from now, and the next one is not.
    pub(crate) fn stop_after(&self, steps: usize) {
        *self.0.stopped.lock() = CancellationToken::new();
        self.0.taken.store(0, Ordering::SeqCst);
        self.0.last.store(steps, Ordering::SeqCst);
    }

    /// Begins to count anew, without a stop.
    pub(crate) fn go_on(&self) {
        self.stop_after(usize::MAX);
    }

    /// How many steps were begun.
    pub(crate) fn taken(&self) -> usize {
        self.0.taken.load(Ordering::SeqCst)
    }

    /// Takes one, unless it has stopped: then it never ends.
    pub(crate) async fn step(&self) {
        let step = self.0.taken.fetch_add(1, Ordering::SeqCst);
        if step >= self.0.last.load(Ordering::SeqCst) {
            self.0.stopped.lock().cancel();
            pending::<()>().await;
        }
    }

    /// Runs an operation to its end, or to the step at which it stops, where it is dropped: `None`.
    pub(crate) async fn run<T>(&self, operation: impl Future<Output = T>) -> Option<T> {
        let stopped = self.0.stopped.lock().clone();
        tokio::select! {
            biased;
            () = stopped.cancelled() => None,
            result = operation => Some(result),
        }
    }
}

//! The handle by which a test changes what fails while the store is used, and sees what was called.

use std::sync::Arc;

use parking_lot::Mutex;
use queuekeeper_store::Error;
use queuekeeper_store::error::Operation;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::fault::{Fault, Rule};
use super::late::Late;

/// What fails, and what was called. Clones are of the same.
#[derive(Clone)]
pub struct Faults(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    stalled: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    calls: [u64; Operation::ALL.len()],
    faults: [u64; Operation::ALL.len()],
    released: CancellationToken,
    late: Vec<Late>,
}

fn index(operation: Operation) -> usize {
    Operation::ALL.into_iter().position(|each| each == operation).expect("each operation is among all")
}

impl Default for Faults {
    fn default() -> Self {
        Self(Arc::new(Shared { state: Mutex::default(), stalled: watch::Sender::new(0) }))
    }
}

impl Faults {
    /// Adds a rule. The first rule that has a fault for a call decides.
    pub fn add(&self, rule: Rule) {
        self.0.state.lock().rules.push(rule);
    }

    /// Removes all rules. What is stalled stays so.
    pub fn clear(&self) {
        self.0.state.lock().rules.clear();
    }

    /// Lets go on what is stalled now.
    pub fn release(&self) {
        std::mem::take(&mut self.0.state.lock().released).cancel();
    }

    /// Waits until so many calls or streams are stalled at the same time.
    pub async fn until_stalled(&self, calls: usize) {
        let mut stalled = self.0.stalled.subscribe();
        stalled.wait_for(|stalled| *stalled >= calls).await.expect("the sender is in self");
    }

    /// How often this was called.
    #[must_use]
    pub fn calls(&self, operation: Operation) -> u64 {
        self.0.state.lock().calls[index(operation)]
    }

    /// How many of these calls had a fault.
    #[must_use]
    pub fn faults(&self, operation: Operation) -> u64 {
        self.0.state.lock().faults[index(operation)]
    }

    /// How many changes are to land.
    #[must_use]
    pub fn late(&self) -> usize {
        self.0.state.lock().late.len()
    }

    /// Makes the changes that are late, in the order in which they were sent, and returns what became of each.
    pub async fn land(&self) -> Vec<Result<(), Error>> {
        let late = std::mem::take(&mut self.0.state.lock().late);
        let mut landed = Vec::with_capacity(late.len());
        for change in late {
            landed.push(change.land().await);
        }
        landed
    }

    /// Counts a call; returns its fault.
    pub(super) fn call(&self, operation: Operation) -> Option<Fault> {
        let mut state = self.0.state.lock();
        state.calls[index(operation)] += 1;
        let fault = state.rules.iter_mut().find_map(|rule| rule.of_call(operation));
        state.faults[index(operation)] += u64::from(fault.is_some());
        fault
    }

    pub(super) fn delay(&self, change: Late) {
        self.0.state.lock().late.push(change);
    }

    /// Waits for the next release.
    pub(super) async fn stall(&self) {
        let released = self.0.state.lock().released.clone();
        let _counted = Stalled::count(&self.0.stalled);
        released.cancelled().await;
    }
}

/// Counts as stalled until it is dropped.
struct Stalled<'a>(&'a watch::Sender<usize>);

impl<'a> Stalled<'a> {
    fn count(stalled: &'a watch::Sender<usize>) -> Self {
        stalled.send_modify(|stalled| *stalled += 1);
        Self(stalled)
    }
}

impl Drop for Stalled<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|stalled| *stalled -= 1);
    }
}

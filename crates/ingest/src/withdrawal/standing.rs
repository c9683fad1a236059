//! What a session knows of the batches that it takes up.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use queuekeeper_queue::id::BatchId;
use tokio::time::Instant;

/// Of how many batches it is remembered what the catalogue said.
const MOST_KNOWN: usize = 10_000;

/// What a session knows of the batches that it takes up.
#[derive(Debug, Default)]
pub(crate) struct Restored(Mutex<BTreeMap<BatchId, Standing>>);

/// What is to be done with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its deposit was not withdrawn, or cannot be withdrawn any more.
    Deposited,
    /// It is a further batch of a deposit whose first one was not withdrawn at this instant.
    Further(Instant),
    /// It is being withdrawn again.
    Withdrawing,
}

impl Restored {
    /// Whether a batch is being withdrawn again, so that nothing of it is to be taken.
    pub(crate) fn is_withdrawing(&self, batch: BatchId) -> bool {
        self.0.lock().get(&batch) == Some(&Standing::Withdrawing)
    }

    pub(super) fn of(&self, batch: BatchId) -> Option<Standing> {
        self.0.lock().get(&batch).copied()
    }

    pub(super) fn set(&self, batch: BatchId, standing: Standing) {
        let mut known = self.0.lock();
        if known.len() >= MOST_KNOWN {
            known.retain(|_, standing| *standing == Standing::Withdrawing);
        }
        known.insert(batch, standing);
    }

    /// What was known before a withdrawal begins, if it is to begin now.
    pub(super) fn begin(&self, batch: BatchId) -> bool {
        self.0.lock().insert(batch, Standing::Withdrawing) != Some(Standing::Withdrawing)
    }
}

//! Changes under a lock whose outcome is not known, so that the same call may be repeated and says what happened.

use std::sync::Arc;

use parking_lot::Mutex;
use zookeeper_client::Stat;

use super::Lock;
use crate::queue::error::Error;
use crate::queue::handle::{Found, Queue};
use crate::queue::path::Path;
use crate::queue::transaction::{Committed, Operation, Transaction};

/// The last change under a lock, as long as its outcome is not known; shared by all clones of what holds the lock.
#[derive(Clone, Debug)]
pub(in crate::queue) struct Tries<C, D>(Arc<Mutex<Option<Unsure<C, D>>>>);

/// A change that is tried.
#[derive(Clone, Debug)]
pub(in crate::queue) struct Tried<C, D> {
    /// What was asked for.
    pub(in crate::queue) change: C,
    /// Whether the lock ends with it.
    pub(in crate::queue) releases: bool,
    /// What is returned when it is done.
    pub(in crate::queue) done: D,
}

#[derive(Clone, Debug)]
struct Unsure<C, D> {
    tried: Tried<C, D>,
    written: Written,
}

/// The status that it writes, by which it is recognized.
#[derive(Clone, Debug)]
struct Written {
    path: Path,
    data: Vec<u8>,
    version: i32,
}

impl<C, D> Default for Tries<C, D> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<C, D> Tries<C, D> {
    /// Forgets what was tried: its outcome is known.
    pub(in crate::queue) fn clear(&self) {
        *self.0.lock() = None;
    }
}

impl Written {
    fn by(transaction: &Transaction, status: &Path) -> Option<Self> {
        transaction.operations().iter().find_map(|operation| match operation {
            Operation::Set { path, data, version } if path == status => {
                Some(Self { path: path.clone(), data: data.clone(), version: version.wrapping_add(1) })
            }
            Operation::Set { .. } | Operation::Create { .. } | Operation::Check { .. } | Operation::Delete { .. } => {
                None
            }
        })
    }
}

impl Queue {
    /// What the same call did before, if its outcome was not learned then and it was done; with the stat of the status.
    ///
    /// # Errors
    /// [`Error::Read`] where that cannot be learned yet.
    pub(in crate::queue) async fn outcome_of<C: Clone + PartialEq, D: Clone>(
        &self,
        tries: &Tries<C, D>,
        change: &C,
        releases: bool,
    ) -> Result<Option<(D, Stat)>, Error> {
        let same = |unsure: &Unsure<C, D>| unsure.tried.change == *change && unsure.tried.releases == releases;
        let Some(Unsure { tried, written }) = tries.0.lock().clone().filter(same) else { return Ok(None) };
        self.sync(&written.path).await?;
        match self.read_data(written.path).await? {
            Found::Data(data, stat) if stat.version == written.version && data == written.data => {
                Ok(Some((tried.done, stat)))
            }
            Found::Data(..) | Found::Children(_) | Found::Nothing => {
                tries.clear();
                Ok(None)
            }
        }
    }

    /// Commits a change under a lock of ours that writes `status`, and keeps it in mind until its outcome is known, also
    /// where this future is dropped.
    ///
    /// # Errors
    /// As [`Queue::commit`].
    pub(in crate::queue) async fn commit_tried<C, D>(
        &self,
        (tries, lock): (&Tries<C, D>, &Lock),
        tried: Tried<C, D>,
        status: &Path,
        transaction: &Transaction,
    ) -> Result<Committed, Error> {
        let releases = tried.releases;
        *tries.0.lock() = Written::by(transaction, status).map(|written| Unsure { tried, written });
        let came =
            if releases { self.commit_and_release(transaction, lock).await } else { self.commit(transaction).await };
        if !matches!(came, Err(Error::Unknown { .. })) {
            tries.clear();
        }
        came
    }
}

//! Leading ZooKeeper's counters past the numbers that a dump has.
//!
//! The next sequential name below a znode is the number of creations that it has seen: `(cversion + numChildren) / 2`
//! of its `Stat`. Nothing sets it. A creation and the deletion of the same znode in one `multi` count as any other and
//! are never seen by a reader.

use futures::stream::{FuturesUnordered, StreamExt as _};

use super::{IN_FLIGHT, LoadError, LoadProgress};
use crate::create::next_number;
use crate::error::{ConflictKind, Error};
use crate::handle::Queue;
use crate::path::Path;
use crate::transaction::{CommitError, REQUEST_LIMIT_BYTES, Transaction};

/// How many znodes one transaction makes and removes at most: about 300 KB with a chroot and the open ACL.
const PAIRS: u32 = 2_000;

/// How large such a transaction becomes: with a long ACL it makes fewer.
const PAIRS_BYTES: usize = REQUEST_LIMIT_BYTES / 2;

/// How often a folder is read again after a lost connection.
const ATTEMPTS: usize = 5;

/// A folder whose children ZooKeeper numbers, and the number that comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The folder.
    pub folder: Path,
    /// The number of the next znode that is made there.
    pub next: u32,
}

impl Queue {
    /// Leads the counter of each folder to its number, or leaves it where it is beyond. A folder that is not there will
    /// be created by the client that needs it, and starts at 0.
    pub(super) async fn advance(
        &self,
        numbers: impl Iterator<Item = (Path, u32)>,
        progress: &mut impl FnMut(LoadProgress),
    ) -> Result<Vec<Counter>, LoadError> {
        let mut counters = Vec::new();
        for (folder, wanted) in numbers {
            if let Some(next) = self.advance_one(&folder, wanted, progress).await? {
                counters.push(Counter { folder, next });
            }
        }
        Ok(counters)
    }

    async fn advance_one(
        &self,
        folder: &Path,
        wanted: u32,
        progress: &mut impl FnMut(LoadProgress),
    ) -> Result<Option<u32>, LoadError> {
        let mut unknown = None;
        for _ in 0..ATTEMPTS {
            let found = self.read_data(folder.clone()).await?;
            let Some(next) = found.stat().and_then(|stat| next_number(Some(stat))) else { return Ok(None) };
            if next >= wanted {
                return Ok(Some(next));
            }
            unknown = self.use_up(folder, wanted - next, progress).await?;
        }
        let moved = || Error::conflict(folder.clone(), ConflictKind::Moved);
        Err(unknown.unwrap_or_else(moved).into())
    }

    /// Creates and removes that many znodes. Returns the error of a lost connection: each transaction counts whole or
    /// not at all, so the folder itself shows what is left.
    async fn use_up(
        &self,
        folder: &Path,
        numbers: u32,
        progress: &mut impl FnMut(LoadProgress),
    ) -> Result<Option<Error>, Error> {
        // Not an id, so that no watcher takes it for an item.
        let passing = folder.any_child("-");
        let pairs = |count: u32| {
            let mut transaction = Transaction::new();
            for _ in 0..count {
                transaction.create(passing.clone(), Vec::new()).delete(passing.clone(), None);
            }
            transaction
        };
        let pair_bytes = pairs(1).size_bytes() + 2 * self.operation_overhead();
        let most = u32::try_from(PAIRS_BYTES / pair_bytes).unwrap_or(PAIRS).clamp(1, PAIRS);
        let (whole, rest) = (pairs(most.min(numbers)), pairs(numbers % most));
        let transactions = std::iter::repeat_n((&whole, most), (numbers / most) as usize);
        let mut transactions =
            transactions.chain([(&rest, numbers % most)].into_iter().filter(|(_, count)| *count > 0));
        let mut in_flight = FuturesUnordered::new();
        let (mut done, mut failed) = (0, None);
        loop {
            while in_flight.len() < IN_FLIGHT
                && failed.is_none()
                && let Some((transaction, count)) = transactions.next()
            {
                in_flight.push(async move { self.try_commit(transaction).await.map(|_| count) });
            }
            match in_flight.next().await {
                None => break,
                Some(Ok(count)) => {
                    done += count;
                    progress(LoadProgress::Numbers(done, numbers));
                }
                // What is in flight is waited for: it may be counted yet.
                Some(Err(error)) => failed = Some(error),
            }
        }
        match failed {
            None => Ok(None),
            Some(CommitError::Unknown { operation, cause }) => Ok(Some(Error::Unknown { operation, cause })),
            Some(CommitError::NotDone { operation, cause }) if cause.is_connection() => {
                Ok(Some(Error::Commit { operation, cause }))
            }
            Some(error) => Err(self.explain(error).await),
        }
    }
}

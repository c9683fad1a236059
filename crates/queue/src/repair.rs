//! Repairing faults: what would be written for each, derived from the current tree.
//!
//! A fault report may be outdated: the daemons continue. So nothing of what is reported is trusted but the kind of the
//! fault and the item that shows it. The item is read again, the rules of [`fault`](super::fault) are evaluated again,
//! and a fault that is no longer there is not repaired. What is written checks the versions of what was read.
//!
//! A repair writes what follows from the rest of the tree, or removes an entry, a reference or a lock that belongs to
//! nothing. It never removes a job, a batch or an access request: that is a purge, by name
//! ([`Queue::plan_purge_broken`]).

use jiff::Timestamp;

use super::error::{ConflictKind, Error};
use super::fault::{Fault, FaultFinding, Limits};
use super::handle::{Queue, instant};
use super::lock::Lock;
use super::path::{LockFolder, Path};
use super::transaction::Transaction;

mod batch;
pub(super) mod facts;
mod job;
mod load;
mod lock;
mod name;
pub(super) mod request;
mod status;
mod survey;

pub use survey::Survey;

/// What would repair a fault, ready to be committed or to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The fault.
    pub fault: Fault,
    /// What shows it.
    pub item: Path,
    /// What is done, in a sentence.
    pub summary: String,
    /// Data that is not kept: znodes whose data is replaced or removed, each with that data. Empty where nothing is
    /// lost but an entry, a reference or a lock, which say nothing by their data.
    pub loses: Vec<(Path, Vec<u8>)>,
    /// What is written.
    pub transaction: Transaction,
}

/// How a fault is to be repaired, and by what time.
#[derive(Clone, Copy, Debug)]
pub struct RepairOptions<'a> {
    /// From when on something counts as a fault.
    pub limits: &'a Limits,
    /// The present time by the servers' clock.
    pub now: Timestamp,
    /// Whether to go on though another holds the item. What is written is written under the other's lock, as long as
    /// the item's status stays the same: a daemon that is just about to change the state may have made the next entry
    /// already, so this is for an item that is known to stay where it is. An item that is purged loses the lock of a
    /// living session with it, as it loses one that is not ephemeral in any case.
    pub even_if_locked: bool,
}

impl Queue {
    /// Plans to repair a fault that an item shows, without doing it; [`Queue::commit_repair`] does it.
    ///
    /// How long a fault must have lasted is not checked again, but whether it is there, and for one that is detected by
    /// its age whether it is old enough.
    ///
    /// # Errors
    /// [`Error::NotShown`] where the item does not show the fault, or does no longer: another repair may have been one
    /// of both. [`Error::Invalid`] where such an item cannot show it at all, no writing repairs it, or nothing in the
    /// tree says what would be right, with what an operator can do; [`Error::Conflict`] where another holds the item;
    /// [`Error::Missing`] where it is gone; [`Error::Read`].
    pub async fn plan_repair(&self, fault: Fault, item: &Path, options: RepairOptions<'_>) -> Result<Repair, Error> {
        self.plan_any_repair(fault, item, options, None).await
    }

    /// Plans to repair one of many faults: as [`Queue::plan_repair`], which lists the whole queue for a job, but by a
    /// survey that was made for all of them.
    ///
    /// # Errors
    /// As [`Queue::plan_repair`].
    pub async fn plan_repair_with(
        &self,
        fault: Fault,
        item: &Path,
        options: RepairOptions<'_>,
        survey: &Survey,
    ) -> Result<Repair, Error> {
        self.plan_any_repair(fault, item, options, Some(survey)).await
    }

    async fn plan_any_repair(
        &self,
        fault: Fault,
        item: &Path,
        options: RepairOptions<'_>,
        survey: Option<&Survey>,
    ) -> Result<Repair, Error> {
        if let Some(help) = fault.help(item) {
            return Err(not_by_writing(item.clone(), fault, help));
        }
        match (fault, item) {
            (Fault::LeakedLock, _) => self.repair_lock(item, options, survey).await,
            (Fault::LeakedStorageLock, Path::NamedLock(LockFolder::Storage, name)) => {
                self.repair_storage_lock(item, name, options).await
            }
            (_, Path::Job(job)) => self.repair_job(fault, *job, options, survey).await,
            (_, Path::Batch(batch)) => self.repair_batch(fault, *batch, options).await,
            (Fault::UnloadableRequest, Path::Request(queue, request)) => {
                self.repair_request(fault, *queue, *request, options).await
            }
            (Fault::DanglingUuid, Path::BatchUuid(_)) => self.repair_uuid(item, options).await,
            (Fault::MalformedName, Path::Unexpected(_)) => self.repair_name(item, options).await,
            (_, _) => {
                let reason = format!("{fault} does not apply to this znode");
                Err(Error::Invalid { path: item.clone(), reason })
            }
        }
    }

    /// Does what repairs a fault.
    ///
    /// # Errors
    /// As [`Queue::commit`].
    pub async fn commit_repair(&self, repair: &Repair) -> Result<(), Error> {
        self.commit(&repair.transaction).await.map(drop)
    }
}

impl Repair {
    /// One that loses nothing but entries, references or a lock.
    fn new(fault: Fault, item: Path, summary: impl Into<String>, transaction: Transaction) -> Self {
        Self { fault, item, summary: summary.into(), loses: Vec::new(), transaction }
    }

    /// Notes data that is not kept.
    fn losing(mut self, loses: impl IntoIterator<Item = (Path, Vec<u8>)>) -> Self {
        self.loses.extend(loses);
        self
    }
}

impl RepairOptions<'_> {
    /// Evaluates whether an item shows a fault now.
    fn confirm(
        &self,
        fault: Fault,
        item: &Path,
        evaluate: impl FnOnce(&Limits, &mut dyn FnMut(FaultFinding<'_>)),
    ) -> Result<(), Error> {
        self.first_of(&[fault], item, evaluate).map(drop)
    }

    /// Evaluates which fault keeps the daemons from loading an item: that its creation was not finished, or
    /// `unloadable`, the fault of that name for its kind.
    pub(super) fn broken(
        &self,
        item: &Path,
        unloadable: Fault,
        evaluate: impl FnOnce(&Limits, &mut dyn FnMut(FaultFinding<'_>)),
    ) -> Result<Fault, Error> {
        self.first_of(&[unloadable, Fault::UnfinishedCreation], item, evaluate)
    }

    /// One of these faults that the rules find now. What they find and is too young to count is not called repaired.
    fn first_of(
        &self,
        faults: &[Fault],
        item: &Path,
        evaluate: impl FnOnce(&Limits, &mut dyn FnMut(FaultFinding<'_>)),
    ) -> Result<Fault, Error> {
        let mut found: Option<(i64, Fault)> = None;
        evaluate(self.limits, &mut |finding| {
            let is_earlier = found.is_none_or(|(not_before_ms, _)| finding.not_before_ms < not_before_ms);
            if faults.contains(&finding.fault) && is_earlier {
                found = Some((finding.not_before_ms, finding.fault));
            }
        });
        match found {
            Some((not_before_ms, fault)) if not_before_ms <= self.now.as_millisecond() => Ok(fault),
            Some((not_before_ms, fault)) => {
                let reason = format!("it does not count as {fault} before {}", instant(not_before_ms));
                Err(Error::Invalid { path: item.clone(), reason })
            }
            None => Err(gone(faults[0], item)),
        }
    }

    /// Puts changes of an item between the taking and the releasing of its lock. Under the lock of another, where that
    /// is requested, they stand alone: only their checks ensure that the item is still as it was read.
    ///
    /// # Errors
    /// Where another holds it and that is not requested.
    fn under_lock(&self, path: Path, lock: Option<Lock>, changes: Transaction) -> Result<Transaction, Error> {
        match lock {
            None => {
                let mut transaction = Transaction::new();
                transaction.create_ephemeral(path.clone()).append(changes).delete(path, None);
                Ok(transaction)
            }
            Some(_) if self.even_if_locked => Ok(changes),
            Some(lock) => {
                let kind = ConflictKind::Locked { session: lock.session, since: lock.since };
                Err(Error::conflict(lock.path, kind))
            }
        }
    }
}

/// The fault is not there, or no longer.
fn gone(fault: Fault, item: &Path) -> Error {
    Error::NotShown { item: item.clone(), fault }
}

/// How many bytes of one znode's data a repair gives up: no more than the audit trail keeps of them.
const LOST_AT_MOST: usize = 16 << 10;

/// Why the data of a znode is too large to be given up by a repair, continuing "the znode ..", or `None`.
fn too_large_to_lose(data: &[u8]) -> Option<String> {
    let bytes = data.len();
    (bytes > LOST_AT_MOST).then(|| format!("holds {bytes} bytes, more than the audit trail records of discarded data"))
}

/// No writing repairs the item, but this fix does.
fn not_by_writing(item: Path, fault: Fault, fix: &str) -> Error {
    // What shows an error as a sentence ends it.
    let fix = fix.trim_end_matches('.');
    let reason = format!("{fault} cannot be repaired by writing values; its fix is “{fix}”");
    Error::Invalid { path: item, reason }
}

/// The correct value cannot be derived, so nothing is written.
fn underivable(item: Path, missing: &[String]) -> Error {
    let reason = format!(
        "it cannot be repaired, because the correct value cannot be derived from the rest of the tree: \
         {}. Write it by hand, or purge it by its name and have it submitted again",
        missing.join("; ")
    );
    Error::Invalid { path: item, reason }
}

#[cfg(test)]
mod tests;

//! Mending faults: what would be written for each, worked out from a fresh look at the tree.
//!
//! Whoever reports a fault may be late: the daemons work on. So nothing of what is reported is trusted but the kind of
//! the fault and the item that shows it. The item is read anew, the rules of [`fault`](super::fault) are asked again,
//! and a fault that is no longer there is not mended. What is written checks the versions of what was read.

use jiff::Timestamp;

use super::error::{ConflictKind, Error};
use super::fault::{Fault, Finding, Limits};
use super::handle::Queue;
use super::lock::Lock;
use super::path::{LockFolder, Path};
use super::purge::Chunk;
use super::transaction::Transaction;

mod batch;
mod facts;
mod job;
mod kind;
mod lock;
mod remove;
mod survey;

pub use kind::MendKind;
pub use survey::Survey;

/// What would mend a fault, ready to be committed or to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mend {
    /// The fault.
    pub fault: Fault,
    /// What shows it.
    pub item: Path,
    /// What is done, in a sentence.
    pub summary: String,
    /// Whether an item is removed with all that its znodes say.
    pub is_destructive: bool,
    /// Each znode that such an item consists of, with its data: what will be gone. Empty where nothing is lost but an
    /// entry, a reference or a lock, which say nothing by their data.
    pub removes: Vec<(Path, Vec<u8>)>,
    /// What is written: one transaction, but for a batch of very many jobs.
    pub chunks: Vec<Chunk>,
}

/// How a fault is to be mended, and by what time.
#[derive(Clone, Copy, Debug)]
pub struct MendOrder<'a> {
    /// From when on something counts as a fault.
    pub limits: &'a Limits,
    /// The present time by the servers' clock.
    pub now: Timestamp,
    /// Whether to go on though another holds the item. A job, batch or request that is removed then loses the lock of a
    /// living session with it, as it loses that of nobody's in any case. The entries and references of a job are settled
    /// under the other's lock, as long as its status stays the same: a daemon that is just about to change the state may
    /// have made the next entry already, so this is for a job that is known to stay where it is.
    pub even_if_locked: bool,
}

impl Queue {
    /// Plans to mend a fault that an item shows, without doing it; [`Queue::commit_mend`] does it.
    ///
    /// How long a fault must have lasted is not asked again, but whether it is there, and for one that is told by its
    /// age whether it is old enough.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the item does not show the fault any longer, cannot show it at all, or no writing mends
    /// it, with what does; [`Error::Conflict`] where a living session holds the item; [`Error::Missing`] and
    /// [`Error::Decode`] where the item's own znodes do not tell what would be right; [`Error::Read`].
    pub async fn plan_mend(&self, fault: Fault, item: &Path, order: MendOrder<'_>) -> Result<Mend, Error> {
        self.plan_any_mend(fault, item, order, None).await
    }

    /// Plans to mend one of many faults: as [`Queue::plan_mend`], which lists the whole queue for a job, but by a survey
    /// that was made for all of them.
    ///
    /// # Errors
    /// As [`Queue::plan_mend`].
    pub async fn plan_mend_with(
        &self,
        fault: Fault,
        item: &Path,
        order: MendOrder<'_>,
        survey: &Survey,
    ) -> Result<Mend, Error> {
        self.plan_any_mend(fault, item, order, Some(survey)).await
    }

    async fn plan_any_mend(
        &self,
        fault: Fault,
        item: &Path,
        order: MendOrder<'_>,
        survey: Option<&Survey>,
    ) -> Result<Mend, Error> {
        if let MendKind::Another(help) = fault.mend_kind() {
            return Err(Error::Invalid { path: item.clone(), reason: format!("no writing mends {fault}: {help}") });
        }
        match (fault, item) {
            (Fault::LeakedLock, _) => self.mend_lock(item, order, survey).await,
            (Fault::LeakedStorageLock, Path::NamedLock(LockFolder::Storage, name)) => {
                self.mend_storage_lock(item, name, order).await
            }
            (_, Path::Job(job)) => self.mend_job(fault, *job, order, survey).await,
            (_, Path::Batch(batch)) => self.mend_batch(fault, *batch, order).await,
            (Fault::UnloadableRequest | Fault::UnfinishedCreation, Path::Request(queue, request)) => {
                self.mend_request(fault, *queue, *request, order).await
            }
            (Fault::DanglingUuid, Path::BatchUuid(_)) => self.mend_uuid(item, order).await,
            (_, _) => Err(gone(fault, item)),
        }
    }

    /// Does what mends a fault, one transaction after the other.
    ///
    /// # Errors
    /// The first transaction's that was not done, as [`Queue::commit`]; those before it are done, and planning again
    /// goes on from there.
    pub async fn commit_mend(&self, mend: &Mend) -> Result<(), Error> {
        for chunk in &mend.chunks {
            self.commit(&chunk.transaction).await?;
        }
        Ok(())
    }
}

impl Mend {
    /// One that loses nothing but entries, references or a lock.
    fn harmless(fault: Fault, item: Path, summary: impl Into<String>, transaction: Transaction) -> Self {
        let chunks = vec![Chunk { jobs: Vec::new(), transaction }];
        Self { fault, item, summary: summary.into(), is_destructive: false, removes: Vec::new(), chunks }
    }
}

impl MendOrder<'_> {
    /// Asks the rules whether an item shows a fault now.
    fn confirm(
        &self,
        fault: Fault,
        item: &Path,
        judge: impl FnOnce(&Limits, &mut dyn FnMut(Finding<'_>)),
    ) -> Result<(), Error> {
        let now_ms = self.now.as_millisecond();
        let mut is_there = false;
        judge(self.limits, &mut |finding| is_there |= finding.fault == fault && finding.not_before_ms <= now_ms);
        if is_there { Ok(()) } else { Err(gone(fault, item)) }
    }

    /// Refuses what a living session holds, unless told otherwise.
    fn check_lock(&self, lock: Option<&Lock>) -> Result<(), Error> {
        match lock {
            Some(lock) if lock.session.is_some() && !self.even_if_locked => {
                let kind = ConflictKind::Locked { session: lock.session, since: lock.since };
                Err(Error::conflict(lock.path.clone(), kind))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The fault is not there, or no longer.
fn gone(fault: Fault, item: &Path) -> Error {
    Error::NotShown { item: item.clone(), fault }
}

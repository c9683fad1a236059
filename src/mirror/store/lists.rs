//! The lists that readers ask for in pages.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::MirrorStore;
use crate::mirror::failures::FailureGroup;
use crate::mirror::faults::FoundFault;
use crate::mirror::image::{Batch, Image, JobStanding, NAMED, Request};
use crate::mirror::lists::{
    BatchDetail, BatchOrder, BatchQuery, CollectionBatches, FailureOrder, FaultOrder, ListedLock, LockQuery,
    RequestOrder, RequestQuery, SessionLocks,
};
use crate::mirror::page::{ListError, Page, PageRequest};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::Path;
use queuekeeper_queue::record::WithdrawalNote;
use queuekeeper_queue::state::BatchState;

impl MirrorStore {
    /// A page of the batches that fit a filter.
    ///
    /// # Errors
    /// Before the first walk, and for a cursor that is none of this list in this order.
    pub fn batch_list(
        &self,
        query: &BatchQuery,
        order: BatchOrder,
        part: &PageRequest,
    ) -> Result<Page<BatchDetail>, ListError> {
        let page = self.read(|image, offset| image.batch_page(query, order, part, offset));
        Ok(page.ok_or(ListError::NoImage)??)
    }

    /// What decides whether an action on each of these jobs is refused, `None` for a job that is not there. `None`
    /// before the first walk. Of very many jobs it is not of one moment: changes are not held up for so long.
    #[must_use]
    pub fn job_standings(&self, jobs: &[JobId]) -> Option<Vec<Option<JobStanding>>> {
        /// How many jobs are looked at before changes get their turn.
        const AT_ONCE: usize = 4096;
        let mut standings = Vec::with_capacity(jobs.len());
        for some in jobs.chunks(AT_ONCE) {
            standings
                .extend(self.read(|image, _| some.iter().map(|job| image.job_standing(*job)).collect::<Vec<_>>())?);
        }
        Some(standings)
    }

    /// The held collections that these jobs belong to, each with how many of them; those of most jobs first.
    #[must_use]
    pub fn held_collections_of(&self, jobs: &[JobId]) -> Vec<(Arc<str>, u64)> {
        let count = |image: &Image, _| image.held_collections_of(jobs);
        self.read(count).unwrap_or_default()
    }

    /// The batches of a collection that are Held, in the order of their ids.
    #[must_use]
    pub fn held_batches(&self, collection: &str) -> Vec<Batch> {
        let is_held = |batch: &Batch| batch.state == Some(BatchState::Held) && *batch.collection == *collection;
        let mut held: Vec<_> = self.batches().unwrap_or_default().into_iter().filter(is_held).collect();
        held.sort_unstable_by_key(|batch| batch.id);
        held
    }

    /// One batch; `None` for one that is not there, and before the first walk.
    #[must_use]
    pub fn batch(&self, id: BatchId) -> Option<BatchDetail> {
        self.read(|image, offset| image.batch(id, offset)).flatten()
    }

    /// How far the withdrawal of a batch is; `None` where it is not being withdrawn, and before the first walk.
    #[must_use]
    pub fn withdrawal(&self, id: BatchId) -> Option<WithdrawalNote> {
        self.read(|image, _| image.withdrawal(id)).flatten()
    }

    /// The batch that a depositor knows under a UUID: the one that `/batch-uuids` leads to, or else the first one whose
    /// submission has it. `None` for one that is not there.
    #[must_use]
    pub fn batch_of_uuid(&self, uuid: &str) -> Option<BatchId> {
        self.read(|image, _| image.batch_of_uuid(uuid)).flatten()
    }

    /// The collections that batches have, by mnemonic; `None` before the first walk.
    #[must_use]
    pub fn batch_collections(&self) -> Option<Vec<CollectionBatches>> {
        self.read(|image, _| image.batch_collections())
    }

    /// A page of the access requests that fit a filter.
    ///
    /// # Errors
    /// Before the first walk, and for a cursor that is none of this list in this order.
    pub fn request_list(
        &self,
        query: &RequestQuery,
        order: RequestOrder,
        part: &PageRequest,
        now: Timestamp,
    ) -> Result<Page<Request>, ListError> {
        let page = self.read(|image, offset| image.request_page(query, order, part, now, offset));
        Ok(page.ok_or(ListError::NoImage)??)
    }

    /// A page of the locks that fit a filter.
    ///
    /// # Errors
    /// Before the first walk, and for a cursor that is none of this list in this order.
    pub fn lock_list(
        &self,
        query: LockQuery,
        part: &PageRequest,
        now: Timestamp,
    ) -> Result<Page<ListedLock>, ListError> {
        let page = self.read(|image, offset| image.lock_page(query, part, now, offset));
        Ok(page.ok_or(ListError::NoImage)??)
    }

    /// When a lock was created, by our own clock; `None` for one that does not exist or is not readable.
    #[must_use]
    pub fn locked_since(&self, lock: &Path) -> Option<Timestamp> {
        self.read(|image, offset| image.lock_stat(lock).map(|stat| offset.to_own(stat.created_ms))).flatten()
    }

    /// When a lock was created, by the servers' clock: to be compared with other instants of theirs, since what we
    /// think of the distance to ours changes.
    #[must_use]
    pub fn locked_by_servers(&self, lock: &Path) -> Option<Timestamp> {
        let created = self.read(|image, _| image.lock_stat(lock).map(|stat| stat.created_ms)).flatten();
        Timestamp::from_millisecond(created?).ok()
    }

    /// When a job entered its state, by the servers' clock; `None` for one that is not there, or of which it is not
    /// known.
    #[must_use]
    pub fn entered_by_servers(&self, job: JobId) -> Option<Timestamp> {
        let entered = self.read(|image, _| image.entered_ms(job)).flatten();
        Timestamp::from_millisecond(entered?).ok()
    }

    /// The faults that items show and that do not count yet only because they have not been seen for long enough: of
    /// each kind how many items, and for how long they must be seen. A single look confirms none that must last for
    /// longer than it takes. `None` before the first walk.
    #[must_use]
    pub fn unconfirmed(&self, now: Timestamp) -> Option<Vec<(Fault, u64, Duration)>> {
        self.ask(now, None, |image, fault_query| image.unconfirmed(fault_query.now_ms))
    }

    /// The znodes that cannot be decoded, are not readable, or have an unexpected name: the first hundred.
    /// `None` before the first walk.
    #[must_use]
    pub fn unreadable(&self) -> Option<Vec<Path>> {
        self.read(|image, _| image.unreadable_paths(NAMED))
    }

    /// The sessions that hold the most locks, at most `limit` of them, and how many there are; `None` before the first
    /// walk.
    #[must_use]
    pub fn sessions(&self, limit: usize) -> Option<(Vec<SessionLocks>, usize)> {
        self.read(|image, _| image.sessions(limit))
    }

    /// A page of the groups of failed jobs.
    ///
    /// # Errors
    /// Before the first walk, and for a cursor that is none of this list in this order.
    pub fn failures(&self, order: FailureOrder, part: &PageRequest) -> Result<Page<FailureGroup>, ListError> {
        let page = self.read(|image, offset| image.failures(order, part, offset));
        Ok(page.ok_or(ListError::NoImage)??)
    }

    /// A page of the faults of one kind, or of all of them. `now` and `space` as for [`MirrorStore::summary`].
    ///
    /// # Errors
    /// Before the first walk, and for a cursor that is none of this list in this order.
    pub fn fault_list(
        &self,
        fault: Option<Fault>,
        order: FaultOrder,
        part: &PageRequest,
        now: Timestamp,
        space: Option<i64>,
    ) -> Result<Page<FoundFault>, ListError> {
        let page = self.ask(now, space, |image, fault_query| image.fault_page(fault, order, part, fault_query));
        Ok(page.ok_or(ListError::NoImage)??)
    }
}

#[cfg(test)]
mod tests;

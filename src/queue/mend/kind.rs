//! What kind of order mends which fault.

use crate::queue::fault::Fault;

/// What kind of order mends a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MendKind {
    /// Writing what follows from the rest of the tree; nothing is lost.
    Writes,
    /// Removing an item that nobody can work on, with all that its znodes say.
    Removes,
    /// Breaking a lock.
    BreaksLock,
    /// Something else, which this says.
    Another(&'static str),
}

impl Fault {
    /// What kind of order mends it. [`MendKind::Removes`] is what it may come to: a batch that is Held without `states`
    /// is not removed. Of batches without end, writing helps those that are Failed without `states/batch-processing`.
    #[must_use]
    pub fn mend_kind(self) -> MendKind {
        match self {
            Self::OrphanEntry
            | Self::StrayEntry
            | Self::DuplicateEntry
            | Self::MissingEntry
            | Self::DuplicateReference
            | Self::MissingReference
            | Self::PriorityOutOfRange
            | Self::DeletedBatchBlocksReporting
            | Self::BatchWithoutEnd
            | Self::DanglingUuid => MendKind::Writes,
            Self::UnloadableJob | Self::UnloadableBatch | Self::UnloadableRequest | Self::UnfinishedCreation => {
                MendKind::Removes
            }
            Self::LeakedLock | Self::LeakedStorageLock => MendKind::BreaksLock,
            Self::StuckState => MendKind::Another("look at the daemons of that state and at what stands at its head"),
            Self::HeldCollectionBacklog => {
                MendKind::Another("release the collection, or the held jobs of one that is free")
            }
            Self::ForgottenPause => MendKind::Another("let the queue go on, or release the collection"),
            Self::FolderNearLimit => MendKind::Another("purge what is done with"),
            Self::RetriesExhausted => MendKind::Another("resume the job once its cause is mended, or delete it"),
        }
    }
}

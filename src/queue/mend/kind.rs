//! What kind of order mends which fault.

use crate::queue::fault::Fault;

/// What kind of order mends a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MendKind {
    /// Writing what follows from the rest of the tree; nothing is lost.
    Writes,
    /// Breaking a lock.
    BreaksLock,
    /// Something else, which this says.
    Another(&'static str),
}

impl Fault {
    /// What kind of order mends it. Of what cannot be loaded a repair writes what follows from the rest of the tree, and
    /// refuses the rest; of batches without end, writing helps those that are Failed without `states/batch-processing`.
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
            | Self::UnloadableJob
            | Self::UnloadableBatch
            | Self::UnloadableRequest
            | Self::DeletedBatchBlocksReporting
            | Self::BatchWithoutEnd
            | Self::DanglingUuid => MendKind::Writes,
            Self::UnfinishedCreation => {
                MendKind::Another("purge it by its name, once it is clear that no client is still creating it")
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

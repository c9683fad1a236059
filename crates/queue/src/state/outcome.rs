//! What became of the jobs of a batch.

/// The folders below `/batches/BID/states`, each holding a reference for every job of that outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobOutcome {
    /// Jobs that are not done: the batch is done when this folder is empty.
    Processing,
    /// Failed jobs.
    Failed,
    /// Completed jobs.
    Completed,
    /// Deleted jobs.
    Deleted,
}

impl JobOutcome {
    /// Every outcome.
    pub const ALL: [Self; 4] = [Self::Processing, Self::Failed, Self::Completed, Self::Deleted];

    /// The folder's name, such as `batch-processing`.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Self::Processing => "batch-processing",
            Self::Failed => "batch-failed",
            Self::Completed => "batch-completed",
            Self::Deleted => "batch-deleted",
        }
    }

    /// Reads a folder's name.
    #[must_use]
    pub fn from_folder(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.folder() == name)
    }
}

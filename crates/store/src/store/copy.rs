//! How a copy within a store is ended, and who takes note of what it may leave.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::CommitGuard;

/// How a copy within a store is ended, and who takes note of what it may leave.
#[derive(Clone, Default)]
pub struct CopyControl {
    /// Ends it.
    pub abort: CancellationToken,
    /// Takes note of an upload in parts before the first part is copied. [`CommitGuard::pass`] is not called: who
    /// copies does not see the content.
    pub guard: Option<Arc<dyn CommitGuard>>,
}

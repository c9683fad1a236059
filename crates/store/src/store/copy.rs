//! How a copy within a store is ended, and who takes note of what it may leave.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Gate;

/// How a copy within a store is ended, and who takes note of what it may leave.
#[derive(Clone, Default)]
pub struct CopyControl {
    /// Ends it.
    pub abort: CancellationToken,
    /// Takes note of an upload in parts before the first part is copied. [`Gate::pass`] is not called: who copies does not see
    /// the content.
    pub gate: Option<Arc<dyn Gate>>,
}

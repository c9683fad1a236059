//! How a copy within a store is ended, and who takes note of what it may leave.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{CommitGuard, INTERRUPTED, Item, Written};
use crate::error::{Error, ErrorKind, Operation};
use crate::name::StoreName;

/// How a copy within a store is ended, and who takes note of what it may leave.
#[derive(Clone, Default)]
pub struct CopyControl {
    /// Ends it.
    pub abort: CancellationToken,
    /// Takes note of an upload in parts before the first part is copied. [`CommitGuard::pass`] is not called: who copies does not see
    /// the content.
    pub guard: Option<Arc<dyn CommitGuard>>,
}

impl CopyControl {
    /// The answer of a store whose copies cannot be ended: when the token ends the wait for it, it is not certain whether the
    /// copy to `to` will appear.
    ///
    /// # Errors
    /// That of the copy; [`Unknown`](ErrorKind::Unknown) where the wait was ended.
    pub async fn or_unknown(
        &self,
        store: &StoreName,
        to: &Item,
        copy: impl Future<Output = Result<Written, Error>>,
    ) -> Result<Written, Error> {
        tokio::select! {
            biased;
            copied = copy => copied,
            () = self.abort.cancelled() => {
                let (store, subject) = (store.clone(), to.to_string());
                let kind = ErrorKind::Unknown(INTERRUPTED.to_owned());
                Err(Error { store, operation: Operation::Copy, subject, kind })
            }
        }
    }
}

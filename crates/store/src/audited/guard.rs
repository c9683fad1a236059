//! What stands between the last byte of content and the instant at which it appears.

use std::sync::Arc;

use async_trait::async_trait;

use super::lease::Lease;
use crate::digest::Digests;
use crate::store::CommitGuard;

/// Records what is about to appear, once the caller's own guard has let it through.
pub(super) struct LeaseGuard {
    pub(super) lease: Arc<Lease>,
    pub(super) callers: Option<Arc<dyn CommitGuard>>,
}

#[async_trait]
impl CommitGuard for LeaseGuard {
    async fn pass(&self, size: u64, digests: &Digests) -> Result<(), String> {
        if let Some(callers) = &self.callers {
            callers.pass(size, digests).await?;
        }
        if self.lease.is_of(size, digests).await {
            return Ok(());
        }
        // What appears from here on is found by what is recorded here, whatever becomes of this process.
        let record = |intent: &mut crate::audit::Intent| {
            intent.size = Some(size);
            intent.digests = digests.clone();
        };
        self.lease.update(record).await
    }

    async fn begun(&self, upload: &str) -> Result<(), String> {
        self.lease.update(|intent| intent.upload = Some(upload.to_owned())).await?;
        match &self.callers {
            Some(callers) => callers.begun(upload).await,
            None => Ok(()),
        }
    }
}

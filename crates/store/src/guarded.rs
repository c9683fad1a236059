//! A store that asks before each write whether it may begin: [`Guarded`].

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::archive::RestoreRequest;
use crate::error::{Error, ErrorKind, Operation};
use crate::key::Key;
use crate::name::{SpaceName, StoreName};
use crate::store::{
    Capabilities, Chunks, Condition, Content, CopyControl, EntityTag, Item, Listing, Properties, Put, Store,
    UserProperties, Written,
};

/// Says whether a write may begin: by a lock that is held, a signal that came.
pub trait WriteGuard: Send + Sync + 'static {
    /// Lets a write begin, at once or after a wait. The error is the reason why it may not.
    fn pass(&self) -> BoxFuture<'_, Result<(), String>>;
}

/// Asks a guard before each write; one that may not begin is [`Stopped`](ErrorKind::Stopped). Reads pass through, and
/// what has begun is not ended.
pub struct Guarded {
    store: Arc<dyn Store>,
    guard: Arc<dyn WriteGuard>,
}

impl Guarded {
    /// Guards the writes to a store.
    pub fn new(store: Arc<dyn Store>, guard: Arc<dyn WriteGuard>) -> Self {
        Self { store, guard }
    }

    async fn pass(&self, operation: Operation, subject: &(impl ToString + Sync)) -> Result<(), Error> {
        let refused = |why| Error {
            store: self.store.name().clone(),
            operation,
            subject: subject.to_string(),
            kind: ErrorKind::Stopped(why),
        };
        self.guard.pass().await.map_err(refused)
    }
}

#[async_trait]
impl Store for Guarded {
    fn name(&self) -> &StoreName {
        self.store.name()
    }

    fn directory(&self) -> Option<&Path> {
        self.store.directory()
    }

    async fn spaces(&self) -> Result<Vec<SpaceName>, Error> {
        self.store.spaces().await
    }

    async fn create_space(&self, space: &SpaceName) -> Result<bool, Error> {
        self.pass(Operation::CreateSpace, space).await?;
        self.store.create_space(space).await
    }

    async fn delete_space(&self, space: &SpaceName) -> Result<bool, Error> {
        self.pass(Operation::DeleteSpace, space).await?;
        self.store.delete_space(space).await
    }

    fn list(&self, space: &SpaceName, prefix: &[u8], after: Option<&Key>) -> Listing {
        self.store.list(space, prefix, after)
    }

    async fn head(&self, item: &Item) -> Result<Option<Properties>, Error> {
        self.store.head(item).await
    }

    async fn get(
        &self,
        item: &Item,
        range: Option<Range<u64>>,
        if_match: Option<&EntityTag>,
    ) -> Result<Content, Error> {
        self.store.get(item, range, if_match).await
    }

    async fn presign(&self, item: &Item, disposition: &str, lifetime: Duration) -> Result<Option<String>, Error> {
        self.store.presign(item, disposition, lifetime).await
    }

    async fn put(&self, item: &Item, content: Chunks, put: Put) -> Result<Written, Error> {
        self.pass(Operation::Put, item).await?;
        self.store.put(item, content, put).await
    }

    async fn copy_with(
        &self,
        from: &Item,
        if_match: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
        control: &CopyControl,
    ) -> Result<Written, Error> {
        self.pass(Operation::Copy, to).await?;
        self.store.copy_with(from, if_match, to, condition, control).await
    }

    async fn delete(&self, item: &Item, if_match: Option<&EntityTag>) -> Result<bool, Error> {
        self.pass(Operation::Delete, item).await?;
        self.store.delete(item, if_match).await
    }

    async fn set_properties(
        &self,
        item: &Item,
        user: &UserProperties,
        if_match: Option<&EntityTag>,
    ) -> Result<Written, Error> {
        self.pass(Operation::SetProperties, item).await?;
        self.store.set_properties(item, user, if_match).await
    }

    async fn abort_upload(&self, item: &Item, upload: &str) -> Result<(), Error> {
        self.pass(Operation::AbortUpload, item).await?;
        self.store.abort_upload(item, upload).await
    }

    async fn restore(&self, item: &Item, request: RestoreRequest) -> Result<(), Error> {
        self.pass(Operation::Restore, item).await?;
        self.store.restore(item, request).await
    }

    async fn probe(&self) -> Result<Capabilities, Error> {
        self.pass(Operation::Probe, &"").await?;
        self.store.probe().await
    }

    async fn remove_probe_bucket(&self) -> Result<bool, Error> {
        self.pass(Operation::DeleteSpace, &"").await?;
        self.store.remove_probe_bucket().await
    }

    async fn sweep(&self, before: Timestamp) -> Result<u64, Error> {
        self.pass(Operation::Sweep, &"").await?;
        self.store.sweep(before).await
    }
}

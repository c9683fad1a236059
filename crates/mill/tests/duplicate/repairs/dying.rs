//! A store that the process dies in: before a change, or behind it and before anyone hears of it.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;
use queuekeeper_store::archive::RestoreRequest;
use queuekeeper_store::store::{
    Capabilities, Chunks, Condition, Content, CopyControl, EntityTag, Item, Listing, Properties, Put, UserProperties,
    Written,
};
use queuekeeper_store::{Error, Key, SpaceName, Store, StoreName};
use tokio::sync::Notify;

pub(in crate::duplicate) struct Dying {
    store: Arc<dyn Store>,
    /// At which step it dies; 0 for never.
    left: AtomicUsize,
    died: Notify,
}

impl Dying {
    pub(in crate::duplicate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, left: AtomicUsize::new(0), died: Notify::new() }
    }

    pub(in crate::duplicate) fn die_at(&self, step: usize) {
        self.left.store(step, Ordering::SeqCst);
    }

    /// Returns when it has died.
    pub(in crate::duplicate) async fn died(&self) {
        self.died.notified().await;
    }

    async fn step(&self) {
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left == Ok(1) {
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
    }

    async fn around<T>(&self, change: impl Future<Output = T> + Send) -> T {
        self.step().await;
        let made = change.await;
        self.step().await;
        made
    }
}

#[async_trait]
impl Store for Dying {
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
        self.around(self.store.create_space(space)).await
    }

    async fn delete_space(&self, space: &SpaceName) -> Result<bool, Error> {
        self.around(self.store.delete_space(space)).await
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

    async fn put(&self, item: &Item, content: Chunks, put: Put) -> Result<Written, Error> {
        self.around(self.store.put(item, content, put)).await
    }

    async fn copy_with(
        &self,
        from: &Item,
        if_match: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
        control: &CopyControl,
    ) -> Result<Written, Error> {
        self.around(self.store.copy_with(from, if_match, to, condition, control)).await
    }

    async fn delete(&self, item: &Item, if_match: Option<&EntityTag>) -> Result<bool, Error> {
        self.around(self.store.delete(item, if_match)).await
    }

    async fn set_properties(
        &self,
        item: &Item,
        user: &UserProperties,
        if_match: Option<&EntityTag>,
    ) -> Result<Written, Error> {
        self.around(self.store.set_properties(item, user, if_match)).await
    }

    async fn abort_upload(&self, item: &Item, upload: &str) -> Result<(), Error> {
        self.store.abort_upload(item, upload).await
    }

    async fn restore(&self, item: &Item, request: RestoreRequest) -> Result<(), Error> {
        self.store.restore(item, request).await
    }

    async fn probe(&self) -> Result<Capabilities, Error> {
        self.store.probe().await
    }

    async fn sweep(&self, before: Timestamp) -> Result<u64, Error> {
        self.store.sweep(before).await
    }
}

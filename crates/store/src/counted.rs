//! A store of which every operation is counted, for one that counts nothing by itself: [`Counted`].

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::archive::RestoreRequest;
use crate::error::{Error, Operation};
use crate::key::Key;
use crate::metrics::{StoreMetrics, StoreRequestOutcome};
use crate::name::{SpaceName, StoreName};
use crate::store::{
    Capabilities, Chunks, Condition, Content, CopyControl, EntityTag, Item, Listing, Properties, Put, Store,
    UserProperties, Written,
};

/// Counts each operation of a store as one request, from its beginning to its answer; a listing to its end. Of a get,
/// the answer is the beginning of the content.
pub struct Counted<S> {
    store: S,
    metrics: StoreMetrics,
}

impl<S: Store> Counted<S> {
    /// Counts the operations of this store.
    pub fn new(store: S, metrics: StoreMetrics) -> Self {
        Self { store, metrics }
    }

    async fn count<T>(&self, operation: Operation, run: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let began = Instant::now();
        let answer = run.await;
        self.metrics.request(operation, outcome(&answer), began.elapsed());
        answer
    }

    /// The same for what writes content.
    async fn count_written(
        &self,
        operation: Operation,
        run: impl Future<Output = Result<Written, Error>>,
    ) -> Result<Written, Error> {
        let written = self.count(operation, run).await;
        self.metrics.written(written.as_ref().map_or(0, |written| written.size));
        written
    }
}

fn outcome<T>(answer: &Result<T, Error>) -> StoreRequestOutcome {
    answer.as_ref().map_or_else(|error| StoreRequestOutcome::from(&error.kind), |_| StoreRequestOutcome::Ok)
}

#[async_trait]
impl<S: Store> Store for Counted<S> {
    fn name(&self) -> &StoreName {
        self.store.name()
    }

    fn directory(&self) -> Option<&Path> {
        self.store.directory()
    }

    async fn spaces(&self) -> Result<Vec<SpaceName>, Error> {
        self.count(Operation::Spaces, self.store.spaces()).await
    }

    async fn create_space(&self, space: &SpaceName) -> Result<bool, Error> {
        self.count(Operation::CreateSpace, self.store.create_space(space)).await
    }

    async fn delete_space(&self, space: &SpaceName) -> Result<bool, Error> {
        self.count(Operation::DeleteSpace, self.store.delete_space(space)).await
    }

    fn list(&self, space: &SpaceName, prefix: &[u8], after: Option<&Key>) -> Listing {
        let listing = self.store.list(space, prefix, after);
        let (metrics, began) = (self.metrics.clone(), Instant::now());
        // Where it fails or ends, it is counted; one that is not read to its end is not.
        stream::unfold(Some(listing), move |listing| {
            let metrics = metrics.clone();
            async move {
                let mut listing = listing?;
                let item = listing.try_next().await;
                if let Ok(Some(item)) = item {
                    return Some((Ok(item), Some(listing)));
                }
                metrics.request(Operation::List, outcome(&item), began.elapsed());
                item.err().map(|error| (Err(error), None))
            }
        })
        .boxed()
    }

    async fn head(&self, item: &Item) -> Result<Option<Properties>, Error> {
        self.count(Operation::Head, self.store.head(item)).await
    }

    async fn get(
        &self,
        item: &Item,
        range: Option<Range<u64>>,
        if_match: Option<&EntityTag>,
    ) -> Result<Content, Error> {
        let Content { properties, chunks } = self.count(Operation::Get, self.store.get(item, range, if_match)).await?;
        let metrics = self.metrics.clone();
        let chunks = chunks.inspect_ok(move |chunk| metrics.read(chunk.len() as u64)).boxed();
        Ok(Content { properties, chunks })
    }

    async fn presign(&self, item: &Item, disposition: &str, lifetime: Duration) -> Result<Option<String>, Error> {
        self.store.presign(item, disposition, lifetime).await
    }

    async fn put(&self, item: &Item, content: Chunks, put: Put) -> Result<Written, Error> {
        self.count_written(Operation::Put, self.store.put(item, content, put)).await
    }

    async fn copy_with(
        &self,
        from: &Item,
        if_match: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
        control: &CopyControl,
    ) -> Result<Written, Error> {
        let copy = self.store.copy_with(from, if_match, to, condition, control);
        self.count_written(Operation::Copy, copy).await
    }

    async fn delete(&self, item: &Item, if_match: Option<&EntityTag>) -> Result<bool, Error> {
        self.count(Operation::Delete, self.store.delete(item, if_match)).await
    }

    async fn set_properties(
        &self,
        item: &Item,
        user: &UserProperties,
        if_match: Option<&EntityTag>,
    ) -> Result<Written, Error> {
        self.count(Operation::SetProperties, self.store.set_properties(item, user, if_match)).await
    }

    async fn abort_upload(&self, item: &Item, upload: &str) -> Result<(), Error> {
        self.count(Operation::AbortUpload, self.store.abort_upload(item, upload)).await
    }

    async fn restore(&self, item: &Item, request: RestoreRequest) -> Result<(), Error> {
        self.count(Operation::Restore, self.store.restore(item, request)).await
    }

    async fn probe(&self) -> Result<Capabilities, Error> {
        self.count(Operation::Probe, self.store.probe()).await
    }

    async fn remove_probe_bucket(&self) -> Result<bool, Error> {
        self.store.remove_probe_bucket().await
    }

    async fn sweep(&self, before: Timestamp) -> Result<u64, Error> {
        self.count(Operation::Sweep, self.store.sweep(before)).await
    }
}

//! A store that keeps to rates, and counts what is read and written.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use queuekeeper_store::archive::RestoreRequest;
use queuekeeper_store::store::{
    Capabilities, Chunks, Condition, Content, CopyControl, EntityTag, Item, Listing, Properties, Put, Store,
    UserProperties, Written,
};
use queuekeeper_store::{Error, Key, SpaceName, StoreName};

use super::cold::Cold;
use super::elsewhere::Elsewhere;
use super::rate::Rate;
use crate::limits::StoreLimits;
use crate::metrics::MillMetrics;
use crate::worker::Lease;

/// How many items of a listing count as one request: as many as a bucket lists at once.
const PAGE: usize = 1000;

/// What all workers of a process keep to together.
#[derive(Debug, Default)]
pub(super) struct Rates {
    bytes: Option<Rate>,
    requests: Option<Rate>,
}

impl Rates {
    pub(super) fn new(limits: &StoreLimits) -> Self {
        let bytes = limits.bandwidth.map(|bandwidth| Rate::new(bandwidth.bytes()));
        Self { bytes, requests: limits.requests.map(Rate::new) }
    }

    async fn request(&self, lease: &Lease) {
        if let Some(requests) = &self.requests {
            requests.take(1, lease).await;
        }
    }
}

/// A store that keeps to rates. An operation is a request, an upload in parts among them.
pub(super) struct Limited {
    pub(super) store: Arc<dyn Store>,
    pub(super) rates: Arc<Rates>,
    /// What reading costs, where that is limited.
    pub(super) cold: Option<Cold>,
    /// Which store is read in place of this one.
    pub(super) elsewhere: Option<Elsewhere>,
    pub(super) metrics: MillMetrics,
    pub(super) lease: Lease,
}

impl Limited {
    async fn request(&self) {
        self.rates.request(&self.lease).await;
    }

    /// The answer to a copy within the store; where its source is archived, the restore of that is requested.
    async fn unless_archived(&self, from: &Item, copied: Result<Written, Error>) -> Result<Written, Error> {
        match &self.cold {
            Some(cold) => cold.unless_archived(&self.store, from, copied).await,
            None => copied,
        }
    }

    /// Content at the rate for bytes, counted.
    fn paced(&self, chunks: Chunks, counter: Counter) -> Chunks {
        let (rates, lease) = (Arc::clone(&self.rates), self.lease.clone());
        let pace = move |chunk: Bytes| {
            let (rates, lease, counter) = (Arc::clone(&rates), lease.clone(), counter.clone());
            async move {
                let length = chunk.len() as u64;
                if let Some(bytes) = &rates.bytes {
                    bytes.take(length, &lease).await;
                }
                counter.inc_by(length);
                Ok(chunk)
            }
        };
        chunks.and_then(pace).boxed()
    }
}

#[async_trait]
impl Store for Limited {
    fn name(&self) -> &StoreName {
        self.store.name()
    }

    fn directory(&self) -> Option<&Path> {
        self.store.directory()
    }

    async fn spaces(&self) -> Result<Vec<SpaceName>, Error> {
        self.request().await;
        self.store.spaces().await
    }

    async fn create_space(&self, space: &SpaceName) -> Result<bool, Error> {
        self.request().await;
        self.store.create_space(space).await
    }

    async fn delete_space(&self, space: &SpaceName) -> Result<bool, Error> {
        self.request().await;
        self.store.delete_space(space).await
    }

    fn list(&self, space: &SpaceName, prefix: &[u8], after: Option<&Key>) -> Listing {
        let listing = self.store.list(space, prefix, after);
        if self.rates.requests.is_none() {
            return listing;
        }
        let (rates, lease) = (Arc::clone(&self.rates), self.lease.clone());
        let begin = {
            let (rates, lease) = (Arc::clone(&rates), lease.clone());
            async move {
                rates.request(&lease).await;
                listing
            }
        };
        let pages = begin.flatten_stream().enumerate().then(move |(at, item)| {
            let (rates, lease) = (Arc::clone(&rates), lease.clone());
            async move {
                if at % PAGE == PAGE - 1 {
                    rates.request(&lease).await;
                }
                item
            }
        });
        pages.boxed()
    }

    async fn head(&self, item: &Item) -> Result<Option<Properties>, Error> {
        self.request().await;
        self.store.head(item).await
    }

    async fn get(
        &self,
        item: &Item,
        range: Option<Range<u64>>,
        if_match: Option<&EntityTag>,
    ) -> Result<Content, Error> {
        if let (Some(elsewhere), None, Some(etag)) = (&self.elsewhere, &range, if_match)
            && let Some(content) = elsewhere.get(self.name(), item, etag).await?
        {
            return Ok(content);
        }
        self.request().await;
        let Content { properties, chunks } = match &self.cold {
            Some(cold) => cold.get(&self.store, item, range, if_match).await?,
            None => self.store.get(item, range, if_match).await?,
        };
        Ok(Content { properties, chunks: self.paced(chunks, self.metrics.read()) })
    }

    async fn presign(&self, item: &Item, disposition: &str, lifetime: Duration) -> Result<Option<String>, Error> {
        self.store.presign(item, disposition, lifetime).await
    }

    async fn put(&self, item: &Item, content: Chunks, put: Put) -> Result<Written, Error> {
        self.request().await;
        self.store.put(item, self.paced(content, self.metrics.written()), put).await
    }

    async fn copy_with(
        &self,
        from: &Item,
        if_match: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
        control: &CopyControl,
    ) -> Result<Written, Error> {
        self.request().await;
        let copied = self.store.copy_with(from, if_match, to, condition, control).await;
        self.unless_archived(from, copied).await
    }

    async fn delete(&self, item: &Item, if_match: Option<&EntityTag>) -> Result<bool, Error> {
        self.request().await;
        self.store.delete(item, if_match).await
    }

    async fn set_properties(
        &self,
        item: &Item,
        user: &UserProperties,
        if_match: Option<&EntityTag>,
    ) -> Result<Written, Error> {
        self.request().await;
        self.store.set_properties(item, user, if_match).await
    }

    async fn abort_upload(&self, item: &Item, upload: &str) -> Result<(), Error> {
        self.request().await;
        self.store.abort_upload(item, upload).await
    }

    async fn restore(&self, item: &Item, request: RestoreRequest) -> Result<(), Error> {
        self.request().await;
        self.store.restore(item, request).await
    }

    async fn probe(&self) -> Result<Capabilities, Error> {
        self.request().await;
        self.store.probe().await
    }

    async fn remove_probe_bucket(&self) -> Result<bool, Error> {
        self.request().await;
        self.store.remove_probe_bucket().await
    }

    async fn sweep(&self, before: Timestamp) -> Result<u64, Error> {
        self.request().await;
        self.store.sweep(before).await
    }
}

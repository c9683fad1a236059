//! A store in buckets of S3, or of a service that speaks its protocol.
//!
//! Requests go through the AWS SDK, which signs them and reads the answers. Repetitions, limits of time and of requests
//! at once are ours (in `call`), and the SDK's are off. From a space to bytes:
//!
//! - [`config`], [`location`], [`credentials`]: what is configured; `client`: the SDK's client for it;
//! - `call`, `failure`: one request, and what it fails with;
//! - `spaces`, `list`, `head`, `get`, `presign`: reading; `put`, `upload`, `copy`, `remove`, `restore`: changing;
//! - `probe`, `forms`: what the service really does, found out before the first change.

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::types::StorageClass;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;

use crate::archive::RestoreRequest;
use crate::error::{Error, ErrorKind, Operation};
use crate::key::Key;
use crate::limit::ConcurrencyLimit;
use crate::metrics::StoreMetrics;
use crate::name::{SpaceName, StoreName};
use crate::retry::RetryPolicy;
use crate::store::{
    Capabilities, Chunks, Condition, Content, CopyControl, EntityTag, Item, Listing, Properties, Put, Store,
    UserProperties, Written,
};

mod call;
mod client;
pub mod config;
mod copy;
pub mod credentials;
mod failure;
mod forms;
mod found;
mod get;
mod head;
mod list;
pub mod location;
mod presign;
mod probe;
mod put;
mod remove;
mod restore;
mod source;
mod spaces;
mod upload;

pub use config::{Addressing, S3Config, Timeouts};
pub use credentials::{AccessKey, Credentials};
pub use location::Location;

use failure::Target;
use found::Found;

/// How much content all writers of one store hold in memory at most, in KiB; a larger part is held alone.
const MEMORY_KIB: u32 = 64 * 1024;

/// A store in S3. Clones share it.
///
/// A put whose future is dropped leaves at most an upload in parts, which never completes and which
/// [`sweep`](Store::sweep) ends; one that is ended by its token leaves nothing.
#[derive(Clone)]
pub struct S3Store {
    inner: Arc<Inner>,
}

struct Inner {
    name: StoreName,
    location: Location,
    target: Target,
    region: Option<String>,
    is_aws: bool,
    client: Client,
    storage_class: Option<StorageClass>,
    largest_copy: u64,
    keeps_checksums: bool,
    timeouts: Timeouts,
    retry: RetryPolicy,
    limit: Arc<ConcurrencyLimit>,
    metrics: StoreMetrics,
    memory: Arc<Semaphore>,
    /// Spaces that were seen to exist, and when.
    known: Mutex<HashMap<SpaceName, Instant>>,
    found: OnceCell<Found>,
    has_made_probe_bucket: AtomicBool,
    /// Whether it was announced that the service does not answer.
    is_announced: AtomicBool,
    /// Whether an entity tag that looks like an MD5 is one, once that was found out.
    tags_are_md5: OnceLock<bool>,
}

impl S3Store {
    /// The store of a configuration. No request is made to it yet; the usual chain of credentials may query its
    /// services for the region.
    ///
    /// # Errors
    /// When no request can be made with it, with one line that says what to change.
    pub async fn new(config: S3Config, metrics: StoreMetrics) -> Result<Self, Error> {
        let client = match client::client(&config).await {
            Ok(client) => client,
            Err(kind) => {
                let subject = config.location.to_string();
                return Err(Error { store: config.name, operation: Operation::Probe, subject, kind });
            }
        };
        let region = client.config().region().map(ToString::to_string);
        let aws = || format!("AWS in {}", region.as_deref().unwrap_or("no region"));
        let endpoint = config.endpoint.clone().unwrap_or_else(aws);
        let counted = metrics.clone();
        let limit = ConcurrencyLimit::new(config.concurrency, move |allowed| counted.limit(allowed));
        let inner = Inner {
            target: Target { endpoint, location: config.location.to_string() },
            name: config.name,
            location: config.location,
            is_aws: config.endpoint.is_none(),
            region,
            client,
            storage_class: config.storage_class.as_deref().map(StorageClass::from),
            largest_copy: config.largest_copy,
            keeps_checksums: config.checksums,
            timeouts: config.timeouts,
            retry: config.retry,
            limit,
            metrics,
            memory: Arc::new(Semaphore::new(MEMORY_KIB as usize)),
            known: Mutex::default(),
            found: OnceCell::new(),
            has_made_probe_bucket: AtomicBool::new(false),
            is_announced: AtomicBool::new(false),
            tags_are_md5: OnceLock::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

impl Inner {
    fn error(&self, operation: Operation, subject: &dyn Display, kind: ErrorKind) -> Error {
        Error { store: self.name.clone(), operation, subject: subject.to_string(), kind }
    }
}

#[async_trait]
impl Store for S3Store {
    fn name(&self) -> &StoreName {
        &self.inner.name
    }

    async fn spaces(&self) -> Result<Vec<SpaceName>, Error> {
        let inner = &self.inner;
        inner.spaces().await.map_err(|kind| inner.error(Operation::Spaces, &inner.location, kind))
    }

    async fn create_space(&self, space: &SpaceName) -> Result<bool, Error> {
        let inner = &self.inner;
        inner.create_space(space).await.map_err(|kind| inner.error(Operation::CreateSpace, space, kind))
    }

    async fn delete_space(&self, space: &SpaceName) -> Result<bool, Error> {
        let inner = &self.inner;
        inner.delete_space(space).await.map_err(|kind| inner.error(Operation::DeleteSpace, space, kind))
    }

    fn list(&self, space: &SpaceName, prefix: &[u8], after: Option<&Key>) -> Listing {
        list::list(Arc::clone(&self.inner), space.clone(), prefix, after)
    }

    async fn head(&self, item: &Item) -> Result<Option<Properties>, Error> {
        let inner = &self.inner;
        inner.head(item).await.map_err(|kind| inner.error(Operation::Head, item, kind))
    }

    async fn get(
        &self,
        item: &Item,
        range: Option<Range<u64>>,
        if_match: Option<&EntityTag>,
    ) -> Result<Content, Error> {
        let inner = &self.inner;
        get::get(inner, item, range, if_match).await.map_err(|kind| inner.error(Operation::Get, item, kind))
    }

    async fn presign(&self, item: &Item, disposition: &str, lifetime: Duration) -> Result<Option<String>, Error> {
        let inner = &self.inner;
        let signed = inner.presign(item, disposition, lifetime).await;
        signed.map(Some).map_err(|kind| inner.error(Operation::Get, item, kind))
    }

    async fn put(&self, item: &Item, content: Chunks, put: Put) -> Result<Written, Error> {
        let inner = &self.inner;
        put::put(inner, item, content, put).await.map_err(|kind| inner.error(Operation::Put, item, kind))
    }

    async fn copy_with(
        &self,
        from: &Item,
        if_match: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
        control: &CopyControl,
    ) -> Result<Written, Error> {
        let inner = &self.inner;
        let copied = inner.copy((from, if_match), to, condition, control).await;
        copied.map_err(|kind| inner.error(Operation::Copy, &format_args!("{from} to {to}"), kind))
    }

    async fn delete(&self, item: &Item, if_match: Option<&EntityTag>) -> Result<bool, Error> {
        let inner = &self.inner;
        inner.delete(item, if_match).await.map_err(|kind| inner.error(Operation::Delete, item, kind))
    }

    async fn set_properties(
        &self,
        item: &Item,
        user: &UserProperties,
        if_match: Option<&EntityTag>,
    ) -> Result<Written, Error> {
        let inner = &self.inner;
        let replaced = inner.set_properties(item, user, if_match).await;
        replaced.map_err(|kind| inner.error(Operation::SetProperties, item, kind))
    }

    async fn abort_upload(&self, item: &Item, upload: &str) -> Result<(), Error> {
        let inner = &self.inner;
        inner.abort_upload(item, upload).await.map_err(|kind| inner.error(Operation::AbortUpload, item, kind))
    }

    async fn restore(&self, item: &Item, request: RestoreRequest) -> Result<(), Error> {
        let inner = &self.inner;
        inner.restore(item, request).await.map_err(|kind| inner.error(Operation::Restore, item, kind))
    }

    async fn probe(&self) -> Result<Capabilities, Error> {
        let inner = &self.inner;
        inner.capabilities().await.map_err(|kind| inner.error(Operation::Probe, &inner.location, kind))
    }

    async fn remove_probe_bucket(&self) -> Result<bool, Error> {
        let inner = &self.inner;
        if !inner.has_made_probe_bucket.swap(false, Ordering::Relaxed) {
            return Ok(false);
        }
        let space = probe::space();
        let bucket = inner.location.bucket(&space).unwrap_or_default();
        inner.delete_space(&space).await.map_err(|kind| inner.error(Operation::DeleteSpace, &bucket, kind))
    }

    async fn sweep(&self, before: Timestamp) -> Result<u64, Error> {
        let inner = &self.inner;
        inner.sweep(before).await.map_err(|kind| inner.error(Operation::Sweep, &inner.location, kind))
    }
}

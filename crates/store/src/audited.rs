//! A store of which every change is recorded: [`Audited`].
//!
//! # How a change is made
//! 1. The store is looked at. Where there is nothing to change (a deletion of what is gone, a space that exists,
//!    properties that are the same), nothing is called and nothing recorded.
//! 2. The intent is written: from then on the item is ours, and no other change through an [`Audited`] store begins.
//! 3. The store is called, under a condition on what was seen; a caller's own condition is kept as it is. While it
//!    works, the lease of the intent is extended. Content appears only after its size and digests are in the intent.
//! 4. The intent is settled: an event is appended, unless nothing was changed.
//!
//! # What is certain
//! - A process may die, or a caller drop the future, at any instant: what was begun is resolved by a look at the store
//!   when the lease has ended, by [`Audited::resolve_left`] or by the next change of that item. Content that is there
//!   under another tag, with the size and digests that were recorded, was written. This needs that a request that was
//!   sent before the process died takes effect within the lease, or never: a lease is longer than any request.
//! - The audit log is away before: nothing is changed, `Unavailable`. It goes away during an upload: the upload goes on
//!   as long as the lease is ours, and is aborted then. It is away after: settling is tried again for a while, then the
//!   intent is left to be resolved, and the operation fails with `Unrecorded`, which says that it was done.
//! - The store does not answer, `Unknown`: it is looked at for a while. If it was done, that is the result. If it was
//!   not, it may still be: the error is handed on with what is there, and the intent is left to the end of its lease.
//!   An upload in parts, of a put or of a copy, is in its intent before the first part is sent: it is aborted before
//!   the store is looked at, and cannot complete any more.
//! - On a store without conditions, a change that is made around this program may be overwritten.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::archive::RestoreRequest;
use crate::audit::AuditSink;
use crate::error::{Error, ErrorKind, Operation};
use crate::key::Key;
use crate::name::{SpaceName, StoreName};
use crate::store::{
    Capabilities, Chunks, Condition, Content, CopyControl, EntityTag, Item, Listing, Properties, Put, Store,
    UserProperties, Written,
};

mod backoff;
mod begin;
mod change;
mod decide;
mod guard;
mod lease;
mod put;
mod resolve;
mod settle;

pub use resolve::Resolved;

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The lease of an intent, which is extended each third of it while the process works: longer than a request that
    /// was sent before the process died may take to have its effect.
    pub lease: Duration,
    /// How long to wait for another change of the same item, for the audit log after a change, and for the outcome of a
    /// request without an answer.
    pub wait_limit: Duration,
}

impl Default for Timing {
    /// A lease of one minute, half a minute of waiting.
    fn default() -> Self {
        Self { lease: Duration::from_mins(1), wait_limit: Duration::from_secs(30) }
    }
}

/// A store of which every change is recorded in an audit log, under the name of a user. Reads pass through, as does the
/// removal of what writers left unfinished.
pub struct Audited<S: Store + ?Sized> {
    store: Arc<S>,
    sink: Arc<dyn AuditSink>,
    user: String,
    if_absent: bool,
    if_match: bool,
    reserved: BTreeSet<SpaceName>,
    owned: BTreeSet<SpaceName>,
    timing: Timing,
    abort: CancellationToken,
}

impl<S: Store + ?Sized> Audited<S> {
    /// Records the changes of a store that has these capabilities, in the name of this user.
    pub fn new(store: Arc<S>, capabilities: &Capabilities, sink: Arc<dyn AuditSink>, user: impl Into<String>) -> Self {
        let &Capabilities { if_absent, if_match, .. } = capabilities;
        let (reserved, owned) = (BTreeSet::new(), BTreeSet::new());
        let (timing, abort) = (Timing::default(), CancellationToken::new());
        Self { store, sink, user: user.into(), if_absent, if_match, reserved, owned, timing, abort }
    }

    /// Refuses changes of these spaces too, besides those of which the names are reserved: policies, content kept
    /// aside.
    #[must_use]
    pub fn with_reserved(mut self, spaces: impl IntoIterator<Item = SpaceName>) -> Self {
        self.reserved.extend(spaces);
        self
    }

    /// Lets these reserved spaces be changed: for the part of the program that owns them.
    #[must_use]
    pub fn with_owned(mut self, spaces: impl IntoIterator<Item = SpaceName>) -> Self {
        self.owned.extend(spaces);
        self
    }

    /// Takes other times.
    #[must_use]
    pub fn with_timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// Lets this token end the waits for others, and copies.
    #[must_use]
    pub fn with_abort(mut self, abort: CancellationToken) -> Self {
        self.abort = abort;
        self
    }

    fn error(&self, operation: Operation, item: &Item, kind: ErrorKind) -> Error {
        self.target(operation, &item.space, Some(&item.key)).error(kind)
    }
}

#[async_trait]
impl<S: Store + ?Sized> Store for Audited<S> {
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
        self.create_space_recorded(space).await
    }

    async fn delete_space(&self, space: &SpaceName) -> Result<bool, Error> {
        self.delete_space_recorded(space).await
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
        self.put_recorded(item, content, put).await
    }

    async fn copy(
        &self,
        from: &Item,
        if_match: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
    ) -> Result<Written, Error> {
        let control = CopyControl { abort: self.abort.clone(), guard: None };
        self.copy_recorded(from, if_match, to, condition, &control).await
    }

    async fn copy_with(
        &self,
        from: &Item,
        if_match: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
        control: &CopyControl,
    ) -> Result<Written, Error> {
        self.copy_recorded(from, if_match, to, condition, control).await
    }

    async fn delete(&self, item: &Item, if_match: Option<&EntityTag>) -> Result<bool, Error> {
        self.delete_recorded(item, if_match).await
    }

    async fn set_properties(
        &self,
        item: &Item,
        user: &UserProperties,
        if_match: Option<&EntityTag>,
    ) -> Result<Written, Error> {
        self.set_properties_recorded(item, user, if_match).await
    }

    async fn abort_upload(&self, item: &Item, upload: &str) -> Result<(), Error> {
        self.store.abort_upload(item, upload).await
    }

    async fn resolve_changes(&self) -> Result<u64, String> {
        self.resolve_left().await.map(|resolved| resolved.failed).map_err(|error| error.to_string())
    }

    async fn restore(&self, item: &Item, request: RestoreRequest) -> Result<(), Error> {
        self.store.restore(item, request).await
    }

    async fn probe(&self) -> Result<Capabilities, Error> {
        self.store.probe().await
    }

    async fn remove_probe_bucket(&self) -> Result<bool, Error> {
        self.store.remove_probe_bucket().await
    }

    async fn sweep(&self, before: Timestamp) -> Result<u64, Error> {
        self.store.sweep(before).await
    }
}

//! A store that fails on purpose: [`Faulty`] wraps any store, and its [`Faults`] say which calls fail, and how.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use queuekeeper_store::archive::RestoreRequest;
use queuekeeper_store::error::Operation;
use queuekeeper_store::store::{
    Capabilities, Chunks, Condition, Content, CopyControl, EntityTag, Item, Listing, Properties, Put, UserProperties,
    Written,
};
use queuekeeper_store::{Digest, Digests, Error, ErrorKind, Hashers, Key, SpaceName, Store, StoreName};

mod fault;
mod faults;
mod late;
mod streams;

pub use fault::{Fault, PageKind, Rule, WrongPage};
pub use faults::Faults;
use late::{Change, Late};

/// A store that fails on purpose. Without a rule it is the store that it wraps.
pub struct Faulty {
    store: Arc<dyn Store>,
    faults: Faults,
}

impl Faulty {
    /// Wraps a store, and returns the handle to its faults.
    pub fn new(store: Arc<dyn Store>) -> (Self, Faults) {
        let faults = Faults::default();
        (Self { store, faults: faults.clone() }, faults)
    }

    fn error(&self, operation: Operation, subject: &impl ToString, kind: ErrorKind) -> Error {
        Error { store: self.store.name().clone(), operation, subject: subject.to_string(), kind }
    }

    /// Counts a call, and fails or stalls it if it is to do so before anything is done.
    async fn begin(&self, operation: Operation, subject: &(impl ToString + Sync)) -> Result<Option<Fault>, Error> {
        let fault = self.faults.call(operation);
        match fault {
            Some(Fault::Temporary) => {
                let why = "it is busy, on purpose".to_owned();
                Err(self.error(operation, subject, ErrorKind::Unavailable(why)))
            }
            Some(Fault::Permanent) => {
                let why = "access is denied, on purpose".to_owned();
                Err(self.error(operation, subject, ErrorKind::Refused(why)))
            }
            Some(Fault::Stall) => {
                self.faults.stall().await;
                Ok(None)
            }
            fault => Ok(fault),
        }
    }

    fn unknown(&self, operation: Operation, subject: &impl ToString) -> Error {
        self.error(operation, subject, ErrorKind::Unknown("the connection was cut, on purpose".to_owned()))
    }

    /// Makes a change with its fault.
    async fn change<T>(
        &self,
        operation: Operation,
        subject: &(impl ToString + Sync),
        late: impl FnOnce() -> Change + Send,
        change: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<(T, Option<Fault>), Error> {
        let fault = self.begin(operation, subject).await?;
        match fault {
            Some(Fault::Late) => {
                self.faults.delay(Late { store: self.store.clone(), change: late() });
                Err(self.unknown(operation, subject))
            }
            Some(Fault::LostAnswer) => {
                change.await?;
                Err(self.unknown(operation, subject))
            }
            fault => Ok((change.await?, fault)),
        }
    }

    /// Takes all content of a put, and keeps it to be written later: as a server that has received everything.
    async fn put_late(&self, item: &Item, content: Chunks, put: Put, is_aborted: bool) -> Result<Written, ErrorKind> {
        let algorithms = put.expected.iter().map(Digest::algorithm).chain(put.compute.iter().copied());
        let mut hashers = Hashers::new(algorithms.collect::<Vec<_>>());
        let mut chunks: Vec<Bytes> = Vec::new();
        let mut content = content;
        while let Some(chunk) = content.next().await {
            let chunk = chunk.map_err(ErrorKind::Source)?;
            hashers.update(&chunk);
            chunks.push(chunk);
        }
        let (size, digests): (u64, Digests) = (hashers.bytes(), hashers.finish());
        if let Some(guard) = &put.guard {
            guard.pass(size, &digests).await.map_err(ErrorKind::Stopped)?;
        }
        let abort = put.abort;
        let put = Put { guard: None, abort: tokio_util::sync::CancellationToken::new(), ..put };
        let change = Change::Put(item.clone(), chunks, put);
        self.faults.delay(Late { store: self.store.clone(), change });
        if is_aborted {
            abort.cancelled().await;
            return Err(ErrorKind::Stopped("it was aborted".to_owned()));
        }
        Err(ErrorKind::Unknown("the connection was cut, on purpose".to_owned()))
    }
}

/// A size that may be wrong.
fn sized(size: u64, fault: Option<Fault>) -> u64 {
    match fault {
        Some(Fault::WrongSize(by)) => size.saturating_add_signed(by),
        _ => size,
    }
}

#[async_trait]
impl Store for Faulty {
    fn name(&self) -> &StoreName {
        self.store.name()
    }

    fn directory(&self) -> Option<&Path> {
        self.store.directory()
    }

    async fn spaces(&self) -> Result<Vec<SpaceName>, Error> {
        self.begin(Operation::Spaces, &"").await?;
        self.store.spaces().await
    }

    async fn create_space(&self, space: &SpaceName) -> Result<bool, Error> {
        let late = || Change::CreateSpace(space.clone());
        Ok(self.change(Operation::CreateSpace, space, late, self.store.create_space(space)).await?.0)
    }

    async fn delete_space(&self, space: &SpaceName) -> Result<bool, Error> {
        let late = || Change::DeleteSpace(space.clone());
        Ok(self.change(Operation::DeleteSpace, space, late, self.store.delete_space(space)).await?.0)
    }

    fn list(&self, space: &SpaceName, prefix: &[u8], after: Option<&Key>) -> Listing {
        let fault = self.faults.call(Operation::List);
        let (store, subject) = (self.store.name().clone(), space.to_string());
        let error =
            move |kind| Error { store: store.clone(), operation: Operation::List, subject: subject.clone(), kind };
        match fault {
            Some(Fault::Temporary) => {
                stream::iter([Err(error(ErrorKind::Unavailable("it is busy, on purpose".to_owned())))]).boxed()
            }
            Some(Fault::Permanent) => {
                stream::iter([Err(error(ErrorKind::Refused("access is denied, on purpose".to_owned())))]).boxed()
            }
            fault => streams::listing(self.store.list(space, prefix, after), fault, self.faults.clone(), error),
        }
    }

    async fn head(&self, item: &Item) -> Result<Option<Properties>, Error> {
        let fault = self.begin(Operation::Head, item).await?;
        let found = self.store.head(item).await?;
        Ok(found.map(|found| Properties { size: sized(found.size, fault), ..found }))
    }

    async fn get(
        &self,
        item: &Item,
        range: Option<Range<u64>>,
        if_match: Option<&EntityTag>,
    ) -> Result<Content, Error> {
        let fault = self.begin(Operation::Get, item).await?;
        let mut content = self.store.get(item, range, if_match).await?;
        content.properties.size = sized(content.properties.size, fault);
        content.chunks = streams::content(content.chunks, fault, self.faults.clone());
        Ok(content)
    }

    async fn put(&self, item: &Item, content: Chunks, put: Put) -> Result<Written, Error> {
        let begun = tokio::select! {
            biased;
            () = put.abort.cancelled() => {
                return Err(self.error(Operation::Put, item, ErrorKind::Stopped("it was aborted".to_owned())));
            }
            begun = self.begin(Operation::Put, item) => begun,
        };
        let fault = begun?;
        if let Some(Fault::Late | Fault::LateAfterAbort) = fault {
            let put = self.put_late(item, content, put, fault == Some(Fault::LateAfterAbort));
            return put.await.map_err(|kind| self.error(Operation::Put, item, kind));
        }
        let content = match fault {
            // What ends early is for reading.
            Some(Fault::EndAt(_)) => content,
            fault => streams::content(content, fault, self.faults.clone()),
        };
        let mut written = match self.store.put(item, content, put).await {
            // The store took the cut on the way to it for a failure of the source.
            Err(Error { kind: ErrorKind::Source(why), .. }) if matches!(fault, Some(Fault::BreakAt(_))) => {
                return Err(self.error(Operation::Put, item, ErrorKind::Unavailable(why.to_string())));
            }
            written => written?,
        };
        if fault == Some(Fault::LostAnswer) {
            return Err(self.unknown(Operation::Put, item));
        }
        written.size = sized(written.size, fault);
        Ok(written)
    }

    async fn copy_with(
        &self,
        from: &Item,
        if_match: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
        control: &CopyControl,
    ) -> Result<Written, Error> {
        let late = || {
            let (if_match, condition) = (if_match.cloned(), condition.clone());
            Change::Copy { from: from.clone(), if_match, to: to.clone(), condition }
        };
        let copy = self.store.copy_with(from, if_match, to, condition, control);
        let copied = async {
            let (written, fault) = self.change(Operation::Copy, to, late, copy).await?;
            Ok(Written { size: sized(written.size, fault), ..written })
        };
        // Also while it stalls on purpose.
        or_unknown(control, self.name(), to, copied).await
    }

    async fn delete(&self, item: &Item, if_match: Option<&EntityTag>) -> Result<bool, Error> {
        let late = || Change::Delete(item.clone(), if_match.cloned());
        Ok(self.change(Operation::Delete, item, late, self.store.delete(item, if_match)).await?.0)
    }

    async fn set_properties(
        &self,
        item: &Item,
        user: &UserProperties,
        if_match: Option<&EntityTag>,
    ) -> Result<Written, Error> {
        let late = || Change::SetProperties(item.clone(), user.clone(), if_match.cloned());
        let set = self.store.set_properties(item, user, if_match);
        Ok(self.change(Operation::SetProperties, item, late, set).await?.0)
    }

    async fn abort_upload(&self, item: &Item, upload: &str) -> Result<(), Error> {
        self.begin(Operation::AbortUpload, item).await?;
        self.store.abort_upload(item, upload).await
    }

    async fn restore(&self, item: &Item, request: RestoreRequest) -> Result<(), Error> {
        self.begin(Operation::Restore, item).await?;
        self.store.restore(item, request).await
    }

    async fn probe(&self) -> Result<Capabilities, Error> {
        self.begin(Operation::Probe, &"").await?;
        self.store.probe().await
    }

    async fn sweep(&self, before: Timestamp) -> Result<u64, Error> {
        self.begin(Operation::Sweep, &"").await?;
        self.store.sweep(before).await
    }
}

/// The answer of a store whose copies cannot be ended: when the token ends the wait for it, it is not certain whether
/// the copy to `to` will appear.
///
/// # Errors
/// That of the copy; [`Unknown`](ErrorKind::Unknown) where the wait was ended.
pub async fn or_unknown(
    control: &CopyControl,
    store: &StoreName,
    to: &Item,
    copy: impl Future<Output = Result<Written, Error>>,
) -> Result<Written, Error> {
    tokio::select! {
        biased;
        copied = copy => copied,
        () = control.abort.cancelled() => {
            let (store, subject) = (store.clone(), to.to_string());
            let kind = ErrorKind::Unknown("it was interrupted".to_owned());
            Err(Error { store, operation: Operation::Copy, subject, kind })
        }
    }
}

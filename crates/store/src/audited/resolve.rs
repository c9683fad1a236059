//! Resolving what a dead process left: intents whose lease has ended.

use futures::StreamExt as _;
use tokio::time::Instant;

use super::Audited;
use super::decide::{Decision, Found, decide, unclear, union};
use super::lease::Lease;
use crate::audit::{Intent, Settlement, SinkError};
use crate::digest::{Algorithm, Digests, Hashers};
use crate::error::{Error, ErrorKind, Operation};
use crate::store::{EntityTag, Item, Store};

/// How many intents were resolved, by what they turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The change had been made: it is recorded now.
    pub done: u64,
    /// Nothing had been changed.
    pub not_done: u64,
    /// It is unclear: recorded as observed, for an operator.
    pub observed: u64,
    /// The store could not be looked at. These are left again when their new lease ends.
    pub failed: u64,
}

/// Why an intent could not be resolved.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unresolved {
    #[error(transparent)]
    Store(#[from] Error),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error("{0}")]
    Lease(String),
}

impl<S: Store + ?Sized> Audited<S> {
    /// Resolves all changes of this store that processes left when they died, each by a look at the store. To be called
    /// at the start, and from time to time.
    ///
    /// # Errors
    /// When the audit log cannot be read or written. What the store does not answer is counted, and left.
    pub async fn resolve_left(&self) -> Result<Resolved, SinkError> {
        let mut resolved = Resolved::default();
        loop {
            let taken = Instant::now();
            let Some(left) = self.sink.take_left(self.store.name(), self.timing.lease).await? else {
                return Ok(resolved);
            };
            let (id, change) = (left.id, left.change);
            match self.resolve(left, taken).await {
                Ok(Settlement::Done { .. }) => resolved.done += 1,
                Ok(Settlement::NotDone) => resolved.not_done += 1,
                Ok(Settlement::Observed { .. }) => resolved.observed += 1,
                Err(Unresolved::Sink(error @ SinkError::Unavailable(_))) => return Err(error),
                Err(why) => {
                    let change = change.as_str();
                    tracing::warn!(intent = %id, change, error = %why, "failed to resolve an interrupted change");
                    resolved.failed += 1;
                }
            }
        }
    }

    /// Resolves an intent that was taken over at this instant or later.
    pub(super) async fn resolve(&self, left: Intent, taken: Instant) -> Result<Settlement, Unresolved> {
        let lease = Lease::new(self.sink.clone(), self.timing.lease, left.clone(), taken);
        let find_out = async {
            // First, so that what is seen is the end of it.
            if let (Some(upload), Some(item)) = (&left.upload, item_of(&left)) {
                self.store.abort_upload(&item, upload).await?;
                tracing::info!(store = %self.store.name(), %item, upload, "ended an abandoned upload");
            }
            self.decide(&left).await
        };
        let settlement = lease.hold(None, find_out).await.map_err(Unresolved::Lease)??;
        self.settle(&lease, &settlement).await?;
        if let Settlement::Observed { why, .. } = &settlement {
            tracing::warn!(intent = %left.id, change = left.change.as_str(), why, "the outcome of a change is unclear");
        }
        Ok(settlement)
    }

    /// What a change turns out to be: by a look, and by reading content where digests are missing.
    pub(super) async fn decide(&self, intent: &Intent) -> Result<Settlement, Error> {
        let mut intent = intent.clone();
        let mut found = match self.look(&intent.subject).await {
            Err(Error { kind: ErrorKind::NoSpace, .. }) => Found::Nothing,
            found => found?,
        };
        loop {
            match decide(&intent, &found) {
                Decision::Settle(settlement) => return Ok(settlement),
                Decision::Read(algorithm) => {
                    let (Some(item), Found::Content(content)) = (item_of(&intent), &mut found) else {
                        unreachable!("only content is read")
                    };
                    let digests = self.read(&item, Some(&content.etag), algorithm).await?;
                    content.checksums = union(&content.checksums, &digests);
                }
                Decision::ReadSource(algorithm) => {
                    let (space, key) = intent.source.clone().expect("a copy has a source");
                    match self.read(&Item::new(space, key), None, algorithm).await {
                        Ok(digests) => intent.digests = digests,
                        Err(Error { kind: ErrorKind::NotFound | ErrorKind::NoSpace, .. }) => {
                            return Ok(unclear(&found, "what was to be copied is gone"));
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }

    /// The digest of content, by reading it.
    async fn read(&self, item: &Item, tag: Option<&EntityTag>, algorithm: Algorithm) -> Result<Digests, Error> {
        let mut content = self.store.get(item, None, tag).await?;
        let mut hashers = Hashers::new([algorithm]);
        while let Some(chunk) = content.chunks.next().await {
            let chunk = chunk.map_err(|error| self.error(Operation::Get, item, ErrorKind::Io(error)))?;
            hashers.update(&chunk);
        }
        let (expected, found) = (content.properties.size, hashers.bytes());
        if expected != found {
            return Err(self.error(Operation::Get, item, ErrorKind::Size { expected, found }));
        }
        Ok(hashers.finish())
    }
}

fn item_of(intent: &Intent) -> Option<Item> {
    let key = intent.subject.key.clone()?;
    Some(Item::new(intent.subject.space.clone(), key))
}

//! Closing a change: recording what became of it.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::Audited;
use super::backoff::Backoff;
use super::begin::{Opened, Target};
use super::lease::Lease;
use crate::audit::{Change, Intent, Settlement, SinkError};
use crate::digest::Digests;
use crate::error::{Error, ErrorKind};
use crate::store::{EntityTag, Store, Written};
use crate::time::moment_in;

/// How long the look may take that an interrupted change ends with.
const LAST_LOOK: Duration = Duration::from_secs(2);

/// What was changed, in the form that is recorded.
pub(super) struct Done {
    pub(super) change: Change,
    pub(super) etag: Option<EntityTag>,
    pub(super) size: Option<u64>,
    pub(super) digests: Digests,
}

impl Done {
    /// A change after which there is no content.
    pub(super) fn without_content(change: Change) -> Self {
        Self { change, etag: None, size: None, digests: Digests::default() }
    }

    /// A change that wrote content.
    pub(super) fn with_content(change: Change, written: Written) -> Self {
        let Written { size, etag, digests } = written;
        Self { change, etag: Some(etag), size: Some(size), digests }
    }

    /// What was written.
    pub(super) fn into_written(self) -> Option<Written> {
        Some(Written { size: self.size?, etag: self.etag?, digests: self.digests })
    }

    fn settlement(&self) -> Settlement {
        let Self { change, etag, size, digests } = self;
        Settlement::Done { change: *change, etag: etag.clone(), size: *size, digests: digests.clone() }
    }
}

/// What is there where nothing of a change is to be seen.
fn as_before(intent: &Intent) -> &'static str {
    match (&intent.subject.key, &intent.seen) {
        (Some(_), None) => "there is no item yet",
        (Some(_), Some(_)) => "the item is as it was before",
        (None, _) if intent.change == Change::CreateSpace => "there is no space yet",
        (None, _) => "the space is still there",
    }
}

impl<S: Store + ?Sized> Audited<S> {
    /// Records what became of an operation, and hands on its result.
    pub(super) async fn close(
        &self,
        target: &Target,
        opened: &Opened,
        result: Result<Done, Error>,
    ) -> Result<Done, Error> {
        let done = match result {
            Ok(done) => done,
            Err(Error { kind: ErrorKind::Unknown(why), .. }) => {
                let found_out = opened.lease.hold(None, self.find_out(&opened.lease)).await;
                match found_out.unwrap_or_else(Err) {
                    Ok(done) => done,
                    Err(there) => {
                        let until = moment_in(opened.lease.left().await);
                        let next = format!("the next change of it, from {until} on, finds out and records it");
                        return Err(target.error(ErrorKind::Unknown(format!("{why}; {there}; {next}"))));
                    }
                }
            }
            Err(error) => {
                self.settle_not_done(&opened.lease).await;
                return Err(error);
            }
        };
        match self.settle(&opened.lease, &done.settlement()).await {
            Ok(()) => Ok(done),
            Err(error) => Err(target.error(ErrorKind::Unrecorded(error.to_string()))),
        }
    }

    /// Finds out whether an operation without an answer was done.
    ///
    /// # Errors
    /// What the store has there, where that is not known yet: what was sent may still happen. Then the intent is left
    /// to the end of its lease, after which nothing of it happens any more.
    async fn find_out(&self, lease: &Lease) -> Result<Done, String> {
        // Of a change that was interrupted, one look has to do.
        let wait_limit = if self.abort.is_cancelled() { Duration::ZERO } else { self.timing.wait_limit };
        let until = Instant::now() + wait_limit;
        let mut backoff = Backoff::new();
        loop {
            let intent = lease.intent().await;
            let decided = if self.abort.is_cancelled() {
                let looked = timeout(LAST_LOOK, self.decide(&intent)).await;
                looked.map_err(|_| format!("checking the store timed out after {} s", LAST_LOOK.as_secs()))?
            } else {
                self.decide(&intent).await
            };
            let there = match decided {
                Ok(Settlement::Done { change, etag, size, digests }) => {
                    return Ok(Done { change, etag, size, digests });
                }
                // Another client's content is there: what was sent, under its condition, comes too late.
                Ok(Settlement::Observed { why, .. }) => return Err(why),
                Ok(Settlement::NotDone) => as_before(&intent).to_owned(),
                Err(error) => format!("checking the store failed: {error}"),
            };
            let wait = backoff.next();
            if Instant::now() + wait > until {
                return Err(there);
            }
            sleep(wait).await;
        }
    }

    /// Records a settlement; where the record is away, tries again for a while.
    pub(super) async fn settle(&self, lease: &Lease, settlement: &Settlement) -> Result<(), SinkError> {
        let intent = lease.intent().await;
        let until = Instant::now() + self.timing.wait_limit;
        let mut backoff = Backoff::new();
        loop {
            let settled = timeout_at(until, self.sink.settle(&intent, settlement)).await;
            let settled = settled.unwrap_or_else(|_| Err(SinkError::Unavailable("it does not answer".to_owned())));
            let wait = backoff.next();
            match settled {
                Err(SinkError::Unavailable(_)) if Instant::now() + wait < until => sleep(wait).await,
                settled => return settled,
            }
        }
    }

    /// Records that nothing was changed. That need not succeed: the intent is resolved to the same later.
    pub(super) async fn settle_not_done(&self, lease: &Lease) {
        let intent = lease.intent().await;
        let limit = Instant::now() + self.timing.wait_limit.min(Duration::from_secs(5));
        let settled = timeout_at(limit, self.sink.settle(&intent, &Settlement::NotDone)).await;
        if !matches!(settled, Ok(Ok(()))) {
            tracing::warn!(intent = %intent.id, "an intent without a change stays open until its lease ends");
        }
    }
}

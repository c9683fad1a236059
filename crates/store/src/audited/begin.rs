//! Writing the intent of a change: looking, waiting for who is at work, and resolving what was left.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use super::Audited;
use super::backoff::Backoff;
use super::decide::Found;
use super::lease::Lease;
use crate::audit::{Begun, Change, Intent, Subject};
use crate::digest::Digests;
use crate::error::{Error, ErrorKind, Operation};
use crate::key::Key;
use crate::name::SpaceName;
use crate::store::{INTERRUPTED, Item, Store};

/// A wait for another change that lasts this long is announced.
const ANNOUNCED_AFTER: Duration = Duration::from_millis(500);

/// What is to be changed, and by what operation.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) operation: Operation,
    pub(super) subject: Subject,
}

impl Target {
    pub(super) fn space(&self) -> &SpaceName {
        &self.subject.space
    }

    /// A failure of the operation on it.
    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        let store = self.subject.store.clone();
        Error { store, operation: self.operation, subject: self.subject_text(), kind }
    }

    fn subject_text(&self) -> String {
        let Subject { space, key, .. } = &self.subject;
        key.as_ref().map_or_else(|| space.to_string(), |key| format!("{space}/{key}"))
    }

    /// A failure that a later try may not have.
    pub(super) fn unavailable(&self, why: &dyn std::fmt::Display) -> Error {
        self.error(ErrorKind::Unavailable(format!("{why}; nothing was changed")))
    }
}

/// A change that is begun: its lease, and what the store had.
pub(super) struct Opened {
    pub(super) lease: Arc<Lease>,
    pub(super) found: Found,
}

impl<S: Store + ?Sized> Audited<S> {
    pub(super) fn target(&self, operation: Operation, space: &SpaceName, key: Option<&Key>) -> Target {
        let subject = Subject { store: self.store.name().clone(), space: space.clone(), key: key.cloned() };
        Target { operation, subject }
    }

    /// What the store has there now.
    pub(super) async fn look(&self, subject: &Subject) -> Result<Found, Error> {
        match &subject.key {
            Some(key) => {
                let properties = self.store.head(&Item::new(subject.space.clone(), key.clone())).await?;
                Ok(properties.map_or(Found::Nothing, |properties| Found::Content(Box::new(properties))))
            }
            None if self.store.spaces().await?.contains(&subject.space) => Ok(Found::Space),
            None => Ok(Found::Nothing),
        }
    }

    /// The intent of a change to what was found.
    pub(super) fn intent(&self, target: &Target, change: Change, found: &Found) -> Intent {
        Intent {
            id: Uuid::now_v7(),
            holder: Uuid::now_v7(),
            user: self.user.clone(),
            subject: target.subject.clone(),
            change,
            seen: found.etag().cloned(),
            size: None,
            digests: Digests::default(),
            source: None,
            upload: None,
            properties: None,
        }
    }

    /// Writes the intent that is made of what the store has, once no other change is under way there. Where none is
    /// made, there is nothing to change: `None`.
    ///
    /// What was seen before the intent was written may have been changed until then, by a change that was recorded. A
    /// change that can be repeated finds that out by its condition; for one that cannot, `is_once`, the store is looked
    /// at again.
    pub(super) async fn open(
        &self,
        target: &Target,
        is_once: bool,
        make: impl Fn(&Found) -> Result<Option<Intent>, ErrorKind> + Send + Sync,
    ) -> Result<Option<Opened>, Error> {
        let began = Instant::now();
        let until = began + self.timing.wait_limit;
        let mut backoff = Backoff::new();
        let mut is_announced = false;
        loop {
            let found = self.unless_aborted(target, self.look(&target.subject)).await??;
            let Some(intent) = make(&found).map_err(|kind| target.error(kind))? else { return Ok(None) };
            let now = Instant::now();
            let begin = self.sink.begin(&intent, self.timing.lease);
            let limit = until.max(now + self.timing.wait_limit / 2);
            let begun = timeout_at(limit, begin).await;
            let begun = begun.map_err(|_| target.unavailable(&"the audit log does not answer"))?;
            let mut rival = None;
            let wait = match begun.map_err(|error| target.unavailable(&error))? {
                Begun::Ours => {
                    let lease = Arc::new(Lease::new(self.sink.clone(), self.timing.lease, intent, now));
                    if !is_once || self.is_unchanged(target, &found, &lease).await? {
                        return Ok(Some(Opened { lease, found }));
                    }
                    Duration::ZERO
                }
                Begun::Left(left) => {
                    let settled = self.resolve(*left, now).await;
                    settled.map_err(|why| {
                        target.unavailable(&format_args!("an interrupted change is unresolved: {why}"))
                    })?;
                    Duration::ZERO
                }
                Begun::Busy(other) => {
                    rival = Some(other);
                    backoff.next()
                }
            };
            if Instant::now() + wait > until {
                return Err(match rival {
                    Some(rival) => target.error(ErrorKind::Held(format!("{rival}; try again then"))),
                    None => target.unavailable(&"it keeps changing; try again later"),
                });
            }
            if let Some(rival) = rival.filter(|_| !is_announced && began.elapsed() + wait >= ANNOUNCED_AFTER) {
                is_announced = true;
                let (wait_limit, subject) = (self.timing.wait_limit.as_secs(), target.subject_text());
                let Target { operation, subject: Subject { store, .. } } = target;
                tracing::warn!("store {store}: {operation} {subject}: waiting for up to {wait_limit} s: {rival}");
            }
            self.unless_aborted(target, sleep(wait)).await?;
        }
    }

    /// Waits for something that changes nothing.
    async fn unless_aborted<T>(&self, target: &Target, work: impl Future<Output = T>) -> Result<T, Error> {
        let stopped = || target.error(ErrorKind::Stopped(INTERRUPTED.to_owned()));
        self.abort.run_until_cancelled(work).await.ok_or_else(stopped)
    }

    /// Whether the store has, under the intent, what was found before it; else the intent is closed.
    async fn is_unchanged(&self, target: &Target, found: &Found, lease: &Lease) -> Result<bool, Error> {
        let again = self.look(&target.subject).await;
        let is_unchanged = again.as_ref().is_ok_and(|again| again.etag() == found.etag());
        if !is_unchanged {
            self.settle_not_done(lease).await;
        }
        again.map(|_| is_unchanged)
    }
}

//! The working storage that a job may use while its files come.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use queuekeeper_queue::Error;
use queuekeeper_store::Digests;
use tokio::sync::Mutex;

use crate::blocking::blocking;
use crate::clock::now;
use crate::fetch::{Expected, FetchCause, FetchError, Fetched, Fetcher};
use crate::file_root::FileRoot;
use crate::grants::Extension;
use crate::step::{JobAtWork, StepError};
use crate::url::ContentUrl;

/// A file that is to be fetched.
pub(super) struct Source<'a> {
    pub(super) url: &'a ContentUrl,
    /// Its size in bytes, where it is announced.
    pub(super) size: Option<u64>,
    pub(super) digests: Digests,
    pub(super) file_root: &'a Arc<FileRoot>,
    pub(super) name: &'a str,
}

impl Source<'_> {
    /// Fetches it, with so many bytes at most where its size is not announced.
    ///
    /// # Errors
    /// As [`Fetcher::fetch`].
    pub(super) async fn fetch(
        &self,
        fetcher: &Fetcher,
        most_bytes: u64,
        written: &Arc<AtomicU64>,
    ) -> Result<Fetched, FetchError> {
        let expected = Expected { size: self.size, most_bytes, digests: self.digests.clone() };
        fetcher.fetch(self.url, &expected, self.file_root, self.name, written).await
    }
}

/// What the files of a job may take.
pub(super) struct GrantedSpace<'a> {
    work: &'a JobAtWork<'a>,
    /// How many bytes the volume may hold.
    capacity: u64,
    bytes: Mutex<Bytes>,
}

/// Bytes on the working storage.
struct Bytes {
    granted: u64,
    /// Of the files that are there, and at most of those that are coming.
    taken: u64,
}

impl<'a> GrantedSpace<'a> {
    /// What was estimated, or what the job has waited for since.
    ///
    /// # Errors
    /// When that is not granted, and there is too little room.
    pub(super) async fn begin(work: &'a JobAtWork<'a>) -> Result<Self, StepError> {
        let unknown = work.services.settings.space.unknown;
        let estimated = work.job.job.space_needed().ok().flatten().unwrap_or(unknown);
        ensure(work, estimated).await?;
        let granted = work.services.grants.lock(work.queue).await?.of(work.job.id()).unwrap_or(estimated);
        let capacity = capacity(work)?;
        Ok(Self { work, capacity, bytes: Mutex::new(Bytes { granted, taken: 0 }) })
    }

    /// Fetches a file, of a size or of a share of what is left at first; one that is larger gets more room, and is
    /// begun again.
    ///
    /// # Errors
    /// Those of the fetch; when there is too little room.
    pub(super) async fn fetch(
        &self,
        fetcher: &Fetcher,
        file: &Source<'_>,
        share: usize,
        written: &Arc<AtomicU64>,
    ) -> Result<Fetched, StepError> {
        let size = file.size;
        let (mut most, mut refused) = match size {
            Some(size) => (size, 0),
            None => (self.left().await / share as u64, 0),
        };
        loop {
            self.take(most).await?;
            let fetched = file.fetch(fetcher, most, written).await;
            let kept = fetched.as_ref().map_or(0, |fetched| fetched.size);
            self.give_back(most, kept).await;
            most = match fetched.as_ref().map_err(FetchError::cause) {
                Err(FetchCause::TooLarge { found: Some(found), .. }) if size.is_none() && refused < MOST_REFUSED => {
                    refused += 1;
                    *found
                }
                Err(FetchCause::TooLarge { found: Some(_), .. }) if size.is_none() => {
                    let name = crate::name::shown(file.name);
                    let why = format_args!("the origin of {name:?} returns another size at each request");
                    return Err(StepError::temporary(why));
                }
                // So many have come: each time at least as many as before.
                Err(FetchCause::TooLarge { found: None, .. }) if size.is_none() && most < self.capacity => {
                    most.max(LEAST).saturating_mul(2).min(self.capacity)
                }
                _ => return Ok(fetched?),
            };
        }
    }

    async fn left(&self) -> u64 {
        let bytes = self.bytes.lock().await;
        bytes.granted.saturating_sub(bytes.taken)
    }

    async fn take(&self, most: u64) -> Result<(), StepError> {
        let mut bytes = self.bytes.lock().await;
        let taken = bytes.taken.saturating_add(most);
        if taken > bytes.granted {
            self.work.fence.pass().await;
            ensure(self.work, taken).await?;
            bytes.granted = taken;
        }
        bytes.taken = taken;
        Ok(())
    }

    async fn give_back(&self, most: u64, kept: u64) {
        let mut bytes = self.bytes.lock().await;
        bytes.taken = bytes.taken.saturating_sub(most).saturating_add(kept);
    }
}

/// How often a file may be larger than its origin said the time before.
const MOST_REFUSED: u32 = 3;

/// How many bytes the working storage may hold.
///
/// # Errors
/// When it cannot be looked at.
pub(super) fn capacity(work: &JobAtWork<'_>) -> Result<u64, StepError> {
    let (total, _) = work.services.working.space().map_err(|error| StepError::working("look at it", &error))?;
    Ok(work.services.settings.space.capacity(total))
}

/// Half of what a file gets that is larger than its share, and does not say how large.
const LEAST: u64 = 512 * 1024;

/// Sees to it that the job may have so many bytes on the working storage, and as many as it has waited for.
pub(super) async fn ensure(work: &JobAtWork<'_>, bytes: u64) -> Result<(), StepError> {
    loop {
        let mut grants = work.services.grants.lock(work.queue).await?;
        let bytes = bytes.max(grants.wanted(work.job.id()).unwrap_or(0));
        let (transaction, outcome) = grants.extend(&work.services.working, work.job.id(), bytes, now())?;
        if !transaction.is_empty() {
            match work.queue.commit(&transaction).await {
                Ok(_) => grants.committed(),
                Err(Error::Conflict(conflict)) if grants.is_about(&conflict.path) => {
                    grants.refused();
                    continue;
                }
                Err(error) => {
                    grants.refused();
                    return Err(error.into());
                }
            }
        }
        return match outcome {
            Extension::Granted => Ok(()),
            Extension::Waits => {
                Err(StepError::NoExtension(format!("waits for working storage: it needs {bytes} bytes in all")))
            }
            Extension::GivesUp(why) => {
                drop(grants);
                work.fence.pass().await;
                let directory = work.directory.clone();
                let removed = blocking(move || directory.remove_content()).await?;
                removed.map_err(|error| StepError::working("remove the files that the job has fetched", &error))?;
                Err(StepError::permanent(why))
            }
        };
    }
}

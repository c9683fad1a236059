//! Estimating: how much working storage a job will need. It never fails: what cannot be found out is unknown. Where a
//! host is away that would know, the job waits for it once.

use std::io::BufReader;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use queuekeeper_queue::{Job, JobChange, JobValue};

use super::priority;
use crate::fetch::Fetcher;
use crate::manifest::{Limits, ManifestProfile, Reader};
use crate::space::Rules;
use crate::spec::Package;
use crate::step::{JobAtWork, StepError};
use crate::url::ContentUrl;
use crate::working::secret::whole_url;

/// How many times the size of a container its content is taken to have, until it is unpacked.
const UNPACKED: u64 = 2;

/// How many sizes are requested at a time.
const AT_A_TIME: usize = 8;

/// Up to how many files of a manifest the size is requested where it is not stated.
const MOST_REQUESTS: usize = 10_000;

/// Why a size is not known.
enum NoSize {
    /// It cannot be found out.
    Unknown,
    /// The host that has it gets no request now.
    Away(StepError),
    /// All connections to that host are in use.
    Busy(StepError),
}

impl From<StepError> for NoSize {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Away { .. } => Self::Away(error),
            StepError::Busy(_) => Self::Busy(error),
            StepError::Temporary { .. }
            | StepError::Permanent(_)
            | StepError::NoRoom
            | StepError::NoExtension(_)
            | StepError::Queue(_) => Self::Unknown,
        }
    }
}

/// Estimates, and sets space and priority.
///
/// # Errors
/// [`StepError::Busy`] where all connections to the host are in use that has the size; [`StepError::Away`] where it is
/// away, and the job has not waited for one yet.
pub async fn estimate(work: &JobAtWork<'_>) -> Result<JobChange, StepError> {
    let size = match size(work).await {
        Ok(size) => Some(size),
        Err(NoSize::Busy(error)) => return Err(error),
        Err(NoSize::Away(error)) if work.job.retry.as_ref().is_none_or(|retry| retry.attempts == 0) => {
            return Err(error);
        }
        Err(NoSize::Away(_) | NoSize::Unknown) => None,
    };
    Ok(estimated(&work.job.job, &work.services.settings.space, size))
}

/// The change of a job whose size is known or not: it may come later.
pub(crate) fn estimated(job: &Job, rules: &Rules, size: Option<u64>) -> JobChange {
    let change = JobChange::success().with_value(JobValue::SpaceNeeded(size));
    let Ok(before) = job.priority() else { return change };
    let after = priority::estimated(rules, size, before);
    if after == before { change } else { change.with_priority(after) }
}

async fn size(work: &JobAtWork<'_>) -> Result<u64, NoSize> {
    let package = package_size(work).await?;
    let size = match work.spec.package {
        Package::File => Some(package),
        Package::Container => package.checked_mul(1 + UNPACKED),
        Package::Manifest => package.checked_add(content_size(work).await?),
    };
    size.ok_or(NoSize::Unknown)
}

/// The size of the package itself.
async fn package_size(work: &JobAtWork<'_>) -> Result<u64, NoSize> {
    let Some(url) = &work.spec.url else {
        let file = work.directory.local_package(&work.spec.file_name).ok().flatten();
        let size = file.and_then(|file| Some(file.metadata().ok()?.len()));
        // It may lie on another volume.
        return size.or(work.spec.size).ok_or(NoSize::Unknown);
    };
    match work.spec.size {
        Some(size) => Ok(size),
        None => requested(&work.fetcher()?, &whole_url(work.directory.path(), url)?).await,
    }
}

/// The size of a file as its origin says.
async fn requested(fetcher: &Fetcher, url: &ContentUrl) -> Result<u64, NoSize> {
    fetcher.size(url).await.map_err(StepError::from)?.ok_or(NoSize::Unknown)
}

/// The sizes of the files that a manifest names, which is read as it comes and kept nowhere. The first one that is not
/// known ends it.
async fn content_size(work: &JobAtWork<'_>) -> Result<u64, NoSize> {
    let file = super::downloading::manifest(work).await?;
    let fetcher = work.fetcher()?;
    // Rows are taken one by one while requests are under way; the manifest itself may be long.
    let (send, rows) = tokio::sync::mpsc::channel(AT_A_TIME);
    let reading = tokio::task::spawn_blocking(move || {
        let mut reader = Reader::new(BufReader::new(file), Limits::default(), Some(ManifestProfile::Ingest));
        for (_, row) in reader.by_ref() {
            if send.blocking_send((row.size, row.url)).is_err() {
                return false;
            }
        }
        reader.finish().is_ok()
    });
    let rows = stream::unfold(rows, |mut rows| async move { rows.recv().await.map(|row| (row, rows)) });
    let sizes = rows.enumerate().map(|(at, (size, url))| {
        let fetcher = fetcher.clone();
        async move {
            match (size, url) {
                (Some(size), _) => Ok(size),
                (None, Some(url)) if at < MOST_REQUESTS => requested(&fetcher, &url).await,
                (None, _) => Err(NoSize::Unknown),
            }
        }
    });
    let sizes = sizes.buffer_unordered(AT_A_TIME);
    let sum = |sum: u64, size| async move { sum.checked_add(size).ok_or(NoSize::Unknown) };
    let total = sizes.try_fold(0, sum).await?;
    if reading.await.is_ok_and(|is_valid| is_valid) { Ok(total) } else { Err(NoSize::Unknown) }
}

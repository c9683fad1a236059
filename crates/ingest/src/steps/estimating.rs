//! Estimating: how much working storage a job will need. It never fails: what cannot be found out is unknown.

use std::io::BufReader;

use futures::{StreamExt as _, stream};
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::{JobChange, JobValue};

use crate::manifest::{Limits, ManifestProfile, Reader};
use crate::spec::Package;
use crate::step::JobAtWork;

/// How many times the size of a container its content is taken to have, until it is unpacked.
const UNPACKED: u64 = 2;

/// How much later a job of unknown size comes.
const UNKNOWN_PRIORITY: u8 = 10;

/// How many sizes are requested at a time.
const AT_A_TIME: usize = 8;

/// Up to how many files of a manifest the size is requested where it is not stated.
const MOST_REQUESTS: usize = 10_000;

/// Estimates, and sets space and priority.
pub async fn estimate(work: &JobAtWork<'_>) -> JobChange {
    let change = JobChange::success();
    let size = size(work).await;
    let change = change.with_value(JobValue::SpaceNeeded(size));
    if size.is_some() {
        return change;
    }
    let later = |priority: Priority| priority.number().saturating_add(UNKNOWN_PRIORITY).min(Priority::MAX.number());
    match work.job.job.priority().ok().and_then(|old| Priority::new(later(old).into())) {
        Some(priority) => change.with_priority(priority),
        None => change,
    }
}

async fn size(work: &JobAtWork<'_>) -> Option<u64> {
    let package = package_size(work).await?;
    match work.spec.package {
        Package::File => Some(package),
        Package::Container => package.checked_mul(1 + UNPACKED),
        Package::Manifest => {
            let content = content_size(work).await?;
            package.checked_add(content)
        }
    }
}

/// The size of the package itself.
async fn package_size(work: &JobAtWork<'_>) -> Option<u64> {
    let Some(url) = &work.spec.url else {
        let file = work.directory.local_package(&work.spec.file_name).ok()??;
        return Some(file.metadata().ok()?.len());
    };
    match work.spec.size {
        Some(size) => Some(size),
        None => work.fetcher().ok()?.size(url).await.ok()?,
    }
}

/// The sizes of the files that a manifest names, which is read as it comes and kept nowhere.
async fn content_size(work: &JobAtWork<'_>) -> Option<u64> {
    let file = super::downloading::manifest(work).await.ok()?;
    let fetcher = work.fetcher().ok()?;
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
                (Some(size), _) => Some(size),
                (None, Some(url)) if at < MOST_REQUESTS => fetcher.size(&url).await.ok().flatten(),
                (None, _) => None,
            }
        }
    });
    let sizes = sizes.buffer_unordered(AT_A_TIME);
    let total = sizes.fold(Some(0u64), |sum, size| async move { sum?.checked_add(size?) }).await;
    reading.await.ok()?.then_some(total).flatten()
}

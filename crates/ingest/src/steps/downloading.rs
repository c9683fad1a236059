//! Downloading: every file of the object into `producer/`, checked while it streams.
//!
//! What an earlier attempt left is verified and kept. `.files` is written last: where it is, everything is there.

use std::fs::File;
use std::io::{self, BufReader};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use queuekeeper_queue::record::NOTHING_TO_STORE;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{JobChange, JobValue};
use queuekeeper_store::Digests;
use tracing::warn;

mod grant;

use grant::{GrantedSpace, Source, ensure};

use super::priority;
use crate::blocking::blocking;
use crate::fetch::{ALGORITHMS, Fetcher};
use crate::file_root::{self, FileRoot};
use crate::files::{self, FilesWriter, JobFile};
use crate::manifest::{self, Limits, ManifestProfile, ManifestRow, PROBLEMS_BYTES, Reader};
use crate::spec::Package;
use crate::step::{JobAtWork, StepError};
use crate::unpack::{self, ArchiveCause, Progress, bag};
use crate::warnings;
use crate::working::secret::whole_url;
use crate::working::{PACKAGE, PRODUCER};

/// The largest manifest of an object, in bytes.
const MOST_MANIFEST_BYTES: u64 = 256 << 20;

/// Fetches and unpacks all files of a job.
///
/// # Errors
/// When a file cannot be had, differs from its digest, or there is no room for it.
pub async fn download(work: &JobAtWork<'_>) -> Result<JobChange, StepError> {
    let room = GrantedSpace::begin(work).await?;
    work.fence.pass().await;
    let _begun = work.services.downloads.begin(work.job.id());
    let bytes = match listed(work)? {
        Some(bytes) => bytes,
        None => match work.spec.package {
            Package::File => file(work, &room).await?,
            Package::Container => container(work, &room).await?,
            Package::Manifest => manifest_files(work, &room).await?,
        },
    };
    work.directory.remove_temporary().map_err(|error| StepError::working("remove temporary files", &error))?;
    let mut change = JobChange::success().with_value(JobValue::SpaceNeeded(Some(bytes)));
    if let (Ok(before), Ok(estimate)) = (work.job.job.priority(), work.job.job.space_needed()) {
        let after = priority::corrected(&work.services.settings.space, estimate, bytes, before);
        change = if after == before { change } else { change.with_priority(after) };
    }
    Ok(change)
}

/// Keeps what is odd about a package, before its files are listed as complete.
fn keep_warnings(work: &JobAtWork<'_>, warnings: &[String]) -> Result<(), StepError> {
    if !warnings.is_empty() {
        warn!(job = %work.job.id(), warnings = %warnings.join("; "), "accepted a package with warnings");
    }
    let kept = warnings::write(&work.directory, JobState::Downloading, warnings);
    kept.map_err(|error| StepError::working("keep the warnings", &error))
}

/// The bytes of all files, where an earlier attempt fetched them all.
fn listed(work: &JobAtWork<'_>) -> Result<Option<u64>, StepError> {
    let failed = |error: io::Error| StepError::working("read the list of files", &error);
    let Some(files) = files::read(&work.directory).map_err(failed)? else { return Ok(None) };
    let mut bytes = 0;
    for file in files {
        bytes += file.map_err(failed)?.size;
    }
    Ok(Some(bytes))
}

/// A package that is one file.
async fn file(work: &JobAtWork<'_>, room: &GrantedSpace<'_>) -> Result<u64, StepError> {
    let file_root = open(work, PRODUCER)?;
    let file = package(work, &file_root, work.spec.size, Some(room)).await?;
    finish(work, &file_root, std::slice::from_ref(&file)).await
}

/// A package that is an archive.
async fn container(work: &JobAtWork<'_>, room: &GrantedSpace<'_>) -> Result<u64, StepError> {
    let packages = open(work, PACKAGE)?;
    let packed = package(work, &packages, work.spec.size, Some(room)).await?;
    let producer = open(work, PRODUCER)?;
    let mut most = work.services.grants.lock(work.queue).await?.of(work.job.id()).unwrap_or(0);
    let unpacked = loop {
        let limits = unpack::Limits::bytes(most.saturating_sub(packed.size));
        let outcome = unpack(work, &packages, &producer, &packed.name, limits).await?;
        match outcome {
            Ok(unpacked) => break unpacked,
            // It is larger than it was taken for: twice the room, as often as there is some.
            Err(error) if matches!(error.cause(), ArchiveCause::TooManyBytes(_)) => {
                // More than the volume may hold is requested only once that was not enough.
                let more = most.max(packed.size).saturating_mul(2).max(unpack::Limits::FREE);
                most = if most < grant::capacity(work)? { more.min(grant::capacity(work)?) } else { more };
                ensure(work, most).await?;
            }
            Err(error) if error.is_final() => return Err(StepError::permanent(error)),
            Err(error) => return Err(StepError::temporary(error)),
        }
    };
    let file_root = Arc::clone(&producer);
    let unpacked = blocking(move || validate(&file_root, &unpacked.files).map(|()| unpacked)).await??;
    if unpacked.files.is_empty() {
        let name = crate::name::shown(&packed.name);
        let why = format_args!("container {name:?} {NOTHING_TO_STORE}");
        return Err(StepError::permanent(why));
    }
    keep_warnings(work, &unpacked.warnings())?;
    let files: Vec<JobFile> = unpacked
        .files
        .into_iter()
        .map(|file| JobFile { name: file.name, size: file.size, digests: file.digests, media_type: None })
        .collect();
    let bytes = finish(work, &producer, &files).await?;
    let folder = work.directory.path().join(PACKAGE);
    std::fs::remove_dir_all(folder).map_err(|error| StepError::working("remove the package", &error))?;
    Ok(bytes)
}

/// Compares the files of a container with what it states of them: as a bag, and in its manifest.
fn validate(file_root: &FileRoot, files: &[unpack::UnpackedFile]) -> Result<(), StepError> {
    match bag::validate(file_root, files) {
        Ok(_) => {}
        Err(error @ bag::BagError::Invalid(_)) => return Err(StepError::permanent(error)),
        Err(error @ bag::BagError::Read(_)) => return Err(StepError::temporary(error)),
    }
    match unpack::manifest::validate(file_root, files) {
        Ok(_) => Ok(()),
        Err(error) if error.is_final() => Err(StepError::permanent(error)),
        Err(error) => Err(StepError::temporary(error)),
    }
}

async fn unpack(
    work: &JobAtWork<'_>,
    packages: &Arc<FileRoot>,
    producer: &Arc<FileRoot>,
    name: &str,
    limits: unpack::Limits,
) -> Result<Result<unpack::Unpacked, unpack::ArchiveError>, StepError> {
    let (packages, producer, name) = (Arc::clone(packages), Arc::clone(producer), name.to_owned());
    // Dropped with the worker, it stops what is unpacking in another thread.
    let progress = Arc::new(Progress::default());
    let _stop = StopWhenDropped(Arc::clone(&progress));
    let counter = work.services.grants.written(work.job.id());
    let counted = Arc::clone(&progress);
    let unpacking = blocking(move || {
        let file = packages.file(&name)?.ok_or_else(|| io::Error::other("the package is gone"))?;
        Ok(unpack::unpack(file, &name, &producer, &limits, &ALGORITHMS, &progress))
    });
    let counting = async {
        let before = counter.load(std::sync::atomic::Ordering::Relaxed);
        loop {
            let now = counted.written.load(std::sync::atomic::Ordering::Relaxed);
            counter.store(before + now, std::sync::atomic::Ordering::Relaxed);
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        unpacked = unpacking => unpacked?.map_err(|error: io::Error| StepError::working("read the package", &error)),
        () = counting => unreachable!("it counts until it is dropped"),
    }
}

struct StopWhenDropped(Arc<Progress>);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// A package that is a manifest of the object's files.
async fn manifest_files(work: &JobAtWork<'_>, room: &GrantedSpace<'_>) -> Result<u64, StepError> {
    let source = manifest(work).await?;
    let file_root = open(work, PRODUCER)?;
    let kept = source.try_clone().map_err(|error| StepError::working("read the manifest", &error))?;
    let target = work.directory.path().join("system").join("mrt-submission-manifest.txt");
    blocking(move || -> io::Result<()> {
        let mut text = Vec::new();
        manifest::conceal_queries(BufReader::new(&kept), &mut text)?;
        io::Seek::rewind(&mut &kept)?;
        std::fs::write(target, text)
    })
    .await?
    .map_err(|error| StepError::working("keep the manifest", &error))?;

    // It is read once to know that it is valid, and again for its rows: nothing is fetched for one that is not.
    let check = source.try_clone().map_err(|error| StepError::working("read the manifest", &error))?;
    let summary = blocking(move || {
        let summary = Reader::new(BufReader::new(&check), Limits::default(), Some(ManifestProfile::Ingest)).finish();
        io::Seek::rewind(&mut &check).map(|()| summary)
    });
    let summary = summary.await?.map_err(|error| StepError::working("read the manifest", &error))?;
    let summary = summary.map_err(|error| StepError::Permanent(error.in_full(PROBLEMS_BYTES)))?;
    keep_warnings(work, &summary.sentences())?;

    let (fetcher, written) = (work.fetcher()?, work.services.grants.written(work.job.id()));
    let mut list = FilesWriter::begin(&work.directory).map_err(|error| StepError::working("list the files", &error))?;
    let (send, rows) = tokio::sync::mpsc::channel(work.services.settings.connections);
    let reading = tokio::task::spawn_blocking(move || {
        let reader = Reader::new(BufReader::new(source), Limits::default(), Some(ManifestProfile::Ingest));
        for (_, row) in reader {
            if send.blocking_send(row).is_err() {
                return;
            }
        }
    });
    let rows = stream::unfold(rows, |mut rows| async move { rows.recv().await.map(|row| (row, rows)) });
    let fetches = rows.map(|row| fetch_row(work, (&fetcher, room), &file_root, row, &written));
    let mut fetched = Box::pin(fetches.buffer_unordered(work.services.settings.connections.max(1)));
    let mut names = Vec::new();
    while let Some(file) = fetched.try_next().await? {
        list.add(&file).map_err(|error| StepError::working("list the files", &error))?;
        names.push(file.name);
    }
    drop(fetched);
    reading.await.map_err(StepError::temporary)?;
    sync(&file_root, names).await?;
    let (_, bytes) = list.finish().map_err(|error| StepError::working("list the files", &error))?;
    work.services.metrics.downloaded(bytes);
    Ok(bytes)
}

async fn fetch_row(
    work: &JobAtWork<'_>,
    (fetcher, room): (&Fetcher, &GrantedSpace<'_>),
    file_root: &Arc<FileRoot>,
    row: ManifestRow,
    written: &Arc<AtomicU64>,
) -> Result<JobFile, StepError> {
    let url = row.url.ok_or_else(|| StepError::permanent("a row of the manifest has no URL"))?;
    let digests: Digests = row.digest.into_iter().collect();
    let own = Arc::new(AtomicU64::new(0));
    work.fence.pass().await;
    let file = work.services.downloads.file(work.job.id(), &row.name, row.size, &own);
    let share = work.services.settings.connections.max(1);
    let source = Source { url: &url, size: row.size, digests, file_root, name: &row.name };
    let fetched = room.fetch(fetcher, &source, share, &own).await?;
    if let Some(file) = file {
        file.is_there(fetched.size);
    }
    written.fetch_add(fetched.size, std::sync::atomic::Ordering::Relaxed);
    let media_type = row.mime_type.or(fetched.media_type);
    Ok(JobFile { name: row.name, size: fetched.size, digests: fetched.digests, media_type })
}

/// The manifest that the package is, read from its beginning.
pub(super) async fn manifest(work: &JobAtWork<'_>) -> Result<File, StepError> {
    // Its URLs may be presigned.
    let file_root = work.directory.private_root(PACKAGE);
    let file_root = file_root.map_err(|error| StepError::working("create the job's directory", &error))?;
    let packed = package(work, &file_root, work.spec.size.filter(|size| *size <= MOST_MANIFEST_BYTES), None).await?;
    let file = file_root.file(&packed.name).map_err(|error| StepError::working("read the manifest", &error))?;
    file.ok_or_else(|| StepError::temporary("working storage: the manifest is gone"))
}

/// The package, in a directory under its name: fetched, or from the working storage, and checked against its digest.
/// Where it may not take room, it is a manifest.
async fn package(
    work: &JobAtWork<'_>,
    file_root: &Arc<FileRoot>,
    size: Option<u64>,
    room: Option<&GrantedSpace<'_>>,
) -> Result<JobFile, StepError> {
    let spec = work.spec;
    let digests: Digests = spec.digest.iter().cloned().collect();
    let written = work.services.grants.written(work.job.id());
    if let Some(url) = &spec.url {
        let url = whole_url(work.directory.path(), url)?;
        work.fence.pass().await;
        // What was estimated of a package that is one file is what its origin said.
        let estimated = || work.job.job.space_needed().ok().flatten().filter(|_| spec.package == Package::File);
        let shown = size.or_else(estimated);
        let file = work.services.downloads.file(work.job.id(), &spec.file_name, shown, &written);
        let fetcher = work.fetcher()?;
        let source = Source { url: &url, size, digests, file_root, name: &spec.file_name };
        let fetched = match room {
            Some(room) => room.fetch(&fetcher, &source, 1, &written).await?,
            None => source.fetch(&fetcher, MOST_MANIFEST_BYTES, &written).await?,
        };
        if let Some(file) = file {
            file.is_there(fetched.size);
        }
        let name = spec.file_name.clone();
        return Ok(JobFile { name, size: fetched.size, digests: fetched.digests, media_type: fetched.media_type });
    }
    let missing = || {
        let name = crate::name::shown(&spec.file_name);
        // Depositors see it: it does not say where the working storage is.
        let (batch, job) = (&spec.batch, &spec.job);
        StepError::permanent(format_args!(
            "file {name:?} is neither in {batch}/{job} nor in {batch}: put it there and resume the job, or deposit it again"
        ))
    };
    let failed = |error: io::Error| StepError::working(&format!("read {:?}", spec.file_name), &error);
    let source = work.directory.local_package(&spec.file_name).map_err(failed)?.ok_or_else(missing)?;
    let (file_root, name) = (Arc::clone(file_root), spec.file_name.clone());
    let algorithms: Vec<_> =
        ALGORITHMS.into_iter().chain(spec.digest.iter().map(queuekeeper_store::Digest::algorithm)).collect();
    let (found_size, found) = blocking(move || {
        file_root.adopt(&source, &name)?;
        let file = file_root.file(&name)?.ok_or_else(|| io::Error::other("it is gone"))?;
        file_root::digests(&file, algorithms)
    })
    .await?
    .map_err(failed)?;
    written.store(found_size, std::sync::atomic::Ordering::Relaxed);
    if let Some((expected, found)) = digests.difference(&found) {
        let name = crate::name::shown(&spec.file_name);
        let algorithm = expected.algorithm();
        let why = format_args!("file {name:?}: expected the {algorithm} digest {expected}, found {found}");
        return Err(StepError::permanent(why));
    }
    Ok(JobFile { name: spec.file_name.clone(), size: found_size, digests: found, media_type: None })
}

fn open(work: &JobAtWork<'_>, folder: &str) -> Result<Arc<FileRoot>, StepError> {
    work.directory.root(folder).map_err(|error| StepError::working("create the job's directory", &error))
}

/// Makes the files' names durable, and lists them.
async fn finish(work: &JobAtWork<'_>, file_root: &Arc<FileRoot>, all: &[JobFile]) -> Result<u64, StepError> {
    sync(file_root, all.iter().map(|file| file.name.clone()).collect()).await?;
    let list = || -> io::Result<u64> {
        let mut list = FilesWriter::begin(&work.directory)?;
        all.iter().try_for_each(|file| list.add(file))?;
        list.finish().map(|(_, bytes)| bytes)
    };
    let bytes = list().map_err(|error| StepError::working("list the files", &error))?;
    work.services.metrics.downloaded(bytes);
    Ok(bytes)
}

async fn sync(file_root: &Arc<FileRoot>, names: Vec<String>) -> Result<(), StepError> {
    let file_root = Arc::clone(file_root);
    let synced = blocking(move || file_root.sync_folders(names.iter().map(String::as_str))).await?;
    synced.map_err(|error| StepError::working("sync the files", &error))
}

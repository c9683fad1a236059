//! Storing: a version of the object, in the store and space of its profile.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, future, stream};
use queuekeeper_queue::path::{JobNode, LockFolder};
use queuekeeper_queue::{Error, JobChange, JobValue};
use queuekeeper_store::ocfl::{Begun, NewFile, NewVersion, Object, Root, Start, User};
use queuekeeper_store::{Algorithm, Digest, Digests, Noted, SpaceName, Store, StoreName};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::io::ReaderStream;

use super::processing::{self, MANIFEST, SYSTEM};
use crate::blocking::blocking;
use crate::clock::now;
use crate::file_root::FileRoot;
use crate::files;
use crate::manifest::{Limits, ManifestRow, Reader};
use crate::recorded;
use crate::step::{JobAtWork, StepError};
use crate::working::PRODUCER;

/// The file in `producer/` that names files which an update leaves out.
const DELETE: &str = "mrt-delete.txt";

/// For how long a storage root is taken to be one without another look: a directory may be restored, or emptied.
const ROOT_FRESH: Duration = Duration::from_mins(1);

/// For how long what a job said last counts, that it stores content of an object: Storing follows Processing most
/// often.
const INTENT_FRESH: Duration = Duration::from_mins(10);

/// How many files are written at a time.
const AT_A_TIME: usize = 4;

/// How much of a file is read at once, in bytes.
const PIECE: usize = 256 * 1024;

/// Writes the version that the manifest names; one that this job has written already is found.
///
/// # Errors
/// When a file differs from its digest, another job stores the same object, or the store refuses.
pub async fn store(work: &JobAtWork<'_>) -> Result<JobChange, StepError> {
    let ark = ark(work)?;
    check_node(work, &ark)?;
    let lock = match work.queue.lock_object(LockFolder::Storage, &ark).await {
        Err(Error::Conflict(_)) => {
            let why = format_args!("another job is storing {ark}");
            return Err(StepError::temporary(why));
        }
        other => other?,
    };
    let stored = async {
        // The version before may have been recorded since the job was in Processing.
        let is_recorded = processing::check_owner(work, &ark).await?.is_some();
        write(work, &ark, is_recorded).await
    };
    let stored = stored.await;
    // A session that is lost has released it.
    let released = work.queue.unlock(&lock).await;
    if stored.is_err() {
        work.services.roots.lock().remove(&place_of(work));
    }
    let version = stored?;
    released?;
    let manifest_url = format!("ocfl:{}/{ark}/v{version}", work.profile.store);
    let mode = if work.spec.is_update { "update" } else { "add" }.to_owned();
    Ok(JobChange::success().with_value(JobValue::Inventory { manifest_url, mode }))
}

/// Checks that the job was processed for the node of its profile: of another one the object lies in a Merritt store.
fn check_node(work: &JobAtWork<'_>, ark: &str) -> Result<(), StepError> {
    let store: Value =
        serde_json::from_slice(work.job.job.data(JobNode::Store).unwrap_or_default()).unwrap_or_default();
    let mode = store.get("mode").and_then(Value::as_str).unwrap_or_default();
    let Some(node) = mode.split('/').nth(1).filter(|node| *node != work.profile.node.to_string()) else {
        return Ok(());
    };
    let (node, name, ours) = (crate::name::shown(node), &work.profile.name, &work.profile.node);
    Err(StepError::permanent(format_args!(
        "the job was processed for node {node}, but profile {name} stores in node {ours}: if {ark} is in a Merritt store, have Merritt's daemon store it; otherwise, resume the job at Processing"
    )))
}

/// The ARK that processing has assigned.
pub(super) fn ark(work: &JobAtWork<'_>) -> Result<String, StepError> {
    let ark = work.job.job.identifiers().value.ark.into_owned();
    let missing = || StepError::permanent("the job has no identifier; resume it at Processing");
    Some(ark).filter(|ark| !ark.is_empty()).ok_or_else(missing)
}

/// The storage root of the profile, as it was found to be a minute ago at most, unless a job has failed in Storing
/// since.
pub(super) async fn root(work: &JobAtWork<'_>) -> Result<Root, StepError> {
    let (store, place) = (work.services.store(&work.profile)?, place_of(work));
    if let Some((root, opened)) = work.services.roots.lock().get(&place)
        && opened.elapsed() < ROOT_FRESH
    {
        return Ok(root.clone());
    }
    let is_known = work.services.roots.lock().contains_key(&place);
    let (opened, noted) = (Instant::now(), Arc::new(Noted::new(Arc::clone(&store))));
    let root = Root::open(Arc::clone(&noted) as Arc<dyn Store>, place.1.clone()).await;
    recorded::settle(&work.services.catalogue, &noted).await?;
    let root = root?.in_store(Arc::clone(&store));
    if !is_known {
        // A process that made it may have died before it recorded that.
        recorded::look_at(&work.services.catalogue, &store, root.items().into()).await?;
    }
    work.services.roots.lock().insert(place, (root.clone(), opened));
    Ok(root)
}

fn place_of(work: &JobAtWork<'_>) -> (StoreName, SpaceName) {
    (work.profile.store.clone(), work.profile.space.clone())
}

/// Writes the version, and records what that changed in the store.
async fn write(work: &JobAtWork<'_>, ark: &str, is_recorded: bool) -> Result<u32, StepError> {
    work.fence.pass().await;
    let (store, object) = (work.services.store(&work.profile)?, root(work).await?.object(ark)?);
    let noted = Arc::new(Noted::new(Arc::clone(&store)));
    let object = object.in_store(Arc::clone(&noted) as Arc<dyn Store>);
    let made = write_noted(work, &object, &noted, is_recorded).await;
    let catalogue = &work.services.catalogue;
    let settled = recorded::settle(catalogue, &noted).await;
    let Made { version, is_continued } = match (made, settled) {
        (Err(error), Err(unrecorded)) => {
            tracing::warn!(ark, error = %unrecorded, "cannot record the stored version; the next attempt will");
            return Err(error);
        }
        (made, settled) => {
            let made = made?;
            settled?;
            made
        }
    };
    if is_continued {
        recorded::compare(catalogue, &store, &work.profile.space, object.root()).await?;
    }
    Ok(version)
}

/// A version that was made.
struct Made {
    version: u32,
    /// Whether an earlier attempt has stored something of it, which it may not have recorded.
    is_continued: bool,
}

async fn write_noted(
    work: &JobAtWork<'_>,
    object: &Object,
    noted: &Arc<Noted>,
    is_recorded: bool,
) -> Result<Made, StepError> {
    let ark = object.id();
    let (store, space) = place_of(work);
    let (place, fresh) = ((store.to_string(), space.to_string()), fresh(work));
    let content = work.services.catalogue.store_content(work.spec.uuid, ark, &place, fresh).await?;
    work.fence.pass().await;
    let new = NewVersion {
        job: work.spec.uuid,
        content,
        user: User { name: submitter(work), address: None },
        message: format!("batch {}", work.spec.batch),
        created: now(),
        start: if work.spec.is_update { Start::Head } else { Start::Empty },
    };
    let mut writer = match object.begin(new).await? {
        Begun::Done(version) => {
            check_same(work, object, version).await?;
            return Ok(Made { version, is_continued: true });
        }
        Begun::Writer(writer) => writer,
    };
    if writer.version() > 1 && !is_recorded {
        let why = format_args!("the previous version of {ark} is not recorded yet");
        return Err(StepError::temporary(why));
    }
    // With local ids alone, an update of what is unknown is its first version, as always.
    if work.spec.is_update && work.spec.primary_id.is_some() && writer.version() == 1 {
        if work.services.catalogue.is_intended_by_another(work.spec.uuid, ark).await? {
            let why = format_args!("another job is creating the first version of {ark}");
            return Err(StepError::temporary(why));
        }
        let name = &work.profile.store;
        return Err(StepError::permanent(format_args!(
            "{ark} is not in store {name}, but an update needs the existing object there; deposit it whole, without update, or, if it is in a Merritt store (node {} of this profile), through Merritt",
            work.profile.node
        )));
    }
    let is_continued = writer.is_continued();
    let failed = |error: io::Error| StepError::working("read the manifest", &error);
    let base = processing::base(work).map_err(failed)?;
    let path = work.directory.path().join(SYSTEM).join(MANIFEST);
    let file_root = work.directory.root(".").map_err(|error| StepError::working("open the job's directory", &error))?;
    let source = File::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let at = work.directory.shown();
            StepError::permanent(format_args!(
                "the working storage has no manifest of this job (in {at}); resume the job at Processing"
            ))
        }
        _ => failed(error),
    })?;
    if work.spec.is_update {
        let wanted = left_out(work)?;
        if !wanted.is_empty() {
            let has = writer.paths().filter(|path| path.as_ref().map_or(true, |path| wanted.contains(path)));
            for path in has.collect::<Result<Vec<_>, _>>()? {
                writer.remove(&path)?;
            }
        }
    }
    let (send, rows) = tokio::sync::mpsc::channel(AT_A_TIME);
    let reading = tokio::task::spawn_blocking(move || {
        let mut reader = Reader::add(BufReader::new(source), Limits::default(), base);
        for (_, row) in reader.by_ref() {
            if send.blocking_send(row).is_err() {
                return Ok(());
            }
        }
        reader.finish().map(drop)
    });
    let rows = stream::unfold(rows, |mut rows| async move { rows.recv().await.map(|row| (row, rows)) });
    let bytes = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = Arc::clone(&bytes);
    let catalogue = &work.services.catalogue;
    let files = rows.then(move |row| {
        counted.fetch_add(row.size.unwrap_or(0), std::sync::atomic::Ordering::Relaxed);
        let file = (row.name.clone(), new_file(&file_root, row));
        async move {
            // What cannot be recorded now is at the end.
            if let Err(error) = recorded::settle_part(catalogue, noted).await {
                tracing::warn!(%error, "the stored version is not recorded yet");
            }
            file
        }
    });
    writer.put_all(files, AT_A_TIME).await?;
    reading.await.map_err(StepError::temporary)?.map_err(StepError::permanent)?;
    work.fence.pass().await;
    let version = writer.commit().await?;
    work.services.metrics.stored(bytes.load(std::sync::atomic::Ordering::Relaxed));
    Ok(Made { version, is_continued })
}

/// Checks that a version that was made under the job's UUID has the files that the job has now: a deposit that is sent
/// under the UUID of another one, whose batch is gone, would be called stored, and be nowhere. What ingest adds may
/// differ.
async fn check_same(work: &JobAtWork<'_>, object: &Object, version: u32) -> Result<(), StepError> {
    let failed = |error: io::Error| StepError::working("read the list of files", &error);
    // Its version may be recorded, and its files removed since.
    let Some(listed) = files::read(&work.directory).map_err(failed)? else { return Ok(()) };
    let Some(snapshot) = object.read().await? else { return Ok(()) };
    let left_out = if work.spec.is_update { Some(left_out(work)?) } else { None };
    let id = object.id().to_owned();
    blocking(move || {
        let other = |name: &str| {
            let name = crate::name::shown(name);
            StepError::permanent(format_args!(
                "version {version} of {id} was stored by a deposit with the same UUID, but {name:?} differs: this deposit was not stored; deposit it again, with another key or UUID"
            ))
        };
        let inventory = snapshot.inventory();
        let mut names = BTreeSet::new();
        for file in listed {
            let file = file.map_err(failed)?;
            let name = format!("{PRODUCER}/{}", file.name);
            let stored = inventory.file(version, &name)?;
            let is_same = |digest: &Digest| file.digests.get(Algorithm::Sha512).is_none_or(|listed| listed == digest);
            if !stored.is_some_and(|stored| is_same(&stored.digest)) {
                return Err(other(&name));
            }
            names.insert(name);
        }
        for stored in inventory.files(version) {
            let path = stored?.path;
            let is_more = match &left_out {
                None => path.starts_with(&format!("{PRODUCER}/")) && !names.contains(&path),
                Some(left_out) => left_out.contains(&path) && !names.contains(&path),
            };
            if is_more {
                return Err(other(&path));
            }
        }
        Ok(())
    })
    .await?
}

/// For how long an intent counts as fresh: less than the time after which cleanup takes it for left.
fn fresh(work: &JobAtWork<'_>) -> Duration {
    INTENT_FRESH.min(work.services.settings.cleanup.objects_after / 2)
}

fn submitter(work: &JobAtWork<'_>) -> String {
    let name = work.spec.text("submitter").trim();
    if name.is_empty() { "unknown".to_owned() } else { name.chars().filter(|char| !char.is_control()).collect() }
}

/// The files of the object that an update leaves out.
fn left_out(work: &JobAtWork<'_>) -> Result<BTreeSet<String>, StepError> {
    let failed = |error: io::Error| StepError::working("read mrt-delete.txt", &error);
    let file_root = work.directory.root(PRODUCER).map_err(failed)?;
    let Some(file) = file_root.file(DELETE).map_err(failed)? else { return Ok(BTreeSet::new()) };
    let mut paths = BTreeSet::new();
    for line in BufReader::new(file).lines() {
        let line = line.map_err(failed)?;
        let path = line.trim();
        if !path.is_empty() {
            paths.insert(path.to_owned());
        }
    }
    Ok(paths)
}

/// A file of the job's directory, opened beneath it each time that it is read.
fn new_file(file_root: &Arc<FileRoot>, row: ManifestRow) -> NewFile {
    let (file_root, name) = (Arc::clone(file_root), row.name);
    let open = move || {
        let (file_root, name) = (Arc::clone(&file_root), name.clone());
        // A small file takes one hand-over to another thread; each piece of a large one takes one more.
        let read = move || -> io::Result<(File, Vec<u8>)> {
            let gone = || io::Error::new(io::ErrorKind::NotFound, "the file is gone");
            let (file, mut first) = (file_root.file(&name)?.ok_or_else(gone)?, Vec::new());
            (&file).take(PIECE as u64).read_to_end(&mut first)?;
            Ok((file, first))
        };
        let opened = async move {
            let (file, first) = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
            let rest =
                (first.len() == PIECE).then(|| ReaderStream::with_capacity(tokio::fs::File::from_std(file), PIECE));
            let first = stream::once(future::ready(Ok(Bytes::from(first))));
            Ok::<_, io::Error>(first.chain(stream::iter(rest).flatten()))
        };
        stream::once(opened).try_flatten().boxed()
    };
    let digests: Digests = row.digest.into_iter().collect();
    NewFile { size: row.size, expected: digests, ..NewFile::new(open) }
}

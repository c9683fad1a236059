//! Content on its way into a file: digested in the same pass, compared, and synced before it may appear.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use tempfile::NamedTempFile;
use tokio::task::{JoinError, spawn_blocking};

use super::core::{Core, Pending, stamp};
use super::temporary::temporary_file;
use crate::digest::{Digests, Hashers};
use crate::error::ErrorKind;
use crate::store::{Chunks, INTERRUPTED, Item, Put, UserProperties};

/// How much is written at a time, in bytes; so much is digested at the same time, and so much read ahead.
const BATCH: usize = 1 << 20;

/// The mode of a file that is secret.
const SECRET: u32 = 0o600;

/// Some bytes of the content, and whether they are the last ones.
#[derive(Clone, Default)]
struct Batch {
    chunks: Vec<Bytes>,
    bytes: usize,
    is_last: bool,
}

/// Writes content durably to a file that no reader sees yet.
pub(super) async fn receive(
    core: &Arc<Core>,
    item: &Item,
    mut content: Chunks,
    put: &Put,
) -> Result<Pending, ErrorKind> {
    let algorithms = put.expected.iter().map(crate::digest::Digest::algorithm).chain(put.compute.iter().copied());
    let mut hashers = Hashers::new(algorithms);
    let mut batch = next(&mut content, put, 0).await?;
    let begin = {
        let (core, item, condition, is_secret) = (Arc::clone(core), item.clone(), put.condition.clone(), put.is_secret);
        move || {
            // What is refused in the end is better refused here, behind the first batch: small content is all there by
            // now.
            core.check(&item, &condition)?;
            let file = temporary_file(core.temporary())?;
            if is_secret {
                // Before there is anything in it.
                file.as_file().set_permissions(Permissions::from_mode(SECRET))?;
            }
            Ok::<_, ErrorKind>(file)
        }
    };
    let conditions = Conditions::of(put);
    if batch.is_last {
        let written = spawn_blocking(move || conditions.end(begin()?, hashers, &batch));
        return pass(written.await.map_err(panicked)??, put).await;
    }
    let mut file = spawn_blocking(begin).await.map_err(panicked)??;
    loop {
        if batch.is_last {
            let written = spawn_blocking(move || conditions.end(file, hashers, &batch));
            return pass(written.await.map_err(panicked)??, put).await;
        }
        let so_far = hashers.bytes() + batch.bytes as u64;
        let digested = batch.clone();
        // Reading, digesting and writing go on at the same time, each for a batch of its own.
        let digesting = spawn_blocking(move || {
            digest(&mut hashers, &digested);
            hashers
        });
        let writing = spawn_blocking(move || write(&mut file, &batch).map(|()| file));
        let (digested, written, following) = tokio::join!(digesting, writing, next(&mut content, put, so_far));
        hashers = digested.map_err(panicked)?;
        file = written.map_err(panicked)??;
        batch = following?;
    }
}

/// What the end of some content is held against.
struct Conditions {
    size: Option<u64>,
    expected: Digests,
    user: UserProperties,
    has_guard: bool,
}

impl Conditions {
    fn of(put: &Put) -> Self {
        let Put { size, expected, user, guard, .. } = put;
        Self { size: *size, expected: expected.clone(), user: user.clone(), has_guard: guard.is_some() }
    }

    /// Writes the last bytes, and makes the content durable, unless that is done while the guard is called.
    fn end(self, mut file: NamedTempFile, mut hashers: Hashers, batch: &Batch) -> Result<Pending, ErrorKind> {
        digest(&mut hashers, batch);
        write(&mut file, batch)?;
        let etag = stamp(file.as_file())?;
        let (size, digests) = (hashers.bytes(), hashers.finish());
        if let Some(expected) = self.size.filter(|expected| *expected != size) {
            return Err(ErrorKind::Size { expected, found: size });
        }
        if let Some((expected, found)) = self.expected.difference(&digests) {
            return Err(ErrorKind::Digest { expected: expected.clone(), found: found.clone() });
        }
        if !self.has_guard {
            file.as_file().sync_all()?;
        }
        Ok(Pending { file, etag, size, digests, user: self.user })
    }
}

/// Makes content durable, which takes as long as the disk does, while the guard is called.
async fn pass(pending: Pending, put: &Put) -> Result<Pending, ErrorKind> {
    let Some(guard) = &put.guard else { return Ok(pending) };
    let content = pending.file.as_file().try_clone()?;
    let content = spawn_blocking(move || content.sync_all());
    let (content, passed) = tokio::join!(content, guard.pass(pending.size, &pending.digests));
    content.map_err(panicked)??;
    passed.map_err(ErrorKind::Stopped)?;
    Ok(pending)
}

/// The next bytes of the content, unless they are more than announced or it is given up.
async fn next(content: &mut Chunks, put: &Put, so_far: u64) -> Result<Batch, ErrorKind> {
    let gathering = async {
        let mut batch = Batch::default();
        while batch.bytes < BATCH {
            let Some(chunk) = content.next().await else {
                batch.is_last = true;
                break;
            };
            let chunk = chunk.map_err(ErrorKind::Source)?;
            batch.bytes += chunk.len();
            batch.chunks.push(chunk);
        }
        Ok::<_, ErrorKind>(batch)
    };
    let stopped = || ErrorKind::Stopped(INTERRUPTED.to_owned());
    let batch = put.abort.run_until_cancelled(gathering).await.ok_or_else(stopped)??;
    let found = so_far + batch.bytes as u64;
    match put.size {
        Some(expected) if found > expected => Err(ErrorKind::Size { expected, found }),
        _ => Ok(batch),
    }
}

fn digest(hashers: &mut Hashers, batch: &Batch) {
    batch.chunks.iter().for_each(|chunk| hashers.update(chunk));
}

fn write(file: &mut NamedTempFile, batch: &Batch) -> Result<(), ErrorKind> {
    batch.chunks.iter().try_for_each(|chunk| file.as_file_mut().write_all(chunk)).map_err(ErrorKind::from)
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err calls it")]
pub(super) fn panicked(error: JoinError) -> ErrorKind {
    ErrorKind::Unavailable(format!("this program is ending: {error}"))
}

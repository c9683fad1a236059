//! Content on its way into a file: digested in the same pass, compared, and synced before it may appear.

use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use tempfile::NamedTempFile;
use tokio::task::{JoinError, spawn_blocking};

use super::core::{Core, Pending, stamp, temporary_file};
use super::record::Record;
use crate::digest::{Digests, Hashers};
use crate::error::ErrorKind;
use crate::key::Key;
use crate::store::{Chunks, INTERRUPTED, Put};

/// How much is written at a time, in bytes; so much is digested at the same time, and so much read ahead.
const BATCH: usize = 1 << 20;

/// Some bytes of the content, and whether they are the last ones.
#[derive(Clone, Default)]
struct Batch {
    chunks: Vec<Bytes>,
    bytes: usize,
    is_last: bool,
}

/// Writes content to a file that no reader sees yet.
pub(super) async fn receive(core: &Arc<Core>, key: &Key, mut content: Chunks, put: &Put) -> Result<Pending, ErrorKind> {
    let algorithms = put.expected.iter().map(crate::digest::Digest::algorithm).chain(put.compute.iter().copied());
    let mut hashers = Hashers::new(algorithms);
    let mut batch = next(&mut content, put, 0).await?;
    let directory = core.temporary().to_owned();
    let mut file = spawn_blocking(move || temporary_file(&directory)).await.map_err(panicked)??;
    loop {
        if batch.is_last {
            let written = spawn_blocking(move || {
                digest(&mut hashers, &batch);
                write(&mut file, &batch)?;
                let etag = stamp(file.as_file())?;
                Ok::<_, ErrorKind>((file, etag, hashers.bytes(), hashers.finish()))
            });
            let (file, etag, size, digests) = written.await.map_err(panicked)??;
            compare(put, size, &digests)?;
            return sync(core, key, put, Pending { file, etag, size, digests, record: None }).await;
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

/// Makes content and its record durable, each of which takes as long as the disk does, while the gate is called.
async fn sync(core: &Arc<Core>, key: &Key, put: &Put, pending: Pending) -> Result<Pending, ErrorKind> {
    let record = Record::new(key, pending.digests.clone(), put.user.clone());
    let directory = core.temporary().to_owned();
    let record = spawn_blocking(move || record.write(&directory));
    let content = pending.file.as_file().try_clone()?;
    let content = spawn_blocking(move || content.sync_all());
    let gate = async {
        match &put.gate {
            Some(gate) => gate.pass(pending.size, &pending.digests).await.map_err(ErrorKind::Stopped),
            None => Ok(()),
        }
    };
    let (record, content, gate) = tokio::join!(record, content, gate);
    content.map_err(panicked)??;
    let record = record.map_err(panicked)??;
    gate?;
    Ok(Pending { record, ..pending })
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

/// Compares what came with what was announced.
fn compare(put: &Put, found: u64, digests: &Digests) -> Result<(), ErrorKind> {
    if let Some(expected) = put.size.filter(|size| *size != found) {
        return Err(ErrorKind::Size { expected, found });
    }
    match put.expected.difference(digests) {
        Some((expected, found)) => Err(ErrorKind::Digest { expected: expected.clone(), found: found.clone() }),
        None => Ok(()),
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

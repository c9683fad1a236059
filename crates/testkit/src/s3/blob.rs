//! Files that hold content, and the pieces of which the content of an object consists.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio_util::io::ReaderStream;

/// How many bytes are read from a file at once.
const PIECE_BYTES: usize = 256 * 1024;

/// A file that is removed with its last user.
#[derive(Debug)]
pub(super) struct Blob {
    path: PathBuf,
}

impl Blob {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        // The directory may have been removed before.
        let _ = fs::remove_file(&self.path);
    }
}

/// Gives files their names.
#[derive(Debug)]
pub(super) struct Blobs {
    directory: PathBuf,
}

impl Blobs {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// A file that does not exist yet, whichever servers share the directory.
    pub(super) fn name(&self) -> Arc<Blob> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Blob { path: self.directory.join(format!("{}-{number}", std::process::id())) })
    }
}

/// A file as a piece of content. Objects share them: a copy and a part that was completed cost nothing.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) blob: Arc<Blob>,
    pub(super) size: u64,
}

impl Segment {
    /// The same content in a file of its own, with one bit of one byte turned over.
    pub(super) fn rotten(&self, blobs: &Blobs, at: u64) -> io::Result<Self> {
        let blob = blobs.name();
        fs::copy(self.blob.path(), blob.path())?;
        let mut file = fs::File::options().read(true).write(true).open(blob.path())?;
        let mut byte = [0];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut byte)?;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&[byte[0] ^ 1])?;
        Ok(Self { blob, size: self.size })
    }
}

/// Reads a range of the bytes that some segments make up. Files stay readable until the stream ends, whatever becomes
/// of the object.
pub(super) fn read(
    segments: &[Segment],
    range: Range<u64>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync + use<> {
    stream::iter(cut(segments, &range)).then(open).try_flatten()
}

/// The parts of segments that lie in a range: each with where to begin and how many bytes to take.
fn cut(segments: &[Segment], range: &Range<u64>) -> Vec<(Segment, u64, u64)> {
    let mut begin = 0;
    let mut pieces = Vec::new();
    for segment in segments {
        let end = begin + segment.size;
        let (first, last) = (range.start.max(begin), range.end.min(end));
        if first < last {
            pieces.push((segment.clone(), first - begin, last - first));
        }
        begin = end;
    }
    pieces
}

async fn open(
    (segment, skip, size): (Segment, u64, u64),
) -> io::Result<impl Stream<Item = io::Result<Bytes>> + Send + Sync> {
    let mut file = tokio::fs::File::open(segment.blob.path()).await?;
    file.seek(SeekFrom::Start(skip)).await?;
    Ok(ReaderStream::with_capacity(file.take(size), PIECE_BYTES))
}

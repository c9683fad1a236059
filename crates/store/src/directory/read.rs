//! Content on its way out of a file. Its first piece is read where it is opened: each hand-over to another thread takes
//! longer than that.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::future;
use futures::stream::{self, StreamExt as _};
use tokio::task::{JoinHandle, spawn_blocking};

use super::core::Opened;
use crate::error::ErrorKind;
use crate::store::{Chunks, Content, EntityTag};

/// How much is read at a time, in bytes; so much is read ahead.
const BATCH: usize = 256 << 10;

/// Bytes that were read, and the range that they are the beginning of.
type Reading = (Arc<File>, Range<u64>, io::Result<Bytes>);

/// The content of an open file, or a range of it. Blocks while its first piece is read.
pub(super) fn content(
    opened: Opened,
    range: Option<Range<u64>>,
    if_match: Option<&EntityTag>,
) -> Result<Content, ErrorKind> {
    let Opened { file, properties } = opened;
    if if_match.is_some_and(|tag| *tag != properties.etag) {
        return Err(ErrorKind::Precondition);
    }
    let size = properties.size;
    let range = match range {
        None => 0..size,
        Some(range) if range.start > size || range.start == size && size > 0 => return Err(ErrorKind::Range { size }),
        Some(range) => range.start..range.end.min(size),
    };
    Ok(Content { properties, chunks: chunks(file, range) })
}

fn chunks(file: File, range: Range<u64>) -> Chunks {
    if range.is_empty() {
        return stream::empty().boxed();
    }
    let first = read(&file, &range);
    let rest = first.as_ref().ok().map(|bytes| range.start + bytes.len() as u64..range.end);
    let reading = rest.filter(|rest| !rest.is_empty()).map(|rest| begin(Arc::new(file), rest));
    let following = stream::unfold(reading, async |reading| {
        let (file, range, bytes) = match reading?.await {
            Ok(read) => read,
            Err(error) => return Some((Err(io::Error::other(error)), None)),
        };
        let Ok(bytes) = bytes else { return Some((bytes, None)) };
        let rest = range.start + bytes.len() as u64..range.end;
        Some((Ok(bytes), (!rest.is_empty()).then(|| begin(file, rest))))
    });
    stream::once(future::ready(first)).chain(following).boxed()
}

/// The next bytes of a range.
fn read(file: &File, range: &Range<u64>) -> io::Result<Bytes> {
    let most = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(BATCH);
    let mut bytes = BytesMut::zeroed(most);
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes.freeze())
}

/// Begins to read the next bytes of a range.
fn begin(file: Arc<File>, range: Range<u64>) -> JoinHandle<Reading> {
    spawn_blocking(move || {
        let bytes = read(&file, &range);
        (file, range, bytes)
    })
}

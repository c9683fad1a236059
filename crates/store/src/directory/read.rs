//! Content on its way out of a file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, StreamExt as _};
use tokio::task::{JoinHandle, spawn_blocking};

use super::core::Opened;
use crate::error::ErrorKind;
use crate::store::{Chunks, Content, EntityTag};

/// How much is read at a time, in bytes; so much is read ahead.
const BATCH: usize = 256 << 10;

/// The content of an open file, or a range of it.
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
    Ok(Content { properties, chunks: chunks(Arc::new(file), range) })
}

fn chunks(file: Arc<File>, range: Range<u64>) -> Chunks {
    if range.is_empty() {
        return stream::empty().boxed();
    }
    let first = read(&file, &range);
    stream::unfold(Some((file, range, first)), async |state| {
        let (file, range, reading) = state?;
        let bytes = reading.await.map_err(io::Error::other).and_then(|read| read);
        let Ok(bytes) = bytes else { return Some((bytes, None)) };
        let rest = range.start + bytes.len() as u64..range.end;
        let following = (!rest.is_empty()).then(|| {
            let reading = read(&file, &rest);
            (file, rest, reading)
        });
        Some((Ok(bytes), following))
    })
    .boxed()
}

/// Begins to read the next bytes of a range.
fn read(file: &Arc<File>, range: &Range<u64>) -> JoinHandle<io::Result<Bytes>> {
    let file = Arc::clone(file);
    let Range { start, end } = *range;
    spawn_blocking(move || {
        let most = usize::try_from(end - start).unwrap_or(usize::MAX).min(BATCH);
        let mut bytes = BytesMut::zeroed(most);
        file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.freeze())
    })
}

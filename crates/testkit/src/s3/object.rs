//! Objects: content with what is known and said of it.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::Stream;
use s3s::dto::{
    Checksum, ChecksumMode, CopyObjectInput, CreateMultipartUploadInput, Metadata, PutObjectInput, Range as ByteRange,
    StorageClass,
};
use s3s::{S3Result, s3_error};

use super::blob::{self, Blobs, Segment};
use super::intake::Received;

/// What a user says of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Headers {
    pub(super) cache_control: Option<String>,
    pub(super) content_disposition: Option<String>,
    pub(super) content_encoding: Option<String>,
    pub(super) content_language: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) metadata: Option<Metadata>,
    pub(super) storage_class: Option<StorageClass>,
}

macro_rules! headers_from {
    ($($input:ty),*) => {$(
        impl From<&$input> for Headers {
            fn from(input: &$input) -> Self {
                Self {
                    cache_control: input.cache_control.clone(),
                    content_disposition: input.content_disposition.clone(),
                    content_encoding: input.content_encoding.as_deref().and_then(without_chunks),
                    content_language: input.content_language.clone(),
                    content_type: input.content_type.clone(),
                    metadata: input.metadata.clone(),
                    storage_class: input.storage_class.clone(),
                }
            }
        }
    )*};
}
headers_from!(PutObjectInput, CreateMultipartUploadInput, CopyObjectInput);

/// `aws-chunked` is how the body came, and nothing that is kept.
fn without_chunks(encoding: &str) -> Option<String> {
    let kept: Vec<_> = encoding.split(',').map(str::trim).filter(|coding| *coding != "aws-chunked").collect();
    (!kept.is_empty()).then(|| kept.join(","))
}

/// An object. It never changes: another one takes its place.
#[derive(Clone, Debug)]
pub(super) struct Object {
    /// Size in bytes.
    pub(super) size: u64,
    /// Without quotes.
    pub(super) etag: String,
    pub(super) segments: Vec<Segment>,
    pub(super) checksum: Checksum,
    /// Of an object that was put together from parts: each with its size in bytes.
    pub(super) parts: Vec<(u64, Checksum)>,
    pub(super) headers: Headers,
}

impl Object {
    /// An object that came in one body.
    pub(super) fn new(received: Received, headers: Headers) -> Self {
        Self {
            size: received.size(),
            etag: received.etag(),
            checksum: received.checksum,
            segments: received.segment.into_iter().collect(),
            parts: Vec::new(),
            headers,
        }
    }

    pub(super) fn read(&self, range: Range<u64>) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync + use<> {
        blob::read(&self.segments, range)
    }

    /// The class, where a listing shows it.
    pub(super) fn storage_class(&self) -> &str {
        self.headers.storage_class.as_ref().map_or(StorageClass::STANDARD, StorageClass::as_str)
    }

    /// The checksum, where it is requested with the whole content.
    pub(super) fn shown_checksum(&self, mode: Option<&ChecksumMode>, selection: &Selection) -> Checksum {
        let is_shown = mode.is_some_and(|mode| mode.as_str().eq_ignore_ascii_case(ChecksumMode::ENABLED));
        if is_shown && !selection.is_partial { self.checksum.clone() } else { Checksum::default() }
    }

    /// The same, with one bit in the middle of the content turned over, and nothing else changed.
    pub(super) fn rotten(&self, blobs: &Blobs) -> io::Result<Arc<Self>> {
        let mut rotten = self.clone();
        let mut at = self.size / 2;
        let segment = rotten.segments.iter_mut().find(|segment| {
            let is_there = at < segment.size;
            at -= if is_there { 0 } else { segment.size };
            is_there
        });
        let segment = segment.ok_or_else(|| io::Error::other("empty content cannot rot"))?;
        *segment = segment.rotten(blobs, at)?;
        Ok(Arc::new(rotten))
    }
}

/// Which bytes of an object are requested.
pub(super) struct Selection {
    pub(super) range: Range<u64>,
    pub(super) is_partial: bool,
    is_part: bool,
    size: u64,
}

impl Selection {
    pub(super) fn of(object: &Object, range: Option<&ByteRange>, part: Option<i32>) -> S3Result<Self> {
        let size = object.size;
        let range = match (range, part) {
            (Some(_), Some(_)) => return Err(s3_error!(InvalidRequest, "range and part number at once")),
            (None, None) => return Ok(Self { range: 0..size, is_partial: false, is_part: false, size }),
            (Some(range), None) => range.check(size)?,
            (None, Some(1)) if object.parts.is_empty() => 0..size,
            (None, Some(number)) => {
                let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                let at = at.filter(|at| *at < object.parts.len()).ok_or_else(|| s3_error!(InvalidRange))?;
                let begin = object.parts[..at].iter().map(|(size, _)| size).sum();
                begin..begin + object.parts[at].0
            }
        };
        Ok(Self { range, is_partial: true, is_part: part.is_some(), size })
    }

    /// How many parts the object has, where one of them is requested.
    pub(super) fn parts_count(&self, object: &Object) -> Option<i32> {
        self.is_part.then(|| i32::try_from(object.parts.len()).ok()).flatten().filter(|count| *count > 0)
    }

    /// The size of the answer in bytes.
    pub(super) fn length(&self) -> i64 {
        (self.range.end - self.range.start).cast_signed()
    }

    /// `bytes FIRST-LAST/SIZE`, of a part of the content.
    pub(super) fn content_range(&self) -> Option<String> {
        let Range { start, end } = self.range;
        (self.is_partial && start < end).then(|| format!("bytes {start}-{}/{}", end - 1, self.size))
    }
}

//! Content on its way into the store, and what stands before it appears.

use bytes::{Buf as _, Bytes, BytesMut};
use futures::StreamExt as _;

use crate::digest::{Digest, Digests, Hashers};
use crate::error::ErrorKind;
use crate::s3::head::quoted;
use crate::store::{Chunks, Condition, INTERRUPTED, Put, UserProperties};

/// The smallest part, and the most content that is sent whole, in bytes.
pub(super) const UPLOADED_PART: usize = 8 * 1024 * 1024;

/// Content on its way, hashed as it comes.
pub(super) struct Source {
    chunks: Chunks,
    /// What came and was not taken yet.
    pending: Bytes,
    hashers: Hashers,
    expected: Option<u64>,
    has_ended: bool,
}

impl Source {
    pub(super) fn new(chunks: Chunks, hashers: Hashers, expected: Option<u64>) -> Self {
        Self { chunks, pending: Bytes::new(), hashers, expected, has_ended: false }
    }

    /// The next bytes: as many as requested, or all that are left.
    pub(super) async fn fill(&mut self, most: usize) -> Result<Bytes, ErrorKind> {
        let mut part = BytesMut::new();
        while part.len() < most && self.has_more().await? {
            let taken = self.pending.len().min(most - part.len());
            if part.is_empty() {
                let left =
                    self.expected.map_or(UPLOADED_PART as u64 / 8, |size| size.saturating_sub(self.hashers.bytes()));
                part.reserve(most.min(usize::try_from(left).unwrap_or(most)).max(taken));
            }
            self.hashers.update(&self.pending[..taken]);
            part.extend_from_slice(&self.pending[..taken]);
            self.pending.advance(taken);
        }
        Ok(part.freeze())
    }

    /// Whether there are bytes that were not taken.
    pub(super) async fn has_more(&mut self) -> Result<bool, ErrorKind> {
        while self.pending.is_empty() && !self.has_ended {
            match self.chunks.next().await {
                Some(Ok(chunk)) => self.pending = chunk,
                Some(Err(error)) => return Err(ErrorKind::Source(error)),
                None => self.has_ended = true,
            }
        }
        let found = self.hashers.bytes() + self.pending.len() as u64;
        match self.expected {
            Some(expected) if found > expected => Err(ErrorKind::Size { expected, found }),
            _ => Ok(!self.pending.is_empty()),
        }
    }

    /// The size and digests of everything, compared with what is expected.
    pub(super) fn finish(self, put: &Put) -> Result<(u64, Digests), ErrorKind> {
        let size = self.hashers.bytes();
        if let Some(expected) = self.expected.filter(|expected| *expected != size) {
            return Err(ErrorKind::Size { expected, found: size });
        }
        let digests = self.hashers.finish();
        match put.expected.difference(&digests) {
            Some((expected, found)) => Err(ErrorKind::Digest { expected: expected.clone(), found: found.clone() }),
            None => Ok((size, digests)),
        }
    }
}

/// Passes what stands before the instant at which content appears.
pub(super) async fn pass(put: &Put, size: u64, digests: &Digests) -> Result<(), ErrorKind> {
    if put.abort.is_cancelled() {
        return Err(aborted());
    }
    if let Some(guard) = &put.guard {
        guard.pass(size, &requested(put, digests)).await.map_err(ErrorKind::Stopped)?;
    }
    if put.abort.is_cancelled() { Err(aborted()) } else { Ok(()) }
}

pub(super) fn aborted() -> ErrorKind {
    ErrorKind::Stopped(INTERRUPTED.to_owned())
}

/// The digests that were expected or requested.
pub(super) fn requested(put: &Put, digests: &Digests) -> Digests {
    let is_requested =
        |digest: &&Digest| put.expected.get(digest.algorithm()).is_some() || put.compute.contains(&digest.algorithm());
    digests.iter().filter(is_requested).cloned().collect()
}

/// The values of `If-None-Match` and `If-Match`.
pub(super) fn conditions(condition: &Condition) -> (Option<String>, Option<String>) {
    match condition {
        Condition::None => (None, None),
        Condition::IfAbsent => (Some("*".to_owned()), None),
        Condition::IfMatch(tag) => (None, Some(quoted(tag))),
    }
}

/// Whether what is there is what was to be written, by what a user says of it.
pub(super) fn has_user(found: &UserProperties, sent: &UserProperties) -> bool {
    let has = |found: &Option<String>, sent: &Option<String>| sent.is_none() || found == sent;
    found.metadata == sent.metadata
        && has(&found.content_type, &sent.content_type)
        && has(&found.content_encoding, &sent.content_encoding)
}

#[cfg(test)]
mod tests {
    use std::io;

    use futures::stream;

    use super::*;
    use crate::digest::Algorithm;

    fn source(chunks: &[&'static [u8]], expected: Option<u64>) -> Source {
        let chunks: Vec<io::Result<Bytes>> = chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk))).collect();
        Source::new(stream::iter(chunks).boxed(), Hashers::new([Algorithm::Crc32]), expected)
    }

    #[tokio::test]
    async fn content_is_cut_into_parts_however_it_comes() {
        let mut source = source(&[b"", b"12", b"", b"3456789", b""], Some(9));
        let mut parts = Vec::new();
        while source.has_more().await.unwrap() {
            parts.push(source.fill(4).await.unwrap());
        }
        assert_eq!(parts, [&b"1234"[..], b"5678", b"9"]);
        let (size, digests) = source.finish(&Put::default()).unwrap();
        assert_eq!((size, digests.get(Algorithm::Crc32).unwrap().hex().as_str()), (9, "cbf43926"));
    }

    #[tokio::test]
    async fn content_of_another_size_or_digest_is_refused() {
        let too_long = source(&[b"12", b"34"], Some(3)).fill(9).await;
        assert!(matches!(too_long, Err(ErrorKind::Size { expected: 3, found: 4 })));
        let mut too_short = source(&[b"12"], Some(3));
        too_short.fill(9).await.unwrap();
        assert!(matches!(too_short.finish(&Put::default()), Err(ErrorKind::Size { expected: 3, found: 2 })));
        let expected = Digest::from_hex(Algorithm::Crc32, "00000000").into_iter().collect();
        let mut other = source(&[b"12"], None);
        other.fill(9).await.unwrap();
        assert!(matches!(other.finish(&Put { expected, ..Put::default() }), Err(ErrorKind::Digest { .. })));
    }
}

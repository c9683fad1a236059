//! Uploads in parts: several on their way, little in memory, and nothing that completes once it was given up.

use std::sync::Arc;

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, ChecksumType, CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

use crate::digest::{Algorithm, Digests, Hashers};
use crate::error::{ErrorKind, Operation};
use crate::s3::Inner;
use crate::s3::failure::Failure;
use crate::s3::found::Found;
use crate::s3::head::{Kept, md5_of_tag, tag, text};
use crate::s3::location::Object;
use crate::s3::source::{Source, UPLOADED_PART, aborted, conditions, has_user, pass, requested};
use crate::store::{Condition, EntityTag, Properties, Put, UserProperties, Written};

/// How many parts of one upload are on their way at once.
const AT_ONCE: usize = 4;

/// How many parts S3 takes.
const MOST_PARTS: i32 = 10_000;

/// One part, from 1.
pub(super) struct Part {
    pub(super) number: i32,
    pub(super) bytes: Bytes,
    pub(super) memory: OwnedSemaphorePermit,
}

/// The size of a part, in bytes. Where the size of the whole is not known, parts grow, so that 10,000 of them have 8
/// TB.
pub(super) fn part_bytes(size: Option<u64>, number: i32) -> usize {
    const MIB: u64 = 1024 * 1024;
    match size {
        Some(size) => {
            let needed = size.div_ceil(9000).div_ceil(MIB) * MIB;
            UPLOADED_PART.max(usize::try_from(needed).unwrap_or(usize::MAX))
        }
        None => UPLOADED_PART << ((number - 1).clamp(0, MOST_PARTS - 1) / 1000),
    }
}

/// An upload that is under way.
pub(super) struct Upload<'a> {
    inner: &'a Inner,
    operation: Operation,
    at: &'a Object,
    pub(super) id: String,
    checksum: Option<Algorithm>,
    pub(super) parts: Vec<CompletedPart>,
}

/// How an upload becomes an item.
pub(super) struct Completion<'a> {
    pub(super) size: u64,
    pub(super) digests: &'a Digests,
    pub(super) condition: &'a Condition,
    pub(super) user: &'a UserProperties,
}

pub(super) async fn upload(
    inner: &Arc<Inner>,
    at: &Object,
    source: Source,
    first: Part,
    put: &Put,
    found: &Found,
) -> Result<Written, ErrorKind> {
    let begin = Upload::begin(inner, Operation::Put, at, &put.user, None, found.kept_of_parts);
    let mut upload = begin.await?;
    let sent = upload.send_all(inner, source, first, put).await;
    let (size, digests) = match sent {
        Ok(sent) => sent,
        Err(kind) => {
            upload.give_up().await;
            return Err(kind);
        }
    };
    let completion = Completion { size, digests: &digests, condition: &put.condition, user: &put.user };
    let etag = upload.complete(&completion).await?;
    Ok(Written { size, etag, digests: requested(put, &digests) })
}

impl<'a> Upload<'a> {
    pub(super) async fn begin(
        inner: &'a Inner,
        operation: Operation,
        at: &'a Object,
        user: &UserProperties,
        kept: Option<&Kept>,
        checksum: Option<Algorithm>,
    ) -> Result<Self, ErrorKind> {
        let algorithm = checksum.and_then(|algorithm| match algorithm {
            Algorithm::Crc64Nvme => Some(ChecksumAlgorithm::Crc64Nvme),
            Algorithm::Crc32 => Some(ChecksumAlgorithm::Crc32),
            _ => None,
        });
        let send = || {
            let request = inner.client.create_multipart_upload().bucket(&at.bucket).key(&at.key);
            let request = request.set_content_type(user.content_type.clone());
            let request = request.set_content_encoding(user.content_encoding.clone());
            let metadata = user.metadata.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            let request = request.set_metadata(Some(metadata));
            let kept = kept.cloned().unwrap_or_default();
            let request = request.set_storage_class(inner.storage_class.clone().or(kept.storage_class));
            let request = request.set_cache_control(kept.cache_control);
            let request = request.set_content_disposition(kept.content_disposition);
            let request = request.set_content_language(kept.content_language);
            let kind = algorithm.is_some().then_some(ChecksumType::FullObject);
            request.set_checksum_algorithm(algorithm.clone()).set_checksum_type(kind).send()
        };
        let output = inner.call(inner.quick(operation), send).await;
        let output = output.map_err(|failure| inner.missing_bucket(failure, false))?;
        let id = output.upload_id().ok_or_else(|| ErrorKind::Answer("the upload has no identifier".to_owned()))?;
        Ok(Self { inner, operation, at, id: id.to_owned(), checksum, parts: Vec::new() })
    }

    /// Sends everything, up to the instant at which it could appear.
    async fn send_all(
        &mut self,
        inner: &Arc<Inner>,
        mut source: Source,
        first: Part,
        put: &Put,
    ) -> Result<(u64, Digests), ErrorKind> {
        if let Some(guard) = &put.guard {
            guard.begun(&self.id).await.map_err(ErrorKind::Stopped)?;
        }
        let sending = self.send_parts(inner, &mut source, first, put.size);
        put.abort.run_until_cancelled(sending).await.ok_or_else(aborted)??;
        let (size, digests) = source.finish(put)?;
        pass(put, size, &digests).await?;
        Ok((size, digests))
    }

    async fn send_parts(
        &mut self,
        inner: &Arc<Inner>,
        source: &mut Source,
        first: Part,
        size: Option<u64>,
    ) -> Result<(), ErrorKind> {
        // Dropped, it ends those that are on their way.
        let mut sending = JoinSet::new();
        let mut next = Some(first);
        let mut number = 1;
        loop {
            if let Some(part) = next.take() {
                let (inner, at, id, checksum) = (Arc::clone(inner), self.at.clone(), self.id.clone(), self.checksum);
                sending.spawn(async move { send_part(&inner, &at, &id, checksum, part).await });
            }
            let has_more = source.has_more().await?;
            while sending.len() >= if has_more { AT_ONCE } else { 1 } {
                let Some(sent) = sending.join_next().await else { break };
                self.parts.push(sent.map_err(|error| ErrorKind::Unavailable(error.to_string()))??);
            }
            if !has_more {
                break;
            }
            number += 1;
            if number > MOST_PARTS {
                return Err(ErrorKind::Unsupported(format!("S3 takes {MOST_PARTS} parts, and this content has more")));
            }
            let most = part_bytes(size, number);
            let memory = self.inner.memory(most as u64).await;
            next = Some(Part { number, bytes: source.fill(most).await?, memory });
        }
        self.parts.sort_by_key(CompletedPart::part_number);
        Ok(())
    }

    /// Sends one part.
    pub(super) async fn send(&self, part: Part) -> Result<CompletedPart, ErrorKind> {
        send_part(self.inner, self.at, &self.id, self.checksum, part).await
    }

    /// Makes the upload an item, and finds out whether it became one. One that did not is given up.
    pub(super) async fn complete(&self, completion: &Completion<'_>) -> Result<EntityTag, ErrorKind> {
        let failure = match self.send_completion(completion).await {
            Ok(Some(etag)) => return Ok(tag(&etag)),
            Ok(None) => return Err(ErrorKind::Unknown("the answer has no entity tag".to_owned())),
            Err(failure) => failure,
        };
        let is_gone = failure.code == "NoSuchUpload";
        if !failure.may_be_done && !is_gone {
            self.give_up().await;
            let is_absent = failure.is_not_found() && matches!(completion.condition, Condition::IfMatch(_));
            return Err(if is_absent { ErrorKind::Precondition } else { self.inner.missing_bucket(failure, true) });
        }
        if let Some(etag) = self.completed(completion).await {
            return Ok(etag);
        }
        // Once it is aborted, a completion that is still on its way comes too late.
        let aborted = self.inner.abort(self.operation, self.at, &self.id).await;
        if let Some(etag) = self.completed(completion).await {
            return Ok(etag);
        }
        match aborted {
            Ok(true) => Err(Failure { may_be_done: false, ..failure }.kind(true)),
            Ok(false) | Err(_) => Err(ErrorKind::Unknown(failure.text)),
        }
    }

    pub(super) async fn send_completion(&self, completion: &Completion<'_>) -> Result<Option<String>, Failure> {
        let (if_none_match, if_match) = conditions(completion.condition);
        let checksum = self.checksum.and_then(|algorithm| completion.digests.get(algorithm)).map(text);
        let send = || {
            let parts = CompletedMultipartUpload::builder().set_parts(Some(self.parts.clone())).build();
            let request = self.inner.client.complete_multipart_upload().bucket(&self.at.bucket).key(&self.at.key);
            let request = request.upload_id(&self.id).multipart_upload(parts);
            let request = request.set_if_none_match(if_none_match.clone()).set_if_match(if_match.clone());
            match checksum.clone() {
                Some((Algorithm::Crc64Nvme, text)) => {
                    request.checksum_crc64_nvme(text).checksum_type(ChecksumType::FullObject)
                }
                Some((Algorithm::Crc32, text)) => request.checksum_crc32(text).checksum_type(ChecksumType::FullObject),
                _ => request,
            }
            .send()
        };
        let output = self.inner.call(self.inner.working(self.operation), send).await?;
        Ok(output.e_tag().map(str::to_owned))
    }

    /// The entity tag of what is there, if that is this upload.
    async fn completed(&self, completion: &Completion<'_>) -> Option<EntityTag> {
        let found = self.inner.head_object(self.operation, self.at).await.ok()??.properties;
        (self.is_of(&found, completion) && has_user(&found.user, completion.user)).then_some(found.etag)
    }

    fn is_of(&self, found: &Properties, completion: &Completion<'_>) -> bool {
        let tag = || self.tag().map(|tag| tag == found.etag);
        found.size == completion.size && tag().or_else(|| found.checksums.agree(completion.digests)) == Some(true)
    }

    /// The entity tag that S3 gives to an item in parts: the MD5 of the MD5s of its parts, and how many there are.
    fn tag(&self) -> Option<EntityTag> {
        let mut hashers = Hashers::new([Algorithm::Md5]);
        for part in &self.parts {
            hashers.update(md5_of_tag(part.e_tag()?)?.as_bytes());
        }
        let digests = hashers.finish();
        Some(EntityTag(format!("{}-{}", digests.get(Algorithm::Md5)?.hex(), self.parts.len())))
    }

    /// Ends it. Where that fails, it never completes nevertheless, and takes room until a sweep.
    pub(super) async fn give_up(&self) {
        if let Err(error) = self.inner.abort(self.operation, self.at, &self.id).await {
            tracing::warn!(store = %self.inner.name, key = %self.at.key.escape_debug(), upload = self.id, %error, "could not abort an upload; a sweep will");
        }
    }
}

async fn send_part(
    inner: &Inner,
    at: &Object,
    upload: &str,
    checksum: Option<Algorithm>,
    part: Part,
) -> Result<CompletedPart, ErrorKind> {
    let Part { number, bytes, memory } = part;
    let mut hashers = Hashers::new(checksum);
    hashers.update(&bytes);
    let digests = hashers.finish();
    let checksum = checksum.and_then(|algorithm| digests.get(algorithm)).map(text);
    let send = || {
        let request = inner.client.upload_part().bucket(&at.bucket).key(&at.key).upload_id(upload).part_number(number);
        let request = match &checksum {
            Some((Algorithm::Crc64Nvme, text)) => request.checksum_crc64_nvme(text),
            Some((Algorithm::Crc32, text)) => request.checksum_crc32(text),
            _ => request,
        };
        request.body(ByteStream::from(bytes.clone())).send()
    };
    let size = bytes.len() as u64;
    let output = inner.call(inner.sending(Operation::Put, size), send).await.map_err(|failure| failure.kind(false))?;
    inner.metrics.written(size);
    drop(memory);
    let etag = output.e_tag().ok_or_else(|| ErrorKind::Answer("a part has no entity tag".to_owned()))?;
    let part = CompletedPart::builder().part_number(number).e_tag(etag);
    Ok(match checksum {
        Some((Algorithm::Crc64Nvme, text)) => part.checksum_crc64_nvme(text),
        Some((Algorithm::Crc32, text)) => part.checksum_crc32(text),
        _ => part,
    }
    .build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_few_enough_for_any_size_and_small_for_most() {
        const MIB: usize = 1024 * 1024;
        assert_eq!(part_bytes(Some(0), 1), 8 * MIB);
        assert_eq!(part_bytes(Some(70 << 30), 1), 8 * MIB);
        assert_eq!(part_bytes(Some(100 << 30), 1), 12 * MIB);
        for size in [1_u64 << 30, 100 << 30, 5 << 40] {
            assert!(size.div_ceil(part_bytes(Some(size), 1) as u64) <= 9000);
        }
        assert_eq!([1, 1000, 1001, 10_000].map(|number| part_bytes(None, number) / MIB), [8, 8, 16, 4096]);
        let all: u64 = (1..=MOST_PARTS).map(|number| part_bytes(None, number) as u64).sum();
        assert!(all > 8_000_000_000_000, "{all}");
    }
}

//! Writing: content that fits into one part is sent whole, once its digests are known to be right; the rest in parts.

use std::sync::Arc;

use aws_sdk_s3::operation::put_object::PutObjectOutput;
use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use crate::digest::{Algorithm, Digest, Digests, Hashers};
use crate::error::{ErrorKind, Operation};
use crate::s3::failure::Failure;
use crate::s3::head::{Kept, check_user, tag, text};
use crate::s3::location::Object;
use crate::s3::source::{Source, aborted, conditions, has_user, pass, requested};
use crate::s3::{Inner, MEMORY_KIB, upload};
use crate::store::{Chunks, Condition, EntityTag, Item, Properties, Put, UserProperties, Written};

pub(super) async fn put(inner: &Arc<Inner>, item: &Item, chunks: Chunks, put: Put) -> Result<Written, ErrorKind> {
    check_user(&put.user)?;
    let at = inner.object_to_change(&item.space, &item.key).await?;
    inner.require_space(Operation::Put, &item.space).await?;
    let found = inner.found().await?;
    let first_part = upload::part_bytes(put.size, 1);
    let is_small = put.size.is_some_and(|size| size <= first_part as u64);
    let is_large = put.size.is_some_and(|size| size > first_part as u64);
    // What is neither turns out to be one of them.
    if is_small && !found.holds_for_put(&put.condition) || is_large && !found.holds_for_parts(&put.condition) {
        return Err(ignores_conditions());
    }
    let mut algorithms: Vec<Algorithm> = put.expected.iter().map(Digest::algorithm).collect();
    algorithms.extend(&put.compute);
    // Content that is sent whole may have a stronger checksum of those that are computed anyhow.
    let whole = [Algorithm::Sha256].into_iter().find(|one| algorithms.contains(one) && found.kept_whole.contains(one));
    let whole = whole.or_else(|| found.kept_whole.iter().copied().find(|one| *one != Algorithm::Sha256));
    algorithms.extend(if is_small { whole } else { None });
    algorithms.extend(if is_small { None } else { found.kept_of_parts });
    let hashers = Hashers::new(algorithms);
    let mut source = Source::new(chunks, hashers, put.size);

    let held = if is_small { put.size.unwrap_or_default() } else { first_part as u64 };
    let reading = async {
        let memory = inner.memory(held).await;
        let bytes = source.fill(first_part).await?;
        Ok::<_, ErrorKind>((bytes, memory, source.has_more().await?))
    };
    let (bytes, memory, has_more) = put.abort.run_until_cancelled(reading).await.ok_or_else(aborted)??;
    let holds = if has_more { found.holds_for_parts(&put.condition) } else { found.holds_for_put(&put.condition) };
    if !holds {
        return Err(ignores_conditions());
    }
    if has_more {
        let first = upload::Part { number: 1, bytes, memory };
        return upload::upload(inner, &at, source, first, &put, found).await;
    }
    let (size, digests) = source.finish(&put)?;
    pass(&put, size, &digests).await?;
    // Content that turns out to be small has the checksum of content in parts.
    let computed = whole.into_iter().chain(found.kept_of_parts).find(|one| digests.get(*one).is_some());
    let whole = Whole {
        operation: Operation::Put,
        at: &at,
        bytes: &bytes,
        digests: &digests,
        checksum: computed,
        condition: &put.condition,
        user: &put.user,
        kept: None,
    };
    let etag = inner.put_whole(&whole).await?;
    drop(memory);
    Ok(Written { size, etag, digests: requested(&put, &digests) })
}

/// Content that is sent with one request.
pub(super) struct Whole<'a> {
    pub(super) operation: Operation,
    pub(super) at: &'a Object,
    pub(super) bytes: &'a Bytes,
    pub(super) digests: &'a Digests,
    /// Which of the digests is sent for S3 to keep.
    pub(super) checksum: Option<Algorithm>,
    pub(super) condition: &'a Condition,
    pub(super) user: &'a UserProperties,
    pub(super) kept: Option<&'a Kept>,
}

impl Whole<'_> {
    /// Whether what is there is this; `None` where that cannot be told without reading it.
    fn is(&self, found: &Properties) -> Option<bool> {
        let same = || {
            let mut hashers = Hashers::new([Algorithm::Md5]);
            hashers.update(self.bytes);
            found.checksums.agree(&hashers.finish())
        };
        if found.size != self.bytes.len() as u64 {
            return Some(false);
        }
        match found.checksums.agree(self.digests).or_else(same) {
            Some(true) if !has_user(&found.user, self.user) => None,
            known => known,
        }
    }
}

fn ignores_conditions() -> ErrorKind {
    let why = "a write on a condition: this service ignores If-None-Match or If-Match";
    ErrorKind::Unsupported(why.to_owned())
}

impl Inner {
    /// Waits until this much content may be held in memory.
    pub(super) async fn memory(&self, bytes: u64) -> OwnedSemaphorePermit {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(MEMORY_KIB).clamp(1, MEMORY_KIB);
        Arc::clone(&self.memory).acquire_many_owned(kib).await.expect("the semaphore is never closed")
    }

    /// Sends content whole, and finds out what became of it.
    pub(super) async fn put_whole(&self, whole: &Whole<'_>) -> Result<EntityTag, ErrorKind> {
        let failure = match self.put_object(whole).await {
            Ok(output) => {
                let etag = output.e_tag().map(tag);
                return etag.ok_or_else(|| ErrorKind::Unknown("the answer has no entity tag".to_owned()));
            }
            Err(failure) => failure,
        };
        if failure.may_be_done
            && let Ok(Some(headed)) = self.head_object(whole.operation, whole.at).await
        {
            match whole.is(&headed.properties) {
                Some(true) => return Ok(headed.properties.etag),
                // Another one's came first.
                Some(false) if failure.is_precondition() => return Err(ErrorKind::Precondition),
                Some(false) | None => {}
            }
        }
        // S3 answers so to If-Match where there is nothing.
        if failure.is_not_found() && matches!(whole.condition, Condition::IfMatch(_)) && !failure.may_be_done {
            return Err(ErrorKind::Precondition);
        }
        Err(self.missing_bucket(failure, true))
    }

    pub(super) async fn put_object(&self, whole: &Whole<'_>) -> Result<PutObjectOutput, Failure> {
        let Whole { operation, at, bytes, user, .. } = whole;
        let (if_none_match, if_match) = conditions(whole.condition);
        let checksum = whole.checksum.and_then(|algorithm| whole.digests.get(algorithm)).map(text);
        let send = || {
            let request = self.client.put_object().bucket(&at.bucket).key(&at.key);
            let request = request.set_if_none_match(if_none_match.clone()).set_if_match(if_match.clone());
            let request = request.set_content_type(user.content_type.clone());
            let request = request.set_content_encoding(user.content_encoding.clone());
            let metadata = user.metadata.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            let request = request.set_metadata(Some(metadata));
            let kept = whole.kept.cloned().unwrap_or_default();
            let request = request.set_storage_class(self.storage_class.clone().or(kept.storage_class));
            let request = request.set_cache_control(kept.cache_control);
            let request = request.set_content_disposition(kept.content_disposition);
            let request = request.set_content_language(kept.content_language);
            let request = match checksum.clone() {
                Some((Algorithm::Sha256, text)) => request.checksum_sha256(text),
                Some((Algorithm::Crc64Nvme, text)) => request.checksum_crc64_nvme(text),
                Some((Algorithm::Crc32, text)) => request.checksum_crc32(text),
                _ => request,
            };
            request.body(ByteStream::from(Bytes::clone(bytes))).send()
        };
        let answer = self.call(self.sending(*operation, bytes.len() as u64), send).await;
        if answer.is_ok() {
            self.metrics.written(bytes.len() as u64);
        }
        answer
    }
}

//! Copies within the store, and an item onto itself with other properties.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::types::{CompletedPart, MetadataDirective};
use bytes::BytesMut;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::timeout;

use crate::digest::{Algorithm, Digest, Digests, Hashers};
use crate::error::{ErrorKind, Operation};
use crate::s3::head::{Headed, check_user, checksum, md5_of_tag, quoted, tag};
use crate::s3::location::Object;
use crate::s3::put::Whole;
use crate::s3::source::{self, aborted, conditions, has_user};
use crate::s3::upload::{Completion, Upload};
use crate::s3::{Inner, get};
use crate::store::{Condition, CopyControl, EntityTag, INTERRUPTED, Item, UserProperties, Written};

/// How large the parts of a larger copy are, in bytes, unless there would be too many, or the service copies less at
/// once.
const COPIED_PART: u64 = 512 << 20;

/// How many of them are copied at once.
const AT_ONCE: usize = 4;

/// How long the answer to a copy is still awaited that its caller has ended: a service goes on with it alone.
const LAST_ANSWER: Duration = Duration::from_secs(2);

/// What stands for itself in a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A copy that is to be made.
struct Copying<'a> {
    operation: Operation,
    item: &'a Item,
    from: &'a Object,
    source: &'a Headed,
    to: &'a Object,
    condition: &'a Condition,
    /// What is said of the copy, where that is not what is said of the source.
    user: Option<&'a UserProperties>,
    control: &'a CopyControl,
}

impl Copying<'_> {
    fn source(&self) -> String {
        let Object { bucket, key } = self.from;
        format!("{bucket}/{}", encode(key))
    }

    fn user(&self) -> &UserProperties {
        self.user.unwrap_or(&self.source.properties.user)
    }
}

/// A key as the path of a URL has it.
pub(super) fn encode(key: &str) -> impl fmt::Display {
    utf8_percent_encode(key, PLAIN)
}

impl Inner {
    pub(super) async fn copy(
        self: &Arc<Self>,
        (from, if_match): (&Item, Option<&EntityTag>),
        to: &Item,
        condition: &Condition,
        control: &CopyControl,
    ) -> Result<Written, ErrorKind> {
        let operation = Operation::Copy;
        let at = self.object_to_read(from)?;
        let preparing = async {
            let target = self.object_to_change(&to.space, &to.key).await?;
            let source = self.source(operation, from, &at, if_match).await?;
            self.require_space(operation, &to.space).await?;
            Ok::<_, ErrorKind>((source, target))
        };
        let (source, target) = &control.abort.run_until_cancelled(preparing).await.ok_or_else(aborted)??;
        let (from, to, item, user) = (&at, target, from, None);
        self.copy_as_it_holds(&Copying { operation, item, from, source, to, condition, user, control }).await
    }

    pub(super) async fn set_properties(
        self: &Arc<Self>,
        item: &Item,
        user: &UserProperties,
        if_match: Option<&EntityTag>,
    ) -> Result<Written, ErrorKind> {
        check_user(user)?;
        let operation = Operation::SetProperties;
        let at = self.object_to_change(&item.space, &item.key).await?;
        let source = self.source(operation, item, &at, if_match).await?;
        // Content that another one writes meanwhile must not be overwritten with what was there before.
        let condition = Condition::IfMatch(source.properties.etag.clone());
        let (source, condition, user, control) = (&source, &condition, Some(user), &CopyControl::default());
        self.copy_as_it_holds(&Copying { operation, item, from: &at, source, to: &at, condition, user, control }).await
    }

    async fn source(
        &self,
        operation: Operation,
        item: &Item,
        at: &Object,
        if_match: Option<&EntityTag>,
    ) -> Result<Headed, ErrorKind> {
        let Some(headed) = self.head_object(operation, at).await? else {
            self.require_space(operation, &item.space).await?;
            return Err(ErrorKind::NotFound);
        };
        let is_same = if_match.is_none_or(|tag| *tag == headed.properties.etag);
        if is_same { Ok(headed) } else { Err(ErrorKind::Precondition) }
    }

    /// Copies by the requests whose conditions the service holds.
    async fn copy_as_it_holds(self: &Arc<Self>, copying: &Copying<'_>) -> Result<Written, ErrorKind> {
        let found = self.found().await?;
        let by_copy = match copying.condition {
            Condition::None => true,
            Condition::IfAbsent => found.copy_if_absent,
            Condition::IfMatch(_) => found.copy_if_match,
        };
        let by_parts = found.holds_for_parts(copying.condition);
        if by_copy && copying.source.properties.size <= self.largest_copy {
            return self.copy_whole(copying).await;
        }
        if by_parts && copying.source.properties.size > 0 {
            return self.copy_in_parts(copying, found.kept_of_parts).await;
        }
        // Neither copies parts of content without a byte, and some services hold conditions of writes alone.
        if copying.source.properties.size <= source::UPLOADED_PART as u64 && found.holds_for_put(copying.condition) {
            return self.copy_through_memory(copying).await;
        }
        let why = "a copy on a condition: this service ignores If-None-Match or If-Match there";
        Err(ErrorKind::Unsupported(why.to_owned()))
    }

    async fn copy_whole(&self, copying: &Copying<'_>) -> Result<Written, ErrorKind> {
        let Copying { operation, source, to, condition, .. } = copying;
        let (if_none_match, if_match) = conditions(condition);
        let etag = &source.properties.etag;
        let send = || {
            let request = self.client.copy_object().bucket(&to.bucket).key(&to.key).copy_source(copying.source());
            let request = request.copy_source_if_match(quoted(etag));
            let request = request.set_if_none_match(if_none_match.clone()).set_if_match(if_match.clone());
            let class = self.storage_class.clone().or(source.kept.storage_class.clone());
            let request = request.set_storage_class(class);
            let Some(user) = copying.user else { return request.send() };
            let request = request.metadata_directive(MetadataDirective::Replace);
            let metadata = user.metadata.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            let request = request.set_metadata(Some(metadata)).set_content_type(user.content_type.clone());
            let request = request.set_content_encoding(user.content_encoding.clone());
            let request = request.set_cache_control(source.kept.cache_control.clone());
            let request = request.set_content_disposition(source.kept.content_disposition.clone());
            request.set_content_language(source.kept.content_language.clone()).send()
        };
        let size = source.properties.size;
        let abort = &copying.control.abort;
        if abort.is_cancelled() {
            return Err(aborted());
        }
        let mut answer = pin!(self.call(self.working(*operation), send));
        let answer = match abort.run_until_cancelled(&mut answer).await {
            Some(answer) => answer,
            None => timeout(LAST_ANSWER, answer).await.map_err(|_| {
                let endpoint = &self.target.endpoint;
                ErrorKind::Unknown(format!("{INTERRUPTED}, and {endpoint} may still complete the copy"))
            })?,
        };
        let failure = match answer {
            Ok(output) => {
                let result = output.copy_object_result();
                let etag = result.and_then(|result| result.e_tag()).map(tag);
                let etag = etag.ok_or_else(|| ErrorKind::Unknown("the answer has no entity tag".to_owned()))?;
                let sums = result.map(|result| {
                    [
                        (Algorithm::Crc32, result.checksum_crc32()),
                        (Algorithm::Crc32c, result.checksum_crc32_c()),
                        (Algorithm::Crc64Nvme, result.checksum_crc64_nvme()),
                        (Algorithm::Sha1, result.checksum_sha1()),
                        (Algorithm::Sha256, result.checksum_sha256()),
                    ]
                });
                let sums = sums.into_iter().flatten();
                let mut digests: Digests = sums.filter_map(|(algorithm, text)| checksum(algorithm, text?)).collect();
                // The source's is known to be one only where its own tag is.
                let is_md5 = source.properties.checksums.get(Algorithm::Md5).is_some();
                digests.extend(md5_of_tag(&etag.0).filter(|_| is_md5));
                return Ok(Written { size, etag, digests });
            }
            Err(failure) => failure,
        };
        if failure.may_be_done
            && let Ok(Some(Headed { properties: found, .. })) = self.head_object(*operation, to).await
        {
            let is_same = found.etag == *etag;
            let agree = found.checksums.agree(&source.properties.checksums);
            if found.size == size && (is_same || agree == Some(true)) && has_user(&found.user, copying.user()) {
                return Ok(Written { size, etag: found.etag, digests: found.checksums });
            }
            // Another one's came first.
            if failure.is_precondition() && (found.size != size || !is_same && agree == Some(false)) {
                return Err(ErrorKind::Precondition);
            }
        }
        // S3 answers so to a missing source, and to If-Match where there is no target.
        if failure.is_not_found() && !failure.may_be_done && matches!(condition, Condition::IfMatch(_)) {
            let is_there = self.head_object(*operation, copying.from).await?.is_some();
            return Err(if is_there { ErrorKind::Precondition } else { ErrorKind::NotFound });
        }
        Err(self.missing_bucket(failure, true))
    }

    async fn copy_in_parts(&self, copying: &Copying<'_>, checksum: Option<Algorithm>) -> Result<Written, ErrorKind> {
        let Copying { operation, source, to, condition, control, .. } = copying;
        let (user, kept) = (copying.user(), Some(&source.kept));
        let mut upload = Upload::begin(self, *operation, to, user, kept, checksum).await?;
        let size = source.properties.size;
        let part = COPIED_PART.min(self.largest_copy.max(1)).max(size.div_ceil(9000));
        let starts = (0..size).step_by(usize::try_from(part).unwrap_or(usize::MAX)).zip(1..);
        let copies = stream::iter(starts.map(|(start, number)| {
            let end = size.min(start + part);
            self.copy_part(copying, &upload.id, number, start, end)
        }));
        let copying = async {
            if let Some(guard) = &control.guard {
                guard.begun(&upload.id).await.map_err(ErrorKind::Stopped)?;
            }
            copies.buffered(AT_ONCE).try_collect::<Vec<_>>().await
        };
        let copied = control.abort.run_until_cancelled(copying).await.unwrap_or_else(|| Err(aborted()));
        upload.parts = match copied {
            Ok(parts) => parts,
            Err(kind) => {
                upload.give_up().await;
                return Err(kind);
            }
        };
        let completion = Completion { size, digests: &Digests::default(), condition, user };
        let etag = upload.complete(&completion).await?;
        let headed = self.head_object(*operation, to).await?.filter(|headed| headed.properties.etag == etag);
        let digests = headed.map(|headed| headed.properties.checksums).unwrap_or_default();
        Ok(Written { size, etag, digests })
    }

    async fn copy_part(
        &self,
        copying: &Copying<'_>,
        upload: &str,
        number: i32,
        start: u64,
        end: u64,
    ) -> Result<CompletedPart, ErrorKind> {
        let Copying { operation, source, to, .. } = copying;
        let send = || {
            let request = self.client.upload_part_copy().bucket(&to.bucket).key(&to.key).upload_id(upload);
            let request = request.part_number(number).copy_source(copying.source());
            let request = request.copy_source_if_match(quoted(&source.properties.etag));
            request.copy_source_range(format!("bytes={start}-{}", end - 1)).send()
        };
        let output = self.call(self.working(*operation), send).await.map_err(|failure| failure.kind(false))?;
        let etag = output.copy_part_result().and_then(|result| result.e_tag());
        let etag = etag.ok_or_else(|| ErrorKind::Answer("a part has no entity tag".to_owned()))?;
        Ok(CompletedPart::builder().part_number(number).e_tag(etag).build())
    }

    async fn copy_through_memory(self: &Arc<Self>, copying: &Copying<'_>) -> Result<Written, ErrorKind> {
        let Copying { operation, item, source, to, condition, .. } = copying;
        let size = source.properties.size;
        let memory = self.memory(size).await;
        let content = get::get(self, item, None, Some(&source.properties.etag)).await?;
        let read = content.chunks.try_fold(BytesMut::new(), async |mut all, chunk| {
            all.extend_from_slice(&chunk);
            Ok(all)
        });
        let bytes = read.await.map_err(ErrorKind::Source)?.freeze();
        let mut hashers = Hashers::new(source.properties.checksums.iter().map(Digest::algorithm));
        hashers.update(&bytes);
        let digests = hashers.finish();
        if let Some((expected, found)) = source.properties.checksums.difference(&digests) {
            return Err(ErrorKind::Digest { expected: expected.clone(), found: found.clone() });
        }
        let kept_whole = &self.found().await?.kept_whole;
        let checksum = kept_whole.iter().copied().find(|algorithm| digests.get(*algorithm).is_some());
        let whole = Whole {
            operation: *operation,
            at: to,
            bytes: &bytes,
            digests: &digests,
            checksum,
            condition,
            user: copying.user(),
            kept: Some(&source.kept),
        };
        let etag = self.put_whole(&whole).await?;
        drop(memory);
        Ok(Written { size, etag, digests })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_of_a_copy_is_encoded_in_full() {
        let encoded = encode("a//b/../%zz é+\n").to_string();
        assert_eq!(encoded, "a//b/../%25zz%20%C3%A9%2B%0A");
    }
}

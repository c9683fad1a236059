//! Parts of uploads: uploaded, copied, listed.

use std::ops::Bound;

use s3s::dto::{
    ChecksumAlgorithm, ChecksumType, CopyPartResult, ETag, ListPartsInput, ListPartsOutput, Part, Range, StreamingBlob,
    Timestamp, UploadPartCopyInput, UploadPartCopyOutput, UploadPartInput, UploadPartOutput,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::list::most;
use super::multipart::no_upload;
use super::read::Found;
use super::{Backend, exchange_of};
use crate::s3::bucket::VersionId;
use crate::s3::checksum::{Algorithm, checksums_of};
use crate::s3::condition::source_condition;
use crate::s3::exchange::Exchange;
use crate::s3::intake::{self, Announced, Received};
use crate::s3::upload::Part as Stored;

/// The highest number of a part (User Guide, *Multipart upload limits*).
const MOST_PARTS: i32 = 10_000;

/// An upload and one of its parts.
struct Target {
    bucket: String,
    key: String,
    upload: String,
    number: i32,
}

impl Backend {
    /// The algorithm in which the parts of an upload are summed; refuses what is no part of an upload.
    fn algorithm_of(&self, target: &Target) -> S3Result<Option<Algorithm>> {
        if !(1..=MOST_PARTS).contains(&target.number) {
            return Err(s3_error!(InvalidArgument, "Part number must be an integer between 1 and 10000, inclusive"));
        }
        let state = self.shared.state.lock();
        let id = (target.key.clone().into_bytes(), target.upload.clone());
        let upload = state.bucket(&target.bucket)?.uploads.get(&id).ok_or_else(no_upload)?;
        Ok(upload.checksum.map(|(algorithm, _)| algorithm))
    }

    async fn store(&self, exchange: &Exchange, target: Target, received: Received) -> S3Result<(String, Timestamp)> {
        let etag = received.etag();
        let Received { segment, md5, checksum } = received;
        let part = Stored { etag: etag.clone(), md5, segment, checksum, modified: self.shared.clock.now() };
        let modified = Timestamp::from(part.modified);
        self.commit(exchange, move |state, _| {
            let id = (target.key.into_bytes(), target.upload);
            let upload = state.bucket_mut(&target.bucket)?.uploads.get_mut(&id).ok_or_else(no_upload)?;
            upload.parts.insert(target.number, part);
            Ok(())
        })
        .await?;
        Ok((etag, modified))
    }

    pub(super) async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let exchange = exchange_of(&request);
        let S3Request { mut input, headers, trailing_headers, .. } = request;
        let mut announced = Announced::new(input.content_md5.take(), checksums_of!(input), &headers);
        announced.length = input.content_length;
        announced.trailers = trailing_headers;
        let body = input.body.take();
        let UploadPartInput { bucket, key, upload_id: upload, part_number: number, .. } = input;
        let target = Target { bucket, key, upload, number };
        if let Some(algorithm) = self.algorithm_of(&target)?
            && !announced.algorithms.contains(&algorithm)
        {
            announced.algorithms.push(algorithm);
        }
        let received = intake::receive(&self.shared.blobs, body, announced).await?;
        let checksum = received.checksum.clone();
        let (etag, _) = self.store(&exchange, target, received).await?;
        Ok(S3Response::new(UploadPartOutput {
            e_tag: Some(ETag::Strong(etag)),
            checksum_crc32: checksum.checksum_crc32,
            checksum_crc32c: checksum.checksum_crc32c,
            checksum_crc64nvme: checksum.checksum_crc64nvme,
            checksum_sha1: checksum.checksum_sha1,
            checksum_sha256: checksum.checksum_sha256,
            ..UploadPartOutput::default()
        }))
    }

    pub(super) async fn upload_part_copy(
        &self,
        request: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        let exchange = exchange_of(&request);
        let input = request.input;
        let Found { object, shown_version, .. } = self.source(&input.copy_source, &source_condition!(input))?;
        let range = match input.copy_source_range.as_deref() {
            None => 0..object.size,
            Some(range) => Range::parse(range)
                .ok()
                .and_then(|range| range.check(object.size).ok())
                .ok_or_else(|| s3_error!(InvalidArgument, "The x-amz-copy-source-range value is not valid"))?,
        };
        let UploadPartCopyInput { bucket, key, upload_id: upload, part_number: number, .. } = input;
        let target = Target { bucket, key, upload, number };
        let algorithms = self.algorithm_of(&target)?.into_iter().collect();
        let body = StreamingBlob::wrap(object.read(range));
        let received = intake::receive(&self.shared.blobs, Some(body), Announced::nothing(algorithms)).await?;
        let checksum = received.checksum.clone();
        let (etag, modified) = self.store(&exchange, target, received).await?;
        Ok(S3Response::new(UploadPartCopyOutput {
            copy_part_result: Some(CopyPartResult {
                e_tag: Some(ETag::Strong(etag)),
                last_modified: Some(modified),
                checksum_crc32: checksum.checksum_crc32,
                checksum_crc32c: checksum.checksum_crc32c,
                checksum_crc64nvme: checksum.checksum_crc64nvme,
                checksum_sha1: checksum.checksum_sha1,
                checksum_sha256: checksum.checksum_sha256,
            }),
            copy_source_version_id: shown_version.map(VersionId::text),
            ..UploadPartCopyOutput::default()
        }))
    }

    pub(super) fn list_parts(&self, request: &S3Request<ListPartsInput>) -> S3Result<S3Response<ListPartsOutput>> {
        let ListPartsInput { bucket, key, upload_id, part_number_marker, max_parts, .. } = request.input.clone();
        let most = most(max_parts)?;
        let marker = part_number_marker.unwrap_or_default();
        let state = self.shared.state.lock();
        let id = (key.clone().into_bytes(), upload_id.clone());
        let upload = state.bucket(&bucket)?.uploads.get(&id).ok_or_else(no_upload)?;
        let mut above = upload.parts.range((Bound::Excluded(marker), Bound::Unbounded)).peekable();
        let page: Vec<_> = above.by_ref().take(most).collect();
        let is_truncated = above.peek().is_some();
        let last = page.last().map(|(number, _)| **number);
        let parts = page.into_iter().map(|(number, part)| Part {
            part_number: Some(*number),
            e_tag: Some(ETag::Strong(part.etag.clone())),
            size: Some(part.size().cast_signed()),
            last_modified: Some(Timestamp::from(part.modified)),
            checksum_crc32: part.checksum.checksum_crc32.clone(),
            checksum_crc32c: part.checksum.checksum_crc32c.clone(),
            checksum_crc64nvme: part.checksum.checksum_crc64nvme.clone(),
            checksum_sha1: part.checksum.checksum_sha1.clone(),
            checksum_sha256: part.checksum.checksum_sha256.clone(),
        });
        Ok(S3Response::new(ListPartsOutput {
            parts: Some(parts.collect()),
            is_truncated: Some(is_truncated),
            next_part_number_marker: last,
            part_number_marker: Some(marker),
            max_parts: i32::try_from(most).ok(),
            checksum_algorithm: upload.checksum.map(|(one, _)| ChecksumAlgorithm::from_static(one.name())),
            checksum_type: upload.checksum.map(|(_, kind)| ChecksumType::from_static(kind)),
            storage_class: upload.headers.storage_class.clone(),
            bucket: Some(bucket),
            key: Some(key),
            upload_id: Some(upload_id),
            ..ListPartsOutput::default()
        }))
    }
}

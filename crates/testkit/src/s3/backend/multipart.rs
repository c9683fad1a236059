//! Uploads in parts: begun, completed, aborted, listed.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, ChecksumAlgorithm, ChecksumType,
    CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CreateMultipartUploadInput,
    CreateMultipartUploadOutput, ETag, ListMultipartUploadsInput, ListMultipartUploadsOutput, MultipartUpload,
    Timestamp,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::list::{echoed, most};
use super::{Backend, exchange_of};
use crate::s3::assemble::assemble;
use crate::s3::bucket::VersionId;
use crate::s3::checksum::{Algorithm, checksums_of, with_checksums};
use crate::s3::condition::write_condition;
use crate::s3::listing::Encoding;
use crate::s3::object::Headers;
use crate::s3::upload::Upload;

impl Backend {
    pub(super) async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let exchange = exchange_of(&request);
        let input = request.input;
        let headers = Headers::from(&input);
        let requested = input.checksum_algorithm.as_ref().map(|name| Algorithm::named(name.as_str())).transpose()?;
        let default = self.shared.settings.has_default_checksum.then_some(Algorithm::Crc64Nvme);
        let algorithm = requested.or(default);
        let kind = algorithm.map(|one| one.type_of_parts(input.checksum_type.as_ref())).transpose()?;
        let checksum = algorithm.zip(kind);
        let CreateMultipartUploadInput { bucket, key, .. } = input;
        let output = CreateMultipartUploadOutput {
            bucket: Some(bucket.clone()),
            key: Some(key.clone()),
            checksum_algorithm: requested.map(|one| ChecksumAlgorithm::from_static(one.name())),
            checksum_type: kind.filter(|_| requested.is_some()).map(ChecksumType::from_static),
            ..CreateMultipartUploadOutput::default()
        };
        let id = self
            .commit(&exchange, move |state, initiated| {
                state.bucket(&bucket)?;
                state.uploads += 1;
                let id = format!("upload-{:016x}", state.uploads);
                let upload =
                    Upload { initiated, headers, checksum, is_requested: requested.is_some(), parts: BTreeMap::new() };
                state.bucket_mut(&bucket)?.uploads.insert((key.into_bytes(), id.clone()), upload);
                Ok(id)
            })
            .await?;
        Ok(S3Response::new(CreateMultipartUploadOutput { upload_id: Some(id), ..output }))
    }

    pub(super) async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let exchange = exchange_of(&request);
        let input = request.input;
        let condition = write_condition!(input)?;
        let sent = checksums_of!(input);
        let least = self.shared.settings.minimum_part_bytes;
        let listed = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
        let CompleteMultipartUploadInput { bucket, key, upload_id, mpu_object_size, .. } = input;
        let output = CompleteMultipartUploadOutput {
            location: Some(format!("/{bucket}/{key}")),
            bucket: Some(bucket.clone()),
            key: Some(key.clone()),
            ..CompleteMultipartUploadOutput::default()
        };
        let (object, version) = self
            .commit(&exchange, move |state, now| {
                let bucket = state.bucket_mut(&bucket)?;
                let id = (key.clone().into_bytes(), upload_id);
                let upload = bucket.uploads.get(&id).ok_or_else(no_upload)?;
                let object = Arc::new(assemble(upload, &listed, &sent, least)?);
                if mpu_object_size.is_some_and(|size| size.cast_unsigned() != object.size) {
                    return Err(s3_error!(
                        InvalidRequest,
                        "The object has another size than x-amz-mp-object-size says."
                    ));
                }
                condition.check(bucket.current(&key))?;
                bucket.uploads.remove(&id);
                let version = bucket.put(key.as_bytes(), Some(Arc::clone(&object)), now);
                Ok((object, version))
            })
            .await?;
        let output = with_checksums!(
            CompleteMultipartUploadOutput {
                e_tag: Some(ETag::Strong(object.etag.clone())),
                version_id: version.map(VersionId::text),
                ..output
            },
            object.checksum.clone()
        );
        Ok(S3Response::new(output))
    }

    pub(super) async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let exchange = exchange_of(&request);
        let AbortMultipartUploadInput { bucket, key, upload_id, .. } = request.input;
        self.commit(&exchange, move |state, _| {
            let removed = state.bucket_mut(&bucket)?.uploads.remove(&(key.into_bytes(), upload_id));
            removed.map(drop).ok_or_else(no_upload)
        })
        .await?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }

    pub(super) fn list_multipart_uploads(
        &self,
        request: &S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        let input = request.input.clone();
        let encoding = Encoding::of(input.encoding_type.as_ref());
        let prefix = input.prefix.clone().unwrap_or_default().into_bytes();
        let most = most(input.max_uploads)?;
        let key_marker = input.key_marker.clone().unwrap_or_default().into_bytes();
        let id_marker = input.upload_id_marker.clone().filter(|_| !key_marker.is_empty());
        let state = self.shared.state.lock();
        let uploads = &state.bucket(&input.bucket)?.uploads;
        let after = (key_marker.clone(), id_marker.clone().unwrap_or_default());
        let all = uploads.range((Bound::Excluded(after), Bound::Unbounded));
        let all = all.filter(|((key, _), _)| id_marker.is_some() || key_marker.is_empty() || *key > key_marker);
        let mut found = all.filter(|((key, _), _)| key.starts_with(&prefix)).peekable();
        let page: Vec<_> = found.by_ref().take(most).collect();
        let is_truncated = found.peek().is_some();
        let last = page.last().filter(|_| is_truncated).map(|(id, _)| *id);
        let shown = page.iter().map(|((key, id), upload)| MultipartUpload {
            key: Some(encoding.text(key)),
            upload_id: Some(id.clone()),
            initiated: Some(Timestamp::from(upload.initiated)),
            storage_class: upload.headers.storage_class.clone(),
            checksum_algorithm: upload.checksum.map(|(one, _)| ChecksumAlgorithm::from_static(one.name())),
            checksum_type: upload.checksum.map(|(_, kind)| ChecksumType::from_static(kind)),
            ..MultipartUpload::default()
        });
        Ok(S3Response::new(ListMultipartUploadsOutput {
            uploads: Some(shown.collect()),
            is_truncated: Some(is_truncated),
            next_key_marker: last.map(|(key, _)| encoding.text(key)),
            next_upload_id_marker: last.map(|(_, id)| id.clone()),
            bucket: Some(input.bucket),
            prefix: echoed(encoding, input.prefix.as_ref()),
            key_marker: echoed(encoding, input.key_marker.as_ref()),
            upload_id_marker: input.upload_id_marker,
            max_uploads: i32::try_from(most).ok(),
            encoding_type: input.encoding_type,
            ..ListMultipartUploadsOutput::default()
        }))
    }
}

/// There is none with this identifier for this key: never begun, completed or aborted.
pub(super) fn no_upload() -> s3s::S3Error {
    s3_error!(NoSuchUpload, "The specified multipart upload does not exist.")
}

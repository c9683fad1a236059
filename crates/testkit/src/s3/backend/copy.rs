//! Copies objects within the server.

use std::sync::Arc;

use s3s::dto::{
    ChecksumAlgorithm, CopyObjectInput, CopyObjectOutput, CopyObjectResult, CopySource, ETag, MetadataDirective,
    StreamingBlob, Timestamp,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::read::Found;
use super::{Backend, exchange_of};
use crate::s3::bucket::VersionId;
use crate::s3::checksum::{self, Algorithm};
use crate::s3::condition::{Condition, ReadCondition, source_condition};
use crate::s3::intake::{self, Announced};
use crate::s3::object::{Headers, Object};

impl Backend {
    /// The source of a copy.
    pub(super) fn source(&self, source: &CopySource, condition: &ReadCondition) -> S3Result<Found> {
        let CopySource::Bucket { bucket, key, version_id } = source else {
            return Err(s3_error!(NotImplemented, "access points are not served"));
        };
        let found = self.find(bucket, key, version_id.as_deref())?;
        condition.check(&found.object.etag, found.version.modified, true)?;
        self.shared.restores.check(bucket, key, &found.version)?;
        Ok(found)
    }

    pub(super) async fn copy_object(
        &self,
        request: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        let exchange = exchange_of(&request);
        let condition = Condition::of_headers(&request.headers)?;
        let input = request.input;
        let source = self.source(&input.copy_source, &source_condition!(input))?;
        let directive = input.metadata_directive.as_ref().map(MetadataDirective::as_str);
        let is_replaced = directive == Some(MetadataDirective::REPLACE);
        check_changes(&input, is_replaced)?;
        let mut copy = self.copied(&source.object, input.checksum_algorithm.as_ref()).await?;
        if is_replaced {
            copy.headers = Headers::from(&input);
        } else {
            // The class is not one of the properties that are copied (API reference, CopyObject).
            copy.headers.storage_class.clone_from(&input.storage_class);
        }
        let result = CopyObjectResult {
            e_tag: Some(ETag::Strong(copy.etag.clone())),
            checksum_crc32: copy.checksum.checksum_crc32.clone(),
            checksum_crc32c: copy.checksum.checksum_crc32c.clone(),
            checksum_crc64nvme: copy.checksum.checksum_crc64nvme.clone(),
            checksum_sha1: copy.checksum.checksum_sha1.clone(),
            checksum_sha256: copy.checksum.checksum_sha256.clone(),
            checksum_type: copy.checksum.checksum_type.clone(),
            last_modified: None,
        };
        let CopyObjectInput { bucket, key, .. } = input;
        let (version, modified) = self
            .commit(&exchange, move |state, now| {
                let bucket = state.bucket_mut(&bucket)?;
                condition.check(bucket.current(&key))?;
                Ok((bucket.put(key.as_bytes(), Some(Arc::new(copy)), now), now))
            })
            .await?;
        Ok(S3Response::new(CopyObjectOutput {
            copy_object_result: Some(CopyObjectResult { last_modified: Some(Timestamp::from(modified)), ..result }),
            copy_source_version_id: source.shown_version.map(VersionId::text),
            version_id: version.map(VersionId::text),
            ..CopyObjectOutput::default()
        }))
    }

    /// The same content as one body. Its files are shared; where its digests are of parts, or of another algorithm than
    /// is requested, it is read.
    async fn copied(&self, object: &Object, requested: Option<&ChecksumAlgorithm>) -> S3Result<Object> {
        if object.size > self.shared.settings.maximum_copy_bytes {
            return Err(s3_error!(InvalidRequest, "The copy source is larger than the maximum allowable size."));
        }
        let kept: Vec<_> = checksum::algorithms(&object.checksum).collect();
        let algorithms = match requested {
            Some(requested) => vec![Algorithm::named(requested.as_str())?],
            None => kept.clone(),
        };
        if object.parts.is_empty() && algorithms == kept {
            return Ok(object.clone());
        }
        let body = StreamingBlob::wrap(object.read(0..object.size));
        let received = intake::receive(&self.shared.blobs, Some(body), Announced::nothing(algorithms)).await?;
        Ok(Object::new(received, object.headers.clone()))
    }
}

/// A copy onto itself has to change something.
fn check_changes(input: &CopyObjectInput, is_replaced: bool) -> S3Result<()> {
    let CopySource::Bucket { bucket, key, version_id } = &input.copy_source else { return Ok(()) };
    let is_itself = **bucket == *input.bucket && **key == *input.key && version_id.is_none();
    let is_changed = is_replaced || input.storage_class.is_some() || input.checksum_algorithm.is_some();
    if is_itself && !is_changed {
        return Err(s3_error!(
            InvalidRequest,
            "This copy request is illegal: it copies an object to itself unchanged."
        ));
    }
    Ok(())
}

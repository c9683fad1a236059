//! Writes an object in one request.

use std::sync::Arc;

use s3s::dto::{ETag, PutObjectInput, PutObjectOutput};
use s3s::{S3Request, S3Response, S3Result};

use super::{Backend, exchange_of};
use crate::s3::bucket::VersionId;
use crate::s3::checksum::{Algorithm, checksums_of, with_checksums};
use crate::s3::condition::write_condition;
use crate::s3::intake::{self, Announced};
use crate::s3::object::{Headers, Object};

impl Backend {
    /// The algorithms of a body that comes: those that the client sends, or S3's own default, where it is on.
    pub(super) fn algorithms(&self, announced: Vec<Algorithm>) -> Vec<Algorithm> {
        if announced.is_empty() && self.shared.settings.has_default_checksum {
            return vec![Algorithm::Crc64Nvme];
        }
        announced
    }

    pub(super) async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let exchange = exchange_of(&request);
        let S3Request { mut input, headers, trailing_headers, .. } = request;
        let condition = write_condition!(input)?;
        self.shared.state.lock().bucket(&input.bucket)?;
        let mut announced = Announced::new(input.content_md5.take(), checksums_of!(input), &headers);
        announced.algorithms = self.algorithms(announced.algorithms);
        announced.length = input.content_length;
        announced.trailers = trailing_headers;
        let received = intake::receive(&self.shared.blobs, input.body.take(), announced).await?;
        let object = Arc::new(Object::new(received, Headers::from(&input)));
        let (checksum, etag) = (object.checksum.clone(), object.etag.clone());
        let PutObjectInput { bucket, key, .. } = input;
        let version = self
            .commit(&exchange, move |state, now| {
                let bucket = state.bucket_mut(&bucket)?;
                condition.check(bucket.current(&key))?;
                Ok(bucket.put(key.as_bytes(), Some(object), now))
            })
            .await?;
        let output = with_checksums!(
            PutObjectOutput {
                e_tag: Some(ETag::Strong(etag)),
                version_id: version.map(VersionId::text),
                ..PutObjectOutput::default()
            },
            checksum
        );
        Ok(S3Response::new(output))
    }
}

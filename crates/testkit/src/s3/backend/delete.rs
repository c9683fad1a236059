//! Deletes objects and versions.

use s3s::dto::{
    DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, ETagCondition, Error,
};
use s3s::{S3Error, S3Request, S3Response, S3Result};

use super::{Backend, exchange_of};
use crate::s3::bucket::{Deleted, VersionId};
use crate::s3::condition::Condition;

impl Backend {
    pub(super) async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let exchange = exchange_of(&request);
        let DeleteObjectInput { bucket, key, version_id, if_match, .. } = request.input;
        let condition = Condition::new(if_match, None)?;
        let Deleted { version, is_marker } = self
            .commit(&exchange, move |state, now| {
                let bucket = state.bucket_mut(&bucket)?;
                condition.check_delete(bucket.current(&key))?;
                Ok(bucket.delete(key.as_bytes(), version_id.as_deref(), now))
            })
            .await?;
        Ok(S3Response::new(DeleteObjectOutput {
            delete_marker: is_marker.then_some(true),
            version_id: version.map(VersionId::text),
            ..DeleteObjectOutput::default()
        }))
    }

    pub(super) async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let exchange = exchange_of(&request);
        let DeleteObjectsInput { bucket, delete, .. } = request.input;
        let is_quiet = delete.quiet.unwrap_or_default();
        let (deleted, errors) = self
            .commit(&exchange, move |state, now| {
                let bucket = state.bucket_mut(&bucket)?;
                let (mut deleted, mut errors) = (Vec::new(), Vec::new());
                for object in delete.objects {
                    let condition = Condition::new(object.e_tag.map(ETagCondition::ETag), None)?;
                    if let Err(error) = condition.check_delete(bucket.current(&object.key)) {
                        errors.push(refused(&error, object.key));
                    } else {
                        let gone = bucket.delete(object.key.as_bytes(), object.version_id.as_deref(), now);
                        deleted.push(shown(&gone, object.key, object.version_id));
                    }
                }
                Ok((deleted, errors))
            })
            .await?;
        Ok(S3Response::new(DeleteObjectsOutput {
            deleted: (!is_quiet).then_some(deleted),
            errors: (!errors.is_empty()).then_some(errors),
            ..DeleteObjectsOutput::default()
        }))
    }
}

fn refused(error: &S3Error, key: String) -> Error {
    Error {
        code: Some(error.code().as_str().to_owned()),
        message: error.message().map(str::to_owned),
        key: Some(key),
        version_id: None,
    }
}

fn shown(gone: &Deleted, key: String, version: Option<String>) -> DeletedObject {
    let marker = gone.version.filter(|_| gone.is_marker);
    DeletedObject {
        key: Some(key),
        version_id: version,
        delete_marker: gone.is_marker.then_some(true),
        delete_marker_version_id: marker.map(VersionId::text),
    }
}

//! Restoring what is archived.

use s3s::dto::{RestoreObjectInput, RestoreObjectOutput};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::{Backend, exchange_of};
use crate::s3::archive::is_archived;

impl Backend {
    pub(super) async fn restore_object(
        &self,
        request: S3Request<RestoreObjectInput>,
    ) -> S3Result<S3Response<RestoreObjectOutput>> {
        let exchange = exchange_of(&request);
        let RestoreObjectInput { bucket, key, version_id, restore_request, .. } = request.input;
        let days = restore_request.and_then(|request| request.days).unwrap_or(0);
        if days < 1 {
            return Err(s3_error!(MalformedXML, "Days is at least 1"));
        }
        let version = self.find(&bucket, &key, version_id.as_deref())?.version;
        if !is_archived(&version) {
            return Err(s3_error!(InvalidObjectState, "Restore is not allowed for the object's current storage class"));
        }
        self.commit(&exchange, |_state, _now| Ok(())).await?;
        self.shared.restores.begin(bucket, key, &version)?;
        Ok(S3Response::new(RestoreObjectOutput::default()))
    }
}

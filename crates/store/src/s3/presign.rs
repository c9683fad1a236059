//! URLs that are signed in advance.

use std::time::Duration;

use aws_sdk_s3::presigning::PresigningConfig;

use crate::error::ErrorKind;
use crate::s3::Inner;
use crate::s3::failure::chain;
use crate::store::Item;

impl Inner {
    /// A URL by which anyone can read an item for a time; no request is made for it.
    pub(super) async fn presign(
        &self,
        item: &Item,
        disposition: &str,
        lifetime: Duration,
    ) -> Result<String, ErrorKind> {
        let at = self.object_to_read(item)?;
        let signing = PresigningConfig::expires_in(lifetime);
        let signing = signing.map_err(|error| ErrorKind::Unsupported(format!("a link cannot be signed: {error}")))?;
        let request = self.client.get_object().bucket(&at.bucket).key(&at.key);
        let request = request
            .response_content_disposition(disposition)
            .response_content_type("application/octet-stream")
            .presigned(signing);
        // Only credentials can be missing.
        let signed = request
            .await
            .map_err(|error| ErrorKind::Unavailable(format!("a link cannot be signed: {}", chain(&error))))?;
        Ok(signed.uri().to_owned())
    }
}

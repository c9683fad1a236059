//! Deleting items, and uploads in parts that were abandoned.

use aws_sdk_s3::types::EncodingType;
use jiff::Timestamp;

use crate::error::{ErrorKind, Operation};
use crate::name::SpaceName;
use crate::s3::Inner;
use crate::s3::head::{quoted, timestamp};
use crate::s3::list::{decode, without_continuation};
use crate::s3::location::Object;
use crate::store::{EntityTag, Item};

impl Inner {
    pub(super) async fn delete(&self, item: &Item, if_match: Option<&EntityTag>) -> Result<bool, ErrorKind> {
        let operation = Operation::Delete;
        let at = self.object_to_change(&item.space, &item.key).await?;
        if if_match.is_some() && !self.found().await?.delete_if_match {
            let why = "a deletion on a condition: this service ignores If-Match of a deletion";
            return Err(ErrorKind::Unsupported(why.to_owned()));
        }
        // S3 answers the same whether there was an item or not.
        let Some(headed) = self.head_object(operation, &at).await? else {
            return Ok(false);
        };
        if if_match.is_some_and(|tag| *tag != headed.properties.etag) {
            return Err(ErrorKind::Precondition);
        }
        let send = || {
            let request = self.client.delete_object().bucket(&at.bucket).key(&at.key);
            request.set_if_match(if_match.map(quoted)).send()
        };
        match self.call(self.quick(operation), send).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.is_not_found() => Ok(failure.may_be_done),
            // A request of ours whose answer was lost may have deleted it: then there is nothing.
            Err(failure) if failure.is_precondition() && self.head_object(operation, &at).await?.is_none() => {
                Ok(failure.may_be_done)
            }
            Err(failure) => Err(self.missing_bucket(failure, true)),
        }
    }

    pub(super) async fn abort_upload(&self, item: &Item, upload: &str) -> Result<(), ErrorKind> {
        let at = self.location.object(&item.space, &item.key)?;
        self.abort(Operation::AbortUpload, &at, upload).await.map(drop)
    }

    /// Ends an upload; the answer is whether it was under way.
    pub(super) async fn abort(&self, operation: Operation, at: &Object, upload: &str) -> Result<bool, ErrorKind> {
        let send = || self.client.abort_multipart_upload().bucket(&at.bucket).key(&at.key).upload_id(upload).send();
        match self.call(self.quick(operation), send).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.code == "NoSuchUpload" || failure.status == Some(404) => Ok(false),
            Err(failure) => Err(failure.kind(false)),
        }
    }

    pub(super) async fn sweep(&self, before: Timestamp) -> Result<u64, ErrorKind> {
        if let Some(bucket) = self.location.shared_bucket() {
            return self.sweep_bucket(bucket, before).await;
        }
        let mut ended = 0;
        for space in self.spaces().await? {
            ended += self.sweep_space(&space, before).await?;
        }
        Ok(ended)
    }

    async fn sweep_space(&self, space: &SpaceName, before: Timestamp) -> Result<u64, ErrorKind> {
        self.sweep_bucket(&self.location.bucket(space)?, before).await
    }

    /// Whether a part of an upload was written after an instant: then a client is at it, however long ago it began.
    async fn has_part_since(&self, at: &Object, upload: &str, instant: Timestamp) -> Result<bool, ErrorKind> {
        let mut marker = None::<String>;
        loop {
            let send = || {
                let request = self.client.list_parts().bucket(&at.bucket).key(&at.key).upload_id(upload);
                request.set_part_number_marker(marker.clone()).send()
            };
            let page = match self.call(self.quick(Operation::Sweep), send).await {
                Ok(page) => page,
                // It has ended meanwhile, and to end it again does nothing.
                Err(failure) if failure.code == "NoSuchUpload" || failure.status == Some(404) => return Ok(false),
                Err(failure) => return Err(failure.kind(false)),
            };
            for part in page.parts() {
                if timestamp(part.last_modified())? >= instant {
                    return Ok(true);
                }
            }
            let next = page.next_part_number_marker().map(str::to_owned).filter(|_| page.is_truncated() == Some(true));
            if next.is_none() {
                return Ok(false);
            }
            if next == marker {
                return Err(without_continuation());
            }
            marker = next;
        }
    }

    async fn sweep_bucket(&self, bucket: &str, before: Timestamp) -> Result<u64, ErrorKind> {
        let operation = Operation::Sweep;
        let (mut key_marker, mut upload_marker) = (None::<String>, None::<String>);
        let mut ended = 0;
        loop {
            let send = || {
                let request = self.client.list_multipart_uploads().bucket(bucket).encoding_type(EncodingType::Url);
                let request =
                    if self.location.prefix().is_empty() { request } else { request.prefix(self.location.prefix()) };
                request.set_key_marker(key_marker.clone()).set_upload_id_marker(upload_marker.clone()).send()
            };
            let page = self.call(self.quick(operation), send).await.map_err(|failure| failure.kind(false))?;
            let is_encoded = page.encoding_type() == Some(&EncodingType::Url);
            let text = |name: &str| String::from_utf8(decode(name, is_encoded)).ok();
            for upload in page.uploads() {
                let (Some(key), Some(id)) = (upload.key().and_then(text), upload.upload_id()) else { continue };
                if self.location.has_item(&key) && timestamp(upload.initiated())? < before {
                    let at = Object { bucket: bucket.to_owned(), key };
                    if !self.has_part_since(&at, id, before).await? {
                        ended += u64::from(self.abort(operation, &at, id).await?);
                    }
                }
            }
            if page.is_truncated() != Some(true) {
                return Ok(ended);
            }
            let next = (page.next_key_marker().and_then(text), page.next_upload_id_marker().map(str::to_owned));
            if next.0.is_none() || next == (key_marker, upload_marker) {
                return Err(without_continuation());
            }
            (key_marker, upload_marker) = next;
        }
    }
}

//! Reads objects, and what is known of them.

use std::sync::Arc;

use http::StatusCode;
use s3s::dto::{
    ETag, GetObjectAttributesInput, GetObjectAttributesOutput, GetObjectAttributesParts, GetObjectInput,
    GetObjectOutput, HeadObjectInput, HeadObjectOutput, ObjectAttributes, ObjectPart, StorageClass, StreamingBlob,
    Timestamp,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::Backend;
use crate::s3::bucket::{Version, VersionId};
use crate::s3::checksum::with_checksums;
use crate::s3::condition::read_condition;
use crate::s3::object::{Headers, Object, Selection};

/// Builds either answer, of content or of its properties, which have the same fields for the most part.
macro_rules! answer {
    ($output:ident, $found:expr, $selection:expr, $mode:expr) => {{
        let Found { version, object, shown_version } = &$found;
        let Headers {
            cache_control,
            content_disposition,
            content_encoding,
            content_language,
            content_type,
            metadata,
            storage_class,
        } = object.headers.clone();
        let output = $output {
            accept_ranges: Some("bytes".to_owned()),
            cache_control,
            content_disposition,
            content_encoding,
            content_language,
            // S3's own default (API reference, PutObject).
            content_type: Some(content_type.unwrap_or_else(|| "binary/octet-stream".to_owned())),
            metadata,
            // The standard one is not named (API reference, HeadObject).
            storage_class: storage_class.filter(|class| class.as_str() != StorageClass::STANDARD),
            content_length: Some($selection.length()),
            content_range: $selection.content_range(),
            e_tag: Some(ETag::Strong(object.etag.clone())),
            last_modified: Some(Timestamp::from(version.modified)),
            parts_count: $selection.parts_count(&object),
            version_id: shown_version.map(VersionId::text),
            ..$output::default()
        };
        with_checksums!($output { ..output }, object.shown_checksum($mode, &$selection))
    }};
}

/// Finds the object that a request reads, where its condition holds, and which bytes of it.
macro_rules! select {
    ($backend:expr, $input:expr) => {{
        let (version, condition) = ($input.version_id.as_deref(), read_condition!($input));
        let found = $backend.find(&$input.bucket, &$input.key, version)?;
        condition.check(&found.object.etag, found.version.modified, false)?;
        let selection = Selection::of(&found.object, $input.range.as_ref(), $input.part_number)?;
        (found, selection)
    }};
}

/// An object with the version that it is of.
pub(in crate::s3) struct Found {
    pub(in crate::s3) version: Version,
    pub(super) object: Arc<Object>,
    /// The identifier, where the bucket keeps versions.
    pub(super) shown_version: Option<VersionId>,
}

impl Backend {
    pub(in crate::s3) fn find(&self, bucket: &str, key: &str, version: Option<&str>) -> S3Result<Found> {
        let state = self.shared.state.lock();
        let bucket = state.bucket(bucket)?;
        let found = bucket.version(key, version)?.clone();
        let Some(object) = found.object.clone() else {
            // A marker named by its identifier is there, and cannot be read (User Guide, *Working with delete
            // markers*).
            let named = version.map(|_| s3_error!(MethodNotAllowed, "The version is a delete marker."));
            return Err(named.unwrap_or_else(|| s3_error!(NoSuchKey)));
        };
        let shown_version = bucket.is_versioned().then_some(found.id);
        Ok(Found { version: found, object, shown_version })
    }

    pub(super) fn get_object(&self, request: &S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let input = request.input.clone();
        let (found, selection) = select!(self, input);
        self.shared.restores.check(&input.bucket, &input.key, &found.version)?;
        let mut output = answer!(GetObjectOutput, found, selection, input.checksum_mode.as_ref());
        output.body = Some(StreamingBlob::wrap(found.object.read(selection.range)));
        output.content_type = input.response_content_type.or(output.content_type);
        Ok(S3Response::new(output))
    }

    pub(super) fn head_object(&self, request: &S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = request.input.clone();
        let (found, selection) = select!(self, input);
        let mut output = answer!(HeadObjectOutput, found, selection, input.checksum_mode.as_ref());
        output.restore = self.shared.restores.header(&input.bucket, &input.key, &found.version);
        let is_partial = output.content_range.is_some();
        let mut response = S3Response::new(output);
        response.status = is_partial.then_some(StatusCode::PARTIAL_CONTENT);
        Ok(response)
    }

    pub(super) fn get_object_attributes(
        &self,
        request: &S3Request<GetObjectAttributesInput>,
    ) -> S3Result<S3Response<GetObjectAttributesOutput>> {
        let input = request.input.clone();
        let Found { version, object, shown_version } =
            self.find(&input.bucket, &input.key, input.version_id.as_deref())?;
        // Clients send them in one header or in several, and the library splits none.
        let requested = input.object_attributes.iter().flat_map(|names| names.as_str().split(','));
        let requested: Vec<_> = requested.map(str::trim).collect();
        let is_requested = |name: &str| requested.contains(&name);
        let parts = object.parts.iter().zip(1..).map(|((size, checksum), number)| ObjectPart {
            part_number: Some(number),
            size: Some(size.cast_signed()),
            checksum_crc32: checksum.checksum_crc32.clone(),
            checksum_crc32c: checksum.checksum_crc32c.clone(),
            checksum_crc64nvme: checksum.checksum_crc64nvme.clone(),
            checksum_sha1: checksum.checksum_sha1.clone(),
            checksum_sha256: checksum.checksum_sha256.clone(),
        });
        let object_parts = (is_requested(ObjectAttributes::OBJECT_PARTS) && !object.parts.is_empty()).then(|| {
            GetObjectAttributesParts {
                total_parts_count: i32::try_from(object.parts.len()).ok(),
                is_truncated: Some(false),
                parts: Some(parts.collect()),
                ..GetObjectAttributesParts::default()
            }
        });
        let class = StorageClass::from(object.storage_class().to_owned());
        Ok(S3Response::new(GetObjectAttributesOutput {
            checksum: is_requested(ObjectAttributes::CHECKSUM).then(|| object.checksum.clone()),
            // Without quotes in this answer alone (API reference, GetObjectAttributes).
            e_tag: is_requested(ObjectAttributes::ETAG).then(|| ETag::Strong(object.etag.clone())),
            last_modified: Some(Timestamp::from(version.modified)),
            object_parts,
            object_size: is_requested(ObjectAttributes::OBJECT_SIZE).then_some(object.size.cast_signed()),
            storage_class: is_requested(ObjectAttributes::STORAGE_CLASS).then_some(class),
            version_id: shown_version.map(VersionId::text),
            ..GetObjectAttributesOutput::default()
        }))
    }
}

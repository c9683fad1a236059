//! The properties of an item, as the headers of an answer give them.

use std::collections::HashMap;

use aws_sdk_s3::operation::get_object::GetObjectOutput;
use aws_sdk_s3::operation::head_object::HeadObjectOutput;
use aws_sdk_s3::primitives::DateTime;
use aws_sdk_s3::types::{ChecksumMode, ChecksumType, ServerSideEncryption, StorageClass};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;

use crate::digest::{Algorithm, Digest, Digests};
use crate::error::{ErrorKind, Operation};
use crate::s3::Inner;
use crate::s3::failure::Failure;
use crate::s3::location::Object;
use crate::store::{EntityTag, Item, Properties, UserProperties};

/// How many bytes S3 keeps of what a user says, names and values together.
const MOST_METADATA_BYTES: usize = 2048;

/// What S3 answers where no media type was set.
const NO_TYPE: &str = "binary/octet-stream";

/// Properties, with what only this store knows of them.
pub(super) struct Headed {
    pub(super) properties: Properties,
    /// Headers that a user of S3 may have set, and that are kept when others are replaced.
    pub(super) kept: Kept,
}

/// Headers that are no property here.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) cache_control: Option<String>,
    pub(super) content_disposition: Option<String>,
    pub(super) content_language: Option<String>,
    pub(super) storage_class: Option<StorageClass>,
}

/// The headers of an answer that make properties.
struct Headers<'a> {
    size: u64,
    modified: Option<&'a DateTime>,
    etag: Option<&'a str>,
    checksums: [(Algorithm, Option<&'a str>); 7],
    checksum_type: Option<&'a ChecksumType>,
    is_encrypted_by_key: bool,
    content_type: Option<&'a str>,
    content_encoding: Option<&'a str>,
    metadata: Option<&'a HashMap<String, String>>,
}

macro_rules! headers {
    ($output:expr, $size:expr) => {{
        let output = $output;
        let by_key = matches!(
            output.server_side_encryption(),
            Some(ServerSideEncryption::AwsKms | ServerSideEncryption::AwsKmsDsse)
        );
        Headers {
            size: $size,
            modified: output.last_modified(),
            etag: output.e_tag(),
            checksums: [
                (Algorithm::Crc32, output.checksum_crc32()),
                (Algorithm::Crc32c, output.checksum_crc32_c()),
                (Algorithm::Crc64Nvme, output.checksum_crc64_nvme()),
                (Algorithm::Md5, output.checksum_md5()),
                (Algorithm::Sha1, output.checksum_sha1()),
                (Algorithm::Sha256, output.checksum_sha256()),
                (Algorithm::Sha512, output.checksum_sha512()),
            ],
            checksum_type: output.checksum_type(),
            is_encrypted_by_key: by_key || output.sse_customer_algorithm().is_some(),
            content_type: output.content_type(),
            content_encoding: output.content_encoding(),
            metadata: output.metadata(),
        }
    }};
}

impl Inner {
    /// The properties of an item; `None` where there is none.
    pub(super) async fn head(&self, item: &Item) -> Result<Option<Properties>, ErrorKind> {
        let object = self.object_to_read(item)?;
        match self.head_object(Operation::Head, &object).await {
            Ok(Some(headed)) => Ok(Some(headed.properties)),
            Ok(None) => {
                self.require_space(Operation::Head, &item.space).await?;
                Ok(None)
            }
            Err(kind) => Err(kind),
        }
    }

    /// The same of an object, without a look whether its space exists.
    pub(super) async fn head_object(&self, operation: Operation, at: &Object) -> Result<Option<Headed>, ErrorKind> {
        let send = || {
            let request = self.client.head_object().bucket(&at.bucket).key(&at.key);
            request.checksum_mode(ChecksumMode::Enabled).send()
        };
        match self.call(self.quick(operation), send).await {
            Ok(output) => Ok(Some(self.headed(&output)?)),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(self.missing_bucket(failure, false)),
        }
    }

    /// As an operation fails whose bucket may be missing: that is a missing space where each has its own.
    pub(super) fn missing_bucket(&self, failure: Failure, is_change: bool) -> ErrorKind {
        if failure.is_bucket_missing() && self.location.shared_bucket().is_none() {
            return ErrorKind::NoSpace;
        }
        failure.kind(is_change)
    }

    fn headed(&self, output: &HeadObjectOutput) -> Result<Headed, ErrorKind> {
        let size = output.content_length().and_then(|size| u64::try_from(size).ok());
        let size = size.ok_or_else(|| ErrorKind::Answer("the size is missing".to_owned()))?;
        let kept = Kept {
            cache_control: output.cache_control().map(str::to_owned),
            content_disposition: output.content_disposition().map(str::to_owned),
            content_language: output.content_language().map(str::to_owned),
            storage_class: output.storage_class().cloned(),
        };
        Ok(Headed { properties: self.properties(&headers!(output, size))?, kept })
    }

    /// The properties of content that is being read, of which the whole has this size.
    pub(super) fn properties_of_content(&self, output: &GetObjectOutput, size: u64) -> Result<Properties, ErrorKind> {
        self.properties(&headers!(output, size))
    }

    fn properties(&self, headers: &Headers<'_>) -> Result<Properties, ErrorKind> {
        let etag = headers.etag.ok_or_else(|| {
            ErrorKind::Answer("the entity tag is missing; check that endpoint is an S3 service".to_owned())
        })?;
        let is_whole = headers.checksum_type.is_none_or(|kind| *kind == ChecksumType::FullObject);
        let kept = headers.checksums.iter().filter(|_| is_whole);
        let mut checksums: Digests = kept.filter_map(|(algorithm, text)| checksum(*algorithm, (*text)?)).collect();
        let tags_are_md5 = self.tags_are_md5.get().copied().unwrap_or(true) && !headers.is_encrypted_by_key;
        if let Some(md5) = md5_of_tag(etag).filter(|_| tags_are_md5) {
            checksums.extend([md5]);
        }
        let metadata = headers.metadata.into_iter().flatten();
        let user = UserProperties {
            content_type: headers.content_type.filter(|name| *name != NO_TYPE).map(str::to_owned),
            content_encoding: headers.content_encoding.map(str::to_owned),
            metadata: metadata.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect(),
        };
        Ok(Properties { size: headers.size, modified: timestamp(headers.modified)?, etag: tag(etag), checksums, user })
    }
}

/// A checksum of the whole content; `None` where it is of another form, such as that of several parts (`..-3`).
pub(super) fn checksum(algorithm: Algorithm, base64: &str) -> Option<Digest> {
    Digest::new(algorithm, &BASE64_STANDARD.decode(base64).ok()?).ok()
}

/// A checksum as a header has it.
pub(super) fn text(digest: &Digest) -> (Algorithm, String) {
    (digest.algorithm(), BASE64_STANDARD.encode(digest.as_bytes()))
}

/// The MD5 that an entity tag is, where it looks like one.
pub(super) fn md5_of_tag(etag: &str) -> Option<Digest> {
    Digest::from_hex(Algorithm::Md5, etag.trim_matches('"')).ok()
}

/// An entity tag without its quotes.
pub(super) fn tag(etag: &str) -> EntityTag {
    let plain = etag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    EntityTag(plain.unwrap_or(etag).to_owned())
}

/// An entity tag as a header has it.
pub(super) fn quoted(tag: &EntityTag) -> String {
    format!("\"{}\"", tag.0)
}

pub(super) fn timestamp(time: Option<&DateTime>) -> Result<Timestamp, ErrorKind> {
    let instant = time.and_then(|time| Timestamp::new(time.secs(), i32::try_from(time.subsec_nanos()).ok()?).ok());
    instant.ok_or_else(|| ErrorKind::Answer("the time of modification is missing or invalid".to_owned()))
}

/// Checks that S3 can keep what a user says, and gives it back unchanged.
pub(super) fn check_user(user: &UserProperties) -> Result<(), ErrorKind> {
    let refuse = |name: &str, why: &str| {
        let name: String = name.escape_debug().take(100).collect();
        Err(ErrorKind::Unsupported(format!("the property {name:?} {why}")))
    };
    let is_value = |value: &str| value.bytes().all(|byte| matches!(byte, b' '..=b'~')) && value.trim() == value;
    let is_token = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let headers = [("content_type", &user.content_type), ("content_encoding", &user.content_encoding)];
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    for (name, value) in headers.chain(user.metadata.iter().map(|(name, value)| (name.as_str(), value))) {
        if name.is_empty() || !name.bytes().all(is_token) {
            return refuse(name, "has a name that no header can have: it takes lower-case letters, digits and '-'");
        }
        if !is_value(value) {
            return refuse(name, "has a value that no header can have: printable ASCII without spaces at its ends");
        }
    }
    let bytes: usize = user.metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > MOST_METADATA_BYTES {
        return Err(ErrorKind::Unsupported(format!("S3 keeps {MOST_METADATA_BYTES} bytes of properties, not {bytes}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_a_digest_of_the_whole_content_counts_as_one() {
        assert!(checksum(Algorithm::Crc32, "AAAAAA==").is_some());
        assert!(checksum(Algorithm::Crc32, "AAAAAA==-3").is_none());
        assert!(checksum(Algorithm::Crc32, "AAAA").is_none());
        assert!(md5_of_tag("\"d41d8cd98f00b204e9800998ecf8427e\"").is_some());
        assert!(md5_of_tag("\"d41d8cd98f00b204e9800998ecf8427e-2\"").is_none());
        assert_eq!(quoted(&tag("\"a\"")), "\"a\"");
        assert_eq!(tag("a").0, "a");
    }

    #[test]
    fn properties_that_would_not_come_back_as_they_are_are_refused() {
        let user = |name: &str, value: &str| UserProperties {
            metadata: [(name.to_owned(), value.to_owned())].into(),
            ..UserProperties::default()
        };
        assert!(check_user(&user("creator", "A. Author (1)")).is_ok());
        for (name, value) in [("Creator", "a"), ("a b", "a"), ("", "a"), ("a", "a\nb"), ("a", " a"), ("a", "ü")] {
            assert!(check_user(&user(name, value)).is_err(), "{name:?} {value:?}");
        }
        assert!(check_user(&user("a", &"a".repeat(MOST_METADATA_BYTES))).is_err());
    }
}

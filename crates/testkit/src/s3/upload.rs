//! Uploads in parts that are not finished.

use std::collections::BTreeMap;
use std::time::SystemTime;

use s3s::dto::{Checksum, ChecksumType};

use super::blob::Segment;
use super::checksum::Algorithm;
use super::object::Headers;

/// An upload.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) initiated: SystemTime,
    pub(super) headers: Headers,
    /// The checksum that the object will have, and its type; none where none was requested.
    pub(super) checksum: Option<(Algorithm, &'static str)>,
    /// Whether the client requested that checksum, and so has to send those of parts.
    pub(super) is_requested: bool,
    pub(super) parts: BTreeMap<i32, Part>,
}

impl Upload {
    /// Whether the object's checksum will be one of checksums.
    pub(super) fn is_composite(&self) -> bool {
        self.checksum.is_some_and(|(_, kind)| kind == ChecksumType::COMPOSITE)
    }
}

/// A part that was uploaded.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) etag: String,
    pub(super) md5: [u8; 16],
    pub(super) segment: Option<Segment>,
    pub(super) checksum: Checksum,
    pub(super) modified: SystemTime,
}

impl Part {
    /// Size in bytes.
    pub(super) fn size(&self) -> u64 {
        self.segment.as_ref().map_or(0, |segment| segment.size)
    }
}

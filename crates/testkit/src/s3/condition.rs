//! What a request demands of the state of an object.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use s3s::dto::{ETagCondition, Timestamp};
use s3s::{S3Result, s3_error};

use super::bucket::Version;

/// What must hold at the instant of a write.
#[derive(Clone, Debug, Default)]
pub(super) struct Condition {
    if_match: Option<ETagCondition>,
    if_absent: bool,
}

impl Condition {
    pub(super) fn new(if_match: Option<ETagCondition>, if_none_match: Option<&ETagCondition>) -> S3Result<Self> {
        // S3 takes nothing but the asterisk here (API reference, PutObject).
        if if_none_match.is_some_and(|condition| !condition.is_any()) {
            return Err(s3_error!(NotImplemented, "If-None-Match of a write takes * only."));
        }
        Ok(Self { if_match, if_absent: if_none_match.is_some() })
    }

    /// The headers themselves, for the operations whose conditions the library does not know.
    pub(super) fn of_headers(headers: &HeaderMap) -> S3Result<Self> {
        let parse = |name: &str| -> S3Result<Option<ETagCondition>> {
            let Some(value) = headers.get(name) else { return Ok(None) };
            let condition = ETagCondition::parse_http_header(value.as_bytes());
            condition.map(Some).map_err(|_| s3_error!(InvalidArgument, "invalid entity tag"))
        };
        Self::new(parse("if-match")?, parse("if-none-match")?.as_ref())
    }

    /// Checks it against what is there before a write.
    pub(super) fn check(&self, current: Option<&Version>) -> S3Result<()> {
        let object = current.and_then(|version| version.object.as_deref());
        if self.if_absent && object.is_some() {
            return Err(s3_error!(PreconditionFailed, "An object with this key exists."));
        }
        match (&self.if_match, object) {
            (None, _) => Ok(()),
            (Some(_), None) => Err(s3_error!(NoSuchKey, "There is no object with this key.")),
            (Some(condition), Some(object)) if matches(condition, &object.etag) => Ok(()),
            (Some(_), Some(_)) => Err(s3_error!(PreconditionFailed, "The entity tag differs.")),
        }
    }

    /// Checks it against what is there before a deletion: what is gone fits no entity tag.
    pub(super) fn check_delete(&self, current: Option<&Version>) -> S3Result<()> {
        let is_absent = current.is_none_or(|version| version.object.is_none());
        if self.if_match.is_some() && is_absent {
            return Err(s3_error!(PreconditionFailed, "There is no object with this key."));
        }
        self.check(current)
    }
}

/// Whether a condition names this entity tag, or any.
fn matches(condition: &ETagCondition, etag: &str) -> bool {
    condition.is_any() || condition.as_etag().is_some_and(|tag| tag.value() == etag)
}

/// What must hold for a read.
pub(super) struct ReadCondition {
    pub(super) tag: Option<ETagCondition>,
    pub(super) other_tag: Option<ETagCondition>,
    pub(super) modified_since: Option<Timestamp>,
    pub(super) unmodified_since: Option<Timestamp>,
}

impl ReadCondition {
    /// Checks it in the order of RFC 9110, section 13.2.2. `is_copy` is of the source of a copy, which never answers
    /// 304.
    pub(super) fn check(&self, etag: &str, modified: SystemTime, is_copy: bool) -> S3Result<()> {
        let refused = || s3_error!(PreconditionFailed, "At least one of the preconditions does not hold.");
        let unchanged = || if is_copy { refused() } else { s3_error!(NotModified) };
        let modified = whole_seconds(modified);
        if let Some(condition) = &self.tag {
            if !matches(condition, etag) {
                return Err(refused());
            }
        } else if self.unmodified_since.as_ref().is_some_and(|since| modified > *since) {
            return Err(refused());
        }
        if let Some(condition) = &self.other_tag {
            if matches(condition, etag) {
                return Err(unchanged());
            }
        } else if self.modified_since.as_ref().is_some_and(|since| modified <= *since) {
            return Err(unchanged());
        }
        Ok(())
    }
}

/// HTTP dates have no fractions.
fn whole_seconds(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from(UNIX_EPOCH + Duration::from_secs(since.as_secs()))
}

/// The condition of a write, of the operations whose conditions the library knows.
macro_rules! write_condition {
    ($input:expr) => {
        $crate::s3::condition::Condition::new($input.if_match.clone(), $input.if_none_match.as_ref())
    };
}
macro_rules! read_condition {
    ($input:expr) => {
        $crate::s3::condition::ReadCondition {
            tag: $input.if_match.clone(),
            other_tag: $input.if_none_match.clone(),
            modified_since: $input.if_modified_since.clone(),
            unmodified_since: $input.if_unmodified_since.clone(),
        }
    };
}
macro_rules! source_condition {
    ($input:expr) => {
        $crate::s3::condition::ReadCondition {
            tag: $input.copy_source_if_match.clone(),
            other_tag: $input.copy_source_if_none_match.clone(),
            modified_since: $input.copy_source_if_modified_since.clone(),
            unmodified_since: $input.copy_source_if_unmodified_since.clone(),
        }
    };
}
pub(super) use {read_condition, source_condition, write_condition};

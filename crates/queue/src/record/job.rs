//! The other nodes of a job.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::field::{Field, decode, object};
use super::{Decoded, JobStatus, Malformed, text};
use crate::id::{BatchId, Priority};
use crate::path::JobNode;

/// `/jobs/JID/configuration`: the parameters that pages and metrics show. All are texts of the depositor's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration<'a> {
    /// The mnemonic of the collection: `profile`, or `profile_name` in the published design.
    pub collection: Cow<'a, str>,
    /// Who deposited it, such as `uc3user/UC3 User`.
    pub submitter: Cow<'a, str>,
    /// The file's name.
    pub filename: Cow<'a, str>,
    /// The object's title.
    pub title: Cow<'a, str>,
    /// The object's creator.
    pub creator: Cow<'a, str>,
    /// When it was submitted, as spelled; [`crate::time::read`] knows the forms.
    pub submission_date: Cow<'a, str>,
    /// The ARK that the depositor named, if any.
    pub object_id: Cow<'a, str>,
    /// The local ids that the depositor named.
    pub local_ids: Vec<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct RawConfiguration<'a> {
    #[serde(borrow, default)]
    profile: Field<'a>,
    #[serde(borrow, default)]
    profile_name: Field<'a>,
    #[serde(borrow, default)]
    submitter: Field<'a>,
    #[serde(borrow, default)]
    filename: Field<'a>,
    #[serde(borrow, default)]
    title: Field<'a>,
    #[serde(borrow, default)]
    creator: Field<'a>,
    #[serde(borrow, default, rename = "submissionDate")]
    submission_date: Field<'a>,
    #[serde(borrow, default, rename = "objectID")]
    object_id: Field<'a>,
    #[serde(borrow, default, rename = "localID")]
    local_ids: Field<'a>,
}

impl<'a> Configuration<'a> {
    /// Reads the node's data.
    #[must_use]
    pub fn decode(data: &'a [u8]) -> Decoded<Self> {
        decode(data, |raw: RawConfiguration<'a>, checked| {
            let mut text = |what, field| checked.text(what, field).unwrap_or_default();
            Self {
                collection: text("profile", raw.profile.or(raw.profile_name)),
                submitter: text("submitter", raw.submitter),
                filename: text("filename", raw.filename),
                title: text("title", raw.title),
                creator: text("creator", raw.creator),
                submission_date: text("submissionDate", raw.submission_date),
                object_id: text("objectID", raw.object_id),
                local_ids: checked.list("localID", raw.local_ids),
            }
        })
    }
}

/// `/jobs/JID/identifiers`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identifiers<'a> {
    /// The ARK: `primary_id`, or `primary` in the published design; empty until it is minted.
    pub ark: Cow<'a, str>,
    /// The local ids.
    pub local_ids: Vec<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct RawIdentifiers<'a> {
    #[serde(borrow, default)]
    primary_id: Field<'a>,
    #[serde(borrow, default)]
    primary: Field<'a>,
    #[serde(borrow, default)]
    local_id: Field<'a>,
}

impl<'a> Identifiers<'a> {
    /// Reads the node's data.
    #[must_use]
    pub fn decode(data: &'a [u8]) -> Decoded<Self> {
        decode(data, |raw: RawIdentifiers<'a>, checked| Self {
            ark: checked.text("primary_id", raw.primary_id.or(raw.primary)).unwrap_or_default(),
            local_ids: checked.list("local_id", raw.local_id),
        })
    }
}

/// Checks a value of which only the form matters here: `metadata`, `store` and `inventory` of a job.
///
/// # Errors
/// When the data is not a JSON object.
pub fn object_form(data: &[u8]) -> Result<(), Malformed> {
    object::<IgnoredAny>(data).map(|_| ())
}

/// Reads `/jobs/JID/bid`.
///
/// # Errors
/// When the data is not the id of a batch.
pub fn bid(data: &[u8]) -> Result<BatchId, Malformed> {
    text(data)?.parse().map_err(|_| Malformed::Wrong { what: "the value", expected: "a batch id (bid and ten digits)" })
}

/// A text that names a znode below `/batches` as an id does, but has not ten digits. The daemons load such a batch.
#[must_use]
pub fn misnamed_bid(data: &[u8]) -> Option<&str> {
    const LONGEST: usize = 64;
    let name = std::str::from_utf8(data).ok().filter(|name| name.len() <= LONGEST)?;
    let digits = name.strip_prefix(BatchId::PREFIX)?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && name.parse::<BatchId>().is_err())
        .then_some(name)
}

/// Reads `/jobs/JID/priority`.
///
/// # Errors
/// When the data is not an integer from 0 to 99.
pub fn priority(data: &[u8]) -> Result<Priority, Malformed> {
    text(data)?.parse().map_err(|_| Malformed::Wrong { what: "the value", expected: "a priority from 0 to 99" })
}

/// Whether `/jobs/JID/priority` holds an integer that is not a valid priority, such as 100. The daemons read it, and
/// make a queue entry of it that they cannot read.
#[must_use]
pub fn is_priority_out_of_range(data: &[u8]) -> bool {
    text(data).is_ok_and(|text| text.parse::<i32>().is_ok_and(|number| Priority::new(number.into()).is_none()))
}

/// Reads `/jobs/JID/space_needed`, in bytes; `None` for 0 and -1, which mean unknown.
///
/// # Errors
/// When the data is not an integer, or is below -1.
pub fn space_needed(data: &[u8]) -> Result<Option<u64>, Malformed> {
    let wrong = || Malformed::Wrong { what: "the value", expected: "a number of bytes" };
    match text(data)?.parse::<i64>().map_err(|_| wrong())? {
        -1 | 0 => Ok(None),
        bytes => u64::try_from(bytes).map(Some).map_err(|_| wrong()),
    }
}

/// Checks whether the Java daemons can load a job that has this data in one of its znodes. We read more than they do:
/// they refuse white space around a plain value. In a JSON value only the form matters to them, and they take an empty
/// one and any bytes in its texts (tried with their classes, 2026).
///
/// # Errors
/// The first thing that they refuse.
pub fn check_job_node(node: JobNode, data: &[u8]) -> Result<(), Malformed> {
    match node {
        JobNode::Bid => bid(data).map(drop).and_then(|()| bare(data)),
        JobNode::Priority => priority(data).map(drop).and_then(|()| bare(data)),
        JobNode::SpaceNeeded => {
            let wrong = Malformed::Wrong { what: "the value", expected: "a number of bytes" };
            text(data)?.parse::<i64>().map_err(|_| wrong).and_then(|_| bare(data))
        }
        JobNode::Status => JobStatus::decode(data).malformed.map_or(Ok(()), Err),
        JobNode::Configuration => refused(data, Configuration::decode(data).malformed),
        JobNode::Identifiers | JobNode::Identifier => refused(data, Identifiers::decode(data).malformed),
        JobNode::Metadata | JobNode::Store | JobNode::Inventory => refused(data, object_form(data).err()),
        JobNode::Lock => Ok(()),
    }
}

/// What the Java daemons refuse of a JSON value, given what was wrong with it when it was decoded.
///
/// # Errors
/// The first thing that they refuse.
pub fn refused(data: &[u8], malformed: Option<Malformed>) -> Result<(), Malformed> {
    match malformed {
        None | Some(Malformed::Empty | Malformed::Wrong { .. } | Malformed::Missing(_)) => Ok(()),
        // They replace what is not UTF-8, as this does.
        Some(Malformed::NotUtf8) => object_form(String::from_utf8_lossy(data).as_bytes()),
        Some(malformed @ (Malformed::NotJson { .. } | Malformed::NotObject | Malformed::RepeatedKey)) => Err(malformed),
    }
}

fn bare(data: &[u8]) -> Result<(), Malformed> {
    let expected = "free of white space around it";
    if text(data)?.len() == data.len() { Ok(()) } else { Err(Malformed::Wrong { what: "the value", expected }) }
}

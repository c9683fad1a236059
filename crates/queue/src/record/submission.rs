//! What a batch's submission and an access request's token say.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;

use super::Decoded;
use super::field::{Field, decode};

/// `/batches/BID/submission`: the parameters that pages show. All are texts of the depositor's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission<'a> {
    /// The UUID under which the depositor knows the batch, such as `bid-9c1a0b5e-..`.
    pub uuid: Cow<'a, str>,
    /// The mnemonic of the collection: `profile`, or `profile_name` in the published design.
    pub collection: Cow<'a, str>,
    /// Who deposited it.
    pub submitter: Cow<'a, str>,
    /// The manifest's name.
    pub filename: Cow<'a, str>,
    /// The title given to the submission.
    pub title: Cow<'a, str>,
    /// The kind of container, such as `container-batch-manifest`.
    pub kind: Cow<'a, str>,
    /// When it was submitted, as spelled.
    pub submission_date: Cow<'a, str>,
    /// The UUID of the batch with the first rows of the manifest, where this one has later ones; empty for any other.
    pub part_of: Cow<'a, str>,
    /// How many batches the rows of that manifest became; `None` for any other.
    pub parts: Option<u64>,
    /// A note for people; empty for none.
    pub note: Cow<'a, str>,
    /// The addresses that the report is mailed to instead of the profile's, as the depositor wrote them; empty for
    /// none.
    pub notification: Cow<'a, str>,
}

#[derive(Deserialize)]
struct RawSubmission<'a> {
    #[serde(borrow, default, rename = "batchID")]
    uuid: Field<'a>,
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
    #[serde(borrow, default, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow, default, rename = "submissionDate")]
    submission_date: Field<'a>,
    #[serde(borrow, default, rename = "partOf")]
    part_of: Field<'a>,
    #[serde(borrow, default)]
    parts: Field<'a>,
    #[serde(borrow, default)]
    note: Field<'a>,
    #[serde(borrow, default)]
    notification: Field<'a>,
}

impl<'a> Submission<'a> {
    /// Reads the node's data.
    #[must_use]
    pub fn decode(data: &'a [u8]) -> Decoded<Self> {
        decode(data, |raw: RawSubmission<'a>, checked| {
            // What is for people only makes no submission malformed.
            let said = |field| if let Field::Text(text) = field { text } else { Cow::default() };
            let mut text = |what, field| checked.text(what, field).unwrap_or_default();
            Self {
                uuid: text("batchID", raw.uuid),
                collection: text("profile", raw.profile.or(raw.profile_name)),
                submitter: text("submitter", raw.submitter),
                filename: text("filename", raw.filename),
                title: text("title", raw.title),
                kind: text("type", raw.kind),
                submission_date: text("submissionDate", raw.submission_date),
                part_of: text("partOf", raw.part_of),
                parts: said(raw.parts).parse().ok(),
                note: said(raw.note),
                notification: said(raw.notification),
            }
        })
    }
}

/// `/access/*/QID/token`: the parameters that pages and metrics show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Token<'a> {
    /// The token that the requester polls with.
    pub token: Cow<'a, str>,
    /// How many bytes are to be assembled, if known.
    pub content_bytes: Option<u64>,
    /// The storage node that delivers.
    pub delivery_node: Option<i64>,
    /// Where the result will be.
    pub url: Cow<'a, str>,
    /// Until when it is there; `None` where that is not said, or not in RFC 3339.
    pub expires: Option<Timestamp>,
}

#[derive(Deserialize)]
struct RawToken<'a> {
    #[serde(borrow, default)]
    token: Field<'a>,
    #[serde(borrow, default, rename = "cloud-content-byte")]
    content_bytes: Field<'a>,
    #[serde(borrow, default, rename = "delivery-node")]
    delivery_node: Field<'a>,
    #[serde(borrow, default)]
    url: Field<'a>,
    #[serde(borrow, default, rename = "expiration-time")]
    expires: Field<'a>,
}

impl<'a> Token<'a> {
    /// Reads the node's data.
    #[must_use]
    pub fn decode(data: &'a [u8]) -> Decoded<Self> {
        decode(data, |raw: RawToken<'a>, checked| {
            let bytes = checked.integer("cloud-content-byte", raw.content_bytes);
            if bytes.is_some_and(|bytes| bytes < 0) {
                checked.wrong("cloud-content-byte", "a number of bytes");
            }
            Self {
                token: checked.text("token", raw.token).unwrap_or_default(),
                content_bytes: bytes.and_then(|bytes| u64::try_from(bytes).ok()),
                delivery_node: checked.integer("delivery-node", raw.delivery_node),
                url: checked.text("url", raw.url).unwrap_or_default(),
                expires: checked.text("expiration-time", raw.expires).and_then(|expires| expires.parse().ok()),
            }
        })
    }
}

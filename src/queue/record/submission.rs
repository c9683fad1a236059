//! What a batch's submission and an access request's token say.

use std::borrow::Cow;

use serde::Deserialize;

use super::Decoded;
use super::field::{Field, object};

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
}

impl<'a> Submission<'a> {
    /// Reads the node's data.
    #[must_use]
    pub fn decode(data: &'a [u8]) -> Decoded<Self> {
        let raw: RawSubmission<'a> = match object(data) {
            Ok(raw) => raw,
            Err(malformed) => return Decoded::bad(Self::default(), malformed),
        };
        let mut malformed = None;
        let mut text = |field: Field<'a>, what| {
            let (text, bad) = field.text(what);
            malformed = malformed.take().or(bad);
            text.unwrap_or_default()
        };
        let value = Self {
            uuid: text(raw.uuid, "batchID"),
            collection: text(raw.profile.or(raw.profile_name), "profile"),
            submitter: text(raw.submitter, "submitter"),
            filename: text(raw.filename, "filename"),
            title: text(raw.title, "title"),
            kind: text(raw.kind, "type"),
            submission_date: text(raw.submission_date, "submissionDate"),
        };
        Decoded { value, malformed }
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
}

impl<'a> Token<'a> {
    /// Reads the node's data.
    #[must_use]
    pub fn decode(data: &'a [u8]) -> Decoded<Self> {
        let raw: RawToken<'a> = match object(data) {
            Ok(raw) => raw,
            Err(malformed) => return Decoded::bad(Self::default(), malformed),
        };
        let (token, bad_token) = raw.token.text("token");
        let (content_bytes, bad_bytes) = raw.content_bytes.integer("cloud-content-byte");
        let (delivery_node, bad_node) = raw.delivery_node.integer("delivery-node");
        let (url, bad_url) = raw.url.text("url");
        Decoded {
            value: Self {
                token: token.unwrap_or_default(),
                content_bytes: content_bytes.and_then(|bytes| u64::try_from(bytes).ok()),
                delivery_node,
                url: url.unwrap_or_default(),
            },
            malformed: bad_token.or(bad_bytes).or(bad_node).or(bad_url),
        }
    }
}

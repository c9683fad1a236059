//! The lines of a dump: a header, a line a znode, a trailer, a checksum. Each is one JSON object.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zookeeper_client::Stat;

use crate::id::BatchId;
use crate::record::ExpansionNote;

/// The form of dumps that this version writes and reads. Those of form 1 had no checksum.
pub const FORMAT: u32 = 2;

/// The first line of a dump.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The form of the lines that follow.
    #[serde(rename = "queuekeeper_dump")]
    pub format: u32,
    /// A random name of the dump, by which an interrupted load recognizes it.
    pub id: String,
    /// When it was begun, by the clock of the machine that took it.
    pub taken: Timestamp,
    /// The version of the program that took it.
    pub program: String,
    /// Whether texts are replaced by pseudonyms.
    pub redacted: bool,
    /// What below the chroot was not read.
    pub left_out: Vec<String>,
    /// The number that the next sequential creation below each of these would have got.
    pub next: BTreeMap<String, u32>,
    /// How far the creation of their jobs was, of the batches whose jobs were being created when the dump was begun.
    /// What is read later may have more jobs, never fewer: a load does not lose a row.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "expansions")]
    pub expansions: BTreeMap<BatchId, ExpansionNote>,
}

/// [`Header::expansions`], by the names of the batches.
mod expansions {
    use std::collections::BTreeMap;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::id::BatchId;
    use crate::record::ExpansionNote;

    pub(super) fn serialize<S: Serializer>(notes: &BTreeMap<BatchId, ExpansionNote>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(notes.iter().map(|(batch, note)| (batch.to_string(), note)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<BatchId, ExpansionNote>, D::Error> {
        let notes = BTreeMap::<String, ExpansionNote>::deserialize(from)?;
        let parsed = notes.into_iter().map(|(batch, note)| Ok((batch.parse().map_err(D::Error::custom)?, note)));
        parsed.collect()
    }
}

/// The last line but one of a dump: what it consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trailer {
    /// How many lines of znodes there are.
    pub nodes: u64,
    /// How many of them are ephemeral, which are locks.
    pub ephemeral: u64,
    /// How many znodes were listed and gone when they were to be read.
    pub vanished: u64,
    /// How many jobs there are, by their own znodes.
    pub jobs: u64,
    /// How many batches.
    pub batches: u64,
    /// How many access requests.
    pub requests: u64,
    /// The bytes of all values, as they are written in the dump.
    pub data_bytes: u64,
    /// The youngest change that shows in what was read.
    pub newest_zxid: i64,
}

/// A line of a znode, as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLine<'a> {
    /// The path, relative to the chroot.
    pub path: Cow<'a, str>,
    /// The value.
    pub data: Vec<u8>,
    /// Whether it was ephemeral: its session cannot be restored.
    pub is_ephemeral: bool,
}

/// Any line but the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpLine<'a> {
    /// Of a znode.
    Node(NodeLine<'a>),
    /// The last but one.
    End(Trailer),
    /// The last one: the SHA-256 of all lines before it, in hex digits.
    Checksum(Cow<'a, str>),
}

/// The checksum of a dump: the SHA-256 of all its lines but the last, with their ends.
#[derive(Clone)]
pub(crate) struct Checksum(digest::Context);

impl Checksum {
    pub(crate) fn new() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }

    /// Adds whole lines with their ends, or parts of them.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of what was added until now, in hex digits.
    pub(crate) fn text(&self) -> String {
        let sum = self.0.clone().finish();
        sum.as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Checksum").field(&self.text()).finish()
    }
}

#[derive(Serialize)]
struct WrittenNode<'a> {
    path: &'a str,
    ctime: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ephemeral: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

/// Writes the line of a znode. Its times are there to be read by people, and are left out where both are the same.
pub(super) fn write_node(out: &mut Vec<u8>, path: &str, data: &[u8], stat: &Stat) {
    let text = (!data.is_empty()).then(|| std::str::from_utf8(data));
    let written = WrittenNode {
        path,
        ctime: stat.ctime,
        mtime: Some(stat.mtime).filter(|mtime| *mtime != stat.ctime),
        ephemeral: (stat.ephemeral_owner != 0).then(|| format!("{:#x}", stat.ephemeral_owner)),
        text: text.and_then(Result::ok),
        base64: text.and_then(Result::err).map(|_| STANDARD.encode(data)),
    };
    write_line(out, &written);
}

/// Writes any other line.
pub(super) fn write_line(out: &mut Vec<u8>, line: &impl Serialize) {
    serde_json::to_writer(&mut *out, line).expect("texts and numbers are written to memory");
    out.push(b'\n');
}

/// The last line but one, distinguished from that of a znode by its first key.
#[derive(Serialize)]
pub(super) struct End {
    pub(super) end: Trailer,
}

/// The last line.
#[derive(Serialize)]
pub(super) struct Sum {
    pub(super) sha256: String,
}

/// Why a line is not one of a dump.
#[derive(Debug, thiserror::Error)]
pub enum InvalidLine {
    /// It is not JSON, or not of the form of a line.
    #[error("is not a line of a dump: {}", quoted(.0))]
    Json(#[from] serde_json::Error),
    /// It is neither a line of a znode nor one of the last two lines, or several of them.
    #[error("is neither a line of a znode nor one of the last two lines")]
    Kind,
    /// It has its value twice.
    #[error("has a value both as text and as base64")]
    TwoValues,
    /// What should be base64 is not.
    #[error("has a value that is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
}

/// A text out of a dump as an error quotes it: its beginning, with escapes for what a terminal would obey.
pub(crate) fn quoted(text: &impl fmt::Display) -> String {
    const LONGEST: usize = 300;
    let text = text.to_string();
    let mut quoted = String::new();
    for found in text.chars().take(LONGEST) {
        match found {
            '"' | '\'' | '\\' => quoted.push(found),
            other => quoted.extend(other.escape_debug()),
        }
    }
    if text.chars().nth(LONGEST).is_some() {
        quoted.push('…');
    }
    quoted
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadLine<'a> {
    #[serde(borrow)]
    path: Option<Cow<'a, str>>,
    // What people read is checked for its form, and not used.
    #[serde(rename = "ctime")]
    _ctime: Option<i64>,
    #[serde(rename = "mtime")]
    _mtime: Option<i64>,
    #[serde(borrow)]
    ephemeral: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    base64: Option<Cow<'a, str>>,
    end: Option<Trailer>,
    #[serde(borrow)]
    sha256: Option<Cow<'a, str>>,
}

/// Reads any line but the first.
///
/// # Errors
/// When it is not one.
pub fn read_line(line: &[u8]) -> Result<DumpLine<'_>, InvalidLine> {
    let read: ReadLine<'_> = serde_json::from_slice(line)?;
    // Only a znode's line has any of the others.
    let is_bare = read.text.is_none() && read.base64.is_none() && read.ephemeral.is_none();
    match (read.path, read.end, read.sha256) {
        (None, Some(end), None) if is_bare => Ok(DumpLine::End(end)),
        (None, None, Some(sum)) if is_bare => Ok(DumpLine::Checksum(sum)),
        (Some(path), None, None) => {
            let data = match (read.text, read.base64) {
                (None, None) => Vec::new(),
                (Some(text), None) => text.into_owned().into_bytes(),
                (None, Some(encoded)) => STANDARD.decode(encoded.as_bytes())?,
                (Some(_), Some(_)) => return Err(InvalidLine::TwoValues),
            };
            Ok(DumpLine::Node(NodeLine { path, data, is_ephemeral: read.ephemeral.is_some() }))
        }
        (None | Some(_), None | Some(_), None | Some(_)) => Err(InvalidLine::Kind),
    }
}

/// How two paths lie in a dump: depth first, the children of a znode by the bytes of their names.
#[must_use]
pub fn compare(one: &str, other: &str) -> std::cmp::Ordering {
    // No name has a character that is less than the one that takes the slash's place.
    one.trim_end_matches('/').bytes().map(rank).cmp(other.trim_end_matches('/').bytes().map(rank))
}

fn rank(byte: u8) -> u8 {
    if byte == b'/' { 0 } else { byte }
}

#[cfg(test)]
mod tests;

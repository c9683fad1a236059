//! Pages of listings: in byte order, each found by its key and not by counting.

use std::fmt::Write as _;
use std::ops::Bound;
use std::sync::Arc;

use s3s::dto::{
    Checksum, ChecksumAlgorithm, CommonPrefix, ETag, Object as ListedObject, ObjectStorageClass, Timestamp,
};
use s3s::{S3Result, s3_error};

use super::bucket::{Bucket, Version};
use super::checksum;
use super::fault::PageFault;
use super::intake::hex;
use super::object::Object;

/// The most keys of a page (API reference, `ListObjectsV2`).
pub(super) const MOST_KEYS: i32 = 1000;

/// What is listed.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) prefix: Vec<u8>,
    pub(super) delimiter: Vec<u8>,
    pub(super) start: Start,
    pub(super) most: usize,
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// At the first key.
    First,
    /// Above a key.
    After(Vec<u8>),
    /// Above every key that begins so.
    AfterPrefix(Vec<u8>),
}

impl Start {
    /// What a client gives back to get the next page.
    pub(super) fn token(&self) -> String {
        match self {
            Self::First => "f".to_owned(),
            Self::After(key) => format!("k{}", hex(key)),
            Self::AfterPrefix(prefix) => format!("p{}", hex(prefix)),
        }
    }

    pub(super) fn parse(token: &str) -> S3Result<Self> {
        let invalid = || s3_error!(InvalidArgument, "The continuation token provided is incorrect");
        let digits = token.get(1..).ok_or_else(invalid)?;
        let byte = |at| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let bytes = (0..digits.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>().ok_or_else(invalid)?;
        match &token[..1] {
            "f" => Ok(Self::First),
            "k" => Ok(Self::After(bytes)),
            "p" => Ok(Self::AfterPrefix(bytes)),
            _ => Err(invalid()),
        }
    }

    /// The key or prefix that was last.
    pub(super) fn key(&self) -> Option<&[u8]> {
        match self {
            Self::First => None,
            Self::After(key) | Self::AfterPrefix(key) => Some(key),
        }
    }

    fn bound(&self) -> Bound<Vec<u8>> {
        match self {
            Self::First => Bound::Unbounded,
            Self::After(key) => Bound::Excluded(key.clone()),
            Self::AfterPrefix(prefix) => Bound::Included(above_all(prefix)),
        }
    }
}

/// The least text above everything that begins with a prefix. Keys are UTF-8, which has no byte 0xFF.
fn above_all(prefix: &[u8]) -> Vec<u8> {
    let mut above = prefix.to_owned();
    if let Some(last) = above.last_mut() {
        *last += 1;
    }
    above
}

/// What a page has of a key.
pub(super) enum ListedEntry {
    Key(Vec<u8>, Version, Arc<Object>),
    Prefix(Vec<u8>),
}

/// A page.
pub(super) struct Page {
    pub(super) rows: Vec<ListedEntry>,
    /// Where the next one begins; none after the last.
    pub(super) next: Option<Start>,
}

impl Query {
    /// A page of the objects of a bucket.
    pub(super) fn page(mut self, bucket: &Bucket, fault: Option<PageFault>) -> Page {
        match fault {
            None => self.objects(bucket),
            Some(PageFault::Repeat) => {
                self.start = Start::First;
                self.objects(bucket)
            }
            Some(PageFault::Skip) => {
                if let Some(next) = self.objects(bucket).next {
                    self.start = next;
                }
                self.objects(bucket)
            }
            Some(PageFault::Backwards) => {
                let mut page = self.objects(bucket);
                page.rows.reverse();
                page
            }
        }
    }

    fn objects(&self, bucket: &Bucket) -> Page {
        let mut page = Page { rows: Vec::new(), next: None };
        if self.most == 0 {
            return page;
        }
        let mut at = self.start.clone();
        loop {
            let from = at.bound();
            let from = match &from {
                // Keys below the prefix are no business of this listing.
                Bound::Unbounded => Bound::Included(self.prefix.as_slice()),
                Bound::Included(key) if *key < self.prefix => Bound::Included(self.prefix.as_slice()),
                Bound::Excluded(key) if *key < self.prefix => Bound::Included(self.prefix.as_slice()),
                Bound::Included(key) => Bound::Included(key.as_slice()),
                Bound::Excluded(key) => Bound::Excluded(key.as_slice()),
            };
            let range = bucket.entries.range::<[u8], _>((from, Bound::Unbounded));
            let in_prefix = range.take_while(|(key, _)| key.starts_with(&self.prefix));
            let mut live =
                in_prefix.filter_map(|(key, entry)| Some((key, &entry.current, entry.current.object.as_ref()?)));
            let mut jump = None;
            for (key, version, object) in live.by_ref() {
                if page.rows.len() == self.most {
                    page.next = Some(at);
                    return page;
                }
                if let Some(prefix) = self.common_prefix(key) {
                    page.rows.push(ListedEntry::Prefix(prefix.clone()));
                    jump = Some(Start::AfterPrefix(prefix));
                    break;
                }
                page.rows.push(ListedEntry::Key(key.clone(), version.clone(), Arc::clone(object)));
                at = Start::After(key.clone());
            }
            match jump {
                Some(next) => at = next,
                None => return page,
            }
        }
    }

    /// The beginning of a key up to the delimiter, where it has one behind the prefix.
    pub(super) fn common_prefix(&self, key: &[u8]) -> Option<Vec<u8>> {
        if self.delimiter.is_empty() {
            return None;
        }
        let rest = &key[self.prefix.len()..];
        let at = rest.windows(self.delimiter.len()).position(|part| part == self.delimiter)?;
        Some(key[..self.prefix.len() + at + self.delimiter.len()].to_owned())
    }
}

impl Page {
    /// The objects and the common prefixes, as the protocol has them.
    pub(super) fn split(self, encoding: Encoding) -> (Vec<ListedObject>, Vec<CommonPrefix>) {
        let (mut objects, mut prefixes) = (Vec::new(), Vec::new());
        for row in self.rows {
            match row {
                ListedEntry::Prefix(prefix) => prefixes.push(CommonPrefix { prefix: Some(encoding.text(&prefix)) }),
                ListedEntry::Key(key, version, object) => objects.push(ListedObject {
                    key: Some(encoding.text(&key)),
                    size: Some(object.size.cast_signed()),
                    e_tag: Some(ETag::Strong(object.etag.clone())),
                    last_modified: Some(Timestamp::from(version.modified)),
                    storage_class: Some(ObjectStorageClass::from(object.storage_class().to_owned())),
                    checksum_algorithm: algorithms(&object.checksum),
                    checksum_type: object.checksum.checksum_type.clone(),
                    ..ListedObject::default()
                }),
            }
        }
        (objects, prefixes)
    }
}

/// The names of algorithms, where there are any.
pub(super) fn algorithms(checksum: &Checksum) -> Option<Vec<ChecksumAlgorithm>> {
    let names: Vec<_> = checksum::algorithms(checksum).map(|one| ChecksumAlgorithm::from_static(one.name())).collect();
    (!names.is_empty()).then_some(names)
}

/// How keys are written in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    /// As forms are: a space is `+`. The characters that S3 leaves as they are were seen in its answers.
    Url,
}

impl Encoding {
    pub(super) fn of(requested: Option<&s3s::dto::EncodingType>) -> Self {
        if requested.is_some_and(|requested| requested.as_str() == "url") { Self::Url } else { Self::Plain }
    }

    pub(super) fn text(self, key: &[u8]) -> String {
        if self == Self::Plain {
            return String::from_utf8_lossy(key).into_owned();
        }
        let mut text = String::with_capacity(key.len());
        for &byte in key {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b'*' => text.push(byte.into()),
                b' ' => text.push('+'),
                _ => write!(text, "%{byte:02X}").expect("text is written to memory"),
            }
        }
        text
    }
}

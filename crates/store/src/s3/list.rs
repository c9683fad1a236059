//! Listings: pages of keys, decoded and checked, the next one on its way while one is read.

use std::collections::VecDeque;
use std::sync::Arc;

use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Output;
use aws_sdk_s3::types::{EncodingType, Object};
use futures::{StreamExt as _, stream};
use percent_encoding::percent_decode_str;
use tokio_util::task::AbortOnDropHandle;

use crate::error::{ErrorKind, Operation};
use crate::key::Key;
use crate::name::SpaceName;
use crate::s3::Inner;
use crate::s3::head::{tag, timestamp};
use crate::store::{Listed, Listing};

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Start {
    /// Behind a key of S3. A token of the service may expire while a page is worked on, a key does not.
    After(Option<String>),
    /// As the service says, for what follows a page without a key.
    Token(String),
}

enum Next {
    Start(Start),
    Ahead(AbortOnDropHandle<Result<ListObjectsV2Output, ErrorKind>>),
    End,
}

struct Cursor {
    inner: Arc<Inner>,
    space: SpaceName,
    /// What the keys of the space's objects begin with.
    root: String,
    /// What the keys of items begin with.
    prefix: Box<[u8]>,
    /// The key behind which the listing begins.
    after: Option<Key>,
    /// The last key that came.
    last: Option<Key>,
    items: VecDeque<Listed>,
    failure: Option<ErrorKind>,
    next: Next,
    is_first: bool,
}

pub(super) fn list(inner: Arc<Inner>, space: SpaceName, prefix: &[u8], after: Option<&Key>) -> Listing {
    let root = inner.location.space_prefix(&space);
    // Of keys behind one that is no text, those behind the part of it that is are requested.
    let start = after.map(|key| format!("{root}{}", text_of(key.as_bytes())));
    let cursor = Cursor {
        root,
        prefix: prefix.into(),
        after: after.cloned(),
        last: None,
        items: VecDeque::new(),
        failure: None,
        next: Next::Start(Start::After(start)),
        is_first: true,
        inner,
        space,
    };
    let items = stream::unfold(cursor, |mut cursor| async {
        let item = cursor.item().await?;
        let error = |kind| cursor.inner.error(Operation::List, &cursor.space, kind);
        let item = item.map_err(error);
        Some((item, cursor))
    });
    items.boxed()
}

fn text_of(bytes: &[u8]) -> &str {
    let length = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    std::str::from_utf8(&bytes[..length]).expect("valid up to there")
}

/// A name of a listing, as bytes: S3 writes a space as a plus sign there.
pub(super) fn decode(name: &str, is_encoded: bool) -> Vec<u8> {
    if is_encoded { percent_decode_str(&name.replace('+', " ")).collect() } else { name.as_bytes().to_vec() }
}

pub(super) fn without_continuation() -> ErrorKind {
    ErrorKind::Answer("a truncated listing page has no new continuation token".to_owned())
}

impl Cursor {
    async fn item(&mut self) -> Option<Result<Listed, ErrorKind>> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Some(Ok(item));
            }
            if let Some(kind) = self.failure.take() {
                self.next = Next::End;
                return Some(Err(kind));
            }
            let ahead = match std::mem::replace(&mut self.next, Next::End) {
                Next::Start(start) => self.fetch(start),
                Next::Ahead(ahead) => ahead,
                Next::End => return None,
            };
            let page = match ahead.await {
                Ok(page) => page,
                Err(error) => Err(ErrorKind::Unavailable(format!("the listing was ended: {error}"))),
            };
            match page {
                Ok(page) => self.take(&page).await,
                Err(kind) => self.failure = Some(kind),
            }
        }
    }

    /// Requests a page, at once and beside whatever else is going on.
    fn fetch(&self, start: Start) -> AbortOnDropHandle<Result<ListObjectsV2Output, ErrorKind>> {
        let inner = Arc::clone(&self.inner);
        let (space, prefix) = (self.space.clone(), format!("{}{}", self.root, text_of(&self.prefix)));
        AbortOnDropHandle::new(tokio::spawn(async move {
            let bucket = inner.location.bucket(&space)?;
            let send = || {
                let request = inner.client.list_objects_v2().bucket(&bucket).encoding_type(EncodingType::Url);
                let request = if prefix.is_empty() { request } else { request.prefix(&prefix) };
                match start.clone() {
                    Start::After(after) => request.set_start_after(after),
                    Start::Token(token) => request.continuation_token(token),
                }
                .send()
            };
            let answer = inner.call(inner.quick(Operation::List), send).await;
            answer.map_err(|failure| inner.missing_bucket(failure, false))
        }))
    }

    /// Takes what a page has, and requests the next one.
    async fn take(&mut self, page: &ListObjectsV2Output) {
        let is_encoded = page.encoding_type() == Some(&EncodingType::Url);
        for object in page.contents() {
            match self.listed(object, is_encoded) {
                Ok(item) => self.items.extend(item),
                Err(kind) => {
                    self.failure = Some(kind);
                    return;
                }
            }
        }
        if page.is_truncated() == Some(true) {
            let last = page.contents().last().and_then(|object| object.key());
            let last = last.and_then(|name| String::from_utf8(decode(name, is_encoded)).ok());
            let token = page.next_continuation_token().map(str::to_owned);
            let next = last.map(|key| Start::After(Some(key))).or(token.map(Start::Token));
            let Some(start) = next else {
                self.failure = Some(without_continuation());
                return;
            };
            self.next = Next::Ahead(self.fetch(start));
        } else if self.is_first && page.contents().is_empty() {
            self.failure = self.inner.require_space(Operation::List, &self.space).await.err();
        }
        self.is_first = false;
    }

    /// The item of an object; `None` where it is none of those that were requested.
    fn listed(&mut self, object: &Object, is_encoded: bool) -> Result<Option<Listed>, ErrorKind> {
        let wrong = |why: String| Err(ErrorKind::Answer(why));
        let Some(name) = object.key() else { return wrong("an object of the listing has no key".to_owned()) };
        let name = decode(name, is_encoded);
        let Some(key) = name.strip_prefix(self.root.as_bytes()) else {
            let name = name.escape_ascii().to_string();
            return wrong(format!("the listing has {name}, which does not begin with {}", self.root));
        };
        // The folder itself, as some tools make it: it has no name in the space.
        if key.is_empty() {
            return Ok(None);
        }
        let key = Key::new(key).map_err(|error| ErrorKind::Answer(error.to_string()))?;
        if let Some(last) = self.last.as_ref().filter(|last| **last >= key) {
            return wrong(format!("the listing has {key} after {last}, which is not in the order of their bytes"));
        }
        self.last = Some(key.clone());
        if let Some(after) = self.after.as_ref().filter(|after| **after >= key) {
            // Where that is no text, more was requested than was wanted.
            if after.as_str().is_none() {
                return Ok(None);
            }
            return wrong(format!("the listing has {key}, but only keys after {after} were requested"));
        }
        if !key.as_bytes().starts_with(&self.prefix) {
            return Ok(None);
        }
        let size = object.size().and_then(|size| u64::try_from(size).ok());
        let Some(size) = size else { return wrong(format!("the listing has no size of {key}")) };
        let modified = timestamp(object.last_modified())?;
        Ok(Some(Listed { key, size, modified, etag: object.e_tag().map(tag) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_listings_are_decoded_to_bytes() {
        assert_eq!(decode("a+b%2Bc%25zz%0A/%C3%A9", true), "a b+c%zz\n/é".as_bytes());
        assert_eq!(decode("a+b%2B", false), b"a+b%2B");
        assert_eq!(text_of(b"a\xc3\xa9\xff"), "aé");
        assert_eq!(text_of(b"\xff"), "");
    }
}

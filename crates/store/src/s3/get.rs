//! Reading: content whose body goes on where it broke off, as long as it is the same content.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use aws_sdk_s3::operation::get_object::GetObjectOutput;
use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;
use futures::{StreamExt as _, stream};

use crate::error::{ErrorKind, Operation};
use crate::retry::Attempts;
use crate::s3::Inner;
use crate::s3::failure::{Failure, chain};
use crate::s3::head::quoted;
use crate::s3::location::Object;
use crate::store::{Content, EntityTag, Item};

pub(super) async fn get(
    inner: &Arc<Inner>,
    item: &Item,
    range: Option<Range<u64>>,
    if_match: Option<&EntityTag>,
) -> Result<Content, ErrorKind> {
    let at = inner.object_to_read(item)?;
    if let Some(range) = range.as_ref().filter(|range| range.is_empty()) {
        return inner.nothing_of(item, &at, range.start, if_match).await;
    }
    let mut attempts = Attempts::new(inner.retry);
    let output = match inner.get_object(&mut attempts, &at, range.as_ref(), if_match).await {
        Ok(output) => output,
        Err(failure) if failure.is_not_found() => {
            inner.require_space(Operation::Get, &item.space).await?;
            return Err(ErrorKind::NotFound);
        }
        // Not every service says there how large the content is.
        Err(failure) if failure.status == Some(416) && failure.size.is_none() => {
            let headed = inner.head_object(Operation::Get, &at).await?;
            return Err(headed.map_or(ErrorKind::NotFound, |headed| ErrorKind::Range { size: headed.properties.size }));
        }
        Err(failure) => return Err(inner.missing_bucket(failure, false)),
    };
    let (sent, size) = sent(&output)?;
    let wanted = range.map_or(0..size, |range| range.start..range.end.min(size));
    if sent != wanted {
        let (sent, wanted) = (format!("{sent:?}"), format!("{wanted:?}"));
        return Err(ErrorKind::Answer(format!("bytes {sent} of {size} came, and {wanted} were requested")));
    }
    let properties = inner.properties_of_content(&output, size)?;
    // Some services ignore If-Match of a read.
    if if_match.is_some_and(|tag| *tag != properties.etag) {
        return Err(ErrorKind::Precondition);
    }
    let reader = Reader {
        inner: Arc::clone(inner),
        item: item.clone(),
        at,
        etag: properties.etag.clone(),
        rest: wanted,
        body: Some(output.body),
        attempts,
    };
    let chunks = stream::unfold(Some(reader), |reader| async {
        let mut reader = reader?;
        match reader.chunk().await {
            Ok(Some(chunk)) => Some((Ok(chunk), Some(reader))),
            Ok(None) => None,
            Err(kind) => {
                let error = reader.inner.error(Operation::Get, &reader.item, kind);
                Some((Err(io::Error::other(error)), None))
            }
        }
    });
    Ok(Content { properties, chunks: chunks.boxed() })
}

/// Which bytes an answer has, and how many there are in all.
fn sent(output: &GetObjectOutput) -> Result<(Range<u64>, u64), ErrorKind> {
    let wrong = || ErrorKind::Answer("the size or range of the content is missing or invalid".to_owned());
    let length = output.content_length().and_then(|length| u64::try_from(length).ok()).ok_or_else(wrong)?;
    let Some(range) = output.content_range() else { return Ok((0..length, length)) };
    let parsed = range.strip_prefix("bytes ").and_then(|range| {
        let (range, size) = range.split_once('/')?;
        let (start, last) = range.split_once('-')?;
        let (start, last): (u64, u64) = (start.parse().ok()?, last.parse().ok()?);
        Some((start..last.checked_add(1)?, size.parse().ok()?))
    });
    let (range, size): (Range<u64>, u64) = parsed.ok_or_else(wrong)?;
    let is_valid = range.start < range.end && range.end <= size && range.end - range.start == length;
    if is_valid { Ok((range, size)) } else { Err(wrong()) }
}

impl Inner {
    async fn get_object(
        &self,
        attempts: &mut Attempts,
        at: &Object,
        range: Option<&Range<u64>>,
        if_match: Option<&EntityTag>,
    ) -> Result<GetObjectOutput, Failure> {
        // A range header names its last byte, and no service takes one that no file has.
        let range = range.map(|range| match i64::try_from(range.end) {
            Ok(end) => format!("bytes={}-{}", range.start, end - 1),
            Err(_) => format!("bytes={}-", range.start),
        });
        let send = || {
            let request = self.client.get_object().bucket(&at.bucket).key(&at.key);
            let request = request.set_range(range.clone()).set_if_match(if_match.map(quoted));
            // As a header and not by the SDK's setting, which would compare the checksum: what is read is compared by
            // those who know what it should be, and a reader that is to see rot must get the bytes.
            let request = request.customize().mutate_request(|request| {
                request.headers_mut().insert("x-amz-checksum-mode", "ENABLED");
            });
            request.send()
        };
        self.call_within(attempts, self.quick(Operation::Get), send).await
    }

    /// The properties of an item of which no byte is wanted: a header cannot ask for that.
    async fn nothing_of(
        &self,
        item: &Item,
        at: &Object,
        start: u64,
        if_match: Option<&EntityTag>,
    ) -> Result<Content, ErrorKind> {
        let Some(headed) = self.head_object(Operation::Get, at).await? else {
            self.require_space(Operation::Get, &item.space).await?;
            return Err(ErrorKind::NotFound);
        };
        let properties = headed.properties;
        if if_match.is_some_and(|tag| *tag != properties.etag) {
            return Err(ErrorKind::Precondition);
        }
        if start > properties.size {
            return Err(ErrorKind::Range { size: properties.size });
        }
        Ok(Content { properties, chunks: stream::empty().boxed() })
    }
}

struct Reader {
    inner: Arc<Inner>,
    item: Item,
    at: Object,
    etag: EntityTag,
    /// The bytes that have not come yet.
    rest: Range<u64>,
    body: Option<ByteStream>,
    /// Those since the last byte came, of requests and of their bodies alike.
    attempts: Attempts,
}

impl Reader {
    async fn chunk(&mut self) -> Result<Option<Bytes>, ErrorKind> {
        loop {
            if self.rest.is_empty() {
                return Ok(None);
            }
            let mut body = match self.body.take() {
                Some(body) => body,
                None => self.go_on().await?,
            };
            self.attempts.begin();
            let limit = self.inner.timeouts.progress;
            let why = match tokio::time::timeout(limit, body.next()).await {
                Ok(Some(Ok(chunk))) => {
                    let bytes = chunk.len() as u64;
                    if bytes > self.rest.end - self.rest.start {
                        return Err(ErrorKind::Answer("more bytes came than were requested".to_owned()));
                    }
                    self.rest.start += bytes;
                    self.inner.metrics.read(bytes);
                    if bytes > 0 {
                        // What moves is not given up.
                        self.attempts = Attempts::new(self.inner.retry);
                    }
                    self.body = Some(body);
                    return Ok(Some(chunk));
                }
                Ok(None) => "the content ended early".to_owned(),
                Ok(Some(Err(error))) => format!("the content broke off: {}", chain(&error)),
                Err(_) => format!("no byte came within {} s", limit.as_secs_f32()),
            };
            let Some(wait) = self.attempts.after_failure(None) else {
                return Err(ErrorKind::Unavailable(format!(
                    "{why}, {} bytes before its end",
                    self.rest.end - self.rest.start
                )));
            };
            tracing::debug!(store = %self.inner.name, item = %self.item, error = %why, "resuming an interrupted read");
            tokio::time::sleep(wait).await;
            self.inner.metrics.retry(Operation::Get);
        }
    }

    /// The rest of the same content.
    async fn go_on(&mut self) -> Result<ByteStream, ErrorKind> {
        let Self { inner, at, rest, etag, attempts, .. } = self;
        let output = inner.get_object(attempts, at, Some(rest), Some(etag)).await;
        let output = output.map_err(|failure| {
            let has_changed = failure.is_precondition() || failure.is_not_found();
            if has_changed { ErrorKind::Precondition } else { failure.kind(false) }
        })?;
        let (range, _) = sent(&output)?;
        if range != self.rest {
            return Err(ErrorKind::Answer(format!("bytes {range:?} came, and {:?} were requested", self.rest)));
        }
        Ok(output.body)
    }
}

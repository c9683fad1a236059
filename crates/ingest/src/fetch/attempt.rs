//! One request for what is missing of a file.

use reqwest::header::{
    CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE, TRANSFER_ENCODING,
};
use reqwest::{Method, Response, StatusCode};

use super::connections::Purpose;
use super::hop::{Part, length, whole};
use super::{Expected, FetchCause, Fetcher, Sink};
use crate::url::ContentUrl;

pub(super) struct Attempt<'a> {
    pub(super) fetcher: &'a Fetcher,
    pub(super) url: &'a ContentUrl,
    pub(super) expected: &'a Expected,
    /// The entity tag or date of the content, from the attempt before.
    pub(super) validator: &'a mut Option<HeaderValue>,
    /// The host of the last redirect that was followed.
    pub(super) hop: &'a mut Option<String>,
}

impl Attempt<'_> {
    /// Requests what is missing; the answer is the media type. What has come is in the sink, whatever happens.
    pub(super) async fn run(self, sink: &mut Sink) -> Result<Option<String>, FetchCause> {
        let received = self.receive(sink).await;
        sink.settle().await.map_err(FetchCause::Disk)?;
        received
    }

    async fn receive(self, sink: &mut Sink) -> Result<Option<String>, FetchCause> {
        // Without either, two parts of different contents would go unnoticed.
        if sink.bytes() > 0 && self.validator.is_none() && self.expected.digests.is_empty() {
            sink.restart().await.map_err(FetchCause::Disk)?;
        }
        let offset = sink.bytes();
        if offset > 0 && self.expected.size == Some(offset) {
            return Ok(None);
        }
        let mut headers = HeaderMap::new();
        if offset > 0 {
            let range = HeaderValue::try_from(format!("bytes={offset}-")).expect("a number is a valid header");
            headers.insert(RANGE, range);
            headers.extend(self.validator.clone().map(|validator| (IF_RANGE, validator)));
        }
        let sent = self.fetcher.send(Purpose::Content, Method::GET, self.url, headers, self.hop);
        let (response, _connection) = sent.await?;
        let total = match (response.status(), offset) {
            (StatusCode::OK, _) => {
                if offset > 0 {
                    sink.restart().await.map_err(FetchCause::Disk)?;
                }
                length(response.headers())
            }
            (StatusCode::PARTIAL_CONTENT, 1..) => match Part::of(response.headers()) {
                Some(part) if part.start == offset => part.total,
                _ => return Err(FetchCause::Answer("the origin sent another part than requested")),
            },
            (StatusCode::PARTIAL_CONTENT, 0) => {
                return Err(FetchCause::Answer("the origin sent a part, although everything was requested"));
            }
            // There is nothing behind what came: it is all.
            (StatusCode::RANGE_NOT_SATISFIABLE, 1..) if whole(response.headers()) == Some(offset) => return Ok(None),
            (StatusCode::RANGE_NOT_SATISFIABLE, 1..) => {
                sink.restart().await.map_err(FetchCause::Disk)?;
                return Err(FetchCause::BrokenOff { at: 0, why: "the content has become shorter".to_owned() });
            }
            (status, _) => return Err(FetchCause::status(status, response.headers())),
        };
        *self.validator = validator(response.headers());
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        self.copy(response, total, sink).await?;
        Ok(media_type)
    }

    async fn copy(&self, mut response: Response, total: Option<u64>, sink: &mut Sink) -> Result<(), FetchCause> {
        if response.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            return Err(FetchCause::Answer("the origin sent compressed content, although it was not requested"));
        }
        let Expected { size, most_bytes, .. } = *self.expected;
        // What ends with the connection looks whole wherever it is cut.
        let is_delimited = total.is_some() || response.headers().contains_key(TRANSFER_ENCODING);
        if !is_delimited && size.is_none() {
            return Err(FetchCause::Answer("the origin does not show where the content ends; declare its size"));
        }
        match (size, total) {
            (Some(expected), Some(found)) if expected != found => return Err(FetchCause::Size { expected, found }),
            (None, Some(found)) if found > most_bytes => {
                return Err(FetchCause::TooLarge { most: most_bytes, found: Some(found) });
            }
            _ => {}
        }
        let announced = size.or(total).map_or(most_bytes, |bytes| bytes.saturating_add(bytes / 100));
        let limit = if size.is_some() { announced } else { announced.min(most_bytes) };
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if sink.bytes().saturating_add(chunk.len() as u64) > limit => {
                    return Err(FetchCause::TooLarge { most: limit, found: None });
                }
                Ok(Some(chunk)) => sink.write(chunk).await.map_err(FetchCause::Disk)?,
                Ok(None) => break,
                Err(error) => {
                    let why = match FetchCause::of(&error) {
                        FetchCause::Connection(why) => why,
                        other => return Err(other),
                    };
                    return Err(FetchCause::BrokenOff { at: sink.bytes(), why });
                }
            }
        }
        match total.or(size.filter(|_| !is_delimited)) {
            Some(total) if sink.bytes() < total => {
                Err(FetchCause::BrokenOff { at: sink.bytes(), why: format!("{total} were announced") })
            }
            _ => Ok(()),
        }
    }
}

/// What `If-Range` may have: a strong entity tag, else a date.
fn validator(headers: &HeaderMap) -> Option<HeaderValue> {
    let tag = headers.get(ETAG).filter(|tag| tag.as_bytes().starts_with(b"\""));
    tag.or_else(|| headers.get(LAST_MODIFIED)).cloned()
}

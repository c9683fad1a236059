//! Lists objects, in both forms.

use s3s::dto::{ListObjectsInput, ListObjectsOutput, ListObjectsV2Input, ListObjectsV2Output};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::{Backend, exchange_of};
use crate::s3::exchange::Exchange;
use crate::s3::listing::{Encoding, MOST_KEYS, Page, Query, Start};

/// How many keys a page may have.
pub(super) fn most(requested: Option<i32>) -> S3Result<usize> {
    let most = requested.unwrap_or(MOST_KEYS).min(MOST_KEYS);
    usize::try_from(most).map_err(|_| s3_error!(InvalidArgument, "maxKeys must not be negative"))
}

/// A text that came with the request, as it is given back.
pub(super) fn echoed(encoding: Encoding, text: Option<&String>) -> Option<String> {
    text.map(|text| encoding.text(text.as_bytes()))
}

impl Backend {
    fn page(&self, bucket: &str, exchange: &Exchange, query: Query) -> S3Result<Page> {
        let fault = exchange.page_fault();
        Ok(query.page(self.shared.state.lock().bucket(bucket)?, fault))
    }

    pub(super) fn list_objects_v2(
        &self,
        request: &S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let exchange = exchange_of(request);
        let input = request.input.clone();
        let encoding = Encoding::of(input.encoding_type.as_ref());
        let start = match (&input.continuation_token, &input.start_after) {
            (Some(token), _) => Start::parse(token)?,
            (None, Some(after)) => Start::After(after.clone().into_bytes()),
            (None, None) => Start::First,
        };
        let query = Query {
            prefix: input.prefix.clone().unwrap_or_default().into_bytes(),
            delimiter: input.delimiter.clone().unwrap_or_default().into_bytes(),
            start,
            most: most(input.max_keys)?,
        };
        let page = self.page(&input.bucket, &exchange, query)?;
        let next = page.next.as_ref().map(Start::token);
        let (objects, prefixes) = page.split(encoding);
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: Some(echoed(encoding, input.prefix.as_ref()).unwrap_or_default()),
            delimiter: echoed(encoding, input.delimiter.as_ref()),
            start_after: echoed(encoding, input.start_after.as_ref()),
            max_keys: Some(input.max_keys.unwrap_or(MOST_KEYS)),
            key_count: i32::try_from(objects.len() + prefixes.len()).ok(),
            continuation_token: input.continuation_token,
            is_truncated: Some(next.is_some()),
            next_continuation_token: next,
            contents: Some(objects),
            common_prefixes: Some(prefixes),
            encoding_type: input.encoding_type,
            request_charged: None,
        }))
    }

    pub(super) fn list_objects(
        &self,
        request: &S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        let exchange = exchange_of(request);
        let input = request.input.clone();
        let encoding = Encoding::of(input.encoding_type.as_ref());
        let mut query = Query {
            prefix: input.prefix.clone().unwrap_or_default().into_bytes(),
            delimiter: input.delimiter.clone().unwrap_or_default().into_bytes(),
            start: Start::First,
            most: most(input.max_keys)?,
        };
        if let Some(marker) = input.marker.as_ref().map(std::string::String::as_bytes) {
            // A common prefix that ended the page before is behind us with all its keys.
            let is_prefix = marker.starts_with(&query.prefix) && query.common_prefix(marker).as_deref() == Some(marker);
            let marker = marker.to_owned();
            query.start = if is_prefix { Start::AfterPrefix(marker) } else { Start::After(marker) };
        }
        let page = self.page(&input.bucket, &exchange, query)?;
        // Without a delimiter the client takes the last key (API reference, ListObjects).
        let next =
            page.next.as_ref().filter(|_| input.delimiter.is_some()).and_then(Start::key).map(|key| encoding.text(key));
        let is_truncated = Some(page.next.is_some());
        let (objects, prefixes) = page.split(encoding);
        Ok(S3Response::new(ListObjectsOutput {
            name: Some(input.bucket),
            prefix: Some(echoed(encoding, input.prefix.as_ref()).unwrap_or_default()),
            delimiter: echoed(encoding, input.delimiter.as_ref()),
            marker: Some(echoed(encoding, input.marker.as_ref()).unwrap_or_default()),
            max_keys: Some(input.max_keys.unwrap_or(MOST_KEYS)),
            is_truncated,
            next_marker: next,
            contents: Some(objects),
            common_prefixes: Some(prefixes),
            encoding_type: input.encoding_type,
            request_charged: None,
        }))
    }
}

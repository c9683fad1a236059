//! A file of an object as a download.

use std::io;

use axum::body::{Body, Bytes};
use axum::extract::State as FromState;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{Stream, StreamExt as _, stream};

use queuekeeper_ingest::contents::Opened;

use crate::views::objects::{FileName, OpenedFile};
use crate::web::http::attachment::{MEDIA_TYPE, POLICY, disposition};
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// A file, as it is sent.
#[derive(Debug)]
pub(super) struct Download(OpenedFile);

/// `GET /api/v1/objects/file`: the content of a file of an object, compared with its digest while it is sent.
///
/// The last part of the content is sent only when all of it has its digest: a response that ends early, with fewer
/// bytes than its `Content-Length`, is damaged or incomplete. `Repr-Digest` has the SHA-512. It is sent as an
/// attachment without its media type, and in one piece.
#[utoipa::path(
    get, path = "/objects/file",
    params(FileName),
    responses(
        (status = 200, body = Vec<u8>, content_type = MEDIA_TYPE),
        (status = 404, description = "There is no such object, version or file, or this server has no objects to read"),
    ),
)]
pub(super) async fn file(
    FromState(state): FromState<State>,
    Params(name): Params<FileName>,
) -> Result<Download, Problem> {
    Ok(Download(state.objects()?.open(&name).await?))
}

impl IntoResponse for Download {
    fn into_response(self) -> Response {
        let OpenedFile { file, opened: Opened { digest, content } } = self.0;
        let digest = format!("sha-512=:{}:", STANDARD.encode(digest.as_bytes()));
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE)),
            (header::CONTENT_LENGTH, HeaderValue::from(file.size_bytes)),
            (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
            (header::ACCEPT_RANGES, HeaderValue::from_static("none")),
        ];
        let mut response = (headers, Body::from_stream(held_back(content.chunks, file.path.clone()))).into_response();
        // Both are ASCII by how they are made.
        if let Ok(value) = HeaderValue::from_str(&disposition(&file.path)) {
            response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
        }
        if let Ok(value) = HeaderValue::from_str(&digest) {
            response.headers_mut().insert("repr-digest", value);
        }
        response
    }
}

/// The same chunks, each when the next one has come without an error: no client gets all bytes of content that is
/// damaged.
fn held_back(
    chunks: impl Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static,
    path: String,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let state = Some((chunks, None::<Bytes>, path));
    let chunks = stream::unfold(state, |state| async move {
        let (mut chunks, mut held, path) = state?;
        loop {
            match chunks.next().await {
                // An empty one would be sent as nothing.
                Some(Ok(chunk)) if chunk.is_empty() => {}
                Some(Ok(chunk)) => {
                    if let Some(before) = held.replace(chunk) {
                        return Some((Ok(before), Some((chunks, held, path))));
                    }
                }
                Some(Err(error)) => {
                    tracing::error!(path, "a download ends early: {error}");
                    return Some((Err(error), None));
                }
                None => return held.map(|last| (Ok(last), None)),
            }
        }
    });
    // A body may be polled again after its end, which a stream of this kind does not take.
    chunks.fuse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_chunk_comes_only_when_nothing_is_wrong() {
        let chunk = |text: &'static str| Ok(Bytes::from_static(text.as_bytes()));
        let all = async |chunks: Vec<io::Result<Bytes>>| {
            let sent = held_back(stream::iter(chunks), "a".to_owned()).collect::<Vec<_>>().await;
            sent.into_iter().map(|chunk| chunk.map_err(|error| error.to_string())).collect::<Vec<_>>()
        };
        let sound = all(vec![chunk("a"), chunk(""), chunk("b"), chunk("")]).await;
        assert_eq!(sound, [Ok("a".into()), Ok("b".into())]);
        let damaged = all(vec![chunk("a"), chunk("b"), Err(io::Error::other("damaged"))]).await;
        assert_eq!(damaged, [Ok("a".into()), Err("damaged".to_owned())]);
        assert!(all(Vec::new()).await.is_empty());
    }
}

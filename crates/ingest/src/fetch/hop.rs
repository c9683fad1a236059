//! Requests, and the redirects that answer them.

use reqwest::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, HeaderValue, LOCATION, RANGE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use url::Url;

use super::connections::{Connection, Purpose};
use super::{FetchCause, Fetcher};
use crate::url::{ContentUrl, MOST_BYTES};

/// How many redirects are followed.
const MOST_REDIRECTS: u32 = 5;

/// How much of the answer of a service is read, in bytes.
const MOST_ANSWER_BYTES: usize = 64 << 10;

impl Fetcher {
    /// Sends a request, and follows redirects, each of which is checked as the first URL. Credentials go to the host
    /// that they are for, and to no other one. The connection is kept until the answer was read. `hop` is set to the
    /// host of the last redirect, whatever becomes of the request.
    pub(super) async fn send(
        &self,
        purpose: Purpose,
        method: Method,
        url: &ContentUrl,
        headers: HeaderMap,
        hop: &mut Option<String>,
    ) -> Result<(Response, Connection), FetchCause> {
        if url.is_file() {
            return Err(FetchCause::LocalFile);
        }
        let mut at = url.reveal().clone();
        for _ in 0..=MOST_REDIRECTS {
            self.guard.check(&at)?;
            let mut request = self.client.request(method.clone(), at.clone()).headers(headers.clone());
            // Content is kept as it is, and its size and digest are those of its bytes.
            request = request.header(ACCEPT_ENCODING, "identity");
            if let Some(login) = self.credentials.login(&at) {
                request = request.basic_auth(login.username(), Some(login.reveal_password()));
            }
            let (host, limits) = (host(&at), self.settings.hosts);
            let connection = self.hosts.connections.connect(&self.kept, purpose, &host, limits).await?;
            let response = self.exchange(&method, &at, request).await?;
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok((response, connection));
            }
            let to = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
            let to = to.ok_or(FetchCause::Redirect("the origin redirects without a location"))?;
            at = at.join(to).map_err(|_| FetchCause::Redirect("the origin redirects to an invalid URL"))?;
            *hop = at.host_str().map(|name| at.port().map_or(name.to_owned(), |port| format!("{name}:{port}")));
            if at.as_str().len() > MOST_BYTES {
                return Err(FetchCause::Redirect("the origin redirects to a URL that is longer than 16384 bytes"));
            }
        }
        Err(FetchCause::Redirect("the origin redirects more than 5 times"))
    }

    /// Sends content to a service, without following redirects, and gives the status and the beginning of the answer.
    pub(super) async fn send_content(
        &self,
        method: Method,
        url: &ContentUrl,
        headers: HeaderMap,
        content: String,
    ) -> Result<(StatusCode, HeaderMap, String), FetchCause> {
        if url.is_file() {
            return Err(FetchCause::LocalFile);
        }
        let at = url.reveal();
        self.guard.check(at)?;
        let mut request = self.client.request(method.clone(), at.clone()).headers(headers).body(content);
        if let Some(login) = self.credentials.login(at) {
            request = request.basic_auth(login.username(), Some(login.reveal_password()));
        }
        let mut response = self.exchange(&method, at, request).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut answer = Vec::new();
        while answer.len() < MOST_ANSWER_BYTES {
            match response.chunk().await.map_err(|error| FetchCause::of(&error))? {
                Some(chunk) => answer.extend_from_slice(&chunk),
                None => break,
            }
        }
        answer.truncate(MOST_ANSWER_BYTES);
        Ok((status, headers, String::from_utf8_lossy(&answer).into_owned()))
    }

    /// Sends one request, unless its host is away; whether it answers is remembered.
    async fn exchange(&self, method: &Method, at: &Url, request: RequestBuilder) -> Result<Response, FetchCause> {
        let ticket = self.hosts.enter(host(at), self.settings.hosts)?;
        match request.send().await {
            Ok(response) => {
                let cause = FetchCause::status(response.status(), response.headers());
                // Some programs know no `HEAD`, and answer it with whatever error they have.
                if !cause.is_of_host() {
                    ticket.answered();
                } else if *method != Method::HEAD {
                    ticket.failed(&cause);
                }
                Ok(response)
            }
            Err(error) => {
                let cause = FetchCause::of(&error);
                // One that was refused says nothing of it.
                if cause.is_of_host() {
                    ticket.failed(&cause);
                }
                Err(cause)
            }
        }
    }

    pub(super) async fn ask_size(&self, url: &ContentUrl, hop: &mut Option<String>) -> Result<Option<u64>, FetchCause> {
        let (head, connection) = self.send(Purpose::Size, Method::HEAD, url, HeaderMap::new(), hop).await?;
        drop(connection);
        if head.status().is_success()
            && let Some(size) = length(head.headers())
        {
            return Ok(Some(size));
        }
        // Presigned URLs are signed for one method, and programs behind others know no `HEAD`.
        if head.status().is_server_error() && head.status() != StatusCode::NOT_IMPLEMENTED {
            return Err(FetchCause::status(head.status(), head.headers()));
        }
        let first = HeaderMap::from_iter([(RANGE, HeaderValue::from_static("bytes=0-0"))]);
        *hop = None;
        let (get, _connection) = self.send(Purpose::Size, Method::GET, url, first, hop).await?;
        match get.status() {
            StatusCode::PARTIAL_CONTENT => Ok(Part::of(get.headers()).and_then(|part| part.total)),
            // There is no first byte.
            StatusCode::RANGE_NOT_SATISFIABLE => Ok(Some(0)),
            status if status.is_success() => Ok(length(get.headers())),
            status => Err(FetchCause::status(status, get.headers())),
        }
    }
}

/// The host of a URL with its port.
fn host(url: &Url) -> String {
    format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default())
}

/// The length of a body as its header says.
pub(super) fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The length of all by an answer that brings no part: `Content-Range: bytes */TOTAL`.
pub(super) fn whole(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes */")?.parse().ok()
}

/// The part of the content that an answer brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) start: u64,
    pub(super) total: Option<u64>,
}

impl Part {
    /// By `Content-Range: bytes START-END/TOTAL`.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let (range, total) = headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?.split_once('/')?;
        let start = range.split_once('-')?.0.parse().ok()?;
        Some(Self { start, total: if total == "*" { None } else { Some(total.parse().ok()?) } })
    }
}

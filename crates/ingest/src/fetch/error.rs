//! Why a file was not fetched.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::{Duration, SystemTime};

use queuekeeper_store::Digest;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::url::{ContentUrl, Refusal};

/// The longest wait that an origin may request.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// A file was not fetched: one sentence, without the URL's query.
#[derive(Debug)]
pub struct FetchError {
    url: String,
    /// The host that it was redirected to.
    hop: Option<String>,
    cause: FetchCause,
    attempts: u32,
}

/// What stands in the way.
#[derive(Debug, thiserror::Error)]
pub enum FetchCause {
    /// It must not be requested.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// It lies on this machine, and no origin has it.
    #[error("it is a local file")]
    LocalFile,
    /// The origin answers with an error.
    #[error("the origin answers {status}")]
    Status {
        /// The status.
        status: StatusCode,
        /// For how long it wants no request.
        retry_after: Option<Duration>,
    },
    /// The origin redirects to something that is no URL, or too often.
    #[error("{0}")]
    Redirect(&'static str),
    /// The host has failed so often that no request is sent to it for a while.
    #[error(
        "{host} failed {failures} requests in a row, the last one with: {why}; no further request is sent to it for {} s",
        wait.as_secs().max(1)
    )]
    Away {
        /// The host with its port.
        host: String,
        /// How many requests.
        failures: u32,
        /// What the last one failed by.
        why: String,
        /// For how long.
        wait: Duration,
    },
    /// All connections that the host gets are in use.
    #[error("all connections to {host} are in use (at most {connections})")]
    Busy {
        /// The host with its port.
        host: String,
        /// How many there are.
        connections: usize,
    },
    /// There is no connection, or it broke off.
    #[error("{0}")]
    Connection(String),
    /// The content broke off.
    #[error("the content broke off after {at} bytes: {why}")]
    BrokenOff {
        /// How many bytes there are.
        at: u64,
        /// What happened.
        why: String,
    },
    /// The origin does not send what was requested.
    #[error("{0}")]
    Answer(&'static str),
    /// There is more than may be.
    #[error("the content has more than {most} bytes, the amount that was announced or allowed")]
    TooLarge {
        /// How many there may be.
        most: u64,
        /// How many there are, where the origin says it.
        found: Option<u64>,
    },
    /// The size is another one.
    #[error("expected {expected} bytes, found {found}")]
    Size {
        /// What was announced.
        expected: u64,
        /// What there is.
        found: u64,
    },
    /// The digest is another one.
    #[error("expected the {} digest {expected}, found {found}", expected.algorithm())]
    Digest {
        /// What was announced.
        expected: Digest,
        /// What there is.
        found: Digest,
    },
    /// It cannot be written.
    #[error("cannot write it: {0}")]
    Disk(io::Error),
}

impl FetchError {
    pub(super) fn new(url: &ContentUrl, cause: FetchCause, attempts: u32) -> Self {
        Self { url: url.to_string(), hop: None, cause, attempts }
    }

    /// The same behind a redirect to a host, where there was one.
    pub(super) fn behind(self, hop: Option<String>) -> Self {
        Self { hop, ..self }
    }

    /// What stands in the way.
    #[must_use]
    pub fn cause(&self) -> &FetchCause {
        &self.cause
    }

    /// Whether another attempt may succeed by itself. [`FetchCause::Disk`] is not temporary here, but no fault of the
    /// deposit either: the daemon keeps the job and reports the disk.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match &self.cause {
            FetchCause::Connection(_)
            | FetchCause::BrokenOff { .. }
            | FetchCause::Away { .. }
            | FetchCause::Busy { .. } => true,
            FetchCause::Status { status, .. } => {
                status.is_server_error()
                    || matches!(
                        *status,
                        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
                    )
            }
            FetchCause::Refused(_)
            | FetchCause::LocalFile
            | FetchCause::Redirect(_)
            | FetchCause::Answer(_)
            | FetchCause::TooLarge { .. }
            | FetchCause::Size { .. }
            | FetchCause::Digest { .. }
            | FetchCause::Disk(_) => false,
        }
    }

    /// The host with its port, as the URL names it.
    #[must_use]
    pub fn host(&self) -> &str {
        let behind = self.url.split_once("://").map_or(&*self.url, |(_, behind)| behind);
        behind.split(['/', '?', '#']).next().unwrap_or_default()
    }

    /// Whether it says something of the host, and so of all its files.
    #[must_use]
    pub fn is_of_host(&self) -> bool {
        matches!(self.cause, FetchCause::Away { .. } | FetchCause::Busy { .. }) || self.cause.is_of_host()
    }

    /// What went wrong, without the URL: of a host to which no request is sent any more, what the last one failed by.
    #[must_use]
    pub fn reason(&self) -> String {
        let why = match &self.cause {
            FetchCause::Away { why, .. } => why.clone(),
            cause => cause.to_string(),
        };
        self.hop.as_ref().map_or_else(|| why.clone(), |hop| format!("redirected to {hop}: {why}"))
    }

    /// For how long the origin wants no request.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.cause {
            FetchCause::Status { retry_after, .. } => *retry_after,
            FetchCause::Away { wait, .. } => Some(*wait),
            _ => None,
        }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "cannot fetch {}: ", self.url)?;
        if let Some(hop) = &self.hop {
            write!(to, "redirected to {hop}: ")?;
        }
        write!(to, "{}", self.cause)?;
        // An attempt is the job's, which may make several requests.
        match self.attempts {
            0 | 1 => Ok(()),
            requests => write!(to, ", after {requests} requests"),
        }
    }
}

impl Error for FetchError {}

impl FetchCause {
    /// What a request failed by.
    pub(super) fn of(error: &reqwest::Error) -> Self {
        let mut innermost: &dyn Error = error;
        while let Some(inner) = innermost.source() {
            innermost = inner;
            if let Some(refusal) = inner.downcast_ref::<Refusal>() {
                return Self::Refused(refusal.clone());
            }
        }
        // The outer ones repeat the URL, with its query.
        let why = if error.is_timeout() { "it took too long".to_owned() } else { innermost.to_string() };
        Self::Connection(why)
    }

    /// Whether it says something of the host, and not of one of its files.
    pub(super) fn is_of_host(&self) -> bool {
        match self {
            Self::Connection(_) => true,
            // 500 may be of one file, and 501 of the method.
            Self::Status { status, .. } => matches!(
                *status,
                StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            ),
            _ => false,
        }
    }

    /// An answer that is no content.
    pub(super) fn status(status: StatusCode, headers: &HeaderMap) -> Self {
        Self::Status { status, retry_after: retry_after(headers, SystemTime::now()) }
    }
}

/// Seconds or a date (RFC 9110, 10.2.3).
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn an_origin_says_in_two_ways_how_long_to_wait() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        for (text, seconds) in [
            ("120", Some(120)),
            ("0", Some(0)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:40:37 GMT", Some(0)),
            ("18446744073709551615", Some(24 * 3600)),
            ("99999999999999999999", None),
            ("soon", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]);
            assert_eq!(retry_after(&headers, now).map(|wait| wait.as_secs()), seconds, "{text}");
        }
    }
}

//! What a request failed with, in words that say what to change.

use std::error::Error as StdError;
use std::time::{Duration, SystemTime};

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};

use crate::error::ErrorKind;

/// How long a server's own words may be, in characters.
const MOST_WORDS: usize = 200;

/// The code of an answer that no S3 service gives.
const NO_S3: &str = "web page";

/// A request that failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The HTTP status, where an answer came.
    pub(super) status: Option<u16>,
    /// S3's code; empty where there is none.
    pub(super) code: String,
    /// One line, with what to do.
    pub(super) text: String,
    pub(super) repeat: Repeat,
    /// Whether it, or one that it repeated, may have been done nevertheless.
    pub(super) may_be_done: bool,
    /// The wait that the store requests before the next request.
    pub(super) retry_after: Option<Duration>,
    /// The size of the whole content, where the answer has it.
    pub(super) size: Option<u64>,
}

/// Whether the same request may succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Not before something is changed.
    Never,
    /// The connection or the service failed.
    Transient,
    /// There were too many requests.
    Busy,
}

/// What requests are sent to, for messages.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The endpoint.
    pub(super) endpoint: String,
    /// The bucket or buckets.
    pub(super) location: String,
}

impl Failure {
    pub(super) fn timed_out(target: &Target, limit: Duration) -> Self {
        let text = format!("no answer from {} within {} s", target.endpoint, limit.as_secs_f32());
        Self::unanswered(text, true)
    }

    /// Why no answer came, in a few words in brackets.
    pub(super) fn brief(&self) -> String {
        match self.status {
            Some(status) => format!(" (status {status})"),
            None if self.text.contains("refuses connections") => " (connection refused)".to_owned(),
            None if self.text.contains("host name") => " (its host name is not found)".to_owned(),
            None if self.text.starts_with("no answer came") => String::new(),
            None => " (the connection failed)".to_owned(),
        }
    }

    fn unanswered(text: String, may_be_done: bool) -> Self {
        let (status, code, repeat) = (None, String::new(), Repeat::Transient);
        Self { status, code, text, repeat, may_be_done, retry_after: None, size: None }
    }

    pub(super) fn of<E>(error: &SdkError<E>, target: &Target) -> Self
    where
        E: ProvideErrorMetadata + StdError + 'static,
    {
        let chain = chain(error);
        match error {
            SdkError::ServiceError(context) => {
                let (code, words) = (context.err().code(), context.err().message());
                Self::answered(context.raw(), code.unwrap_or_default(), words.unwrap_or_default(), target)
            }
            SdkError::ResponseError(context) => {
                let status = context.raw().status().as_u16();
                if (200..300).contains(&status) && !is_markup(context.raw()) {
                    let text = format!("the answer of {} was interrupted or cannot be read: {chain}", target.endpoint);
                    return Self { status: Some(status), ..Self::unanswered(text, true) };
                }
                Self::answered(context.raw(), "", "", target)
            }
            SdkError::DispatchFailure(_) => Self::undelivered(&chain, target),
            _ => Self { repeat: Repeat::Never, ..Self::undelivered(&chain, target) },
        }
    }

    /// A request without an answer.
    fn undelivered(chain: &str, target: &Target) -> Self {
        let endpoint = &target.endpoint;
        let low = chain.to_ascii_lowercase();
        let has = |part: &str| low.contains(part);
        let never = |text: String| Self { repeat: Repeat::Never, ..Self::unanswered(text, false) };
        if has("credential") || has("identity") {
            return never(format!("no credentials: set credentials_file, or the variables of AWS's tools ({chain})"));
        }
        if has("invalid peer certificate") || has("unknownissuer") {
            let why = if has("causedasendentity") {
                "is that of a CA; give the server one that the CA has issued, and set ca_file to the CA's"
            } else if has("not valid for name") || has("notvalidforname") {
                "is for another name; set endpoint to a name that it has, or give the server one for this name"
            } else if has("expired") || has("notvalidyet") || has("not valid yet") {
                "is not valid at this time; renew it, or set this machine's clock"
            } else {
                "is not trusted; set ca_file to that of the CA which issued it, not to the server's own"
            };
            return never(format!("the certificate of {endpoint} {why} ({chain})"));
        }
        if has("invalidcontenttype") || has("corrupt message") || has("wrong version number") {
            return never(format!("{endpoint} does not use TLS; use http:// or the port for https ({chain})"));
        }
        if has("invalid http version") {
            return never(format!(
                "{endpoint} does not use plain HTTP; if that is its port for TLS, use https:// ({chain})"
            ));
        }
        if has("dns error") || has("failed to lookup") || has("name or service not known") {
            let text = format!("the host name of {endpoint} is not found; check endpoint and DNS ({chain})");
            return Self::unanswered(text, false);
        }
        if has("connection refused") {
            return Self::unanswered(format!("{endpoint} refuses connections; check its address and port"), false);
        }
        let was_sent = !has("error (connect)") && !has("connect timeout");
        let has_broken_off = ["closed before message", "incomplete", "reset by peer", "eof", "close_notify"].map(has);
        let hint = match has_broken_off.contains(&true) {
            true if endpoint.starts_with("http://") => "; if that is its port for https, use https://",
            true if endpoint.starts_with("https://") => "; if that is its port for http, use http://",
            _ => "",
        };
        Self::unanswered(format!("the connection to {endpoint} failed: {chain}{hint}"), was_sent)
    }

    /// A request with an answer that is an error.
    fn answered(raw: &HttpResponse, code: &str, words: &str, target: &Target) -> Self {
        let status = raw.status().as_u16();
        let header = |name: &str| raw.headers().get(name);
        let code = if code.is_empty() && is_markup(raw) { NO_S3 } else { code };
        let repeat = match (status, code) {
            (
                _,
                "SlowDown"
                | "SlowDownRead"
                | "SlowDownWrite"
                | "TooManyRequests"
                | "Throttling"
                | "RequestLimitExceeded",
            )
            | (429 | 503, _) => Repeat::Busy,
            // A concurrent change of the same object, or a body that came too slowly.
            (_, "OperationAborted" | "ConditionalRequestConflict" | "RequestTimeout" | "InternalError")
            | (408 | 500 | 502 | 504, _) => Repeat::Transient,
            _ => Repeat::Never,
        };
        let size = header("content-range").and_then(|range| range.rsplit('/').next()?.parse().ok());
        Self {
            status: Some(status),
            code: code.to_owned(),
            text: Self::explain(raw, code, words, target),
            repeat,
            may_be_done: matches!(status, 500 | 502 | 504) || (200..300).contains(&status),
            retry_after: header("retry-after").and_then(|text| retry_after(text, header("date"))),
            size,
        }
    }

    fn explain(raw: &HttpResponse, code: &str, words: &str, target: &Target) -> String {
        let Target { endpoint, location } = target;
        let status = raw.status().as_u16();
        match code {
            "InvalidAccessKeyId" => format!("{endpoint} does not know the access key; check the credentials"),
            "SignatureDoesNotMatch" => {
                format!("{endpoint} does not accept the signature; check the secret of the access key, and the region")
            }
            "AuthorizationHeaderMalformed" => {
                format!("{endpoint} does not accept the signature; set region to the bucket's{}", region(raw))
            }
            "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" => {
                "the session token has expired or is invalid; renew the credentials".to_owned()
            }
            "RequestTimeTooSkewed" => "this machine's clock differs from the service's; set it by NTP".to_owned(),
            "AccessDenied" | "AllAccessDisabled" | "AccountProblem" | "MethodNotAllowed" => {
                format!("access to {location} is denied; grant it to these credentials ({})", say(code, words))
            }
            "NoSuchBucket" => {
                format!("the bucket of {location} does not exist at {endpoint}; create it, or correct url")
            }
            "PermanentRedirect" | "TemporaryRedirect" | "IllegalLocationConstraintException" => {
                format!("the bucket of {location} is in another region; set region{}", region(raw))
            }
            "InvalidStorageClass" => "the service does not know the storage class; correct storage_class".to_owned(),
            "InvalidBucketName" => {
                format!("the service does not accept the name of the bucket of {location}; correct url")
            }
            NO_S3 if is_wrong_scheme(raw) => format!("{endpoint} is a port for https; use https:// (status {status})"),
            NO_S3 => {
                format!(
                    "{endpoint} answers with a web page (status {status}), so it is not an S3 service; correct endpoint"
                )
            }
            "" => match status {
                301 | 307 => {
                    format!("the bucket of {location} is in another region or at another address{}", region(raw))
                }
                401 | 403 => {
                    format!("access to {location} is denied (status {status}); check the credentials and permissions")
                }
                400 => format!(
                    "{endpoint} does not accept the request (status 400); check the credentials, region, and whether it wants \
                     https://"
                ),
                404 => "there is no such item".to_owned(),
                _ => format!("{endpoint} answers with status {status} and no reason"),
            },
            _ => format!("{endpoint} answers {} (status {status})", say(code, words)),
        }
    }

    /// As an operation fails with it that changes something (`is_change`) or not.
    pub(super) fn kind(self, is_change: bool) -> ErrorKind {
        if is_change && self.may_be_done {
            // Also where the condition does not hold any more: what was written may be this.
            return ErrorKind::Unknown(self.text);
        }
        if self.is_precondition() {
            return ErrorKind::Precondition;
        }
        match (self.status, self.code.as_str()) {
            (_, "NoSuchKey") | (Some(404), "") => return ErrorKind::NotFound,
            (Some(416), _) => return ErrorKind::Range { size: self.size.unwrap_or(0) },
            (_, "BucketNotEmpty") => return ErrorKind::NotEmpty,
            (_, "InvalidObjectState") => return ErrorKind::Archived,
            (Some(507), _) | (_, "QuotaExceeded" | "InsufficientStorage" | "XMinioStorageFull") => {
                return ErrorKind::Full;
            }
            (_, "KeyTooLongError" | "MetadataTooLarge" | "EntityTooLarge" | "NotImplemented" | "InvalidBucketName") => {
                return ErrorKind::Unsupported(self.text);
            }
            _ => {}
        }
        match (self.repeat, self.status) {
            (Repeat::Never, Some(200..300)) => ErrorKind::Answer(self.text),
            (Repeat::Never, _) => ErrorKind::Refused(self.text),
            (Repeat::Transient | Repeat::Busy, _) => ErrorKind::Unavailable(self.text),
        }
    }

    pub(super) fn is_clock_wrong(&self) -> bool {
        self.code == "RequestTimeTooSkewed"
    }

    pub(super) fn is_bucket_missing(&self) -> bool {
        self.code == "NoSuchBucket"
    }

    pub(super) fn is_not_found(&self) -> bool {
        self.code == "NoSuchKey" || self.code == "NotFound" || (self.status == Some(404) && self.code.is_empty())
    }

    pub(super) fn is_precondition(&self) -> bool {
        self.status == Some(412) || self.code == "PreconditionFailed"
    }
}

/// The wait that `Retry-After` requests (RFC 9110, 10.2.3): seconds, or a time, which is read by the service's own
/// clock where the answer has its `Date`.
fn retry_after(text: &str, date: Option<&str>) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(text.trim()).ok()?;
    let now = date.and_then(|date| httpdate::parse_http_date(date.trim()).ok()).unwrap_or_else(SystemTime::now);
    Some(until.duration_since(now).unwrap_or_default())
}

/// Where an answer names the region that the bucket is in.
fn region(raw: &HttpResponse) -> String {
    let is_plain =
        |name: &&str| name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let named = raw.headers().get("x-amz-bucket-region").filter(is_plain);
    named.map(|name| format!(", which is {name}")).unwrap_or_default()
}

/// Whether a server says that it was spoken to without TLS, as nginx, Apache and Go's do.
fn is_wrong_scheme(raw: &HttpResponse) -> bool {
    let body = raw.body().bytes().unwrap_or_default();
    let text = String::from_utf8_lossy(&body[..body.len().min(2000)]).to_ascii_lowercase();
    raw.status().as_u16() == 400 && ["https port", "https server", "ssl-enabled"].iter().any(|part| text.contains(part))
}

/// Whether an answer is a page for people: S3's are XML, or empty.
fn is_markup(raw: &HttpResponse) -> bool {
    let is_html = |kind: &str| kind.trim_start().to_ascii_lowercase().starts_with("text/");
    let body = raw.body().bytes().unwrap_or_default().trim_ascii_start();
    let begins_so = body.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"<html"))
        || body.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"<!doctype"));
    begins_so
        || !body.is_empty()
            && raw.headers().get("content-type").is_some_and(|kind| is_html(kind) && !body.starts_with(b"<?xml"))
}

/// The service's own words, on one line.
fn say(code: &str, words: &str) -> String {
    let plain =
        |text: &str| text.chars().take(MOST_WORDS).map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    if words.is_empty() { plain(code) } else { format!("{}: {}", plain(code), plain(words)) }
}

/// The causes of an error, from the outermost one, on one line.
pub(super) fn chain(error: &dyn StdError) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if causes.last() != Some(&text) {
            causes.push(text);
        }
        next = cause.source();
    }
    if causes.is_empty() {
        causes.push(error.to_string());
    }
    say(&causes.join(": "), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requested_wait_comes_in_seconds_or_as_a_time_by_the_clock_of_the_service() {
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        let seconds = |text: &str| retry_after(text, date).map(|wait| wait.as_secs());
        assert_eq!(seconds(" 120 "), Some(120));
        for later in ["Sun, 06 Nov 1994 08:51:07 GMT", "Sunday, 06-Nov-94 08:51:07 GMT", "Sun Nov  6 08:51:07 1994"] {
            assert_eq!(seconds(later), Some(90), "{later}");
        }
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:36 GMT"), Some(0));
        assert_eq!(["", "-1", "1.5", "soon", "18446744073709551616"].map(seconds), [None; 5]);
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        assert!(retry_after(&soon, None).is_some_and(|wait| (90..=100).contains(&wait.as_secs())));
    }
}

//! Protection against cross-site request forgery.
//!
//! A browser attaches credentials and its network position to every request, whichever page makes it. So a request that
//! may change something must show that no page of another site made it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State as FromState};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::address::ConnectionAddresses;
use super::auth::{Credentials, LOGIN_REQUIRED};
use super::context::HttpContext;
use super::host::Hosts;
use super::layers;
use super::problem::Problem;
use crate::web::routes::{API_ROOT, DEPOSITS, FAILED, STORE_EVENTS, WITHDRAW};

/// The relation between the requesting page and this server; browsers send it over trustworthy connections (Fetch
/// Metadata).
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The page or program that made a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestSource {
    /// A page of this server, or a program with credentials of its own.
    Trusted,
    /// A page of another site.
    CrossSite,
    /// There is no such header, and no credentials are sent that a page of another site could not send.
    Unknown,
}

/// Passes requests that change nothing, and those others that no page of another site made.
pub(in crate::web) async fn check(
    FromState(context): FromState<Arc<HttpContext>>,
    request: Request,
    next: Next,
) -> Response {
    match refusal(&context, &request) {
        None => next.run(request).await,
        Some(problem) => problem.refuse(),
    }
}

/// Why a request is refused.
fn refusal(context: &HttpContext, request: &Request) -> Option<Problem> {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return None;
    }
    let local = request.extensions().get::<ConnectionAddresses>().map(|addresses| addresses.local);
    let is_tls = context.web_file().is_some_and(|file| file.tls().is_some());
    match request_source(request.headers(), &context.server.hosts, local, is_tls) {
        RequestSource::Trusted => wrong_content_type(context, request),
        RequestSource::CrossSite => Some(Problem::new(
            StatusCode::FORBIDDEN,
            "Cross-site request refused. Use a page of this server, at an address that it listens on or at the one that \
             --web.external-url names.",
        )),
        RequestSource::Unknown if context.has_users() => Some(context.challenge(LOGIN_REQUIRED)),
        RequestSource::Unknown => Some(Problem::new(
            StatusCode::FORBIDDEN,
            "Cannot rule out a cross-site request: it has neither credentials nor Sec-Fetch-Site nor Origin. Send a \
             token, or the header Sec-Fetch-Site: none.",
        )),
    }
}

fn request_source(headers: &HeaderMap, hosts: &Hosts, local: Option<SocketAddr>, is_tls: bool) -> RequestSource {
    let one = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        let first = values.next();
        // A repeated header counts as cross-site.
        first.map(|first| if values.next().is_some() { "" } else { first.to_str().unwrap_or_default() })
    };
    match (one(&SITE), one(&header::ORIGIN)) {
        (Some("same-origin" | "none"), _) => RequestSource::Trusted,
        (None, Some(origin)) if hosts.has_origin(origin, headers.get(header::HOST), local, is_tls) => {
            RequestSource::Trusted
        }
        (Some(_), _) | (None, Some(_)) => RequestSource::CrossSite,
        // Every browser sends one of the two with a request that may change something.
        (None, None) if Credentials::read(headers).is_some() => RequestSource::Trusted,
        (None, None) => RequestSource::Unknown,
    }
}

/// The refusal of a body of another type than the route takes. No form of another site can send the type that the API
/// takes.
fn wrong_content_type(context: &HttpContext, request: &Request) -> Option<Problem> {
    if !matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH) {
        return None;
    }
    if layers::uploads(context, request) {
        let is_form = *request.method() == Method::POST;
        return other_than(if is_form { "multipart/form-data" } else { "application/octet-stream" }, request);
    }
    if is_bare_command(context, request) {
        return None;
    }
    let path = context.strip_prefix(request.uri().path()).unwrap_or_default();
    // SNS sends its messages as text. Without a token they change nothing, and a browser sends none by itself.
    if path == STORE_EVENTS && other_than("text/plain", request).is_none() {
        return None;
    }
    let is_api = path.starts_with(API_ROOT);
    let expected = if is_api { "application/json" } else { "application/x-www-form-urlencoded" };
    other_than(expected, request)
}

/// Whether the route needs no body, and the request has none: then it has no type either. A form has both, whatever
/// site it is of.
fn is_bare_command(context: &HttpContext, request: &Request) -> bool {
    let path = context.strip_prefix(request.uri().path()).and_then(|path| path.strip_prefix(DEPOSITS));
    let headers = request.headers();
    let has_length = headers.get(header::CONTENT_LENGTH).is_some_and(|length| length != "0");
    path.is_some_and(|path| [FAILED, WITHDRAW].iter().any(|command| path.ends_with(command)))
        && !has_length
        && ![header::CONTENT_TYPE, header::TRANSFER_ENCODING].iter().any(|name| headers.contains_key(name))
}

fn other_than(expected: &str, request: &Request) -> Option<Problem> {
    let given = request.headers().get(header::CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default().trim();
    if given.eq_ignore_ascii_case(expected) {
        return None;
    }
    let why = format!("The body must be {expected}; set the Content-Type header accordingly.");
    Some(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn only_pages_of_this_server_and_programs_with_credentials_are_trusted() {
        let web = config::Web {
            external_url: Some("https://ops.example.org/queue".parse().unwrap()),
            names: vec!["queue.internal".to_owned()],
            ..config::Web::default()
        };
        let hosts = Hosts::new(&web);
        let local = Some("10.1.2.3:12181".parse().unwrap());
        let (ours, foreign) = ("http://queue.internal:12181", "https://evil.example");
        let (basic, bearer) = (Some("Basic YWxpY2U6YTpi"), Some("Bearer abc"));
        for (site, origin, credentials, expected) in [
            // Sec-Fetch-Site decides where it is sent.
            (Some("same-origin"), None, None, RequestSource::Trusted),
            (Some("same-origin"), Some(ours), basic, RequestSource::Trusted),
            (Some("none"), None, None, RequestSource::Trusted),
            (Some("same-site"), Some(ours), None, RequestSource::CrossSite),
            (Some("same-site"), None, bearer, RequestSource::CrossSite),
            (Some("cross-site"), None, None, RequestSource::CrossSite),
            (Some("cross-site"), Some(ours), basic, RequestSource::CrossSite),
            (Some("cross-site"), Some(foreign), bearer, RequestSource::CrossSite),
            (Some(""), None, bearer, RequestSource::CrossSite),
            (Some("Same-Origin"), None, bearer, RequestSource::CrossSite),
            // Then the origin.
            (None, Some(ours), None, RequestSource::Trusted),
            (None, Some("http://QUEUE.internal.:12181"), basic, RequestSource::Trusted),
            (None, Some("http://10.1.2.3:12181"), basic, RequestSource::CrossSite),
            (None, Some("http://localhost:12181"), basic, RequestSource::CrossSite),
            (None, Some("https://ops.example.org"), None, RequestSource::Trusted),
            (None, Some("https://ops.example.org:443"), None, RequestSource::Trusted),
            (None, Some("http://ops.example.org:12181"), None, RequestSource::CrossSite),
            (None, Some("http://ops.example.org"), None, RequestSource::CrossSite),
            (None, Some("https://ops.example.org:12181"), None, RequestSource::CrossSite),
            (None, Some("https://ops.example.org/queue"), None, RequestSource::CrossSite),
            (None, Some("https://queue.internal:12181"), None, RequestSource::CrossSite),
            (None, Some("http://queue.internal"), None, RequestSource::CrossSite),
            (None, Some("http://queue.internal:80"), None, RequestSource::CrossSite),
            (None, Some("queue.internal:12181"), None, RequestSource::CrossSite),
            (None, Some("null"), bearer, RequestSource::CrossSite),
            (None, Some(""), basic, RequestSource::CrossSite),
            (None, Some(foreign), bearer, RequestSource::CrossSite),
            (None, Some("http://queue.internal:12181.evil.example"), None, RequestSource::CrossSite),
            (None, Some("http://evil@queue.internal:12181"), None, RequestSource::CrossSite),
            // Then credentials that no page can make a browser send.
            (None, None, basic, RequestSource::Trusted),
            (None, None, bearer, RequestSource::Trusted),
            (None, None, Some("Negotiate abc"), RequestSource::Unknown),
            (None, None, None, RequestSource::Unknown),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "queue.internal:12181".parse().unwrap());
            let given = [(SITE, site), (header::ORIGIN, origin), (header::AUTHORIZATION, credentials)];
            for (name, value) in given.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                headers.insert(name, value.parse().unwrap());
            }
            let found = request_source(&headers, &hosts, local, false);
            assert_eq!(found, expected, "{headers:?}");
            for name in [SITE, header::ORIGIN] {
                let mut twice = headers.clone();
                if let Some(value) = headers.get(&name) {
                    twice.append(name.clone(), value.clone());
                    if name == SITE || site.is_none() {
                        assert_eq!(request_source(&twice, &hosts, local, false), RequestSource::CrossSite, "{twice:?}");
                    }
                }
            }
        }
        // With TLS, the origin has to be https.
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "queue.internal:12181".parse().unwrap());
        headers.insert(header::ORIGIN, "https://queue.internal:12181".parse().unwrap());
        assert_eq!(request_source(&headers, &hosts, local, true), RequestSource::Trusted);
        headers.insert(header::ORIGIN, ours.parse().unwrap());
        assert_eq!(request_source(&headers, &hosts, local, true), RequestSource::CrossSite);
    }
}

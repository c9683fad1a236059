//! Requests that order something, and whose page they come from.
//!
//! A browser sends what it knows of its user with every request, whichever page makes it: a password that he has typed,
//! and the place that he is at. So a request that might change something must show that no other page made it.

use std::net::SocketAddr;

use axum::extract::{Request, State as FromState};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::auth::Credentials;
use super::host::{Ends, Hosts};
use super::layers::{self, Refused};
use super::problem::Problem;
use crate::web::State;

/// What a browser says of the page that makes a request, where it trusts the connection (Fetch Metadata).
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Where a request was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    /// On a page of ours, or by a program that has credentials of its own.
    Ours,
    /// On a page of somebody else.
    Foreign,
    /// Nothing says so, and nothing is shown that a page of somebody else has not.
    Unknown,
}

/// Lets those requests pass that change nothing, and of the others those that no foreign page has made.
pub(in crate::web) async fn check(FromState(state): FromState<State>, request: Request, next: Next) -> Response {
    match judge(&state, &request) {
        None => next.run(request).await,
        Some(problem) => {
            let mut response = problem.into_response();
            response.extensions_mut().insert(Refused);
            response
        }
    }
}

/// Why a request is refused.
fn judge(state: &State, request: &Request) -> Option<Problem> {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return None;
    }
    let local = request.extensions().get::<Ends>().map(|ends| ends.local);
    let is_tls = state.web_file().is_some_and(|file| file.tls().is_some());
    match maker(request.headers(), &state.shared.hosts, local, is_tls) {
        Maker::Ours => wrong_type(state, request),
        Maker::Foreign => Some(Problem::new(
            StatusCode::FORBIDDEN,
            "The page that sent this is none of this server's. Do it on a page of its own, at an address that it listens \
             on or that --web.external-url names.",
        )),
        Maker::Unknown if state.has_users() => {
            Some(state.challenge("This server wants a user and a password, or a token, that it knows."))
        }
        Maker::Unknown => Some(Problem::new(
            StatusCode::FORBIDDEN,
            "Nothing shows that no other site's page sent this. A program sends its token, or the header \
             Sec-Fetch-Site: none; a browser says by itself where it is.",
        )),
    }
}

fn maker(headers: &HeaderMap, hosts: &Hosts, local: Option<SocketAddr>, is_tls: bool) -> Maker {
    let one = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        let first = values.next();
        // Twice is as good as foreign.
        first.map(|first| if values.next().is_some() { "" } else { first.to_str().unwrap_or_default() })
    };
    match (one(&SITE), one(&header::ORIGIN)) {
        (Some("same-origin" | "none"), _) => Maker::Ours,
        (None, Some(origin)) if hosts.has_origin(origin, headers.get(header::HOST), local, is_tls) => Maker::Ours,
        (Some(_), _) | (None, Some(_)) => Maker::Foreign,
        // Every browser sends one of the two with such a request.
        (None, None) if Credentials::read(headers).is_some() => Maker::Ours,
        (None, None) => Maker::Unknown,
    }
}

/// Whether a body is of a type that its route does not take. The one that the API takes is none that a form of a foreign
/// page could send.
fn wrong_type(state: &State, request: &Request) -> Option<Problem> {
    if !matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH) {
        return None;
    }
    let taken = if layers::is_api(state, request.uri().path()) {
        "application/json"
    } else {
        "application/x-www-form-urlencoded"
    };
    let given = request.headers().get(header::CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default().trim();
    if given.eq_ignore_ascii_case(taken) {
        return None;
    }
    let why = format!("The body of such a request is {taken} here. Send it, and the header Content-Type that says so.");
    Some(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn only_what_a_page_of_ours_or_a_program_with_credentials_sends_is_ours() {
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
            // What the browser says of the page counts, whatever else there is.
            (Some("same-origin"), None, None, Maker::Ours),
            (Some("same-origin"), Some(ours), basic, Maker::Ours),
            (Some("none"), None, None, Maker::Ours),
            (Some("same-site"), Some(ours), None, Maker::Foreign),
            (Some("same-site"), None, bearer, Maker::Foreign),
            (Some("cross-site"), None, None, Maker::Foreign),
            (Some("cross-site"), Some(ours), basic, Maker::Foreign),
            (Some("cross-site"), Some(foreign), bearer, Maker::Foreign),
            (Some(""), None, bearer, Maker::Foreign),
            (Some("Same-Origin"), None, bearer, Maker::Foreign),
            // Then the page's address.
            (None, Some(ours), None, Maker::Ours),
            (None, Some("http://QUEUE.internal.:12181"), basic, Maker::Ours),
            (None, Some("http://10.1.2.3:12181"), basic, Maker::Foreign),
            (None, Some("http://localhost:12181"), basic, Maker::Foreign),
            (None, Some("https://ops.example.org"), None, Maker::Ours),
            (None, Some("https://ops.example.org:443"), None, Maker::Ours),
            (None, Some("http://ops.example.org:12181"), None, Maker::Foreign),
            (None, Some("http://ops.example.org"), None, Maker::Foreign),
            (None, Some("https://ops.example.org:12181"), None, Maker::Foreign),
            (None, Some("https://ops.example.org/queue"), None, Maker::Foreign),
            (None, Some("https://queue.internal:12181"), None, Maker::Foreign),
            (None, Some("http://queue.internal"), None, Maker::Foreign),
            (None, Some("http://queue.internal:80"), None, Maker::Foreign),
            (None, Some("queue.internal:12181"), None, Maker::Foreign),
            (None, Some("null"), bearer, Maker::Foreign),
            (None, Some(""), basic, Maker::Foreign),
            (None, Some(foreign), bearer, Maker::Foreign),
            (None, Some("http://queue.internal:12181.evil.example"), None, Maker::Foreign),
            (None, Some("http://evil@queue.internal:12181"), None, Maker::Foreign),
            // Then what no page can make a browser send.
            (None, None, basic, Maker::Ours),
            (None, None, bearer, Maker::Ours),
            (None, None, Some("Negotiate abc"), Maker::Unknown),
            (None, None, None, Maker::Unknown),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "queue.internal:12181".parse().unwrap());
            let given = [(SITE, site), (header::ORIGIN, origin), (header::AUTHORIZATION, credentials)];
            for (name, value) in given.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                headers.insert(name, value.parse().unwrap());
            }
            let found = maker(&headers, &hosts, local, false);
            assert_eq!(found, expected, "{headers:?}");
            for name in [SITE, header::ORIGIN] {
                let mut twice = headers.clone();
                if let Some(value) = headers.get(&name) {
                    twice.append(name.clone(), value.clone());
                    if name == SITE || site.is_none() {
                        assert_eq!(maker(&twice, &hosts, local, false), Maker::Foreign, "{twice:?}");
                    }
                }
            }
        }
        // With TLS our own pages are secure ones.
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "queue.internal:12181".parse().unwrap());
        headers.insert(header::ORIGIN, "https://queue.internal:12181".parse().unwrap());
        assert_eq!(maker(&headers, &hosts, local, true), Maker::Ours);
        headers.insert(header::ORIGIN, ours.parse().unwrap());
        assert_eq!(maker(&headers, &hosts, local, true), Maker::Foreign);
    }
}

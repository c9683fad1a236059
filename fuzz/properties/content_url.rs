//! URLs of content, and what may be fetched.

use queuekeeper_ingest::url::{ContentUrl, Guard, classify, conceal};

use super::shown;

/// Shorter pieces may stand in our own words, or in the rest of the URL.
const PIECE: usize = 24;

/// Reads the bytes as such a URL.
///
/// # Panics
/// When a query, a user or a password is shown, what is accepted is not written as what is accepted again, or a private
/// address would be fetched from.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (plain, query) = text.split_once('?').unwrap_or((&text, ""));
    // A query that is also a part of the path is none of the secrets.
    let is_shown =
        |whole: &str, secret: &str| secret.len() >= PIECE && !plain.contains(secret) && whole.contains(secret);
    assert!(!is_shown(&conceal(&text), query), "a query is shown of {text:?}");
    let url: ContentUrl = match text.parse() {
        Ok(url) => url,
        Err(error) => {
            shown::error(&error, 4_096);
            assert!(!is_shown(&error.to_string(), query), "a query is shown: {error}");
            return;
        }
    };
    let whole = url.reveal();
    assert!(whole.username().is_empty() && whole.password().is_none(), "no user is accepted");
    assert_eq!(whole.as_str().parse::<ContentUrl>().as_ref(), Ok(&url), "what is accepted is accepted again");
    assert!(!whole.as_str().contains(['|', ' ', '\n']), "it fits into a column of a manifest: {whole}");
    for shown_as in [url.to_string(), format!("{url:?}")] {
        shown::error(&shown_as, 4_096);
        let without = whole.as_str().split('?').next().unwrap_or_default();
        let shows = |query: &str| !without.contains(query) && is_shown(&shown_as, query);
        assert!(!whole.query().is_some_and(shows), "a query is shown: {shown_as}");
    }
    match Guard::default().check(whole) {
        Ok(()) => {
            assert!(matches!(whole.scheme(), "https" | "http"), "{} is fetched", whole.scheme());
            let address = match whole.host() {
                Some(url::Host::Ipv4(address)) => Some(address.into()),
                Some(url::Host::Ipv6(address)) => Some(address.into()),
                Some(url::Host::Domain(_)) | None => None,
            };
            assert_eq!(address.and_then(classify), None, "it is fetched from a private address: {whole}");
        }
        Err(refusal) => shown::error(&refusal, 4_096),
    }
}

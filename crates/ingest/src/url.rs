//! URLs of content: which are taken, which hosts and addresses may be reached, and how a URL is shown.
//!
//! A depositor chooses the URL, the answer that redirects to another one, and possibly the name server that resolves
//! the host. So a [`Guard`] checks three times: the URL, each address that its host resolves to, and again both at each
//! redirect.

mod address;
mod guard;
mod shown;

use std::fmt;
use std::str::FromStr;

use url::Url;

pub use address::{AddressClass, classify};
pub use guard::{Guard, HostPattern, HostPatternError, Refusal};
pub use shown::{conceal, conceal_in, shown};

/// What stands for a query in [`ContentUrl::without_query`].
const CONCEALED: &str = "..";

/// The longest URL, in bytes.
pub const MOST_BYTES: usize = 16_384;

/// A URL of content, `https`, `http` or `file`. What it shows of itself, also by `Debug`, has no query: that may be a
/// credential (presigned URLs).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ContentUrl(Url);

/// Why a text is not a URL of content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It is no URL.
    #[error("{text:?} is not a URL: {why}")]
    Syntax {
        /// The text, without what may be secret.
        text: String,
        /// What is wrong.
        why: String,
    },
    /// It is too long.
    #[error("the URL is longer than {MOST_BYTES} bytes")]
    TooLong,
    /// It has a user or password.
    #[error("the URL {0} has a user name or password; remove it: credentials come from the profile's file")]
    UserInfo(String),
    /// Its scheme is not taken.
    #[error("the URL {0} has a scheme that is not supported; use https or http")]
    Scheme(String),
}

impl ContentUrl {
    /// The URL with its query: to fetch it, and never to show it.
    #[must_use]
    pub fn reveal(&self) -> &Url {
        &self.0
    }

    /// Whether it names a file of this machine.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.0.scheme() == "file"
    }

    /// Whether it has a query, which is shown as `?..`.
    #[must_use]
    pub fn has_query(&self) -> bool {
        self.0.query().is_some()
    }

    /// The URL with `?..` for its query, as znodes have it. Unlike what it shows of itself, it is never cut.
    #[must_use]
    pub fn without_query(&self) -> String {
        let mut plain = self.0.clone();
        if plain.query().is_some() {
            plain.set_query(Some(CONCEALED));
        }
        plain.into()
    }

    /// Whether its query is the `..` that stands for another one.
    #[must_use]
    pub fn is_concealed(&self) -> bool {
        self.0.query() == Some(CONCEALED)
    }

    /// The last part of its path, decoded; `None` where the path ends with a slash or the part is no text.
    #[must_use]
    pub fn file_name(&self) -> Option<String> {
        let last = self.0.path_segments()?.next_back().filter(|last| !last.is_empty())?;
        Some(percent_encoding::percent_decode_str(last).decode_utf8().ok()?.into_owned())
    }

    /// All parts of its path together, decoded, without slashes: `xy` for `/x/y/`. Today's daemons name a package so
    /// that has no other name (and add the query, which may be secret).
    #[must_use]
    pub fn path_name(&self) -> Option<String> {
        let path = percent_encoding::percent_decode_str(self.0.path()).decode_utf8().ok()?.replace('/', "");
        Some(path).filter(|path| !path.is_empty())
    }
}

impl FromStr for ContentUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if text.len() > MOST_BYTES {
            return Err(UrlError::TooLong);
        }
        let syntax = |why: &str| UrlError::Syntax { text: conceal(text), why: why.to_owned() };
        let url = Url::parse(text).map_err(|error| syntax(&error.to_string()))?;
        Self::try_from(url)
    }
}

impl TryFrom<Url> for ContentUrl {
    type Error = UrlError;

    fn try_from(mut url: Url) -> Result<Self, UrlError> {
        if !matches!(url.scheme(), "https" | "http" | "file") {
            return Err(UrlError::Scheme(shown(&url)));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::UserInfo(shown(&url)));
        }
        // No part of a request.
        url.set_fragment(None);
        // A bar ends a manifest's column, so that it is written in its other form everywhere.
        if url.as_str().contains('|') {
            let escaped = url.as_str().replace('|', "%7C");
            url = Url::parse(&escaped).map_err(|_| UrlError::Scheme(shown(&url)))?;
        }
        if url.as_str().len() > MOST_BYTES {
            return Err(UrlError::TooLong);
        }
        Ok(Self(url))
    }
}

/// Without its query.
impl fmt::Display for ContentUrl {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&shown(&self.0))
    }
}

impl fmt::Debug for ContentUrl {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "ContentUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_content_has_a_known_scheme_and_no_credentials() {
        let url: ContentUrl = "HTTPS://Example.edu:443/a/b%20c?X-Amz-Signature=secret#part".parse().unwrap();
        assert_eq!(url.reveal().as_str(), "https://example.edu/a/b%20c?X-Amz-Signature=secret");
        assert_eq!(url.to_string(), "https://example.edu/a/b%20c?..");
        assert_eq!(format!("{url:?}"), "ContentUrl(https://example.edu/a/b%20c?..)");
        assert_eq!((url.file_name().as_deref(), url.has_query()), (Some("b c"), true));
        assert_eq!(url.path_name().as_deref(), Some("ab c"));
        assert_eq!((url.without_query().as_str(), url.is_concealed()), ("https://example.edu/a/b%20c?..", false));
        let long = format!("https://example.edu/{}", "a".repeat(1_000));
        for (text, expected) in [(long.clone(), long.clone()), (format!("{long}?secret"), format!("{long}?.."))] {
            let url: ContentUrl = text.parse().unwrap();
            assert_eq!(url.without_query(), expected);
            let again: ContentUrl = expected.parse().unwrap();
            assert_eq!((again.without_query(), again.is_concealed()), (expected, url.has_query()));
        }
        for (text, error) in [
            ("a/b", "not a URL"),
            ("http://", "not a URL"),
            ("http://[::1", "not a URL"),
            ("ftp://example.edu/a", "scheme"),
            ("javascript:alert(1)", "scheme"),
            ("https://user@example.edu/", "credentials come from the profile"),
            ("https://:secret@example.edu/", "credentials come from the profile"),
            (&format!("https://example.edu/{}", "a".repeat(MOST_BYTES)), "longer"),
        ] {
            let refused = text.parse::<ContentUrl>().unwrap_err().to_string();
            assert!(refused.contains(error) && !refused.contains("secret"), "{refused}");
        }
    }
}

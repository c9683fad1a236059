//! The credentials of a request.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// The longest user and password together, and the longest token, in bytes; longer ones are ignored.
const MAX_BYTES: usize = 1024;

/// A user and a password, or a token; without `Debug`, so that it cannot be logged.
pub(in crate::web) enum Credentials {
    Password(Login),
    Token(Vec<u8>),
}

pub(in crate::web) struct Login {
    pub(super) user: String,
    pub(super) password: Vec<u8>,
}

impl Credentials {
    /// Reads `Authorization: Basic` (RFC 7617) and `Bearer` (RFC 6750); `None` for anything else.
    pub(in crate::web) fn read(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let (scheme, given) = value.to_str().ok()?.split_once(' ')?;
        let given = given.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            let is_token = (1..=MAX_BYTES).contains(&given.len());
            return is_token.then(|| Self::Token(given.as_bytes().to_vec()));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = BASE64_STANDARD.decode(given).ok().filter(|decoded| decoded.len() <= MAX_BYTES)?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let user = String::from_utf8(decoded[..colon].to_vec()).ok()?;
        Some(Self::Password(Login { user, password: decoded[colon + 1..].to_vec() }))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(values: &[&str]) -> Option<(String, Vec<u8>)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        Credentials::read(&headers).map(|credentials| match credentials {
            Credentials::Password(login) => (login.user, login.password),
            Credentials::Token(token) => ("a token".to_owned(), token),
        })
    }

    #[test]
    fn only_valid_basic_and_bearer_credentials_are_read() {
        let basic = |text: &[u8]| format!("Basic {}", BASE64_STANDARD.encode(text));
        assert_eq!(read(&["bAsIc YWxpY2U6YTpi"]), Some(("alice".to_owned(), b"a:b".to_vec())));
        assert_eq!(read(&[&basic(b":")]), Some((String::new(), Vec::new())));
        assert_eq!(read(&[&basic("jörg:ß".as_bytes())]), Some(("jörg".to_owned(), "ß".into())));
        assert_eq!(read(&["bEARER  abc "]), Some(("a token".to_owned(), b"abc".to_vec())));
        let long = basic(&[b':'; MAX_BYTES + 1]);
        let long_token = format!("Bearer {}", "x".repeat(MAX_BYTES + 1));
        for values in [
            &[][..],
            &["Basic"],
            &["Basic "],
            &["Bearer"],
            &["Bearer "],
            &["Digest YWxpY2U6YTpi"],
            &["Basic YWxpY2U6YTpi", "Basic YWxpY2U6YTpi"],
            &["Basic YWxpY2U6YTpi", "Bearer abc"],
            &["Basic YWxpY2U6YTp"],
            &["Basic YWxpY2U6YTpi!"],
            &["Basic YWxpY2U="],
            &[&basic(b"\xff:a")],
            &[&long],
            &[&long_token],
        ] {
            assert_eq!(read(values), None, "{values:?}");
        }
    }
}

//! Bearer tokens.

use std::io::Read;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// The prefix of all tokens created here, by which a leaked one can be recognized.
pub(super) const PREFIX: &str = "qk_";

/// The minimum length of a token: 32 random hexadecimal digits are 128 bits.
pub(super) const MIN_CHARS: usize = 32;

/// The maximum length of a token.
pub(super) const MAX_CHARS: usize = 512;

/// A bearer token. It is shown once and not stored; it has no `Debug`, so that it cannot get into a log.
pub struct Secret(String);

/// A text that is not a token; the text is not in the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// It is too short or too long.
    #[error("a token must have {MIN_CHARS} to {MAX_CHARS} random characters, because its hash is fast to compute")]
    Length,
    /// It has a character that is not allowed in the header `Authorization` (RFC 6750, 2.1).
    #[error("a token must be one line of letters, digits and - . _ ~ + / =")]
    Character,
    /// It cannot be read.
    #[error("it is not text")]
    Unreadable,
}

impl Secret {
    /// Creates a token of 256 random bits.
    ///
    /// # Panics
    /// When the system has no random numbers.
    #[must_use]
    pub fn make() -> Self {
        let mut random = [0; 32];
        aws_lc_rs::rand::fill(&mut random).expect("the system has random numbers");
        Self(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random)))
    }

    /// Reads a token that was created elsewhere, such as by `openssl rand -hex 32`, without its newline.
    ///
    /// # Errors
    /// When it is not a token.
    pub fn read(from: impl Read) -> Result<Self, SecretError> {
        let mut text = String::new();
        // The maximum length, a newline, and one character to detect a longer one.
        let most = u64::try_from(MAX_CHARS + 3).map_err(|_| SecretError::Length)?;
        from.take(most).read_to_string(&mut text).map_err(|_| SecretError::Unreadable)?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if !(MIN_CHARS..=MAX_CHARS).contains(&line.len()) {
            return Err(SecretError::Length);
        }
        if !line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)) {
            return Err(SecretError::Character);
        }
        Ok(Self(line.to_owned()))
    }

    /// The token itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The hash that is stored of it.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        hash(self.0.as_bytes())
    }
}

/// SHA-256 of a token.
///
/// A slow hash such as bcrypt makes guessing expensive for passwords that people choose. 256 random bits cannot be
/// guessed at any cost, and this hash is computed for each request.
pub(super) fn hash(token: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_random_and_valid_in_a_header() {
        let (one, other) = (Secret::make(), Secret::make());
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(one.reveal().len(), PREFIX.len() + 43);
        for text in [one.reveal().to_owned(), format!("{}\n", one.reveal()), format!("{}\r\n", one.reveal())] {
            assert_eq!(Secret::read(text.as_bytes()).ok().unwrap().hash(), one.hash());
        }
        // The output of `printf %s abc... | sha256sum`.
        let known = Secret::read(&b"abcdefghijklmnopqrstuvwxyz012345"[..]).ok().unwrap();
        assert_eq!(known.hash()[..4], [0x65, 0x3b, 0xb1, 0x24]);
    }

    #[test]
    fn a_text_that_is_guessable_or_not_valid_in_a_header_is_not_a_token() {
        let long = "x".repeat(MAX_CHARS + 1);
        let spaced = format!("{} {}", "x".repeat(20), "x".repeat(20));
        let lines = format!("{}\n{}\n", "x".repeat(40), "x".repeat(40));
        for (text, error) in [
            ("", SecretError::Length),
            ("hunter2\n", SecretError::Length),
            (&long, SecretError::Length),
            (&spaced, SecretError::Character),
            (&lines, SecretError::Character),
            (&"ß".repeat(20), SecretError::Character),
        ] {
            assert_eq!(Secret::read(text.as_bytes()).err(), Some(error), "{text}");
        }
        assert_eq!(Secret::read(&b"\xff\xfe"[..]).err(), Some(SecretError::Unreadable));
    }
}

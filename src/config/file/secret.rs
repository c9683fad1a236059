//! What a program shows instead of a password.

use std::io::Read;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// What every token that is made here begins with, so that one which lies about is known for what it is.
pub(super) const PREFIX: &str = "qk_";

/// The fewest characters of a token: of 32 that are chosen at random, hexadecimal ones at the least are 128 bits.
pub(super) const FEWEST: usize = 32;

/// The most characters of a token.
pub(super) const MOST: usize = 512;

/// A bearer token. It is shown once, and kept nowhere; it has no `Debug`, so that no log shows it by accident.
pub struct Secret(String);

/// A text that is no token; it does not show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// It is too short or too long.
    #[error(
        "a token has {FEWEST} to {MOST} characters: its hash is a fast one, and only chance keeps it from being guessed"
    )]
    Length,
    /// It has a character that no header `Authorization` takes in a token (RFC 6750, 2.1).
    #[error("a token is one line of letters, digits and - . _ ~ + / =")]
    Character,
    /// It cannot be read.
    #[error("it cannot be read as text")]
    Unreadable,
}

impl Secret {
    /// Makes one of 256 random bits.
    ///
    /// # Panics
    /// When the system has no random numbers.
    #[must_use]
    pub fn make() -> Self {
        let mut random = [0; 32];
        aws_lc_rs::rand::fill(&mut random).expect("the system has random numbers");
        Self(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random)))
    }

    /// Reads one that was made elsewhere, such as by `openssl rand -hex 32`; the end of its line does not belong to it.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(from: impl Read) -> Result<Self, SecretError> {
        let mut text = String::new();
        // As many as the longest has, the end of its line, and one that is too many.
        let most = u64::try_from(MOST + 3).map_err(|_| SecretError::Length)?;
        from.take(most).read_to_string(&mut text).map_err(|_| SecretError::Unreadable)?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if !(FEWEST..=MOST).contains(&line.len()) {
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

    /// What is kept of it.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        hash(self.0.as_bytes())
    }
}

/// SHA-256 of a token.
///
/// A slow hash such as bcrypt makes guessing dear where there are few guesses to make, as for a password that somebody
/// thought of. Of 256 random bits there are too many whatever the hash costs; and this one is paid with every request.
pub(super) fn hash(token: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_random_and_fit_for_a_header() {
        let (one, other) = (Secret::make(), Secret::make());
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(one.reveal().len(), PREFIX.len() + 43);
        for text in [one.reveal().to_owned(), format!("{}\n", one.reveal()), format!("{}\r\n", one.reveal())] {
            assert_eq!(Secret::read(text.as_bytes()).ok().unwrap().hash(), one.hash());
        }
        // As `printf %s abc... | sha256sum` has it.
        let known = Secret::read(&b"abcdefghijklmnopqrstuvwxyz012345"[..]).ok().unwrap();
        assert_eq!(known.hash()[..4], [0x65, 0x3b, 0xb1, 0x24]);
    }

    #[test]
    fn what_could_be_guessed_or_cannot_be_sent_is_no_token() {
        let long = "x".repeat(MOST + 1);
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

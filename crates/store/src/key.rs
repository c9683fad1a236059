//! Keys of items.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde::Serialize;

/// What stands for itself in an encoded key.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The key of an item in a space: 1 to 1,024 bytes, compared as bytes.
///
/// S3 keeps keys in UTF-8, a directory any bytes, so a key may be no text; it is shown with escapes then.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Box<[u8]>);

/// What is wrong with a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It has no byte.
    #[error("a key has at least one byte")]
    Empty,
    /// It is longer than any store holds.
    #[error("a key has at most {most} bytes, this one {0}", most = Key::MOST_BYTES)]
    TooLong(usize),
}

impl Key {
    /// The longest key, in bytes.
    pub const MOST_BYTES: usize = 1024;

    /// A key of these bytes.
    ///
    /// # Errors
    /// When there are none, or more than [`Self::MOST_BYTES`].
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Result<Self, KeyError> {
        let bytes = bytes.into();
        match bytes.len() {
            0 => Err(KeyError::Empty),
            1..=Self::MOST_BYTES => Ok(Self(bytes)),
            length => Err(KeyError::TooLong(length)),
        }
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key as ASCII, reversibly: bytes besides letters, digits and `-._~/` are percent-encoded (RFC 3986), and so
    /// is a `-` at the beginning, which programs take for a flag and spreadsheets for a formula.
    #[must_use]
    pub fn encoded(&self) -> String {
        let encoded = percent_encode(&self.0, PLAIN).to_string();
        encoded.strip_prefix('-').map(|rest| format!("%2D{rest}")).unwrap_or(encoded)
    }

    /// The key as text, where it is.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(key: &str) -> Result<Self, KeyError> {
        Self::new(key.as_bytes())
    }
}

/// The key on one line: a backslash, and what does not show (control characters, marks of direction, bytes that are no
/// text), as escapes.
impl fmt::Display for Key {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for char in chunk.valid().chars() {
                match char {
                    '\'' | '"' => to.write_char(char)?,
                    // Behind a letter, marks that combine with it stay what they are.
                    _ => to.write_str(&format!("a{char}").escape_debug().to_string()[1..])?,
                }
            }
            for byte in chunk.invalid() {
                write!(to, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "\"{self}\"")
    }
}

/// Forms of keys that some services take for other keys, since they resolve them as paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyForm {
    /// `a//b`, `/a`.
    EmptyPart,
    /// `a/./b`, `..`.
    DotPart,
    /// `a/`.
    FinalSlash,
}

impl KeyForm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::EmptyPart, Self::DotPart, Self::FinalSlash];

    /// Whether a key has this form.
    #[must_use]
    pub fn is_of(self, key: &Key) -> bool {
        let key = key.as_bytes();
        match self {
            Self::EmptyPart => key.starts_with(b"/") || key.windows(2).any(|pair| pair == b"//"),
            Self::DotPart => key.split(|byte| *byte == b'/').any(|part| part == b"." || part == b".."),
            Self::FinalSlash => key.ends_with(b"/"),
        }
    }
}

/// What such a key has.
impl fmt::Display for KeyForm {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::EmptyPart => "an empty part (a//b)",
            Self::DotPart => "a part that is . or .. (a/../b)",
            Self::FinalSlash => "a slash at its end (a/)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_key_is_ascii_and_leads_back_to_its_bytes() {
        let every: Vec<u8> = (0..=u8::MAX).collect();
        for bytes in [&every[..], b"-1", b"=1+1", b"a%2Fb/../c d", "\u{e9}\u{202e}".as_bytes(), b"\\xff", b"\\n"] {
            let encoded = Key::new(bytes).unwrap().encoded();
            assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic()), "{encoded}");
            assert!(!encoded.starts_with(['-', '=', '+', '@']) && !encoded.contains([',', '"', '\\']), "{encoded}");
            assert_eq!(percent_encoding::percent_decode_str(&encoded).collect::<Vec<u8>>(), bytes);
        }
        assert_eq!(Key::new(*b"a-b/c.txt").unwrap().encoded(), "a-b/c.txt");
    }

    #[test]
    fn keys_are_compared_as_bytes_and_shown_on_one_line() {
        let key = |bytes: &[u8]| Key::new(bytes).unwrap();
        assert!(key(b"a-b") < key(b"a.b") && key(b"a.b") < key(b"a/b") && key(b"a/b") < key(b"a0"));
        assert_eq!(key(b"a\nb\xff\x1b[0m\"").to_string(), "a\\nb\\xff\\u{1b}[0m\"");
        assert_eq!(key("e\u{301}\u{202e}".as_bytes()).to_string(), "e\u{301}\\u{202e}");
        assert_eq!(Key::new(*b""), Err(KeyError::Empty));
        assert_eq!(Key::new(vec![b'a'; 1025]), Err(KeyError::TooLong(1025)));
        assert!(Key::new(vec![b'a'; 1024]).is_ok_and(|key| key.as_str().is_some()));
        assert_eq!(key(b"\xff").as_str(), None);
    }

    #[test]
    fn a_key_has_the_forms_that_a_path_resolves() {
        let forms = |bytes: &[u8]| {
            let key = Key::new(bytes).unwrap();
            KeyForm::ALL.map(|form| form.is_of(&key))
        };
        for (key, expected) in [
            (&b"a/b.c/..d"[..], [false, false, false]),
            (b"a//b", [true, false, false]),
            (b"/a", [true, false, false]),
            (b"a/", [false, false, true]),
            (b"/", [true, false, true]),
            (b".", [false, true, false]),
            (b"a/../", [false, true, true]),
        ] {
            assert_eq!(forms(key), expected, "{}", key.escape_ascii());
        }
    }
}

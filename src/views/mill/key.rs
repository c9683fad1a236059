//! Keys of items in query strings.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use queuekeeper_store::Key;
use queuekeeper_store::key::KeyError;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A key, or none, as a parameter: percent-encoded, since a key may be no text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyText(pub(crate) Option<Key>);

impl fmt::Display for KeyText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0.as_ref().map(Key::encoded).unwrap_or_default())
    }
}

impl FromStr for KeyText {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        Key::new(percent_decode_str(text).collect::<Vec<u8>>()).map(Some).map(Self)
    }
}

impl Serialize for KeyText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KeyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_key_is_the_same_after_a_query_string() {
        for bytes in [&b"a/b c%2F"[..], b"\xff\x00", "ä".as_bytes(), b"-x"] {
            let key = KeyText(Some(Key::new(bytes).unwrap()));
            assert_eq!(key.to_string().parse(), Ok(key));
        }
        assert_eq!("".parse(), Ok(KeyText(None)));
    }
}

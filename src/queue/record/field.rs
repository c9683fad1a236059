//! JSON values of any kind, read into the one that was meant.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Malformed;

/// A JSON value as it stands; texts borrow from the znode's data where they hold no escapes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Field<'a> {
    /// The key is missing.
    #[default]
    Absent,
    /// `null`
    Null,
    /// A text.
    Text(Cow<'a, str>),
    /// A whole number within `i64`.
    Int(i64),
    /// `true` or `false`.
    Bool(bool),
    /// A number that is not whole or does not fit.
    Float(f64),
    /// An array: its texts and numbers as texts, and whether it held nothing else.
    List(Vec<Cow<'a, str>>, bool),
    /// An object, which none of our keys is.
    Object,
}

impl<'a> Field<'a> {
    /// The value as text: texts as they are, numbers and truth values as written; `None` where there is none.
    pub(super) fn text(self, what: &'static str) -> (Option<Cow<'a, str>>, Option<Malformed>) {
        match self {
            Self::Absent | Self::Null => (None, None),
            Self::Text(text) => (Some(text), None),
            Self::Int(number) => (Some(Cow::Owned(number.to_string())), None),
            Self::Float(number) => (Some(Cow::Owned(number.to_string())), None),
            Self::Bool(truth) => (Some(Cow::Borrowed(if truth { "true" } else { "false" })), None),
            Self::List(..) | Self::Object => (None, Some(Malformed::Wrong { what, expected: "text" })),
        }
    }

    /// The value as a whole number; texts that spell one count.
    pub(super) fn integer(self, what: &'static str) -> (Option<i64>, Option<Malformed>) {
        let wrong = || (None, Some(Malformed::Wrong { what, expected: "a whole number" }));
        match self {
            Self::Absent | Self::Null => (None, None),
            Self::Int(number) => (Some(number), None),
            Self::Text(text) => text.trim().parse().map_or_else(|_| wrong(), |number| (Some(number), None)),
            Self::Bool(_) | Self::Float(_) | Self::List(..) | Self::Object => wrong(),
        }
    }

    /// The value as a list of texts; one text with `;` between its parts is such a list too.
    pub(super) fn list(self, what: &'static str) -> (Vec<Cow<'a, str>>, Option<Malformed>) {
        let wrong = Some(Malformed::Wrong { what, expected: "a list of texts" });
        match self {
            Self::Absent | Self::Null => (Vec::new(), None),
            Self::List(texts, pure) => (texts, if pure { None } else { wrong }),
            Self::Text(text) => {
                let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
                (parts.map(|part| Cow::Owned(part.to_owned())).collect(), None)
            }
            Self::Int(number) => (vec![Cow::Owned(number.to_string())], None),
            Self::Bool(_) | Self::Float(_) | Self::Object => (Vec::new(), wrong),
        }
    }

    /// This value, or `other` where the key is missing.
    pub(super) fn or(self, other: Self) -> Self {
        if self == Self::Absent { other } else { self }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor)
    }
}

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = Field<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Field::Null)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Self::Value, E> {
        Ok(Field::Bool(truth))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Field::Int(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(number).map_or(Field::Float(number as f64), Field::Int))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Field::Float(number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Field::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Field::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let (mut texts, mut pure) = (Vec::new(), true);
        while let Some(item) = items.next_element::<Field<'de>>()? {
            match item {
                Field::Null => {}
                Field::List(..) | Field::Object => pure = false,
                Field::Absent | Field::Text(_) | Field::Int(_) | Field::Bool(_) | Field::Float(_) => {
                    texts.extend(item.text("").0);
                }
            }
        }
        Ok(Field::List(texts, pure))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Object)
    }
}

/// Reads a JSON object into a struct of [`Field`]s.
///
/// Serde's derived structs would take an array too, by position; the queue's values are objects or wrong.
pub(super) fn object<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, Malformed> {
    let opens = data.iter().find(|byte| !byte.is_ascii_whitespace());
    if opens.is_some_and(|byte| *byte != b'{') {
        let kind = serde_json::from_slice::<IgnoredAny>(data).map(|_| Malformed::NotObject);
        return Err(kind.unwrap_or_else(|error| Malformed::of_json(&error, data)));
    }
    serde_json::from_slice(data).map_err(|error| Malformed::of_json(&error, data))
}

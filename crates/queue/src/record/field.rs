//! JSON values of any kind, read into the one that was meant.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Decoded, Malformed};

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
    /// A number that is not whole.
    Float(f64),
    /// An array: its texts and numbers as texts, and whether it held nothing else.
    List(Vec<Cow<'a, str>>, bool),
    /// An object, which none of our keys is.
    Object,
}

impl Field<'_> {
    /// This value, or `other` where the key is missing.
    pub(super) fn or(self, other: Self) -> Self {
        if self == Self::Absent { other } else { self }
    }
}

/// Reads fields one after the other, and remembers the first that was wrong. `what` is the field's key.
#[derive(Debug, Default)]
pub(super) struct Checked {
    malformed: Option<Malformed>,
}

impl Checked {
    /// The value as text: texts as they are, numbers and truth values as written; `None` where there is none.
    pub(super) fn text<'a>(&mut self, what: &'static str, field: Field<'a>) -> Option<Cow<'a, str>> {
        match field {
            Field::Absent | Field::Null => None,
            Field::Text(text) => Some(text),
            Field::Int(number) => Some(Cow::Owned(number.to_string())),
            // With its exponent, as JSON is written: `1e300` would be 301 digits, and there may be as many of them as a
            // value has room for.
            Field::Float(number) => Some(Cow::Owned(serde_json::Value::from(number).to_string())),
            Field::Bool(truth) => Some(Cow::Borrowed(if truth { "true" } else { "false" })),
            Field::List(..) | Field::Object => {
                self.wrong(what, "text");
                None
            }
        }
    }

    /// The value as a whole number; texts that spell one count.
    pub(super) fn integer(&mut self, what: &'static str, field: Field<'_>) -> Option<i64> {
        let number = match field {
            Field::Absent | Field::Null => return None,
            Field::Int(number) => Some(number),
            Field::Text(text) => text.trim().parse().ok(),
            // `1.0`, which the daemons take for 1.
            Field::Float(number) if number.fract() == 0.0 => format!("{number:.0}").parse().ok(),
            Field::Bool(_) | Field::Float(_) | Field::List(..) | Field::Object => None,
        };
        if number.is_none() {
            self.wrong(what, "a whole number");
        }
        number
    }

    /// The value as a list of texts; one text with `;` between its parts is such a list too.
    pub(super) fn list<'a>(&mut self, what: &'static str, field: Field<'a>) -> Vec<Cow<'a, str>> {
        let (texts, is_list) = match field {
            Field::Absent | Field::Null => return Vec::new(),
            Field::List(texts, is_pure) => (texts, is_pure),
            Field::Text(text) => {
                let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
                (parts.map(|part| Cow::Owned(part.to_owned())).collect(), true)
            }
            Field::Int(number) => (vec![Cow::Owned(number.to_string())], true),
            Field::Bool(_) | Field::Float(_) | Field::Object => (Vec::new(), false),
        };
        if !is_list {
            self.wrong(what, "a list of texts");
        }
        texts
    }

    /// Notes that a field is not what it should be.
    pub(super) fn wrong(&mut self, what: &'static str, expected: &'static str) {
        self.note(Malformed::Wrong { what, expected });
    }

    /// Notes what is wrong; the first note stands.
    pub(super) fn note(&mut self, malformed: Malformed) {
        self.malformed.get_or_insert(malformed);
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
        // As a text it keeps all of its digits, and is no more a number of ours than it was.
        Ok(i64::try_from(number).map_or_else(|_| Field::Text(Cow::Owned(number.to_string())), Field::Int))
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
                    texts.extend(Checked::default().text("", item));
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

/// Reads a JSON object into `R`, a struct of [`Field`]s, and that into the value that is meant.
pub(super) fn decode<'a, R: Deserialize<'a>, T: Default>(
    data: &'a [u8],
    value: impl FnOnce(R, &mut Checked) -> T,
) -> Decoded<T> {
    match object(data) {
        Ok(raw) => {
            let mut checked = Checked::default();
            let value = value(raw, &mut checked);
            Decoded { value, malformed: checked.malformed }
        }
        Err(malformed) => Decoded { value: T::default(), malformed: Some(malformed) },
    }
}

/// Reads a JSON object as it stands.
///
/// Serde's derived structs would take an array too, by position; the queue's values are objects or wrong.
pub(super) fn object<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, Malformed> {
    // Serde skips the strings of unused keys without checking them.
    let text = std::str::from_utf8(data).map_err(|_| Malformed::NotUtf8)?;
    let text = text.trim_ascii();
    if text.is_empty() {
        return Err(Malformed::Empty);
    }
    if !text.starts_with('{') {
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| Malformed::of_json(&error))?;
        return Err(Malformed::NotObject);
    }
    serde_json::from_str(text).map_err(|error| Malformed::of_json(&error))
}

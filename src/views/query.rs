//! Filters as parameters, and parameters as filters: the same names and values in query strings and in links.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, Expected, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::{Serialize, forward_to_deserialize_any};
use serde_json::Value;

use super::error::{ViewError, quoted};

/// Parameters, in their order.
pub(crate) type Pairs = Vec<(String, String)>;

/// The parameters that choose no items, but their order.
const ORDER: [&str; 2] = ["sort", "direction"];

/// Reads parameters: a struct takes those that its fields are named for, and a tuple of structs takes those of each. An
/// empty value counts as none, since forms send what is left empty.
///
/// # Errors
/// Names a parameter that is unknown, given twice, or has a value that is not allowed, and what is allowed.
pub(crate) fn read<T: DeserializeOwned>(pairs: &[(String, String)]) -> Result<T, ViewError> {
    let mut reader = Reader { pairs, known: Vec::new() };
    let value = T::deserialize(&mut reader).map_err(ReadError::whole)?;
    match pairs.iter().find(|(name, _)| !reader.known.contains(&name.as_str())) {
        Some((name, _)) => {
            let error = ViewError::parameter(format!("Unknown parameter “{}”.", quoted(name)));
            Err(error.allowing(reader.known))
        }
        None => Ok(value),
    }
}

/// What a filter is as parameters. Those that have their defaults are left out.
pub(crate) trait Parameters: Serialize + Default {
    /// All of them.
    fn pairs(&self) -> Pairs {
        let (Value::Object(values), Value::Object(defaults)) = (json(self), json(&Self::default())) else {
            return Pairs::new();
        };
        let changed = values.into_iter().filter(|(name, value)| defaults.get(name) != Some(value));
        changed.flat_map(|(name, value)| texts(value).into_iter().map(move |text| (name.clone(), text))).collect()
    }

    /// Those that choose items, and not their order.
    fn filters(&self) -> Pairs {
        self.pairs().into_iter().filter(|(name, _)| !ORDER.contains(&name.as_str())).collect()
    }

    /// Those that set the order.
    fn order(&self) -> Pairs {
        self.pairs().into_iter().filter(|(name, _)| ORDER.contains(&name.as_str())).collect()
    }

    /// Whether it chooses some of the items.
    fn is_filtered(&self) -> bool {
        !self.filters().is_empty()
    }
}

impl<T: Serialize + Default> Parameters for T {}

fn json(value: &impl Serialize) -> Value {
    // Fields are texts, numbers and lists of them, which always are JSON.
    serde_json::to_value(value).unwrap_or_default()
}

fn texts(value: Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text],
        Value::Array(values) => values.into_iter().flat_map(texts).collect(),
        other => vec![other.to_string()],
    }
}

/// Why parameters cannot be read: of a value, until its name is known, and then whole.
#[derive(Debug)]
enum ReadError {
    /// The value is none of these.
    NoneOf(Vec<Cow<'static, str>>),
    /// The value cannot be taken for this reason.
    Because(String),
    /// There are several values.
    Twice,
    /// The same with name and value.
    Whole(ViewError),
}

impl ReadError {
    fn of(self, name: &str, values: &[&str]) -> Self {
        let value = values.first().copied().unwrap_or_default();
        Self::Whole(match self {
            Self::NoneOf(allowed) => ViewError::value(name, value).allowing(allowed),
            Self::Because(why) => ViewError::value_because(name, value, why),
            Self::Twice => ViewError::parameter(format!("The parameter “{name}” is given twice.")),
            Self::Whole(error) => error,
        })
    }

    fn whole(self) -> ViewError {
        match self {
            Self::Whole(error) => error,
            Self::Because(why) => ViewError::parameter(format!("The parameters cannot be read: {why}.")),
            Self::NoneOf(_) | Self::Twice => ViewError::parameter("The parameters cannot be read."),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoneOf(allowed) => write!(f, "expected {}", allowed.join(", ")),
            Self::Because(why) => f.write_str(why),
            Self::Twice => f.write_str("given twice"),
            Self::Whole(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl serde::de::Error for ReadError {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self::Because(why.to_string())
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::NoneOf(vec![expected.to_string().into()])
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::NoneOf(expected.iter().map(|value| Cow::Borrowed(*value)).collect())
    }

    fn missing_field(name: &'static str) -> Self {
        Self::Whole(ViewError::parameter(format!("The parameter “{name}” is missing.")))
    }
}

/// All parameters, of which each struct takes its own.
struct Reader<'a> {
    pairs: &'a [(String, String)],
    known: Vec<&'static str>,
}

impl<'de> Deserializer<'de> for &mut Reader<'_> {
    type Error = ReadError;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.known.extend(fields);
        visitor.visit_map(Fields { pairs: self.pairs, left: fields.iter(), value: None })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_seq(Structs(self))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ReadError> {
        Err(ReadError::custom("expected a struct of them"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple_struct map enum identifier ignored_any
    }
}

struct Structs<'r, 'a>(&'r mut Reader<'a>);

impl<'de> SeqAccess<'de> for Structs<'_, '_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        seed.deserialize(&mut *self.0).map(Some)
    }
}

/// The fields of a struct that there are parameters for.
struct Fields<'a> {
    pairs: &'a [(String, String)],
    left: std::slice::Iter<'static, &'static str>,
    value: Option<(&'static str, Vec<&'a str>)>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        for name in self.left.by_ref() {
            let values: Vec<_> =
                self.pairs.iter().filter(|(given, _)| given == name).map(|(_, value)| &**value).collect();
            if !values.is_empty() {
                self.value = Some((name, values));
                return seed.deserialize(StrDeserializer::new(name)).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let (name, values) = self.value.take().ok_or_else(|| ReadError::custom("expected a name before a value"))?;
        seed.deserialize(Values { name, values: &values }).map_err(|error| error.of(name, &values))
    }
}

/// The values of one parameter.
struct Values<'a> {
    name: &'static str,
    values: &'a [&'a str],
}

impl<'a> Values<'a> {
    /// The only value.
    fn one(&self) -> Result<&'a str, ReadError> {
        match self.values {
            [] => Ok(""),
            [value] => Ok(value),
            [_, _, ..] => Err(ReadError::Twice),
        }
    }

    /// A whole number, in digits alone.
    fn number(&self, most: u64) -> Result<u64, ReadError> {
        let value = self.one()?;
        let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
        let number = value.parse().ok().filter(|number| is_plain && *number <= most);
        number.ok_or_else(|| ReadError::NoneOf(vec![format!("0 to {most}").into()]))
    }
}

impl<'de> Deserializer<'de> for Values<'_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_str(self.one()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.values.iter().all(|value| value.is_empty()) { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.one()? {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            other => Err(ReadError::unknown_variant(other, &["true", "false"])),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_u64(self.number(u32::MAX.into())?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_u64(self.number(u64::MAX)?)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let values = self.values.iter().flat_map(|value| value.split(','));
        let values = values.filter(|value| !value.is_empty()).collect::<Vec<_>>();
        visitor.visit_seq(Elements { name: self.name, left: values.into_iter() })
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

/// The values of a parameter that takes several.
struct Elements<'a> {
    name: &'static str,
    left: std::vec::IntoIter<&'a str>,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some(value) = self.left.next() else { return Ok(None) };
        let values = Values { name: self.name, values: &[value] };
        seed.deserialize(values).map(Some).map_err(|error| error.of(self.name, &[value]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::PageQuery;
    use crate::views::jobs::JobFilter;

    fn pairs(pairs: &[(&str, &str)]) -> Pairs {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn jobs(given: &[(&str, &str)]) -> Result<(JobFilter, PageQuery), ViewError> {
        read(&pairs(given))
    }

    #[test]
    fn a_filter_is_written_as_it_is_read() {
        let given = [
            ("text", "a&b=ü"),
            ("state", "failed"),
            ("state", "other"),
            ("collection", "(none)"),
            ("batch", "bid0000000042"),
            ("min_age", "1h30m"),
            ("min_retries", "2"),
            ("locked", "false"),
            ("fault", "orphan_entry"),
            ("group", "0123456789abcdef"),
            ("sort", "retries"),
            ("direction", "desc"),
            ("limit", "500"),
        ];
        let (filter, page) = jobs(&given).unwrap();
        assert_eq!([filter.pairs(), page.pairs()].concat(), pairs(&given));
        assert_eq!([filter.filters(), filter.order(), page.size().pairs()].concat(), pairs(&given));
        let (filter, page) =
            jobs(&[("state", "failed,held"), ("batch", "42"), ("text", " "), ("limit", ""), ("sort", "")]).unwrap();
        assert_eq!(filter.filters(), pairs(&[("state", "failed"), ("state", "held"), ("batch", "bid0000000042")]));
        assert!(filter.order().is_empty() && page.pairs().is_empty());
        assert!(!JobFilter::default().is_filtered());
    }

    #[test]
    fn a_value_that_is_not_allowed_is_named_with_those_that_are() {
        for (name, value, expected) in [
            ("state", "failing", "pending"),
            ("state", "failed,failing", "pending"),
            ("fault", "x", "orphan_entry"),
            ("sort", "size", "space_needed"),
            ("direction", "up", "desc"),
            ("locked", "yes", "true"),
            ("limit", "0", "1 to 500"),
            ("limit", "501", "1 to 500"),
            ("limit", "+5", "1 to 500"),
            ("min_retries", "-1", "0 to 4294967295"),
            ("batch", "jid0000000042", "its number, such as 42"),
            ("min_age", "soon", ""),
            ("group", "7", ""),
            ("colour", "red", "collection"),
            ("colour", "red", "cursor"),
        ] {
            let ViewError::Parameter(wrong) = jobs(&[(name, value)]).unwrap_err() else { panic!("{name}={value}") };
            assert!(wrong.detail.contains(name), "{wrong:?}");
            assert!(expected.is_empty() || wrong.allowed.iter().any(|allowed| allowed == expected), "{wrong:?}");
        }
        let wrong = jobs(&[("state", "failed,failing")]).unwrap_err().to_string();
        assert!(wrong.starts_with("The parameter “state” cannot be “failing”. Allowed: pending, "), "{wrong}");
        let wrong = jobs(&[("min_age", "1x")]).unwrap_err().to_string();
        assert!(wrong.starts_with("The parameter “min_age” cannot be “1x”: a unit is unknown"), "{wrong}");
        let twice = jobs(&[("limit", "5"), ("limit", "6")]).unwrap_err().to_string();
        assert_eq!(twice, "The parameter “limit” is given twice.");
        let long = jobs(&[("text", &"x".repeat(201))]).unwrap_err().to_string();
        assert!(long.contains("at most 200 characters"), "{long}");
    }
}

//! What the znodes' values say, read once more with `serde_json` alone.

use serde_json::{Map, Value};

use super::grammar::{Machine, is_id};

/// A value of which only some may be readable.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) fields: Map<String, Value>,
    pub(crate) is_bad: bool,
}

impl Reading {
    /// A JSON object; `None` where the znode is missing or closed to us.
    pub(crate) fn of(data: Option<&[u8]>) -> Self {
        let Some(data) = data else { return Self::default() };
        match serde_json::from_slice(data) {
            Ok(Value::Object(fields)) => Self { fields, is_bad: false },
            _ => Self { fields: Map::new(), is_bad: true },
        }
    }

    /// Whether the daemons refuse it: it is neither empty nor an object, whatever its fields are.
    pub(crate) fn is_refused(data: Option<&[u8]>) -> bool {
        let text = String::from_utf8_lossy(data.unwrap_or_default());
        !text.trim().is_empty() && !matches!(serde_json::from_str(&text), Ok(Value::Object(_)))
    }

    fn take(&mut self, keys: &[&str]) -> Option<Value> {
        keys.iter().find_map(|key| self.fields.get(*key)).filter(|value| !value.is_null()).cloned()
    }

    fn optional_text(&mut self, keys: &[&str]) -> Option<String> {
        match self.take(keys)? {
            Value::String(text) => Some(text),
            Value::Array(_) | Value::Object(_) => {
                self.is_bad = true;
                None
            }
            other => Some(other.to_string()),
        }
    }

    /// The text under the first of these keys that is there.
    pub(crate) fn text(&mut self, keys: &[&str]) -> String {
        self.optional_text(keys).unwrap_or_default()
    }

    pub(crate) fn integer(&mut self, key: &str) -> Option<i64> {
        let number = match self.take(&[key])? {
            // As the daemons read it, `1.0` is 1.
            Value::Number(number) => number
                .as_i64()
                .or_else(|| format!("{:.0}", number.as_f64()?).parse().ok())
                .filter(|_| number.as_f64().is_none_or(|number| number.fract() == 0.0)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        self.is_bad |= number.is_none();
        number
    }

    /// A list of texts, with `; ` between them.
    pub(crate) fn list(&mut self, key: &str) -> String {
        match self.take(&[key]) {
            None => String::new(),
            Some(Value::String(text)) => {
                let parts: Vec<_> = text.split(';').map(str::trim).filter(|part| !part.is_empty()).collect();
                parts.join("; ")
            }
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Array(items)) => {
                let mut texts = Vec::new();
                for item in items {
                    match item {
                        Value::Null => {}
                        Value::String(text) => texts.push(text),
                        Value::Array(_) | Value::Object(_) => self.is_bad = true,
                        other => texts.push(other.to_string()),
                    }
                }
                texts.join("; ")
            }
            Some(_) => {
                self.is_bad = true;
                String::new()
            }
        }
    }

    /// The label of the state that the status names, and its text where the daemons would not take it.
    pub(crate) fn status(&mut self, machine: Machine, is_there: bool) -> (Option<&'static str>, String) {
        let Some(text) = self.optional_text(&["status"]) else {
            self.is_bad |= is_there;
            return (None, String::new());
        };
        match machine.state(&text) {
            Some((name, label)) => (Some(label), if name == text { String::new() } else { text }),
            None => (None, text),
        }
    }
}

/// Submission dates as found in production, and the instants that they mean, in milliseconds.
pub(crate) const DATES: [(&str, Option<i64>); 6] = [
    ("2026-03-02 10:15:31 -0800", Some(1_772_475_331_000)),
    ("2026-03-02T10:15:40-08:00", Some(1_772_475_340_000)),
    ("Mon Mar 02 10:15:31 PST 2026", Some(1_772_475_331_000)),
    ("2026-03-02", None),
    ("soon", None),
    ("", None),
];

fn plain(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok().map(str::trim).filter(|text| !text.is_empty())
}

pub(crate) fn bid(data: &[u8]) -> Option<String> {
    plain(data).filter(|text| is_id(text, "bid")).map(str::to_owned)
}

pub(crate) fn priority(data: &[u8]) -> Option<u8> {
    plain(data)?.parse().ok().filter(|priority| *priority <= 99)
}

/// Bytes; 0 for unknown, `None` for nonsense.
pub(crate) fn space(data: &[u8]) -> Option<u64> {
    match plain(data)?.parse::<i64>().ok()? {
        -1 => Some(0),
        bytes => u64::try_from(bytes).ok(),
    }
}

/// Whether a plain value is of its kind, with nothing around it.
pub(crate) fn is_plain(data: Option<&[u8]>, is_of_kind: impl Fn(&str) -> bool) -> bool {
    data.is_none_or(|data| std::str::from_utf8(data).is_ok_and(|text| text.trim() == text && is_of_kind(text)))
}

/// At most 512 bytes of a text.
pub(crate) fn cut(text: &str) -> String {
    if text.len() <= 512 {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if kept.len() + c.len_utf8() + 3 > 512 {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

//! Parts of the document of the API, which is JSON; what is not there is empty.

use serde_json::Value;

pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

pub(super) fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

pub(super) fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The last part of a reference within the document.
pub(super) fn referred(value: &Value) -> Option<&str> {
    value["$ref"].as_str()?.rsplit('/').next()
}

/// The example of a field or parameter: the first one, where there are several.
pub(super) fn example(described: &Value) -> &Value {
    if described["example"].is_null() { &described["examples"][0] } else { &described["example"] }
}

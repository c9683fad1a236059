//! The operations of the API, as its document describes them.

use serde_json::Value;

use super::json::{elements, example, members, referred, text};
use super::schema::{SchemaKind, Word, words};

#[derive(Debug)]
pub(super) struct Operation {
    pub(super) id: String,
    pub(super) method: String,
    pub(super) path: String,
    /// The same without the slash that would lead to the server's root.
    pub(super) relative: String,
    /// Whether it can be followed as it is.
    pub(super) is_link: bool,
    pub(super) summary: String,
    pub(super) description: Vec<Word>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) answers: Vec<Answer>,
    pub(super) example: String,
    pub(super) body: Option<Body>,
}

/// What a request carries.
#[derive(Debug)]
pub(super) struct Body {
    /// The name of its schema.
    pub(super) schema: String,
    /// An example, as JSON.
    pub(super) example: String,
}

#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) is_needed: bool,
    pub(super) kind: SchemaKind,
    pub(super) description: Vec<Word>,
    pub(super) allowed: Vec<String>,
    pub(super) example: String,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: String,
    pub(super) description: String,
    /// The name of its schema; empty for none.
    pub(super) schema: String,
}

impl Operation {
    pub(super) fn new(method: &str, path: &str, operation: &Value, schemas: &Value) -> Self {
        let parameters: Vec<_> = elements(&operation["parameters"]).map(Parameter::new).collect();
        // Those that every operation has are listed once.
        let own = members(&operation["responses"]).filter(|(_, answer)| referred(answer).is_none());
        let mut example = path.trim_start_matches('/').to_owned();
        let mut query = Vec::new();
        for parameter in parameters.iter().filter(|parameter| !parameter.example.is_empty()) {
            if parameter.is_needed {
                example = example.replace(&format!("{{{}}}", parameter.name), &parameter.example);
            } else if query.len() < 2 && !parameter.example.contains(['[', '"']) {
                query.push(format!("{}={}", parameter.name, parameter.example));
            }
        }
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        Self {
            id: text(&operation["operationId"]),
            method: method.to_uppercase(),
            relative: path.trim_start_matches('/').to_owned(),
            is_link: method == "get" && !path.contains('{'),
            path: path.to_owned(),
            summary: text(&operation["summary"]),
            description: words(&text(&operation["description"])),
            answers: own.map(|(status, answer)| Answer::new(status, answer)).collect(),
            example: format!("{example}{query}"),
            body: Body::new(&operation["requestBody"], schemas),
            parameters,
        }
    }
}

impl Body {
    pub(super) fn new(body: &Value, schemas: &Value) -> Option<Self> {
        let name = members(&body["content"]).find_map(|(_, content)| referred(&content["schema"]))?;
        let schema = &schemas[name];
        // What has to be there, with the example that is given of it.
        let needed = elements(&schema["required"]).filter_map(Value::as_str);
        let needed = needed.map(|field| (field.to_owned(), example(&schema["properties"][field]).clone()));
        let example = Value::Object(needed.filter(|(_, example)| !example.is_null()).collect());
        Some(Self { schema: name.to_owned(), example: example.to_string() })
    }
}

impl Parameter {
    pub(super) fn new(parameter: &Value) -> Self {
        let schema = &parameter["schema"];
        let allowed = [&schema["enum"], &schema["items"]["enum"]];
        let allowed: Vec<_> = allowed.into_iter().flat_map(elements).map(text).collect();
        let example =
            [example(parameter), example(schema), &schema["default"]].into_iter().find(|value| !value.is_null());
        Self {
            name: text(&parameter["name"]),
            is_needed: parameter["required"].as_bool().unwrap_or(false),
            kind: SchemaKind::new(schema),
            description: words(&text(&parameter["description"])),
            example: example.map(text).or_else(|| allowed.first().cloned()).unwrap_or_default(),
            allowed,
        }
    }
}

impl Answer {
    pub(super) fn new(status: &str, answer: &Value) -> Self {
        let schema = members(&answer["content"]).find_map(|(_, content)| referred(&content["schema"]));
        let description = text(&answer["description"]);
        Self { status: status.to_owned(), description, schema: schema.unwrap_or_default().to_owned() }
    }
}

//! The bodies of requests and responses, as the document of the API describes them.

use serde_json::Value;

use super::json::{elements, example, members, referred, text};

#[derive(Debug)]
pub(super) struct Schema {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) fields: Vec<Field>,
    /// What it may be, where it is one of some values; each with what it means, as far as that is described.
    pub(super) values: Vec<(String, String)>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: SchemaKind,
    pub(super) description: Vec<Word>,
    pub(super) example: String,
}

/// A piece of a description.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) is_code: bool,
}

/// A description, in which backquotes stand around names and values.
pub(super) fn words(text: &str) -> Vec<Word> {
    let pieces = text.split('`').enumerate().filter(|(_, piece)| !piece.is_empty());
    pieces.map(|(at, piece)| Word { text: piece.to_owned(), is_code: at % 2 == 1 }).collect()
}

/// A type in words, with the schema that it leads to.
#[derive(Debug, Default)]
pub(super) struct SchemaKind {
    /// What stands before the schema's name: `list of `.
    pub(super) text: String,
    /// Empty for a plain type.
    pub(super) schema: String,
    /// What stands behind it: ` or null`.
    pub(super) rest: String,
}

/// The fields of a schema, with those of the ones that it is made of.
fn properties<'a>(schema: &'a Value, schemas: &'a Value) -> Vec<(&'a String, &'a Value)> {
    let parts = elements(&schema["allOf"]).flat_map(|part| {
        let part = referred(part).map_or(part, |name| &schemas[name]);
        properties(part, schemas)
    });
    parts.chain(members(&schema["properties"])).collect()
}

impl Schema {
    pub(super) fn new(name: &str, schema: &Value, schemas: &Value) -> Self {
        let field = |(name, field): (&String, &Value)| Field {
            name: name.clone(),
            kind: SchemaKind::new(field),
            description: words(&described(field)),
            example: text(example(field)),
        };
        let fields = properties(schema, schemas).into_iter().map(field).collect();
        let listed = elements(&schema["enum"]).map(|value| (text(value), String::new()));
        let described = elements(&schema["oneOf"])
            .flat_map(|choice| elements(&choice["enum"]).map(|value| (text(value), text(&choice["description"]))));
        let values = listed.chain(described).collect();
        Self { name: name.to_owned(), description: text(&schema["description"]), fields, values }
    }
}

impl SchemaKind {
    pub(super) fn new(schema: &Value) -> Self {
        if let Some(name) = referred(schema) {
            return Self { schema: name.to_owned(), ..Self::default() };
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            kinds => elements(kinds).filter_map(Value::as_str).collect(),
        };
        let or_null = if types.contains(&"null") { " or null" } else { "" };
        if let Some(choices) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
            let is_null = |choice: &&Value| choice["type"] == "null";
            let kind = choices.iter().find(|choice| !is_null(choice)).map(Self::new).unwrap_or_default();
            let rest = if choices.iter().any(|choice| is_null(&choice)) { " or null" } else { "" };
            return Self { rest: format!("{}{rest}", kind.rest), ..kind };
        }
        if types.contains(&"array") {
            let items = Self::new(&schema["items"]);
            return Self { text: format!("list of {}", items.text), rest: format!("{}{or_null}", items.rest), ..items };
        }
        let kind = types.iter().find(|kind| **kind != "null").copied().unwrap_or("any value");
        let mut said = match (kind, schema["format"].as_str()) {
            ("string", Some("date-time")) => "instant".to_owned(),
            ("object", _) => "object".to_owned(),
            (kind, _) => kind.to_owned(),
        };
        match (schema["minimum"].as_i64().filter(|least| *least > 0), schema["maximum"].as_i64()) {
            (Some(least), Some(most)) => said = format!("{said} from {least} to {most}"),
            (None, Some(most)) => said = format!("{said} up to {most}"),
            (_, None) => {}
        }
        if let Some(length) = schema["maxLength"].as_u64() {
            said = format!("{said} of at most {length} characters");
        }
        Self { text: said, schema: String::new(), rest: or_null.to_owned() }
    }
}

/// What a field is: said of the field, or of the one of its choices that is not null.
fn described(field: &Value) -> String {
    let choices = elements(&field["oneOf"]);
    let said = std::iter::once(field).chain(choices).map(|part| text(&part["description"]));
    said.into_iter().find(|said| !said.is_empty()).unwrap_or_default()
}

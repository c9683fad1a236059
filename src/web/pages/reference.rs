//! The description of the API as pages: the operations, the list of bodies, and each body.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use askama::Template;
use serde_json::Value;

use super::View;
use super::frame::{Frame, Section};
use crate::config::RepositoryParts;
use crate::web::api;

/// The page of the operations, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "api.html")]
pub(super) struct ApiPage {
    frame: Frame,
    reference: &'static Reference,
}

impl ApiPage {
    pub(super) fn new(view: &View) -> Self {
        Self { frame: Frame::new(view, "./".to_owned(), Section::Api), reference: reference(view.repository) }
    }
}

/// The list of the bodies of requests and responses, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "bodies.html")]
pub(super) struct BodiesPage {
    frame: Frame,
    reference: &'static Reference,
}

impl BodiesPage {
    pub(super) fn new(view: &View) -> Self {
        Self { frame: Frame::new(view, "../".to_owned(), Section::Api), reference: reference(view.repository) }
    }
}

/// The page of one body, ready to be rendered. Each has a page of its own: one for all would grow with the API.
#[derive(Debug, Template)]
#[template(path = "body.html")]
pub(super) struct BodyPage {
    frame: Frame,
    schema: &'static Schema,
}

impl BodyPage {
    /// The page of the body of this name; `None` where the document has no such body.
    pub(super) fn new(view: &View, name: &str) -> Option<Self> {
        let schema = reference(view.repository).schemas.iter().find(|schema| schema.name == name)?;
        Some(Self { frame: Frame::new(view, "../../".to_owned(), Section::Api), schema })
    }
}

/// What the document of a server says. It is the same as long as the program runs.
fn reference(has: RepositoryParts) -> &'static Reference {
    static REFERENCES: [OnceLock<Reference>; 8] = [const { OnceLock::new() }; 8];
    let parts = [has.deposits, has.objects, has.deliveries];
    let number = parts.into_iter().fold(0, |number, has| number * 2 + usize::from(has));
    REFERENCES[number].get_or_init(|| {
        let document = serde_json::to_value(api::described(has).0).unwrap_or_default();
        Reference::new(&document)
    })
}

#[derive(Debug)]
struct Reference {
    title: String,
    version: String,
    openapi: String,
    description: String,
    parts: Vec<Part>,
    common: Vec<Answer>,
    schemas: Vec<Schema>,
}

/// The operations on one kind of thing.
#[derive(Debug)]
struct Part {
    name: String,
    means: String,
    operations: Vec<Operation>,
}

#[derive(Debug)]
struct Operation {
    id: String,
    method: String,
    path: String,
    /// The same without the slash that would lead to the server's root.
    relative: String,
    /// Whether it can be followed as it is.
    is_link: bool,
    summary: String,
    description: Vec<Word>,
    parameters: Vec<Parameter>,
    answers: Vec<Answer>,
    example: String,
    body: Option<Body>,
}

/// What a request carries.
#[derive(Debug)]
struct Body {
    /// The name of its schema.
    schema: String,
    /// An example, as JSON.
    example: String,
}

#[derive(Debug)]
struct Parameter {
    name: String,
    is_needed: bool,
    kind: Kind,
    description: Vec<Word>,
    allowed: Vec<String>,
    example: String,
}

#[derive(Debug)]
struct Answer {
    status: String,
    description: String,
    /// The name of its schema; empty for none.
    schema: String,
}

#[derive(Debug)]
struct Schema {
    name: String,
    description: String,
    fields: Vec<Field>,
    /// What it may be, where it is one of some values; each with what it means, as far as that is described.
    values: Vec<(String, String)>,
}

#[derive(Debug)]
struct Field {
    name: String,
    kind: Kind,
    description: Vec<Word>,
    example: String,
}

/// A piece of a description.
#[derive(Debug)]
struct Word {
    text: String,
    is_code: bool,
}

/// A description, in which backquotes stand around names and values.
fn words(text: &str) -> Vec<Word> {
    let pieces = text.split('`').enumerate().filter(|(_, piece)| !piece.is_empty());
    pieces.map(|(at, piece)| Word { text: piece.to_owned(), is_code: at % 2 == 1 }).collect()
}

/// A type in words, with the schema that it leads to.
#[derive(Debug, Default)]
struct Kind {
    /// What stands before the schema's name: `list of `.
    text: String,
    /// Empty for a plain type.
    schema: String,
    /// What stands behind it: ` or null`.
    rest: String,
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The last part of a reference within the document.
fn referred(value: &Value) -> Option<&str> {
    value["$ref"].as_str()?.rsplit('/').next()
}

impl Reference {
    fn new(document: &Value) -> Self {
        let mut operations: Vec<(String, Operation)> = Vec::new();
        for (path, item) in members(&document["paths"]) {
            for (method, operation) in members(item).filter(|(_, operation)| operation["responses"].is_object()) {
                let schemas = &document["components"]["schemas"];
                operations.push((text(&operation["tags"][0]), Operation::new(method, path, operation, schemas)));
            }
        }
        let part = |tag: &Value| {
            let name = text(&tag["name"]);
            let of = operations.extract_if(.., |(tag, _)| *tag == name).map(|(_, operation)| operation).collect();
            Part { means: text(&tag["description"]), operations: of, name }
        };
        let mut parts: Vec<_> = elements(&document["tags"]).map(part).collect();
        if !operations.is_empty() {
            let rest = operations.into_iter().map(|(_, operation)| operation).collect();
            parts.push(Part { name: "more".to_owned(), means: String::new(), operations: rest });
        }
        let components = &document["components"];
        let named = |(status, name): (&str, &str)| Answer::new(status, &components["responses"][name]);
        let answers = members(&document["paths"]).flat_map(|(_, item)| members(item)).flat_map(|(_, operation)| {
            members(&operation["responses"]).filter_map(|(status, answer)| Some((&**status, referred(answer)?)))
        });
        let common: BTreeMap<_, _> = answers.collect();
        Self {
            title: text(&document["info"]["title"]),
            version: text(&document["info"]["version"]),
            openapi: text(&document["openapi"]),
            description: text(&document["info"]["description"]),
            common: common.into_iter().map(named).collect(),
            parts,
            schemas: members(&components["schemas"])
                .map(|(name, schema)| Schema::new(name, schema, &components["schemas"]))
                .collect(),
        }
    }
}

impl Operation {
    fn new(method: &str, path: &str, operation: &Value, schemas: &Value) -> Self {
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
    fn new(body: &Value, schemas: &Value) -> Option<Self> {
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
    fn new(parameter: &Value) -> Self {
        let schema = &parameter["schema"];
        let allowed = [&schema["enum"], &schema["items"]["enum"]];
        let allowed: Vec<_> = allowed.into_iter().flat_map(elements).map(text).collect();
        let example =
            [example(parameter), example(schema), &schema["default"]].into_iter().find(|value| !value.is_null());
        Self {
            name: text(&parameter["name"]),
            is_needed: parameter["required"].as_bool().unwrap_or(false),
            kind: Kind::new(schema),
            description: words(&text(&parameter["description"])),
            example: example.map(text).or_else(|| allowed.first().cloned()).unwrap_or_default(),
            allowed,
        }
    }
}

impl Answer {
    fn new(status: &str, answer: &Value) -> Self {
        let schema = members(&answer["content"]).find_map(|(_, content)| referred(&content["schema"]));
        let description = text(&answer["description"]);
        Self { status: status.to_owned(), description, schema: schema.unwrap_or_default().to_owned() }
    }
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
    fn new(name: &str, schema: &Value, schemas: &Value) -> Self {
        let field = |(name, field): (&String, &Value)| Field {
            name: name.clone(),
            kind: Kind::new(field),
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

impl Kind {
    fn new(schema: &Value) -> Self {
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

/// The example of a field or parameter: the first one, where there are several.
fn example(described: &Value) -> &Value {
    if described["example"].is_null() { &described["examples"][0] } else { &described["example"] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_operation_and_leads_to_schemas_that_are_there() {
        let reference = reference(RepositoryParts::ALL);
        let document = serde_json::to_value(api::described(RepositoryParts::ALL).0).unwrap();
        let shown: usize = reference.parts.iter().map(|part| part.operations.len()).sum();
        let there: usize = members(&document["paths"]).map(|(_, item)| item.as_object().unwrap().len()).sum();
        assert_eq!(shown, there);
        assert!(there > 6, "{there}");
        let has = |name: &str| name.is_empty() || reference.schemas.iter().any(|schema| schema.name == name);
        let fields = reference.schemas.iter().flat_map(|schema| &schema.fields);
        let kinds = fields.map(|field| (&field.name, &field.kind, &field.description));
        for (name, kind, description) in kinds {
            assert!(has(&kind.schema) && !description.is_empty(), "{name}: {kind:?}, {description:?}");
        }
        for (name, schema) in members(&document["components"]["schemas"]) {
            let shown = reference.schemas.iter().find(|shown| shown.name == *name).unwrap();
            let is_made_of_others = schema["allOf"].is_array();
            assert!(!is_made_of_others || shown.fields.len() > members(&schema["properties"]).count(), "{name}");
        }
        for operation in reference.parts.iter().flat_map(|part| &part.operations) {
            assert!(!operation.summary.is_empty() && !operation.summary.contains('`'), "{operation:?}");
            assert!(!operation.example.contains('{'), "{operation:?}");
            for answer in &operation.answers {
                assert!(has(&answer.schema) && !answer.description.is_empty(), "{operation:?}");
            }
            for parameter in &operation.parameters {
                assert!(!parameter.description.is_empty(), "{operation:?}");
            }
        }
        let common: Vec<_> = reference.common.iter().map(|answer| &*answer.status).collect();
        assert_eq!(common, ["400", "401", "403", "404", "413", "415", "421", "500", "503"]);
        let operations = || reference.parts.iter().flat_map(|part| &part.operations);
        let action = operations().find(|operation| operation.path == "/api/v1/actions").unwrap();
        let body = action.body.as_ref().unwrap();
        assert!(has(&body.schema) && !body.schema.is_empty());
        let example: Value = serde_json::from_str(&body.example).unwrap();
        assert!(["action", "on", "reason"].iter().all(|field| example[field].is_string()), "{example}");
        assert!(operations().filter(|operation| operation.method == "POST").count() >= 4);
    }
}

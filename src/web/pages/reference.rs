//! The description of the API as pages: the operations, the list of bodies, and each body.

use std::collections::BTreeMap;

use askama::Template;
use parking_lot::Mutex;
use serde_json::Value;

use super::View;
use super::frame::{Frame, Section};
use crate::config::RepositoryParts;
use crate::web::api;

mod json;
mod operation;
mod schema;

use json::{elements, members, referred, text};
use operation::{Answer, Operation};
use schema::Schema;

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

/// What the document of a server with these parts says. It is the same as long as the program runs, and kept until
/// then: of each choice of parts there is one at most.
fn reference(has: RepositoryParts) -> &'static Reference {
    static REFERENCES: Mutex<BTreeMap<RepositoryParts, &'static Reference>> = Mutex::new(BTreeMap::new());
    REFERENCES.lock().entry(has).or_insert_with(|| {
        let document = serde_json::to_value(api::described(has).0).unwrap_or_default();
        Box::leak(Box::new(Reference::new(&document)))
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
    description: String,
    operations: Vec<Operation>,
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
            Part { description: text(&tag["description"]), operations: of, name }
        };
        let mut parts: Vec<_> = elements(&document["tags"]).map(part).collect();
        if !operations.is_empty() {
            let rest = operations.into_iter().map(|(_, operation)| operation).collect();
            parts.push(Part { name: "more".to_owned(), description: String::new(), operations: rest });
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_choice_of_parts_has_the_operations_of_its_own_document() {
        // One process serves several queues, of which each has parts of its own.
        let paths = |has: RepositoryParts| {
            let shown = reference(has).parts.iter().flat_map(|part| &part.operations);
            shown.map(|operation| operation.path.clone()).collect::<BTreeSet<_>>()
        };
        for number in 0..16 {
            let [deposits, objects, deliveries, mill] = std::array::from_fn(|at| number >> at & 1 == 1);
            let has = RepositoryParts { deposits, objects, deliveries, mill };
            let document = serde_json::to_value(api::described(has).0).unwrap();
            let described = members(&document["paths"]).map(|(path, _)| path.clone()).collect::<BTreeSet<_>>();
            assert_eq!(paths(has), described, "{has:?}");
        }
        let without_mill = RepositoryParts { mill: false, ..RepositoryParts::ALL };
        assert!(paths(RepositoryParts::ALL).contains("/api/v1/mill") && !paths(without_mill).contains("/api/v1/mill"));
    }

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

//! What the description of the API has beside its handlers: the problems that a request may be answered with, by its
//! path, method, parameters and body, the tags, and how to log in.

use std::collections::BTreeMap;

use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::{Tag, TagBuilder};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, Response, ResponseBuilder, Server};

use super::{PREFIX, csv};
use crate::web::http::problem::MEDIA_TYPE;

/// A problem that any operation of a kind may be answered with, where nothing else is described for its status.
struct Common {
    status: &'static str,
    name: &'static str,
    /// When it is returned.
    when: &'static str,
    /// Which operations.
    of: fn(&Shape<'_>) -> bool,
}

/// A problem of the operations that have something in common, such as a field of the body.
struct Shared {
    status: &'static str,
    /// When it is returned, as the end of a sentence.
    when: &'static str,
    /// Whether it adds to what a handler describes for the same status, or gives way to that.
    is_added: bool,
    /// Which operations.
    of: fn(&Shape<'_>) -> bool,
}

/// What shows how an operation may fail.
struct Shape<'a> {
    operation: &'a Operation,
    /// The part of the API that it belongs to.
    part: &'a str,
    method: Method,
    /// The schemas that its body may refer to.
    schemas: &'a Schemas,
}

/// The schemas of the document, by their names.
type Schemas = BTreeMap<String, RefOr<Schema>>;

/// The method of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Get,
    Post,
    Patch,
    Delete,
}

impl Shape<'_> {
    /// Whether it has a parameter of that kind, or of that name.
    fn has(&self, is_wanted: impl Fn(&ParameterIn, &str) -> bool) -> bool {
        let parameters = self.operation.parameters.iter().flatten();
        let mut parameters = parameters.filter_map(|parameter| match parameter {
            RefOr::T(parameter) => Some(parameter),
            RefOr::Ref(_) => None,
        });
        parameters.any(|parameter| is_wanted(&parameter.parameter_in, &parameter.name))
    }

    fn has_input(&self) -> bool {
        self.has(|_, _| true) || self.operation.request_body.is_some()
    }

    /// Whether its body has a reason.
    fn has_reason(&self) -> bool {
        let Some(RefOr::T(body)) = &self.operation.request_body else { return false };
        let mut schemas = body.content.values().filter_map(|content| match content {
            RefOr::T(content) => content.schema.as_ref(),
            RefOr::Ref(_) => None,
        });
        schemas.any(|schema| has_field(schema, "reason", self.schemas))
    }

    /// Whether it names something that may not exist.
    fn names_item(&self) -> bool {
        self.has(|place, name| *place == ParameterIn::Path || matches!(name, "collection" | "group"))
    }

    /// What its path and its query name of the mill, as in `account, space or item`; `None` for nothing.
    fn named_of_mill(&self) -> Option<String> {
        const NAMES: [(&str, &str); 5] =
            [("account", "account"), ("store", "store"), ("destination", "store"), ("space", "space"), ("key", "item")];
        let named = NAMES.into_iter().filter(|(parameter, _)| self.has(|_, name| name == *parameter));
        let words: Vec<_> = named.map(|(_, word)| word).collect();
        let (last, before) = words.split_last().filter(|_| self.part == "mill")?;
        Some(if before.is_empty() { (*last).to_owned() } else { format!("{} or {last}", before.join(", ")) })
    }
}

/// The problems that are derived. A handler describes only those that are specific to it.
const COMMON: [Common; 9] = [
    Common {
        status: "400",
        name: "BadRequest",
        when: "A parameter or the body is not valid; the detail names it, and the allowed values",
        of: |shape| shape.has_input(),
    },
    Common {
        status: "401",
        name: "Unauthorized",
        when: "The server requires a user and a password, or a token, and these are missing or wrong",
        of: |_| true,
    },
    Common {
        status: "403",
        name: "Forbidden",
        when: "The caller's role does not allow it, or this server accepts no actions",
        of: |shape| shape.method != Method::Get,
    },
    Common {
        status: "404",
        name: "NotFound",
        when: "The requested item does not exist",
        of: |shape| shape.names_item(),
    },
    Common {
        status: "413",
        name: "TooLarge",
        when: "The body is larger than the server accepts",
        of: |shape| shape.method == Method::Post,
    },
    Common {
        status: "415",
        name: "WrongType",
        when: "The body is of another type than described, or its Content-Type is missing",
        of: |shape| matches!(shape.method, Method::Post | Method::Patch),
    },
    Common {
        status: "421",
        name: "MisdirectedRequest",
        when: "The Host header is not a name of this server",
        of: |_| true,
    },
    Common { status: "500", name: "Failed", when: "Internal error; the server's log has the cause", of: |_| true },
    Common {
        status: "503",
        name: "Unavailable",
        when: "The queue has not been read yet, or the server is overloaded",
        of: |_| true,
    },
];

/// The problems of operations that have something in common, which their handlers need not repeat.
const SHARED: [Shared; 3] = [
    Shared {
        status: "400",
        when: "the body or its reason is not valid",
        is_added: true,
        of: |shape| shape.has_reason(),
    },
    Shared {
        status: "404",
        when: "this server has no mill",
        is_added: true,
        of: |shape| matches!(shape.part, "mill" | "store-events"),
    },
    // Where an action writes more than these, a part of it may have been done.
    Shared {
        status: "503",
        when: "the catalogue or the audit file cannot be written; nothing was done",
        is_added: false,
        of: |shape| shape.part == "mill" && shape.method == Method::Post && shape.has_reason(),
    },
];

/// The tag of a part of the API, from any of its paths.
pub(super) fn tag(path: &str, description: &str) -> Tag {
    TagBuilder::new().name(part_of(path)).description(Some(description)).build()
}

/// Completes the description.
pub(super) fn complete(document: &mut OpenApi, tags: Vec<Tag>) {
    // Relative to the document itself, which a proxy may serve below any prefix.
    document.servers = Some(vec![Server::new("../..")]);
    document.info.description.get_or_insert_default().extend([" ", csv::FORMAT]);
    let components = document.components.get_or_insert_default();
    for (name, scheme) in [("basic", HttpAuthScheme::Basic), ("bearer", HttpAuthScheme::Bearer)] {
        components.security_schemes.insert(name.to_owned(), RefOr::T(SecurityScheme::Http(Http::new(scheme))));
    }
    for Common { name, when, .. } in COMMON {
        components.responses.insert(name.to_owned(), RefOr::T(problem(when)));
    }
    // The server's configuration decides whether a login is required.
    let by = SecurityRequirement::new::<_, _, &str>;
    document.security = Some(vec![SecurityRequirement::default(), by("basic", []), by("bearer", [])]);
    document.tags = Some(tags);
    let schemas = &components.schemas;
    for (path, item) in &mut document.paths.paths {
        let part = part_of(path);
        let is_csv = path.ends_with(csv::ENDING);
        let operations = [
            (&mut item.get, Method::Get),
            (&mut item.post, Method::Post),
            (&mut item.patch, Method::Patch),
            (&mut item.delete, Method::Delete),
        ];
        for (operation, method) in operations {
            if let Some(operation) = operation {
                describe(operation, part, method, schemas);
                if is_csv {
                    operation.description = Some(csv::DESCRIPTION.to_owned());
                }
            }
        }
    }
}

/// The part of the API that a path belongs to: its first segment, without the ending of a format.
fn part_of(path: &str) -> &str {
    let segment = path.strip_prefix(PREFIX).unwrap_or(path).split('/').nth(1).unwrap_or_default();
    segment.strip_suffix(csv::ENDING).unwrap_or(segment)
}

fn problem(when: &str) -> Response {
    let content = Content::new(Some(RefOr::<Schema>::Ref(Ref::from_schema_name("Problem"))));
    ResponseBuilder::new().description(when).content(MEDIA_TYPE, content).build()
}

/// Whether a body of that schema may have a field of that name.
fn has_field(schema: &RefOr<Schema>, name: &str, schemas: &Schemas) -> bool {
    match schema {
        RefOr::Ref(reference) => {
            let referred = reference.ref_location.rsplit('/').next().and_then(|referred| schemas.get(referred));
            referred.is_some_and(|schema| has_field(schema, name, schemas))
        }
        RefOr::T(Schema::Object(object)) => object.properties.contains_key(name),
        // A body that is optional is null or an object.
        RefOr::T(Schema::OneOf(one)) => one.items.iter().any(|item| has_field(item, name, schemas)),
        RefOr::T(Schema::AllOf(all)) => all.items.iter().any(|item| has_field(item, name, schemas)),
        RefOr::T(_) => false,
    }
}

/// The same with a capital letter at its beginning.
fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase).into_iter().flatten();
    first.chain(characters).collect()
}

fn describe(operation: &mut Operation, part: &str, method: Method, schemas: &Schemas) {
    operation.tags = Some(vec![part.to_owned()]);
    // A handler's first line names its route, which the description has anyway.
    if let Some((_, said)) = operation.summary.as_deref().and_then(|summary| summary.split_once("`: ")) {
        operation.summary = Some(capitalized(said.trim_end_matches('.')));
    }
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        // OpenAPI requires a description of every response.
        if response.description.is_empty() {
            "Success".clone_into(&mut response.description);
        }
        if status.as_str() >= "400" && response.content.is_empty() {
            *response = problem(&response.description);
        }
    }
    let shape = Shape { operation, part, method, schemas };
    let shared: Vec<_> = SHARED.into_iter().filter(|shared| (shared.of)(&shape)).collect();
    let common: Vec<_> = COMMON.into_iter().filter(|common| (common.of)(&shape)).collect();
    let missing = shape.named_of_mill().map(|named| format!("There is no such {named}"));
    let responses = &mut operation.responses.responses;
    if let Some(when) = missing {
        responses.entry("404".to_owned()).or_insert_with(|| RefOr::T(problem(&when)));
    }
    for Shared { status, when, is_added, .. } in shared {
        match responses.get_mut(status) {
            Some(RefOr::T(stated)) if is_added => stated.description.extend([", or ", when]),
            Some(_) => {}
            None => {
                responses.insert(status.to_owned(), RefOr::T(problem(&capitalized(when))));
            }
        }
    }
    for Common { status, name, .. } in common {
        let response = || RefOr::Ref(Ref::new(format!("#/components/responses/{name}")));
        responses.entry(status.to_owned()).or_insert_with(response);
    }
}

#[cfg(test)]
mod tests;

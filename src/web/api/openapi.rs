//! What the description of the API has beside its handlers: the problems that a request may be answered with, by its
//! method and parameters, the tags, and how to log in.

use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::{Tag, TagBuilder};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, Response, ResponseBuilder, Server};

use super::{PREFIX, csv};
use crate::web::http::problem::MEDIA_TYPE;

/// A problem that any operation of a kind may be answered with.
struct Common {
    status: &'static str,
    name: &'static str,
    /// When it is returned.
    when: &'static str,
    /// Which operations.
    of: fn(&Shape<'_>) -> bool,
}

/// What shows how an operation may fail.
struct Shape<'a> {
    operation: &'a Operation,
    method: Method,
}

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

    /// Whether it names something that may not exist.
    fn names_item(&self) -> bool {
        self.has(|place, name| *place == ParameterIn::Path || matches!(name, "collection" | "group"))
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
                describe(operation, part, method);
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

fn describe(operation: &mut Operation, part: &str, method: Method) {
    operation.tags = Some(vec![part.to_owned()]);
    // A handler's first line names its route, which the description has anyway.
    if let Some((_, said)) = operation.summary.as_deref().and_then(|summary| summary.split_once("`: ")) {
        let mut characters = said.trim_end_matches('.').chars();
        let first = characters.next().map(char::to_uppercase).into_iter().flatten();
        operation.summary = Some(first.chain(characters).collect());
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
    let shape = Shape { operation, method };
    let common = COMMON.into_iter().filter(|common| (common.of)(&shape));
    let common: Vec<_> = common.filter(|common| !operation.responses.responses.contains_key(common.status)).collect();
    for Common { status, name, .. } in common {
        let response = RefOr::Ref(Ref::new(format!("#/components/responses/{name}")));
        operation.responses.responses.insert(status.to_owned(), response);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_a_tag_and_every_tag_a_part() {
        let (document, ..) = super::super::described(crate::config::RepositoryParts::ALL);
        let mut parts: Vec<_> = document.paths.paths.keys().map(|path| part_of(path)).collect();
        parts.sort_unstable();
        parts.dedup();
        let mut tags: Vec<_> = document.tags.iter().flatten().map(|tag| &*tag.name).collect();
        tags.sort_unstable();
        assert_eq!(parts, tags);
    }

    #[test]
    fn an_operation_has_the_problems_that_its_method_and_parameters_bring() {
        let (document, ..) = super::super::described(crate::config::RepositoryParts::ALL);
        for (path, problems) in [
            ("/status", &["401", "421", "500", "503"][..]),
            ("/locks", &["400", "401", "421", "500", "503"]),
            ("/locks.csv", &["400", "401", "421", "500", "503"]),
            ("/jobs", &["400", "401", "404", "421", "500", "503"]),
            ("/batches/{batch}", &["400", "401", "404", "421", "500", "503"]),
            ("/tree/{path}", &["400", "401", "403", "404", "421", "500", "502", "503"]),
        ] {
            let operation = document.paths.paths[&format!("{PREFIX}{path}")].get.as_ref().unwrap();
            let found: Vec<_> = operation.responses.responses.keys().filter(|status| *status != "200").collect();
            assert_eq!(found, problems, "{path}");
        }
    }
}

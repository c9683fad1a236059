//! What the description of the API says beside its handlers: the values that parameters take, the answers that any
//! request may get before it reaches a handler, and how one logs in.

use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::schema::{Array, ArrayItems, Schema};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, Response, ResponseBuilder, Server};

use super::PREFIX;
use crate::actions::{ActionKind, Source};
use crate::mirror::find::{Direction, JobSort};
use crate::mirror::lists::{BatchOrder, RequestOrder};
use crate::mirror::{AGE_LABELS, LockKind, state_label};
use crate::views::audit::OUTCOMES;
use crate::web::http::problem::MEDIA_TYPE;
use crate::web::lists::states;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::{AccessState, BatchState, JobState, State};

/// The answers that any request may get, by status: their names, and when they come.
const COMMON: [(&str, &str, &str); 4] = [
    ("401", "Unauthorized", "The server asks for a user and a password, or a token, and these are missing or wrong"),
    ("421", "MisdirectedRequest", "The request's host is none of this server's names"),
    ("500", "Failed", "Something failed in the server; its log says what"),
    ("503", "NotNow", "The queue has not been read yet, or the server has too much to do"),
];

/// The answers besides that a request may get that requests something.
const ORDERING: [(&str, &str, &str); 3] = [
    ("403", "Forbidden", "Whoever sent it may not request that, or this server takes no actions"),
    ("413", "TooLarge", "The body is larger than anything that is taken"),
    ("415", "NoJson", "The body is not JSON, or does not say so"),
];

/// The parts of the API, by the first part of their paths.
const TAGS: [(&str, &str); 15] = [
    ("status", "How far all of it can be trusted"),
    ("identity", "Who asks"),
    ("overview", "Whether the queue flows"),
    ("states", "The states of jobs"),
    ("jobs", "Jobs, in lists and one by one"),
    ("failures", "Failed jobs, in groups of one cause"),
    ("batches", "Batches, in lists and one by one"),
    ("access", "Requests for assembly"),
    ("locks", "Who holds what"),
    ("faults", "What is broken in the tree"),
    ("actions", "Ordering something, and what came of it"),
    ("lists", "Ordering something on many jobs"),
    ("audit", "Who requested what"),
    ("tree", "Any znode"),
    ("history", "The last hours"),
];

/// Completes the description.
pub(super) fn complete(document: &mut OpenApi) {
    // Relative to the document itself, which a proxy may serve below any prefix.
    document.servers = Some(vec![Server::new("../..")]);
    let components = document.components.get_or_insert_default();
    for (name, scheme) in [("basic", HttpAuthScheme::Basic), ("bearer", HttpAuthScheme::Bearer)] {
        components.security_schemes.insert(name.to_owned(), RefOr::T(SecurityScheme::Http(Http::new(scheme))));
    }
    for (_, name, when) in COMMON.into_iter().chain(ORDERING) {
        components.responses.insert(name.to_owned(), RefOr::T(problem(when)));
    }
    // Whether anybody has to log in is for the server's configuration to say.
    let by = SecurityRequirement::new::<_, _, &str>;
    document.security = Some(vec![SecurityRequirement::default(), by("basic", []), by("bearer", [])]);
    let mut used = Vec::new();
    for (path, item) in &mut document.paths.paths {
        let part = path.strip_prefix(PREFIX).unwrap_or(path).split('/').nth(1).unwrap_or_default();
        for (operation, is_action) in [(&mut item.get, false), (&mut item.post, true)] {
            if let Some(operation) = operation {
                describe(operation, part, is_action);
                used.push(part.to_owned());
            }
        }
    }
    let tags = TAGS.into_iter().filter(|(tag, _)| used.iter().any(|part| part == tag));
    let tags = tags.map(|(name, means)| TagBuilder::new().name(name).description(Some(means)).build());
    document.tags = Some(tags.collect());
}

fn problem(when: &str) -> Response {
    let content = Content::new(Some(RefOr::<Schema>::Ref(Ref::from_schema_name("Problem"))));
    ResponseBuilder::new().description(when).content(MEDIA_TYPE, content).build()
}

fn describe(operation: &mut Operation, part: &str, is_action: bool) {
    operation.tags = Some(vec![part.to_owned()]);
    // A handler's first line names its route, which the description has anyway.
    if let Some((_, said)) = operation.summary.as_deref().and_then(|summary| summary.split_once("`: ")) {
        let mut characters = said.trim_end_matches('.').chars();
        let first = characters.next().map(char::to_uppercase).into_iter().flatten();
        operation.summary = Some(first.chain(characters).collect());
    }
    for response in operation.responses.responses.values_mut() {
        // Every answer has to be described, and of one that is what was asked for there is no more to say.
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            "What was asked for".clone_into(&mut response.description);
        }
    }
    let requesting = ORDERING.into_iter().filter(|_| is_action);
    for (status, name, _) in COMMON.into_iter().chain(requesting) {
        let common = RefOr::Ref(Ref::new(format!("#/components/responses/{name}")));
        operation.responses.responses.insert(status.to_owned(), common);
    }
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        let values = values(part, &parameter.name);
        if !values.is_empty() {
            limit(parameter, values);
        }
    }
}

/// The values that a parameter takes; empty for one that takes any.
fn values(part: &str, parameter: &str) -> Vec<&'static str> {
    fn labels<S: State>() -> Vec<&'static str> {
        states::<S>().into_iter().map(state_label).collect()
    }
    match (part, parameter) {
        ("jobs", "state") => labels::<JobState>(),
        ("jobs", "sort") => JobSort::ALL.map(JobSort::label).into(),
        ("jobs", "direction") => Direction::ALL.map(Direction::label).into(),
        ("jobs" | "faults", "fault") => Fault::ALL.map(Fault::label).into(),
        ("batches", "state") => labels::<BatchState>(),
        ("batches", "sort") => BatchOrder::ALL.iter().map(|action| action.label()).collect(),
        ("access", "state") => labels::<AccessState>(),
        ("access", "queue") => AccessQueue::ALL.iter().map(|queue| queue.name()).collect(),
        ("access", "sort") => RequestOrder::ALL.iter().map(|action| action.label()).collect(),
        ("access" | "locks", "age") => AGE_LABELS.into(),
        ("audit", "action") => ActionKind::ALL.map(ActionKind::label).into(),
        ("audit", "source") => Source::ALL.map(Source::label).into(),
        ("audit", "outcome") => OUTCOMES.into(),
        ("locks", "kind") => LockKind::ALL.map(LockKind::label).into(),
        _ => Vec::new(),
    }
}

fn limit(parameter: &mut Parameter, values: Vec<&'static str>) {
    let Some(RefOr::T(schema)) = &mut parameter.schema else { return };
    let object = match schema {
        Schema::Object(object) => object,
        Schema::Array(Array { items: ArrayItems::RefOrSchema(items), .. }) => match &mut **items {
            RefOr::T(Schema::Object(object)) => object,
            _ => return,
        },
        _ => return,
    };
    object.schema_type = utoipa::openapi::Type::String.into();
    object.enum_values = Some(values.into_iter().map(Into::into).collect());
}

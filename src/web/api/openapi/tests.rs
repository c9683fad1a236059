use serde_json::Value;

use super::*;

/// The document as it is served.
fn served() -> Value {
    let (document, ..) = super::super::described(crate::config::RepositoryParts::ALL);
    serde_json::to_value(document).unwrap()
}

/// The operations, each with its path.
fn operations(document: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, item)| item.as_object().unwrap().values().map(move |operation| (path.as_str(), operation)))
}

/// When an operation is answered with a status; empty if that is not described.
fn described<'a>(document: &'a Value, operation: &'a Value, status: &str) -> &'a str {
    let response = &operation["responses"][status];
    let common = response["$ref"].as_str().map(|common| document.pointer(common.trim_start_matches('#')).unwrap());
    common.unwrap_or(response)["description"].as_str().unwrap_or_default()
}

/// Whether a body has a reason, by the text of the document: in a schema that it names, wherever it names it.
fn has_reason(document: &Value, body: &Value) -> bool {
    let (body, schemas) = (body.to_string(), document["components"]["schemas"].as_object().unwrap());
    let has = |schema: &Value| schema["properties"]["reason"].is_object();
    schemas.iter().any(|(name, schema)| has(schema) && body.contains(&format!("/schemas/{name}\"")))
}

#[test]
fn every_operation_on_the_mill_describes_once_that_a_server_may_have_none() {
    let document = served();
    let mut checked = 0;
    for (path, operation) in operations(&document) {
        if !["/mill", "/store-events"].iter().any(|part| path[PREFIX.len()..].starts_with(part)) {
            continue;
        }
        let when = described(&document, operation, "404").to_lowercase();
        assert_eq!(when.matches("this server has no mill").count(), 1, "{path}: {when}");
        // What is named in the path may not exist either.
        assert!(!path.contains('{') || when.ends_with(", or this server has no mill"), "{path}: {when}");
        checked += 1;
    }
    assert!(checked >= 25, "{checked}");
}

#[test]
fn every_operation_with_a_reason_describes_once_that_it_may_not_be_valid() {
    let document = served();
    let mut checked = 0;
    for (path, operation) in operations(&document) {
        let when = described(&document, operation, "400").to_lowercase();
        let times = usize::from(has_reason(&document, &operation["requestBody"]));
        assert_eq!(when.matches("reason").count(), times, "{path}: {when}");
        assert_eq!(when.matches("the body or its reason is not valid").count(), times, "{path}: {when}");
        checked += times;
    }
    assert!(checked >= 16, "{checked}");
}

#[test]
fn what_operations_share_is_added_to_what_their_handlers_describe() {
    let document = served();
    for (path, status, when) in [
        ("/mill/pause", "400", "Neither an account nor a store is named, or the body or its reason is not valid"),
        ("/mill/pause", "404", "There is no such account or store, or this server has no mill"),
        ("/mill/resume", "404", "This server has no mill"),
        ("/mill/held", "404", "There is no such account or store, or this server has no mill"),
        ("/mill/reports", "404", "There is no such account, store or space, or this server has no mill"),
        ("/mill/policies/{account}", "404", "There is no such account, or this server has no mill"),
        ("/mill/repairs/stop", "400", "The body or its reason is not valid"),
        ("/mill/repairs/stop", "503", "The catalogue or the audit file cannot be written; nothing was done"),
        // Its files are written one after the other.
        ("/mill/policies/{account}", "503", "A policy file, the catalogue or the audit file cannot be written"),
        // It writes nothing.
        ("/mill/policies/{account}/plan", "503", "The queue has not been read yet, or the server is overloaded"),
        ("/rules/pause", "400", "The body or its reason is not valid"),
        ("/deposits/{id}/withdraw", "400", "The body or its reason is not valid"),
    ] {
        let item = &document["paths"][format!("{PREFIX}{path}")];
        let operation = item.get("post").unwrap_or(&item["get"]);
        assert_eq!(described(&document, operation, status), when, "{path}");
        let content = &operation["responses"][status]["content"];
        assert!(content.is_null() || content[MEDIA_TYPE].is_object(), "{path}: {content}");
    }
}

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

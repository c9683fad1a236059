//! The dashboards that are committed, and what is in them.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// All of them, by their file names.
pub(super) const NAMES: [&str; 8] = ["overview", "state", "batches", "locks", DAEMONS, "mill", "fixity", "queuekeeper"];

/// The one of the daemons.
pub(super) const DAEMONS: &str = "daemons";

pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards/grafana")
}

/// One of them.
pub(super) fn read(name: &str) -> Value {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A list below a value; empty where there is none.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Its panels, without rows.
pub(super) fn panels(board: &Value) -> impl Iterator<Item = &Value> {
    list(board, "/panels").iter().filter(|panel| panel["type"] != "row")
}

/// A query, and what it is for.
#[derive(Clone, Debug)]
pub(super) struct Query {
    /// The dashboard, the panel and the query's letter.
    pub(super) what: String,
    pub(super) promql: String,
    /// Whether it is queried for this moment, and not for a range.
    pub(super) is_instant: bool,
}

/// Every query of every panel and annotation.
pub(super) fn queries(name: &str) -> Vec<Query> {
    let board = read(name);
    let of_panels = panels(&board).flat_map(|panel| {
        list(panel, "/targets").iter().map(move |target| Query {
            what: format!("{name}: {} {}", text(panel, "/title"), text(target, "/refId")),
            promql: text(target, "/expr").to_owned(),
            is_instant: target["instant"] == true,
        })
    });
    let marks = list(&board, "/annotations/list").iter().filter(|mark| mark.get("expr").is_some());
    let of_marks = marks.map(|mark| Query {
        what: format!("{name}: annotation {}", text(mark, "/name")),
        promql: text(mark, "/expr").to_owned(),
        is_instant: false,
    });
    of_panels.chain(of_marks).collect()
}

/// Every string in it, wherever.
pub(super) fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.values().flat_map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

//! A simple check of the tree: each job's entry and reference match its status.

use serde_json::Value;

use queuekeeper_testkit::tree::Tree;

/// All contradictions to a job's status, in words, except for the demo's own fault, one orphan entry.
pub(super) fn contradictions(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    let mut orphans = Vec::new();
    let text = |path: &str| tree.get(path).map(|(data, _)| String::from_utf8_lossy(data).into_owned());
    let mut jobs = 0;
    for job in tree.keys().filter_map(|path| path.strip_prefix("/jobs/")).filter(|name| name.starts_with("jid")) {
        if job.contains('/') {
            continue;
        }
        jobs += 1;
        let status = text(&format!("/jobs/{job}/status")).and_then(|data| serde_json::from_str::<Value>(&data).ok());
        let state = status.and_then(|status| Some(status.get("status")?.as_str()?.to_lowercase())).unwrap_or_default();
        let (batch, priority) = (text(&format!("/jobs/{job}/bid")), text(&format!("/jobs/{job}/priority")));
        let (batch, priority) = (batch.unwrap_or_default(), priority.unwrap_or_default());
        let entry = format!("/jobs/states/{state}/{priority:0>2}-{job}");
        if !tree.contains_key(&entry) {
            found.push(format!("{job} is {state} and {entry} is missing"));
        }
        let others = tree.keys().filter(|path| path.starts_with("/jobs/states/") && path.ends_with(job));
        orphans.extend(others.filter(|path| **path != entry).cloned());
        let outcome = match state.as_str() {
            "completed" | "failed" | "deleted" => &state,
            _ => "processing",
        };
        let references: Vec<_> =
            tree.keys().filter(|path| path.starts_with("/batches/") && path.ends_with(job)).collect();
        if references != [&format!("/batches/{batch}/states/batch-{outcome}/{job}")] {
            found.push(format!("{job} is {state} and referred to by {references:?}"));
        }
    }
    if jobs == 0 {
        found.push("there are no jobs".to_owned());
    }
    if orphans.len() > 1 {
        found.push(format!("more than one orphan entry: {orphans:?}"));
    }
    found
}

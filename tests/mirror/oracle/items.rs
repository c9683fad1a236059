//! What a single job, batch or request says.

use std::collections::BTreeSet;

use super::{Figures, Item};
use crate::mirror::grammar::{JOB_NODES, Machine, is_id};
use crate::mirror::values::{self, Reading, cut, is_plain};

/// Whether an operator held or failed a job.
fn is_by_operator(state: Option<&str>, message: &str) -> bool {
    matches!(state, Some("failed" | "held")) && message.starts_with("By alice with queuekeeper: ")
}

/// What a job says by itself.
pub(super) fn job(figures: &mut Figures, id: &str, item: &Item<'_>, space: i64, unknown: &mut BTreeSet<String>) {
    let mut status = Reading::of(item.data("status"));
    let (state, odd) = status.status(Machine::Job, item.node("status").is_some());
    let last_successful = status.text(&["last_successful_status"]);
    let retries = status.integer("retry_count");
    let retry_count = retries.and_then(|retries| u32::try_from(retries).ok());
    let message = status.text(&["message"]);
    status.is_bad |= retries.is_some() && retry_count.is_none();

    let mut configuration = Reading::of(item.data("configuration"));
    let collection = cut(&configuration.text(&["profile", "profile_name"]));
    let submitter = configuration.text(&["submitter"]);
    let submitted = configuration.text(&["submissionDate"]);
    let filename = configuration.text(&["filename"]);
    let title = configuration.text(&["title"]);
    let object_id = configuration.text(&["objectID"]);
    configuration.text(&["creator"]);
    let named_local_ids = configuration.list("localID");
    let (mut identifiers, mut identifier) =
        (Reading::of(item.data("identifiers")), Reading::of(item.data("identifier")));
    let arks = [identifiers.text(&["primary_id", "primary"]), identifier.text(&["primary_id", "primary"]), object_id];
    let local_ids = [identifiers.list("local_id"), identifier.list("local_id"), named_local_ids];
    let first = |texts: [String; 3]| texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default();

    let space_needed = item.data("space_needed").map_or(Some(0), values::space);
    let batch = item.data("bid").and_then(values::bid);
    let priority = item.data("priority").and_then(values::priority);
    let mut bad: Vec<_> = JOB_NODES.iter().chain(&["."]).filter(|node| item.is_denied(node)).copied().collect();
    let closed = bad.len();
    let object = |name: &str| Reading::is_refused(item.data(name));
    for (node, is_bad) in [
        ("status", status.is_bad),
        ("configuration", object("configuration")),
        ("identifiers", object("identifiers")),
        ("identifier", object("identifier")),
        ("space_needed", !is_plain(item.data("space_needed"), |text| text.parse::<i64>().is_ok())),
        ("bid", !is_plain(item.data("bid"), |text| is_id(text, "bid"))),
        ("priority", !is_plain(item.data("priority"), |text| values::priority(text.as_bytes()).is_some())),
        ("metadata", object("metadata")),
        ("store", object("store")),
        ("inventory", object("inventory")),
    ] {
        if is_bad {
            bad.push(node);
        }
    }
    figures.add("unreadable".to_owned(), (bad.len() - closed) as u64);
    bad.sort_unstable();
    let space_needed = space_needed.unwrap_or(0);
    if state.is_none() && !odd.is_empty() {
        unknown.insert(cut(&odd));
    }

    let lock = item.lock();
    let locked = if lock.is_some() { "locked" } else { "unlocked" };
    let retries = u64::from(retry_count.unwrap_or(0));
    let group = format!("jobs {}", state.unwrap_or("other"));
    figures.add(format!("{group} count"), 1);
    figures.add(format!("{group} locked"), u64::from(lock.is_some()));
    figures.add(format!("{group} retried"), u64::from(retries > 0));
    figures.add(format!("{group} retries"), retries);
    let is_by_operator = is_by_operator(state, &message);
    figures.add(format!("{group} by operator"), u64::from(is_by_operator));
    let is_held_with_others = state == Some("held") && !is_by_operator && figures.held.contains(&collection);
    figures.add("held with collection".to_owned(), u64::from(is_held_with_others));
    figures.add(format!("{group} space"), space_needed);
    figures.date(format!("{group} oldest {locked}"), item.entered());
    figures.date(format!("{group} oldest"), item.entered());
    figures.age(&group, item.entered());
    figures.most("most retries", retries);
    figures.add(format!("retried {} times", retries.min(3)), 1);
    let waits = state == Some("provisioning") && i64::try_from(space_needed).is_ok_and(|needed| needed > space);
    figures.add("waiting for space".to_owned(), u64::from(waits));
    figures.add(format!("collection {collection:?} {}", state.unwrap_or("other")), 1);
    if lock.is_some() {
        figures.date(format!("{group} oldest lock"), lock.map(|(_, created, _)| created));
        figures.lock("job", &format!("/jobs/{id}/lock"), lock);
    }
    let submitted = values::DATES.iter().find(|(text, _)| *text == submitted).and_then(|(_, at)| *at);
    figures.tell(
        &format!("job {id}"),
        [
            ("state", format!("{state:?}")),
            ("status text", cut(&odd)),
            ("entered", format!("{:?}", item.entered())),
            ("status version", item.version().to_string()),
            ("created", format!("{:?}", item.created())),
            ("priority", format!("{priority:?}")),
            ("lock", format!("{lock:?}")),
            ("retry count", format!("{retry_count:?}")),
            ("last successful", format!("{:?}", Machine::Job.state(&last_successful).map(|(_, label)| label))),
            ("message", cut(&message)),
            ("space", space_needed.to_string()),
            ("batch", format!("{batch:?}")),
            ("collection", collection),
            ("submitter", cut(&submitter)),
            ("submitted", format!("{submitted:?}")),
            ("filename", cut(&filename)),
            ("title", cut(&title)),
            ("ark", cut(&first(arks))),
            ("local ids", cut(&first(local_ids))),
            ("unreadable", bad.join(" ")),
        ],
    );
}

/// What batches and requests have in common: how they stand. Gives the label of the state.
fn item(
    figures: &mut Figures,
    name: &str,
    group: &str,
    item: &Item<'_>,
    machine: Machine,
    unknown: &mut BTreeSet<String>,
) -> &'static str {
    let mut status = Reading::of(item.data("status"));
    let (state, odd) = status.status(machine, item.node("status").is_some());
    if state.is_none() && !odd.is_empty() {
        unknown.insert(cut(&odd));
    }
    let message = status.text(&["message"]);
    figures.add("unreadable".to_owned(), u64::from(status.is_bad));
    if state.is_none() && !odd.is_empty() {
        unknown.insert(cut(&odd));
    }
    let label = state.unwrap_or("other");
    figures.add(format!("{group} {label} count"), 1);
    figures.date(format!("{group} {label} oldest"), item.entered());
    figures.tell(
        name,
        [
            ("state", format!("{state:?}")),
            ("status text", cut(&odd)),
            ("entered", format!("{:?}", item.entered())),
            ("status version", item.version().to_string()),
            ("message", cut(&message)),
            ("lock", format!("{:?}", item.lock())),
        ],
    );
    label
}

/// What a batch says by itself.
pub(super) fn batch(figures: &mut Figures, id: &str, found: &Item<'_>, unknown: &mut BTreeSet<String>) {
    let name = format!("batch {id}");
    item(figures, &name, "batches", found, Machine::Batch, unknown);
    let mut submission = Reading::of(found.data("submission"));
    let [uuid, collection, submitter, filename, title] =
        [&["batchID"][..], &["profile", "profile_name"], &["submitter"], &["filename"], &["title"]]
            .map(|keys| cut(&submission.text(keys)));
    submission.text(&["type"]);
    submission.text(&["submissionDate"]);
    let report = Reading::of(found.data("status-report"));
    figures.add(
        "unreadable".to_owned(),
        u64::from(Reading::is_refused(found.data("submission"))) + u64::from(report.is_bad),
    );
    let is_acquired = found.nodes.contains_key("states").to_string();
    figures.tell(
        &name,
        [
            ("uuid", uuid),
            ("collection", collection),
            ("submitter", submitter),
            ("filename", filename),
            ("title", title),
            ("is acquired", is_acquired),
        ],
    );
    if found.lock().is_some() {
        figures.lock("batch", &format!("/batches/{id}/lock"), found.lock());
    }
}

/// What an access request says.
pub(super) fn request(figures: &mut Figures, id: &str, found: &Item<'_>, unknown: &mut BTreeSet<String>) {
    let name = format!("request {id}");
    let group = format!("requests {}", id.split('/').next().unwrap_or_default());
    let label = item(figures, &name, &group, found, Machine::Access, unknown);
    let mut token = Reading::of(found.data("token"));
    let text = cut(&token.text(&["token"]));
    let bytes = token.integer("cloud-content-byte").and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
    token.integer("delivery-node");
    token.text(&["url"]);
    figures.add("unreadable".to_owned(), u64::from(Reading::is_refused(found.data("token"))));
    figures.add(format!("{group} {label} bytes"), bytes);
    figures.tell(&name, [("token", text), ("bytes", bytes.to_string())]);
    if found.lock().is_some() {
        figures.lock("access", &format!("/access/{id}/lock"), found.lock());
    }
}

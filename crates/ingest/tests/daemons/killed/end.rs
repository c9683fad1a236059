//! How all stands when the work is done, in lines that are the same whenever it was done.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use queuekeeper_store::store::PROBE_SPACE;
use serde_json::Value;
use uuid::Uuid;

use super::super::remote::Remote;
use super::super::world::{World, store};

/// What is compared of the catalogue.
const TABLES: [&str; 8] = [
    "SELECT 'object', ark, owner, collection, title, creator, current_version FROM objects",
    "SELECT 'version', objects.ark, number, job, batch, submitter, message, file_count, byte_count
     FROM versions JOIN objects ON objects.id = object",
    "SELECT 'file', objects.ark, number, path, content_path, size, digests, media_type, is_billable
     FROM files JOIN versions ON versions.id = version JOIN objects ON objects.id = object",
    "SELECT 'identifier', ark, job, owner, registered IS NOT NULL FROM identifiers",
    "SELECT 'local id', owner, local_id, ark, job FROM local_ids",
    "SELECT 'message', message, kind, subject, recipient, batch, profile, error, settled, delivered IS NOT NULL FROM outbox",
    "SELECT 'deposit', batch, depositor, object_count, outcome, part_of, part FROM deposits",
    "SELECT 'intent', store, space, key FROM intents",
];

/// Lines of what there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End(BTreeSet<String>);

impl End {
    pub(super) async fn of(world: &World) -> Self {
        let mut lines = BTreeSet::new();
        let directory = world.directory.path();
        // As the daemons do from time to time.
        for (name, folder) in [("main", "objects"), ("out", "deliveries")] {
            store(directory, name.parse().unwrap(), folder).await.sweep(Timestamp::now()).await.unwrap();
        }
        let place = [(directory.display().to_string(), "HERE"), (world.origin.address().to_string(), "ORIGIN")];
        let jobs = jobs(world).await;
        let hide = |text: &str| {
            let text = jobs.iter().fold(text.to_owned(), |text, (job, id)| text.replace(job, id));
            let text = place.iter().fold(text, |text, (from, to)| text.replace(from, to));
            masked(&text)
        };
        znodes(world, &hide, &mut lines).await;
        for folder in ["objects", "deliveries", "working", "mails"] {
            files(directory, &directory.join(folder), &hide, &mut lines);
        }
        for key in world.remote.iter().flat_map(Remote::keys) {
            lines.extend(lasting(&key).map(|name| hide(&name)));
        }
        for table in TABLES {
            lines.extend(world.sql(table).iter().map(|row| hide(&row.to_string())));
        }
        for row in world.sql("SELECT ark, current_version FROM objects") {
            let version = u32::try_from(row[1].as_u64().unwrap()).unwrap();
            world.check_stored(row[0].as_str().unwrap(), version).await;
        }
        Self(lines)
    }

    /// What is there and should not be, and what is missing.
    pub(super) fn differences(&self, found: &Self) -> Vec<String> {
        let more = found.0.difference(&self.0).map(|line| format!("left over: {line}"));
        more.chain(self.0.difference(&found.0).map(|line| format!("missing: {line}"))).collect()
    }
}

/// The id that each job has in its batch: of batches whose jobs are created at the same time, either may have the
/// first.
async fn jobs(world: &World) -> Vec<(String, String)> {
    let mut jobs = Vec::new();
    for job in world.children("/jobs").await {
        if let Ok((data, _)) = world.queue.client().get_data(&format!("/jobs/{job}/configuration")).await {
            let configuration: Value = serde_json::from_slice(&data).unwrap();
            jobs.push((job, configuration["jobID"].as_str().unwrap().to_owned()));
        }
    }
    jobs
}

/// Every znode with its data.
async fn znodes(world: &World, hide: &impl Fn(&str) -> String, lines: &mut BTreeSet<String>) {
    let mut paths = vec![String::new()];
    while let Some(path) = paths.pop() {
        let name = if path.is_empty() { "/" } else { &path };
        let (data, _) = world.queue.client().get_data(name).await.unwrap();
        let data = match serde_json::from_slice(&data) {
            Ok(value) => timeless(value).to_string(),
            Err(_) => String::from_utf8_lossy(&data).into_owned(),
        };
        // Where estimating cannot write, a size is not known, and its job comes later.
        let (folder, last) = name.rsplit_once('/').unwrap_or_default();
        let line = match last.split_once('-') {
            Some((_priority, job)) if job.starts_with("jid") => format!("{folder}/{job}"),
            _ if last == "priority" => name.to_owned(),
            _ => format!("{name} {data}"),
        };
        // The folder of those that wait is made with the first of them.
        if name != "/queuekeeper/retry" {
            lines.insert(hide(&line));
        }
        for child in world.children(name).await {
            paths.push(format!("{path}/{child}"));
        }
    }
}

/// Every file and folder below a folder.
fn files(top: &Path, folder: &Path, hide: &impl Fn(&str) -> String, lines: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(top).unwrap().display().to_string();
        let Some(name) = lasting(&name) else { continue };
        lines.insert(hide(&name));
        if path.is_dir() {
            files(top, &path, hide, lines);
        }
    }
}

/// The name of a file or key as it is compared; `None` for one that may be there or not.
fn lasting(name: &str) -> Option<String> {
    // Files that are there to be locked stay, and probes until cleanup removes them with all that is as old.
    if name.contains(".queuekeeper/locks/") || name.contains(PROBE_SPACE) {
        return None;
    }
    // A record is named by its time, and its folder is not.
    let record = name.rsplit_once('.').filter(|(record, _)| record.contains(".queuekeeper/records/"));
    Some(record.map_or_else(|| name.to_owned(), |(record, _time)| format!("{record}.TIME")))
}

/// JSON without times.
fn timeless(value: Value) -> Value {
    match value {
        Value::Object(all) => {
            // The URLs in it have the port of an origin.
            let timeless = |key: &str, value| if key == "manifestSHA256" { "DIGEST".into() } else { timeless(value) };
            let all = all.into_iter();
            all.map(|(key, value)| (key.clone(), timeless(&key, value))).collect()
        }
        Value::Array(all) => all.into_iter().map(timeless).collect(),
        Value::String(text) if is_time(&text) => "TIME".into(),
        // Each link is signed with a key and a time of its own.
        Value::String(text) if text.starts_with("http://host/access/download/") => {
            let (_, name) = text.rsplit_once('/').unwrap();
            format!("LINK/{name}").into()
        }
        Value::Number(number) if number.as_i64().is_some_and(|number| number > 1_000_000_000_000) => "TIME".into(),
        other => other,
    }
}

fn is_time(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok() || Timestamp::strptime("%F %T %z", text).is_ok()
}

/// Text without the UUIDs that are random, and without the times in names.
pub(super) fn masked(text: &str) -> String {
    let mut words = text.split_inclusive(|char: char| !char.is_ascii_alphanumeric() && char != '-');
    let mut masked = String::new();
    for word in &mut words {
        let end = word.len() - word.trim_end_matches(|char: char| !char.is_ascii_alphanumeric() && char != '-').len();
        let (word, end) = word.split_at(word.len() - end);
        let uuid = word.get(word.len().saturating_sub(36)..).and_then(|uuid| uuid.parse::<Uuid>().ok());
        let is_random = uuid.is_some_and(|uuid| matches!(uuid.get_version_num(), 4 | 7));
        match word.split('-').collect::<Vec<_>>()[..] {
            _ if is_random => masked.push_str("UUID"),
            ["report", number, time] if u64::from_str_radix(time, 16).is_ok() => {
                masked.extend(["report-", number, "-TIME"]);
            }
            _ => masked.push_str(word),
        }
        masked.push_str(end);
    }
    masked
}

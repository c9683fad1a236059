//! What lies where, by a plain walk of directories and the plain list of a bucket, with the digests of `sha256sum`; and
//! what the audit log says, by the database's own client. Nothing here is the mill's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use queuekeeper_testkit::s3::S3Server;
use serde_json::Value;

use super::operator::Operator;
use super::world::{BUCKET, CLOUD, FOREIGN, MAIN, PREFIX, REPLICA, SPACE};

/// The space for what is kept of content that was deleted or overwritten.
const ASIDE: &str = "x-queuekeeper-aside";

/// Content by its key.
pub(super) type Contents = BTreeMap<String, Vec<u8>>;

/// The files of a space of a store that is a directory.
pub(super) fn in_directory(top: &Path, space: &str) -> Contents {
    let (mut contents, mut folders) = (Contents::new(), vec![top.join(space)]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(top.join(space)).unwrap().to_str().unwrap();
            // How the documentation says that a part of a key without a name is written.
            let parts: Vec<_> = name.split('/').map(|part| if part == "%2F" { "" } else { part }).collect();
            contents.insert(parts.join("/"), std::fs::read(&path).unwrap());
        }
    }
    contents
}

/// The objects of a space of the bucket.
pub(super) fn in_bucket(server: &S3Server, space: &str) -> Contents {
    let before = format!("{PREFIX}/{space}/");
    let keys = server.keys(BUCKET).into_iter().filter_map(|key| Some(key.strip_prefix(&before)?.to_owned()));
    keys.map(|key| (key.clone(), server.content(BUCKET, &format!("{before}{key}")).unwrap())).collect()
}

/// What differs between what should be and what is: as lines.
pub(super) fn differences(expected: &Contents, found: &Contents, what: &str) -> Vec<String> {
    let keys: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let line = |key: &String| match (expected.get(key), found.get(key)) {
        (Some(expected), Some(found)) if expected == found => None,
        (Some(_), Some(_)) => Some(format!("{what}: {key} has other content")),
        (Some(_), None) => Some(format!("{what}: {key} is missing")),
        (None, _) => Some(format!("{what}: {key} should not be there")),
    };
    keys.into_iter().filter_map(line).collect()
}

/// The digests of contents, each as often as it is there.
fn digests(contents: &Contents) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let files: Vec<_> = (0..contents.len()).map(|at| directory.path().join(at.to_string())).collect();
    for (file, content) in files.iter().zip(contents.values()) {
        std::fs::write(file, content).unwrap();
    }
    let mut digests = Vec::new();
    for files in files.chunks(500) {
        let output = Command::new("sha256sum").args(files).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        digests.extend(text.lines().map(|line| line.split(' ').next().unwrap().to_owned()));
    }
    digests.sort_unstable();
    digests
}

/// An event of the audit log.
struct Event {
    seq: String,
    store: String,
    key: String,
    change: String,
    digest: Option<String>,
    properties: String,
}

fn events(operator: &Operator) -> Vec<Event> {
    let sql = format!(
        "SELECT seq, store, encode(key, 'escape'), change, digests, COALESCE(properties, '') FROM audit_log
        WHERE space = '{SPACE}' AND key <> '' ORDER BY seq"
    );
    let event = |line: &str| {
        let columns: Vec<_> = line.splitn(6, '|').map(str::to_owned).collect();
        let [seq, store, key, change, digests, properties] = columns.try_into().unwrap();
        let digests: Value = serde_json::from_str(&digests).unwrap();
        let digest = digests["sha256"].as_str().map(str::to_owned);
        Event { seq, store, key, change, digest, properties }
    };
    operator.query(&sql).lines().map(event).collect()
}

/// What the audit log says of a copy: what is there now by its key, what was destroyed, and what is wrong.
#[derive(Default)]
struct Followed {
    living: BTreeMap<String, String>,
    destroyed: Vec<String>,
    wrong: Vec<String>,
}

/// Goes through the events of a store. Each content is another one: what is written twice was done twice.
fn follow(events: &[Event], store: &str) -> Followed {
    let (mut followed, mut written, mut said) = (Followed::default(), BTreeSet::new(), BTreeMap::new());
    for Event { seq, key, change, digest, properties, .. } in events.iter().filter(|event| event.store == store) {
        let mut wrong = |why: &str| followed.wrong.push(format!("{store}: event {seq}, {change} of {key}: {why}"));
        match change.as_str() {
            "add" | "update" => {
                let Some(digest) = digest else {
                    wrong("it has no digest");
                    continue;
                };
                if !written.insert((key, digest)) {
                    wrong("the same content was written before");
                }
                said.remove(key);
                let before = followed.living.insert(key.clone(), digest.clone());
                if before.is_some() != (change == "update") {
                    wrong("an addition of what is there, or an update of what is not");
                }
                followed.destroyed.extend(before);
            }
            "delete" => {
                let before = followed.living.remove(key);
                if before.is_none() {
                    wrong("it is not there");
                }
                followed.destroyed.extend(before);
            }
            "properties" => {
                if !followed.living.contains_key(key) {
                    wrong("it is not there");
                }
                if said.insert(key, properties) == Some(properties) {
                    wrong("the same was said of it before");
                }
            }
            _ => wrong("it is not known what was done"),
        }
    }
    followed.destroyed.sort_unstable();
    followed
}

/// What is wrong with the stores, the audit log and what is kept aside: as lines, none where all is well.
pub(super) fn wrong(directory: &Path, server: &S3Server, operator: &Operator) -> Vec<String> {
    let source = in_directory(&directory.join(MAIN), SPACE);
    let mut expected = source.clone();
    expected.insert(FOREIGN.to_owned(), FOREIGN.as_bytes().to_vec());
    let events = events(operator);
    let mut lines = Vec::new();
    let replica = |space: &str| in_directory(&directory.join(REPLICA), space);
    let cloud = |space: &str| in_bucket(server, space);
    for (store, copies, aside) in [(REPLICA, replica(SPACE), replica(ASIDE)), (CLOUD, cloud(SPACE), cloud(ASIDE))] {
        lines.extend(differences(&expected, &copies, store));
        let followed = follow(&events, store);
        lines.extend(followed.wrong);
        let mut living: Vec<_> = followed.living.into_values().collect();
        living.sort_unstable();
        if living != digests(&source) {
            lines.push(format!("{store}: the audit log says of other content that it is there"));
        }
        let kept = digests(&aside);
        if kept != followed.destroyed {
            let often = |list: &[String], of: &String| list.iter().filter(|one| *one == of).count();
            let all: BTreeSet<_> = kept.iter().chain(&followed.destroyed).collect();
            let differ = all.into_iter().filter(|of| often(&kept, of) != often(&followed.destroyed, of));
            let differ = differ.map(|of| {
                format!(
                    "{store}: {of} was destroyed {} times, and is aside {} times",
                    often(&followed.destroyed, of),
                    often(&kept, of)
                )
            });
            lines.extend(differ);
        }
        let counted = operator.query(&format!("SELECT COALESCE(SUM(number), 0) FROM effects WHERE store = '{store}'"));
        if counted.trim() != followed.destroyed.len().to_string() {
            let destroyed = followed.destroyed.len();
            lines.push(format!("{store}: the brake counted {} of {destroyed} that were destroyed", counted.trim()));
        }
    }
    // Of the source it is known that all events follow each other.
    let of_source = follow(&events, MAIN);
    lines.extend(of_source.wrong);
    lines
}

//! What `load` reads, and what `dump --redact` makes of values.

use queuekeeper_queue::dump::Redaction;
use queuekeeper_queue::dump::line::{DumpLine, compare, read_line};
use queuekeeper_queue::load::{DumpReader, LoadLimits};
use queuekeeper_queue::path::{AccessQueue, BatchNode, JobNode, LockFolder, Path, QueueName, RequestNode};
use queuekeeper_queue::record::{
    Configuration, Identifiers, ItemStatus, JobStatus, Submission, bid, is_priority_out_of_range, priority,
    space_needed,
};
use queuekeeper_queue::state::{BatchState, JobState, State as _};

use super::shown;

/// The largest number that a job may have.
const LARGEST: u32 = 1_000_000;

/// Reads the bytes as a dump, and redacts the values in it, and the bytes themselves as a value.
///
/// # Panics
/// When a dump is accepted that is none, or when redacting shows what it should not or changes what makes a fault.
pub fn check(data: &[u8]) {
    let redaction = Redaction::new(&[7; 32]);
    let mut reader = DumpReader::new(LoadLimits::new(LARGEST, "/", &[]));
    let mut lines = data.split(|byte| *byte == b'\n');
    let header = lines.next().unwrap_or_default();
    let mut is_whole = match reader.header(header) {
        Ok(_) => true,
        Err(error) => {
            shown::error(error, 1_000);
            false
        }
    };
    let (mut nodes, mut before) = (0, None::<String>);
    for line in lines {
        if let Ok(DumpLine::Node(node)) = read_line(line) {
            redacted(&redaction, &Path::parse_whole(&node.path), &node.data);
        }
        if !is_whole {
            continue;
        }
        if let Err(error) = reader.check(line) {
            shown::error(error, 4_000);
            is_whole = false;
        } else if let Ok(DumpLine::Node(node)) = read_line(line) {
            nodes += 1;
            let path = node.path.into_owned();
            assert!(before.as_ref().is_none_or(|before| compare(before, &path).is_lt()), "{path} comes in its order");
            assert!(path.starts_with('/') && (path == "/" || !path.ends_with('/')), "{path} is absolute");
            before = Some(path);
        }
    }
    match reader.end() {
        Ok((trailer, _)) => assert!(!is_whole || trailer.nodes == nodes, "{trailer:?} and {nodes}"),
        Err(error) => shown::error(error, 1_000),
    }
    let (job, batch) =
        ("jid0000000001".parse().expect("this is an id"), "bid0000000001".parse().expect("this is an id"));
    let request = "qid0000000001".parse().expect("this is an id");
    let of_job = JobNode::ALL.iter().map(|node| Path::JobNode(job, *node));
    let of_batch = BatchNode::ALL.iter().map(|node| Path::BatchNode(batch, *node));
    let of_request = RequestNode::ALL.iter().map(|node| Path::RequestNode(AccessQueue::Small, request, *node));
    let others = [
        Path::QueueLock(QueueName::Ingest),
        Path::NamedLock(LockFolder::Collections, "demo".into()),
        Path::BatchUuid("bid-9c1a".into()),
        Path::Unexpected("/notes".into()),
    ];
    for path in of_job.chain(of_batch).chain(of_request).chain(others) {
        redacted(&redaction, &path, data);
    }
}

/// Redacts a value as that of a znode.
fn redacted(redaction: &Redaction, path: &Path, data: &[u8]) {
    let shown = redaction.data(path, data);
    assert_eq!(shown.is_empty(), data.is_empty(), "{path}: nothing is nothing");
    assert_eq!(*shown, *redaction.data(path, data), "{path}: the same is redacted the same");
    match path {
        Path::JobNode(_, JobNode::Status) => {
            let (old, new) = (JobStatus::decode(data), JobStatus::decode(&shown));
            alike(path, old.malformed.as_ref(), new.malformed.as_ref());
            assert_eq!(old.value.status.state, new.value.status.state, "{path}: a state is no secret");
            assert_eq!(old.value.status.is_canonical(), new.value.status.is_canonical(), "{path}");
            assert_eq!(old.value.retry_count, new.value.retry_count, "{path}: a count is no secret");
            assert_eq!(old.value.last_successful, new.value.last_successful, "{path}: a state is no secret");
            hidden(path, &old.value.message, &shown);
        }
        Path::BatchNode(_, BatchNode::Status) => {
            let (old, new) = (ItemStatus::<BatchState>::decode(data), ItemStatus::<BatchState>::decode(&shown));
            alike(path, old.malformed.as_ref(), new.malformed.as_ref());
            assert_eq!(old.value.status.state, new.value.status.state, "{path}: a state is no secret");
            hidden(path, &old.value.message, &shown);
        }
        Path::JobNode(_, JobNode::Configuration) => {
            let (old, new) = (Configuration::decode(data), Configuration::decode(&shown));
            alike(path, old.malformed.as_ref(), new.malformed.as_ref());
            let old = old.value;
            for text in [&old.collection, &old.submitter, &old.filename, &old.title, &old.creator, &old.object_id] {
                hidden(path, text, &shown);
            }
            assert_eq!(old.local_ids.len(), new.value.local_ids.len(), "{path}: as many local ids");
        }
        Path::JobNode(_, JobNode::Identifiers) => {
            let (old, new) = (Identifiers::decode(data), Identifiers::decode(&shown));
            alike(path, old.malformed.as_ref(), new.malformed.as_ref());
            hidden(path, &old.value.ark, &shown);
            old.value.local_ids.iter().for_each(|id| hidden(path, id, &shown));
        }
        Path::BatchNode(_, BatchNode::Submission) => {
            let (old, new) = (Submission::decode(data), Submission::decode(&shown));
            alike(path, old.malformed.as_ref(), new.malformed.as_ref());
            hidden(path, &old.value.title, &shown);
        }
        Path::JobNode(_, JobNode::Bid) => assert_eq!(bid(data).ok(), bid(&shown).ok(), "{path}: an id is no secret"),
        Path::JobNode(_, JobNode::Priority) => {
            assert_eq!(priority(data).ok(), priority(&shown).ok(), "{path}: a priority is no secret");
            assert_eq!(is_priority_out_of_range(data), is_priority_out_of_range(&shown), "{path}");
        }
        Path::JobNode(_, JobNode::SpaceNeeded) => {
            assert_eq!(space_needed(data).ok(), space_needed(&shown).ok(), "{path}: a size is no secret");
        }
        _ => {}
    }
}

/// Checks that what cannot be read still cannot, and what can still can.
fn alike<T: std::fmt::Debug>(path: &Path, old: Option<&T>, new: Option<&T>) {
    assert_eq!(old.is_some(), new.is_some(), "{path}: {old:?} became {new:?}");
}

/// Checks that a text of a user is nowhere in it. Short ones may stand in what is written instead, and so may those
/// that look like a hash: a fuzzer sees the hashes of other texts, and takes them for texts.
fn hidden(path: &Path, text: &str, shown: &[u8]) {
    let identifies = |c: char| c.is_alphabetic() && !c.is_ascii_hexdigit() && c != 'x';
    let is_identifying = text.len() >= 8 && text.chars().any(identifies) && !is_of_the_queue(text);
    let is_there = is_identifying && shown.windows(text.len()).any(|found| found == text.as_bytes());
    assert!(!is_there, "{path}: {text:?} stands in {}", String::from_utf8_lossy(shown));
}

/// Whether a text is one that the queue itself uses: such stand in its values everywhere.
fn is_of_the_queue(text: &str) -> bool {
    let is_state = JobState::ALL.iter().any(|state| state.name().eq_ignore_ascii_case(text));
    is_state || ["redacted", "last_", "_", "status"].iter().any(|own| text.contains(own))
}

//! The chroot that a dump is loaded into: empty at the beginning, paused meanwhile, as the dump has it at the end.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::expanding::Expanding;
use super::nodes::{Chunks, DumpNode};
use super::{LoadError, LoadOptions};
use crate::dump::Header;
use crate::error::Error;
use crate::handle::{Found, Queue as Handle, Read};
use crate::id::BatchId;
use crate::path::{Path, QueueName};
use crate::record::ExpansionNote;
use crate::time;
use crate::transaction::Transaction;

/// How many znodes of a chroot that is not empty are named.
const NAMED: usize = 5;

/// The znodes that pause the daemons, and those above them, parents first. Ours are there from the beginning; what the
/// dump has of them is kept for the end.
pub(super) const KEPT: [Path; 6] = [
    Path::Root,
    Path::Locks,
    Path::QueueLocks,
    Path::QueueLock(QueueName::Ingest),
    Path::QueueLock(QueueName::AccessSmall),
    Path::QueueLock(QueueName::AccessLarge),
];

/// Where a dump is loaded.
pub(super) struct LoadTarget {
    is_resumed: bool,
    /// What the dump has of the znodes that are made first.
    kept: BTreeMap<Path, Vec<u8>>,
    /// How far the jobs of batches are created.
    expansions: BTreeMap<BatchId, ExpansionNote>,
}

impl LoadTarget {
    /// Looks whether the chroot is empty, or a load of this dump was interrupted there, and pauses the queues.
    pub(super) async fn open(queue: &Handle, header: &Header, options: &LoadOptions) -> Result<Self, LoadError> {
        let target = Self { is_resumed: options.resume, kept: BTreeMap::new(), expansions: header.expansions.clone() };
        let [root, marker, expansions] = queue
            .read_each([
                Read::Children(Path::Root),
                Read::Data(Path::QueueLock(QueueName::Ingest)),
                Read::Children(Path::expansions()),
            ])
            .await?;
        if !root.exists() {
            return Err(Error::Missing(Path::Root).into());
        }
        let mut found: Vec<_> = root.children().iter().map(|name| Path::Root.any_child(name)).collect();
        found.retain(|path| *path != Path::Foreign);
        // Of another tree's batch: a daemon would take it for one of the batch that gets its number.
        found.extend(expansions.children().iter().map(|name| Path::expansions().child(name)));
        found.sort_unstable();
        let interrupted = marker.data().and_then(|(data, _)| dump_of(&data));
        let wanted = named(&header.id, &options.sha256);
        match (interrupted, options.resume) {
            (Some(found), true) if found == wanted => return Ok(target),
            (Some(found), true) => return Err(LoadError::AnotherDump { found, wanted }),
            (Some(found), false) => return Err(LoadError::Interrupted(found)),
            (None, true) => return Err(LoadError::NothingToResume),
            (None, false) => {}
        }
        if !found.is_empty() {
            let more = found.len().saturating_sub(NAMED);
            let mut names: Vec<_> = found.iter().take(NAMED).map(|path| shortened(&path.to_string())).collect();
            if more > 0 {
                names.push(format!("and {more} more"));
            }
            return Err(LoadError::NotEmpty(names));
        }
        let note = json!({
            "who": "queuekeeper load",
            "why": "a dump is being loaded",
            "since": time::write(options.now),
            "dump": header.id,
            "sha256": options.sha256,
        });
        let mut begin = Transaction::new();
        for path in KEPT {
            match path {
                Path::Root => {}
                Path::QueueLock(_) => {
                    begin.create(path, note.to_string());
                }
                folder => {
                    begin.create(folder, Vec::new());
                }
            }
        }
        queue.commit(&begin).await?;
        Ok(target)
    }

    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Keeps a znode for the end that is there from the beginning, and returns any other.
    pub(super) fn keep(&mut self, node: DumpNode) -> Option<DumpNode> {
        if !KEPT.contains(&node.path) {
            return Some(node);
        }
        self.kept.insert(node.path, node.data);
        None
    }

    /// Adds what the dump shows of the creation of jobs to what its first line says.
    pub(super) fn complete(&mut self, expanding: &Expanding) {
        expanding.complete(&mut self.expansions);
    }

    /// How far the jobs of batches are created, as transactions.
    pub(super) fn expansions(&self, mut chunks: Chunks) -> Vec<Transaction> {
        let mut transactions = Vec::new();
        for (unit, (batch, note)) in (1..).zip(&self.expansions) {
            transactions.extend(chunks.add(Path::expansion(*batch), note.encode(), unit));
        }
        transactions.extend(chunks.rest());
        transactions
    }

    /// Leaves pauses as the dump has them, all in one transaction: with it the load is done.
    pub(super) async fn close(self, queue: &Handle) -> Result<(), LoadError> {
        let found = queue.read_each(KEPT.map(Read::Data)).await?;
        let mut end = Transaction::new();
        for (path, found) in KEPT.into_iter().zip(found.into_iter().map(Found::data)).rev() {
            let (data, stat) = found.ok_or_else(|| Error::Missing(path.clone()))?;
            match self.kept.get(&path) {
                Some(wanted) if *wanted == data => {}
                Some(wanted) => {
                    end.set(path, wanted.clone(), stat.version);
                }
                // The chroot itself stays, and so does its value where the dump has none.
                None if path == Path::Root => {}
                None => {
                    end.delete(path, Some(stat.version));
                }
            }
        }
        if !end.is_empty() {
            queue.commit(&end).await?;
        }
        Ok(())
    }
}

/// The dump whose load left this pause behind.
fn dump_of(data: &[u8]) -> Option<String> {
    let note: Value = serde_json::from_slice(data).ok()?;
    if note.get("who")?.as_str()? != "queuekeeper load" {
        return None;
    }
    let text = |key: &str| note.get(key).and_then(Value::as_str).unwrap_or("unknown");
    Some(named(text("dump"), text("sha256")))
}

/// A dump in words: by its id and its checksum, since a dump that was edited keeps its id.
fn named(id: &str, sha256: &str) -> String {
    format!("{id}, SHA-256 {sha256}")
}

/// Shortens a name that another client chose, for a line of text.
fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::REQUEST_LIMIT_BYTES;

    #[test]
    fn a_pause_of_a_load_names_its_dump_and_any_other_does_not() {
        let note = |note: Value| dump_of(note.to_string().as_bytes());
        let (who, found) = ("queuekeeper load", Some("d, SHA-256 ab".to_owned()));
        assert_eq!(note(json!({ "who": who, "dump": "d", "sha256": "ab" })), found);
        assert_eq!(found, Some(named("d", "ab")));
        assert_eq!(note(json!({ "who": who })), Some("unknown, SHA-256 unknown".to_owned()));
        assert_eq!(note(json!({ "who": "alice", "dump": "d", "sha256": "ab" })), None);
        assert_eq!([note(json!({ "dump": "d" })), note(json!([])), dump_of(b"")], [None, None, None]);
    }

    #[test]
    fn what_is_made_first_is_kept_for_the_end() {
        for is_resumed in [false, true] {
            let mut target = LoadTarget { is_resumed, kept: BTreeMap::new(), expansions: BTreeMap::new() };
            assert_eq!(target.is_resumed(), is_resumed);
            let mut keep = |path: &str| {
                let node = DumpNode { path: Path::parse(path), data: b"x".to_vec(), unit: 1 };
                target.keep(node).map(|node| node.path.to_string())
            };
            assert_eq!([keep("/locks"), keep("/locks/queue/ingest")], [None, None]);
            assert_eq!(keep("/locks/storage"), Some("/locks/storage".to_owned()));
            let kept: Vec<_> = target.kept.iter().map(|(path, data)| (path.to_string(), data.as_slice())).collect();
            assert_eq!(kept, [("/locks", &b"x"[..]), ("/locks/queue/ingest", b"x")].map(|(p, d)| (p.to_owned(), d)));
        }
    }

    #[test]
    fn each_batch_whose_jobs_are_being_created_is_noted_once_in_requests_that_the_server_takes() {
        let note = |next| ExpansionNote { next, ..ExpansionNote::default() };
        let (batches, long_chroot) = (201, 9_000);
        let expansions = (1..=batches).map(|batch| (BatchId::new(batch), note(batch.into()))).collect();
        let target = LoadTarget { is_resumed: false, kept: BTreeMap::new(), expansions };
        assert_eq!(target.expansions(Chunks::new(0)).len(), 1);
        let transactions = target.expansions(Chunks::new(long_chroot));
        for transaction in &transactions {
            let bytes = transaction.size_bytes() + transaction.operations().len() * long_chroot;
            assert!(bytes < REQUEST_LIMIT_BYTES / 2, "{bytes}");
        }
        assert!((7..10).contains(&transactions.len()), "{}", transactions.len());
        let words: String = transactions.iter().map(ToString::to_string).collect();
        let all = (1..=batches).map(|batch| {
            let note = String::from_utf8(note(batch.into()).encode()).unwrap();
            format!("create {} = {note}\n", Path::expansion(BatchId::new(batch)))
        });
        assert_eq!(words, all.collect::<String>());
    }

    #[test]
    fn a_name_is_shortened_to_what_a_line_has_room_for() {
        assert_eq!([shortened("/a"), shortened(&"\u{e9}".repeat(65))], ["/a".to_owned(), "\u{e9}".repeat(64)]);
    }
}

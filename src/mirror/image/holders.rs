//! Who holds which locks, and what the locks of an admin say.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use crate::mirror::read::Found;
use crate::mirror::text::cut;
use crate::queue::path::{BatchNode, JobNode, LockFolder, Path, RequestNode};
use crate::queue::record::PauseNote;

/// The note in the lock of a paused queue or a held collection. Texts are anybody's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::mirror) struct Note {
    pub(in crate::mirror) who: Box<str>,
    pub(in crate::mirror) why: Box<str>,
}

/// Every ephemeral lock by the session that holds it.
#[derive(Debug, Default)]
pub(super) struct Holders {
    sessions: HashMap<Path, i64>,
    locks: HashMap<i64, BTreeSet<Path>>,
    /// Only notes that say something.
    notes: HashMap<Path, Note>,
}

impl Holders {
    /// Takes note of what a read found at a path, if that is a lock's.
    pub(super) fn note(&mut self, path: &Path, found: &Found) {
        match path {
            Path::JobNode(_, JobNode::Lock)
            | Path::BatchNode(_, BatchNode::Lock)
            | Path::RequestNode(_, _, RequestNode::Lock)
            | Path::PublishedLocalId(_)
            | Path::NamedLock(LockFolder::Storage | LockFolder::Inventory | LockFolder::LocalId, _) => {
                self.note_holder(path, found);
            }
            Path::QueueLock(_) | Path::NamedLock(LockFolder::Collections, _) => self.note_words(path, found),
            Path::Root
            | Path::BatchUuids
            | Path::BatchUuid(_)
            | Path::Batches
            | Path::Batch(_)
            | Path::BatchNode(..)
            | Path::BatchOutcome(..)
            | Path::Reference(..)
            | Path::Jobs
            | Path::Job(_)
            | Path::JobNode(..)
            | Path::JobStates
            | Path::StateFolder(_)
            | Path::Entry(..)
            | Path::Access
            | Path::AccessQueue(_)
            | Path::Request(..)
            | Path::RequestNode(..)
            | Path::Locks
            | Path::QueueLocks
            | Path::LockFolder(_)
            | Path::PublishedLocalIds
            | Path::Foreign
            | Path::Unexpected(_) => {}
        }
    }

    fn note_holder(&mut self, path: &Path, found: &Found) {
        // A persistent lock is nobody's.
        let session = found.node().map(|(_, stat)| stat.ephemeral_owner).filter(|session| *session != 0);
        let before = match session {
            Some(session) => self.sessions.insert(path.clone(), session),
            None => self.sessions.remove(path),
        };
        if before == session {
            return;
        }
        if let Some(before) = before
            && let Some(locks) = self.locks.get_mut(&before)
        {
            locks.remove(path);
            if locks.is_empty() {
                self.locks.remove(&before);
            }
        }
        if let Some(session) = session {
            self.locks.entry(session).or_default().insert(path.clone());
        }
    }

    fn note_words(&mut self, path: &Path, found: &Found) {
        let note = found.node().map(|(data, _)| PauseNote::decode(data).value);
        let note = note.map(|note| Note { who: cut(&note.who).into(), why: cut(&note.why).into() });
        match note.filter(|note| *note != Note::default()) {
            Some(note) => self.notes.insert(path.clone(), note),
            None => self.notes.remove(path),
        };
    }

    /// The locks that a session holds, in the order of their paths.
    pub(super) fn of(&self, session: i64) -> impl ExactSizeIterator<Item = &Path> {
        static NONE: BTreeSet<Path> = BTreeSet::new();
        self.locks.get(&session).unwrap_or(&NONE).iter()
    }

    /// What the lock of an admin says.
    pub(super) fn words(&self, path: &Path) -> Note {
        self.notes.get(path).cloned().unwrap_or_default()
    }
}

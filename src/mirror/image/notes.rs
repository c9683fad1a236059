//! The notes in the locks of paused queues and held collections.

use hashbrown::HashMap;

use crate::mirror::read::Found;
use crate::mirror::text::cut;
use queuekeeper_queue::path::{LockFolder, Path};
use queuekeeper_queue::record::PauseNote;

/// The note in the lock of a paused queue or a held collection. Any client may have written its texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::mirror) struct Note {
    pub(in crate::mirror) who: Box<str>,
    pub(in crate::mirror) why: Box<str>,
}

/// Every note that says something.
#[derive(Debug, Default)]
pub(super) struct Notes {
    notes: HashMap<Path, Note>,
}

impl Notes {
    /// Takes note of what a read found at a path, if that is such a lock.
    pub(super) fn note(&mut self, path: &Path, found: &Found) {
        if !matches!(path, Path::QueueLock(_) | Path::NamedLock(LockFolder::Collections, _)) {
            return;
        }
        let note = found.node().map(|(data, _)| PauseNote::decode(data).value);
        let note = note.map(|note| Note { who: cut(&note.who).into(), why: cut(&note.why).into() });
        match note.filter(|note| *note != Note::default()) {
            Some(note) => self.notes.insert(path.clone(), note),
            None => self.notes.remove(path),
        };
    }

    /// The note in a lock; empty where it has none.
    pub(super) fn of(&self, path: &Path) -> Note {
        self.notes.get(path).cloned().unwrap_or_default()
    }
}

//! The locks below `/locks`.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::job_index::Sessions;
use super::row::{LockStat, UNKNOWN_MS};
use crate::mirror::bands::Bands;
use crate::mirror::read::Found;
use crate::mirror::summary::LockKind;
use queuekeeper_queue::path::{LockFolder, Path, QueueName};

/// Every lock below `/locks`, and the figures over them. Those of jobs, batches and requests are with these.
#[derive(Debug, Default)]
pub(super) struct Locks {
    held: BTreeMap<Path, Held>,
    /// By the instant of creation, in the order of [`LockKind::ALL`].
    pub(super) kinds: [Bands<5>; 8],
    /// The locks by the number that `kinds` and `sessions` know them by.
    paths: HashMap<u32, Path>,
    pub(super) sessions: Sessions,
    next: u32,
    pub(super) unreadable: i64,
}

#[derive(Debug)]
struct Held {
    kind: LockKind,
    /// `None` for a lock that is there, but not readable.
    stat: Option<LockStat>,
    /// Distinguishes locks that were created in the same millisecond.
    number: u32,
}

/// The kind of the locks in a folder.
pub(super) fn kind(folder: LockFolder) -> LockKind {
    match folder {
        LockFolder::Collections => LockKind::Collection,
        LockFolder::Storage => LockKind::Storage,
        LockFolder::Inventory => LockKind::Inventory,
        LockFolder::LocalId => LockKind::LocalId,
    }
}

impl Locks {
    /// Takes note of what a read found at a lock. Gives whether that is new.
    pub(super) fn apply(&mut self, kind: LockKind, path: Path, found: &Found) -> bool {
        let old = self.held.remove(&path);
        if let Some(held) = &old {
            self.kinds[kind as usize].remove(held.created_ms(), held.number);
            self.unreadable -= i64::from(held.stat.is_none());
            self.paths.remove(&held.number);
            held.stat.inspect(|stat| self.sessions.remove(stat.session, held.number));
        }
        let stat = found.node().map(|(_, stat)| LockStat::of(stat));
        let changed = old.is_some() != found.is_present() || old.as_ref().is_some_and(|held| held.stat != stat);
        if found.is_present() {
            let number = old.map_or(self.next, |held| held.number);
            self.next = self.next.max(number.wrapping_add(1));
            let held = Held { kind, stat, number };
            self.kinds[kind as usize].insert(held.created_ms(), held.number);
            self.unreadable += i64::from(held.stat.is_none());
            self.paths.insert(held.number, path.clone());
            held.stat.inspect(|stat| self.sessions.insert(stat.session, held.number));
            self.held.insert(path, held);
        }
        changed
    }

    /// Whether a lock is there, readable or not.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.held.contains_key(path)
    }

    /// A lock that is there and readable.
    pub(super) fn get(&self, path: &Path) -> Option<LockStat> {
        self.held.get(path).and_then(|held| held.stat)
    }

    /// Whether a lock is there and not readable.
    pub(super) fn is_unreadable(&self, path: &Path) -> bool {
        self.held.get(path).is_some_and(|held| held.stat.is_none())
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Every lock with its stat; `None` for one that is not readable.
    pub(super) fn iter(&self) -> impl Iterator<Item = (LockKind, &Path, Option<LockStat>)> {
        self.held.iter().map(|(path, held)| (held.kind, path, held.stat))
    }

    /// The lock of that number, as `kinds` and `sessions` know it.
    pub(super) fn at(&self, number: u32) -> Option<(LockKind, &Path, Option<LockStat>)> {
        let path = self.paths.get(&number)?;
        self.held.get(path).map(|held| (held.kind, path, held.stat))
    }

    /// Since when a queue is paused, in milliseconds by the servers' clock; `None` while it runs.
    pub(super) fn paused_ms(&self, queue: QueueName) -> Option<i64> {
        self.held.get(&Path::QueueLock(queue)).map(Held::created_ms)
    }
}

impl Held {
    fn created_ms(&self) -> i64 {
        self.stat.map_or(UNKNOWN_MS, |stat| stat.created_ms)
    }
}

//! Syncs of directories, each shared by those who wait for one of the same directory.
//!
//! A sync makes every name durable that the directory had when it began. Who comes while one is under way waits for its
//! end, and then one of them syncs for all of them: of many writers into one directory, a few syncs serve all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::tree::sync;

/// The device and the inode of a directory.
type Directory = (u64, u64);

/// The directories that are being synced.
#[derive(Default)]
pub(super) struct Syncs {
    shared: Mutex<HashMap<Directory, Arc<Shared>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    has_ended: Condvar,
}

#[derive(Default)]
struct State {
    /// How many syncs were requested.
    requested: u64,
    /// Of how many of them, the first ones, the names are durable.
    synced: u64,
    is_running: bool,
    /// How many wait.
    users: usize,
}

impl Syncs {
    /// Makes the names in a directory durable, those that it has now.
    pub(super) fn sync(&self, directory: impl AsFd) -> io::Result<()> {
        self.sync_by(&directory, || sync(&directory))
    }

    fn sync_by(&self, directory: impl AsFd, run: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let facts = rustix::fs::fstat(directory)?;
        let directory = (facts.st_dev, facts.st_ino);
        let shared = {
            let mut all = self.shared.lock();
            let shared = Arc::clone(all.entry(directory).or_default());
            shared.state.lock().users += 1;
            shared
        };
        let synced = shared.sync(run);
        // The directory is open until here, so that its inode is no other directory's.
        let mut all = self.shared.lock();
        let mut state = shared.state.lock();
        state.users -= 1;
        if let (0, Entry::Occupied(entry)) = (state.users, all.entry(directory)) {
            entry.remove();
        }
        synced
    }
}

impl Shared {
    fn sync(&self, run: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.state.lock();
        state.requested += 1;
        let ours = state.requested;
        while state.is_running && state.synced < ours {
            self.has_ended.wait(&mut state);
        }
        if state.synced >= ours {
            return Ok(());
        }
        state.is_running = true;
        let covered = state.requested;
        drop(state);
        let synced = run();
        let mut state = self.state.lock();
        state.is_running = false;
        if synced.is_ok() {
            state.synced = covered;
        }
        // Where it failed, each of the others syncs by itself, and has its own answer.
        self.has_ended.notify_all();
        synced
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// How many syncs of the one directory that there is were requested.
    fn requested(syncs: &Syncs) -> u64 {
        syncs.shared.lock().values().next().map_or(0, |shared| shared.state.lock().requested)
    }

    #[test]
    fn who_comes_during_a_sync_shares_the_next_one_and_a_failure_is_of_one_alone() {
        let top = tempfile::tempdir().unwrap();
        let (syncs, count) = (Syncs::default(), AtomicUsize::new(0));
        let open = || File::open(top.path()).unwrap();
        for fails in [false, true] {
            count.store(0, Ordering::Relaxed);
            let (begun, has_begun) = mpsc::channel();
            let (go_on, may_go_on) = mpsc::channel::<()>();
            let outcomes = thread::scope(|scope| {
                let (syncs, count) = (&syncs, &count);
                let first = scope.spawn(move || {
                    syncs.sync_by(open(), || {
                        begun.send(()).unwrap();
                        may_go_on.recv().unwrap();
                        Ok(())
                    })
                });
                has_begun.recv().unwrap();
                let others: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(move || {
                            syncs.sync_by(open(), || match count.fetch_add(1, Ordering::Relaxed) {
                                0 if fails => Err(io::Error::other("the disk")),
                                _ => Ok(()),
                            })
                        })
                    })
                    .collect();
                while requested(syncs) < 9 {
                    thread::yield_now();
                }
                assert_eq!(count.load(Ordering::Relaxed), 0, "the first one began before their names were there");
                go_on.send(()).unwrap();
                first.join().unwrap().unwrap();
                others.into_iter().map(|other| other.join().unwrap().is_ok()).collect::<Vec<_>>()
            });
            let (failed, syncs_of_others) = (usize::from(fails), 1 + usize::from(fails));
            assert_eq!(outcomes.iter().filter(|is_ok| !**is_ok).count(), failed);
            assert_eq!(count.load(Ordering::Relaxed), syncs_of_others);
            assert!(syncs.shared.lock().is_empty());
        }
    }
}

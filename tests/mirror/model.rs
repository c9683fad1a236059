//! The mirror without a server: each of many small changes to a tree in memory is read alone, and after some of them
//! the mirror says what the tree says.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use queuekeeper::mirror::AGE_BOUNDS;
use queuekeeper::mirror::fuzzing::Mirrored;
use zookeeper_client::Stat;

use super::chaos::Chaos;
use super::facts::{self, differences};
use super::grammar::{NodeKind, kind};
use super::harness::SPACE;
use super::oracle;
use super::writes::{Write, folders, new_batch};
use queuekeeper_testkit::tree::Tree;

/// How many trees there are, and how many groups of writes each has.
const TREES: u64 = 12;
const GROUPS: usize = 400;

/// After how many groups the mirror is compared with the tree.
const COMPARED_AFTER: usize = 40;

/// A tree as a server keeps it.
#[derive(Clone)]
struct Model {
    tree: Tree,
    /// The transaction's number, and its instant in milliseconds.
    zxid: i64,
    now_ms: i64,
}

impl Model {
    /// An empty tree of two days ago.
    fn new() -> Self {
        let start = Timestamp::now() - SignedDuration::from_hours(48);
        Self {
            tree: Tree::from([("/".to_owned(), (Vec::new(), stat(0, 0, 0)))]),
            zxid: 0,
            now_ms: start.as_millisecond(),
        }
    }

    /// What a server does with a write; gives the paths that it changed, none where it refuses.
    fn write(&mut self, write: &Write) -> Vec<String> {
        let before = self.clone();
        self.zxid += 1;
        // Together about the time since the start, and often more than a minute.
        self.now_ms += 7_001;
        let writes = if let Write::Multi(writes) = write { writes.as_slice() } else { std::slice::from_ref(write) };
        let changed: Option<Vec<_>> = writes.iter().map(|write| self.write_one(write)).collect();
        changed.unwrap_or_else(|| {
            self.tree = before.tree;
            Vec::new()
        })
    }

    fn write_one(&mut self, write: &Write) -> Option<String> {
        let path = match write {
            Write::Create(path, data) => {
                self.create(path, data, 0)?;
                path
            }
            Write::Lock(path) => {
                self.create(path, b"", 0x1_0000 + self.zxid % 7)?;
                path
            }
            Write::Set(path, data) => {
                let (old, stat) = self.tree.get_mut(path)?;
                old.clone_from(data);
                (stat.mzxid, stat.mtime, stat.version) = (self.zxid, self.now_ms, stat.version + 1);
                path
            }
            Write::Delete(path) => {
                let has_children = self.tree.range(format!("{path}/")..format!("{path}0")).next().is_some();
                if has_children || path == "/" {
                    return None;
                }
                self.tree.remove(path)?;
                path
            }
            Write::Multi(_) => unreachable!("transactions are not nested"),
        };
        Some(path.clone())
    }

    fn create(&mut self, path: &str, data: &[u8], session: i64) -> Option<()> {
        let parent = path.rsplit_once('/').map(|(parent, _)| if parent.is_empty() { "/" } else { parent })?;
        let is_possible = self.tree.get(parent).is_some_and(|(_, stat)| stat.ephemeral_owner == 0);
        if !is_possible || self.tree.contains_key(path) {
            return None;
        }
        self.tree.insert(path.to_owned(), (data.to_vec(), stat(self.zxid, self.now_ms, session)));
        Some(())
    }

    /// What reading a znode again finds.
    fn read(&self, path: String) -> (String, Option<(Vec<u8>, Stat)>) {
        let node = self.tree.get(&path).cloned();
        (path, node)
    }
}

fn stat(zxid: i64, at_ms: i64, session: i64) -> Stat {
    Stat {
        czxid: zxid,
        mzxid: zxid,
        pzxid: zxid,
        ctime: at_ms,
        mtime: at_ms,
        version: 0,
        cversion: 0,
        aversion: 0,
        ephemeral_owner: session,
        data_length: 0,
        num_children: 0,
    }
}

/// Whether the mirror reads a znode at all: nothing below one that has no children in the queue's grammar.
fn is_read(path: &str) -> bool {
    let ends = |path: &str| {
        matches!(
            kind(path),
            NodeKind::Unexpected | NodeKind::Foreign | NodeKind::Uuid | NodeKind::Entry(_) | NodeKind::Reference(..)
        )
    };
    kind(path) != NodeKind::Foreign && !path.match_indices('/').any(|(at, _)| at > 0 && ends(&path[..at]))
}

/// An instant before which about half of what is in the tree was changed, and some later ones.
fn instants(tree: &Tree) -> impl Iterator<Item = Timestamp> {
    let mut times: Vec<_> = tree.values().map(|(_, stat)| stat.mtime).filter(|at_ms| *at_ms > 0).collect();
    times.sort_unstable();
    let last = times.last().copied().unwrap_or_default();
    let middle = times.get(times.len() / 2).copied().unwrap_or_default();
    // Nothing is later than now.
    let at = move |bound: &Duration| middle.saturating_add(i64::try_from(bound.as_millis()).unwrap()).max(last);
    let bounds: Vec<_> = AGE_BOUNDS.iter().map(at).collect();
    [last].into_iter().chain(bounds).map(|at_ms| Timestamp::from_millisecond(at_ms).unwrap())
}

#[test]
fn the_mirror_says_of_a_tree_in_memory_what_the_tree_says_after_any_changes() {
    for seed in 1..=TREES {
        let (mut chaos, mut model, mirrored) = (Chaos::new(seed), Model::new(), Mirrored::default());
        mirrored.start();
        let mut writes = [folders(), new_batch("bid0000000000")].concat();
        for group in 1..=GROUPS {
            writes.extend(chaos.writes());
            let changed: BTreeSet<_> = writes.drain(..).flat_map(|write| model.write(&write)).collect();
            let reads = changed.into_iter().filter(|path| is_read(path)).map(|path| model.read(path));
            mirrored.follow(reads);
            if group % COMPARED_AFTER != 0 {
                continue;
            }
            for (at, now) in instants(&model.tree).enumerate() {
                // As they are between two moves, and at each.
                if at % 2 == 1 {
                    mirrored.set_marks(now);
                }
                let expected = oracle::of_tree(&model.tree, &BTreeSet::new(), now, SPACE);
                let said = facts::of_store(&mirrored.store(), now, SPACE).unwrap();
                let differing = differences(&expected, &said);
                assert!(differing.is_empty(), "tree {seed}, group {group}, as of {now}: {differing:#?}");
            }
        }
    }
}

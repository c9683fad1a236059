//! Records that are looked up, added and removed by key.

use std::collections::{BTreeMap, btree_map};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::iter::Peekable;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use super::filter::Filter;
use super::merged::Merged;
use super::record::Record;
use super::table::{Spill, Table};

/// How many bytes of changes are kept in memory; more are written to a file as a sorted run.
const RECENT_BYTES: usize = 256 << 10;

/// What an entry in memory takes besides its key and value, about, in bytes.
const ENTRY_BYTES: usize = 64;

/// From so many runs on, they are merged into one.
const MOST_RUNS: usize = 64;

/// The first byte of the value of a key that is there, in a run.
const LIVE: u8 = 1;

/// That of a key that was removed.
const REMOVED: u8 = 0;

/// What a key has for a value; `None` where it was removed.
type Change = Option<Box<[u8]>>;

/// A map of which the newest changes are in memory and older ones in sorted runs. Its hasher has random keys, since
/// keys may be hostile.
pub(crate) struct Map {
    directory: Arc<Path>,
    /// By key.
    recent: BTreeMap<Box<[u8]>, Change>,
    recent_bytes: usize,
    spill: Option<Spill>,
    /// The oldest first.
    runs: Vec<Run>,
    hasher: RandomState,
    length: usize,
}

struct Run {
    table: Table,
    /// Of its keys, and of the folders that they lie in, each with its slash.
    filter: Filter,
    /// How many hashes the filter has.
    hashes: usize,
}

impl Map {
    /// An empty one whose temporary files are in this directory.
    pub(crate) fn new(directory: &Arc<Path>) -> Self {
        Self {
            directory: Arc::clone(directory),
            recent: BTreeMap::new(),
            recent_bytes: 0,
            spill: None,
            runs: Vec::new(),
            hasher: RandomState::new(),
            length: 0,
        }
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        if let Some(value) = self.recent.get(key) {
            return Ok(value.as_ref().map(|value| value.to_vec()));
        }
        let hash = self.hasher.hash_one(key);
        for run in self.runs.iter().rev().filter(|run| run.filter.may_have(hash)) {
            if let Some(record) = Merged::new([&run.table], key).next_if(|record| record.key() == key)? {
                return Ok(live(&record).map(<[u8]>::to_vec));
            }
        }
        Ok(None)
    }

    pub(crate) fn has(&self, key: &[u8]) -> io::Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// The first key in a folder, which ends with a slash.
    pub(crate) fn first_in(&self, folder: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let hash = self.hasher.hash_one(folder);
        let runs = self.runs.iter().filter(|run| run.filter.may_have(hash));
        let first = self.live(runs, folder).next().transpose()?;
        Ok(first.map(|(key, _)| key))
    }

    /// All keys in ascending order, with their values.
    pub(crate) fn iter(&self) -> Live<'_> {
        self.live(self.runs.iter(), b"")
    }

    /// Sets the value of a key.
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if !self.has(key)? {
            self.length += 1;
        }
        self.change(key, Some(value))
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, key: &[u8]) -> io::Result<()> {
        if self.has(key)? {
            self.length -= 1;
            self.change(key, None)?;
        }
        Ok(())
    }

    fn live<'a>(&'a self, runs: impl DoubleEndedIterator<Item = &'a Run>, prefix: &[u8]) -> Live<'a> {
        let recent = self.recent.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded)).peekable();
        Live { prefix: prefix.to_vec(), recent, older: Merged::new(runs.rev().map(|run| &run.table), prefix) }
    }

    fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> io::Result<()> {
        self.recent_bytes += ENTRY_BYTES + key.len() + value.map_or(0, <[u8]>::len);
        self.recent.insert(key.into(), value.map(Into::into));
        if self.recent_bytes < RECENT_BYTES {
            return Ok(());
        }
        self.flush()?;
        if self.runs.len() == MOST_RUNS { self.merge() } else { Ok(()) }
    }

    /// Writes the changes in memory as a run.
    fn flush(&mut self) -> io::Result<()> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::new(&self.directory)?),
        };
        let (mut most_hashes, mut before) = (0, &b""[..]);
        for key in self.recent.keys() {
            most_hashes += hashes(before, key).count();
            before = key;
        }
        // They stay in memory where they cannot be written.
        let changes = self.recent.iter().map(|(key, value)| Ok((key, value.as_ref())));
        self.runs.push(Run::write(spill, &self.hasher, most_hashes, changes)?);
        self.recent.clear();
        self.recent_bytes = 0;
        Ok(())
    }

    /// Makes one run of all, in a file of its own. No changes are in memory then.
    fn merge(&mut self) -> io::Result<()> {
        let mut spill = Spill::new(&self.directory)?;
        let most_hashes = self.runs.iter().map(|run| run.hashes).sum();
        let all = self.iter().map(|entry| entry.map(|(key, value)| (key, Some(value))));
        let run = Run::write(&mut spill, &self.hasher, most_hashes, all)?;
        self.runs = vec![run];
        self.spill = Some(spill);
        Ok(())
    }
}

impl Run {
    /// Writes keys with what they have for a value, `None` where they were removed, in ascending order.
    fn write<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        spill: &mut Spill,
        hasher: &RandomState,
        most_hashes: usize,
        changes: impl Iterator<Item = io::Result<(K, Option<V>)>>,
    ) -> io::Result<Self> {
        let (mut table, mut filter) = (spill.table(), Filter::new(most_hashes));
        let (mut before, mut count): (Option<K>, _) = (None, 0);
        for change in changes {
            let (key, value) = change?;
            match &value {
                Some(value) => table.push(key.as_ref(), &[&[LIVE], value.as_ref()].concat())?,
                None => table.push(key.as_ref(), &[REMOVED])?,
            }
            for text in hashes(before.as_ref().map_or(b"", AsRef::as_ref), key.as_ref()) {
                filter.insert(hasher.hash_one(text));
                count += 1;
            }
            before = Some(key);
        }
        Ok(Self { table: table.finish()?, filter, hashes: count })
    }
}

/// What the filter of a run has for a key: itself, and its folders but those that the key before it lies in.
fn hashes<'a>(before: &[u8], key: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let common = before.iter().zip(key).take_while(|(one, other)| one == other).count();
    let folders = key.iter().enumerate().skip(common).filter(|(_, byte)| **byte == b'/').map(|(at, _)| &key[..=at]);
    folders.chain([key])
}

/// The value that a record of a run has; `None` where the key was removed.
fn live(record: &Record) -> Option<&[u8]> {
    record.value().split_first().filter(|(mark, _)| **mark == LIVE).map(|(_, value)| value)
}

/// The keys of a [`Map`] that begin with a prefix, in ascending order, with their values.
pub(crate) struct Live<'a> {
    prefix: Vec<u8>,
    recent: Peekable<btree_map::Range<'a, Box<[u8]>, Change>>,
    /// The newest run first.
    older: Merged,
}

/// A key, with its value where it was not removed.
type Step = (Vec<u8>, Option<Vec<u8>>);

impl Live<'_> {
    /// The next key.
    fn step(&mut self) -> io::Result<Option<Step>> {
        let prefix = &self.prefix;
        let recent = self.recent.peek().map(|(key, _)| &***key).filter(|key| key.starts_with(prefix));
        let found = match (recent, self.older.peek()?) {
            (None, None) => return Ok(None),
            (Some(recent), older) if older.is_none_or(|older| recent <= older.key()) => {
                self.recent.next().map(|(key, value)| (key.to_vec(), value.as_ref().map(|value| value.to_vec())))
            }
            _ => {
                let older = self.older.next().transpose()?;
                older.map(|record| (record.key().to_vec(), live(&record).map(<[u8]>::to_vec)))
            }
        };
        if let Some((key, _)) = &found {
            // What older runs have for the key is replaced.
            while self.older.next_if(|older| older.key() == key)?.is_some() {}
        }
        Ok(found)
    }
}

impl Iterator for Live<'_> {
    type Item = io::Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.step() {
                Ok(None) => return None,
                Ok(Some((key, Some(value)))) => return Some(Ok((key, value))),
                Ok(Some((_, None))) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn map() -> Map {
        Map::new(&Arc::from(std::env::temp_dir()))
    }

    fn content(map: &Map) -> Vec<(Vec<u8>, Vec<u8>)> {
        map.iter().collect::<io::Result<_>>().unwrap()
    }

    proptest! {
        #[test]
        fn a_map_in_runs_is_one_in_memory(
            changes in proptest::collection::vec(("[ab/]{1,4}", proptest::option::of(0..9_u8), 0..8_u8), 1..300),
        ) {
            let (mut map, mut model) = (map(), BTreeMap::new());
            for (key, value, then) in changes {
                let key = key.into_bytes();
                if let Some(value) = value {
                    map.insert(&key, &[value]).unwrap();
                    model.insert(key.clone(), vec![value]);
                } else {
                    map.remove(&key).unwrap();
                    model.remove(&key);
                }
                prop_assert_eq!(map.get(&key).unwrap(), model.get(&key).cloned());
                let folder = [&key[..1], b"/"].concat();
                let first = model.keys().find(|key| key.starts_with(&folder)).cloned();
                prop_assert_eq!(map.first_in(&folder).unwrap(), first);
                prop_assert_eq!(map.len(), model.len());
                if then < 2 {
                    map.flush().unwrap();
                }
                if then == 0 {
                    map.merge().unwrap();
                }
            }
            prop_assert_eq!(content(&map), model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn more_than_fits_into_memory_is_found_in_order() {
        let mut map = map();
        let key = |number: u32| format!("folder-{:03}/{number:07}", number % 997).into_bytes();
        for number in 0..60_000 {
            map.insert(&key(number), &number.to_le_bytes()).unwrap();
        }
        assert!(map.runs.len() > 2 && map.len() == 60_000);
        assert!((0..60_000).step_by(7).all(|number| map.get(&key(number)).unwrap().unwrap() == number.to_le_bytes()));
        let all = content(&map);
        assert!(all.len() == 60_000 && all.is_sorted());
        map.flush().unwrap();
        map.merge().unwrap();
        assert!(map.runs.len() == 1 && content(&map) == all);
        assert_eq!(map.first_in(b"folder-996/").unwrap(), Some(key(996)));
        assert_eq!((map.first_in(b"folder-997/").unwrap(), map.get(b"folder-996/").unwrap()), (None, None));
    }
}

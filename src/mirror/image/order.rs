//! The queue entries of a state in the order of work, with the position of each.
//!
//! "How many are ahead of it?" is asked for every job that waits. Counting would cost more the longer the queue is;
//! here the entries lie sorted in blocks of some hundreds, and a position is the sum of the blocks before it.

use crate::mirror::summary::ByState;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::{EntryName, StateFolder};
use queuekeeper_queue::state::JobState;

/// A block is split when it grows beyond this.
const FULL: usize = 1_024;

/// A block joins its neighbour when both together have no more than this.
const SMALL: usize = 512;

/// Numbers in order, some of them perhaps twice.
#[derive(Debug, Default)]
struct Ranked {
    /// None of them empty.
    blocks: Vec<Vec<u64>>,
}

impl Ranked {
    fn of(mut keys: Vec<u64>) -> Self {
        keys.sort_unstable();
        Self { blocks: keys.chunks(SMALL).map(<[u64]>::to_vec).collect() }
    }

    fn insert(&mut self, key: u64) {
        let at = self.blocks.partition_point(|block| block[0] <= key).saturating_sub(1);
        let Some(block) = self.blocks.get_mut(at) else {
            self.blocks.push(vec![key]);
            return;
        };
        block.insert(block.partition_point(|other| *other <= key), key);
        if block.len() > FULL {
            let rest = block.split_off(FULL / 2);
            self.blocks.insert(at + 1, rest);
        }
    }

    fn remove(&mut self, key: u64) {
        let at = self.block_of(key);
        let Some(block) = self.blocks.get_mut(at) else { return };
        let Ok(position) = block.binary_search(&key) else { return };
        block.remove(position);
        let (len, next) = (block.len(), self.blocks.get(at + 1).map_or(usize::MAX, Vec::len));
        if len == 0 {
            self.blocks.remove(at);
        } else if len.saturating_add(next) <= SMALL {
            let next = self.blocks.remove(at + 1);
            self.blocks[at].extend(next);
        }
    }

    /// The block that has the key, if any has it.
    fn block_of(&self, key: u64) -> usize {
        self.blocks.partition_point(|block| block.last().is_some_and(|last| *last < key))
    }

    /// How many numbers are smaller.
    fn rank(&self, key: u64) -> usize {
        let at = self.block_of(key);
        let before: usize = self.blocks[..at].iter().map(Vec::len).sum();
        before + self.blocks.get(at).map_or(0, |block| block.partition_point(|other| *other < key))
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        self.blocks.iter().flatten().copied()
    }
}

/// Every queue entry in the folder of a state that we know, by state.
#[derive(Debug, Default)]
pub(super) struct Order {
    states: ByState<JobState, Ranked>,
}

impl Order {
    /// The order of all these entries. Sorting them once is faster than entering them one by one.
    pub(super) fn of(entries: impl Iterator<Item = (StateFolder, EntryName)>) -> Self {
        let mut keys: ByState<JobState, Vec<u64>> = ByState::default();
        for (folder, entry) in entries {
            if let Some(state) = folder.state() {
                keys.get_mut(Some(state)).push(key(entry));
            }
        }
        let mut order = Self::default();
        for ((_, ranked), (_, keys)) in order.states.iter_mut().zip(keys.iter_mut()) {
            *ranked = Ranked::of(std::mem::take(keys));
        }
        order
    }

    /// Takes note of an entry that came or went.
    pub(super) fn note(&mut self, folder: &StateFolder, entry: EntryName, present: bool) {
        let Some(state) = folder.state() else { return };
        let ranked = self.states.get_mut(Some(state));
        if present {
            ranked.insert(key(entry));
        } else {
            ranked.remove(key(entry));
        }
    }

    /// How many entries of the state are more urgent, and how many as urgent ones come earlier.
    pub(super) fn ahead(&self, state: JobState, entry: EntryName) -> (usize, usize) {
        let ranked = self.states.get(Some(state));
        let more_urgent = ranked.rank(key(entry) & !(u64::from(u32::MAX)));
        (more_urgent, ranked.rank(key(entry)) - more_urgent)
    }

    /// The jobs that have an entry in a state, in the order of work.
    pub(super) fn jobs(&self, state: JobState) -> impl Iterator<Item = JobId> {
        let number = |key: u64| u32::try_from(key & u64::from(u32::MAX)).expect("32 bits are kept");
        self.states.get(Some(state)).iter().map(move |key| JobId::new(number(key)))
    }
}

/// Whether one entry comes before another in the order of work.
pub(super) fn is_before(entry: EntryName, other: EntryName) -> bool {
    key(entry) < key(other)
}

/// A number by which entries sort as their names do, `PP-jidNNNNNNNNNN`.
///
/// A priority of three digits sorts by the first two, behind the healthy entries of these: `100-` comes after every
/// `10-` and before `11-`. A negative one comes before all others.
fn key(entry: EntryName) -> u64 {
    let (digits, is_long) = match entry.priority {
        priority @ 0..=99 => (priority.unsigned_abs() + 1, false),
        i32::MIN..0 => (0, true),
        mut priority => {
            while priority > 99 {
                priority /= 10;
            }
            (priority.unsigned_abs() + 1, true)
        }
    };
    u64::from(digits) << 33 | u64::from(is_long) << 32 | u64::from(entry.job.number())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(priority: i32, job: u32) -> EntryName {
        EntryName { priority, job: JobId::new(job) }
    }

    proptest! {
        #[test]
        fn positions_are_those_of_a_sorted_list(
            steps in proptest::collection::vec((any::<bool>(), 0i32..4, 0u32..3_000), 0..4_000),
        ) {
            let folder = StateFolder::from(JobState::Pending);
            let mut order = Order::default();
            let mut plain = std::collections::BTreeSet::new();
            for (insert, priority, job) in steps {
                let entry = entry(priority, job);
                if insert && plain.insert(entry) {
                    order.note(&folder, entry, true);
                } else if !insert && plain.remove(&entry) {
                    order.note(&folder, entry, false);
                }
            }
            let jobs: Vec<_> = order.jobs(JobState::Pending).collect();
            prop_assert_eq!(jobs, plain.iter().map(|entry| entry.job).collect::<Vec<_>>());
            for probe in [entry(0, 0), entry(1, 1_500), entry(2, 7), entry(3, 2_999), entry(9, 0)] {
                let urgent = plain.iter().filter(|other| other.priority < probe.priority).count();
                let earlier = plain.iter().filter(|other| other.priority == probe.priority && other.job < probe.job).count();
                prop_assert_eq!(order.ahead(JobState::Pending, probe), (urgent, earlier));
            }
            let built = Order::of(plain.iter().map(|entry| (folder.clone(), *entry)));
            prop_assert!(built.jobs(JobState::Pending).eq(order.jobs(JobState::Pending)));
        }

        #[test]
        fn entries_sort_as_their_names(one in (-3i32..130, 0u32..50), other in (-3i32..130, 0u32..50)) {
            let (one, other) = (entry(one.0, one.1), entry(other.0, other.1));
            // Of two faulty entries with the same beginning nobody needs to know which one comes first.
            let is_odd = |entry: EntryName| !(0..=99).contains(&entry.priority);
            if !(is_odd(one) && is_odd(other)) {
                prop_assert_eq!(is_before(one, other), one.to_string() < other.to_string());
            }
        }
    }
}

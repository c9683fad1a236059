//! The queue entries of a state in the order of work, with the position of each.
//!
//! "How many are ahead of it?" is computed for every job that waits. Counting would cost more the longer the queue is.

use crate::mirror::ranked::Ranked;
use crate::mirror::summary::ByState;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::{EntryName, StateFolder};
use queuekeeper_queue::state::JobState;

/// Below the bits of a key that sort entries as their names are those that distinguish faulty entries.
const TIE_BITS: u32 = 24;

/// Every queue entry in the folder of a state that we know, by state.
#[derive(Debug, Default)]
pub(super) struct Order {
    states: ByState<JobState, Ranked<u64>>,
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
        let own = key(entry);
        let first_of_priority = own >> (TIE_BITS + 32) << (TIE_BITS + 32);
        let more_urgent = ranked.rank(|other| *other < first_of_priority);
        (more_urgent, ranked.rank(|other| *other < own) - more_urgent)
    }

    /// The jobs that have an entry in a state, in the order of work.
    pub(super) fn jobs(&self, state: JobState) -> impl Iterator<Item = JobId> {
        let number = |key: u64| u32::try_from(key >> TIE_BITS & u64::from(u32::MAX)).expect("32 bits are kept");
        self.states.get(Some(state)).iter().map(move |key| JobId::new(number(key)))
    }
}

/// Whether one entry comes before another in the order of work.
pub(super) fn is_before(entry: EntryName, other: EntryName) -> bool {
    key(entry) >> TIE_BITS < key(other) >> TIE_BITS
}

/// A number by which entries sort as their names do, `PP-jidNNNNNNNNNN`.
///
/// A priority of three digits sorts by the first two, behind the healthy entries of these: `100-` comes after every
/// `10-` and before `11-`. A negative one comes before all others. Entries of one job that sort alike so, such as those
/// of priorities 100 and 101, are kept apart by the lowest bits.
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
    let by_name = u64::from(digits) << 33 | u64::from(is_long) << 32 | u64::from(entry.job.number());
    let tie = u64::from(entry.priority.cast_unsigned()) & ((1 << TIE_BITS) - 1);
    by_name << TIE_BITS | if is_long { tie } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(priority: i32, job: u32) -> EntryName {
        EntryName { priority, job: JobId::new(job) }
    }

    /// Healthy ones, and some that are cut to the first and last of two digits.
    fn any_priority() -> impl Strategy<Value = i32> {
        prop_oneof![4 => -3i32..130, 1 => 980i32..1_010, 1 => 9_890i32..10_100]
    }

    proptest! {
        #[test]
        fn positions_are_those_of_a_sorted_list(
            steps in proptest::collection::vec((any::<bool>(), 0i32..4, 0u32..3_000), 0..1_500),
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
        fn entries_sort_as_their_names(one in (any_priority(), 0u32..50), other in (any_priority(), 0u32..50)) {
            let (one, other) = (entry(one.0, one.1), entry(other.0, other.1));
            // The order of two faulty entries with the same prefix does not matter.
            let is_odd = |entry: EntryName| !(0..=99).contains(&entry.priority);
            if !(is_odd(one) && is_odd(other)) {
                prop_assert_eq!(is_before(one, other), one.to_string() < other.to_string());
            }
        }
    }

    #[test]
    fn entries_of_one_job_with_impossible_priorities_are_counted_one_by_one() {
        let folder = StateFolder::from(JobState::Pending);
        let odd = [entry(100, 6), entry(101, 6), entry(-1, 6), entry(-2, 6)];
        let mut order = Order::default();
        for entry in &odd {
            order.note(&folder, *entry, true);
        }
        let jobs = |order: &Order| order.jobs(JobState::Pending).map(JobId::number).collect::<Vec<_>>();
        assert_eq!((jobs(&order), order.ahead(JobState::Pending, entry(11, 0))), (vec![6; 4], (4, 0)));
        order.note(&folder, odd[0], false);
        assert_eq!((jobs(&order), order.ahead(JobState::Pending, entry(10, 9))), (vec![6; 3], (2, 0)));
    }
}

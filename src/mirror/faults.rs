//! The bookkeeping of faults: who is suspected of which since when, and how many suspicions count by now.
//!
//! A fault counts from an instant on that is known as soon as it is seen, unless it goes away before. So each item's
//! findings are kept with that instant, ordered by it, and counting those that lie in the past costs the same however
//! many jobs there are.

use std::ops::RangeInclusive;

use hashbrown::HashMap;
use jiff::Timestamp;

use super::bands::Bands;
use queuekeeper_queue::fault::{Fault, FaultFinding, Since};
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::Path;

/// The faults of one kind at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultFigures {
    /// Items that show it.
    pub count: u64,
    /// Since when the one shows it that counts for the longest time.
    pub since: Option<Timestamp>,
}

/// A fault as readers get it. Instants are by our own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFault {
    /// Which.
    pub fault: Fault,
    /// What shows it: a job, batch, request, lock, UUID or folder. A stuck state is its folder, and a collection with a
    /// backlog its lock, whether that is there or not.
    pub item: Path,
    /// Since when. Where it was there at the first sight and no znode's time says more, since that.
    pub since: Timestamp,
    /// How it shows, in a sentence.
    pub how: &'static str,
    /// What it does to the queue.
    pub effect: &'static str,
    /// What repairs it.
    pub fix: &'static str,
    /// The znodes that show it, those that are missing among them; at most 20.
    pub nodes: Vec<Path>,
}

/// What a finding says beside its words.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawFinding {
    fault: Fault,
    mark: u64,
    since: Since,
    lasting_ms: i64,
    not_before_ms: i64,
}

impl From<FaultFinding<'_>> for RawFinding {
    fn from(finding: FaultFinding<'_>) -> Self {
        let FaultFinding { fault, mark, since, lasting_ms, not_before_ms, .. } = finding;
        Self { fault, mark, since, lasting_ms, not_before_ms }
    }
}

/// One finding of one item, with its instants by the servers' clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suspicion {
    pub(super) fault: Fault,
    mark: u64,
    seen_ms: i64,
    /// For how long it must have been seen until it counts.
    lasting_ms: i64,
    pub(super) since_ms: i64,
    pub(super) due_ms: i64,
    /// Whether it was there at the first sight, and `since_ms` is only what those znodes show whose stats are known.
    is_undated: bool,
}

impl Suspicion {
    /// Whether it is of this finding, or of one just like it before.
    pub(super) fn is_of(&self, finding: &FaultFinding<'_>) -> bool {
        self.fault == finding.fault && self.mark == finding.mark
    }

    /// Whether a finding that it is of counts at an instant. An item may show a fault in two ways, due at two instants.
    pub(super) fn counts(&self, finding: &FaultFinding<'_>, now_ms: i64) -> bool {
        finding.due_ms(self.seen_ms) <= now_ms
    }
}

#[derive(Clone, Debug)]
struct Suspect {
    item: Path,
    /// Sorted by fault and then by the instant from which on it counts.
    suspicions: Vec<Suspicion>,
}

/// All suspected items.
#[derive(Clone, Debug, Default)]
pub(super) struct Suspects {
    slots: Vec<Option<Suspect>>,
    free: Vec<u32>,
    jobs: HashMap<JobId, u32>,
    /// Those that are no jobs.
    others: HashMap<Path, u32>,
    /// For each kind the suspects by the instant from which on they count.
    due: [Bands<1>; Fault::ALL.len()],
}

impl Suspects {
    /// Those whose suspicions counted at an instant; what did not count may have been repaired and come again since.
    pub(super) fn counting(&self, until_ms: i64) -> Self {
        let mut kept = Self::default();
        for suspect in self.slots.iter().flatten() {
            let suspicions: Vec<_> =
                suspect.suspicions.iter().copied().filter(|suspicion| suspicion.due_ms <= until_ms).collect();
            if !suspicions.is_empty() {
                kept.insert(&suspect.item, suspicions);
            }
        }
        kept
    }

    /// Takes note of all that is found about an item at an instant. `at_first_sight` says that it may have been there
    /// for a while.
    pub(super) fn note(&mut self, item: &Path, found: &[RawFinding], now_ms: i64, at_first_sight: bool) {
        let slot = self.slot_of(item);
        if slot.is_none() && found.is_empty() {
            return;
        }
        let old = slot.map(|slot| self.take(item, slot)).unwrap_or_default();
        let mut new: Vec<_> = found.iter().map(|raw| suspicion(raw, &old, now_ms, at_first_sight)).collect();
        if new.is_empty() {
            return;
        }
        new.sort_by_key(|suspicion| (suspicion.fault, suspicion.due_ms));
        self.insert(item, new);
    }

    fn slot_of(&self, item: &Path) -> Option<u32> {
        if let Path::Job(job) = item { self.jobs.get(job).copied() } else { self.others.get(item).copied() }
    }

    fn take(&mut self, item: &Path, slot: u32) -> Vec<Suspicion> {
        if let Path::Job(job) = item {
            self.jobs.remove(job);
        } else {
            self.others.remove(item);
        }
        self.free.push(slot);
        let Some(suspect) = self.slots[slot as usize].take() else { return Vec::new() };
        for suspicion in firsts(&suspect.suspicions) {
            self.due[suspicion.fault as usize].remove(suspicion.due_ms, slot);
        }
        suspect.suspicions
    }

    fn insert(&mut self, item: &Path, suspicions: Vec<Suspicion>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).expect("there are fewer suspects than 32 bits can number")
        });
        for suspicion in firsts(&suspicions) {
            self.due[suspicion.fault as usize].insert(suspicion.due_ms, slot);
        }
        self.slots[slot as usize] = Some(Suspect { item: item.clone(), suspicions });
        if let Path::Job(job) = item {
            self.jobs.insert(*job, slot);
        } else {
            self.others.insert(item.clone(), slot);
        }
    }

    /// How many items show a fault at an instant, and since when the one that counts for the longest time.
    pub(super) fn count(&self, fault: Fault, now_ms: i64) -> (usize, Option<i64>) {
        let due = &self.due[fault as usize];
        let count = due.len() - due.above([now_ms])[0];
        let first = (count > 0).then(|| due.iter().next()).flatten();
        let since = first.and_then(|(_, slot)| self.first(slot, fault)).map(|suspicion| suspicion.since_ms);
        (count, since)
    }

    /// The items that show a fault at an instant, longest first.
    pub(super) fn items(&self, fault: Fault, now_ms: i64) -> impl Iterator<Item = (&Path, &Suspicion)> {
        let due = self.due[fault as usize].iter().take_while(move |(due_ms, _)| *due_ms <= now_ms);
        due.filter_map(move |(_, slot)| {
            let suspect = self.slots[slot as usize].as_ref()?;
            Some((&suspect.item, self.first(slot, fault)?))
        })
    }

    /// The items that show a fault and count since an instant of a range, longest first.
    pub(super) fn due(&self, fault: Fault, due_ms: RangeInclusive<i64>) -> impl Iterator<Item = (&Path, &Suspicion)> {
        self.due[fault as usize].range(due_ms).filter_map(move |(_, slot)| {
            let suspect = self.slots[slot as usize].as_ref()?;
            Some((&suspect.item, self.first(slot, fault)?))
        })
    }

    /// How many items show a fault and count since an instant of a range.
    pub(super) fn count_due(&self, fault: Fault, due_ms: RangeInclusive<i64>) -> usize {
        self.due[fault as usize].range(due_ms).count()
    }

    /// How many items show a fault that does not count at an instant only because it has not been seen for long enough,
    /// and for how many milliseconds the one that takes longest must be.
    pub(super) fn unconfirmed(&self, fault: Fault, now_ms: i64) -> (usize, i64) {
        let waiting = self.due(fault, now_ms.saturating_add(1)..=i64::MAX).map(|(_, suspicion)| suspicion);
        let waiting = waiting.filter(|suspicion| suspicion.due_ms == suspicion.seen_ms + suspicion.lasting_ms);
        waiting.fold((0, 0), |(count, longest), suspicion| (count + 1, longest.max(suspicion.lasting_ms)))
    }

    /// Every suspected item of a kind, due or not.
    pub(super) fn suspected(&self, fault: Fault) -> impl Iterator<Item = &Path> {
        self.due[fault as usize].iter().filter_map(|(_, slot)| Some(&self.slots[slot as usize].as_ref()?.item))
    }

    /// Every suspected item.
    pub(super) fn all(&self) -> impl Iterator<Item = &Path> {
        self.slots.iter().flatten().map(|suspect| &suspect.item)
    }

    /// What was there at the first sight, and is not dated yet by znodes of which only the names are known.
    pub(super) fn undated(&self) -> impl Iterator<Item = (&Path, &Suspicion)> {
        self.slots.iter().flatten().flat_map(|suspect| {
            let undated = suspect.suspicions.iter().filter(|suspicion| suspicion.is_undated);
            undated.map(|suspicion| (&suspect.item, suspicion))
        })
    }

    /// Dates what is suspected of an item, where it is not yet.
    pub(super) fn date(&mut self, item: &Path, of: &Suspicion, since_ms: i64) {
        let Some(slot) = self.slot_of(item) else { return };
        let suspicions = self.slots[slot as usize].iter_mut().flat_map(|suspect| &mut suspect.suspicions);
        for suspicion in suspicions.filter(|own| own.is_undated && own.fault == of.fault && own.mark == of.mark) {
            (suspicion.since_ms, suspicion.is_undated) = (since_ms, false);
        }
    }

    /// What an item is suspected of.
    pub(super) fn of(&self, item: &Path) -> &[Suspicion] {
        let slot = self.slot_of(item).and_then(|slot| self.slots[slot as usize].as_ref());
        slot.map(|suspect| suspect.suspicions.as_slice()).unwrap_or_default()
    }

    /// Moves the marks to the present, so that counting has little to do.
    pub(super) fn set_mark(&mut self, now_ms: i64) {
        self.due.iter_mut().for_each(|due| due.set_marks([now_ms]));
    }

    fn first(&self, slot: u32, fault: Fault) -> Option<&Suspicion> {
        self.slots[slot as usize].as_ref()?.suspicions.iter().find(|suspicion| suspicion.fault == fault)
    }
}

fn suspicion(raw: &RawFinding, old: &[Suspicion], now_ms: i64, at_first_sight: bool) -> Suspicion {
    let before = old.iter().find(|suspicion| suspicion.fault == raw.fault && suspicion.mark == raw.mark);
    let seen_ms = before.map_or(now_ms, |suspicion| suspicion.seen_ms);
    let since_ms = match (raw.since, before) {
        (Since::Known(at_ms), _) => at_ms,
        (Since::Seen(_), Some(before)) => before.since_ms,
        (Since::Seen(Some(hint_ms)), None) if at_first_sight => hint_ms.min(now_ms),
        (Since::Seen(_), None) => now_ms,
    };
    let due_ms = seen_ms.saturating_add(raw.lasting_ms).max(raw.not_before_ms);
    let is_undated = match (raw.since, before) {
        (Since::Known(_), _) => false,
        (Since::Seen(_), Some(before)) => before.is_undated,
        (Since::Seen(_), None) => at_first_sight,
    };
    Suspicion { fault: raw.fault, mark: raw.mark, seen_ms, lasting_ms: raw.lasting_ms, since_ms, due_ms, is_undated }
}

/// Of each fault the suspicion that counts first.
fn firsts(suspicions: &[Suspicion]) -> impl Iterator<Item = &Suspicion> {
    let is_first = |at: &usize| *at == 0 || suspicions[at - 1].fault != suspicions[*at].fault;
    (0..suspicions.len()).filter(is_first).map(|at| &suspicions[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: Path = Path::Job(JobId::new(7));

    fn raw(fault: Fault, mark: u64, since: Since, lasting_ms: i64, not_before_ms: i64) -> RawFinding {
        RawFinding { fault, mark, since, lasting_ms, not_before_ms }
    }

    #[test]
    fn a_transient_never_counts_and_what_lasts_counts_since_it_was_seen() {
        let mut suspects = Suspects::default();
        let orphan = |mark| [raw(Fault::OrphanEntry, mark, Since::Seen(Some(5)), 2_000, i64::MIN)];
        suspects.note(&JOB, &orphan(1), 10_000, false);
        suspects.note(&JOB, &[], 11_999, false);
        suspects.note(&JOB, &orphan(1), 12_000, false);
        // Another orphan in the place of the first is another fault, which has to last by itself.
        suspects.note(&JOB, &orphan(2), 13_000, false);
        suspects.note(&JOB, &orphan(2), 14_900, false);
        assert_eq!(suspects.count(Fault::OrphanEntry, 14_999), (0, None));
        assert_eq!(suspects.unconfirmed(Fault::OrphanEntry, 14_999), (1, 2_000));
        assert_eq!(suspects.unconfirmed(Fault::OrphanEntry, 15_000), (0, 0));
        suspects.set_mark(14_000);
        assert_eq!(suspects.count(Fault::OrphanEntry, 15_000), (1, Some(13_000)));
        assert_eq!(suspects.items(Fault::OrphanEntry, 14_999).count(), 0);
        assert_eq!(suspects.items(Fault::OrphanEntry, 15_000).next().unwrap().0, &JOB);
        assert_eq!(suspects.count(Fault::StrayEntry, 99_000), (0, None));
        suspects.note(&JOB, &[], 16_000, false);
        assert_eq!(suspects.count(Fault::OrphanEntry, 99_000), (0, None));
        assert_eq!(suspects.all().count(), 0);
    }

    #[test]
    fn two_ways_to_show_a_fault_are_one_item_from_the_first_on() {
        let mut suspects = Suspects::default();
        let found = [
            raw(Fault::LeakedLock, 0, Since::Known(1_000), 0, 90_000),
            raw(Fault::LeakedLock, 0, Since::Known(1_000), 0, 3_000),
        ];
        suspects.note(&JOB, &found, 2_000, false);
        assert_eq!(suspects.count(Fault::LeakedLock, 2_999).0, 0);
        assert_eq!(suspects.unconfirmed(Fault::LeakedLock, 2_999), (0, 0), "its own time shows since when it is there");
        assert_eq!(suspects.count(Fault::LeakedLock, 3_000), (1, Some(1_000)));
        assert_eq!(suspects.count(Fault::LeakedLock, 99_000), (1, Some(1_000)));
    }

    #[test]
    fn a_walk_keeps_what_counted_and_dates_what_it_finds_by_the_znodes() {
        let mut suspects = Suspects::default();
        let shape = |fault| raw(fault, 0, Since::Seen(Some(500)), 2_000, i64::MIN);
        suspects.note(&JOB, &[shape(Fault::MissingEntry)], 10_000, false);
        suspects.note(&JOB, &[shape(Fault::MissingEntry), shape(Fault::OrphanEntry)], 11_500, false);
        let mut kept = suspects.counting(12_000);
        kept.note(&JOB, &[shape(Fault::MissingEntry), shape(Fault::OrphanEntry)], 60_000, true);
        assert_eq!(kept.count(Fault::MissingEntry, 60_000), (1, Some(10_000)));
        assert_eq!(kept.count(Fault::OrphanEntry, 61_999), (0, None));
        assert_eq!(kept.count(Fault::OrphanEntry, 62_000), (1, Some(500)));

        // What counted is dated already, and what is new only once.
        let (item, suspicion) = kept.undated().next().map(|(item, of)| (item.clone(), *of)).unwrap();
        assert_eq!((suspicion.fault, kept.undated().count()), (Fault::OrphanEntry, 1));
        for since_ms in [59_000, 3] {
            kept.date(&item, &suspicion, since_ms);
        }
        assert_eq!(kept.count(Fault::OrphanEntry, 62_000), (1, Some(59_000)));
        assert_eq!(kept.count(Fault::MissingEntry, 62_000), (1, Some(10_000)));
        kept.note(&JOB, &[shape(Fault::OrphanEntry)], 60_500, false);
        assert_eq!(kept.count(Fault::OrphanEntry, 62_000), (1, Some(59_000)));
        assert_eq!(kept.undated().count(), 0);
    }
}

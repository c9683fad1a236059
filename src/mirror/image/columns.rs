//! What a list of jobs is filtered and sorted by, one column for each value.
//!
//! A filter reads just the columns that it asks about, from end to end: 200,000 rows are a fraction of a millisecond,
//! where the rows themselves would be 40 MB of memory.

use crate::mirror::text::{TextColumn, TextId};
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::state::{JobState, State};

/// An instant that is not known. It sorts behind all others, so that the oldest of several is one that is known.
pub(in crate::mirror) const UNKNOWN_MS: i64 = i64::MAX;

/// A byte that says in which state a row is and three facts about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowKind(u8);

impl RowKind {
    const STATE: u8 = 0x0F;
    const LOCKED: u8 = 0x10;
    /// Whether the row is that of a job, and not waiting for one.
    const USED: u8 = 0x20;
    const IN_BATCH: u8 = 0x40;

    pub(super) fn state(self) -> Option<JobState> {
        JobState::ALL.get(usize::from(self.0 & Self::STATE)).copied()
    }

    pub(super) fn is_in_batch(self) -> bool {
        self.0 & Self::IN_BATCH != 0
    }

    fn index(state: Option<JobState>) -> u8 {
        state.map_or(Self::STATE, |state| u8::try_from(state.index()).expect("there are few states"))
    }

    fn set(&mut self, fact: u8, is: bool) {
        self.0 = if is { self.0 | fact } else { self.0 & !fact };
    }
}

/// Kinds of jobs: those of which some bits have one of a few values.
#[derive(Debug)]
pub(super) struct Kinds {
    mask: u8,
    values: Vec<u8>,
}

impl Kinds {
    /// Jobs in one of these states, or in any for none of them; locked or not; and only those with a batch.
    pub(super) fn new(states: &[Option<JobState>], locked: Option<bool>, in_batch: bool) -> Self {
        let mut facts = RowKind(RowKind::USED);
        facts.set(RowKind::LOCKED, locked == Some(true));
        facts.set(RowKind::IN_BATCH, in_batch);
        let mut mask = RowKind(facts.0);
        mask.set(RowKind::LOCKED, locked.is_some());
        mask.set(RowKind::STATE, !states.is_empty());
        let of = |state: &Option<JobState>| facts.0 | RowKind::index(*state);
        Self { mask: mask.0, values: if states.is_empty() { vec![facts.0] } else { states.iter().map(of).collect() } }
    }

    pub(super) fn has(&self, kind: RowKind) -> bool {
        self.values.contains(&(kind.0 & self.mask))
    }

    /// Writes for each row whether it is of these kinds, as 0 or 1. The loop has no branches and no table, so that the
    /// compiler looks at 16 rows at once.
    pub(super) fn mark(&self, kinds: &[RowKind], marks: &mut [u8]) {
        for (at, value) in self.values.iter().enumerate() {
            for (mark, kind) in marks.iter_mut().zip(kinds) {
                let is_it = u8::from(kind.0 & self.mask == *value);
                *mark = if at == 0 { is_it } else { *mark | is_it };
            }
        }
    }
}

/// One value for each row in each column.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) kind: Vec<RowKind>,
    pub(super) number: Vec<u32>,
    pub(super) entered_ms: Vec<i64>,
    pub(super) space_needed_bytes: Vec<u64>,
    pub(super) retries: Vec<u32>,
    pub(super) priority: Vec<u8>,
    /// Means something where the kind says that there is a batch.
    pub(super) batch: Vec<u32>,
    pub(super) collection: Vec<TextId>,
    pub(super) submitter: Vec<TextId>,
    pub(super) message: Vec<TextId>,
    /// The id and what no other job shares.
    pub(super) text: TextColumn,
}

/// The priority of a job without one.
pub(super) const NO_PRIORITY: u8 = u8::MAX;

impl Columns {
    pub(super) fn len(&self) -> usize {
        self.kind.len()
    }

    /// Appends a row that waits for a job.
    pub(super) fn grow(&mut self) {
        self.kind.push(RowKind(RowKind::STATE));
        self.number.push(0);
        self.entered_ms.push(UNKNOWN_MS);
        self.space_needed_bytes.push(0);
        self.retries.push(0);
        self.priority.push(NO_PRIORITY);
        self.batch.push(0);
        self.collection.push(TextId::default());
        self.submitter.push(TextId::default());
        self.message.push(TextId::default());
    }

    /// Makes a row that of a job of which nothing is known yet.
    pub(super) fn begin(&mut self, row: usize, job: JobId) {
        self.clear(row);
        self.number[row] = job.number();
        self.text.put(row, &[job.to_string()]);
        self.kind[row].set(RowKind::USED, true);
    }

    /// Makes a row wait for a job. Its shared texts have been released.
    pub(super) fn clear(&mut self, row: usize) {
        self.kind[row] = RowKind(RowKind::STATE);
        self.number[row] = 0;
        self.entered_ms[row] = UNKNOWN_MS;
        self.space_needed_bytes[row] = 0;
        self.retries[row] = 0;
        self.priority[row] = NO_PRIORITY;
        self.batch[row] = 0;
        self.text.clear(row);
    }

    pub(super) fn set_state(&mut self, row: usize, state: Option<JobState>) {
        self.kind[row].0 = self.kind[row].0 & !RowKind::STATE | RowKind::index(state);
    }

    pub(super) fn set_locked(&mut self, row: usize, is_locked: bool) {
        self.kind[row].set(RowKind::LOCKED, is_locked);
    }

    pub(super) fn set_batch(&mut self, row: usize, batch: Option<BatchId>) -> bool {
        let changed = self.batch(row) != batch;
        self.kind[row].set(RowKind::IN_BATCH, batch.is_some());
        self.batch[row] = batch.map_or(0, BatchId::number);
        changed
    }

    pub(super) fn batch(&self, row: usize) -> Option<BatchId> {
        self.kind[row].is_in_batch().then(|| BatchId::new(self.batch[row]))
    }

    pub(super) fn priority(&self, row: usize) -> Option<u8> {
        Some(self.priority[row]).filter(|priority| *priority != NO_PRIORITY)
    }

    /// Gives back the memory that growing has set aside.
    pub(super) fn shrink(&mut self) {
        self.kind.shrink_to_fit();
        self.number.shrink_to_fit();
        self.entered_ms.shrink_to_fit();
        self.space_needed_bytes.shrink_to_fit();
        self.retries.shrink_to_fit();
        self.priority.shrink_to_fit();
        self.batch.shrink_to_fit();
        self.collection.shrink_to_fit();
        self.submitter.shrink_to_fit();
        self.message.shrink_to_fit();
        self.text.shrink();
    }
}

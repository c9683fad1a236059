//! What was seen of each present job: a few records a job, of eight bytes each.
//!
//! A daemon locks a job, changes its state and lets it go. Seen in a row, these are one record, the change of state
//! with the session that made it, so that eight of them hold the whole way from Pending to Completed. Records lie by
//! the row of their job, so that noting one looks nothing up, and go with the job.

mod sessions;

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::HashMap;

use self::sessions::Sessions;
use super::change::ObservedState;
use super::row::UNKNOWN_MS;
use crate::mirror::clock::Offset;
use crate::mirror::past::{Happening, PastEvent};
use queuekeeper_queue::state::{JobState, State};

/// How many records a job has at most; the oldest goes when another comes.
const RECORDS: usize = 8;

/// The records of how many rows are allocated at once, when something is first seen of one of them. A table that
/// doubled would set aside as much again as it needs; this is a page of memory.
const CHUNK: usize = 64;

/// No session, or one for which there is no room: the last number of thirteen bits.
const NO_SESSION: u16 = (1 << SESSION_BITS) - 1;

/// How many bits of a record say which session it was; the others of sixteen say what was seen.
const SESSION_BITS: u32 = 13;

/// A state that is not known, or none at all.
const NOWHERE: u8 = u8::MAX;

/// What a job showed at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobSnapshot {
    pub(super) seen: ObservedState<JobState>,
    /// When it entered its state, in milliseconds by the servers' clock.
    pub(super) entered_ms: i64,
    pub(super) retries: u32,
    pub(super) priority: Option<u8>,
    /// The session of its lock, 0 for a persistent one, and the lock's instant.
    pub(super) lock: Option<(i64, i64)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RecordKind {
    /// No record.
    #[default]
    Nothing,
    State,
    Resumed,
    Locked,
    Released,
    Priority,
}

impl RecordKind {
    const ALL: [Self; 8] = {
        let unused = Self::Nothing;
        [Self::Nothing, Self::State, Self::Resumed, Self::Locked, Self::Released, Self::Priority, unused, unused]
    };
}

#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Seconds since 1970 by the servers' clock, which suffice until 2106.
    at_s: u32,
    kind: RecordKind,
    /// State or priority, before and after.
    before: u8,
    after: u8,
    /// Its place in the table of sessions, or [`NO_SESSION`].
    session: u16,
}

impl Record {
    fn note_key(self) -> NoteKey {
        (self.at_s, self.kind as u8, self.after)
    }
}

/// A record as it is kept.
#[derive(Clone, Copy, Debug, Default)]
struct Packed {
    at_s: u32,
    before: u8,
    after: u8,
    kind_and_session: u16,
}

impl From<Record> for Packed {
    fn from(Record { at_s, kind, before, after, session }: Record) -> Self {
        Self { at_s, before, after, kind_and_session: (kind as u16) << SESSION_BITS | session }
    }
}

impl From<Packed> for Record {
    fn from(Packed { at_s, before, after, kind_and_session }: Packed) -> Self {
        let kind = RecordKind::ALL[usize::from(kind_and_session >> SESSION_BITS)];
        Self { at_s, kind, before, after, session: kind_and_session & NO_SESSION }
    }
}

/// The records of one job, oldest first, and [`RecordKind::Nothing`] behind them. In one line of the processor's cache.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Slot([Packed; RECORDS]);

impl Slot {
    fn len(&self) -> usize {
        let is_free = |record: &Packed| Record::from(*record).kind == RecordKind::Nothing;
        self.0.iter().position(is_free).unwrap_or(RECORDS)
    }

    fn records(&self) -> impl DoubleEndedIterator<Item = Record> {
        self.0[..self.len()].iter().copied().map(Record::from)
    }

    fn last(&self) -> Option<Record> {
        self.records().next_back()
    }

    /// Takes the last record away. Its session stays taken: it goes over to another record.
    fn pop(&mut self) {
        if let Some(last) = self.len().checked_sub(1) {
            self.0[last] = Packed::default();
        }
    }

    /// Adds a record, and gives the one that had to go for it.
    fn push(&mut self, record: Record) -> Option<Record> {
        let len = self.len();
        if let Some(place) = self.0.get_mut(len) {
            *place = record.into();
            return None;
        }
        let dropped = self.0[0].into();
        self.0.copy_within(1.., 0);
        self.0[RECORDS - 1] = record.into();
        Some(dropped)
    }
}

/// The records of all present jobs, by row.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// `None` where nothing was seen of any of the rows.
    chunks: Vec<Option<Box<[Slot; CHUNK]>>>,
    sessions: Sessions,
    notes: Notes,
}

/// What operators wrote with their changes of state. Beside the records, as few changes are theirs.
#[derive(Debug, Default)]
struct Notes {
    by_change: HashMap<(u32, NoteKey), Arc<str>>,
    /// The last one: a change of many writes the same with each.
    last: Option<Arc<str>>,
}

impl Notes {
    fn add(&mut self, row: u32, key: NoteKey, text: &str) {
        let note = match self.last.take().filter(|last| **last == *text) {
            Some(last) => last,
            None => text.into(),
        };
        self.last = Some(Arc::clone(&note));
        self.by_change.insert((row, key), note);
    }
}

/// Which change of a job: when, in seconds, its kind, and the code of the state that it entered.
type NoteKey = (u32, u8, u8);

impl Past {
    /// Takes note of what is new about the job in a row. `now_ms` dates what the tree does not, `said` gives what an
    /// operator wrote with the state that it is in now.
    pub(super) fn note<'a>(
        &mut self,
        row: u32,
        (before, after): (JobSnapshot, JobSnapshot),
        now_ms: i64,
        said: impl FnOnce() -> Option<Cow<'a, str>>,
    ) {
        let is_locked = before.lock != after.lock && after.lock.is_some();
        let is_moved = before.seen != after.seen;
        let priorities = before.priority.zip(after.priority).filter(|(from, to)| from != to);
        let released = before.lock.filter(|_| after.lock.is_none());
        if !is_locked && !is_moved && priorities.is_none() && released.is_none() {
            return;
        }
        let sessions = &mut self.sessions;
        let mut job = RecordedJob { row, slot: slot(&mut self.chunks, row), sessions, notes: &mut self.notes };
        if let Some((session, at_ms)) = after.lock.filter(|_| is_locked) {
            job.lock(session, at_ms);
        }
        if is_moved {
            job.step(before, after, now_ms, said().as_deref());
        }
        if let Some((from, to)) = priorities {
            job.push(Record {
                at_s: seconds(now_ms),
                kind: RecordKind::Priority,
                before: from,
                after: to,
                session: NO_SESSION,
            });
        }
        if let Some((session, _)) = released {
            job.release(session, now_ms);
        }
    }

    /// Forgets the job in a row, which is gone.
    pub(super) fn forget(&mut self, row: u32) {
        let (chunk, at) = place(row);
        let Some(Some(slots)) = self.chunks.get_mut(chunk) else { return };
        for record in std::mem::take(&mut slots[at]).records() {
            self.sessions.release(record.session);
            self.notes.by_change.remove(&(row, record.note_key()));
        }
    }

    /// An empty one that can take over records of an old one; see [`Past::take_over`].
    pub(super) fn heir(old: &Self) -> Self {
        Self { chunks: Vec::new(), sessions: old.sessions.pinned(), notes: Notes::default() }
    }

    /// Takes over the records of a job that was in one row and is in another now.
    pub(super) fn take_over(&mut self, row: u32, old: &Self, old_row: u32) {
        let Some(records) = old.slot(old_row) else { return };
        for record in records.records() {
            self.sessions.keep(record.session);
            if let Some(note) = old.notes.by_change.get(&(old_row, record.note_key())) {
                self.notes.by_change.insert((row, record.note_key()), Arc::clone(note));
            }
        }
        *slot(&mut self.chunks, row) = *records;
    }

    /// Ends taking over from an old one: the sessions of it that no record names are forgotten.
    pub(super) fn settle(&mut self, old: &Self) {
        self.sessions.unpin(&old.sessions);
    }

    fn slot(&self, row: u32) -> Option<&Slot> {
        let (chunk, at) = place(row);
        let slots = self.chunks.get(chunk)?.as_ref()?;
        Some(&slots[at]).filter(|slot| slot.len() > 0)
    }

    /// What was seen of the job in a row, oldest first, by our own clock.
    pub(super) fn of(&self, row: u32, offset: Offset) -> Vec<PastEvent> {
        let records = self.slot(row).into_iter().flat_map(Slot::records);
        records.filter_map(|record| self.event(row, record, offset)).collect()
    }

    fn event(&self, row: u32, record: Record, offset: Offset) -> Option<PastEvent> {
        let session = self.sessions.get(record.session);
        let what = match record.kind {
            RecordKind::Nothing => return None,
            RecordKind::State | RecordKind::Resumed => Happening::Moved {
                from: state_of(record.before),
                to: state_of(record.after),
                session,
                is_resumed: record.kind == RecordKind::Resumed,
            },
            RecordKind::Locked => Happening::Locked { session },
            RecordKind::Released => Happening::Released { session },
            RecordKind::Priority => Happening::Priority { from: record.before, to: record.after },
        };
        let note = matches!(what, Happening::Moved { .. })
            .then(|| self.notes.by_change.get(&(row, record.note_key())).cloned());
        Some(PastEvent { at: offset.to_own(i64::from(record.at_s) * 1_000), what, note: note.flatten() })
    }
}

/// One job while it is taken note of.
struct RecordedJob<'a> {
    row: u32,
    slot: &'a mut Slot,
    sessions: &'a mut Sessions,
    notes: &'a mut Notes,
}

impl RecordedJob<'_> {
    fn lock(&mut self, session: i64, at_ms: i64) {
        let session = self.sessions.take(session);
        self.push(Record { at_s: seconds(at_ms), kind: RecordKind::Locked, session, ..Record::default() });
    }

    /// A change of state. The lock under which it was made needs no record of its own any more, and neither does its
    /// end, which may have been read first.
    fn step(&mut self, before: JobSnapshot, after: JobSnapshot, now_ms: i64, note: Option<&str>) {
        let is_resumed = before.seen == ObservedState::In(JobState::Failed) && after.retries > before.retries;
        let is_dated = after.seen != ObservedState::Nowhere && after.entered_ms != UNKNOWN_MS;
        let mut record = Record {
            at_s: seconds(if is_dated { after.entered_ms } else { now_ms }),
            kind: if is_resumed { RecordKind::Resumed } else { RecordKind::State },
            before: state_code(before.seen),
            after: state_code(after.seen),
            session: NO_SESSION,
        };
        if let Some(last) =
            self.slot.last().filter(|last| last.kind == RecordKind::Released && last.at_s >= record.at_s)
        {
            record.session = last.session;
            self.slot.pop();
        } else if let Some((holder, _)) = after.lock.or(before.lock) {
            record.session = self.sessions.take(holder);
        }
        if let Some(last) = self.slot.last()
            && last.kind == RecordKind::Locked
            && last.session == record.session
        {
            self.slot.pop();
            self.sessions.release(last.session);
        }
        if let Some(note) = note {
            self.notes.add(self.row, record.note_key(), note);
        }
        self.push(record);
    }

    fn release(&mut self, session: i64, now_ms: i64) {
        // A step may have brought another priority with it, which is noted behind it. A lock that was taken after a
        // step of the same session is another one.
        let is_its = |record: &Record| self.sessions.get(record.session) == Some(session);
        let mut last = self.slot.records().rev().take(2).take_while(|record| record.kind != RecordKind::Locked);
        let is_recorded = last.any(|record| is_its(&record));
        drop(last);
        if is_recorded {
            return;
        }
        let session = self.sessions.take(session);
        self.push(Record { at_s: seconds(now_ms), kind: RecordKind::Released, session, ..Record::default() });
    }

    fn push(&mut self, record: Record) {
        if let Some(dropped) = self.slot.push(record) {
            self.sessions.release(dropped.session);
            self.notes.by_change.remove(&(self.row, dropped.note_key()));
        }
    }
}

/// Where the records of a row are: in which chunk, and where in it.
fn place(row: u32) -> (usize, usize) {
    (row as usize / CHUNK, row as usize % CHUNK)
}

/// The records of a row, making room for them.
fn slot(chunks: &mut Vec<Option<Box<[Slot; CHUNK]>>>, row: u32) -> &mut Slot {
    let (chunk, at) = place(row);
    if chunk >= chunks.len() {
        chunks.resize_with(chunk + 1, || None);
    }
    &mut chunks[chunk].get_or_insert_with(|| Box::new([Slot::default(); CHUNK]))[at]
}

fn seconds(at_ms: i64) -> u32 {
    u32::try_from(at_ms.max(0) / 1_000).unwrap_or(u32::MAX)
}

fn state_code(seen: ObservedState<JobState>) -> u8 {
    match seen {
        ObservedState::In(state) => u8::try_from(state.index()).expect("there are a dozen states"),
        ObservedState::Nowhere | ObservedState::Other => NOWHERE,
    }
}

fn state_of(code: u8) -> Option<JobState> {
    JobState::ALL.get(usize::from(code)).copied()
}

#[cfg(test)]
mod tests;

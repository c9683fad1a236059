//! What was seen of each present job: a few records a job, of eight bytes each.
//!
//! A daemon locks a job, changes its state and lets it go. Seen in a row, these are one record, the change of state with
//! the session that made it, so that eight of them hold the whole way from Pending to Completed. Only jobs of which
//! something was seen have records, and they go with the job.

mod sessions;

use hashbrown::HashMap;

use self::sessions::Sessions;
use super::change::Seen;
use crate::mirror::clock::Offset;
use crate::mirror::past::{Happening, PastEvent};
use crate::queue::id::JobId;
use crate::queue::state::{JobState, State};

/// How many records a job has at most; the oldest goes when another comes.
const RECORDS: usize = 8;

/// How many jobs' records are allocated at once. A table that doubled would set aside as much again as it needs.
const CHUNK: usize = 1_024;

/// No session, or one that nobody has room to remember: the last number of thirteen bits.
const NOBODY: u16 = (1 << SESSION_BITS) - 1;

/// How many bits of a record say which session it was; the others of sixteen say what was seen.
const SESSION_BITS: u32 = 13;

/// A state that is not known, or none at all.
const NOWHERE: u8 = u8::MAX;

/// What a job showed at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Glance {
    pub(super) seen: Seen<JobState>,
    /// When it entered its state, in milliseconds by the servers' clock.
    pub(super) entered_ms: i64,
    pub(super) retries: u32,
    pub(super) priority: Option<u8>,
    /// The session of its lock, 0 for a persistent one, and the lock's instant.
    pub(super) lock: Option<(i64, i64)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    State,
    Resumed,
    Locked,
    Released,
    Priority,
}

impl Kind {
    const ALL: [Self; 8] = {
        let unused = Self::Priority;
        [Self::State, Self::Resumed, Self::Locked, Self::Released, Self::Priority, unused, unused, unused]
    };
}

#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Seconds since 1970 by the servers' clock, which suffice until 2106.
    at_s: u32,
    kind: Kind,
    /// State or priority, before and after.
    before: u8,
    after: u8,
    /// Its place in the table of sessions, or [`NOBODY`].
    session: u16,
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
        let kind = Kind::ALL[usize::from(kind_and_session >> SESSION_BITS)];
        Self { at_s, kind, before, after, session: kind_and_session & NOBODY }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    records: [Packed; RECORDS],
    len: u8,
}

impl Slot {
    fn records(&self) -> impl DoubleEndedIterator<Item = Record> {
        self.records[..usize::from(self.len)].iter().copied().map(Record::from)
    }
}

/// The records of all present jobs of which something was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Past {
    by_job: HashMap<u32, u32>,
    chunks: Vec<Box<[Slot]>>,
    free: Vec<u32>,
    sessions: Sessions,
}

impl Past {
    /// Takes note of what is new about a job. `now_ms` dates what the tree does not.
    pub(super) fn note(&mut self, job: JobId, before: Glance, after: Glance, now_ms: i64) {
        if before == after {
            return;
        }
        if before.lock != after.lock
            && let Some((session, at_ms)) = after.lock
        {
            self.lock(job, session, at_ms);
        }
        if before.seen != after.seen {
            let holder = after.lock.or(before.lock).map(|(session, _)| session);
            let is_resumed = before.seen == Seen::In(JobState::Failed) && after.retries > before.retries;
            let at_ms =
                if after.seen == Seen::Nowhere || after.entered_ms == i64::MAX { now_ms } else { after.entered_ms };
            self.step(job, (before.seen, after.seen), holder, is_resumed, at_ms);
        }
        if let (Some(from), Some(to)) = (before.priority, after.priority)
            && from != to
        {
            self.push(
                job,
                Record { at_s: seconds(now_ms), kind: Kind::Priority, before: from, after: to, session: NOBODY },
            );
        }
        if let (Some((session, _)), None) = (before.lock, after.lock) {
            self.release(job, session, now_ms);
        }
    }

    fn lock(&mut self, job: JobId, session: i64, at_ms: i64) {
        let session = self.sessions.take(session);
        self.push(job, Record { at_s: seconds(at_ms), kind: Kind::Locked, session, ..Record::default() });
    }

    /// A change of state. The lock under which it was made needs no record of its own any more, and neither does its
    /// end, which may have been read first.
    fn step(
        &mut self,
        job: JobId,
        (from, to): (Seen<JobState>, Seen<JobState>),
        holder: Option<i64>,
        is_resumed: bool,
        at_ms: i64,
    ) {
        let mut record = Record {
            at_s: seconds(at_ms),
            kind: if is_resumed { Kind::Resumed } else { Kind::State },
            before: state_code(from),
            after: state_code(to),
            session: NOBODY,
        };
        if let Some(last) = self.last(job).filter(|last| last.kind == Kind::Released && last.at_s >= record.at_s) {
            record.session = last.session;
            self.pop(job);
        } else if let Some(holder) = holder.filter(|session| *session != 0) {
            record.session = self.sessions.take(holder);
        }
        if let Some(last) = self.last(job)
            && last.kind == Kind::Locked
            && last.session == record.session
        {
            self.pop(job);
            self.sessions.release(last.session);
        }
        self.push(job, record);
    }

    fn release(&mut self, job: JobId, session: i64, now_ms: i64) {
        let id = self.sessions.find(session);
        // A step may have brought another priority with it, which is noted behind it.
        let is_told = |last: Record| last.kind != Kind::Locked && last.session != NOBODY && Some(last.session) == id;
        let slot = self.by_job.get(&job.number()).map(|at| &self.chunks[*at as usize / CHUNK][*at as usize % CHUNK]);
        if slot.is_some_and(|slot| slot.records().rev().take(2).any(is_told)) {
            return;
        }
        let session = self.sessions.take(session);
        self.push(job, Record { at_s: seconds(now_ms), kind: Kind::Released, session, ..Record::default() });
    }

    /// Forgets a job that is gone.
    pub(super) fn forget(&mut self, job: JobId) {
        let Some(at) = self.by_job.remove(&job.number()) else { return };
        let slot = std::mem::take(self.slot_mut(at));
        for record in slot.records() {
            self.sessions.release(record.session);
        }
        self.free.push(at);
    }

    /// The jobs of which something was seen, in no order.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.by_job.keys().map(|number| JobId::new(*number))
    }

    /// What was seen of a job, oldest first, by our own clock.
    pub(super) fn of(&self, job: JobId, offset: Offset) -> Vec<PastEvent> {
        let Some(at) = self.by_job.get(&job.number()) else { return Vec::new() };
        let slot = &self.chunks[*at as usize / CHUNK][*at as usize % CHUNK];
        slot.records().map(|record| self.event(record, offset)).collect()
    }

    fn event(&self, record: Record, offset: Offset) -> PastEvent {
        let session = self.sessions.get(record.session);
        let what = match record.kind {
            Kind::State | Kind::Resumed => Happening::Moved {
                from: state_of(record.before),
                to: state_of(record.after),
                session,
                is_resumed: record.kind == Kind::Resumed,
            },
            Kind::Locked => Happening::Locked { session },
            Kind::Released => Happening::Released { session },
            Kind::Priority => Happening::Priority { from: record.before, to: record.after },
        };
        PastEvent { at: offset.to_own(i64::from(record.at_s) * 1_000), what }
    }

    fn last(&self, job: JobId) -> Option<Record> {
        let at = *self.by_job.get(&job.number())?;
        self.chunks[at as usize / CHUNK][at as usize % CHUNK].records().next_back()
    }

    /// Takes the last record away. Its session stays taken: it goes over to another record.
    fn pop(&mut self, job: JobId) {
        if let Some(at) = self.by_job.get(&job.number()) {
            let slot = self.slot_mut(*at);
            slot.len = slot.len.saturating_sub(1);
        }
    }

    fn push(&mut self, job: JobId, record: Record) {
        let at = if let Some(at) = self.by_job.get(&job.number()) { *at } else { self.add(job) };
        let slot = self.slot_mut(at);
        let mut dropped = None;
        if usize::from(slot.len) == RECORDS {
            dropped = slot.records().next().map(|record| record.session);
            slot.records.copy_within(1.., 0);
            slot.len -= 1;
        }
        slot.records[usize::from(slot.len)] = record.into();
        slot.len += 1;
        if let Some(session) = dropped {
            self.sessions.release(session);
        }
    }

    fn add(&mut self, job: JobId) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            let first =
                u32::try_from(self.chunks.len() * CHUNK).expect("there is a slot a job id, and these are 32 bits");
            self.chunks.push(vec![Slot::default(); CHUNK].into());
            let end = first + u32::try_from(CHUNK).expect("a chunk is small");
            self.free.extend((first + 1..end).rev());
            first
        });
        self.by_job.insert(job.number(), at);
        at
    }

    fn slot_mut(&mut self, at: u32) -> &mut Slot {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }
}

fn seconds(at_ms: i64) -> u32 {
    u32::try_from(at_ms.max(0) / 1_000).unwrap_or(u32::MAX)
}

fn state_code(seen: Seen<JobState>) -> u8 {
    match seen {
        Seen::In(state) => u8::try_from(state.index()).expect("there are a dozen states"),
        Seen::Nowhere | Seen::Other => NOWHERE,
    }
}

fn state_of(code: u8) -> Option<JobState> {
    JobState::ALL.get(usize::from(code)).copied()
}

#[cfg(test)]
mod tests;

//! What was seen of each present batch: its last changes of state, and who held it then.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use super::CLOCK_SLACK_MS;
use crate::mirror::clock::Offset;
use crate::mirror::image::Image;
use crate::mirror::image::batches::Entry;
use crate::mirror::image::change::{Change, ObservedState};
use crate::mirror::image::row::UNKNOWN_MS;
use crate::mirror::past::BatchEvent;
use crate::mirror::read::Found;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::record::OperatorNote;
use queuekeeper_queue::state::BatchState;

/// How many changes of a batch are kept at most; the oldest goes when another comes.
const MOVES: usize = 8;

/// What was seen of all present batches.
#[derive(Debug, Default)]
pub(super) struct BatchPast {
    by_batch: HashMap<BatchId, BatchMoves>,
}

/// What was seen of a batch. Instants are in milliseconds by the servers' clock.
#[derive(Clone, Debug, Default)]
struct BatchMoves {
    moves: VecDeque<Move>,
    /// The session of the last lock that is gone, and when its end was read: of the writes of one step, it may be read
    /// first.
    released: Option<(i64, i64)>,
}

#[derive(Clone, Debug)]
struct Move {
    at_ms: i64,
    from: ObservedState<BatchState>,
    to: ObservedState<BatchState>,
    session: Option<i64>,
    note: Option<Arc<str>>,
}

/// What a batch showed at one moment.
#[derive(Clone, Debug)]
pub(super) struct BatchSnapshot {
    seen: ObservedState<BatchState>,
    entered_ms: i64,
    created_ms: i64,
    session: Option<i64>,
    /// When that locked it.
    locked_ms: i64,
}

impl BatchSnapshot {
    fn of(entry: Option<&Entry>) -> Self {
        entry.map_or(
            Self {
                seen: ObservedState::Nowhere,
                entered_ms: UNKNOWN_MS,
                created_ms: UNKNOWN_MS,
                session: None,
                locked_ms: UNKNOWN_MS,
            },
            |entry| Self {
                seen: entry.item.seen(),
                entered_ms: entry.item.entered_ms,
                created_ms: entry.item.created_ms,
                session: entry.item.lock.map(|lock| lock.session).filter(|session| *session != 0),
                locked_ms: entry.item.lock.map_or(UNKNOWN_MS, |lock| lock.created_ms),
            },
        )
    }
}

impl BatchPast {
    /// Takes note of what is new about a batch. `now_ms` dates what the tree does not.
    fn note(&mut self, batch: BatchId, before: &BatchSnapshot, after: &BatchSnapshot, now_ms: i64, message: &Arc<str>) {
        let released = before.session.filter(|_| after.session.is_none());
        // A daemon that acquires a batch changes its state in the same transaction, of which the lock may be read last.
        if let Some(session) = after.session.filter(|_| before.session.is_none())
            && let Some(last) = self.by_batch.get_mut(&batch).and_then(|seen| seen.moves.back_mut())
            && last.at_ms == after.locked_ms
            && last.from != ObservedState::Nowhere
        {
            last.session = Some(session);
        }
        if before.seen == after.seen && released.is_none() {
            return;
        }
        let seen = self.by_batch.entry(batch).or_default();
        if before.seen != after.seen {
            let is_dated = after.seen != ObservedState::Nowhere && after.entered_ms != UNKNOWN_MS;
            let at_ms = if is_dated { after.entered_ms } else { now_ms };
            let was_of_step = |(_, seen_ms): &(i64, i64)| at_ms <= seen_ms.saturating_add(CLOCK_SLACK_MS);
            let holder = after.session.or(before.session);
            let session = holder.or(seen.released.take().filter(was_of_step).map(|(session, _)| session));
            let note = OperatorNote::read(message).is_some().then(|| Arc::clone(message));
            if seen.moves.len() == MOVES {
                seen.moves.pop_front();
            }
            seen.moves.push_back(Move { at_ms, from: before.seen, to: after.seen, session, note });
        }
        if let Some(session) = released {
            seen.released = Some((session, now_ms));
        }
    }

    /// Forgets the last change.
    #[cfg(test)]
    pub(super) fn pop(&mut self, batch: BatchId) {
        let seen = self.by_batch.get_mut(&batch).expect("something was seen of it");
        seen.moves.pop_back();
        seen.released = None;
    }

    fn of(&self, batch: BatchId, offset: Offset) -> Vec<BatchEvent> {
        let state = |seen| match seen {
            ObservedState::In(state) => Some(state),
            ObservedState::Nowhere | ObservedState::Other => None,
        };
        let event = |moved: &Move| BatchEvent {
            at: offset.to_own(moved.at_ms),
            is_new: moved.from == ObservedState::Nowhere,
            from: state(moved.from),
            to: state(moved.to),
            session: moved.session,
            note: moved.note.clone(),
        };
        self.by_batch.get(&batch).map(|seen| seen.moves.iter().map(event).collect()).unwrap_or_default()
    }
}

impl Image {
    /// Takes note of what a read found at a batch or one of its children, and remembers what it said.
    pub(in crate::mirror::image) fn apply_to_batch(&mut self, batch: BatchId, path: Path, found: &Found) -> Change {
        let before = BatchSnapshot::of(self.batches.get(batch));
        let change = self.apply_found(path, found);
        let Some(entry) = self.batches.get(batch).filter(|entry| !entry.item.nodes.is_empty()) else {
            self.watched.batches.by_batch.remove(&batch);
            return change;
        };
        let after = BatchSnapshot::of(Some(entry));
        self.watched.batches.note(batch, &before, &after, self.watched.now_ms, &entry.item.message);
        change
    }

    /// What was seen of the old image's batches, and what must have happened since.
    pub(super) fn inherited_batches(&self, old: &Self, now_ms: i64) -> BatchPast {
        let mut past = BatchPast::default();
        for (batch, entry) in self.batches.iter() {
            let (before, after) = (BatchSnapshot::of(old.batches.get(batch)), BatchSnapshot::of(Some(entry)));
            // Another batch of that id has nothing to do with what was seen of the first.
            if before.created_ms != after.created_ms {
                continue;
            }
            if let Some(seen) = old.watched.batches.by_batch.get(&batch) {
                past.by_batch.insert(batch, seen.clone());
            }
            past.note(batch, &before, &after, now_ms, &entry.item.message);
        }
        past
    }

    /// What was seen of a batch, oldest first.
    pub(in crate::mirror) fn batch_past(&self, batch: BatchId, offset: Offset) -> Vec<BatchEvent> {
        self.watched.batches.of(batch, offset)
    }
}

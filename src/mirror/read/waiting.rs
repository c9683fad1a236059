//! What waits to be read and what is under way, and how much it is expected to bring.

use super::kind::ReadKind;
use super::query::Query;
use queuekeeper_queue::pace::{Estimate, Expected, LARGEST_DATA};

/// What the answers to reads of each kind are expected to bring.
#[derive(Clone, Debug)]
pub(in crate::mirror) struct Estimates(Vec<Estimate>);

impl Default for Estimates {
    fn default() -> Self {
        let kinds = (0..ReadKind::COUNT).map(ReadKind);
        Self(kinds.map(|kind| Estimate::at_most(LARGEST_DATA * kind.reads() as u64)).collect())
    }
}

impl Estimates {
    pub(super) fn expected(&self, query: &Query) -> Expected {
        match query {
            Query::Names(_, children) => Expected::exactly(listing_bytes(*children)),
            Query::Permission(_) => Expected::default(),
            Query::Node(_) | Query::Item(_) => self.0[query.kind().0].expected(),
        }
    }

    pub(super) fn saw(&mut self, kind: ReadKind, bytes: u64) {
        self.0[kind.0].saw(bytes);
    }

    /// Trusts what was seen no more than so many answers of each kind.
    pub(in crate::mirror) fn remember(&mut self, answers: f64) {
        for estimate in &mut self.0 {
            estimate.remember(answers);
        }
    }
}

/// About how long a list of so many names is.
fn listing_bytes(names: usize) -> f64 {
    // An entry has 16 letters and a length of four bytes, an ARK some more.
    const NAME_BYTES: usize = 32;
    (names * NAME_BYTES) as f64
}

/// What is under way.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay {
    of_kind: [usize; ReadKind::COUNT],
    names: usize,
}

impl UnderWay {
    pub(super) fn add(&mut self, query: &Query) {
        match query {
            Query::Names(_, children) => self.names += children,
            Query::Permission(_) => {}
            Query::Node(_) | Query::Item(_) => self.of_kind[query.kind().0] += 1,
        }
    }

    pub(super) fn end(&mut self, ended: &Self) {
        self.names -= ended.names;
        self.of_kind.iter_mut().zip(ended.of_kind).for_each(|(count, ended)| *count -= ended);
    }

    /// What it is expected to bring, by what is known now.
    pub(super) fn bytes(&self, estimates: &Estimates) -> f64 {
        let data = self.of_kind.iter().zip(&estimates.0).filter(|(count, _)| **count > 0);
        let data: f64 = data.map(|(count, estimate)| estimate.expected().times(*count).bytes()).sum();
        data + listing_bytes(self.names)
    }
}

/// Queries that were not sent yet. They leave in random order within each kind.
#[derive(Debug)]
pub(in crate::mirror) struct Waiting(Vec<Vec<Query>>);

impl Default for Waiting {
    fn default() -> Self {
        Self((0..ReadKind::COUNT).map(|_| Vec::new()).collect())
    }
}

impl Waiting {
    pub(in crate::mirror) fn push(&mut self, query: Query) {
        self.0[query.kind().0].push(query);
    }

    /// Takes as many as `fits` agrees to, and at least `least`.
    pub(super) fn take(&mut self, least: usize, mut fits: impl FnMut(&Query) -> bool) -> Vec<Query> {
        let mut taken = Vec::new();
        for lane in &mut self.0 {
            while let Some(last) = lane.len().checked_sub(1) {
                lane.swap(rand::random_range(0..=last), last);
                if !fits(&lane[last]) && taken.len() >= least {
                    return taken;
                }
                taken.extend(lane.pop());
            }
        }
        taken
    }
}

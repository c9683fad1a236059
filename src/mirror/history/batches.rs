//! How fast the jobs of each batch in progress end.

use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashMap;
use jiff::Timestamp;

use super::flow::{Pace, Rates};
use super::{between, shifted};
use queuekeeper_queue::id::BatchId;

/// How far apart what is remembered of a batch lies, in milliseconds.
const SPACING_MS: i64 = 60_000;

/// How many instants of a batch are remembered: an hour, and the present one.
const MOST: usize = 62;

/// The last minutes of a batch. Objects of 500 GB end once in an hour.
const RECENT: Duration = Duration::from_mins(15);

/// What was just now.
const LATEST: Duration = Duration::from_mins(1);

/// The batches in progress, each with how many of its jobs had ended at some instants.
#[derive(Debug, Default)]
pub(super) struct Batches {
    pub(super) ends: HashMap<BatchId, VecDeque<(Timestamp, u32)>>,
}

impl Batches {
    /// Takes note of the batches in progress and of how many of their jobs have ended. The others are forgotten.
    pub(super) fn sample(&mut self, batches: Vec<(BatchId, u32)>, now: Timestamp) {
        let mut before = std::mem::take(&mut self.ends);
        for (batch, ended) in batches {
            let mut ends = before.remove(&batch).unwrap_or_default();
            // The last one is the present, and stays only where the one before it is a minute old; so does what a clock
            // that was set back has dated after now.
            while let Some((at, _)) = ends.back().copied()
                && (at >= now || (ends.len() > 1 && minute(at) == minute(now)))
            {
                ends.pop_back();
            }
            ends.push_back((now, ended));
            if ends.len() > MOST {
                ends.pop_front();
            }
            self.ends.insert(batch, ends);
        }
    }

    /// Our clock was set forward by so many milliseconds.
    pub(super) fn shift(&mut self, by_ms: i64) {
        self.ends.values_mut().flatten().for_each(|(at, _)| *at = shifted(*at, by_ms));
    }

    /// How many jobs of a batch have ended in how long; `None` where it is not in progress or was seen once only.
    pub(super) fn rates(&self, batch: BatchId) -> Option<Rates> {
        let ends = self.ends.get(&batch)?;
        let (now, ended) = ends.back().copied()?;
        let since = |(at, before): (Timestamp, u32)| Pace {
            // Fewer than before have ended where an operator has resumed failed ones.
            count: ended.saturating_sub(before).into(),
            over: between(at, now),
        };
        let longer = ends.front().copied().map(since).filter(|pace| !pace.over.is_zero())?;
        let recent = ends.iter().copied().map(since).find(|pace| pace.over <= RECENT).unwrap_or_default();
        // The points are a minute apart.
        let latest = ends.iter().rev().copied().map(since).find(|pace| pace.over >= LATEST).unwrap_or_default();
        Some(Rates { recent, longer, latest })
    }
}

fn minute(at: Timestamp) -> i64 {
    at.as_millisecond().div_euclid(SPACING_MS)
}

#[cfg(test)]
mod tests;

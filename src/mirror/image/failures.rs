//! Failed jobs in groups, kept up to date by each change, so that a page of the largest costs the same for ten or
//! 200,000 jobs.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::Image;
use super::row::{JobRow, UNKNOWN_MS};
use super::tally::Tally;
use super::view::own;
use crate::mirror::clock::Offset;
use crate::mirror::failures::{EXAMPLES, FailureCause, FailureGroup, FailureKey, pattern};
use crate::mirror::lists::FailureOrder;
use crate::mirror::page::{InvalidCursor, Page, PageRequest, Picker};
use crate::mirror::text::TextId;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::state::JobState;

/// What of a failed job its group counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    key: FailureKey,
    entered_ms: i64,
    is_resumed: bool,
    batch: Option<BatchId>,
    collection: TextId,
}

impl Failed {
    /// What is counted of a row, if its job has failed and was not set Failed by an operator. `key` names the group by
    /// last successful state and message.
    pub(super) fn of(row: JobRow<'_>, key: impl FnOnce(Option<JobState>, TextId) -> FailureKey) -> Option<Self> {
        let standing = row.standing;
        (standing.state == Some(JobState::Failed) && !standing.is_by_operator).then(|| Self {
            key: key(row.last_successful, row.message),
            entered_ms: standing.entered_ms,
            is_resumed: standing.retries > 0,
            batch: row.batch,
            collection: standing.collection,
        })
    }
}

#[derive(Debug)]
struct Group {
    /// Why they failed, by what their messages have in common.
    cause: FailureCause,
    /// By the instant of failing, as rows.
    jobs: BTreeSet<(i64, u32)>,
    resumed: u64,
    batches: Tally<BatchId>,
    collections: Tally<TextId>,
}

impl Group {
    fn new(cause: FailureCause) -> Self {
        Self { cause, jobs: BTreeSet::new(), resumed: 0, batches: Tally::default(), collections: Tally::default() }
    }

    /// When the first of them failed; `None` where it is known of none.
    fn oldest_ms(&self) -> Option<i64> {
        self.jobs.first().map(|(at_ms, _)| *at_ms).filter(|at_ms| *at_ms != UNKNOWN_MS)
    }

    /// When the last of them failed of those of which it is known.
    fn newest_ms(&self) -> Option<i64> {
        self.jobs.range(..(UNKNOWN_MS, 0)).next_back().map(|(at_ms, _)| *at_ms)
    }
}

/// Every group.
#[derive(Debug, Default)]
pub(super) struct Failures {
    groups: HashMap<FailureKey, Group>,
    largest: BTreeSet<(Reverse<u64>, FailureKey)>,
    /// In the order of [`FailureCause::ALL`].
    by_cause: [u64; FailureCause::ALL.len()],
}

impl Failures {
    /// `message` gives the message of the job in a row.
    pub(super) fn of<'a>(failed: impl Iterator<Item = (u32, Failed)>, message: impl Fn(u32) -> Cow<'a, str>) -> Self {
        let mut failures = Self::default();
        for (row, failed) in failed {
            failures.enter(row, failed, || message(row));
        }
        failures
    }

    /// How many have failed like one that has: it is among them.
    pub(super) fn like(&self, failed: Failed) -> u64 {
        self.groups.get(&failed.key).map_or(0, |group| group.jobs.len() as u64)
    }

    /// How many have failed for each cause, but those that an operator set Failed.
    pub(super) fn by_cause(&self) -> [u64; FailureCause::ALL.len()] {
        self.by_cause
    }

    /// `message` is that of the job.
    pub(super) fn enter<'a>(&mut self, row: u32, failed: Failed, message: impl FnOnce() -> Cow<'a, str>) {
        // What two messages of one group have in common has one cause.
        let new = || Group::new(FailureCause::of(&pattern(&message())));
        self.groups.entry(failed.key).or_insert_with(new);
        self.change(row, failed, true);
    }

    pub(super) fn leave(&mut self, row: u32, failed: Failed) {
        self.change(row, failed, false);
    }

    fn change(&mut self, row: u32, failed: Failed, is_there: bool) {
        let Some(group) = self.groups.get_mut(&failed.key) else { return };
        let before = group.jobs.len() as u64;
        let by = i64::from(is_there) * 2 - 1;
        if is_there {
            group.jobs.insert((failed.entered_ms, row));
        } else {
            group.jobs.remove(&(failed.entered_ms, row));
        }
        let of_cause = &mut self.by_cause[group.cause as usize];
        *of_cause = of_cause.wrapping_add_signed(by);
        group.resumed = group.resumed.wrapping_add_signed(by * i64::from(failed.is_resumed));
        failed.batch.into_iter().for_each(|batch| group.batches.add(batch, by));
        group.collections.add(failed.collection, by);
        self.largest.remove(&(Reverse(before), failed.key));
        if group.jobs.is_empty() {
            self.groups.remove(&failed.key);
        } else {
            self.largest.insert((Reverse(group.jobs.len() as u64), failed.key));
        }
    }

    /// The rows of a group by the instant of failing.
    pub(super) fn rows(&self, key: FailureKey) -> Option<&BTreeSet<(i64, u32)>> {
        self.groups.get(&key).map(|group| &group.jobs)
    }
}

impl Image {
    /// A page of the groups of failed jobs.
    pub(in crate::mirror) fn failures(
        &self,
        order: FailureOrder,
        part: &PageRequest,
        offset: Offset,
    ) -> Result<Page<FailureGroup>, InvalidCursor> {
        let Failures { groups, largest, .. } = &self.jobs.failures;
        let name = format!("failures {}", order.label());
        let mut picker = Picker::<(i64, FailureKey)>::new(part.key(&name)?, part.size);
        if order == FailureOrder::Largest {
            for (Reverse(count), key) in largest {
                if picker.limit().is_some() {
                    break;
                }
                picker.offer((-i64::try_from(*count).unwrap_or(i64::MAX), *key));
            }
        } else {
            for (key, group) in groups {
                let rank = if order == FailureOrder::Newest {
                    group.newest_ms().map(i64::wrapping_neg)
                } else {
                    group.oldest_ms()
                };
                picker.offer((rank.unwrap_or(UNKNOWN_MS), *key));
            }
        }
        Ok(picker.of(groups.len(), 0).page(&name, |(_, key)| self.failure(*key, offset)).flatten())
    }

    /// One group.
    pub(in crate::mirror) fn failure(&self, key: FailureKey, offset: Offset) -> Option<FailureGroup> {
        let group = self.jobs.failures.groups.get(&key)?;
        let newest = || group.jobs.iter().rev().map(|(_, row)| self.jobs.at(*row));
        let example = newest().next()?;
        let message = self.jobs.texts.get(example.message);
        let collections =
            group.collections.largest().take(EXAMPLES).map(|(id, count)| (self.jobs.texts.get(id), count));
        Some(FailureGroup {
            key,
            last_successful: example.last_successful,
            pattern: pattern(&message),
            message,
            count: group.jobs.len() as u64,
            resumed: group.resumed,
            oldest: group.oldest_ms().and_then(|at_ms| own(at_ms, offset)),
            newest: group.newest_ms().and_then(|at_ms| own(at_ms, offset)),
            jobs: newest().map(JobRow::id).take(EXAMPLES).collect(),
            batches: group.batches.largest().take(EXAMPLES).collect(),
            batch_count: group.batches.len(),
            collections: collections.collect(),
            collection_count: group.collections.len(),
        })
    }

    /// The group of a failed job.
    pub(in crate::mirror) fn failure_of(&self, job: JobId, offset: Offset) -> Option<FailureGroup> {
        let key = |last, message| FailureKey::of(last, &pattern(&self.jobs.texts.str(message)));
        self.failure(Failed::of(self.jobs.get(job)?, key)?.key, offset)
    }
}

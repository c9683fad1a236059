//! Which jobs get room on the working storage, and which wait.
//!
//! [`decide`] is the whole rule, without a clock, a disk or ZooKeeper: what it decides is written by version, and
//! decided again where another process was faster.
//!
//! - What jobs were granted and have not written yet is as good as used. What uploads will still bring is used: it is
//!   allocated to them on the volume when they say how much that is
//!   ([`Upload::announce`](crate::deposit::Upload::announce)).
//! - Jobs that wait for longer than [`Rules::wait_limit`] come first, the oldest before the others; the first of them
//!   that does not fit reserves all that becomes free. The others come by priority, then by age, and may pass one that
//!   does not fit.
//! - No more jobs have a grant at a time than [`MOST_GRANTS`], however small they are.
//! - A job that needs more than its grant comes before all that have none, and reserves in the same way: it can only
//!   free its space by going on.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

/// How many jobs have a grant at a time: all grants of a volume are one znode, which must stay below 1 MiB.
pub const MOST_GRANTS: usize = 8_000;

/// What an operator sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Up to which part of the volume it may be used, from 0 to 1 (`--storage.threshold`).
    pub threshold: f64,
    /// How many bytes a job of unknown size counts with (`--space.unknown`).
    pub unknown: u64,
    /// From how many bytes on a job is very large, and comes later than others (`--space.large`).
    pub large: u64,
    /// How long others may pass a job that does not fit.
    pub wait_limit: Duration,
}

impl Rules {
    /// The default of [`Self::threshold`].
    pub const THRESHOLD: f64 = 0.8;
    /// The default of [`Self::unknown`], in GiB.
    pub const UNKNOWN_GIB: u32 = 10;
    /// The default of [`Self::large`], in GiB.
    pub const LARGE_GIB: u32 = 100;
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            threshold: Self::THRESHOLD,
            unknown: u64::from(Self::UNKNOWN_GIB) << 30,
            large: u64::from(Self::LARGE_GIB) << 30,
            wait_limit: Duration::from_hours(1),
        }
    }
}

/// The volume as it is, and which jobs hold how much of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume<Id> {
    /// Its size in bytes.
    pub total: u64,
    /// How many bytes are free (`f_bfree`).
    pub free: u64,
    /// The grants.
    pub grants: Vec<Grant<Id>>,
}

/// Room that a job was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant<Id> {
    /// The job.
    pub job: Id,
    /// How many bytes it may write.
    pub bytes: u64,
    /// How many of them it has written.
    pub written: u64,
    /// For how long it is in the queue.
    pub age: Duration,
    /// How many more it needs, if it cannot go on without them.
    pub extension: Option<u64>,
}

/// A job that waits for a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting<Id> {
    /// The job.
    pub job: Id,
    /// How many bytes package and unpacked content have together, if that is known.
    pub bytes: Option<u64>,
    /// Its priority; 0 is most urgent.
    pub priority: u8,
    /// For how long it waits.
    pub age: Duration,
}

/// What is decided for all jobs at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round<Id> {
    /// The jobs that pass, with what they are granted, in the order in which that is to be written.
    pub passed: Vec<(Id, u64)>,
    /// The jobs whose grant is extended by so many bytes.
    pub extended: Vec<(Id, u64)>,
    /// The jobs that wait, with or without a grant.
    pub waiting: Vec<(Id, Wait<Id>)>,
    /// The jobs that fail: those that can never fit, and the youngest where all with a grant wait for each other.
    pub failed: Vec<(Id, Failure)>,
    /// How many bytes are left.
    pub room: u64,
}

/// Why a job waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait<Id> {
    /// There is too little room.
    Room {
        /// The bytes that it needs.
        needed: u64,
        /// The bytes that there are.
        room: u64,
    },
    /// There is too little room, and all that becomes free is for this job.
    Reserving {
        /// The bytes that it needs.
        needed: u64,
        /// The bytes that there are.
        room: u64,
    },
    /// All that becomes free is for another job.
    Reserved {
        /// That job.
        by: Id,
    },
    /// As many jobs have a grant as may.
    Many,
    /// There is too little room for what it needs beyond its grant.
    Extension {
        /// The bytes that it needs.
        needed: u64,
        /// The bytes that there are.
        room: u64,
    },
}

impl<Id: fmt::Display> fmt::Display for Wait<Id> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Room { needed, room } => write!(to, "needs {needed} bytes of working storage; {room} are available"),
            Self::Reserving { needed, room } => {
                write!(to, "needs {needed} bytes of working storage; {room} are available and reserved for it")
            }
            Self::Reserved { by } => write!(to, "freed working storage is reserved for {by}"),
            Self::Many => write!(to, "{MOST_GRANTS} jobs have working storage, the maximum at a time"),
            Self::Extension { needed, room } => {
                write!(to, "needs {needed} bytes more than it was granted; {room} are available")
            }
        }
    }
}

/// Why a job fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It is larger than what the volume may hold.
    #[error(
        "the job needs {needed} bytes of working storage, which can hold at most {capacity}: deposit it in parts, or enlarge the volume"
    )]
    NeverFits {
        /// The bytes that it needs.
        needed: u64,
        /// The bytes up to the threshold of the empty volume.
        capacity: u64,
    },
    /// Every job with a grant waits for more, and it is the youngest of them.
    #[error(
        "the job needs {needed} bytes more than it was granted, and all other jobs are also waiting for working storage: resume it when they have ended"
    )]
    Deadlock {
        /// The bytes that it needs.
        needed: u64,
    },
}

impl Rules {
    /// Whether a job of this size comes later than others: it is very large, or may be, since its size is not known.
    #[must_use]
    pub fn comes_later(&self, bytes: Option<u64>) -> bool {
        bytes.is_none_or(|bytes| bytes >= self.large)
    }

    /// How many bytes a volume may hold.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a number of bytes")]
    pub fn capacity(&self, total: u64) -> u64 {
        (total as f64 * self.threshold.clamp(0.0, 1.0)) as u64
    }

    /// How many bytes may still be granted: up to the threshold, less what is used or granted.
    #[must_use]
    pub fn room<Id>(&self, volume: &Volume<Id>) -> u64 {
        let granted = volume.grants.iter().map(|grant| grant.bytes.saturating_sub(grant.written));
        let held = granted.fold(0, u64::saturating_add);
        let used = volume.total.saturating_sub(volume.free);
        self.capacity(volume.total).saturating_sub(used).saturating_sub(held)
    }
}

/// Decides for all jobs.
#[must_use]
pub fn decide<Id: Copy + Ord>(rules: &Rules, volume: &Volume<Id>, waiting: &[Waiting<Id>]) -> Round<Id> {
    let mut round = Round {
        passed: Vec::new(),
        extended: Vec::new(),
        waiting: Vec::new(),
        failed: Vec::new(),
        room: rules.room(volume),
    };
    let capacity = rules.capacity(volume.total);
    let mut reserved = extend(&mut round, rules, volume, capacity);
    let mut order: Vec<_> = waiting.iter().collect();
    order.sort_by_key(|one| {
        let is_overdue = one.age >= rules.wait_limit;
        (!is_overdue, if is_overdue { 0 } else { one.priority }, Reverse(one.age), one.job)
    });
    for one in order {
        // What is not known may fit.
        let needed = one.bytes.unwrap_or(rules.unknown.min(capacity));
        if needed > capacity {
            round.failed.push((one.job, Failure::NeverFits { needed, capacity }));
        } else if let Some(by) = reserved {
            round.waiting.push((one.job, Wait::Reserved { by }));
        } else if volume.grants.len() + round.passed.len() >= MOST_GRANTS {
            round.waiting.push((one.job, Wait::Many));
        } else if needed <= round.room {
            round.room -= needed;
            round.passed.push((one.job, needed));
        } else if one.age >= rules.wait_limit {
            reserved = Some(one.job);
            round.waiting.push((one.job, Wait::Reserving { needed, room: round.room }));
        } else {
            round.waiting.push((one.job, Wait::Room { needed, room: round.room }));
        }
    }
    round
}

/// Extends grants, the oldest job's first. What comes back is the oldest one that waits, where its wait limit has
/// passed.
fn extend<Id: Copy + Ord>(round: &mut Round<Id>, rules: &Rules, volume: &Volume<Id>, capacity: u64) -> Option<Id> {
    let mut extending: Vec<_> =
        volume.grants.iter().filter_map(|grant| Some((grant, grant.extension.filter(|bytes| *bytes > 0)?))).collect();
    extending.sort_by_key(|(grant, _)| (Reverse(grant.age), grant.job));
    let (mut last, mut reserved) = (None, None);
    for (grant, needed) in &extending {
        let all = grant.bytes.saturating_add(*needed);
        if all > capacity {
            round.failed.push((grant.job, Failure::NeverFits { needed: all, capacity }));
        } else if *needed <= round.room {
            round.room -= needed;
            round.extended.push((grant.job, *needed));
        } else {
            round.waiting.push((grant.job, Wait::Extension { needed: *needed, room: round.room }));
            last = Some((grant.job, *needed));
            if grant.age >= rules.wait_limit {
                reserved = reserved.or(Some(grant.job));
            }
        }
    }
    // Space becomes free by none of these.
    if let Some((youngest, needed)) = last
        && round.waiting.len() == volume.grants.len()
    {
        round.waiting.pop();
        round.failed.push((youngest, Failure::Deadlock { needed }));
        reserved = reserved.filter(|by| *by != youngest);
    }
    reserved
}

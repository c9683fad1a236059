//! How many reads of znodes may be under way at once.
//!
//! A znode may hold 1 MiB, and a server has all answers that are under way in memory beside the tree. Where reads are
//! made in a given order, those answered predict nothing about those that follow: large values may stand behind
//! thousands of small ones. So such reads are bounded by their number. Faster is what may be read in random order,
//! whose answers are a sample of the rest: of many znodes that each stand for themselves ([`Estimate`]), and of those
//! that a dump has before it.

mod estimate;

pub use self::estimate::{Estimate, Expected, LARGEST_DATA};

/// How many requests are in flight at once. More make nothing faster and only buffer answers.
pub(super) const REQUESTS_IN_FLIGHT: usize = 4;

/// How many values that are read in a given order may be in flight: 16 MiB, if each is as large as a znode can be.
pub(super) const VALUES_IN_FLIGHT: usize = 16;

/// How many bytes of values that are read in random order may be in flight, by what is expected of them.
pub(super) const EXPECTED_BYTES: f64 = 4_194_304.0;

/// Which part of what may be in flight one request may bring, by what is expected at most. A server writes an answer
/// into one array, doubles it as it grows, and copies it: that takes room in one piece, which large values leave none
/// of on a small heap long before it is full.
pub const PART_A_REQUEST: u32 = 8;

/// The same in bytes, for reads that are bounded by [`EXPECTED_BYTES`].
pub(super) const ANSWER_BYTES: f64 = EXPECTED_BYTES / PART_A_REQUEST as f64;

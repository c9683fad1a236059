//! Why something is not moving: a job, a state, a batch.
//!
//! The functions are pure: what is known of the item ([`JobSituation`](crate::mirror::JobSituation) and its like, taken
//! from the mirror at one moment), how full the working storage is, and the instant give the [`Diagnosis`]. Pages, API
//! and command line ask [`why_job`] and its like, and so say the same.

mod at_rest;
mod batch;
mod cause;
mod forecast;
mod job;
mod obstacles;
mod state;
#[cfg(test)]
mod tests;
mod verdict;
mod why;

pub use batch::diagnose_batch;
pub use cause::{Cause, CauseKind};
pub use forecast::Forecast;
pub use job::diagnose_job;
pub use state::diagnose_state;
pub use why::{forecasts, why_batch, why_job, why_state};

/// What a diagnosis comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It moves, or does not need to.
    Moving,
    /// It waits for its turn, which will come.
    Waiting,
    /// It does not move until something changes or an operator acts.
    Stopped,
    /// It is finished.
    Done,
}

impl Verdict {
    /// The name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Moving => "moving",
            Self::Waiting => "waiting",
            Self::Stopped => "stopped",
            Self::Done => "done",
        }
    }
}

/// The answer to why something is not moving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// What it comes to.
    pub verdict: Verdict,
    /// The same in a sentence.
    pub headline: String,
    /// Why, the most decisive first; never empty.
    pub causes: Vec<Cause>,
}

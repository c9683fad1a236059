//! Why something is not moving: a job, a state, a batch.
//!
//! The functions are pure: what is known of the item ([`JobSituation`](crate::mirror::JobSituation) and its like, taken
//! from the mirror at one moment), how full the working storage is, and the instant give the [`Diagnosis`]. Pages, API
//! and command line ask [`why_job`] and its like, and so say the same.

mod at_rest;
mod batch;
mod forecast;
mod job;
mod kind;
mod obstacles;
mod state;
#[cfg(test)]
mod tests;
mod verdict;
mod why;

use jiff::Timestamp;

pub use batch::diagnose_batch;
pub use forecast::Forecast;
pub use job::diagnose_job;
pub use kind::CauseKind;
pub use state::diagnose_state;
pub use why::{forecasts, why_batch, why_job, why_state};

use crate::mirror::FoundFault;
use queuekeeper_queue::path::Path;

/// How many paths a cause names at most.
pub(super) const ITEMS: usize = 5;

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

/// One reason why something moves or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Which.
    pub kind: CauseKind,
    /// What is the case, in a sentence with its figures. Znodes' texts in it are cut and escaped, but for markup.
    pub sentence: String,
    /// What shows it and what follows from it, likewise; empty where there is no more to say.
    pub evidence: String,
    /// What repairs it; `None` where nothing has to be repaired.
    pub fix: Option<&'static str>,
    /// Since when, by our own clock.
    pub since: Option<Timestamp>,
    /// Znodes to look at, at most five.
    pub items: Vec<Path>,
    /// How many more there are.
    pub more: u64,
}

impl Cause {
    fn new(kind: CauseKind, sentence: impl Into<String>) -> Self {
        let (evidence, items) = (String::new(), Vec::new());
        Self { kind, sentence: sentence.into(), evidence, fix: None, since: None, items, more: 0 }
    }

    fn evidence(self, evidence: impl Into<String>) -> Self {
        Self { evidence: evidence.into(), ..self }
    }

    fn fix(self, fix: &'static str) -> Self {
        Self { fix: Some(fix), ..self }
    }

    fn since(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }

    /// Names these of `all` items.
    fn items(self, items: impl IntoIterator<Item = Path>, all: u64) -> Self {
        let items: Vec<_> = items.into_iter().take(ITEMS).collect();
        let more = all.saturating_sub(items.len() as u64);
        Self { items, more, ..self }
    }

    /// A fault in its own words.
    fn of_fault(found: &FoundFault) -> Self {
        Self::new(CauseKind::Fault(found.fault), found.how)
            .evidence(found.effect)
            .fix(found.fix)
            .since(Some(found.since))
            .items(found.nodes.iter().cloned(), found.nodes.len() as u64)
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

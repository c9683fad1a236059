//! One step of the record.

use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::{JobState, State};

/// How many states of jobs there are, with `other`.
pub(in crate::mirror) const STATES: usize = <JobState as State>::ALL.len() + 1;

/// The place of a state in a table of [`STATES`].
pub(in crate::mirror) fn index(state: Option<JobState>) -> usize {
    state.map_or(STATES - 1, State::index)
}

/// A count as it is kept: there are no more jobs than 32 bits can number.
pub(in crate::mirror) fn saturated(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The figures at one instant, and how far the batches in progress are.
#[derive(Debug)]
pub(in crate::mirror) struct Sample {
    pub(in crate::mirror) figures: Figures,
    /// Batches in progress, with how many of their jobs have ended. Their number is limited by the caller.
    pub(in crate::mirror) batches: Vec<(BatchId, u32)>,
}

/// The figures at the end of a step. Tables are by state, as [`index`] says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::mirror) struct Figures {
    pub(in crate::mirror) jobs: [u32; STATES],
    pub(in crate::mirror) locked: [u32; STATES],
    /// For how many seconds the job longest in the state is in it; `u32::MAX` where there is none.
    pub(in crate::mirror) oldest: [u32; STATES],
    /// Items that show a fault.
    pub(in crate::mirror) faults: u32,
    pub(in crate::mirror) batches_in_progress: u32,
}

/// Ten seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    /// Its place in time, in steps since 1970.
    pub(super) number: i64,
    /// Over how many steps its counts were collected: more than one after a gap.
    pub(super) covers: u32,
    /// `None` where no sample was taken before the step was over.
    pub(super) figures: Option<Figures>,
    /// Jobs that left each state; of those on the success path, along it.
    pub(super) left: [u32; STATES],
    /// Jobs that entered Completed.
    pub(super) completed: u32,
    /// Jobs that entered Failed.
    pub(super) failed: u32,
}

impl Step {
    /// Which part of its counts, 0 to 1, falls to the steps from `first` on.
    pub(super) fn share_from(&self, first: i64) -> f64 {
        let covers = i64::from(self.covers.max(1));
        (self.number - first + 1).clamp(0, covers) as f64 / covers as f64
    }
}

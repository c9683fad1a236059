//! What the daemons do in each state of jobs: one row for each.

use super::findings::{Findings, identity, nothing, space, stored};
use super::world::PROVISIONING_POOL;
use queuekeeper_queue::JobValue;
use queuekeeper_queue::state::JobState;

/// The work of the daemon of one state.
#[derive(Debug)]
pub(super) struct Duty {
    /// The state.
    pub(super) state: JobState,
    /// How many jobs it works on concurrently.
    pub(super) crew: usize,
    /// What the duration of the work depends on.
    pub(super) duration: WorkDuration,
    /// The exclusive lock that the work requires.
    pub(super) lock: RequiredLock,
    /// Whether the work needs working storage.
    pub(super) space: NeededSpace,
    /// The values that the work leaves in the znodes of the job.
    pub(super) results: fn(&Findings<'_>) -> Vec<JobValue>,
}

/// What the duration of the work on a job depends on.
#[derive(Clone, Copy, Debug)]
pub(super) enum WorkDuration {
    /// The rate at which jobs start.
    Arrivals,
    /// Nothing: it is short.
    Short,
    /// The number of daemons.
    Crew,
    /// The number of daemons, and the size of the object.
    Size,
}

/// The exclusive lock that the work on a job requires.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequiredLock {
    /// None.
    No,
    /// That of the first local id.
    LocalId,
    /// That of the object, for storing.
    Storage,
    /// That of the object, for recording.
    Inventory,
}

/// Whether the work on a job needs working storage.
#[derive(Clone, Copy, Debug)]
pub(super) enum NeededSpace {
    /// It needs none.
    No,
    /// It waits until there is enough.
    Waits,
    /// It has it, unless a user has resumed the job past the state in which it is reserved.
    Has,
}

/// The states that daemons work on.
pub(super) static DUTIES: [Duty; 8] = [
    // One only: it determines the rate at which jobs start.
    Duty {
        state: JobState::Pending,
        crew: 1,
        duration: WorkDuration::Arrivals,
        lock: RequiredLock::No,
        space: NeededSpace::No,
        results: nothing,
    },
    Duty {
        state: JobState::Estimating,
        crew: 2,
        duration: WorkDuration::Crew,
        lock: RequiredLock::No,
        space: NeededSpace::No,
        results: space,
    },
    Duty {
        state: JobState::Provisioning,
        crew: PROVISIONING_POOL,
        duration: WorkDuration::Short,
        lock: RequiredLock::No,
        space: NeededSpace::Waits,
        results: nothing,
    },
    Duty {
        state: JobState::Downloading,
        crew: 6,
        duration: WorkDuration::Size,
        lock: RequiredLock::No,
        space: NeededSpace::Has,
        results: nothing,
    },
    Duty {
        state: JobState::Processing,
        crew: 4,
        duration: WorkDuration::Size,
        lock: RequiredLock::LocalId,
        space: NeededSpace::Has,
        results: identity,
    },
    Duty {
        state: JobState::Storing,
        crew: 4,
        duration: WorkDuration::Size,
        lock: RequiredLock::Storage,
        space: NeededSpace::Has,
        results: stored,
    },
    Duty {
        state: JobState::Recording,
        crew: 2,
        duration: WorkDuration::Crew,
        lock: RequiredLock::Inventory,
        space: NeededSpace::Has,
        results: nothing,
    },
    Duty {
        state: JobState::Notify,
        crew: 2,
        duration: WorkDuration::Crew,
        lock: RequiredLock::No,
        space: NeededSpace::Has,
        results: nothing,
    },
];

/// The values in a job's znodes once it has completed a state; none for a state that no daemon works on.
pub(super) fn results(state: JobState, found: &Findings<'_>) -> Vec<JobValue> {
    DUTIES.iter().find(|duty| duty.state == state).map(|duty| (duty.results)(found)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuekeeper_queue::state::State as _;

    #[test]
    fn there_is_a_daemon_for_each_state_of_the_success_path() {
        let worked_on: Vec<_> = JobState::ALL.iter().copied().filter(|state| state.is_worked_on()).collect();
        assert_eq!(DUTIES.iter().map(|duty| duty.state).collect::<Vec<_>>(), worked_on);
    }
}

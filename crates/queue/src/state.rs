//! The three state machines of the queue: jobs, batches and access requests.
//!
//! The tables are those of the daemons' library `mrt-zk`; a transition that only an operator may request is marked by
//! [`State::is_admin`], one that the withdrawal of a deposit makes by [`State::is_withdrawal`]. A status text that
//! names none of these states is not an error: the queue is older and younger than this crate in places, so callers
//! keep the text and count the item as `other`.

mod outcome;

use std::fmt;
use std::time::Duration;

pub use outcome::JobOutcome;

/// How long items may be in a state by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultLimits {
    /// How long one may be locked.
    pub locked: Duration,
    /// How long the oldest may be in the state while none leaves it.
    pub stuck: Duration,
}

/// By whose right a state is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authority {
    /// A daemon's.
    #[default]
    Daemon,
    /// An operator's.
    Operator,
    /// That of the withdrawal of the whole deposit.
    Withdrawal,
}

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// What the state machines of jobs, batches and access requests have in common.
pub trait State: Copy + Eq + Ord + fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// Every state, in the order in which people read them: the success path first where there is one.
    const ALL: &'static [Self];

    /// The status text as the daemons write it, such as `Pending` or `UpdateReporting`.
    fn name(self) -> &'static str;

    /// The label value and folder name, such as `pending` or `update-reporting`.
    fn label(self) -> &'static str;

    /// The states that may follow, those of the success path first.
    fn next(self) -> &'static [Self];

    /// Whether only an operator may request the step from `self` to `to`; false also where there is no such step.
    fn is_admin(self, to: Self) -> bool;

    /// Whether the withdrawal of the deposit makes the step from `self` to `to`; false also where there is no such
    /// step.
    fn is_withdrawal(self, to: Self) -> bool;

    /// The next state on the success path, if the item is on it.
    fn success(self) -> Option<Self>;

    /// How long an item may be in the state by default; `None` for a state without limits of its own.
    fn default_limits(self) -> Option<DefaultLimits>;

    /// Whether daemons work on items of this state: those of the success path, but not of its end. Items of the others
    /// wait for an operator, or for nothing.
    fn is_worked_on(self) -> bool {
        self.success().is_some()
    }

    /// Whether daemons take items of this state also while their queue is paused.
    fn continues_when_paused(self) -> bool;

    /// Whether the item is done with: nothing follows, and it may be purged.
    fn is_final(self) -> bool {
        self.next().is_empty()
    }

    /// Whether `to` may follow directly.
    fn may_become(self, to: Self) -> bool {
        self.next().contains(&to)
    }

    /// Whether `to` may follow directly by that right. What a daemon may do, all may.
    fn allows(self, to: Self, by: Authority) -> bool {
        let is_reserved = self.is_admin(to) || self.is_withdrawal(to);
        self.may_become(to)
            && match by {
                Authority::Daemon => !is_reserved,
                Authority::Operator => !is_reserved || self.is_admin(to),
                Authority::Withdrawal => !is_reserved || self.is_withdrawal(to),
            }
    }

    /// Position in [`State::ALL`], for tables indexed by state.
    fn index(self) -> usize;

    /// Reads a status text exactly as the daemons write it; they reject every other spelling.
    fn from_name(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.name() == text)
    }

    /// Reads a status text in any spelling found in production: `Pending`, `pending`, `update-reporting`.
    #[must_use]
    fn from_any(text: &str) -> Option<Self> {
        Self::from_name(text).or_else(|| {
            Self::ALL
                .iter()
                .copied()
                .find(|state| text.eq_ignore_ascii_case(state.name()) || text.eq_ignore_ascii_case(state.label()))
        })
    }

    /// The states entered on the way from `self` to `to` along the success path, `to` last; empty when `to` does not
    /// lie ahead on it.
    ///
    /// Watch events carry no data, so a fast item is seen to jump over states; this names what it passed.
    #[must_use]
    fn steps_to(self, to: Self) -> Vec<Self> {
        let mut steps = Vec::new();
        let mut at = self;
        while let Some(next) = at.success() {
            steps.push(next);
            if next == to {
                return steps;
            }
            at = next;
        }
        Vec::new()
    }
}

macro_rules! state_machine {
    (
        $(#[$doc:meta])* $type:ident,
        $( $(#[$state_doc:meta])* $state:ident $label:literal $(-> $success:ident)?, normal [$($next:ident),*], admin [$($admin:ident),*]
            $(, withdrawal [$($withdrawal:ident),*])? $(, withdrawal_too [$($too:ident),*])? $(, locked $locked:expr, stuck $stuck:expr)?
            $(, continues_when_paused $continues:literal)?; )+
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type { $( $(#[$state_doc])* $state, )+ }

        impl State for $type {
            const ALL: &'static [Self] = &[$(Self::$state),+];

            fn name(self) -> &'static str {
                match self { $(Self::$state => stringify!($state)),+ }
            }

            fn label(self) -> &'static str {
                match self { $(Self::$state => $label),+ }
            }

            fn next(self) -> &'static [Self] {
                match self {
                    $(Self::$state => &[
                        $(Self::$success,)? $(Self::$next,)* $(Self::$admin,)* $($(Self::$withdrawal,)*)?
                    ]),+
                }
            }

            fn is_admin(self, to: Self) -> bool {
                let admin: &[Self] = match self { $(Self::$state => &[$(Self::$admin),*]),+ };
                admin.contains(&to)
            }

            fn is_withdrawal(self, to: Self) -> bool {
                let withdrawal: &[Self] = match self {
                    $(Self::$state => &[$($(Self::$withdrawal,)*)? $($(Self::$too,)*)?]),+
                };
                withdrawal.contains(&to)
            }

            fn success(self) -> Option<Self> {
                let path: &[Self] = match self { $(Self::$state => &[$(Self::$success)?]),+ };
                path.first().copied()
            }

            fn default_limits(self) -> Option<DefaultLimits> {
                let limits: &[DefaultLimits] = match self {
                    $(Self::$state => &[$(DefaultLimits { locked: $locked, stuck: $stuck })?]),+
                };
                limits.first().copied()
            }

            fn continues_when_paused(self) -> bool {
                let continues: &[bool] = match self { $(Self::$state => &[$($continues)?]),+ };
                continues.contains(&true)
            }

            // The enum's own order is that of ALL, which makes the index a cast.
            fn index(self) -> usize {
                self as usize
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

state_machine! {
    /// The states of a job.
    JobState,
    /// Submitted; no daemon has taken it yet.
    Pending "pending" -> Estimating, normal [Held, Failed], admin [], withdrawal [Deleted],
        locked Duration::from_mins(10), stuck HOUR;
    /// Its space is being estimated.
    Estimating "estimating" -> Provisioning, normal [Failed], admin [],
        locked HOUR, stuck HOUR;
    /// It waits for working storage.
    Provisioning "provisioning" -> Downloading, normal [Failed], admin [],
        locked Duration::from_hours(48), stuck Duration::from_hours(6);
    /// Its content is being fetched.
    Downloading "downloading" -> Processing, normal [Failed], admin [],
        locked DAY, stuck DAY;
    /// Its content is being checked and described.
    Processing "processing" -> Storing, normal [Failed], admin [],
        locked DAY, stuck DAY;
    /// The storage service is storing it.
    Storing "storing" -> Recording, normal [Failed], admin [],
        locked DAY, stuck DAY;
    /// The inventory records it. Its daemon, like that of the Java daemons, does not ask for the pause.
    Recording "recording" -> Notify, normal [Failed], admin [],
        locked Duration::from_hours(2), stuck Duration::from_hours(2), continues_when_paused true;
    /// Its callback is called, and its space freed.
    Notify "notify" -> Completed, normal [Failed], admin [],
        locked HOUR, stuck HOUR;
    /// Done.
    Completed "completed", normal [], admin [];
    /// Stopped by an error; an operator resumes or deletes it.
    Failed "failed", normal [], admin [
        Pending, Estimating, Provisioning, Downloading, Processing, Storing, Recording, Notify, Deleted
    ];
    /// Kept back because its collection is held.
    Held "held", normal [], admin [Pending, Deleted], withdrawal_too [Deleted];
    /// Given up by an operator, or withdrawn with its deposit.
    Deleted "deleted", normal [], admin [];
}

state_machine! {
    /// The states of a batch.
    BatchState,
    /// Submitted; its jobs do not exist yet.
    Pending "pending" -> Processing, normal [Held], admin [], withdrawal [Deleted];
    /// Its jobs are being created.
    Processing "processing" -> Reporting, normal [Failed], admin [], withdrawal [Deleted];
    /// Its jobs are running, or its report is due: only its job references show which.
    Reporting "reporting" -> Completed, normal [Failed], admin [], withdrawal [Deleted];
    /// Reported again after an operator repaired its jobs.
    UpdateReporting "update-reporting" -> Completed, normal [Failed], admin [];
    /// Reported, without a failed job.
    Completed "completed", normal [], admin [];
    /// Reported, with failed jobs.
    Failed "failed", normal [], admin [UpdateReporting, Deleted];
    /// Kept back by an operator.
    Held "held", normal [], admin [Pending, Deleted], withdrawal_too [Deleted];
    /// Given up by an operator, or withdrawn.
    Deleted "deleted", normal [], admin [];
}

state_machine! {
    /// The states of an access (assembly) request.
    AccessState,
    /// Submitted.
    Pending "pending" -> Processing, normal [], admin [];
    /// Being assembled.
    Processing "processing" -> Completed, normal [Failed], admin [];
    /// Assembled.
    Completed "completed", normal [], admin [];
    /// Stopped by an error. The daemons take only pending requests, so going back to Pending is what resumes one.
    Failed "failed", normal [Processing], admin [Pending, Deleted];
    /// Given up by an operator.
    Deleted "deleted", normal [], admin [];
}

impl JobState {
    /// How long a job may be locked in the state by default: long enough for an object of 500 GB, and in Provisioning,
    /// where a job stays locked while it waits for space, for two days.
    #[must_use]
    pub fn default_lock_limit(self) -> Duration {
        self.default_limits().map_or(DAY, |limits| limits.locked)
    }

    /// How long the oldest job may be in the state by default while none leaves it.
    #[must_use]
    pub fn default_stuck_limit(self) -> Duration {
        self.default_limits().map_or(DAY, |limits| limits.stuck)
    }

    /// Whether files of a job in this state may lie in the working storage: from Downloading on, until Notify has
    /// removed them. Elsewhere there are none, or those of a job that nothing works on.
    #[must_use]
    pub fn has_content(self) -> bool {
        self.is_worked_on() && self >= Self::Downloading
    }

    /// Whether all content of a job in this state has been downloaded, and its `space_needed` is what was.
    #[must_use]
    pub fn is_downloaded(self) -> bool {
        self.has_content() && self != Self::Downloading
    }

    /// In which state a failed job failed, by its last successful one: where it resumes, but that a job which failed
    /// behind Notify does so at the start.
    #[must_use]
    pub fn failed_in(last_successful: Option<JobState>) -> JobState {
        match last_successful {
            Some(Self::Notify) => Self::Notify,
            last => Self::resume_after(last),
        }
    }

    /// Where a failed job resumes: the state after its last successful one, and Pending where that is unknown.
    #[must_use]
    pub fn resume_after(last_successful: Option<JobState>) -> JobState {
        // After Notify only Completed is left, and resuming there would leave the depositor without a report.
        last_successful.and_then(Self::success).filter(|next| next.is_worked_on()).unwrap_or(Self::Pending)
    }

    /// Whether a change from `self` to `to` makes `self` the last successful status. A step to or from Failed, Held or
    /// Deleted leaves it as it was.
    #[must_use]
    pub fn is_success_before(self, to: JobState) -> bool {
        let is_on_path = |state: Self| matches!(state.phase(), JobPhase::Underway | JobPhase::Completed);
        is_on_path(self) && is_on_path(to)
    }

    /// What the state means for the job, for what does not depend on how far it has come.
    #[must_use]
    pub fn phase(self) -> JobPhase {
        let found = JobPhase::ALL.into_iter().find(|phase| phase.state() == Some(self));
        found.unwrap_or(JobPhase::Underway)
    }

    /// The folder below `/batches/BID/states` in which a job of this state is referenced.
    #[must_use]
    pub fn outcome(self) -> JobOutcome {
        match self.phase() {
            JobPhase::Failed => JobOutcome::Failed,
            JobPhase::Completed => JobOutcome::Completed,
            JobPhase::Deleted => JobOutcome::Deleted,
            JobPhase::Underway | JobPhase::Held => JobOutcome::Processing,
        }
    }
}

/// What the state of a job means for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobPhase {
    /// Daemons work on it: it is on the success path, and not at its end.
    Underway,
    /// It is done.
    Completed,
    /// It was stopped by an error.
    Failed,
    /// It is kept back.
    Held,
    /// It was given up.
    Deleted,
}

impl JobPhase {
    const ALL: [Self; 5] = [Self::Underway, Self::Completed, Self::Failed, Self::Held, Self::Deleted];

    /// The only state with this meaning; `None` where there are several.
    fn state(self) -> Option<JobState> {
        match self {
            Self::Underway => None,
            Self::Completed => Some(JobState::Completed),
            Self::Failed => Some(JobState::Failed),
            Self::Held => Some(JobState::Held),
            Self::Deleted => Some(JobState::Deleted),
        }
    }
}

#[cfg(test)]
mod tests;

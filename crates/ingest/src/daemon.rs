//! The daemons: one row for each, with all that distinguishes it from the others.

use std::fmt;
use std::str::FromStr;

use queuekeeper_queue::Due;
use queuekeeper_queue::state::{BatchState, JobState, State as _};
use serde::{Serialize, Serializer};

/// What a daemon takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The jobs of a state, one for each worker that is free.
    Jobs(JobState),
    /// The jobs of a state that wait for a grant of working storage: each round looks at all of them, and lets those
    /// pass that get one.
    JobsByGrant(JobState),
    /// Batches that are due for something.
    Batches(Due),
    /// Requests for objects.
    Requests,
    /// What is not needed any more.
    Leftovers,
}

impl Takes {
    /// The state whose jobs it is; `None` for what is no job.
    #[must_use]
    pub fn state(self) -> Option<JobState> {
        match self {
            Self::Jobs(state) | Self::JobsByGrant(state) => Some(state),
            Self::Batches(_) | Self::Requests | Self::Leftovers => None,
        }
    }

    /// The state in which batches wait for it; `None` for what is no batch, and where the state does not tell: a batch
    /// is Reporting long before its report is due.
    #[must_use]
    pub fn batch_state(self) -> Option<BatchState> {
        match self {
            Self::Batches(Due::Jobs) => Some(BatchState::Pending),
            Self::Batches(Due::UpdatedReport) => Some(BatchState::UpdateReporting),
            Self::Batches(Due::RestOfJobs | Due::Report | Due::Withdrawal)
            | Self::Jobs(_)
            | Self::JobsByGrant(_)
            | Self::Requests
            | Self::Leftovers => None,
        }
    }

    /// What one of it is called, and several.
    #[must_use]
    pub fn nouns(self) -> [&'static str; 2] {
        match self {
            Self::Jobs(_) | Self::JobsByGrant(_) => ["job", "jobs"],
            Self::Batches(_) => ["batch", "batches"],
            Self::Requests => ["request", "requests"],
            Self::Leftovers => ["leftover", "leftovers"],
        }
    }
}

/// How a daemon takes the place of Java's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// By itself.
    Alone,
    /// Together with the others of which this is said: they share forms of files and records that Java's do not read.
    Together,
    /// It takes the place of none.
    None,
}

/// What is said of a daemon.
#[derive(Clone, Copy, Debug)]
pub struct DaemonSpec {
    /// Its name on the command line, in metrics and on pages.
    pub name: &'static str,
    /// What it does, for help texts and pages.
    pub does: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// How many workers it has where none are set.
    pub workers: usize,
    /// The fewest workers that it can have, and why.
    pub fewest_workers: (usize, &'static str),
    /// Whether it makes mails.
    pub makes_mails: bool,
    /// Whether it writes to stores, and leaves what is for a held one.
    pub waits_for_stores: bool,
    /// How it takes the place of Java's.
    pub exchange: Exchange,
}

/// What most daemons have in common.
const BASE: DaemonSpec = DaemonSpec {
    name: "",
    does: "",
    takes: Takes::Leftovers,
    workers: 8,
    fewest_workers: (1, ""),
    makes_mails: false,
    waits_for_stores: false,
    exchange: Exchange::Together,
};

macro_rules! daemons {
    ($( $daemon:ident $name:literal, $does:literal, $takes:expr $(, $field:ident: $value:expr)*; )+) => {
        /// A daemon.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Daemon { $( #[doc = concat!("It ", $does, ".")] $daemon, )+ }

        impl Daemon {
            /// All of them, in the order in which a deposit passes them; then those that keep house and give out.
            pub const ALL: [Self; [$(Self::$daemon),+].len()] = [$(Self::$daemon),+];

            /// What is said of it.
            #[must_use]
            pub const fn spec(self) -> &'static DaemonSpec {
                match self {
                    $(Self::$daemon => {
                        const { &DaemonSpec { $($field: $value,)* ..DaemonSpec { name: $name, does: $does, takes: $takes, ..BASE } } }
                    })+
                }
            }
        }
    };
}

daemons! {
    Batch "batch", "creates the jobs of a batch", Takes::Batches(Due::Jobs), workers: 2, makes_mails: true;
    Pending "pending", "checks a job's parameters", Takes::Jobs(JobState::Pending);
    Estimating "estimating", "finds out how much space a job needs", Takes::Jobs(JobState::Estimating), workers: 16,
        exchange: Exchange::Alone;
    Provisioning "provisioning", "grants working storage", Takes::JobsByGrant(JobState::Provisioning), workers: 1,
        exchange: Exchange::Alone;
    Downloading "downloading", "fetches and unpacks content", Takes::Jobs(JobState::Downloading);
    Processing "processing", "assigns identifiers, describes files", Takes::Jobs(JobState::Processing);
    Storing "storing", "writes a version of the object", Takes::Jobs(JobState::Storing), waits_for_stores: true;
    Recording "recording", "writes the inventory", Takes::Jobs(JobState::Recording);
    Notify "notify", "calls back, removes working files, completes a job", Takes::Jobs(JobState::Notify),
        exchange: Exchange::Alone;
    Report "report", "reports a batch whose jobs have ended", Takes::Batches(Due::Report), workers: 2,
        makes_mails: true, exchange: Exchange::Alone;
    UpdateReport "update-report", "reports a batch again", Takes::Batches(Due::UpdatedReport), workers: 1,
        makes_mails: true, exchange: Exchange::Alone;
    Cleanup "cleanup", "removes what is not needed any more", Takes::Leftovers, workers: 1,
        exchange: Exchange::None;
    Access "access", "assembles objects that are requested as archives", Takes::Requests, workers: 4,
        fewest_workers: (2, "one of which is never used for large requests"), waits_for_stores: true;
}

/// No daemon has such a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no daemon {0:?}; expected one of {names}", names = Daemon::ALL.map(Daemon::name).join(", "))]
pub struct UnknownDaemon(String);

impl Daemon {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// The state whose jobs it takes; `None` for one that works on something else.
    #[must_use]
    pub fn state(self) -> Option<JobState> {
        self.spec().takes.state()
    }

    /// The daemon that takes the jobs of a state; `None` for Held, Failed and the final ones.
    #[must_use]
    pub fn of_state(state: JobState) -> Option<Self> {
        Self::ALL.into_iter().find(|daemon| daemon.state() == Some(state))
    }

    /// Whether a pause of `ingest` stops it. The access queues have pauses of their own.
    #[must_use]
    pub fn stops_with_ingest(self) -> bool {
        match self.spec().takes {
            Takes::Jobs(state) | Takes::JobsByGrant(state) => !state.continues_when_paused(),
            Takes::Batches(_) | Takes::Leftovers => true,
            Takes::Requests => false,
        }
    }

    /// Those that make mails.
    pub fn of_mails() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|daemon| daemon.spec().makes_mails)
    }

    /// Whether the number of its workers may follow the jobs that wait: it takes one for each that is free.
    #[must_use]
    pub fn has_variable_workers(self) -> bool {
        matches!(self.spec().takes, Takes::Jobs(_))
    }
}

impl fmt::Display for Daemon {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

impl Serialize for Daemon {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for Daemon {
    type Err = UnknownDaemon;

    fn from_str(text: &str) -> Result<Self, UnknownDaemon> {
        let known = Self::ALL.into_iter().find(|daemon| daemon.name() == text);
        known.ok_or_else(|| UnknownDaemon(crate::name::shown(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_that_jobs_pass_through_has_one_daemon() {
        for state in JobState::ALL {
            let name = state.is_worked_on().then(|| state.label());
            assert_eq!(Daemon::of_state(*state).map(Daemon::name), name, "{state}");
        }
        for daemon in Daemon::ALL {
            assert_eq!(daemon.name().parse(), Ok(daemon));
        }
        assert!("all".parse::<Daemon>().unwrap_err().to_string().contains("provisioning"));
    }
}

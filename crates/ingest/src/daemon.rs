//! The daemons: which there are, and which state's jobs each takes.

use std::fmt;
use std::str::FromStr;

use queuekeeper_queue::state::JobState;

/// What is said of a daemon.
#[derive(Debug)]
pub struct DaemonSpec {
    /// Its name on the command line, in metrics and on pages.
    pub name: &'static str,
    /// The state whose jobs it takes; `None` for those that work on batches, files or access requests.
    pub state: Option<JobState>,
    /// How many workers it has where none are set.
    pub workers: usize,
    /// What it does, for help texts and pages.
    pub does: &'static str,
}

macro_rules! daemons {
    ($( $daemon:ident $name:literal $(takes $state:ident)?, workers $workers:literal, $does:literal; )+) => {
        /// A daemon.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Daemon { $( #[doc = concat!("It ", $does, ".")] $daemon, )+ }

        impl Daemon {
            /// All of them, in the order in which a deposit passes them; then those that keep house and give out.
            pub const ALL: [Self; [$(Self::$daemon),+].len()] = [$(Self::$daemon),+];

            /// What is said of it.
            #[must_use]
            pub fn spec(self) -> DaemonSpec {
                match self {
                    $(Self::$daemon => {
                        let state: &[JobState] = &[$(JobState::$state)?];
                        DaemonSpec { name: $name, state: state.first().copied(), workers: $workers, does: $does }
                    })+
                }
            }
        }
    };
}

daemons! {
    Batch "batch", workers 2, "creates the jobs of a batch";
    Pending "pending" takes Pending, workers 8, "checks a job's parameters";
    Estimating "estimating" takes Estimating, workers 16, "finds out how much space a job needs";
    Provisioning "provisioning" takes Provisioning, workers 1, "grants working storage";
    Downloading "downloading" takes Downloading, workers 8, "fetches and unpacks content";
    Processing "processing" takes Processing, workers 8, "assigns identifiers, describes files";
    Storing "storing" takes Storing, workers 8, "writes a version of the object";
    Recording "recording" takes Recording, workers 8, "writes the inventory";
    Notify "notify" takes Notify, workers 8, "calls back, removes working files, completes a job";
    Report "report", workers 2, "reports a batch whose jobs have ended";
    UpdateReport "update-report", workers 1, "reports a batch again";
    Cleanup "cleanup", workers 1, "removes what is no longer needed";
    Access "access", workers 4, "assembles requested objects as archives";
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

    /// The daemon that takes the jobs of a state; `None` for Held, Failed and the final ones.
    #[must_use]
    pub fn of_state(state: JobState) -> Option<Self> {
        Self::ALL.into_iter().find(|daemon| daemon.spec().state == Some(state))
    }
}

impl fmt::Display for Daemon {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
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
    use queuekeeper_queue::state::State as _;

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

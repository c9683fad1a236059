//! The daemons: which there are, and which state's jobs each takes.

use std::fmt;
use std::str::FromStr;

use queuekeeper_queue::state::JobState;

/// A daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the table says what each does")]
pub enum Daemon {
    Batch,
    Pending,
    Estimating,
    Provisioning,
    Downloading,
    Processing,
    Storing,
    Recording,
    Notify,
    Report,
    UpdateReport,
    Cleanup,
    Access,
}

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

/// No daemon has such a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no daemon {0:?}; there are {names}", names = Daemon::ALL.map(Daemon::name).join(", "))]
pub struct UnknownDaemon(String);

impl Daemon {
    /// All of them, in the order in which a deposit passes them; then those that keep house and give out.
    pub const ALL: [Self; 13] = [
        Self::Batch,
        Self::Pending,
        Self::Estimating,
        Self::Provisioning,
        Self::Downloading,
        Self::Processing,
        Self::Storing,
        Self::Recording,
        Self::Notify,
        Self::Report,
        Self::UpdateReport,
        Self::Cleanup,
        Self::Access,
    ];

    /// What is said of it.
    #[must_use]
    pub fn spec(self) -> DaemonSpec {
        let (name, state, workers, does) = match self {
            Self::Batch => ("batch", None, 2, "creates the jobs of a batch"),
            Self::Pending => ("pending", Some(JobState::Pending), 8, "checks a job's parameters"),
            Self::Estimating => ("estimating", Some(JobState::Estimating), 16, "finds out how much space a job needs"),
            Self::Provisioning => ("provisioning", Some(JobState::Provisioning), 1, "grants working storage"),
            Self::Downloading => ("downloading", Some(JobState::Downloading), 8, "fetches and unpacks content"),
            Self::Processing => ("processing", Some(JobState::Processing), 8, "assigns identifiers, describes files"),
            Self::Storing => ("storing", Some(JobState::Storing), 8, "writes a version of the object"),
            Self::Recording => ("recording", Some(JobState::Recording), 8, "writes the inventory"),
            Self::Notify => ("notify", Some(JobState::Notify), 8, "calls back, removes working files, completes a job"),
            Self::Report => ("report", None, 2, "reports a batch whose jobs have ended"),
            Self::UpdateReport => ("update-report", None, 1, "reports a batch again"),
            Self::Cleanup => ("cleanup", None, 1, "removes what is not needed any more"),
            Self::Access => ("access", None, 4, "assembles objects that are requested as archives"),
        };
        DaemonSpec { name, state, workers, does }
    }

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
            let is_worked_on = state.success().is_some() && *state != JobState::Held;
            assert_eq!(Daemon::of_state(*state).is_some(), is_worked_on, "{state}");
        }
        for daemon in Daemon::ALL {
            assert_eq!(daemon.name().parse(), Ok(daemon));
        }
        assert!("all".parse::<Daemon>().unwrap_err().to_string().contains("provisioning"));
    }
}

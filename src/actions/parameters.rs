//! The parameters of actions besides their targets.

use super::kind::ActionKind;
use super::refusal::Refusal;
use super::target::TargetKind;
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::state::JobState;

/// The parameters of an action besides its target, as in the API, forms and audit records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ActionParameters {
    /// The state to resume a job in; `None` for the one after its last successful state.
    pub to: Option<JobState>,
    /// The priority to set.
    pub priority: Option<Priority>,
    /// Whether to execute it where it is refused by default.
    pub force: bool,
    /// Whether the held batches and jobs of a collection are released with it.
    pub with_jobs: bool,
}

impl ActionParameters {
    /// The names of the parameters that are set.
    fn names(self) -> impl Iterator<Item = &'static str> {
        let set = [
            ("to", self.to.is_some()),
            ("priority", self.priority.is_some()),
            ("force", self.force),
            ("with_jobs", self.with_jobs),
        ];
        set.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name)
    }

    /// Checks that no parameter is set besides those that the action takes.
    pub(super) fn check(self, kind: ActionKind, on: TargetKind, takes: &[&str]) -> Result<(), Refusal> {
        let foreign = self.names().find(|name| !takes.contains(name));
        foreign.map_or(Ok(()), |name| {
            Err(Refusal::Invalid(format!("“{name}” is not supported for action {kind} on {}", on.words())))
        })
    }
}

/// A parameter as an action has it.
pub(super) trait ReadParameter<T> {
    /// Its value.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] if it is required and missing.
    fn read(self, kind: ActionKind, name: &str) -> Result<T, Refusal>;
}

impl ReadParameter<bool> for bool {
    fn read(self, _: ActionKind, _: &str) -> Result<bool, Refusal> {
        Ok(self)
    }
}

impl ReadParameter<Option<JobState>> for Option<JobState> {
    fn read(self, _: ActionKind, _: &str) -> Result<Option<JobState>, Refusal> {
        Ok(self)
    }
}

impl ReadParameter<Priority> for Option<Priority> {
    fn read(self, kind: ActionKind, name: &str) -> Result<Priority, Refusal> {
        self.ok_or_else(|| Refusal::Invalid(format!("action {kind} needs a {name}: 0, the most urgent, to 99")))
    }
}

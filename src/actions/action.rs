//! An action: what is requested, its target, and the state in which its caller saw the target.

use super::actor::Role;
use super::kind::ActionKind;
use super::parameters::ActionParameters;
use super::precondition::Precondition;
use super::refusal::Refusal;
use super::spec::ActionSpec;
use super::table::{
    BatchAction, BatchesAction, CollectionAction, FaultAction, JobAction, LockAction, QueueAction, RequestAction,
    StoreAction, TargetAction,
};
use super::target::Target;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::id::{BatchId, JobId, RequestId};
use queuekeeper_queue::path::{self, AccessQueue, Path};
use queuekeeper_store::StoreName;

/// An action and its target. Unsupported combinations cannot be expressed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Requested {
    /// On a job.
    Job(JobId, JobAction),
    /// On a batch.
    Batch(BatchId, BatchAction),
    /// On an access request.
    Request(AccessQueue, RequestId, RequestAction),
    /// On a queue.
    Queue(path::QueueName, QueueAction),
    /// On a collection, by its mnemonic.
    Collection(Box<str>, CollectionAction),
    /// On a store, by its name.
    Store(StoreName, StoreAction),
    /// On a lock, by its path.
    Lock(Path, LockAction),
    /// On a fault and the item that shows it.
    Fault(Fault, Path, FaultAction),
    /// On all batches.
    Batches(BatchesAction),
}

/// A requested action and its precondition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What is requested.
    pub requested: Requested,
    /// The state in which the caller saw the target: the action is refused if it has changed. `None` for any state.
    pub precondition: Option<Precondition>,
    /// Whether its actor made the deposit that it is about, and needs no other role.
    is_owners: bool,
}

impl Requested {
    /// An action of this kind on this target.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] if the action is not supported for the target, or if a parameter is unsupported or missing.
    #[expect(clippy::needless_pass_by_value, reason = "the action takes its target over")]
    pub fn new(kind: ActionKind, target: Target, parameters: ActionParameters) -> Result<Self, Refusal> {
        let requested = match &target {
            Target::Job(id) => JobAction::read(kind, parameters)?.map(|action| Self::Job(*id, action)),
            Target::Batch(id) => BatchAction::read(kind, parameters)?.map(|action| Self::Batch(*id, action)),
            Target::Request(queue, id) => {
                RequestAction::read(kind, parameters)?.map(|action| Self::Request(*queue, *id, action))
            }
            Target::Queue(queue) => QueueAction::read(kind, parameters)?.map(|action| Self::Queue(*queue, action)),
            Target::Collection(name) => {
                CollectionAction::read(kind, parameters)?.map(|action| Self::Collection(name.clone(), action))
            }
            Target::Store(name) => StoreAction::read(kind, parameters)?.map(|action| Self::Store(name.clone(), action)),
            Target::Lock(lock) => LockAction::read(kind, parameters)?.map(|action| Self::Lock(lock.clone(), action)),
            Target::Fault(fault, item) => {
                FaultAction::read(kind, parameters)?.map(|action| Self::Fault(*fault, item.clone(), action))
            }
            Target::Batches => BatchesAction::read(kind, parameters)?.map(Self::Batches),
        };
        requested.ok_or_else(|| {
            let known: Vec<_> = target.actions().map(|spec| spec.kind.label()).collect();
            Refusal::Invalid(format!("action {kind} is not supported for {target}; supported: {}", known.join(", ")))
        })
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> Target {
        match self {
            Self::Job(id, _) => Target::Job(*id),
            Self::Batch(id, _) => Target::Batch(*id),
            Self::Request(queue, id, _) => Target::Request(*queue, *id),
            Self::Queue(queue, _) => Target::Queue(*queue),
            Self::Collection(name, _) => Target::Collection(name.clone()),
            Self::Store(name, _) => Target::Store(name.clone()),
            Self::Lock(lock, _) => Target::Lock(lock.clone()),
            Self::Fault(fault, item, _) => Target::Fault(*fault, item.clone()),
            Self::Batches(_) => Target::Batches,
        }
    }

    fn action(&self) -> &dyn TargetAction {
        match self {
            Self::Job(_, action) => action,
            Self::Batch(_, action) => action,
            Self::Request(_, _, action) => action,
            Self::Queue(_, action) => action,
            Self::Collection(_, action) => action,
            Self::Store(_, action) => action,
            Self::Lock(_, action) => action,
            Self::Fault(_, _, action) => action,
            Self::Batches(action) => action,
        }
    }

    /// Its row in the table of actions.
    #[must_use]
    pub fn spec(&self) -> &'static ActionSpec {
        self.action().spec()
    }

    /// The kind of the action.
    #[must_use]
    pub fn kind(&self) -> ActionKind {
        self.spec().kind
    }

    /// The parameters besides the target.
    #[must_use]
    pub fn parameters(&self) -> ActionParameters {
        self.action().parameters()
    }

    /// The role that the action requires.
    #[must_use]
    pub fn role(&self) -> Role {
        self.target().role_for(self.spec())
    }
}

impl From<Requested> for Action {
    /// Without a precondition.
    fn from(requested: Requested) -> Self {
        Self { requested, precondition: None, is_owners: false }
    }
}

impl Action {
    /// An action without a precondition.
    ///
    /// # Errors
    /// As [`Requested::new`].
    pub fn new(kind: ActionKind, target: Target, parameters: ActionParameters) -> Result<Self, Refusal> {
        Requested::new(kind, target, parameters).map(Self::from)
    }

    /// Adds a precondition.
    #[must_use]
    pub fn only_if(self, precondition: Option<Precondition>) -> Self {
        Self { precondition, ..self }
    }

    /// Adds the precondition that the target's status has this version.
    #[must_use]
    pub fn at_version(self, version: Option<i32>) -> Self {
        let at = |version| Precondition { version: Some(version), ..Precondition::default() };
        Self { precondition: version.map(at), ..self }
    }

    /// The same on behalf of who made the deposit that it is about, which its caller has checked.
    #[must_use]
    pub(super) fn of_owner(self) -> Self {
        Self { is_owners: true, ..self }
    }

    /// The kind of the action.
    #[must_use]
    pub fn kind(&self) -> ActionKind {
        self.requested.kind()
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> Target {
        self.requested.target()
    }

    /// The role that it requires.
    pub(super) fn role(&self) -> Role {
        if self.is_owners { Role::Depositor } else { self.requested.role() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::parameters::{Input, Parameter};
    use crate::actions::target::TargetKind;

    fn set(parameters: &mut ActionParameters, parameter: Parameter) {
        let text = match &parameter.spec().input {
            Input::Choice { values, .. } => values().last().unwrap().0,
            Input::Number { .. } => "7",
            Input::Checkbox => "true",
        };
        parameters.set(parameter, text).unwrap();
        assert!(parameters.has(parameter) && parameters.text(parameter) == text, "{parameter:?}");
    }

    #[test]
    fn every_row_of_the_table_is_an_action_and_no_other_combination_is_accepted() {
        let targets = [
            "jid0000000042",
            "bid0000000042",
            "small/qid0000000042",
            "queue:ingest",
            "collection:demo",
            "store:main",
            "lock:/jobs/jid0000000042/lock",
            "fault:orphan_entry:/jobs/jid0000000042",
            "batches",
        ];
        let targets = targets.map(|text| text.parse::<Target>().unwrap());
        assert_eq!(targets.each_ref().map(Target::kind), TargetKind::ALL, "a target of each kind");
        for target in targets {
            for kind in ActionKind::ALL {
                let Some(spec) = target.spec(kind) else {
                    let refused =
                        Requested::new(kind, target.clone(), ActionParameters::default()).unwrap_err().to_string();
                    assert!(refused.starts_with(&format!("action {kind} is not supported for {target}")), "{refused}");
                    continue;
                };
                let mut full = ActionParameters::default();
                for takes in spec.takes {
                    set(&mut full, takes.parameter);
                }
                let requested = Requested::new(kind, target.clone(), full).unwrap();
                assert_eq!(
                    (requested.kind(), requested.target(), requested.parameters()),
                    (kind, target.clone(), full)
                );
                assert_eq!(requested.spec().kind, kind);
                let mut all = ActionParameters::default();
                for parameter in Parameter::ALL {
                    set(&mut all, parameter);
                }
                assert!(Requested::new(kind, target.clone(), all).is_err(), "{kind} {target}");
            }
        }
        let missing =
            Requested::new(ActionKind::SetPriority, "jid0000000042".parse().unwrap(), ActionParameters::default());
        assert!(missing.unwrap_err().to_string().contains("needs a priority"));
    }
}

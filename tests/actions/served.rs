//! Actions for tests: over a queue and an audit file of their own.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use queuekeeper::actions::audit::{Audit, Destination, Record, Rotation};
use queuekeeper::actions::{
    Action, ActionKind, ActionOutcome, ActionParameters, Actions, Actor, Clock, Reason, Refusal, Role, Source, Target,
};
use queuekeeper_queue::Queue;
use queuekeeper_queue::fault::Limits;
use queuekeeper_queue::id::Priority;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use queuekeeper_testkit::queue::{World, now};

pub(crate) struct Served {
    pub(crate) actions: Actions,
    folder: TempDir,
    _writer: AbortOnDropHandle<()>,
}

pub(crate) fn actor(role: Role) -> Actor {
    Actor { name: "tester".to_owned(), role, source: Source::Cli, from: None }
}

/// An action without parameters.
pub(crate) fn action_on(kind: ActionKind, target: Target) -> Action {
    with(kind, target, ActionParameters::default())
}

/// An action with parameters.
pub(crate) fn with(kind: ActionKind, target: Target, parameters: ActionParameters) -> Action {
    Action::new(kind, target, parameters).unwrap()
}

/// The required parameters of an action: this priority, if it sets one.
pub(crate) fn least(kind: ActionKind, priority: i64) -> ActionParameters {
    let priority = Priority::new(priority).filter(|_| kind == ActionKind::SetPriority);
    ActionParameters { priority, ..ActionParameters::default() }
}

impl Served {
    /// Actions on a world's queue.
    pub(crate) fn over(world: &World) -> Self {
        Self::on(world.queue.clone())
    }

    /// Actions on a queue.
    pub(crate) fn on(queue: Queue) -> Self {
        Self::with(queue, Rotation::default())
    }

    /// Actions on a queue, with this rotation of the audit file.
    pub(crate) fn with(queue: Queue, rotation: Rotation) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        let (audit, writer) = Audit::open(Destination::File(file, rotation)).unwrap();
        let writer = AbortOnDropHandle::new(tokio::spawn(writer.run(CancellationToken::new())));
        Self { actions: Actions::over(queue, (None, Clock::Mirror), Limits::default(), audit), folder, _writer: writer }
    }

    /// Executes an action and waits until it has finished.
    pub(crate) async fn action(&self, action: Action, role: Role, reason: &str) -> Result<ActionOutcome, Refusal> {
        let taken = self.actions.execute(action, actor(role), Reason::new(reason).unwrap(), None, now()).await?;
        taken.execution.finished().await
    }

    /// Removes the directory of the audit file, so that the file cannot be rotated.
    pub(crate) fn lose_folder(&self) {
        std::fs::remove_dir_all(self.folder.path()).unwrap();
    }

    /// The records of the audit file.
    pub(crate) fn records(&self) -> Vec<Record> {
        let text = std::fs::read_to_string(self.folder.path().join("audit.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

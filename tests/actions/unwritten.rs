//! An action that cannot be recorded is not executed.

use queuekeeper::actions::audit::Rotation;
use queuekeeper::actions::{ActionKind, Refusal, Role, Target};
use queuekeeper_queue::id::JobId;

use super::served::{Served, action_on};
use queuekeeper_testkit::queue::{World, base, borrowed, job};

#[tokio::test(flavor = "multi_thread")]
async fn an_action_that_cannot_be_recorded_is_not_executed() {
    let mut nodes = base();
    nodes.extend(job(1, "Failed"));
    nodes.extend(job(2, "Failed"));
    let world = World::new(&borrowed(&nodes)).await;
    // The file is rotated after every line.
    let served = Served::with(world.queue.clone(), Rotation { size_bytes: 1, files: 4 });
    let action = |number| action_on(ActionKind::Resume, Target::Job(JobId::new(number)));
    served.action(action(1), Role::Operator, "this is written").await.unwrap();
    assert_eq!(world.stat("/jobs/jid0000000001/status").await.version, 1);

    let before = world.tree().await;
    served.lose_folder();
    let refused = served.action(action(2), Role::Operator, "this is not").await.unwrap_err();
    let Refusal::Unavailable(why) = &refused else { panic!("{refused:?}") };
    assert!(why.contains("audit file") && !why.contains('\n'), "{why}");
    assert_eq!(world.tree().await, before, "nothing was done");
}

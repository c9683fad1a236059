//! The number of requests to ZooKeeper for an action on a job, counted on the connection.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::process::Command;
use std::time::Duration;

use prometheus_client::registry::Registry;
use queuekeeper::actions::audit::{Audit, Destination, Rotation};
use queuekeeper::actions::{self, Action, ActionKind, Actions, Precondition, Reason, Role, Target};
use queuekeeper::mirror::{self, Writer};
use queuekeeper_queue::Queue;
use queuekeeper_queue::fault::Limits;
use queuekeeper_queue::id::JobId;
use queuekeeper_zookeeper::{Config, Sessions};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::served::{Served, actor, least, with};
use queuekeeper_testkit::queue::{World, base, borrowed, folder, job, now};
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::wait::eventually;
use queuekeeper_testkit::wire::Wire;

const LIMIT: Duration = Duration::from_secs(20);

/// Each action on a job, and the state of the job; the first has number 1.
const ACTIONS: [(ActionKind, &str); 9] = [
    (ActionKind::Resume, "Failed"),
    (ActionKind::Hold, "Pending"),
    (ActionKind::Release, "Held"),
    (ActionKind::Fail, "Downloading"),
    (ActionKind::SetPriority, "Pending"),
    (ActionKind::SetPriority, "Failed"),
    (ActionKind::Delete, "Failed"),
    (ActionKind::Delete, "Held"),
    (ActionKind::Purge, "Completed"),
];

/// The action with that index, and its precondition if any.
fn action(index: usize, precondition: Option<Precondition>) -> Action {
    let target = Target::Job(id(index));
    with(ACTIONS[index].0, target, least(ACTIONS[index].0, 9)).only_if(precondition)
}

fn id(index: usize) -> JobId {
    JobId::new(u32::try_from(index + 1).unwrap())
}

/// A queue with a job for each action, and a proxy to it.
async fn world_and_wire() -> (World, Wire) {
    let mut nodes = base();
    for (number, (_, state)) in (1..).zip(ACTIONS) {
        nodes.extend(job(number, state));
    }
    // Jobs are purged after the report of their batch.
    let status = nodes.iter_mut().find(|(path, _)| path == "/batches/bid0000000000/status").unwrap();
    status.1 = status.1.replace("Reporting", "Completed");
    (World::new(&borrowed(&nodes)).await, Wire::start(shared().await.port()).await)
}

/// Whether an action was executed: the job has left its state, or has the new priority.
async fn is_done(world: &World, index: usize) -> bool {
    let (job, state) = (id(index), ACTIONS[index].1);
    !world.exists(&format!("/jobs/states/{}/05-{job}", folder(state))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_on_a_job_costs_a_server_two_round_trips() {
    let (world, wire) = world_and_wire().await;
    let config = |address: String| Config {
        session_timeout: Duration::from_secs(20),
        ..Config::new(format!("{address}{}", world.chroot).parse().unwrap())
    };
    let (writer, mut registry, shutdown) = (Writer::new(), Registry::default(), CancellationToken::new());
    let (store, seen) = (writer.store(), mirror::Metrics::register(&mut registry));
    let direct = Sessions::new(config(shared().await.connect_string()));
    let mirrored = mirror::run(direct, writer, seen, None, shutdown.clone());
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("audit.jsonl");
    let audit = Audit::open(Destination::File(file, Rotation::default())).unwrap();
    let counted = actions::Metrics::register(&mut registry);
    let (actions, runner) = Actions::new(store.clone(), Limits::default(), audit, counted);
    let requested = runner.run(Sessions::new(config(wire.connect_string())), shutdown);
    let _tasks = [
        AbortOnDropHandle::new(tokio::spawn(async move { mirrored.await.unwrap() })),
        AbortOnDropHandle::new(tokio::spawn(async move { requested.await.unwrap() })),
    ];
    eventually(LIMIT, "all jobs are in the mirror, and the connection is there", async || {
        let known = (0..ACTIONS.len()).all(|index| store.job(id(index)).is_some_and(|job| job.priority.is_some()));
        known && actions.plan(&action(0, None), &actor(Role::Admin), "", now()).await.is_ok()
    })
    .await;
    for (index, (kind, state)) in ACTIONS.into_iter().enumerate() {
        // Like a user who has seen the job on its page, and like a program that has not.
        let looked = (index % 2 == 0).then(|| Precondition { version: Some(0), ..Precondition::default() });
        wire.arm(None);
        let (action, reason) = (action(index, looked), Reason::new("counted").unwrap());
        let taken = actions.execute(action, actor(Role::Admin), reason, None, now()).await.unwrap();
        taken.execution.finished().await.unwrap();
        assert!(is_done(&world, index).await, "{kind} {state}");
        assert_eq!(wire.requests(), 2, "{kind} {state}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_without_a_mirror_costs_three_round_trips() {
    let (world, wire) = world_and_wire().await;
    let client = connect(&format!("{}{}", wire.connect_string(), world.chroot)).await;
    let served = Served::on(Queue::new(client));
    for (index, (kind, state)) in ACTIONS.into_iter().enumerate() {
        wire.arm(None);
        served.action(action(index, None), Role::Admin, "counted").await.unwrap();
        assert!(is_done(&world, index).await, "{kind} {state}");
        // One more than a server, which looked for the chroot when it connected.
        assert!((3..=4).contains(&wire.requests()), "{kind} {state}: {} requests", wire.requests());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_needs_no_more_round_trips() {
    let (world, wire) = world_and_wire().await;
    let home = tempfile::tempdir().unwrap();
    let address = format!("{}{}", wire.connect_string(), world.chroot);
    for (index, (kind, state)) in ACTIONS.into_iter().enumerate() {
        let name = match kind {
            ActionKind::SetPriority => "priority",
            other => other.label(),
        };
        let mut program = Command::new(env!("CARGO_BIN_EXE_queuekeeper"));
        program.args(["job", &id(index).to_string(), name]);
        program.args((kind == ActionKind::SetPriority).then_some("9"));
        program.args(["--yes", "--reason", "counted", "--zookeeper", &address]);
        program.env("HOME", home.path()).env_remove("XDG_STATE_HOME");
        wire.arm(None);
        let ran = tokio::task::spawn_blocking(move || program.output().unwrap()).await.unwrap();
        assert!(ran.status.success(), "{kind} {state}: {ran:?}");
        assert!(is_done(&world, index).await, "{kind} {state}");
        // One more than a server, which looked for the chroot when it connected.
        assert!((3..=4).contains(&wire.requests()), "{kind} {state}: {} requests", wire.requests());
    }
}

//! A server that comes back with an empty disk: it refuses sessions with a later zxid than its own, for as long as they
//! last, and the mirror and the actions recover before that.

use std::time::Duration;

use prometheus_client::registry::Registry;
use queuekeeper::actions::audit::{Audit, Destination, Rotation};
use queuekeeper::actions::{self, ActionKind, Actions, Reason, Role, Target};
use queuekeeper::mirror::{self, Writer};
use queuekeeper_queue::fault::Limits;
use queuekeeper_queue::id::JobId;
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{Config, PrivateServer, Sessions};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::served::{action_on, actor};
use queuekeeper_testkit::queue::{base, borrowed, job, make, now};
use queuekeeper_testkit::server::connect;
use queuekeeper_testkit::wait::eventually;

/// Both sessions last longer than this.
const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn after_a_server_has_lost_its_data_actions_are_accepted_long_before_the_sessions_end() {
    let mut server = PrivateServer::start(Options::default()).await.unwrap();
    let config =
        Config { session_timeout: Duration::from_secs(40), ..Config::new(server.connect_string().parse().unwrap()) };
    let (writer, mut registry, shutdown) = (Writer::new(), Registry::default(), CancellationToken::new());
    let (store, seen) = (writer.store(), mirror::Metrics::register(&mut registry));
    let mirrored = mirror::run(Sessions::new(config.clone()), writer, seen, None, shutdown.clone());
    let files = tempfile::tempdir().unwrap();
    let audit = Audit::open(Destination::File(files.path().join("audit.jsonl"), Rotation::default())).unwrap();
    let counted = actions::Metrics::register(&mut registry);
    let (actions, runner) = Actions::new(store.clone(), Limits::default(), audit, counted);
    let requested = runner.run(Sessions::new(config), shutdown);
    let _tasks = [
        AbortOnDropHandle::new(tokio::spawn(async move { mirrored.await.unwrap() })),
        AbortOnDropHandle::new(tokio::spawn(async move { requested.await.unwrap() })),
    ];

    for number in 1..=2 {
        let client = connect(&server.connect_string()).await;
        let mut nodes = base();
        nodes.extend(job(number, "Failed"));
        make(&client, &borrowed(&nodes)).await;
        let id = JobId::new(number);
        let action = || action_on(ActionKind::Resume, Target::Job(id));
        eventually(LIMIT, "the job is in the mirror, and can be resumed", async || {
            store.job(id).is_some() && actions.plan(&action(), &actor(Role::Operator), "", now()).await.is_ok()
        })
        .await;
        let reason = Reason::new("it is there again").unwrap();
        let taken = actions.execute(action(), actor(Role::Operator), reason, None, now()).await.unwrap();
        taken.execution.finished().await.unwrap();
        let gone = client.check_stat(&format!("/jobs/states/failed/05-{id}")).await.unwrap();
        assert!(gone.is_none(), "it was resumed");

        server.kill().unwrap();
        server.lose_data().unwrap();
        server.restart().await.unwrap();
    }
}

//! A connection that is cut around a commit: what happened is learned, or said not to be known.

use std::time::Duration;

use queuekeeper_queue::id::JobId;
use queuekeeper_queue::state::State;
use queuekeeper_queue::{Error, JobChange, Queue};

use zookeeper_client::SessionState;

use queuekeeper_testkit::proxy::{Direction, Newcomers, Proxy};
use queuekeeper_testkit::queue::{World, base, borrowed, job, now};
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::wait::eventually;

const LIMIT: Duration = Duration::from_secs(20);

async fn world_and_proxy() -> (World, Proxy, Queue) {
    let mut nodes = base();
    nodes.extend(job(1, "Failed"));
    let world = World::new(&borrowed(&nodes)).await;
    let proxy = Proxy::start(shared().await.port()).await;
    let queue = Queue::new(connect(&format!("{}{}", proxy.connect_string(), world.chroot)).await);
    (world, proxy, queue)
}

/// Waits until the cut is felt: restored before, the proxy might pass what it held back.
async fn noticed(queue: &Queue) {
    let is_cut = async || queue.client().state() == SessionState::Disconnected;
    eventually(LIMIT, "the client notices the cut", is_cut).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_was_lost_is_found_to_be_done() {
    let (world, proxy, queue) = world_and_proxy().await;
    let plan = queue.plan_job_change(JobId::new(1), &JobChange::resume(), now()).await.unwrap();
    proxy.stall(Direction::ToClient);
    let commit = tokio::spawn({
        let (queue, plan) = (queue.clone(), plan.clone());
        async move { queue.commit(&plan.transaction).await }
    });
    eventually(LIMIT, "the server has done it", async || world.stat("/jobs/jid0000000001/status").await.version == 1)
        .await;
    proxy.cut(Newcomers::Refuse);
    noticed(&queue).await;
    proxy.restore();
    let committed = commit.await.unwrap().unwrap();
    assert!(committed.recovered, "the answer itself never came");
    assert_eq!((plan.from.name(), plan.to.name()), ("Failed", "Downloading"));
    assert_eq!(committed.stats.iter().flatten().map(|stat| stat.version).max(), Some(1));
    assert_eq!(world.json("/jobs/jid0000000001/status").await["retry_count"], 2);
    // Done again, it is refused and not done twice.
    let before = world.tree().await;
    assert!(matches!(queue.commit_job_plan(&plan).await, Err(Error::Conflict(_))));
    assert_eq!(world.tree().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_never_arrived_is_found_not_to_be_done_and_may_be_repeated() {
    let (world, proxy, queue) = world_and_proxy().await;
    let plan = queue.plan_job_change(JobId::new(1), &JobChange::resume(), now()).await.unwrap();
    let before = world.tree().await;
    proxy.stall(Direction::ToServer);
    let commit = tokio::spawn({
        let (queue, plan) = (queue.clone().with_time_limit(Duration::from_millis(300)), plan.clone());
        async move { queue.commit_job_plan(&plan).await }
    });
    let error = commit.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }) && error.may_be_retried(), "{error}");
    assert_eq!(world.tree().await, before);
    proxy.cut(Newcomers::Refuse);
    noticed(&queue).await;
    proxy.restore();
    let changed = queue.commit_job_plan(&plan).await.unwrap();
    assert_eq!(changed.version, 1);
    assert_eq!(world.json("/jobs/jid0000000001/status").await["retry_count"], 2, "it was done once");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_nobody_answers_the_outcome_is_said_not_to_be_known() {
    let (world, proxy, queue) = world_and_proxy().await;
    let plan = queue.plan_job_change(JobId::new(1), &JobChange::resume(), now()).await.unwrap();
    proxy.stall(Direction::ToClient);
    let error = queue.with_time_limit(Duration::from_millis(300)).commit_job_plan(&plan).await.unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }) && error.is_connection(), "{error}");
    assert!(error.to_string().starts_with("it is unknown whether set /jobs/jid0000000001/status"), "{error}");
    eventually(LIMIT, "the server has done it", async || world.stat("/jobs/jid0000000001/status").await.version == 1)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_checked_again_to_be_done_or_not_until_another_changes_what_it_is_about() {
    let world = World::new(&borrowed(&[base(), job(1, "Failed")].concat())).await;
    let plan = world.queue.plan_job_change(JobId::new(1), &JobChange::resume(), now()).await.unwrap();
    let recheck = async || world.queue.recheck(&plan.transaction).await.unwrap();
    assert_eq!(recheck().await, Some(false));
    world.queue.commit(&plan.transaction).await.unwrap();
    assert_eq!(recheck().await, Some(true));
    world.raw.set_data("/jobs/jid0000000001/status", br#"{"status":"Downloading"}"#, None).await.unwrap();
    assert_eq!(recheck().await, None);
}

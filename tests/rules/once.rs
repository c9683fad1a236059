//! A decision that was accepted with 2xx is executed exactly once, whatever happens in between.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper::alerts::NotReceived;
use queuekeeper_queue::state::JobState;

use super::changes::changed;
use super::world::{Keeper, LIMIT, World, failed_jobs, operator, resume};
use queuekeeper_testkit::proxy::{Direction, Newcomers, Proxy};
use queuekeeper_testkit::server::shared;
use queuekeeper_testkit::wait::eventually;

const ALL: &str = "mode: enforce\nselect: {limit: 100}\nbudget: {items: 200, per: 1h}\ncooldown: 1h";

#[tokio::test(flavor = "multi_thread")]
async fn two_alertmanagers_and_a_replay_are_one() {
    let world = World::new().await;
    let (one, two) = (world.keeper(resume(ALL)).await, world.keeper(resume(ALL)).await);
    one.ready(false).await;
    two.ready(false).await;
    world.failed(10).await;
    one.sees(JobState::Failed, 10).await;
    two.sees(JobState::Failed, 10).await;
    let calls = [&one, &two, &one, &two].map(|keeper| keeper.outcome(failed_jobs("01")));
    let outcomes = futures::future::join_all(calls).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "accepted").count(), 1, "{outcomes:?}");
    one.settled(&world).await;
    // A repetition of the same, and another alert on the same scope.
    for keeper in [&one, &two] {
        eventually(LIMIT, "the replay is known", async || {
            keeper.outcome(failed_jobs("01")).await == "nothing_to_do"
                || keeper.outcome(failed_jobs("01")).await == "duplicate"
        })
        .await;
    }
    world.failed(5).await;
    two.sees(JobState::Failed, 5).await;
    assert_eq!(two.outcome(failed_jobs("01")).await, "duplicate");
    assert_eq!(two.outcome(failed_jobs("02")).await, "cooldown");
    assert_eq!(world.resumed().await.iter().sum::<u64>(), 10);
    assert_eq!(one.done() + two.done(), 10);
    one.end().await;
    two.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_leader_is_killed_another_process_continues_with_the_frozen_list() {
    let world = World::new().await;
    let address = world.address(None, &shared().await.connect_string());
    // Its session ends soon after it does.
    let one = Keeper::start(&address, resume(ALL), Duration::from_secs(4)).await;
    one.ready(true).await;
    let two = world.keeper(resume(ALL)).await;
    two.ready(false).await;
    let jobs = world.failed(100).await;
    one.sees(JobState::Failed, 100).await;
    two.sees(JobState::Failed, 100).await;
    assert_eq!(two.outcome(failed_jobs("01")).await, "accepted");
    eventually(LIMIT, "it has begun", async || world.count(&jobs[..20], JobState::Failed).await < 20).await;
    one.kill();
    // A job that fails now is not on the list.
    let later = world.failed(3).await;
    two.settled(&world).await;
    assert_eq!(world.count(&jobs, JobState::Failed).await, 0);
    assert_eq!(world.count(&later, JobState::Failed).await, 3, "only what was frozen");
    assert_eq!(world.resumed().await.iter().sum::<u64>(), 100, "each of them once");
    assert!(two.done() > 0, "the other did the rest");
    two.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_between_alert_and_action_loses_nothing() {
    let world = World::new().await;
    let jobs = world.failed(5).await;
    let answering = world.answering(resume(ALL)).await;
    answering.sees(JobState::Failed, 5).await;
    eventually(LIMIT, "it has made its folders", async || {
        world.raw.check_stat("/queuekeeper/pending").await.unwrap().is_some()
    })
    .await;
    assert_eq!(answering.outcome(failed_jobs("0a")).await, "accepted");
    assert_eq!(answering.outcome(failed_jobs("0a")).await, "duplicate");
    assert_eq!(world.pending().await.len(), 1);
    answering.kill();
    assert_eq!(world.count(&jobs, JobState::Failed).await, 5, "nothing was done yet");
    let restarted = world.keeper(resume(ALL)).await;
    restarted.settled(&world).await;
    assert_eq!(world.resumed().await, vec![1; 5]);
    restarted.counts("executed", 1).await;

    // An alert that is resolved before the execution starts is cancelled.
    restarted.end().await;
    let world = World::new().await;
    let jobs = world.failed(5).await;
    let answering = world.answering(resume(ALL)).await;
    answering.sees(JobState::Failed, 5).await;
    eventually(LIMIT, "it has made its folders", async || {
        world.raw.check_stat("/queuekeeper/pending").await.unwrap().is_some()
    })
    .await;
    assert_eq!(answering.outcome(failed_jobs("0b")).await, "accepted");
    let mut resolved = failed_jobs("0b");
    resolved["status"] = "resolved".into();
    assert_eq!(answering.outcome(resolved).await, "resolved");
    assert!(world.pending().await.is_empty());
    answering.kill();
    assert_eq!(world.count(&jobs, JobState::Failed).await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_stops_everything_everywhere_at_once() {
    let world = World::new().await;
    let soon = ALL.replace("cooldown: 1h", "cooldown: 1s");
    let (one, two) = (world.keeper(resume(&soon)).await, world.keeper(resume(&soon)).await);
    one.ready(false).await;
    two.ready(false).await;
    let (actor, reason) = operator();
    let jobs = world.failed(100).await;
    one.sees(JobState::Failed, 100).await;
    two.sees(JobState::Failed, 100).await;
    assert_eq!(one.outcome(failed_jobs("01")).await, "accepted");
    eventually(LIMIT, "it has begun", async || world.count(&jobs[..20], JobState::Failed).await < 20).await;
    changed(async || two.alerts.pause(&actor, &reason, Timestamp::now()).await).await;
    // Once the znode exists, no transaction succeeds.
    let left = world.count(&jobs, JobState::Failed).await;
    assert!(left > 0, "it was paused in the middle");
    for keeper in [&one, &two] {
        assert_eq!(keeper.outcome(failed_jobs("02")).await, "paused");
        eventually(LIMIT, "the pause is exported", async || {
            keeper.series("queuekeeper_alert_actions_paused") == Some(1.0)
        })
        .await;
    }
    assert_eq!(world.count(&jobs, JobState::Failed).await, left, "nothing since");
    // A decision whose alert is resolved in the meantime is not continued.
    let mut resolved = failed_jobs("01");
    resolved["status"] = "resolved".into();
    assert_eq!(two.outcome(resolved).await, "resolved");
    changed(async || one.alerts.unpause(&actor, &reason, Timestamp::now()).await).await;
    one.settled(&world).await;
    assert_eq!(world.count(&jobs, JobState::Failed).await, left, "nor when it is unpaused");
    eventually(LIMIT, "it is acted upon anew", async || {
        let received = two.receive(&[failed_jobs("03")]).await;
        received.is_ok_and(|received| received.decisions[0].outcome == "accepted")
    })
    .await;
    one.settled(&world).await;
    assert_eq!(world.count(&jobs, JobState::Failed).await, 0);
    assert_eq!(world.resumed().await, vec![1; 100]);
    one.end().await;
    two.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_repeats_nothing_and_a_decision_that_cannot_be_recorded_is_retried() {
    let world = World::new().await;
    let port = shared().await.connect_string().rsplit_once(':').unwrap().1.parse().unwrap();
    let proxy = Proxy::start(port).await;
    let address = format!("{}{}", proxy.connect_string(), world.chroot);
    let keeper = Keeper::start(&address, resume(ALL), Duration::from_secs(30)).await;
    keeper.ready(true).await;
    let jobs = world.failed(100).await;
    keeper.sees(JobState::Failed, 100).await;
    assert_eq!(keeper.outcome(failed_jobs("01")).await, "accepted");
    // Cut in the middle, repeatedly, and so late that the last write of all may be cut off from its answer.
    for left in [95, 65, 35, 1] {
        eventually(LIMIT, "it continues", async || world.count(&jobs, JobState::Failed).await < left).await;
        proxy.cut(Newcomers::Close);
        eventually(LIMIT, "the loss is seen", async || !keeper.store.freshness().is_synced()).await;
        let refused = keeper.receive(&[failed_jobs("02")]).await.unwrap_err();
        assert!(matches!(refused, NotReceived::NotSynced(_)), "{refused:?}");
        proxy.restore();
    }
    keeper.settled(&world).await;
    assert_eq!(world.resumed().await, vec![1; 100]);
    keeper.counts("executed", 1).await;
    assert!(keeper.counted("not_synced") >= 4);
    keeper.end().await;
}

/// When a read that failed is repeated, with some time for it to begin.
const NEXT_READ: Duration = Duration::from_millis(1_500);

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_stopped_does_not_wait_for_a_zookeeper_that_does_not_answer() {
    let world = World::new().await;
    let proxy = Proxy::start(shared().await.port()).await;
    let address = format!("{}{}", proxy.connect_string(), world.chroot);
    let keeper = Keeper::start(&address, resume(ALL), Duration::from_mins(1)).await;
    keeper.ready(true).await;
    proxy.stall(Direction::Both);
    let is_unread = async || keeper.alerts.overview(Timestamp::now()).read.is_none();
    eventually(LIMIT, "a read of its own znodes has had its time", is_unread).await;
    // The next one has begun by then, and would have five seconds.
    tokio::time::sleep(NEXT_READ).await;
    let (mut ended, mut steps) = (std::pin::pin!(keeper.end()), 0);
    while tokio::time::timeout(Duration::from_millis(100), &mut ended).await.is_err() {
        steps += 1;
        assert!(steps < 20, "it takes more than {steps} tenths of a second");
    }
}

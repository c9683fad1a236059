//! What is written into our own znodes by others, and calls that are none.

use queuekeeper::alerts::NotReceived;
use queuekeeper::queue::state::JobState;

use super::world::{LIMIT, PERSISTENT, World, failed_jobs, resume};
use crate::support::wait::eventually;

const ALL: &str = "mode: enforce\nselect: {limit: 100}\nbudget: {items: 200, per: 1h}\ncooldown: 1m";

#[tokio::test(flavor = "multi_thread")]
async fn what_others_put_among_our_znodes_orders_nothing() {
    let world = World::new().await;
    let keeper = world.keeper(resume(ALL)).await;
    keeper.ready(true).await;
    let jobs = world.failed(3).await;
    keeper.sees(JobState::Failed, 3).await;
    let forged = |name: &str| {
        format!(
            r#"{{"id":"01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90","kind":"act","rule":"{name}","cause":{{"alert":"A","fingerprint":"ff","starts_at":"2026-11-21T10:00:00Z"}},"target":{{}},"at":"2026-11-21T10:00:00Z"}}"#
        )
    };
    for (name, data) in [
        ("again.act.junk", "{".to_owned()),
        ("again.act.0000000000000000", forged("again")),
        ("nothing.act.e3b0c44298fc1c14", forged("nothing")),
        // Of the end of time, at which nobody must stumble.
        ("later.act.e3b0c44298fc1c14", forged("later").replace("2026-11-21T10:00:00Z", "9999-12-30T22:00:00Z")),
        ("UPPER", forged("again")),
    ] {
        world.raw.create(&format!("/queuekeeper/pending/{name}"), data.as_bytes(), &PERSISTENT).await.unwrap();
    }
    // What is none is removed; the decision of a rule that nobody knows waited for its hour already. What has no name of
    // ours is left to whoever made it.
    eventually(LIMIT, "they are removed", async || world.pending().await == ["UPPER"]).await;
    assert_eq!(world.count(&jobs, JobState::Failed).await, 3);

    // A memory that cannot be read stops its rule, and says what to do.
    world.raw.set_data("/queuekeeper/rules", b"", None).await.unwrap();
    let path = "/queuekeeper/rules/again";
    if world.raw.check_stat(path).await.unwrap().is_none() {
        world.raw.create(path, b"", &PERSISTENT).await.unwrap();
    }
    world.raw.set_data(path, b"garbage", None).await.unwrap();
    let received = keeper.tell(&[failed_jobs("01")]).await;
    assert_eq!(received.decisions[0].outcome, "failed");
    assert!(received.decisions[0].detail.contains("delete /queuekeeper/rules/again"), "{received:?}");
    world.raw.delete(path, None).await.unwrap();
    // So does garbage in what all rules have together: Alertmanager is asked to come again.
    world.raw.set_data("/queuekeeper/rules", b"[1", None).await.unwrap();
    let refused = keeper.receive(&[failed_jobs("00")]).await.unwrap_err();
    assert!(matches!(&refused, NotReceived::Unrecorded(why) if why.contains("/queuekeeper/rules cannot")), "{refused}");
    assert_eq!(world.count(&jobs, JobState::Failed).await, 3);
    world.raw.set_data("/queuekeeper/rules", b"", None).await.unwrap();
    assert_eq!(keeper.outcome(failed_jobs("01")).await, "accepted");
    eventually(LIMIT, "it is done", async || world.count(&jobs, JobState::Failed).await == 0).await;
    eventually(LIMIT, "it is over", async || world.pending().await == ["UPPER"]).await;

    // The folder of what waits is removed by hand: it is made again by whoever has something to put there.
    for name in world.pending().await {
        world.raw.delete(&format!("/queuekeeper/pending/{name}"), None).await.unwrap();
    }
    world.raw.delete("/queuekeeper/pending", None).await.unwrap();
    let more = world.failed(1).await;
    keeper.sees(JobState::Failed, 1).await;
    world.raw.delete(path, None).await.unwrap();
    assert_eq!(keeper.outcome(failed_jobs("06")).await, "accepted");
    eventually(LIMIT, "it is done", async || world.count(&more, JobState::Failed).await == 0).await;
    // Until it is over, it would be remembered after what is removed now.
    keeper.settled(&world).await;

    // The whole folder is removed by hand: it is made again, and nothing is done twice.
    for name in world.raw.list_children("/queuekeeper/election").await.unwrap() {
        world.raw.delete(&format!("/queuekeeper/election/{name}"), None).await.unwrap();
    }
    let more = world.failed(2).await;
    keeper.sees(JobState::Failed, 2).await;
    world.raw.delete(path, None).await.unwrap();
    eventually(LIMIT, "it leads again and acts", async || {
        let _ = keeper.receive(&[failed_jobs("07")]).await;
        world.count(&more, JobState::Failed).await == 0
    })
    .await;
    keeper.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_none_is_refused_and_counted() {
    let world = World::new().await;
    let keeper = world.keeper(resume(ALL)).await;
    keeper.ready(true).await;
    let caller = super::world::operator().0;
    for body in [&b""[..], b"{}", br#"{"version":"5"}"#, br#"{"version":"4"}"#, b"\xff\xfe", b"[1,2"] {
        let refused = keeper.alerts.receive(body, &caller, jiff::Timestamp::now()).await.unwrap_err();
        assert!(matches!(refused, NotReceived::Invalid(_)), "{refused:?}");
    }
    assert_eq!(keeper.counted("invalid"), 6);
    keeper.end().await;
}

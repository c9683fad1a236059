//! What a daemon gives back unchanged, with a note of until when it waits.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use jiff::{SignedDuration, Timestamp};
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::record::Retry;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{ConflictKind, Error, LockedJob, Unlocked};

use queuekeeper_testkit::queue::{World, base, borrowed, job, now};

fn after(minutes: i64) -> Timestamp {
    now() + SignedDuration::from_mins(minutes)
}

fn retry(attempts: u32, not_before: Timestamp) -> Retry {
    let why = "the store does not answer".to_owned();
    // The version is that of the status, whatever is given here.
    Retry { version: 77, since: now(), attempts, not_before, waits_since: None, why }
}

/// The job, if a daemon may have it then; else until when it waits.
async fn take(world: &World, at: Timestamp) -> Result<LockedJob, Option<Timestamp>> {
    let (taken, poll) = world.queue.acquire_job(JobState::Pending, at).await.unwrap();
    assert_eq!(poll.skipped, []);
    taken.ok_or_else(|| poll.delayed.get(&JobId::new(1)).map(|wait| wait.not_before))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_given_back_for_later_waits_until_then_or_until_its_status_is_changed() {
    let world = World::new(&borrowed(&[base(), job(1, "Pending")].concat())).await;
    let status = "/jobs/jid0000000001/status";
    let (before, _) = world.raw.get_data(status).await.unwrap();
    for (attempts, begun, until) in [(1, 0, 5), (2, 5, 9)] {
        let locked = take(&world, after(begun)).await.unwrap();
        world.queue.delay_job(&locked, &retry(attempts, after(until))).await.unwrap();
        assert!(!world.exists("/jobs/jid0000000001/lock").await);
        let (data, stat) = world.raw.get_data(status).await.unwrap();
        assert_eq!((&data, stat.version), (&before, 0), "it is unchanged");
        let (note, _) = world.raw.get_data("/queuekeeper/retry/jid0000000001").await.unwrap();
        assert_eq!(Retry::decode(&note), Some(Retry { version: 0, ..retry(attempts, after(until)) }));
        assert_eq!(take(&world, after(until - 1)).await.unwrap_err(), Some(after(until)));
    }
    let locked = take(&world, after(9)).await.unwrap();
    assert_eq!(locked.retry.map(|retry| retry.attempts), Some(2), "the next daemon knows of the attempts before");
    world.raw.delete("/jobs/jid0000000001/lock", None).await.unwrap();
    world.raw.delete("/queuekeeper/held/jid0000000001", None).await.unwrap();

    world.raw.set_data(status, &before, None).await.unwrap();
    let locked = take(&world, now()).await.unwrap();
    assert_eq!(locked.retry, None);
    // A note on another status than it was decided on would keep the job from nobody.
    world.raw.set_data(status, &before, None).await.unwrap();
    let error = world.queue.delay_job(&locked, &retry(3, after(20))).await.unwrap_err();
    let Error::Conflict(conflict) = &error else { panic!("{error}") };
    assert!(matches!(conflict.kind, ConflictKind::Changed { .. }), "{error}");
    assert_eq!(world.queue.unlock_job(&locked).await.unwrap(), Unlocked::Released);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_given_back_has_a_note_of_why_and_may_be_taken_again_at_once() {
    let nodes = [("", ""), ("/token", "{}"), ("/status", r#"{"status":"Pending"}"#)];
    let nodes = nodes.map(|(node, data)| (format!("/access/small/qid0000000003{node}"), data.to_owned()));
    let world = World::new(&borrowed(&[base(), nodes.to_vec()].concat())).await;
    for attempts in [1, 2] {
        let locked = world.queue.acquire_request(AccessQueue::Small).await.unwrap().0.unwrap();
        world.queue.delay_request(&locked, &retry(attempts, after(5))).await.unwrap();
        assert!(!world.exists("/access/small/qid0000000003/lock").await);
        assert_eq!(world.stat("/access/small/qid0000000003/status").await.version, 0);
        let [name] = &world.raw.list_children("/queuekeeper/retry").await.unwrap()[..] else { panic!("one note") };
        let (note, _) = world.raw.get_data(&format!("/queuekeeper/retry/{name}")).await.unwrap();
        assert_eq!(Retry::decode(&note), Some(Retry { version: 0, ..retry(attempts, after(5)) }), "{name}");
    }
}

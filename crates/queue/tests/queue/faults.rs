//! Faulty items at the head of a queue starve nothing and are reported; locks of others stay.

use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::{AccessQueue, LockFolder, Path};
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Due, Error, JobChange, SkipReason, Unlocked};

use queuekeeper_testkit::queue::{EPHEMERAL, World, base, borrowed, job, now};

#[tokio::test(flavor = "multi_thread")]
async fn faulty_entries_at_the_head_are_passed_over_and_reported() {
    let mut nodes = base();
    for number in [7, 8] {
        nodes.extend(job(number, "Pending"));
    }
    nodes.extend(job(3, "Storing"));
    for (number, node, data) in [
        (4, "status", Some(r#"{"status":"pending","retry_count":0}"#)),
        (5, "space_needed", None),
        (6, "metadata", Some("[]")),
    ] {
        let path = format!("/jobs/jid{number:010}/{node}");
        nodes.extend(job(number, "Pending"));
        nodes.retain(|(other, _)| *other != path);
        nodes.extend(data.map(|data| (path, data.to_owned())));
    }
    let mut gone = job(9, "Pending");
    gone[1].1 = "bid0000000099".to_owned();
    nodes.extend(gone);
    nodes.extend(job(10, "Pending").into_iter().take(1));
    for entry in ["00-jid0000000002", "00-jid0000000003", "01-jid0000000010", "100-jid0000000007", "5-nonsense"] {
        nodes.push((format!("/jobs/states/pending/{entry}"), String::new()));
    }
    let world = World::new(&borrowed(&nodes)).await;
    world.raw.create("/jobs/jid0000000007/lock", b"", &EPHEMERAL).await.unwrap();
    let mut poll = world.queue.poll_jobs(JobState::Pending).await.unwrap();
    let first = poll.next(now()).await.unwrap().unwrap();
    assert_eq!(first.id(), JobId::new(8), "the job behind all of them");
    assert!(poll.next(now()).await.unwrap().is_none());
    let reported: Vec<_> = poll
        .skipped
        .iter()
        .map(|passed| {
            let path = passed.path.to_string();
            let name = path.rsplit_once('/').unwrap().1.to_owned();
            let reason = match &passed.reason {
                SkipReason::UnreadableEntry => "unreadable".to_owned(),
                SkipReason::StrayEntry => "stray".to_owned(),
                SkipReason::OrphanEntry(state) => format!("orphan of {state}"),
                SkipReason::Unloadable(error) => error.to_string(),
                SkipReason::Unfinished => "unfinished".to_owned(),
                SkipReason::Contradiction(what) => what.clone(),
                SkipReason::StillHeld(conflict) => conflict.to_string(),
                SkipReason::LockBroken => "lock broken".to_owned(),
            };
            (name, reason)
        })
        .collect();
    let expected = [
        ("100-jid0000000007", "unreadable"),
        ("5-nonsense", "unreadable"),
        ("00-jid0000000002", "stray"),
        ("00-jid0000000003", "orphan of Storing"),
        ("01-jid0000000010", "unfinished"),
        ("05-jid0000000004", "/jobs/jid0000000004/status status is not the name of a state as the daemons write it"),
        ("05-jid0000000005", "/jobs/jid0000000005/space_needed does not exist"),
        ("05-jid0000000006", "/jobs/jid0000000006/metadata is JSON, but not an object"),
        ("05-jid0000000009", "/batches/bid0000000099/states does not exist"),
    ];
    assert_eq!(reported, expected.map(|(name, reason)| (name.to_owned(), reason.to_owned())));
    // Nothing that was passed over was locked.
    assert!(!world.exists("/jobs/jid0000000009/lock").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_batches_and_requests_at_the_head_are_passed_over_and_reported() {
    let mut nodes = base();
    let reporting = r#"{"status":"Reporting","message":""}"#;
    let pending = r#"{"status":"Pending","message":""}"#;
    for (path, data) in [
        ("/batches/bid0000000001", ""),
        ("/batches/bid0000000002", ""),
        ("/batches/bid0000000002/submission", "{}"),
        ("/batches/bid0000000002/status", reporting),
        ("/batches/bid0000000003", ""),
        ("/batches/bid0000000003/submission", "not json"),
        ("/batches/bid0000000003/status", pending),
        ("/batches/bid0000000004", ""),
        ("/batches/bid0000000004/submission", "{}"),
        ("/batches/bid0000000004/status", pending),
        ("/access/small/qid0000000000", ""),
        ("/access/small/qid0000000001", ""),
        ("/access/small/qid0000000001/status", pending),
        ("/access/small/qid0000000002", ""),
        ("/access/small/qid0000000002/token", "{}"),
        ("/access/small/qid0000000002/status", pending),
    ] {
        nodes.push((path.to_owned(), data.to_owned()));
    }
    let world = World::new(&borrowed(&nodes)).await;
    let (batch, poll) = world.queue.acquire_batch(Due::Jobs, now()).await.unwrap();
    assert_eq!(batch.unwrap().batch.id.number(), 4);
    let reported: Vec<_> = poll.skipped.iter().map(|passed| passed.path.to_string()).collect();
    assert_eq!(reported, ["/batches/bid0000000001", "/batches/bid0000000002", "/batches/bid0000000003"]);
    let (request, poll) = world.queue.acquire_request(AccessQueue::Small).await.unwrap();
    assert_eq!(request.unwrap().request.id.number(), 2);
    assert_eq!(poll.skipped.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_anothers_by_now_is_neither_relied_on_nor_removed() {
    let mut nodes = base();
    nodes.extend(job(1, "Pending"));
    let world = World::new(&borrowed(&nodes)).await;
    let (mine, _) = world.queue.acquire_job(JobState::Pending, now()).await.unwrap();
    let mine = mine.unwrap();
    let lock = "/jobs/jid0000000001/lock";
    world.raw.delete(lock, None).await.unwrap();
    world.raw.create(lock, b"", &EPHEMERAL).await.unwrap();
    let before = world.tree().await;
    let error = world.queue.finish_job(&mine, &JobChange::success(), now()).await.unwrap_err();
    assert!(error.to_string().contains("has another holder"), "{error}");
    assert!(!error.may_be_retried());
    assert_eq!(world.queue.unlock_job(&mine).await.unwrap(), Unlocked::AlreadyGone);
    assert_eq!(world.queue.unlock(&mine.lock).await.unwrap(), Unlocked::AlreadyGone);
    assert_eq!(world.tree().await, before);
    world.raw.delete(lock, None).await.unwrap();
    let error = world.queue.finish_job(&mine, &JobChange::success(), now()).await.unwrap_err();
    assert!(error.to_string().ends_with("is no longer held"), "{error}");

    let ark = "ark:/99999/fk4abc";
    let object = world.queue.lock_object(LockFolder::Storage, ark).await.unwrap();
    assert_eq!(object.path, Path::NamedLock(LockFolder::Storage, "ark_99999_fk4abc".into()));
    let other = world.another().await;
    let error = other.lock_object(LockFolder::Storage, ark).await.unwrap_err();
    assert!(matches!(&error, Error::Conflict(_)) && error.to_string().contains(&world.queue.session().to_string()));
    assert_eq!(world.queue.unlock(&object).await.unwrap(), Unlocked::Released);
    let theirs = other.lock_object(LockFolder::Storage, ark).await.unwrap();
    assert_eq!(world.queue.unlock(&object).await.unwrap(), Unlocked::AlreadyGone);
    assert_eq!(other.find_lock(&theirs.path).await.unwrap(), Some(theirs));
}

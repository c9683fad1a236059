//! Locks and the windows around them: connections lost, answers held back, and locks broken and taken by another at
//! each of them. What is ours stays ours or is given up, and what is another's is neither relied on nor removed.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]
use futures::StreamExt as _;
use queuekeeper_queue::path::LockFolder;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{ConflictKind, Error, JobChange, Queue, SkipReason, Unlocked};

use queuekeeper_testkit::queue::{borrowed, job, now};
use queuekeeper_testkit::wait::eventually_some;
use queuekeeper_testkit::wire::{Cut, Point};

mod moved_on;
mod setting;

use setting::{ITEMS, LIMIT, LockedItem, Setting};

/// Tries it again until there is a connection.
async fn connected<T>(mut work: impl AsyncFnMut() -> Result<T, Error>) -> T {
    eventually_some(LIMIT, "there is a connection again", async || match work().await {
        Ok(came) => Some(came),
        Err(error) if error.is_connection() => None,
        Err(error) => panic!("{error}"),
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_another_made_before_the_answer_to_our_own_came_is_not_taken_for_ours() {
    for kind in ITEMS {
        let setting = Setting::new().await;
        setting.wire.hold(1);
        let take = tokio::spawn({
            let queue = setting.queue.clone();
            async move { kind.take(&queue).await }
        });
        setting.holding().await;
        setting.retake(kind).await;
        setting.wire.restore();
        let mut handle = take.await.unwrap().unwrap().unwrap();
        let before = setting.world.tree().await;
        for outcome in [handle.step(&setting.queue).await, handle.finish(&setting.queue).await] {
            let error = outcome.unwrap_err();
            let Error::Conflict(conflict) = &error else { panic!("{kind:?}: {error}") };
            assert!(matches!(conflict.kind, ConflictKind::LockLost { now: Some(_) }), "{kind:?}: {error}");
        }
        assert_eq!(handle.unlock(&setting.queue).await, Unlocked::AlreadyGone, "{kind:?}");
        assert_eq!(setting.world.tree().await, before, "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acquired_as_the_connection_was_lost_is_handed_out_by_the_same_session_once() {
    let trials = [LockedItem::Job, LockedItem::Batch, LockedItem::Request, LockedItem::Object]
        .into_iter()
        .flat_map(|kind| [Point::Unsent(1), Point::Unanswered(1), Point::Answered(1)].map(|point| (kind, point)));
    futures::future::join_all(trials.map(async |(kind, point)| {
        let setting = Setting::new().await;
        let first = setting.cut(point, async |queue| kind.take(queue).await).await;
        let handle = match first {
            Ok(handle) => handle,
            Err(error) => {
                assert!(error.is_connection() && error.may_be_retried(), "{kind:?} {point:?}: {error}");
                connected(async || kind.take(&setting.queue).await).await
            }
        };
        let handle = handle.unwrap_or_else(|| panic!("{kind:?} {point:?}: no one gets it any more"));
        let again = connected(async || kind.take(&setting.queue).await).await;
        assert!(again.is_none(), "{kind:?} {point:?}: {again:?}");
        handle.finish(&setting.queue).await.unwrap();
        assert!(!setting.world.exists(&kind.lock()).await, "{kind:?} {point:?}");
        assert!(setting.held().await.is_empty(), "{kind:?} {point:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acquired_as_its_caller_gave_up_waiting_is_handed_out_to_the_next() {
    for kind in [LockedItem::Job, LockedItem::Batch, LockedItem::Request, LockedItem::Object] {
        let setting = Setting::new().await;
        setting.wire.hold(1);
        let take = tokio::spawn({
            let queue = setting.queue.clone();
            async move { kind.take(&queue).await }
        });
        setting.holding().await;
        take.abort();
        assert!(take.await.unwrap_err().is_cancelled());
        setting.wire.restore();
        let handle = kind.take(&setting.queue).await.unwrap().unwrap_or_else(|| panic!("{kind:?}: no one gets it"));
        handle.finish(&setting.queue).await.unwrap();
        assert!(!setting.world.exists(&kind.lock()).await && setting.held().await.is_empty(), "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_ours_is_released_whatever_was_changed_under_it() {
    for kind in ITEMS {
        let setting = Setting::new().await;
        let handle = kind.take(&setting.queue).await.unwrap().unwrap();
        let status = format!("{}/status", kind.item());
        let (data, _) = setting.world.raw.get_data(&status).await.unwrap();
        setting.world.raw.set_data(&status, &data, None).await.unwrap();
        let error = handle.finish(&setting.queue).await.unwrap_err();
        let Error::Conflict(conflict) = &error else { panic!("{kind:?}: {error}") };
        assert!(matches!(conflict.kind, ConflictKind::Changed { .. }), "{kind:?}: {error}");
        assert_eq!(handle.unlock(&setting.queue).await, Unlocked::Released, "{kind:?}");
        assert!(!setting.world.exists(&kind.lock()).await && setting.held().await.is_empty(), "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_under_a_lock_says_what_happened_wherever_the_connection_is_lost() {
    let points: [fn(usize) -> Point; 3] = [Point::Unsent, Point::Unanswered, Point::Answered];
    let trials = ITEMS.into_iter().flat_map(|kind| points.map(|point| (kind, point)));
    futures::future::join_all(trials.map(async |(kind, cut_at)| {
        let setting = Setting::new().await;
        let mut handle = kind.take(&setting.queue).await.unwrap().unwrap();
        let version = setting.status_version(kind).await;
        for steps in 1..=2 {
            let is_step = steps == 1;
            let point = cut_at(1);
            let mut change =
                async |queue: &Queue| if is_step { handle.step(queue).await } else { handle.finish(queue).await };
            match setting.cut(point, &mut change).await {
                Ok(()) => assert!(!matches!(point, Point::Unsent(_)), "{kind:?} {steps}"),
                Err(error) => {
                    assert!(!matches!(point, Point::Answered(_)), "{kind:?} {steps}: {error}");
                    assert!(error.may_be_retried(), "{kind:?} {steps}: {error}");
                    eventually_some(LIMIT, "it says what happened", async || match change(&setting.queue).await {
                        Ok(()) => Some(()),
                        Err(error) if error.is_connection() => None,
                        Err(error) => panic!("{kind:?} {point:?} {steps}: {error}"),
                    })
                    .await;
                }
            }
            assert_eq!(setting.status_version(kind).await, version + steps, "{kind:?} {point:?}");
        }
        let case = format!("{kind:?} {:?}", cut_at(1));
        assert!(!setting.world.exists(&kind.lock()).await && setting.held().await.is_empty(), "{case}");
        assert_eq!(handle.unlock(&setting.queue).await, Unlocked::AlreadyGone, "{case}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_broken_and_made_again_before_the_change_or_behind_its_look_stops_it() {
    for kind in ITEMS {
        let setting = Setting::of_requests().await;
        let handle = kind.take(&setting.queue).await.unwrap().unwrap();
        if kind.looks() == 0 {
            setting.retake(kind).await;
        }
        setting.wire.hold(1);
        let finish = tokio::spawn({
            let queue = setting.queue.clone();
            async move { (handle.finish(&queue).await, handle) }
        });
        setting.holding().await;
        if kind.looks() > 0 {
            setting.retake(kind).await;
        }
        let before = setting.world.tree().await;
        setting.wire.restore();
        let (finished, handle) = finish.await.unwrap();
        let error = finished.unwrap_err();
        let Error::Conflict(conflict) = &error else { panic!("{kind:?}: {error}") };
        assert!(matches!(conflict.kind, ConflictKind::LockLost { now: Some(_) }), "{kind:?}: {error}");
        assert_eq!(handle.unlock(&setting.queue).await, Unlocked::AlreadyGone, "{kind:?}");
        assert_eq!(setting.world.tree().await, before, "{kind:?}: the other's lock is still there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_whose_lock_was_broken_is_kept_from_our_other_sessions_until_it_is_given_up() {
    for kind in ITEMS {
        let setting = Setting::new().await;
        let handle = kind.take(&setting.queue).await.unwrap().unwrap();
        let mark = match kind {
            LockedItem::Job => "jid0000000001",
            LockedItem::Batch => "bid0000000001",
            LockedItem::Request => "small-qid0000000000",
            LockedItem::Object => unreachable!("none of the items"),
        };
        assert_eq!(setting.held().await, [mark], "{kind:?}");
        assert_eq!(setting.world.stat(&kind.lock()).await.version, 1, "{kind:?}: no lock from Java has that");
        let plan = setting.world.queue.plan_break_lock(handle.lock()).await.unwrap();
        setting.world.queue.commit(&plan).await.unwrap();
        let other = setting.world.another().await;
        for queue in [&other, &setting.queue] {
            // Of a batch that is acquired already the state says so.
            assert!(kind.take(queue).await.unwrap().is_none(), "{kind:?}");
        }
        if kind == LockedItem::Job {
            let (_, poll) = other.acquire_job(JobState::Pending, now()).await.unwrap();
            let SkipReason::StillHeld(conflict) = &poll.skipped[0].reason else { panic!("{:?}", poll.skipped) };
            let text = conflict.to_string();
            let held = format!("/queuekeeper/held/{mark} is held by session {}", setting.queue.session());
            assert!(text.starts_with(&held), "{text}");
        }
        let error = handle.finish(&setting.queue).await.unwrap_err();
        let Error::Conflict(conflict) = &error else { panic!("{kind:?}: {error}") };
        assert_eq!(conflict.kind, ConflictKind::LockLost { now: None }, "{kind:?}");
        assert_eq!(handle.unlock(&setting.queue).await, Unlocked::AlreadyGone, "{kind:?}");
        assert!(setting.held().await.is_empty(), "{kind:?}");
        if kind == LockedItem::Batch {
            continue;
        }
        let taken = kind.take(&other).await.unwrap().unwrap();
        // Our mark removed by hand costs the other sessions' being kept out, and nothing else.
        setting.world.raw.delete(&format!("/queuekeeper/held/{mark}"), None).await.unwrap();
        taken.finish(&other).await.unwrap();
        assert!(!setting.world.exists(&kind.lock()).await, "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_made_in_place_of_the_one_to_be_released_or_broken_stays() {
    let setting = Setting::of_requests().await;
    let (ours, others) = (&setting.queue, &setting.world.queue);
    let mine = ours.lock_object(LockFolder::Storage, "ark:/1/2").await.unwrap();
    assert_eq!(mine.session, Some(ours.session()));
    setting.wire.hold(1);
    let release = tokio::spawn({
        let (queue, lock) = (ours.clone(), mine.clone());
        async move { queue.unlock(&lock).await }
    });
    setting.holding().await;
    setting.retake(LockedItem::Object).await;
    setting.wire.restore();
    assert_eq!(release.await.unwrap().unwrap(), Unlocked::AlreadyGone);
    let theirs = others.find_lock(&mine.path).await.unwrap().unwrap();
    assert_ne!(theirs.session, mine.session);
    // An operator breaks theirs, and we take the object before that arrives.
    let plan = others.plan_break_lock(&theirs).await.unwrap();
    setting.world.raw.delete(&LockedItem::Object.lock(), None).await.unwrap();
    let mine = ours.lock_object(LockFolder::Storage, "ark:/1/2").await.unwrap();
    let error = others.commit(&plan).await.unwrap_err();
    assert!(error.to_string().contains("has another holder"), "{error}");
    assert_eq!(others.find_lock(&mine.path).await.unwrap(), Some(mine));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_answer_was_lost_does_not_take_the_lock_of_another_of_its_session_for_its_own() {
    let setting = Setting::new().await;
    setting.world.make(&borrowed(&job(2, "Pending"))).await;
    let mut slow = setting.queue.poll_jobs(JobState::Pending).await.unwrap();
    let first = slow.next(now()).await.unwrap().unwrap();
    // The slow worker has read the second job, too, when another takes it.
    let (second, _) = setting.queue.acquire_job(JobState::Pending, now()).await.unwrap();
    let second = second.unwrap();
    assert_eq!((first.id().number(), second.id().number()), (1, 2));
    setting.wire.arm(Some((Point::Unanswered(1), Cut::Short)));
    let third = slow.next(now()).await.unwrap();
    assert!(setting.wire.was_cut() && third.is_none(), "{third:?} is held twice");
    for job in [first, second] {
        setting.queue.finish_job(&job, &JobChange::success(), now()).await.unwrap();
    }
}

/// How many cuts are tried at once.
const AT_ONCE: usize = 32;

/// Takes an item, releases it where it can be taken again, takes it, changes it, and finishes it, trying again
/// whatever the connection failed of.
async fn life(setting: &Setting, kind: LockedItem) {
    let take = async || {
        let taken = connected(async || kind.take(&setting.queue).await).await;
        taken.unwrap_or_else(|| panic!("{kind:?}: no one gets it"))
    };
    if kind != LockedItem::Batch {
        let handle = take().await;
        let unlocked = connected(async || handle.try_unlock(&setting.queue).await).await;
        assert_eq!(unlocked, Unlocked::Released, "{kind:?}");
    }
    let mut handle = take().await;
    connected(async || handle.step(&setting.queue).await).await;
    connected(async || handle.finish(&setting.queue).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_goes_its_way_exactly_once_wherever_the_connection_is_cut() {
    let mut trials = Vec::new();
    for kind in ITEMS {
        let setting = Setting::of_requests().await;
        setting.wire.arm(None);
        life(&setting, kind).await;
        let version = setting.status_version(kind).await;
        let requests = 1..=setting.wire.requests();
        let points = requests.flat_map(|at| [Point::Unsent(at), Point::Unanswered(at), Point::Answered(at)]);
        trials.extend(points.map(|point| (kind, point, version)));
    }
    let trials = futures::stream::iter(trials).map(async |(kind, point, version)| {
        let setting = Setting::of_requests().await;
        setting.wire.arm(Some((point, Cut::Short)));
        life(&setting, kind).await;
        // The run that counted them may have read a note once more, as its look at the item took long.
        let (Point::Unsent(at) | Point::Unanswered(at) | Point::Answered(at)) = point;
        assert!(setting.wire.was_cut() || setting.wire.requests() < at, "{kind:?} {point:?}");
        assert_eq!(setting.status_version(kind).await, version, "{kind:?} {point:?}");
        assert!(!setting.world.exists(&kind.lock()).await && setting.held().await.is_empty(), "{kind:?} {point:?}");
    });
    trials.buffer_unordered(AT_ONCE).collect::<()>().await;
}

//! Calls whose answers were lost, and what others did before they could be repeated. What was done is reported as done;
//! what was not is not.

use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::{AccessState, JobState};
use queuekeeper_queue::{BatchReport, ConflictKind, Due, Error, ItemChange, Queue, SkipReason, Unlocked};

use super::connected;
use super::setting::{Handle, ITEMS, LIMIT, LockedItem, Setting};
use queuekeeper_testkit::queue::{EPHEMERAL, borrowed, job, now};
use queuekeeper_testkit::wait::eventually;
use queuekeeper_testkit::wire::{Cut, Point};

/// What the next daemon does with an item before we can read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It takes the item and changes its state twice.
    Works,
    /// It is done with the item, and a client purges it.
    Purges,
}

/// When others do so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum During {
    /// Before the first call has given up.
    TheCall,
    /// Before the call is repeated.
    ThePause,
}

impl Setting {
    async fn next(&self, kind: LockedItem, next: Next) {
        let (raw, status) = (&self.world.raw, format!("{}/status", kind.item()));
        match next {
            Next::Works => {
                raw.create(&kind.lock(), b"", &EPHEMERAL).await.unwrap();
                let (data, _) = raw.get_data(&status).await.unwrap();
                for _ in 0..2 {
                    raw.set_data(&status, &data, None).await.unwrap();
                }
            }
            Next::Purges => raw.delete(&status, None).await.unwrap(),
        }
    }

    /// Finishes an item while the connection is cut there, and others go on with it; repeated until it says what became
    /// of it.
    async fn finish_while(
        &self,
        handle: &Handle,
        (point, during): (Point, During),
        others: impl AsyncFnOnce(),
    ) -> Result<(), Error> {
        let finish = async |queue: &Queue| handle.finish(queue).await;
        let first = match during {
            During::ThePause => {
                let first = self.cut(point, finish).await;
                others().await;
                first
            }
            During::TheCall => {
                self.wire.arm(Some((point, Cut::Long)));
                let meanwhile = async {
                    eventually(LIMIT, "the connection is cut", async || self.wire.was_cut()).await;
                    others().await;
                    self.wire.restore();
                };
                futures::join!(finish(&self.queue), meanwhile).0
            }
        };
        match first {
            Err(error) if error.is_connection() => {
                connected(async || match finish(&self.queue).await {
                    Err(error) if error.is_connection() => Err(error),
                    settled => Ok(settled),
                })
                .await
            }
            settled => settled,
        }
    }
}

const WHEN: [During; 2] = [During::TheCall, During::ThePause];

#[tokio::test(flavor = "multi_thread")]
async fn what_was_finished_is_said_to_be_also_where_the_next_daemon_has_moved_on() {
    let nexts = [Next::Works, Next::Purges];
    let trials =
        ITEMS.into_iter().flat_map(|kind| nexts.into_iter().flat_map(move |next| WHEN.map(|when| (kind, next, when))));
    futures::future::join_all(trials.map(async |(kind, next, when)| {
        let trial = format!("{kind:?} {next:?} {when:?}");
        let setting = Setting::new().await;
        let handle = kind.take(&setting.queue).await.unwrap().unwrap();
        let others = async || setting.next(kind, next).await;
        let finished = setting.finish_while(&handle, (Point::Unanswered(1), when), others).await;
        finished.unwrap_or_else(|error| panic!("{trial}: {error}"));
        assert_eq!(handle.unlock(&setting.queue).await, Unlocked::AlreadyGone, "{trial}");
        assert_eq!(setting.world.exists(&kind.lock()).await, next == Next::Works, "{trial}: it is another's");
    }))
    .await;
}

/// Why what was not done could be taken for done, when the next daemon has moved on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    /// Our lock was broken.
    Broken,
    /// Our lock was broken, and our mark was removed before.
    Unmarked,
    /// We gave the item up ourselves.
    GivenUp,
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_finished_is_not_said_to_be_where_another_has_moved_on() {
    let doubts = [Doubt::Broken, Doubt::Unmarked, Doubt::GivenUp];
    let trials = ITEMS
        .into_iter()
        .flat_map(|kind| doubts.into_iter().flat_map(move |doubt| WHEN.map(|when| (kind, doubt, when))));
    let trials = trials.filter(|(_, doubt, when)| (*doubt, *when) != (Doubt::GivenUp, During::TheCall));
    futures::future::join_all(trials.map(async |(kind, doubt, when)| {
        let trial = format!("{kind:?} {doubt:?} {when:?}");
        let setting = Setting::new().await;
        let handle = kind.take(&setting.queue).await.unwrap().unwrap();
        let raw = &setting.world.raw;
        let point = if doubt == Doubt::Unmarked {
            let mark = format!("/queuekeeper/held/{}", setting.held().await[0]);
            raw.delete(&mark, None).await.unwrap();
            // Refused once for the mark, which is read.
            Point::Unsent(2)
        } else {
            Point::Unsent(1)
        };
        let others = async || {
            if doubt == Doubt::GivenUp {
                let unlocked = connected(async || handle.try_unlock(&setting.queue).await).await;
                assert_eq!(unlocked, Unlocked::Released, "{trial}");
            } else {
                raw.delete(&kind.lock(), None).await.unwrap();
            }
            setting.next(kind, Next::Works).await;
        };
        let error = setting.finish_while(&handle, (point, when), others).await.unwrap_err();
        let is_known = matches!(error, Error::Conflict(_));
        assert!(is_known || doubt == Doubt::Unmarked && matches!(error, Error::Unknown { .. }), "{trial}: {error}");
        let error = handle.finish(&setting.queue).await.unwrap_err();
        assert!(matches!(error, Error::Conflict(_)), "{trial}: {error}");
        assert_eq!(handle.unlock(&setting.queue).await, Unlocked::AlreadyGone, "{trial}");
        assert!(setting.world.exists(&kind.lock()).await && setting.held().await.is_empty(), "{trial}");
    }))
    .await;
}

/// What is done by hand to an item before a call can be repeated that did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByHand {
    /// Lock and mark are removed, as the call would have done.
    Released,
    /// The status is written, which has the version then that the call would have given it.
    Written,
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_finished_is_not_said_to_be_where_a_hand_left_what_looks_like_it() {
    let trials = ITEMS.into_iter().flat_map(|kind| [ByHand::Released, ByHand::Written].map(|hand| (kind, hand)));
    futures::future::join_all(trials.map(async |(kind, hand)| {
        let trial = format!("{kind:?} {hand:?}");
        let setting = Setting::new().await;
        let handle = kind.take(&setting.queue).await.unwrap().unwrap();
        let (raw, status) = (&setting.world.raw, format!("{}/status", kind.item()));
        let (data, _) = raw.get_data(&status).await.unwrap();
        let first = setting.cut(Point::Unsent(1), async |queue| handle.finish(queue).await).await;
        assert!(first.is_err_and(|error| error.is_connection()), "{trial}");
        match hand {
            ByHand::Released => {
                let mark = format!("/queuekeeper/held/{}", setting.held().await[0]);
                for path in [kind.lock(), mark] {
                    raw.delete(&path, None).await.unwrap();
                }
            }
            ByHand::Written => drop(raw.set_data(&status, &data, None).await.unwrap()),
        }
        let error = connected(async || match handle.finish(&setting.queue).await {
            Err(error) if !error.is_connection() => Ok(error),
            came => came.map(|()| panic!("{trial}: it was not done")),
        });
        let error = error.await;
        let Error::Conflict(conflict) = &error else { panic!("{trial}: {error}") };
        let is_lost = matches!(conflict.kind, ConflictKind::LockLost { now: None });
        assert_eq!(is_lost, hand == ByHand::Released, "{trial}: {error}");
        assert_eq!(raw.get_data(&status).await.unwrap().0, data, "{trial}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finish_that_was_done_with_other_data_is_not_said_to_be_done() {
    let setting = Setting::new().await;
    let (queue, change) = (&setting.queue, ItemChange::success());
    let Some(Handle::Request(request)) = LockedItem::Request.take(queue).await.unwrap() else { panic!("there is one") };
    let finish =
        async |queue: &Queue, token: Option<&[u8]>| queue.finish_request(&request, &change, token, now()).await;
    let first = setting.cut(Point::Unanswered(1), async |queue| finish(queue, Some(br#"{"url":"a"}"#)).await).await;
    assert!(first.unwrap_err().is_connection());
    for token in [Some(&br#"{"url":"b"}"#[..]), None] {
        let error = connected(async || match finish(queue, token).await {
            Err(error) if !error.is_connection() => Ok(error),
            came => came.map(|changed| panic!("{token:?}: {changed:?}")),
        });
        assert!(matches!(error.await, Error::Conflict(_)), "{token:?}");
    }
    assert_eq!(finish(queue, Some(br#"{"url":"a"}"#)).await.unwrap().to, AccessState::Processing);
    assert_eq!(setting.world.json("/access/small/qid0000000000/token").await["url"], "a");

    let Some(Handle::Batch(batch)) = LockedItem::Batch.take(queue).await.unwrap() else { panic!("there is one") };
    let report = |job| BatchReport { failed: vec![JobId::new(job)], ..BatchReport::default() };
    let finish = async |queue: &Queue, job| queue.finish_report(&batch, &report(job), "", now()).await;
    let first = setting.cut(Point::Unanswered(1), async |queue| finish(queue, 1).await).await;
    assert!(first.unwrap_err().is_connection());
    let error = connected(async || match finish(queue, 2).await {
        Err(error) if !error.is_connection() => Ok(error),
        came => came.map(|changed| panic!("{changed:?}")),
    });
    assert!(matches!(error.await, Error::Conflict(_)));
    finish(queue, 1).await.unwrap();
    let written = setting.world.json("/batches/bid0000000001/status-report").await;
    assert_eq!(written["failed_jobs"], serde_json::json!(["jid0000000001"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_goes_on_past_an_item_whose_lock_was_broken_before_it_could_learn_of_it() {
    let trials = ITEMS.into_iter().flat_map(|kind| WHEN.map(|when| (kind, when)));
    futures::future::join_all(trials.map(async |(kind, when)| {
        let trial = format!("{kind:?} {when:?}");
        let setting = Setting::new().await;
        let raw = &setting.world.raw;
        let queue = match when {
            During::TheCall => setting.queue.clone(),
            During::ThePause => setting.impatient(),
        };
        setting.world.make(&borrowed(&job(2, "Pending"))).await;
        for (path, data) in [
            ("/batches/bid0000000002", ""),
            ("/batches/bid0000000002/submission", "{}"),
            ("/batches/bid0000000002/status", r#"{"status":"Pending"}"#),
            ("/access/small/qid0000000001", ""),
            ("/access/small/qid0000000001/token", "{}"),
            ("/access/small/qid0000000001/status", r#"{"status":"Pending"}"#),
        ] {
            setting.world.make(&[(path, data)]).await;
        }
        let mut jobs = queue.poll_jobs(JobState::Pending).await.unwrap();
        let mut batches = queue.poll_batches(Due::Jobs).await.unwrap();
        let mut requests = queue.poll_requests(AccessQueue::Small).await.unwrap();
        let mut next = async || {
            Ok(match kind {
                LockedItem::Job => jobs.next(now()).await?.map(|job| job.id().number()),
                LockedItem::Batch => batches.next(now()).await?.map(|batch| batch.batch.id.number()),
                LockedItem::Request => requests.next().await?.map(|request| request.request.id.number() + 1),
                LockedItem::Object => unreachable!("none of the items"),
            })
        };
        // The first change of a poll is the lock.
        let point = Point::Unanswered(1);
        let first = match when {
            During::ThePause => {
                let first = setting.cut(point, async |_| next().await).await;
                setting.retake(kind).await;
                first
            }
            During::TheCall => {
                setting.wire.arm(Some((point, Cut::Long)));
                let meanwhile = async {
                    eventually(LIMIT, "the connection is cut", async || setting.wire.was_cut()).await;
                    setting.retake(kind).await;
                    setting.wire.restore();
                };
                futures::join!(next(), meanwhile).0
            }
        };
        let second = match first {
            Err(error) if Error::is_connection(&error) => connected(&mut next).await,
            came => came.unwrap_or_else(|error| panic!("{trial}: {error}")),
        };
        assert_eq!(second, Some(2), "{trial}");
        let passed = match kind {
            LockedItem::Job => jobs.skipped,
            LockedItem::Batch => batches.skipped,
            LockedItem::Request | LockedItem::Object => requests.skipped,
        };
        let [passed] = passed.as_slice() else { panic!("{trial}: {passed:?}") };
        assert_eq!(passed.reason, SkipReason::LockBroken, "{trial}");
        assert!(passed.path.to_string().ends_with(kind.item().rsplit_once('/').unwrap().1), "{trial}: {}", passed.path);
        assert!(raw.check_stat(&kind.lock()).await.unwrap().is_some(), "{trial}: it is another's");
        assert_eq!(setting.held().await.len(), 1, "{trial}: the first is given up");
    }))
    .await;
}

//! What is listed and looked up: entries, requests, batches by their UUIDs, what is held, and how much room is left.

use queuekeeper_queue::id::{BatchId, JobId, RequestId};
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{ConflictKind, Error};

use queuekeeper_testkit::queue::{PERSISTENT, World, base, borrowed, job, now};

#[tokio::test(flavor = "multi_thread")]
async fn entries_requests_and_batches_are_found_among_names_that_are_none() {
    let mut nodes = [base(), job(2, "Pending"), job(1, "Pending"), job(3, "Failed")].concat();
    let others = [
        ("/jobs/states/pending/zz", ""),
        ("/jobs/states/pending/04-jid0000000009", ""),
        ("/jobs/jid0000000008", ""),
        ("/jobs/jid0000000008/bid", "bid0000000007"),
        ("/jobs/jid0000000008/configuration", "{}"),
        ("/access/small/qid0000000011", ""),
        ("/access/small/qid0000000002", ""),
        ("/access/small/odd", ""),
        ("/access/large/qid0000000004", ""),
        ("/batch-uuids/broken", "bid"),
    ];
    nodes.extend(others.map(|(path, data)| (path.to_owned(), data.to_owned())));
    let queue = World::new(&borrowed(&nodes)).await.queue;

    let pending = queue.entries(JobState::Pending).await.unwrap();
    let jobs: Vec<_> = pending.entries.iter().map(|entry| entry.job.number()).collect();
    assert_eq!((jobs, pending.unreadable), (vec![9, 1, 2], vec!["zz".to_owned()]));
    assert_eq!(queue.requests(AccessQueue::Small).await.unwrap(), [2, 11].map(RequestId::new));
    assert_eq!(queue.requests(AccessQueue::Large).await.unwrap(), [4].map(RequestId::new));

    assert_eq!(queue.find_batch("uuid-0").await.unwrap(), Some(BatchId::new(0)));
    for nobodys in ["uuid-1", "", "a/b"] {
        assert_eq!(queue.find_batch(nobodys).await.unwrap(), None, "{nobodys}");
    }
    let error = queue.find_batch("broken").await.unwrap_err();
    assert!(matches!(error, Error::Decode { .. }), "{error}");

    let configurations = queue.configurations(BatchId::new(0)).await.unwrap();
    let profile = br#"{"profile":"demo"}"#.to_vec();
    assert_eq!(configurations, (1..=3).map(|number| (JobId::new(number), profile.clone())).collect());
    let configurations = queue.configurations(BatchId::new(7)).await.unwrap();
    assert_eq!(configurations, [(JobId::new(8), b"{}".to_vec())].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_full_from_so_many_children_on() {
    let world = World::new(&borrowed(&[base(), job(1, "Pending")].concat())).await;
    // Below `/jobs` are a job and the folder of the states.
    world.queue.check_room(3).await.unwrap();
    let full = async |most| match world.queue.check_room(most).await.unwrap_err() {
        Error::Full { folder, children } => (folder.to_string(), children),
        error => panic!("{error}"),
    };
    assert_eq!(full(2).await, ("/jobs".to_owned(), 2));
    for name in ["a", "b"] {
        world.raw.create(&format!("/jobs/states/pending/{name}"), b"", &PERSISTENT).await.unwrap();
    }
    assert_eq!(full(3).await, ("/jobs/states/pending".to_owned(), 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn held_collections_and_stores_are_listed_until_they_are_released() {
    let World { queue, .. } = &World::new(&borrowed(&base())).await;
    assert_eq!(queue.held_collections().await.unwrap(), [""; 0]);
    for collection in ["zoology", "botany"] {
        queue.hold_collection(collection, "me", "disk", now()).await.unwrap();
    }
    assert_eq!(queue.held_collections().await.unwrap(), ["botany", "zoology"]);

    let names = async || queue.held_stores().await.unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!((names().await, queue.held_store("second").await.unwrap()), (vec![], None));
    for store in ["second", "first"] {
        queue.commit(&queue.plan_hold_store(store, "anna", "new disks", now()).await.unwrap()).await.unwrap();
    }
    assert_eq!(names().await, ["first", "second"]);
    let hold = queue.held_store("second").await.unwrap().unwrap();
    assert_eq!((&*hold.who, &*hold.why, hold.since), ("anna", "new disks", now()));
    let Err(Error::Conflict(held)) = queue.plan_hold_store("second", "otto", "", now()).await else { panic!("held") };
    assert!(matches!(held.kind, ConflictKind::Exists { .. }), "{held}");
    assert!(matches!(queue.plan_hold_store("a/b", "otto", "", now()).await, Err(Error::Invalid { .. })));

    queue.commit(&queue.plan_release_store("second", Some(&hold.lock)).await.unwrap()).await.unwrap();
    assert_eq!((names().await, queue.held_store("second").await.unwrap()), (vec!["first".to_owned()], None));
    assert!(matches!(queue.plan_release_store("second", None).await, Err(Error::Missing(_))));
    // It is held again: whoever saw the first hold does not release the second.
    queue.commit(&queue.plan_hold_store("second", "otto", "tapes", now()).await.unwrap()).await.unwrap();
    let Err(Error::Conflict(lost)) = queue.plan_release_store("second", Some(&hold.lock)).await else { panic!("new") };
    assert!(matches!(lost.kind, ConflictKind::LockLost { now: Some(_) }), "{lost}");
}

//! What readers get of the image, and that they get nothing before there is one.

use super::*;
use crate::mirror::Writer;
use crate::mirror::image::Image;
use crate::mirror::read::Found;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::JobState;
use zookeeper_client::Stat;

const AT_MS: i64 = 1_000_000;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap()
}

fn now() -> Timestamp {
    at(AT_MS + 60_000)
}

/// A reader of a small tree. Each znode was created at its place in the list, in seconds.
fn store() -> MirrorStore {
    let failed = r#"{"status":"Failed","message":"404 for http://x"}"#;
    let held = r#"{"status":"Held"}"#;
    let znodes = [
        ("/", ""),
        ("/jobs/jid0000000001/status", failed),
        ("/jobs/jid0000000001/lock", ""),
        ("/jobs/jid0000000001/bid", "bid0000000003"),
        ("/jobs/jid0000000002/status", held),
        ("/jobs/jid0000000002/configuration", r#"{"profile":"demo"}"#),
        ("/batches/bid0000000003/status", held),
        ("/batches/bid0000000003/submission", r#"{"profile":"demo","batchID":"u"}"#),
        ("/batches/bid0000000004/submission", r#"{"profile":"demo"}"#),
        ("/batches/bid0000000005/status", held),
        ("/batches/bid0000000001/status", held),
        ("/batches/bid0000000001/submission", r#"{"profile":"demo"}"#),
        ("/access/small/qid0000000006/token", r#"{"token":"T"}"#),
        ("/locks/collections/demo", "{}"),
        ("/locks/storage/ark", ""),
        ("/junk", ""),
        ("/queuekeeper/withdrawals/bid0000000003", r#"{"who":"anna","why":"","since":1000,"phase":"holding"}"#),
    ];
    let mut image = Image::default();
    for (second, (path, data)) in (0..).zip(znodes) {
        let at = AT_MS + second * 1_000;
        let stat = Stat {
            czxid: 1,
            mzxid: 1,
            pzxid: 1,
            ctime: at,
            mtime: at,
            version: 3,
            cversion: 0,
            aversion: 0,
            ephemeral_owner: 77,
            data_length: 0,
            num_children: 0,
        };
        let path = if path.starts_with("/queuekeeper") { Path::own(path).unwrap() } else { Path::parse(path) };
        image.apply(path, &Found::Node { data: data.into(), stat });
    }
    image.finish();
    let writer = Writer::new();
    writer.swap(image, now());
    writer.store()
}

const ALL: PageRequest = PageRequest { after: None, size: 10 };

#[test]
fn a_reader_gets_the_items_of_each_list() {
    let store = store();
    let batches = store.batch_list(&BatchQuery::default(), BatchOrder::Oldest, &ALL).unwrap();
    let ids: Vec<_> = batches.items.iter().map(|detail| detail.batch.id.number()).collect();
    assert_eq!((ids, batches.total), (vec![1, 3, 4, 5], 4));
    let requests = store.request_list(&RequestQuery::default(), RequestOrder::Oldest, &ALL, now()).unwrap();
    assert_eq!(requests.items.iter().map(|request| &*request.token).collect::<Vec<_>>(), ["T"]);
    assert_eq!(requests.items[0].queue, AccessQueue::Small);
    let locks = store.lock_list(LockQuery::default(), &ALL, now()).unwrap();
    let locks: Vec<_> = locks.items.iter().map(|lock| lock.path.to_string()).collect();
    assert_eq!(locks, ["/jobs/jid0000000001/lock", "/locks/collections/demo", "/locks/storage/ark"]);
    let failures = store.failures(FailureOrder::Largest, &ALL).unwrap();
    assert_eq!(failures.items.iter().map(|group| &*group.message).collect::<Vec<_>>(), ["404 for http://x"]);
    // A fault by shape counts once it has lasted.
    let later = at(AT_MS + 24 * 3_600_000);
    let faults = store.fault_list(Some(Fault::MissingReference), FaultOrder::Oldest, &ALL, later, None).unwrap();
    let items: Vec<_> = faults.items.iter().map(|found| found.item.to_string()).collect();
    assert_eq!(items, ["/jobs/jid0000000001", "/jobs/jid0000000002"]);
    let unconfirmed = store.unconfirmed(now()).unwrap();
    assert!(unconfirmed.iter().any(|(fault, count, _)| (*fault, *count) == (Fault::MissingReference, 2)));
    assert!(store.unconfirmed(later).unwrap().is_empty());
    assert_eq!(store.unreadable(), Some(vec![Path::parse("/junk")]));
    assert_eq!(store.sessions(5), Some((vec![SessionLocks { session: 77, locks: 3, jobs: 1 }], 1)));
}

#[test]
fn a_reader_gets_what_is_known_of_one_item() {
    let store = store();
    let [failed, held, gone] = [1, 2, 9].map(JobId::new);
    let standing = |state, is_locked, batch_state| {
        Some(JobStanding { state: Some(state), is_locked, status_version: 3, batch_state })
    };
    let expected =
        [standing(JobState::Failed, true, Some(Some(BatchState::Held))), None, standing(JobState::Held, false, None)];
    assert_eq!(store.job_standings(&[failed, gone, held]).unwrap(), expected);
    let many = store.job_standings(&vec![failed; 5_000]).unwrap();
    assert!(many.len() == 5_000 && many.iter().all(|of| *of == expected[0]));
    assert_eq!(store.held_collections_of(&[failed, held]), [("demo".into(), 1)]);
    assert_eq!(store.held_batches("demo").iter().map(|batch| batch.id.number()).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(store.batch(BatchId::new(3)).map(|detail| detail.batch.id), Some(BatchId::new(3)));
    assert_eq!((store.batch(BatchId::new(9)), store.withdrawal(BatchId::new(9))), (None, None));
    assert_eq!(store.withdrawal(BatchId::new(3)).map(|note| note.who).as_deref(), Some("anna"));
    assert_eq!([store.batch_of_uuid("u"), store.batch_of_uuid("v")], [Some(BatchId::new(3)), None]);
    assert_eq!(store.batch_collections(), Some(vec![("".into(), 1), ("demo".into(), 3)]));
    let lock = |path: &str| (store.locked_since(&Path::parse(path)), store.locked_by_servers(&Path::parse(path)));
    let locked = Some(at(AT_MS + 2_000));
    assert_eq!(lock("/jobs/jid0000000001/lock"), (locked, locked));
    assert_eq!(lock("/jobs/jid0000000002/lock"), (None, None));
    let entered = [failed, held, gone].map(|job| store.entered_by_servers(job));
    assert_eq!(entered, [Some(at(AT_MS + 1_000)), Some(at(AT_MS + 4_000)), None]);
}

#[test]
fn a_reader_gets_nothing_before_the_first_walk() {
    let store = Writer::new().store();
    assert_eq!(store.batch_list(&BatchQuery::default(), BatchOrder::Oldest, &ALL), Err(ListError::NoImage));
    let requests = store.request_list(&RequestQuery::default(), RequestOrder::Oldest, &ALL, now());
    assert_eq!(requests, Err(ListError::NoImage));
    assert_eq!(store.lock_list(LockQuery::default(), &ALL, now()), Err(ListError::NoImage));
    assert_eq!(store.failures(FailureOrder::Largest, &ALL), Err(ListError::NoImage));
    assert_eq!(store.fault_list(None, FaultOrder::Oldest, &ALL, now(), None), Err(ListError::NoImage));
    assert_eq!((store.job_standings(&[JobId::new(1)]), store.batch_collections()), (None, None));
    assert_eq!((store.unconfirmed(now()), store.unreadable(), store.sessions(1)), (None, None, None));
    assert!(store.held_batches("demo").is_empty() && store.held_collections_of(&[JobId::new(1)]).is_empty());
}

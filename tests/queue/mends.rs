//! Each fault is made in a healthy tree, mended, and leaves that tree or exactly what is said.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use queuekeeper::queue::fault::{Fault, Limits};
use queuekeeper::queue::path::Path;
use queuekeeper::queue::{Error, Mend, MendKind, MendOrder, Removal};

use super::world::{EPHEMERAL, PERSISTENT, World, base, borrowed, data, job};

/// One change of the tree.
#[derive(Clone, Copy, Debug)]
enum Do {
    Make(&'static str, &'static str),
    MakeEphemeral(&'static str),
    Set(&'static str, &'static str),
    Delete(&'static str),
    /// The znode and all below it is gone, in what is expected.
    Gone(&'static str),
}
use Do::{Delete, Gone, Make, MakeEphemeral, Set};

/// A fault, what shows it, how it is made, and how the tree differs from the healthy one once it is mended.
type Case = (Fault, &'static str, &'static [Do], &'static [Do]);

const JOB: &str = "/jobs/jid0000000001";
const ENTRY: &str = "/jobs/states/pending/05-jid0000000001";
const REFERENCE: &str = "/batches/bid0000000000/states/batch-processing/jid0000000001";
const STATUS: &str = "/jobs/jid0000000001/status";
const PRIORITY: &str = "/jobs/jid0000000001/priority";
const BID: &str = "/jobs/jid0000000001/bid";
/// A status that is made anew.
const NEW_STATUS: &str =
    r#"{"status":"Pending","last_modified":"x","last_successful_status":null,"retry_count":0,"message":""}"#;

const CASES: &[Case] = &[
    (Fault::OrphanEntry, JOB, &[Delete(ENTRY), Make("/jobs/states/storing/05-jid0000000001", "")], &[]),
    (Fault::OrphanEntry, JOB, &[Make("/jobs/states/storing/77-jid0000000001", "")], &[]),
    (
        Fault::StrayEntry,
        "/jobs/jid0000000099",
        &[Make("/jobs/states/pending/05-jid0000000099", ""), Make("/jobs/states/held/104-jid0000000099", "")],
        &[],
    ),
    (Fault::DuplicateEntry, JOB, &[Make("/jobs/states/pending/07-jid0000000001", "")], &[]),
    (Fault::MissingEntry, JOB, &[Delete(ENTRY)], &[]),
    (
        Fault::PriorityOutOfRange,
        JOB,
        &[
            Set("/jobs/jid0000000001/priority", "100"),
            Delete(ENTRY),
            Make("/jobs/states/pending/100-jid0000000001", ""),
        ],
        &[Set("/jobs/jid0000000001/priority", "99"), Gone(ENTRY), Make("/jobs/states/pending/99-jid0000000001", "")],
    ),
    (
        Fault::PriorityOutOfRange,
        JOB,
        &[
            Set("/jobs/jid0000000001/priority", " -7 "),
            Delete(ENTRY),
            Make("/jobs/states/pending/-7-jid0000000001", ""),
        ],
        &[Set("/jobs/jid0000000001/priority", "0"), Gone(ENTRY), Make("/jobs/states/pending/00-jid0000000001", "")],
    ),
    (Fault::PriorityOutOfRange, JOB, &[Make("/jobs/states/pending/100-jid0000000001", "")], &[]),
    (Fault::DuplicateReference, JOB, &[Make("/batches/bid0000000000/states/batch-failed/jid0000000001", "")], &[]),
    (Fault::MissingReference, JOB, &[Delete(REFERENCE)], &[]),
    (
        Fault::MissingReference,
        JOB,
        &[Delete(REFERENCE), Make("/batches/bid0000000001/states/batch-deleted/jid0000000001", "")],
        &[],
    ),
    (
        Fault::MissingReference,
        "/jobs/jid0000000099",
        &[Make("/batches/bid0000000000/states/batch-failed/jid0000000099", "")],
        &[],
    ),
    (
        Fault::UnloadableJob,
        JOB,
        &[Set(STATUS, r#"{"status":"pending","retry_count":2,"message":"m","by":"ruby"}"#)],
        &[Set(
            STATUS,
            r#"{"status":"Pending","last_modified":"x","last_successful_status":null,"retry_count":2,"message":"m","by":"ruby"}"#,
        )],
    ),
    (
        Fault::UnloadableJob,
        JOB,
        &[Set(
            STATUS,
            r#"{"status":" Pending ","last_modification_date":"y","last_successful_status":"provisioning","message":"m"}"#,
        )],
        &[Set(
            STATUS,
            r#"{"status":"Pending","last_modified":"x","last_successful_status":"Provisioning","retry_count":0,"message":"m"}"#,
        )],
    ),
    (Fault::UnloadableJob, JOB, &[Set(STATUS, "garbage")], &[Set(STATUS, NEW_STATUS)]),
    (
        Fault::UnloadableJob,
        "/jobs/jid0000000003",
        &[Delete("/jobs/jid0000000003/status")],
        &[Set(
            "/jobs/jid0000000003/status",
            r#"{"status":"Storing","last_modified":"x","last_successful_status":"Processing","retry_count":0,"message":""}"#,
        )],
    ),
    (Fault::UnloadableJob, JOB, &[Delete("/jobs/jid0000000001/space_needed")], &[]),
    (
        Fault::UnloadableJob,
        JOB,
        &[Set("/jobs/jid0000000001/space_needed", "5\n")],
        &[Set("/jobs/jid0000000001/space_needed", "5")],
    ),
    (
        Fault::UnloadableJob,
        JOB,
        &[Make("/jobs/jid0000000001/metadata", "[]"), Make("/jobs/jid0000000001/identifiers", "ark:/1/1")],
        &[Make("/jobs/jid0000000001/metadata", "{}"), Make("/jobs/jid0000000001/identifiers", "{}")],
    ),
    (
        Fault::UnloadableJob,
        JOB,
        &[Set(PRIORITY, "high"), Delete(ENTRY), Make("/jobs/states/pending/07-jid0000000001", "")],
        &[Set(PRIORITY, "7"), Gone(ENTRY), Make("/jobs/states/pending/07-jid0000000001", "")],
    ),
    (Fault::UnloadableJob, JOB, &[Delete(PRIORITY), Delete(ENTRY)], &[Gone(ENTRY)]),
    (Fault::UnloadableJob, JOB, &[Delete(BID)], &[]),
    (Fault::UnloadableJob, JOB, &[Set(BID, " bid0000000000")], &[]),
    (
        Fault::UnloadableJob,
        JOB,
        &[
            Set(BID, "bid0000000001"),
            Set("/batches/bid0000000001/status", r#"{"status":"Failed"}"#),
            Delete("/batches/bid0000000001/states/batch-deleted"),
            Delete("/batches/bid0000000001/states"),
        ],
        &[
            Set(BID, "bid0000000001"),
            Set("/batches/bid0000000001/status", r#"{"status":"Failed"}"#),
            Gone("/batches/bid0000000001/states/batch-deleted"),
        ],
    ),
    (
        Fault::UnloadableRequest,
        "/access/small/qid0000000000",
        &[Set("/access/small/qid0000000000/status", r#"{"status":"pending","by":"ruby"}"#)],
        &[Set(
            "/access/small/qid0000000000/status",
            r#"{"status":"Pending","last_modified":"x","message":"","by":"ruby"}"#,
        )],
    ),
    (
        Fault::UnloadableBatch,
        "/batches/bid0000000000",
        &[Set("/batches/bid0000000000/status", r#"{"status":"update-reporting","message":"m"}"#)],
        &[Set("/batches/bid0000000000/status", r#"{"status":"UpdateReporting","last_modified":"x","message":"m"}"#)],
    ),
    (
        Fault::UnloadableBatch,
        "/batches/bid0000000000",
        &[Set("/batches/bid0000000000/status", "no json")],
        &[Set("/batches/bid0000000000/status", r#"{"status":"Reporting","last_modified":"x","message":""}"#)],
    ),
    (
        Fault::UnloadableBatch,
        "/batches/bid0000000001",
        &[
            Set("/batches/bid0000000001/status", r#"{"status":"Held"}"#),
            Delete("/batches/bid0000000001/states/batch-deleted"),
            Delete("/batches/bid0000000001/states"),
        ],
        &[
            Set("/batches/bid0000000001/status", r#"{"status":"Held"}"#),
            Gone("/batches/bid0000000001/states/batch-deleted"),
        ],
    ),
    (
        Fault::DeletedBatchBlocksReporting,
        "/batches/bid0000000001",
        &[Make("/batches/bid0000000001/states/batch-processing", "")],
        &[],
    ),
    (
        Fault::BatchWithoutEnd,
        "/batches/bid0000000001",
        &[Set("/batches/bid0000000001/status", r#"{"status":"Failed"}"#)],
        &[
            Set("/batches/bid0000000001/status", r#"{"status":"Failed"}"#),
            Make("/batches/bid0000000001/states/batch-processing", ""),
        ],
    ),
    (Fault::DanglingUuid, "/batch-uuids/u9", &[Make("/batch-uuids/u9", "bid0000000077")], &[]),
    (Fault::DanglingUuid, "/batches/bid0000000000", &[Delete("/batch-uuids/uuid-0")], &[]),
    (Fault::DanglingUuid, "/batches/bid0000000000", &[Set("/batch-uuids/uuid-0", "nobody")], &[]),
    (Fault::LeakedLock, "/jobs/jid0000000004", &[MakeEphemeral("/jobs/jid0000000004/lock")], &[]),
    (Fault::LeakedLock, JOB, &[Make("/jobs/jid0000000001/lock", "")], &[]),
    (Fault::LeakedLock, "/batches/bid0000000001", &[MakeEphemeral("/batches/bid0000000001/lock")], &[]),
    (Fault::LeakedLock, "/access/small/qid0000000000", &[MakeEphemeral("/access/small/qid0000000000/lock")], &[]),
    (Fault::LeakedLock, "/locks/inventory/ark_1_1", &[Make("/locks/inventory/ark_1_1", "")], &[]),
    (Fault::LeakedStorageLock, "/locks/storage/ark_1_99", &[Make("/locks/storage/ark_1_99", "")], &[]),
];

/// A batch with jobs in Pending, Storing and Failed, a deleted batch, and a request.
fn healthy() -> Vec<(String, String)> {
    let mut nodes = base();
    nodes.extend([job(1, "Pending"), job(3, "Storing"), job(4, "Failed")].concat());
    for (path, data) in [
        ("/jobs/jid0000000003/identifiers", r#"{"primary_id":"ark:/1/3"}"#),
        ("/batch-uuids/uuid-1", "bid0000000001"),
        ("/batches/bid0000000001", ""),
        ("/batches/bid0000000001/submission", r#"{"batchID":"uuid-1"}"#),
        ("/batches/bid0000000001/status", r#"{"status":"Deleted"}"#),
        ("/batches/bid0000000001/states", ""),
        ("/batches/bid0000000001/states/batch-deleted", ""),
        ("/access/small/qid0000000000", ""),
        ("/access/small/qid0000000000/token", "{}"),
        ("/access/small/qid0000000000/status", r#"{"status":"Pending"}"#),
        ("/locks/inventory", ""),
        ("/locks/storage", ""),
    ] {
        nodes.push((path.to_owned(), data.to_owned()));
    }
    nodes
}

async fn spoil(world: &World, changes: &[Do]) {
    for change in changes {
        match *change {
            Make(path, data) => drop(world.raw.create(path, data.as_bytes(), &PERSISTENT).await.unwrap()),
            MakeEphemeral(path) => drop(world.raw.create(path, b"", &EPHEMERAL).await.unwrap()),
            Set(path, data) => drop(world.raw.set_data(path, data.as_bytes(), None).await.unwrap()),
            Delete(path) => world.raw.delete(path, None).await.unwrap(),
            Gone(path) => panic!("{path}: only what is expected is gone"),
        }
    }
}

fn expected(healthy: &BTreeMap<String, String>, changes: &[Do]) -> BTreeMap<String, String> {
    let mut tree = healthy.clone();
    for change in changes {
        match *change {
            Make(path, data) | Set(path, data) => drop(tree.insert(path.into(), timeless(path, data))),
            Gone(path) => tree.retain(|other, _| other != path && !other.starts_with(&format!("{path}/"))),
            MakeEphemeral(path) | Delete(path) => panic!("{path}: only the fault is made so"),
        }
    }
    tree
}

/// A status without the time at which it was written, and its keys in order.
fn timeless(path: &str, data: &str) -> String {
    let status = serde_json::from_str::<BTreeMap<String, serde_json::Value>>(data).ok();
    let Some(mut status) = status.filter(|_| path.ends_with("/status")) else { return data.to_owned() };
    status.entry("last_modified".to_owned()).and_modify(|at| *at = "x".into());
    serde_json::to_string(&status).unwrap()
}

async fn found(world: &World) -> BTreeMap<String, String> {
    let tree = data(&world.tree().await);
    tree.into_iter().map(|(path, data)| (path.clone(), timeless(&path, &data))).collect()
}

/// The jobs, batches and requests.
fn items(tree: &BTreeMap<String, String>) -> BTreeSet<&str> {
    let is_item = |path: &&str| matches!(Path::parse(path), Path::Job(_) | Path::Batch(_) | Path::Request(..));
    tree.keys().map(String::as_str).filter(is_item).collect()
}

/// An hour from now: whatever is told by its age is old enough.
fn later() -> Timestamp {
    Timestamp::now() + SignedDuration::from_hours(1)
}

async fn plan(world: &World, fault: Fault, item: &str, now: Timestamp, even_if_locked: bool) -> Result<Mend, Error> {
    let limits = Limits { object_lock: std::time::Duration::from_mins(30), ..Limits::default() };
    let order = MendOrder { limits: &limits, now, even_if_locked };
    let alone = sendable(world.queue.plan_mend(fault, &Path::parse(item), order)).await;
    // One of many is mended as one alone is.
    let survey = sendable(world.queue.survey()).await.unwrap();
    let of_many = sendable(world.queue.plan_mend_with(fault, &Path::parse(item), order, &survey)).await;
    assert_eq!(alone.as_ref().map(operations), of_many.as_ref().map(operations), "{fault} of {item}");
    alone
}

/// A server plans in tasks that go from thread to thread.
fn sendable<F: Future + Send>(future: F) -> F {
    future
}

/// In no order.
fn operations(mend: &Mend) -> BTreeSet<String> {
    mend.transaction.operations().iter().map(ToString::to_string).collect()
}

fn is_nothing_to_mend(result: &Result<Mend, Error>) -> bool {
    matches!(result, Err(Error::NotShown { .. } | Error::Invalid { .. } | Error::Missing(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mendable_fault_is_mended_and_nothing_else_is_touched() {
    let nodes = healthy();
    let mut world = World::new(&borrowed(&nodes)).await;
    let whole = found(&world).await;
    for (fault, item, made, left) in CASES {
        let case = format!("{fault} of {item} by {made:?}");
        let early = plan(&world, *fault, item, later(), true).await;
        assert!(is_nothing_to_mend(&early), "{case}, before it is made: {early:?}");
        spoil(&world, made).await;
        let spoiled = world.tree().await;
        let mend = plan(&world, *fault, item, later(), false).await.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(world.tree().await, spoiled, "{case}: a plan writes nothing");
        let before = data(&spoiled);
        world.queue.commit_mend(&mend).await.unwrap_or_else(|error| panic!("{case}: {error}"));
        let after = found(&world).await;
        assert_eq!(after, expected(&whole, left), "{case}");
        assert_eq!(items(&after), items(&before), "{case}: no job, batch or request is removed");

        assert!(mend.summary.ends_with('.'), "{case}: {}", mend.summary);
        // What is not kept is said: the data of what is gone, and of what is replaced by something that does not hold it.
        let lost: BTreeMap<String, String> =
            mend.loses.iter().map(|(path, data)| (path.to_string(), String::from_utf8_lossy(data).into())).collect();
        for (path, data) in &before {
            let kept = after
                .get(path)
                .is_some_and(|now| *now == timeless(path, data) || data.trim() == now || data.starts_with('{'));
            assert_eq!(lost.get(path), (!kept && !data.is_empty()).then_some(data), "{case}: {path}");
        }
        let again = plan(&world, *fault, item, later(), true).await;
        assert!(is_nothing_to_mend(&again), "{case}, mended: {again:?}");
        if after != whole {
            world = World::new(&borrowed(&nodes)).await;
        }
    }
    let mended = |fault: &Fault| CASES.iter().any(|case| case.0 == *fault);
    assert!(Fault::ALL.iter().all(|fault| mended(fault) != matches!(fault.mend_kind(), MendKind::Another(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_or_changed_or_still_young_is_not_mended() {
    let world = World::new(&borrowed(&healthy())).await;
    // The object of the job in Storing is being stored, though the queue has lost the job's entry.
    spoil(&world, &[Make("/locks/storage/ark_1_3", ""), Delete("/jobs/states/storing/05-jid0000000003")]).await;
    let before = world.tree().await;
    let refused = plan(&world, Fault::LeakedStorageLock, "/locks/storage/ark_1_3", later(), true).await;
    assert!(is_nothing_to_mend(&refused), "{refused:?}");
    let error = plan(&world, Fault::RetriesExhausted, JOB, later(), true).await.unwrap_err();
    assert!(error.to_string().contains("no writing mends retries_exhausted: resume the job"), "{error}");
    assert_eq!(world.tree().await, before);

    // A daemon at work is not disturbed, unless that is ordered.
    spoil(&world, &[Make("/jobs/states/storing/77-jid0000000001", ""), MakeEphemeral("/jobs/jid0000000001/lock")])
        .await;
    let held = world.tree().await;
    let error = plan(&world, Fault::OrphanEntry, JOB, later(), false).await.unwrap_err();
    assert!(error.to_string().contains("is held by session"), "{error}");
    let mend = plan(&world, Fault::OrphanEntry, JOB, later(), true).await.unwrap();
    assert_eq!(world.tree().await, held);
    // The state that the plan saw is not the job's any more: nothing is done.
    spoil(&world, &[Set("/jobs/jid0000000001/status", r#"{"status":"Storing","retry_count":0}"#)]).await;
    let moved = world.tree().await;
    let error = world.queue.commit_mend(&mend).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error}");
    assert_eq!(world.tree().await, moved);

    // What is written under another's lock checks what was read, and what is purged was shown.
    spoil(&world, &[Set(STATUS, r#"{"status":"pending"}"#)]).await;
    let error = plan(&world, Fault::UnloadableJob, JOB, later(), false).await.unwrap_err();
    assert!(error.to_string().contains("is held by session"), "{error}");
    let mend = plan(&world, Fault::UnloadableJob, JOB, later(), true).await.unwrap();
    world.queue.commit_mend(&mend).await.unwrap();
    assert_eq!(world.json(STATUS).await["status"], "Pending");
    spoil(&world, &[Set("/jobs/jid0000000001/configuration", "no json")]).await;
    let error = purge(&world, JOB, later(), false).await.unwrap_err();
    assert!(error.to_string().contains("is held by session"), "{error}");
    let removal = purge(&world, JOB, later(), true).await.unwrap();
    spoil(&world, &[Set(PRIORITY, "6")]).await;
    let changed = world.tree().await;
    assert!(matches!(remove(&world, &removal).await, Err(Error::Conflict(_))));
    assert_eq!(world.tree().await, changed);
    let removal = purge(&world, JOB, later(), true).await.unwrap();
    remove(&world, &removal).await.unwrap();
    assert!(!world.exists(JOB).await);
}

async fn purge(world: &World, item: &str, now: Timestamp, even_if_locked: bool) -> Result<Removal, Error> {
    let order = MendOrder { limits: &Limits::default(), now, even_if_locked };
    sendable(world.queue.plan_purge_broken(&Path::parse(item), order)).await
}

async fn remove(world: &World, removal: &Removal) -> Result<(), Error> {
    for chunk in &removal.chunks {
        world.queue.commit(&chunk.transaction).await?;
    }
    Ok(())
}

/// What shows a fault that nothing in the tree repairs, how it is made, what the refusal names, and what a purge removes.
type Beyond = (&'static str, &'static [Do], &'static str, &'static [Do]);

const JOB_GONE: &[Do] = &[Gone(JOB), Gone(ENTRY), Gone(REFERENCE)];

const BEYOND_REPAIR: &[Beyond] = &[
    (JOB, &[Set("/jobs/jid0000000001/configuration", "no json")], "configuration is not JSON", JOB_GONE),
    (JOB, &[Set(BID, "bid0000000066")], "its batch bid0000000066 is gone", JOB_GONE),
    (JOB, &[Set(STATUS, r#"{"status":"Teleporting","retry_count":0}"#)], "not known here, Teleporting", JOB_GONE),
    (
        JOB,
        &[Set(STATUS, "garbage"), Delete(ENTRY)],
        "status is not JSON (line 1, column 1), and queue entry and reference do not name one state",
        JOB_GONE,
    ),
    (JOB, &[Delete(STATUS), Make("/jobs/states/storing/05-jid0000000001", "")], "status does not exist", JOB_GONE),
    (
        JOB,
        &[Delete(BID), Make("/batches/bid0000000001/states/batch-deleted/jid0000000001", "")],
        "bid does not exist, and not exactly one batch refers to the job",
        JOB_GONE,
    ),
    (
        "/access/small/qid0000000000",
        &[Delete("/access/small/qid0000000000/token")],
        "token does not exist",
        &[Gone("/access/small/qid0000000000")],
    ),
    (
        "/batches/bid0000000001",
        &[Delete("/batches/bid0000000001/status")],
        "status does not exist",
        &[Gone("/batches/bid0000000001"), Gone("/batch-uuids/uuid-1")],
    ),
    (
        "/jobs/jid0000000050",
        &[
            Make("/jobs/jid0000000050", ""),
            Make("/jobs/jid0000000050/lock", ""),
            Make("/jobs/states/pending/05-jid0000000050", ""),
        ],
        "purge it by its name",
        &[],
    ),
    ("/batches/bid0000000050", &[Make("/batches/bid0000000050", "")], "purge it by its name", &[]),
    ("/access/small/qid0000000050", &[Make("/access/small/qid0000000050", "")], "purge it by its name", &[]),
];

fn fault_of(item: &str, is_bare: bool) -> Fault {
    match Path::parse(item) {
        _ if is_bare => Fault::UnfinishedCreation,
        Path::Job(_) => Fault::UnloadableJob,
        Path::Batch(_) => Fault::UnloadableBatch,
        _ => Fault::UnloadableRequest,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_from_nothing_is_left_alone_and_purged_by_its_name_alone() {
    let nodes = healthy();
    let mut world = World::new(&borrowed(&nodes)).await;
    let whole = found(&world).await;
    for (item, made, why, gone) in BEYOND_REPAIR {
        let case = format!("{item} by {made:?}");
        let fault = fault_of(item, !whole.contains_key(*item));
        spoil(&world, made).await;
        let before = found(&world).await;
        let error = plan(&world, fault, item, later(), true).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }) && error.to_string().contains(why), "{case}: {error}");
        if fault == Fault::UnfinishedCreation {
            let young = purge(&world, item, Timestamp::now(), true).await;
            let error = young.unwrap_err().to_string();
            assert!(error.contains("does not count as unfinished_creation before"), "{case}: {error}");
        }
        let removal = purge(&world, item, later(), false).await.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(found(&world).await, before, "{case}: neither writes anything");
        remove(&world, &removal).await.unwrap_or_else(|error| panic!("{case}: {error}"));
        let after = found(&world).await;
        assert_eq!(after, expected(&whole, gone), "{case}");
        let shown: BTreeSet<_> = removal.removes.iter().map(|(path, _)| path.to_string()).collect();
        let gone: BTreeSet<_> = before.into_keys().filter(|path| !after.contains_key(path)).collect();
        assert_eq!(shown, gone, "{case}: what is removed is shown first");
        if after != whole {
            world = World::new(&borrowed(&nodes)).await;
        }
    }
    // What is whole or can be repaired is not purged so, nor a batch with jobs that are not done.
    assert!(matches!(purge(&world, JOB, later(), true).await, Err(Error::NotShown { .. })));
    spoil(&world, &[Set(STATUS, r#"{"status":"pending","retry_count":0}"#)]).await;
    let error = purge(&world, JOB, later(), true).await.unwrap_err();
    assert!(error.to_string().contains("which can be repaired"), "{error}");
    spoil(&world, &[Set("/batches/bid0000000000/submission", "no json")]).await;
    let error = plan(&world, Fault::UnloadableBatch, "/batches/bid0000000000", later(), true).await.unwrap_err();
    assert!(error.to_string().contains("submission is not JSON"), "{error}");
    let error = purge(&world, "/batches/bid0000000000", later(), true).await.unwrap_err();
    assert!(error.to_string().contains("/jobs/jid0000000001: it is Pending, and only what is"), "{error}");
}

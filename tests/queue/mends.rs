//! Each fault is made in a healthy tree, mended, and leaves that tree or exactly what is said.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use queuekeeper::queue::fault::{Fault, Limits};
use queuekeeper::queue::path::Path;
use queuekeeper::queue::{Chunk, Error, Mend, MendKind, MendOrder};

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
const JOB_GONE: &[Do] = &[Gone(JOB), Gone(ENTRY), Gone(REFERENCE)];

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
    (Fault::UnloadableJob, JOB, &[Set("/jobs/jid0000000001/status", "garbage")], JOB_GONE),
    (
        Fault::UnloadableJob,
        JOB,
        &[Delete("/jobs/jid0000000001/space_needed"), Make("/jobs/jid0000000001/lock", "")],
        JOB_GONE,
    ),
    (
        Fault::UnfinishedCreation,
        "/jobs/jid0000000050",
        &[
            Make("/jobs/jid0000000050", ""),
            Make("/jobs/jid0000000050/lock", ""),
            Make("/jobs/states/pending/05-jid0000000050", ""),
        ],
        &[],
    ),
    (Fault::UnfinishedCreation, "/batches/bid0000000050", &[Make("/batches/bid0000000050", "")], &[]),
    (Fault::UnfinishedCreation, "/access/small/qid0000000050", &[Make("/access/small/qid0000000050", "")], &[]),
    (
        Fault::UnloadableRequest,
        "/access/small/qid0000000000",
        &[Delete("/access/small/qid0000000000/token")],
        &[Gone("/access/small/qid0000000000")],
    ),
    (
        Fault::UnloadableBatch,
        "/batches/bid0000000000",
        &[
            Set("/batches/bid0000000000/submission", "no json"),
            Make("/batches/bid0000000000/states/batch-failed/jid0000000099", ""),
        ],
        &[
            Gone("/batches/bid0000000000"),
            Gone("/batch-uuids/uuid-0"),
            Gone(JOB),
            Gone(ENTRY),
            Gone("/jobs/jid0000000003"),
            Gone("/jobs/states/storing/05-jid0000000003"),
            Gone("/jobs/jid0000000004"),
            Gone("/jobs/states/failed/05-jid0000000004"),
        ],
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
            Make(path, data) | Set(path, data) => drop(tree.insert(path.into(), data.into())),
            Gone(path) => tree.retain(|other, _| other != path && !other.starts_with(&format!("{path}/"))),
            MakeEphemeral(path) | Delete(path) => panic!("{path}: only the fault is made so"),
        }
    }
    tree
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
    let of = |chunk: &Chunk| chunk.transaction.operations().iter().map(ToString::to_string).collect::<Vec<_>>();
    mend.chunks.iter().flat_map(of).collect()
}

fn is_nothing_to_mend(result: &Result<Mend, Error>) -> bool {
    matches!(result, Err(Error::NotShown { .. } | Error::Invalid { .. } | Error::Missing(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mendable_fault_is_mended_and_nothing_else_is_touched() {
    let nodes = healthy();
    let mut world = World::new(&borrowed(&nodes)).await;
    let whole = data(&world.tree().await);
    for (fault, item, made, left) in CASES {
        let case = format!("{fault} of {item}");
        let early = plan(&world, *fault, item, later(), true).await;
        assert!(is_nothing_to_mend(&early), "{case}, before it is made: {early:?}");
        spoil(&world, made).await;
        let spoiled = world.tree().await;
        let mend = plan(&world, *fault, item, later(), false).await.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(world.tree().await, spoiled, "{case}: a plan writes nothing");
        world.queue.commit_mend(&mend).await.unwrap_or_else(|error| panic!("{case}: {error}"));
        let found = data(&world.tree().await);
        assert_eq!(found, expected(&whole, left), "{case}");

        assert!(mend.summary.ends_with('.'), "{case}: {}", mend.summary);
        // What is removed is shown first: every znode that is gone and has something to lose.
        let shown: BTreeMap<String, String> =
            mend.removes.iter().map(|(path, data)| (path.to_string(), String::from_utf8_lossy(data).into())).collect();
        let gone: BTreeMap<_, _> = data(&spoiled).into_iter().filter(|(path, _)| !found.contains_key(path)).collect();
        if mend.is_destructive {
            assert_eq!(fault.mend_kind(), MendKind::Removes, "{case}");
            assert_eq!(shown, gone, "{case}");
        } else {
            assert!(
                shown.is_empty() && gone.iter().all(|(path, data)| data.is_empty() || path.contains("uuid")),
                "{case}"
            );
        }
        let again = plan(&world, *fault, item, later(), true).await;
        assert!(is_nothing_to_mend(&again), "{case}, mended: {again:?}");
        if found != whole {
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

    // Somebody may be about to finish what he makes.
    spoil(&world, &[Make("/jobs/jid0000000050", "")]).await;
    let refused = plan(&world, Fault::UnfinishedCreation, "/jobs/jid0000000050", Timestamp::now(), true).await;
    assert!(is_nothing_to_mend(&refused), "{refused:?}");

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

    spoil(&world, &[Set("/jobs/jid0000000001/status", "garbage")]).await;
    let error = plan(&world, Fault::UnloadableJob, JOB, later(), false).await.unwrap_err();
    assert!(error.to_string().contains("is held by session"), "{error}");
    let mend = plan(&world, Fault::UnloadableJob, JOB, later(), true).await.unwrap();
    // What nobody was shown is not removed.
    spoil(&world, &[Set("/jobs/jid0000000001/configuration", "{}")]).await;
    let changed = world.tree().await;
    assert!(matches!(world.queue.commit_mend(&mend).await, Err(Error::Conflict(_))));
    assert_eq!(world.tree().await, changed);
    let mend = plan(&world, Fault::UnloadableJob, JOB, later(), true).await.unwrap();
    world.queue.commit_mend(&mend).await.unwrap();
    assert!(!world.exists(JOB).await);
}

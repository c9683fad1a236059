//! Each fault, made on a real tree: it is named with its nodes, and goes when it is mended.

use std::collections::BTreeSet;

use jiff::Timestamp;
use queuekeeper::mirror::FoundFault;
use queuekeeper::queue::fault::{Fault, Limits, Provisioning};
use queuekeeper::queue::path::Path;

use super::world::{LIMIT, Mirror, World, status};
use crate::support::wait::{eventually, eventually_some};

/// One change of the tree.
#[derive(Clone, Copy, Debug)]
enum Do {
    Make(&'static str, &'static str),
    MakeEphemeral(&'static str),
    Set(&'static str, &'static str),
    Delete(&'static str),
}
use Do::{Delete, Make, MakeEphemeral, Set};

async fn change(world: &World, changes: &[Do]) {
    for change in changes {
        match change {
            Make(path, data) => world.create(path, data).await,
            MakeEphemeral(path) => world.ephemeral(path).await,
            Set(path, data) => world.set(path, data).await,
            Delete(path) => world.delete(path).await,
        }
    }
}

const TEN_MINUTES: i64 = 600;

/// What is made, how it is mended, what shows it, and one of the nodes that are named.
type Case = (&'static [Fault], &'static [Do], &'static [Do], &'static str, &'static str);

const PENDING: &str = r#"{"status":"Pending","retry_count":0}"#;

const CASES: &[Case] = &[
    (
        &[Fault::OrphanEntry],
        &[Delete("/jobs/states/completed/05-jid0000000008"), Make("/jobs/states/pending/05-jid0000000008", "")],
        &[Delete("/jobs/states/pending/05-jid0000000008")],
        "/jobs/jid0000000008",
        "/jobs/states/pending/05-jid0000000008",
    ),
    (
        &[Fault::StrayEntry],
        &[Make("/jobs/states/pending/05-jid0000000099", "")],
        &[Delete("/jobs/states/pending/05-jid0000000099")],
        "/jobs/jid0000000099",
        "/jobs/states/pending/05-jid0000000099",
    ),
    (
        &[Fault::DuplicateEntry],
        &[Make("/jobs/states/pending/07-jid0000000000", "")],
        &[Delete("/jobs/states/pending/07-jid0000000000")],
        "/jobs/jid0000000000",
        "/jobs/states/pending/07-jid0000000000",
    ),
    (
        &[Fault::OrphanEntry, Fault::DuplicateEntry],
        &[Make("/jobs/states/storing/05-jid0000000000", "")],
        &[Delete("/jobs/states/storing/05-jid0000000000")],
        "/jobs/jid0000000000",
        "/jobs/states/storing/05-jid0000000000",
    ),
    (
        &[Fault::MissingEntry],
        &[Delete("/jobs/states/pending/05-jid0000000000")],
        &[Make("/jobs/states/pending/05-jid0000000000", "")],
        "/jobs/jid0000000000",
        "/jobs/states/pending/05-jid0000000000",
    ),
    (
        &[Fault::MissingEntry],
        &[Set("/jobs/jid0000000001/priority", "7")],
        &[Set("/jobs/jid0000000001/priority", "5")],
        "/jobs/jid0000000001",
        "/jobs/states/estimating/07-jid0000000001",
    ),
    (
        &[Fault::DuplicateReference],
        &[Make("/batches/bid0000000000/states/batch-failed/jid0000000000", "")],
        &[Delete("/batches/bid0000000000/states/batch-failed/jid0000000000")],
        "/jobs/jid0000000000",
        "/batches/bid0000000000/states/batch-failed/jid0000000000",
    ),
    (
        &[Fault::MissingReference],
        &[Delete("/batches/bid0000000000/states/batch-processing/jid0000000000")],
        &[Make("/batches/bid0000000000/states/batch-processing/jid0000000000", "")],
        "/jobs/jid0000000000",
        "/batches/bid0000000000/states/batch-processing/jid0000000000",
    ),
    (
        &[Fault::MissingReference],
        &[Make("/batches/bid0000000000/states/batch-failed/jid0000000099", "")],
        &[Delete("/batches/bid0000000000/states/batch-failed/jid0000000099")],
        "/jobs/jid0000000099",
        "/batches/bid0000000000/states/batch-failed/jid0000000099",
    ),
    (
        &[Fault::UnloadableJob],
        &[Delete("/jobs/jid0000000003/space_needed")],
        &[Make("/jobs/jid0000000003/space_needed", "0")],
        "/jobs/jid0000000003",
        "/jobs/jid0000000003/space_needed",
    ),
    (
        &[Fault::UnloadableJob],
        &[Set("/jobs/jid0000000000/status", r#"{"status":"pending","retry_count":0}"#)],
        &[Set("/jobs/jid0000000000/status", PENDING)],
        "/jobs/jid0000000000",
        "/jobs/jid0000000000/status",
    ),
    (
        &[Fault::UnloadableJob],
        &[Set("/jobs/jid0000000000/status", r#"{"status":"Pending"}"#)],
        &[Set("/jobs/jid0000000000/status", PENDING)],
        "/jobs/jid0000000000",
        "/jobs/jid0000000000/status",
    ),
    (
        &[Fault::UnloadableJob],
        &[Set("/jobs/jid0000000000/status", r#"{"status":"Teleporting","retry_count":0}"#)],
        &[Set("/jobs/jid0000000000/status", PENDING)],
        "/jobs/jid0000000000",
        "/jobs/jid0000000000/status",
    ),
    (
        &[Fault::UnloadableJob],
        &[Make("/jobs/jid0000000004/metadata", "[]")],
        &[Delete("/jobs/jid0000000004/metadata")],
        "/jobs/jid0000000004",
        "/jobs/jid0000000004/metadata",
    ),
    (
        &[Fault::MissingReference, Fault::UnloadableJob],
        &[Set("/jobs/jid0000000000/bid", "bid0000000066")],
        &[Set("/jobs/jid0000000000/bid", "bid0000000000")],
        "/jobs/jid0000000000",
        "/jobs/jid0000000000",
    ),
    (
        &[Fault::UnloadableBatch],
        &[Set("/batches/bid0000000000/submission", "no json")],
        &[Set("/batches/bid0000000000/submission", r#"{"batchID":"uuid-0"}"#)],
        "/batches/bid0000000000",
        "/batches/bid0000000000/submission",
    ),
    (
        &[Fault::UnloadableBatch],
        &[
            Make("/batches/bid0000000007", ""),
            Make("/batches/bid0000000007/submission", "{}"),
            Make("/batches/bid0000000007/status", r#"{"status":"Held"}"#),
        ],
        &[Set("/batches/bid0000000007/status", r#"{"status":"Pending"}"#)],
        "/batches/bid0000000007",
        "/batches/bid0000000007/states",
    ),
    (
        &[Fault::UnloadableRequest],
        &[
            Make("/access/small/qid0000000000", ""),
            Make("/access/small/qid0000000000/status", r#"{"status":"Pending"}"#),
        ],
        &[Make("/access/small/qid0000000000/token", "{}")],
        "/access/small/qid0000000000",
        "/access/small/qid0000000000/token",
    ),
    (
        &[Fault::UnfinishedCreation],
        &[Make("/jobs/jid0000000050", "")],
        &[Delete("/jobs/jid0000000050")],
        "/jobs/jid0000000050",
        "/jobs/jid0000000050",
    ),
    (
        &[Fault::UnfinishedCreation],
        &[Make("/batches/bid0000000050", "")],
        &[Delete("/batches/bid0000000050")],
        "/batches/bid0000000050",
        "/batches/bid0000000050",
    ),
    (
        &[Fault::PriorityOutOfRange],
        &[
            Set("/jobs/jid0000000000/priority", "100"),
            Delete("/jobs/states/pending/05-jid0000000000"),
            Make("/jobs/states/pending/100-jid0000000000", ""),
        ],
        &[
            Set("/jobs/jid0000000000/priority", "5"),
            Make("/jobs/states/pending/05-jid0000000000", ""),
            Delete("/jobs/states/pending/100-jid0000000000"),
        ],
        "/jobs/jid0000000000",
        "/jobs/states/pending/100-jid0000000000",
    ),
    (
        &[Fault::LeakedLock],
        &[MakeEphemeral("/jobs/jid0000000009/lock")],
        &[Delete("/jobs/jid0000000009/lock")],
        "/jobs/jid0000000009",
        "/jobs/jid0000000009/lock",
    ),
    (
        &[Fault::LeakedLock],
        &[Make("/jobs/jid0000000003/lock", "")],
        &[Delete("/jobs/jid0000000003/lock")],
        "/jobs/jid0000000003",
        "/jobs/jid0000000003/lock",
    ),
    (
        &[Fault::LeakedLock],
        &[Make("/locks/inventory/ark_1_1", "")],
        &[Delete("/locks/inventory/ark_1_1")],
        "/locks/inventory/ark_1_1",
        "/locks/inventory/ark_1_1",
    ),
    (
        &[Fault::LeakedStorageLock],
        // The object of the job in Storing is being stored, and that of nobody is not.
        &[Make("/locks/storage/ark_1_5", ""), Make("/locks/storage/ark_1_99", "")],
        &[Delete("/locks/storage/ark_1_99"), Delete("/locks/storage/ark_1_5")],
        "/locks/storage/ark_1_99",
        "/locks/storage/ark_1_99",
    ),
    (
        &[Fault::DeletedBatchBlocksReporting],
        &[
            Make("/batches/bid0000000003", ""),
            Make("/batches/bid0000000003/submission", "{}"),
            Make("/batches/bid0000000003/status", r#"{"status":"Deleted"}"#),
            Make("/batches/bid0000000003/states", ""),
            Make("/batches/bid0000000003/states/batch-processing", ""),
        ],
        &[Set("/batches/bid0000000003/status", r#"{"status":"Completed"}"#)],
        "/batches/bid0000000003",
        "/batches/bid0000000003/states/batch-processing",
    ),
    (
        &[Fault::BatchWithoutEnd],
        &[Set("/batches/bid0000000003/status", r#"{"status":"Reporting"}"#)],
        &[Set("/batches/bid0000000003/status", r#"{"status":"Completed"}"#)],
        "/batches/bid0000000003",
        "/batches/bid0000000003/states/batch-processing",
    ),
    (
        &[Fault::BatchWithoutEnd],
        &[
            Delete("/batches/bid0000000003/states/batch-processing"),
            Set("/batches/bid0000000003/status", r#"{"status":"Failed"}"#),
        ],
        &[Set("/batches/bid0000000003/status", r#"{"status":"Completed"}"#)],
        "/batches/bid0000000003",
        "/batches/bid0000000003/states/batch-processing",
    ),
    (
        &[Fault::HeldCollectionBacklog],
        &[Make("/locks/collections/c0", "")],
        &[Delete("/locks/collections/c0")],
        "/locks/collections/c0",
        "/jobs/jid0000000000/status",
    ),
    (
        &[Fault::HeldCollectionBacklog],
        &[Delete("/locks/collections/c10")],
        &[Make("/locks/collections/c10", "")],
        "/locks/collections/c10",
        "/jobs/jid0000000010/status",
    ),
    (
        &[Fault::DanglingUuid],
        &[Make("/batch-uuids/u9", "bid0000000077")],
        &[Delete("/batch-uuids/u9")],
        "/batch-uuids/u9",
        "/batch-uuids/u9",
    ),
    (
        &[Fault::DanglingUuid],
        &[Delete("/batch-uuids/uuid-0")],
        &[Make("/batch-uuids/uuid-0", "bid0000000000")],
        "/batches/bid0000000000",
        "/batch-uuids/uuid-0",
    ),
    (
        &[Fault::RetriesExhausted],
        &[Set("/jobs/jid0000000009/status", r#"{"status":"Failed","retry_count":3}"#)],
        &[Set("/jobs/jid0000000009/status", r#"{"status":"Failed","retry_count":2}"#)],
        "/jobs/jid0000000009",
        "/jobs/jid0000000009/status",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_is_named_with_its_nodes_and_goes_when_it_is_mended() {
    let world = World::new("cases").await;
    let mirror = Mirror::start(&world, Limits::default()).await;
    assert_eq!(mirror.labels_after(TEN_MINUTES), [""; 0]);
    for (faults, make, mend, item, node) in CASES {
        let labels: Vec<_> = faults.iter().map(|fault| fault.label()).collect();
        let before = Timestamp::now();
        change(&world, make).await;
        eventually(LIMIT, &format!("{make:?} is {labels:?}"), async || mirror.labels_after(TEN_MINUTES) == labels)
            .await;
        for found in mirror.after(TEN_MINUTES) {
            assert_eq!(found.item.to_string(), *item);
            assert!(found.nodes.contains(&Path::parse(node)), "{found:?} names {node}");
            assert!(found.since.duration_since(before).as_secs_f64() > -1.0 && found.since <= Timestamp::now());
            assert_eq!((found.effect, found.remedy), (found.fault.effect(), found.fault.remedy()));
            assert!(found.how.ends_with('.'));
            assert_eq!(
                mirror.store.faults_of(&found.item, Timestamp::now(), None).map(|now| now.len() <= 2),
                Some(true)
            );
        }
        change(&world, mend).await;
        eventually(LIMIT, &format!("{make:?} is mended"), async || mirror.after(TEN_MINUTES).is_empty()).await;
    }
    let named: BTreeSet<_> = CASES.iter().flat_map(|(faults, ..)| faults.iter()).collect();
    let by_time = [Fault::StuckState, Fault::ForgottenPause, Fault::FolderNearLimit];
    assert_eq!(named.len() + by_time.len(), Fault::ALL.len(), "every fault is made here or below");
}

async fn found(mirror: &Mirror, seconds: i64, fault: Fault, item: &str) -> FoundFault {
    eventually_some(LIMIT, &format!("{fault} of {item}"), async || {
        mirror.after(seconds).into_iter().find(|found| found.fault == fault && found.item.to_string() == item)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_by_time_count_from_their_limit_on() {
    const HOUR: i64 = 3600;
    let world = World::new("time").await;
    let limits = Limits { folder_children: 13, ..Limits::default() };
    let mirror = Mirror::start(&world, limits).await;

    world.create("/locks/queue/ingest", "").await;
    found(&mirror, 25 * HOUR, Fault::ForgottenPause, "/locks/queue/ingest").await;
    assert!(!mirror.labels_after(23 * HOUR).contains(&"forgotten_pause"));
    assert!(!mirror.labels_after(30 * HOUR).contains(&"stuck_state"), "a paused queue is not stuck");
    world.delete("/locks/queue/ingest").await;

    let provisioning = "/jobs/states/provisioning";
    let stuck = found(&mirror, 7 * HOUR, Fault::StuckState, provisioning).await;
    assert_eq!((stuck.how, stuck.remedy), (Provisioning::NobodyLooks.how(), Provisioning::NobodyLooks.remedy()));
    assert!(stuck.nodes.contains(&Path::parse("/jobs/jid0000000002/status")));
    let stuck: Vec<_> = mirror.after(90 * 60).iter().map(|found| found.item.to_string()).collect();
    assert_eq!(stuck, ["/jobs/states/pending", "/jobs/states/estimating", "/jobs/states/notify"]);
    world.ephemeral("/jobs/jid0000000002/lock").await;
    eventually(LIMIT, "it is locked, and needs 1,000 bytes of 500", async || {
        let stuck = mirror.after(7 * HOUR).into_iter().find(|found| found.item.to_string() == provisioning);
        stuck.is_some_and(|found| found.how == Provisioning::WaitingForSpace.how())
    })
    .await;

    found(&mirror, 49 * HOUR, Fault::LeakedLock, "/jobs/jid0000000002").await;
    assert!(!mirror.labels_after(47 * HOUR).contains(&"leaked_lock"));

    world.batch(1, "Processing").await;
    world.ephemeral("/batches/bid0000000001/lock").await;
    found(&mirror, 5 * HOUR, Fault::BatchWithoutEnd, "/batches/bid0000000001").await;
    assert!(!mirror.labels_after(3 * HOUR).contains(&"batch_without_end"));

    world.job(12, "Pending").await;
    found(&mirror, 10, Fault::FolderNearLimit, "/jobs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_walk_finds_the_same_faults_since_the_same_time() {
    let world = World::new("walks").await;
    change(
        &world,
        &[
            Make("/jobs/jid0000000003/lock", ""),
            Set("/jobs/jid0000000009/status", r#"{"status":"Failed","retry_count":3}"#),
            Make("/locks/storage/ark_1_99", ""),
        ],
    )
    .await;
    world.set("/jobs/jid0000000008/status", &status("Deleted", 0)).await;
    let first = Mirror::start(&world, Limits::default()).await;
    let second = Mirror::start(&world, Limits::default()).await;
    let labels = ["orphan_entry", "missing_reference", "leaked_lock", "leaked_storage_lock", "retries_exhausted"];
    for mirror in [&first, &second] {
        eventually(LIMIT, "all are found", async || mirror.labels_after(TEN_MINUTES) == labels).await;
    }
    assert_eq!(first.after(TEN_MINUTES), second.after(TEN_MINUTES));
    let (_, stat) = world.client.get_data("/jobs/jid0000000008/status").await.unwrap();
    let orphan = &first.after(TEN_MINUTES)[0];
    assert_eq!(orphan.since.as_millisecond(), stat.mtime, "since its status contradicts it");
    // Nothing counts at once but what lasts by the znodes' own times.
    eventually(LIMIT, "they count by themselves after a while", async || {
        let summary = first.store.summary(Timestamp::now(), None).unwrap();
        summary.faults(Fault::OrphanEntry).count == 1 && summary.faults(Fault::LeakedLock).count == 1
    })
    .await;
}

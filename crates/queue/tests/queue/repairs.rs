//! Each fault is made in a healthy tree, repaired, and leaves that tree or exactly what is said.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use queuekeeper_queue::fault::{Fault, Limits};
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::record::{BatchWait, DaemonNote};
use queuekeeper_queue::{Error, Removal, Repair, RepairKind, RepairOptions};

use queuekeeper_testkit::queue::{World, borrowed, data};

mod cases;
mod tree;

use cases::{BEYOND_REPAIR, CASES, JOB, LARGE, PRIORITY, REFERENCE, STATUS};
use tree::Do::{Delete, Make, MakeEphemeral, Set};
use tree::{expected, found, healthy, spoil, timeless};

/// The jobs, batches and requests.
fn items(tree: &BTreeMap<String, String>) -> BTreeSet<&str> {
    let is_item = |path: &&str| matches!(Path::parse(path), Path::Job(_) | Path::Batch(_) | Path::Request(..));
    tree.keys().map(String::as_str).filter(is_item).collect()
}

/// An hour from now: all faults by age have reached their limit.
fn later() -> Timestamp {
    Timestamp::now() + SignedDuration::from_hours(1)
}

async fn plan(world: &World, fault: Fault, item: &str, now: Timestamp, even_if_locked: bool) -> Result<Repair, Error> {
    let limits = Limits { object_lock: std::time::Duration::from_mins(30), ..Limits::default() };
    let action = RepairOptions { limits: &limits, now, even_if_locked };
    let alone = sendable(world.queue.plan_repair(fault, &Path::parse(item), action)).await;
    // One of many is repaired as one alone is.
    let survey = sendable(world.queue.survey()).await.unwrap();
    let of_many = sendable(world.queue.plan_repair_with(fault, &Path::parse(item), action, &survey)).await;
    assert_eq!(alone.as_ref().map(operations), of_many.as_ref().map(operations), "{fault} of {item}");
    alone
}

/// A server plans in tasks that go from thread to thread.
fn sendable<F: Future + Send>(future: F) -> F {
    future
}

/// In no order.
fn operations(repair: &Repair) -> BTreeSet<String> {
    repair.transaction.operations().iter().map(ToString::to_string).collect()
}

fn is_nothing_to_repair(result: &Result<Repair, Error>) -> bool {
    matches!(result, Err(Error::NotShown { .. } | Error::Invalid { .. } | Error::Missing(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_repairable_fault_is_repaired_and_nothing_else_is_touched() {
    let nodes = healthy();
    let mut world = World::new(&borrowed(&nodes)).await;
    let whole = found(&world).await;
    for (fault, item, made, left) in CASES {
        let case = format!("{fault} of {item} by {made:?}");
        let early = plan(&world, *fault, item, later(), true).await;
        assert!(is_nothing_to_repair(&early), "{case}, before it is made: {early:?}");
        spoil(&world, made).await;
        let spoiled = world.tree().await;
        let repair = plan(&world, *fault, item, later(), false).await.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(world.tree().await, spoiled, "{case}: a plan writes nothing");
        let before = data(&spoiled);
        world.queue.commit_repair(&repair).await.unwrap_or_else(|error| panic!("{case}: {error}"));
        let after = found(&world).await;
        assert_eq!(after, expected(&whole, left), "{case}");
        assert_eq!(items(&after), items(&before), "{case}: no job, batch or request is removed");

        assert!(repair.summary.ends_with('.'), "{case}: {}", repair.summary);
        // What is not kept is said: the data of what is gone, and of what is replaced by something that does not hold
        // it.
        let lost: BTreeMap<String, String> =
            repair.loses.iter().map(|(path, data)| (path.to_string(), String::from_utf8_lossy(data).into())).collect();
        for (path, data) in &before {
            let kept = after
                .get(path)
                .is_some_and(|now| *now == timeless(path, data) || data.trim() == now || data.starts_with('{'));
            assert_eq!(lost.get(path), (!kept && !data.is_empty()).then_some(data), "{case}: {path}");
        }
        let again = plan(&world, *fault, item, later(), true).await;
        assert!(is_nothing_to_repair(&again), "{case}, repaired: {again:?}");
        if after != whole {
            world = World::new(&borrowed(&nodes)).await;
        }
    }
    let repaired = |fault: &Fault| CASES.iter().any(|case| case.0 == *fault);
    assert!(
        Fault::ALL
            .iter()
            .all(|fault| repaired(fault) != matches!(fault.repair_kind(), RepairKind::Fix | RepairKind::Another(_)))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_or_changed_or_still_young_is_not_repaired() {
    let world = World::new(&borrowed(&healthy())).await;
    // The object of the job in Storing is being stored, though the queue has lost the job's entry.
    spoil(&world, &[Make("/locks/storage/ark_1_3", ""), Delete("/jobs/states/storing/05-jid0000000003")]).await;
    let before = world.tree().await;
    let refused = plan(&world, Fault::LeakedStorageLock, "/locks/storage/ark_1_3", later(), true).await;
    assert!(is_nothing_to_repair(&refused), "{refused:?}");
    let error = plan(&world, Fault::RetriesExhausted, JOB, later(), true).await.unwrap_err();
    assert!(
        error.to_string().contains("retries_exhausted cannot be repaired by writing values; its fix is “Read its"),
        "{error}"
    );
    assert_eq!(world.tree().await, before);

    // A daemon at work is not disturbed, unless that is requested.
    spoil(&world, &[Make("/jobs/states/storing/77-jid0000000001", ""), MakeEphemeral("/jobs/jid0000000001/lock")])
        .await;
    let held = world.tree().await;
    let error = plan(&world, Fault::OrphanEntry, JOB, later(), false).await.unwrap_err();
    assert!(error.to_string().contains("is held by session"), "{error}");
    let repair = plan(&world, Fault::OrphanEntry, JOB, later(), true).await.unwrap();
    assert_eq!(world.tree().await, held);
    // The state that the plan saw is not the job's any more: nothing is done.
    spoil(&world, &[Set("/jobs/jid0000000001/status", r#"{"status":"Storing","retry_count":0}"#)]).await;
    let moved = world.tree().await;
    let error = world.queue.commit_repair(&repair).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error}");
    assert_eq!(world.tree().await, moved);

    // The entry of a UUID lies beside its batch, and no one who works on that writes it.
    spoil(&world, &[Delete("/batch-uuids/uuid-0"), MakeEphemeral("/batches/bid0000000000/lock")]).await;
    let repair = plan(&world, Fault::DanglingUuid, "/batches/bid0000000000", later(), false).await.unwrap();
    world.queue.commit_repair(&repair).await.unwrap();
    assert!(world.exists("/batch-uuids/uuid-0").await);
    spoil(&world, &[Delete("/batches/bid0000000000/lock")]).await;

    // What is written under another's lock checks what was read, and what is purged was shown.
    spoil(&world, &[Set(STATUS, r#"{"status":"pending"}"#)]).await;
    let error = plan(&world, Fault::UnloadableJob, JOB, later(), false).await.unwrap_err();
    assert!(error.to_string().contains("is held by session"), "{error}");
    let repair = plan(&world, Fault::UnloadableJob, JOB, later(), true).await.unwrap();
    world.queue.commit_repair(&repair).await.unwrap();
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
    let action = RepairOptions { limits: &Limits::default(), now, even_if_locked };
    sendable(world.queue.plan_purge_broken(&Path::parse(item), action)).await
}

async fn remove(world: &World, removal: &Removal) -> Result<(), Error> {
    for chunk in &removal.chunks {
        world.queue.commit(&chunk.transaction).await?;
    }
    Ok(())
}

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
            let created = Timestamp::from_millisecond(world.stat(item).await.ctime).unwrap();
            let young = purge(&world, item, created, true).await;
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
    for item in ["/batches/bid0000000001", "/access/small/qid0000000000"] {
        let path = format!("{item}/status");
        world.raw.set_data(&path, br#"{"status":"deleted"}"#, None).await.unwrap();
        let error = purge(&world, item, later(), true).await.unwrap_err();
        assert!(error.to_string().contains("which can be repaired"), "{item}: {error}");
    }
    spoil(&world, &[Set("/batches/bid0000000000/submission", "no json")]).await;
    let error = plan(&world, Fault::UnloadableBatch, "/batches/bid0000000000", later(), true).await.unwrap_err();
    assert!(error.to_string().contains("submission is not JSON"), "{error}");
    let error = purge(&world, "/batches/bid0000000000", later(), true).await.unwrap_err();
    assert!(error.to_string().contains("/jobs/jid0000000001: it is Pending, and only what is"), "{error}");
    spoil(&world, &[Set("/batches/bid0000000000/status", LARGE)]).await;
    let error = plan(&world, Fault::UnloadableBatch, "/batches/bid0000000000", later(), true).await.unwrap_err();
    assert!(error.to_string().contains("status holds 17408 bytes"), "{error}");
    let submission = Set("/batches/bid0000000000/submission", r#"{"batchID":"uuid-0"}"#);
    spoil(&world, &[submission, Set("/batch-uuids/uuid-0", LARGE)]).await;
    for item in ["/batch-uuids/uuid-0", "/batches/bid0000000000"] {
        let error = plan(&world, Fault::DanglingUuid, item, later(), true).await.unwrap_err();
        assert!(error.to_string().contains("/batch-uuids/uuid-0: it holds 17408 bytes"), "{item}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_content_is_removed_by_no_repair_whatever_its_name() {
    let mut nodes = healthy();
    nodes.push(("/jobs/jid77777".to_owned(), String::new()));
    nodes.push(("/batches/bid99999".to_owned(), String::new()));
    nodes.push(("/batch-uuids/u9".to_owned(), "bid99999".to_owned()));
    nodes.push(("/jobs/states/pending/00".to_owned(), String::new()));
    nodes.push(("/jobs/states/pending/00/below".to_owned(), String::new()));
    let world = World::new(&borrowed(&nodes)).await;
    let before = world.tree().await;
    for (fault, item, why) in [
        (Fault::MalformedName, "/jobs/jid77777", "delete it by hand"),
        (Fault::MalformedName, "/batches/bid99999", "delete it by hand"),
        (Fault::MalformedName, "/jobs/states/pending/00", "it has children"),
        (Fault::DanglingUuid, "/batch-uuids/u9", "does not have the fault dangling_uuid"),
    ] {
        let error = plan(&world, fault, item, later(), true).await.unwrap_err();
        assert!(error.to_string().contains(why), "{item}: {error}");
    }
    // A batch that has jobs is not acquired anew: they would be created twice.
    let folder = "/batches/bid0000000000/states/batch-processing";
    let gone = [REFERENCE, "/batches/bid0000000000/states/batch-processing/jid0000000003", folder].map(Delete);
    spoil(&world, &gone).await;
    spoil(&world, &[Set("/batches/bid0000000000/status", r#"{"status":"Processing"}"#)]).await;
    let error = plan(&world, Fault::UnfinishedCreation, "/batches/bid0000000000", later(), true).await.unwrap_err();
    assert!(error.to_string().contains("it has jobs already"), "{error}");
    assert_eq!(world.tree().await.len() + gone.len(), before.len(), "nothing else is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_has_folders_of_jobs_or_jobs_that_name_it_is_not_acquired_anew() {
    const BATCH: &str = "/batches/bid0000000001";
    let pending = Set("/batches/bid0000000001/status", r#"{"status":"Pending"}"#);
    let folder = "/batches/bid0000000001/states/batch-deleted";
    let job = Set("/jobs/jid0000000001/bid", "bid0000000001");
    for (made, is_refused) in
        [(&[pending, Delete(folder)][..], false), (&[pending], true), (&[pending, Delete(folder), job], true)]
    {
        let world = World::new(&borrowed(&healthy())).await;
        spoil(&world, made).await;
        let found = plan(&world, Fault::UnfinishedCreation, BATCH, later(), true).await;
        let is_reported = |error: &Error| error.to_string().contains("it has jobs already");
        assert_eq!(
            (found.is_err(), found.as_ref().err().is_some_and(is_reported)),
            (is_refused, is_refused),
            "{found:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_being_stored_by_whichever_znode_of_its_job_names_it() {
    let identifiers = Set("/jobs/jid0000000003/identifiers", r#"{"primary_id":"ark:/1/9"}"#);
    let configuration = Set("/jobs/jid0000000003/configuration", r#"{"profile":"demo","objectID":"ark:/1/9"}"#);
    for made in [&[][..], &[identifiers], &[configuration], &[identifiers, configuration]] {
        let world = World::new(&borrowed(&healthy())).await;
        spoil(&world, &[Make("/locks/storage/ark_1_9", "")]).await;
        spoil(&world, made).await;
        let found = plan(&world, Fault::LeakedStorageLock, "/locks/storage/ark_1_9", later(), true).await;
        assert_eq!(is_nothing_to_repair(&found), !made.is_empty(), "{made:?}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_a_process_of_ours_gave_back_is_not_taken_for_one_that_was_left() {
    let note = |batch| DaemonNote {
        host: "worker1".to_owned(),
        pid: 7,
        version: "0.1.0".to_owned(),
        since: Timestamp::now(),
        volume: "u".to_owned(),
        workers: BTreeMap::new(),
        mail: None,
        waits: vec![BatchWait { batch, since: Timestamp::now(), attempts: 1, full: None, why: "no answer".to_owned() }],
    };
    let folder = Delete("/batches/bid0000000001/states/batch-deleted");
    let begun = [Set("/batches/bid0000000001/status", r#"{"status":"Processing"}"#), folder];
    for (given_back, is_expanding, is_fine) in [(1, true, true), (2, true, false), (1, false, false)] {
        let world = World::new(&borrowed(&healthy())).await;
        spoil(&world, &begun).await;
        world.make(&["/queuekeeper", "/queuekeeper/daemons", "/queuekeeper/expansions"].map(|path| (path, ""))).await;
        let note = String::from_utf8(note(BatchId::new(given_back)).encode()).unwrap();
        world.make(&[("/queuekeeper/daemons/2a", &note)]).await;
        if is_expanding {
            world.make(&[("/queuekeeper/expansions/bid0000000001", "{}")]).await;
        }
        let found = plan(&world, Fault::UnfinishedCreation, "/batches/bid0000000001", later(), false).await;
        assert_eq!(matches!(found, Err(Error::NotShown { .. })), is_fine, "{given_back} {is_expanding}: {found:?}");
        assert_eq!(found.is_ok(), !is_fine);
    }
}

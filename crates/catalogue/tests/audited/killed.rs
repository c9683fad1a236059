//! What the audit log says after a kill.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use queuekeeper_store::audited::Resolved;
use queuekeeper_testkit::postgres::Postgres;
use tempfile::TempDir;

use super::child::{run_for, run_to_step};
use super::setup::AuditedCatalogue;

/// One server for all tests of the binary; it ends with the process.
static SERVER: LazyLock<Postgres> = LazyLock::new(Postgres::start);

/// The changes that a child makes which nothing kills.
const CHANGES: usize = 9;

/// What a child calls its audit log for: nine intents and settlements, three contents, each with a step before and
/// after.
const STEPS: u64 = (2 * CHANGES as u64 + 3) * 2;

async fn on_sqlite() -> (AuditedCatalogue, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("catalogue.db").display());
    (place(&directory, url).await, directory)
}

async fn on_postgres() -> (AuditedCatalogue, TempDir) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let directory = tempfile::tempdir().unwrap();
    let url = SERVER.create(&format!("audited_{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    (place(&directory, url).await, directory)
}

async fn place(directory: &TempDir, url: String) -> AuditedCatalogue {
    let top = directory.path().join("store");
    std::fs::create_dir(&top).unwrap();
    let place = AuditedCatalogue::open(top, url).await;
    place.catalogue().await.close().await;
    place
}

/// Kills a child at a step, resolves what it left, and returns how many changes it made.
async fn changes_until(place: &AuditedCatalogue, step: u64) -> usize {
    let context = format!("killed at step {step}");
    let status = run_to_step(place, step).await;
    assert_eq!(status.success(), step > STEPS, "{context}: {status}");
    let before = place.events().await.len();
    let resolved = place.resolve().await;
    assert_eq!((resolved.observed, resolved.failed), (0, 0), "{context}");
    let events = place.assert_recorded(&context).await.len();
    assert_eq!(u64::try_from(events - before).unwrap(), resolved.done, "{context}");
    assert_eq!(place.resolve().await, Resolved::default(), "{context}");
    events
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_at_any_step_leaves_what_is_recorded_and_no_more_on_sqlite() {
    let mut changes = Vec::new();
    for step in 1..=STEPS + 1 {
        let (place, _directory) = on_sqlite().await;
        changes.push(changes_until(&place, step).await);
    }
    assert!(changes.is_sorted(), "{changes:?}");
    changes.dedup();
    assert_eq!(changes, (0..=CHANGES).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_at_any_step_leaves_what_is_recorded_and_no_more_on_postgres() {
    // Of each five steps one: the rest is the same code.
    for step in (1..=STEPS + 1).step_by(5) {
        let (place, _directory) = on_postgres().await;
        changes_until(&place, step).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_killed_at_any_instant_leave_what_is_recorded_and_no_more() {
    let (place, _directory) = on_sqlite().await;
    for round in 0..10 {
        run_for(&place, Duration::from_millis(3 * round)).await;
        let resolved = place.resolve().await;
        assert_eq!((resolved.observed, resolved.failed), (0, 0), "round {round}");
        place.assert_recorded(&format!("round {round}")).await;
    }
}

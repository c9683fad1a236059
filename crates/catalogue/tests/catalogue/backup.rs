//! Copies of a catalogue that is in use.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use queuekeeper_catalogue::{Catalogue, ErrorKind};
use queuekeeper_store::audit::{AuditSink as _, Change};

use super::support::{LEASE, World, done, intent};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_made_while_others_write_is_consistent_and_opens() {
    let world = World::sqlite().await;
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.db");
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (catalogue, is_over) = (world.catalogue.clone(), Arc::clone(&is_over));
        async move {
            let mut number = 0u32;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                let intent = intent(&number.to_be_bytes());
                catalogue.begin(&intent, LEASE).await.unwrap();
                catalogue.settle(&intent, &done(Change::Add, 1)).await.unwrap();
            }
        }
    });
    let mut last = 0;
    for _ in 0..5 {
        queuekeeper_testkit::wait::eventually(LEASE, "another event", async || {
            !world.catalogue.events_after(last, 1).await.unwrap().is_empty()
        })
        .await;
        world.catalogue.backup(&copy).await.unwrap();
        let restored = Catalogue::open(&format!("sqlite:{}", copy.display())).await.unwrap();
        assert_eq!(restored.id(), world.catalogue.id());
        assert_eq!(restored.check().await.unwrap(), []);
        let newest = restored.events(&queuekeeper_catalogue::audit::Events::All, None, 1).await.unwrap();
        assert!(newest[0].seq > last);
        last = newest[0].seq;
        restored.close().await;
    }
    is_over.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "something is left beside the copy");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_does_not_replace_the_catalogue_and_one_that_fails_leaves_the_earlier_one() {
    let world = World::sqlite().await;
    let itself = world.url.trim_start_matches("sqlite:");
    let error = world.catalogue.backup(itself.as_ref()).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Refused(_)), "{error}");
    let missing = std::path::Path::new(itself).with_file_name("missing").join("copy.db");
    let error = world.catalogue.backup(&missing).await.unwrap_err();
    let expected = format!("the backup {} cannot be written: No such file", missing.display());
    assert!(error.to_string().contains(&expected), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn for_postgres_its_own_tool_is_named() {
    let world = World::postgres().await;
    let error = world.catalogue.backup("/nowhere/copy.db".as_ref()).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Unsupported(_)) && error.to_string().contains("pg_dump"), "{error}");
}

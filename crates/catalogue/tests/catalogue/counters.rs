//! Figures by deltas.

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::counters::Counter;
use queuekeeper_store::Digests;
use queuekeeper_store::audit::{AuditSink as _, Change, Intent, Settlement};
use tokio::sync::watch;

use super::inventory::{files, version};
use super::support::{LEASE, World, done, intent, on_both, subject};

async fn change(catalogue: &Catalogue, store: &str, key: &[u8], settlement: &Settlement) {
    let intent = Intent { subject: subject(store, "space-a", key), ..intent(key) };
    catalogue.begin(&intent, LEASE).await.unwrap();
    catalogue.settle(&intent, settlement).await.unwrap();
}

async fn figure(world: &World, counter: Counter, scope: &str) -> i64 {
    let figures = world.catalogue.counters().await.unwrap();
    figures.get(&(counter, scope.to_owned())).copied().unwrap_or(0)
}

fn deleted() -> Settlement {
    Settlement::Done { change: Change::Delete, etag: None, size: None, digests: Digests::default() }
}

on_both! {
    async fn content_is_counted_through_every_change(world: World) {
        let catalogue = &world.catalogue;
        for (settlement, items, bytes) in [
            (done(Change::Add, 10), 1, 10),
            (done(Change::Update, 7), 1, 7),
            (Settlement::NotDone, 1, 7),
            (deleted(), 0, 0),
            (deleted(), 0, 0),
            (done(Change::Copy, 5), 1, 5),
            (Settlement::Done { change: Change::Properties, etag: None, size: None, digests: Digests::default() }, 1, 5),
        ] {
            change(catalogue, "main", b"a", &settlement).await;
            assert_eq!(figure(&world, Counter::ContentItems, "main").await, items, "{settlement:?}");
            assert_eq!(figure(&world, Counter::ContentBytes, "main").await, bytes, "{settlement:?}");
        }
        change(catalogue, "replica", b"a", &done(Change::Add, 9)).await;
        assert_eq!(figure(&world, Counter::ContentBytes, "replica").await, 9);
        assert_eq!(figure(&world, Counter::AuditEvents, "main").await, 6);
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn folding_changes_no_figure_and_leaves_no_delta(world: World) {
        let catalogue = &world.catalogue;
        for round in 0..3 {
            catalogue.record_version(&version(&format!("ark:/99999/{round}"), 1), files(5)).await.unwrap();
            let before = catalogue.counters().await.unwrap();
            assert!(catalogue.fold().await.unwrap() > 0);
            assert_eq!(catalogue.counters().await.unwrap(), before);
            assert_eq!(world.number("SELECT COUNT(*) FROM counter_deltas").await, 0);
            assert_eq!(catalogue.fold().await.unwrap(), 0);
        }
        assert_eq!(figure(&world, Counter::Objects, "collection").await, 3);
        assert_eq!(figure(&world, Counter::Versions, "collection").await, 3);
        assert_eq!(figure(&world, Counter::Files, "collection").await, 15);
        assert_eq!(figure(&world, Counter::FileBytes, "collection").await, 30);
    }

    async fn with_20_connections_and_two_folders_the_sum_is_exact_at_every_instant(world: World) {
        /// Zero, as of one instant.
        const DEVIATION: &str = "SELECT (SELECT COUNT(*) FROM audit_log)
            - (SELECT COALESCE(SUM(value), 0) FROM counters WHERE name = 'audit_events')
            - (SELECT COALESCE(SUM(delta), 0) FROM counter_deltas WHERE name = 'audit_events')";
        // A look may take as long as many changes: the writers wait for one now and then.
        let looks = watch::Sender::new(0_u64);
        let writers = (0..20u8).map(|writer| {
            let (catalogue, mut looks) = (world.catalogue.clone(), looks.subscribe());
            tokio::spawn(async move {
                for round in 0..10u8 {
                    drop(looks.wait_for(|looks| *looks >= u64::from(round) / 2).await.unwrap());
                    change(&catalogue, "main", &[writer + 1], &done(Change::Add, round)).await;
                }
            })
        });
        let writers = futures::future::join_all(writers.collect::<Vec<_>>());
        let folders = (0..2).map(|_| {
            let catalogue = world.catalogue.clone();
            tokio::spawn(async move {
                loop {
                    catalogue.fold().await.unwrap();
                    tokio::task::yield_now().await;
                }
            })
        });
        let folders = folders.collect::<Vec<_>>();
        tokio::pin!(writers);
        loop {
            tokio::select! {
                done = &mut writers => break done.into_iter().for_each(Result::unwrap),
                deviation = world.number(DEVIATION) => {
                    assert_eq!(deviation, 0);
                    looks.send_modify(|looks| *looks += 1);
                }
            }
        }
        folders.iter().for_each(tokio::task::JoinHandle::abort);
        assert!(*looks.borrow() > 3);
        assert_eq!(figure(&world, Counter::AuditEvents, "main").await, 200);
        assert_eq!(figure(&world, Counter::ContentItems, "main").await, 20);
        assert_eq!(figure(&world, Counter::ContentBytes, "main").await, 20 * 9);
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }
}

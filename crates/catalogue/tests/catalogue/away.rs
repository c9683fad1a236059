//! Databases that are away, locked, read-only or full, and that come back.

use std::time::Duration;

use queuekeeper_catalogue::audit::Events;
use queuekeeper_catalogue::{Catalogue, ErrorKind};
use queuekeeper_store::audit::{AuditSink as _, Change, SinkError};
use queuekeeper_testkit::postgres::Postgres;
use queuekeeper_testkit::proxy::{Newcomers, Proxy};
use queuekeeper_testkit::wait::eventually;
use sqlx::{Connection as _, Executor as _, SqliteConnection};

use super::support::{LEASE, SERVER, World, done, intent, new_postgres_url};

const LIMIT: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_server_was_killed_and_is_back_the_same_catalogue_goes_on_and_has_all_that_was_settled() {
    let mut server = Postgres::start();
    let catalogue = Catalogue::open(&server.create("killed")).await.unwrap();
    let (before, during) = (intent(b"before"), intent(b"during"));
    for intent in [&before, &during] {
        catalogue.begin(intent, LEASE).await.unwrap();
    }
    catalogue.settle(&before, &done(Change::Add, 1)).await.unwrap();
    server.kill();
    let error = catalogue.counters().await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().lines().count() == 1, "{error}");
    let refused = catalogue.settle(&during, &done(Change::Add, 2)).await;
    assert!(matches!(&refused, Err(SinkError::Unavailable(text)) if !text.contains(server.password())), "{refused:?}");
    server.restart();
    eventually(LIMIT, "settled after the restart", async || {
        catalogue.settle(&during, &done(Change::Add, 2)).await.is_ok()
    })
    .await;
    let events = catalogue.events_after(0, 10).await.unwrap();
    assert_eq!(events.iter().map(|event| event.intent).collect::<Vec<_>>(), [before.id, during.id]);
    assert_eq!(catalogue.check().await.unwrap(), []);
    catalogue.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_are_replaced() {
    let database = new_postgres_url();
    let proxy = Proxy::start(SERVER.port()).await;
    let port = proxy.connect_string().rsplit_once(':').unwrap().1.parse().unwrap();
    let catalogue = Catalogue::open(&SERVER.url_at(port, database.rsplit_once('/').unwrap().1)).await.unwrap();
    // Several connections, so that more than one is dead afterwards.
    futures::future::join_all((0..5).map(|_| catalogue.counters())).await;
    for newcomers in [Newcomers::Close, Newcomers::Refuse] {
        proxy.cut(newcomers);
        let error = catalogue.counters().await.unwrap_err();
        assert!(error.is_temporary(), "{error}");
        proxy.restore();
        eventually(LIMIT, "it goes on", async || catalogue.counters().await.is_ok()).await;
        let change = intent(b"a");
        // A connection is given back behind the back of its user: a dead one may still come.
        let is_done = |outcome: Result<(), SinkError>| match outcome {
            Ok(()) => true,
            Err(SinkError::Unavailable(_)) => false,
            Err(error) => panic!("{error}"),
        };
        eventually(LIMIT, "it begins", async || is_done(catalogue.begin(&change, LEASE).await.map(drop))).await;
        let settled = done(Change::Add, 1);
        eventually(LIMIT, "it settles", async || is_done(catalogue.settle(&change, &settled).await.map(drop))).await;
    }
    assert_eq!(catalogue.events(&Events::All, None, 10).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_dropped_half_way_leaves_nothing_and_blocks_no_other() {
    for world in [World::sqlite().await, World::postgres().await] {
        for micros in (0..4000).step_by(400) {
            let change = intent(b"a");
            let whole = async {
                world.catalogue.begin(&change, LEASE).await.unwrap();
                world.catalogue.settle(&change, &done(Change::Add, 1)).await.unwrap();
            };
            let _dropped = tokio::time::timeout(Duration::from_micros(micros), whole).await;
            let after = intent(b"b");
            world.catalogue.begin(&after, LEASE).await.unwrap();
            world.catalogue.settle(&after, &done(Change::Add, 1)).await.unwrap();
            if world.number("SELECT COUNT(*) FROM intents").await > 0 {
                world.catalogue.settle(&change, &done(Change::Add, 1)).await.unwrap();
            }
        }
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_another_process_holds_is_waited_for_and_then_an_error_that_is_temporary() {
    let world = World::sqlite().await;
    let mut other = SqliteConnection::connect(&world.url).await.unwrap();
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    // Reading goes on meanwhile.
    assert_eq!(world.catalogue.events(&Events::All, None, 1).await.unwrap(), []);
    let change = intent(b"a");
    let begun = world.catalogue.begin(&change, LEASE);
    let released = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        other.execute("COMMIT").await.unwrap();
    };
    let (begun, ()) = tokio::join!(begun, released);
    begun.unwrap();
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let error = world.catalogue.fold().await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Locked) && error.is_temporary(), "{error}");
    other.execute("COMMIT").await.unwrap();
    world.catalogue.fold().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_database_says_so() {
    let world = World::postgres().await;
    let name = world.url.rsplit_once('/').unwrap().1;
    SERVER.sql("postgres", &format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    // As a standby does, it answers queries.
    let standby = Catalogue::open(&world.url).await.unwrap();
    assert_eq!(standby.id(), world.catalogue.id());
    let error = standby.fold().await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::ReadOnly), "{error}");
    let error = Catalogue::probe(&world.url).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::ReadOnly), "{error}");
    // When one wants them most.
    assert_eq!(Catalogue::open_as_is(&world.url).await.unwrap().check().await.unwrap(), []);
}

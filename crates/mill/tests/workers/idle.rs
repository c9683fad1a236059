//! A mill without work leaves the server alone, and hears at once when there is some.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use queuekeeper_catalogue::Catalogue;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::mail::ReportMail;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_mill::policy::{PolicySource, StoreId};
use queuekeeper_mill::run::{Mill, MillSettings};
use queuekeeper_store::store::{Item, Put};
use queuekeeper_store::{Audited, DirectoryStore, Store, StoreName};
use queuekeeper_testkit::postgres::Postgres;
use queuekeeper_testkit::wait::eventually;
use tokio_util::sync::CancellationToken;

/// How long the server counts a transaction before it shows it, at most.
const SHOWN_AFTER: Duration = Duration::from_secs(12);

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(15);

/// How long after its start a mill looks by itself again, at the earliest.
const OWN_LOOK: Duration = Duration::from_mins(1);

/// How long the copy of what the mill hears of takes at most.
const AT_ONCE: Duration = Duration::from_secs(20);

/// How long anything may take.
const LIMIT: Duration = Duration::from_mins(3);

/// How many mills a busy machine may hold up before they can be judged.
const TRIALS: usize = 3;

/// How many transactions there were in a database, by a look from another one.
fn transactions(server: &Postgres) -> i64 {
    let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'mill'";
    server.query("postgres", sql).trim().parse().unwrap()
}

/// Judges a mill by what it does before it looks by itself; the answer is whether there was time enough for that.
async fn is_judged() -> bool {
    let (server, directory) = (Postgres::start(), tempfile::tempdir().unwrap());
    let url = server.create("mill");
    let (main, replica): (StoreName, StoreName) = ("main".parse().unwrap(), "replica".parse().unwrap());
    let open = async |name: &StoreName| {
        let top = directory.path().join(name.as_str());
        std::fs::create_dir_all(&top).unwrap();
        Arc::new(DirectoryStore::open(name.clone(), top).await.unwrap()) as Arc<dyn Store>
    };
    let policies = directory.path().join("policies");
    std::fs::create_dir(&policies).unwrap();
    std::fs::write(policies.join("duplication-accounts.json"), r#"["one"]"#).unwrap();
    let policy = r#"{"defaultPolicies": [{"srcStoreId": "1", "destStoreId": "2"}]}"#;
    std::fs::write(policies.join("one-duplication-policy.json"), policy).unwrap();
    let ids = [("1", &main), ("2", &replica)].map(|(id, name)| (StoreId(id.to_owned()), name.clone()));
    let account = Account { name: "one".to_owned(), stores: ids.into(), prefix: None, ..Account::default() };
    let (catalogue, mut stores) = (Catalogue::open(&url).await.unwrap(), BTreeMap::<_, Arc<dyn Store>>::new());
    for name in [&main, &replica] {
        let store = open(name).await;
        let capabilities = store.probe().await.unwrap();
        stores.insert(name.clone(), Arc::new(Audited::new(store, &capabilities, Arc::new(catalogue.clone()), "mill")));
    }
    let mill = Mill {
        catalogue: catalogue.clone(),
        accounts: BTreeMap::from([("one".to_owned(), account)]),
        source: PolicySource::Directory(policies),
        stores,
        settings: MillSettings::default(),
        name: "worker-1".to_owned(),
        metrics: MillMetrics::default(),
        mail: ReportMail::default(),
    };
    let stop = CancellationToken::new();
    let started = Instant::now();
    let running = tokio::spawn(mill.run(stop.clone()));
    // Another process, with connections of its own.
    let other = Catalogue::open(&url).await.unwrap();
    let (bare, copy) = (open(&main).await, open(&replica).await);
    let capabilities = bare.probe().await.unwrap();
    let audited = Audited::new(bare, &capabilities, Arc::new(other.clone()), "ada");
    let space = "theses".parse().unwrap();
    audited.create_space(&space).await.unwrap();
    // How long after the start of the mill an item is stored, and copied.
    let store = async |key: &str| {
        let item = Item::new(space.clone(), key.parse().unwrap());
        audited.put(&item, stream::iter([Ok(Bytes::from_static(b"text"))]).boxed(), Put::default()).await.unwrap();
        let stored = started.elapsed();
        let is_there = async || copy.head(&item).await.ok().flatten().is_some();
        eventually(LIMIT, "it is copied", is_there).await;
        (stored, started.elapsed())
    };
    store("first").await;
    tokio::time::sleep(SHOWN_AFTER).await;
    let before = transactions(&server);
    tokio::time::sleep(IDLE).await;
    let after = transactions(&server);
    let mut is_judged = started.elapsed() < OWN_LOOK;
    assert!(after == before || !is_judged, "{} transactions", after - before);
    if is_judged {
        let (stored, copied) = store("second").await;
        is_judged = stored + AT_ONCE < OWN_LOOK;
        assert!(copied < OWN_LOOK || !is_judged, "stored after {stored:?}, copied after {copied:?}");
    }
    stop.cancel();
    running.await.unwrap();
    is_judged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mill_without_work_asks_nothing_of_the_server_and_copies_at_once_what_another_process_stores() {
    for _ in 0..TRIALS {
        if Box::pin(is_judged()).await {
            return;
        }
    }
    panic!("{TRIALS} mills took too long to be judged: the machine is too busy, or they hear of nothing");
}

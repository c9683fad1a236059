//! Two stores of an account that are not the same yet.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use queuekeeper_catalogue::Catalogue;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::mail::ReportMail;
use queuekeeper_mill::duplicate::ASIDE;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_mill::policy::{PolicySource, StoreId};
use queuekeeper_mill::run::{Mill, MillSettings};
use queuekeeper_store::store::{Item, Put, UserProperties};
use queuekeeper_store::{Audited, DirectoryStore, Key, Store, StoreName};
use queuekeeper_testkit::sqlite;

const STORES: [&str; 2] = ["main", "replica"];

/// The database, in the directory of a world.
pub(super) fn database(directory: &Path) -> std::path::PathBuf {
    directory.join("catalogue.db")
}

fn item(key: &str) -> Item {
    Item::new("account1.theses".parse().unwrap(), Key::new(key.as_bytes()).unwrap())
}

/// The mill of a world, as a process has it that was just started.
pub(super) async fn mill(directory: &Path) -> Mill {
    let catalogue = Catalogue::open(&format!("sqlite:{}", database(directory).display())).await.unwrap();
    let mut stores = BTreeMap::<StoreName, Arc<dyn Store>>::new();
    for name in STORES {
        let name: StoreName = name.parse().unwrap();
        let store = DirectoryStore::open(name.clone(), directory.join(name.as_str())).await.unwrap();
        let capabilities = store.probe().await.unwrap();
        let audited = Audited::new(Arc::new(store), &capabilities, Arc::new(catalogue.clone()), "mill");
        let audited = audited.with_owned([ASIDE.parse().unwrap()]);
        audited.resolve_left().await.unwrap();
        stores.insert(name, Arc::new(audited));
    }
    let ids = STORES.iter().enumerate().map(|(at, name)| (StoreId((at + 1).to_string()), name.parse().unwrap()));
    let account = Account {
        name: "account1".to_owned(),
        stores: ids.collect(),
        prefix: Some("account1".to_owned()),
        ..Account::default()
    };
    // A loop that looks at everything sees other properties, too.
    let settings =
        MillSettings { workers: 2, delete_after: Duration::ZERO, thorough_every: 1, ..MillSettings::default() };
    Mill {
        catalogue,
        accounts: BTreeMap::from([("account1".to_owned(), account)]),
        source: PolicySource::Directory(directory.join("policies")),
        stores,
        settings,
        name: "worker".to_owned(),
        metrics: MillMetrics::default(),
        mail: ReportMail::default(),
    }
}

/// Makes stores that differ in each way: two items are missing in the copy, one has other content there, one other
/// properties, one was deleted at the source, and one is the same.
pub(super) async fn set_up(directory: &Path) {
    for folder in STORES.iter().chain(&["policies"]) {
        std::fs::create_dir(directory.join(folder)).unwrap();
    }
    let policy = br#"{"defaultPolicies": [{"srcStoreId": "1", "destStoreId": "2"}]}"#;
    std::fs::write(directory.join("policies/account1-duplication-policy.json"), policy).unwrap();
    std::fs::write(directory.join("policies/duplication-accounts.json"), r#"["account1"]"#).unwrap();
    let mill = mill(directory).await;
    let put = async |store: &str, key: &str, text: &'static str, content_type: &str| {
        let user = UserProperties { content_type: Some(content_type.to_owned()), ..UserProperties::default() };
        let chunks = stream::iter([Ok(Bytes::from_static(text.as_bytes()))]).boxed();
        let store = &mill.stores[&store.parse::<StoreName>().unwrap()];
        store.create_space(&item(key).space).await.unwrap();
        store.put(&item(key), chunks, Put { user, ..Put::default() }).await.unwrap();
    };
    for store in STORES {
        put(store, "changed", "old", "text/plain").await;
        put(store, "described", "same", "text/plain").await;
        put(store, "deleted", "gone", "text/plain").await;
        put(store, "same", "same", "text/plain").await;
    }
    put("main", "changed", "new", "text/plain").await;
    put("main", "described", "same", "text/html").await;
    put("main", "one", "1", "text/plain").await;
    put("main", "a//odd/", "2", "text/plain").await;
    mill.stores[&STORES[0].parse::<StoreName>().unwrap()].delete(&item("deleted"), None).await.unwrap();
    // What is put aside here need not be kept at all: it is not looked for again today.
    mill.asides_once().await.unwrap().unwrap();
    mill.catalogue.close().await;
}

/// What lies in the stores, and what is recorded of it: as lines, without times.
pub(super) async fn end(directory: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for name in STORES {
        let store = DirectoryStore::open(name.parse().unwrap(), directory.join(name)).await.unwrap();
        let spaces = store.spaces().await.unwrap();
        for space in spaces {
            let listed: Vec<_> = store.list(&space, b"", None).try_collect().await.unwrap();
            for entry in listed {
                let found = Item::new(space.clone(), entry.key.clone());
                let chunks: Vec<Bytes> =
                    store.get(&found, None, None).await.unwrap().chunks.try_collect().await.unwrap();
                let text = String::from_utf8(chunks.concat()).unwrap();
                let properties = store.head(&found).await.unwrap().unwrap();
                // What is aside has a name of its own.
                let key = if space.as_str() == ASIDE { "..".to_owned() } else { entry.key.to_string() };
                lines.push(format!("{name}/{space}/{key}: {text:?} {:?}", properties.user.content_type));
            }
        }
    }
    for sql in [
        "SELECT i.key, c.store, c.size, c.digests, c.is_deleted FROM copies c JOIN items i ON i.id = c.item
            WHERE i.space = 'account1.theses'",
        "SELECT store, space, SUM(number) FROM effects GROUP BY store, space",
        "SELECT store, key, reason, ended FROM asides",
        "SELECT kind, state, key FROM tasks",
        "SELECT store, key FROM intents",
        "SELECT name, scope, SUM(value) FROM (SELECT name, scope, value FROM counters
            UNION ALL SELECT name, scope, delta FROM counter_deltas) AS parts
            WHERE name LIKE 'space_%' AND scope LIKE '%account1.theses' GROUP BY name, scope",
    ] {
        lines.extend(sqlite::rows(&database(directory), sql).iter().map(|row| format!("{sql}: {row}")));
    }
    lines.sort_unstable();
    lines
}

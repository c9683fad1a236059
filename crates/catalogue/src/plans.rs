//! That every list goes by an index: the databases say how they would answer.

use queuekeeper_store::Key;
use queuekeeper_store::store::Item;
use uuid::Uuid;

use crate::asides::{KEYS, OF_ITEM, OVERDUE};
use crate::audit::{AFTER, Events, OF_SPACE_AFTER, TAKE_LEFT};
use crate::bit::{
    CHECKS_OF_ITEM, CHECKS_OF_RUN, LEFT_ITEMS, NEWEST_RUN, OF_ACCOUNT, OF_PART, OLDEST, OLDEST_OUTSIDE, OPEN_KEYS,
    OPEN_RUN, PAGE, RECORDS, RECORDS_OF_ITEM, REPORTS, REPORTS_OF_ACCOUNT, REPORTS_OF_SPACE, REQUESTED, REQUESTED_OF,
    SEAL, SEALS_LEFT, UNREPORTED, UNSUCCESSFUL,
};
use crate::catalogue::Catalogue;
use crate::comparisons::{COMPARISONS, COMPARISONS_OF};
use crate::database::Session;
use crate::database::dialect::Dialect;
use crate::database::value::{DatabaseRow, Value, values};
use crate::deposits::{DEPOSITS, PARTS, PARTS_SINCE};
use crate::index::{COPY, ITEMS, ITEMS_BETWEEN};
use crate::inventory::{
    BY_TITLE, BY_TITLE_OF_COLLECTION, FILE, FILES, LOCAL_IDS, OBJECTS, OBJECTS_OF_COLLECTION, VERSION_OF_JOB, VERSIONS,
};
use crate::object_intents::OBJECT_INTENTS;
use crate::outbox::{ENDED, TAKE_DUE};
use crate::policies::POLICIES;
use crate::repairs::{OF_ACCOUNT as REPAIRS, TODAY};
use crate::space_stats::NEWEST;
use crate::tasks::{DEAD, DECISIONS, DECISIONS_OF_ITEM, HEAD, HELD, NEXT, OF_ITEM_TASKS, RELEASE, TAKE};
use crate::test_server::SERVER;

/// Every list, with arguments of the right types.
fn lists() -> Vec<(&'static str, Vec<Value>)> {
    let (store, space) = (|| "main".parse().unwrap(), || "space".parse().unwrap());
    let key = Key::new(*b"key").unwrap();
    let events = [
        Events::All,
        Events::Store(store()),
        Events::Space(store(), space()),
        Events::Item(store(), Item::new(space(), key)),
        Events::User("ada".to_owned()),
        Events::Observed,
    ];
    let events = events.iter().map(|events| {
        let (sql, mut values) = events.statement();
        values.extend(values![9u64, 10u64]);
        (sql, values)
    });
    let others = [
        (AFTER, values![0u64, 10u64]),
        (TAKE_LEFT, values!["main", Uuid::nil(), 0i64]),
        (TAKE_DUE, values![0i64, 10u64, "mail"]),
        (ENDED, values![0i64, 0i64, 0u64, 10u64]),
        (OBJECT_INTENTS, values![0i64, 0i64, Uuid::nil(), 10u64]),
        (DEPOSITS, values!["ada", 9u64, Uuid::max(), 10u64]),
        (PARTS, values![Uuid::nil(), 10u64]),
        (PARTS_SINCE, values!["ada", 9u64, 10u64]),
        (ITEMS, values!["", "space", &b"key"[..], 10u64]),
        (COPY, values!["", "space", &b"key"[..], "main"]),
        (OBJECTS, values!["ark:/1/2", 10u64]),
        (OBJECTS_OF_COLLECTION, values!["collection", "ark:/1/2", 10u64]),
        (BY_TITLE.same, values!["title", "ark:/1/2", 10u64]),
        (BY_TITLE.behind, values!["title", "u", 10u64]),
        (BY_TITLE_OF_COLLECTION.same, values!["title", "ark:/1/2", 10u64, "collection"]),
        (BY_TITLE_OF_COLLECTION.behind, values!["title", "u", 10u64, "collection"]),
        (VERSIONS, values!["ark:/1/2", 9u64, 10u64]),
        (VERSION_OF_JOB, values![Uuid::nil()]),
        (FILES, values!["ark:/1/2", 1u64, "producer/", 10u64]),
        (FILE, values!["ark:/1/2", 1u64, "producer/a"]),
        (LOCAL_IDS, values!["ark:/1/2", "owner", "id", 10u64]),
        (OF_ITEM, values!["main", "space", &b"key"[..], u64::MAX, 10u64]),
        (OVERDUE, values![0i64, 0u64, 10u64]),
        (KEYS, values!["a", "b", "main", 10u64]),
        (POLICIES, values!["account", u64::MAX, 10u64]),
        (REPAIRS, values!["account", u64::MAX, 10u64]),
        (TODAY, values!["main", 1u64]),
        (DEAD, values!["account", i64::MAX, 0u64, 10u64]),
        (HELD, values!["account", "main", 0u64, 10u64]),
        (ITEMS_BETWEEN, values!["", "space", &b"key"[..], &b"k"[..], &b"l"[..], 10u64]),
        (HEAD, values!["audit", "account"]),
        (OF_ITEM_TASKS, values!["account", "space", &b"key"[..], 10u64]),
        (RELEASE, values![1u64, 10u64]),
        (DECISIONS, values![u64::MAX, 10u64]),
        (DECISIONS_OF_ITEM, values!["account", "space", &b"key"[..], u64::MAX, 10u64]),
        (RECORDS, values!["", "space", &b"a"[..], &b"z"[..], 10u64, "main"]),
        (RECORDS_OF_ITEM, values!["", "space", &b"key"[..], "main"]),
        (OF_ACCOUNT, values!["account", 0u64, 10u64]),
        (OF_PART, values!["main", "space", &b"a"[..], &b"z"[..], 10u64]),
        (OLDEST, values!["account"]),
        (OPEN_KEYS, values!["main", "space", &b"a"[..], &b"z"[..], 10u64]),
        (CHECKS_OF_ITEM, values!["", "space", &b"key"[..], "main", u64::MAX, 10u64]),
        (CHECKS_OF_RUN, values![1u64, "success", 0u64, 10u64]),
        (LEFT_ITEMS, values![1u64, &b"key"[..], 10u64]),
        (OLDEST_OUTSIDE, values!["success", 1i64]),
        (NEWEST_RUN, values!["account", "main", "space"]),
        (OPEN_RUN, values!["account", "main", "space"]),
        (UNREPORTED, values!["account", "main", "space"]),
        (OF_SPACE_AFTER, values!["main", "space", 0u64, 10u64]),
        (SEAL, values!["account", 1u64]),
        (SEALS_LEFT, values!["account", "main", "space", 10u64]),
        (PAGE, values!["account", "main", "space", &b"key"[..]]),
        (COMPARISONS, values!["account", "space", 10u64]),
        (COMPARISONS_OF, values!["account", "space"]),
        (REQUESTED, values!["account", u64::MAX, 10u64]),
        (REQUESTED_OF, values!["account", "main", "space", &b"key"[..]]),
        (REPORTS, values![u64::MAX, "", 10u64]),
        (REPORTS_OF_ACCOUNT, values!["account", u64::MAX, "main", 10u64]),
        (REPORTS_OF_SPACE, values!["space", u64::MAX, "account", "", 10u64]),
        (UNSUCCESSFUL, values![1u64, u64::MAX, "", "main", "", 10u64]),
    ];
    let mut take = values![0i64, Uuid::nil(), "worker", "audit", "account", 10u64];
    take.extend(values!["AUDIT", "AUDIT", "AUDIT", "AUDIT", "AUDIT", "AUDIT", "AUDIT", "AUDIT", "AUDIT", "AUDIT"]);
    let mut next = values!["audit", "account", 0i64];
    next.extend(take[6..].iter().cloned());
    let others =
        others.into_iter().chain([(TAKE.as_str(), take), (NEXT.as_str(), next), (NEWEST, values!["account", 10u64])]);
    events.chain(others).collect()
}

async fn plan(session: &mut Session, sql: &str, values: Vec<Value>) -> String {
    let (explain, column) = match session.dialect() {
        Dialect::Sqlite => ("EXPLAIN QUERY PLAN", 3),
        Dialect::Postgres => ("EXPLAIN", 0),
    };
    let sql: &'static str = Box::leak(format!("{explain} {sql}").into_boxed_str());
    let line = |row: DatabaseRow| row.get::<String>(column).unwrap() + "\n";
    session.rows(sql, values).await.unwrap().into_iter().map(line).collect()
}

/// The lines of a plan that read a whole table, or sort.
fn slow(plan: &str) -> Vec<&str> {
    let is_slow = |line: &&str| {
        // SQLite calls a step through an ordered index a scan, too, and that of a page which was found already.
        let is_scan = line.contains("SCAN ") && !line.contains("USING") && !line.ends_with("SCAN page");
        is_scan || line.contains("TEMP B-TREE") || line.contains("Seq Scan") || line.contains("Sort")
    };
    plan.lines().filter(is_slow).collect()
}

async fn assert_fast(catalogue: &Catalogue) {
    let mut session = catalogue.database.begin().await.unwrap();
    if session.dialect() == Dialect::Postgres {
        // The tables are empty: without these, reading all of nothing is cheapest.
        session.script("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off").await.unwrap();
    }
    for (sql, values) in lists() {
        let plan = plan(&mut session, sql, values).await;
        assert_eq!(slow(&plan), [""; 0], "{sql}\n{plan}");
    }
    // That a slow one would be found.
    for sql in ["SELECT ark FROM objects WHERE title = $1", "SELECT ark FROM objects WHERE ark > $1 ORDER BY title"] {
        let plan = plan(&mut session, sql, values!["title"]).await;
        assert_ne!(slow(&plan), [""; 0], "{sql}\n{plan}");
    }
    session.roll_back().await;
}

#[tokio::test]
async fn every_list_goes_by_an_index_in_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("catalogue.db").display());
    assert_fast(&Catalogue::open(&url).await.unwrap()).await;
}

#[tokio::test]
async fn every_list_goes_by_an_index_in_postgres() {
    let catalogue = Catalogue::open(&SERVER.create("plans")).await.unwrap();
    assert_fast(&catalogue).await;
    catalogue.close().await;
}

//! Messages of stores: what they mark, and what they do not.

use std::collections::BTreeMap;

use queuekeeper::actions::store_events::{EventSource, Marked, NotMarked, StoreEvents};
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::tasks::{TaskKind, TaskQueue, Tasks};
use queuekeeper_mill::account::Account;
use queuekeeper_mill::policy::StoreId;
use queuekeeper_store::audit::Change;
use queuekeeper_store::noted::NotedChange;
use queuekeeper_store::store::{EntityTag, Written};
use serde_json::json;

/// A message of `MinIO`'s about objects of a bucket, each with its entity tag.
fn message(kind: &str, objects: &[(&str, &str, &str)]) -> String {
    let record = |&(bucket, key, etag): &(&str, &str, &str)| json!({"eventName": kind, "s3": {"bucket": {"name": bucket}, "object": {"key": key, "eTag": etag}}});
    json!({"EventName": kind, "Records": objects.iter().map(record).collect::<Vec<_>>()}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_has_items_looked_at_that_others_changed_and_nothing_more() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("catalogue.db").display());
    let catalogue = Catalogue::open(&url).await.unwrap();
    let cold = "cold".parse().unwrap();
    let ids = BTreeMap::from([(StoreId("1".to_owned()), "cold".parse().unwrap())]);
    let account = Account { name: "one".to_owned(), stores: ids, prefix: Some("one".to_owned()), ..Account::default() };
    let source = EventSource {
        store: "cold".parse().unwrap(),
        space: "one.demo".parse().unwrap(),
        bucket: "keep".to_owned(),
        prefix: "copies/one.demo/".to_owned(),
        per_minute: 5,
    };
    let ours = Written { size: 1, etag: EntityTag("\"e1\"".to_owned()), digests: [].into_iter().collect() };
    let made = |key: &str, change, seen, after| NotedChange {
        space: source.space.clone(),
        key: Some(key.parse().unwrap()),
        change,
        seen,
        after,
    };
    let changes = [
        made("ours", Change::Add, None, Some(ours.clone())),
        made("gone", Change::Add, None, Some(ours.clone())),
        made("gone", Change::Delete, Some(ours.etag.clone()), None),
    ];
    catalogue.record_changes(&cold, "ada", &changes).await.unwrap();

    let events = StoreEvents::new(catalogue.clone(), BTreeMap::from([("one".to_owned(), account)]));
    let put = message(
        "s3:ObjectCreated:Put",
        &[
            ("keep", "copies%2Fone.demo%2Fours", "e1"),
            ("keep", "copies%2Fone.demo%2Ftheirs+and%2Fmore", "e2"),
            ("keep", "copies%2Fone.demo%2Fours2", "e1"),
            ("keep", "copies%2Ftwo.demo%2Fx", "e3"),
            ("other", "copies%2Fone.demo%2Fx", "e4"),
            ("keep", "copies%2Fone.demo%2F", "e5"),
            ("keep", "..%2F..%2Fetc%2Fpasswd", "e6"),
        ],
    );
    let marked = events.receive("hook", &source, put.as_bytes()).await.unwrap();
    assert_eq!(marked, Marked { marked: 2, known: 1, other: 4 });
    let removed = message(
        "s3:ObjectRemoved:Delete",
        &[("keep", "copies%2Fone.demo%2Fgone", ""), ("keep", "copies%2Fone.demo%2Fours", "")],
    );
    let marked = events.receive("hook", &source, removed.as_bytes()).await.unwrap();
    assert_eq!(marked, Marked { marked: 1, known: 1, other: 0 });
    let tasks = Tasks { queue: TaskQueue::Audit, account: "one", kinds: &[TaskKind::Audit], limit: 10 };
    let taken = catalogue.take_tasks(&tasks, "worker", std::time::Duration::from_mins(1)).await.unwrap();
    let mut keys: Vec<_> = taken.iter().map(|task| task.subject.key.as_ref().unwrap().to_string()).collect();
    keys.sort();
    assert_eq!(keys, ["ours", "ours2", "theirs and/more"]);
    assert!(
        taken
            .iter()
            .all(|task| task.subject.space.as_str() == "demo" && task.subject.destination == Some(cold.clone()))
    );

    let invalid = events.receive("hook", &source, b"{\"Records\": [{}]}").await.unwrap_err();
    assert!(matches!(invalid, NotMarked::Invalid(_)), "{invalid}");
    let foreign = EventSource { space: "two.demo".parse().unwrap(), ..source.clone() };
    let foreign = events.receive("hook", &foreign, put.as_bytes()).await.unwrap_err();
    assert!(matches!(foreign, NotMarked::NoAccount(..)), "{foreign}");
    events.receive("hook", &source, put.as_bytes()).await.unwrap();
    let many = events.receive("hook", &source, put.as_bytes()).await.unwrap_err();
    assert!(matches!(many, NotMarked::TooMany(1..=60)), "{many}");
    // Another token has messages of its own.
    events.receive("other", &source, put.as_bytes()).await.unwrap();
}

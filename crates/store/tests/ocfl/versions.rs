//! Versions that are made without trouble.

use std::sync::Arc;

use futures::stream;
use queuekeeper_store::ocfl::{Begun, Root, Start};
use queuekeeper_store::{DirectoryStore, Store};

use crate::helpers::{
    ID, assert_valid, begin, content, files, job, make, memory, new_version, paths, read_all, read_version, undigested,
    validate_by_ocfl_py,
};
use crate::memory::StoreKind;

/// Names that some stores could not hold, beside plain ones.
const ODD: [&str; 12] = [
    "producer/plain.txt",
    "producer/.hidden",
    "producer/é.txt",
    "producer/e\u{301}.txt",
    "producer/a%2Fb",
    "producer/CON",
    "producer/ends with a dot.",
    "producer/a\\b\u{202e}\n",
    "producer/...",
    "system/A",
    "system/a",
    "~0",
];

#[tokio::test(flavor = "multi_thread")]
async fn versions_in_a_directory_are_read_back_and_valid_to_another_validator() {
    let top = tempfile::tempdir().unwrap();
    let store = DirectoryStore::open("main".parse().unwrap(), top.path().to_owned()).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let root = Root::open(store.clone(), "objects".parse().unwrap()).await.unwrap();
    let object = root.object(ID).unwrap();
    assert!(object.read().await.unwrap().is_none());

    let mut writer = begin(&object, job(1), Start::Head).await;
    for path in ODD {
        writer.add(path, undigested(path.as_bytes())).await.unwrap();
    }
    let long = format!("producer/{}/{}", "d".repeat(300), "f".repeat(2000));
    writer.add(&long, content(b"long")).await.unwrap();
    writer.add("producer/empty", content(b"")).await.unwrap();
    assert_eq!(writer.commit().await.unwrap(), 1);

    let mut writer = begin(&object, job(2), Start::Head).await;
    writer.replace("producer/plain.txt", content(b"replaced")).await.unwrap();
    writer.remove("system/a").unwrap();
    writer.rename(&long, "producer/short").unwrap();
    writer.add("producer/plain copy.txt", content(b"producer/plain.txt")).await.unwrap();
    assert_eq!(writer.commit().await.unwrap(), 2);

    let mut writer = begin(&object, job(3), Start::Empty).await;
    writer.carry("producer/short").unwrap();
    assert_eq!(writer.commit().await.unwrap(), 3);

    let versions = read_all(&object).await;
    assert_eq!(versions[0].len(), ODD.len() + 2);
    assert!(ODD.iter().all(|path| versions[0][*path] == path.as_bytes()));
    let mut expected = versions[0].clone();
    expected.insert("producer/plain.txt".to_owned(), b"replaced".to_vec());
    expected.remove("system/a");
    let moved = expected.remove(&long).unwrap();
    expected.insert("producer/short".to_owned(), moved);
    expected.insert("producer/plain copy.txt".to_owned(), b"producer/plain.txt".to_vec());
    assert_eq!(versions[1], expected);
    assert_eq!(versions[2], files([("producer/short", "long")]));

    let snapshot = object.read().await.unwrap().unwrap();
    let inventory = snapshot.inventory();
    // Only what is new is stored: one file in version 2, none in version 3.
    let content: Vec<_> = inventory.content().map(|content| content.unwrap().0).collect();
    let stored = |version: &str| content.iter().filter(|path| path.starts_with(version)).count();
    assert_eq!((stored("v1/"), stored("v2/"), stored("v3/")), (ODD.len() + 2, 1, 0));
    let info = inventory.version(2).unwrap();
    assert_eq!(info.message, Some("job 01935a7e-0000-7000-8000-000000000002: a deposit"));
    assert_eq!((info.job(), info.created), (Some(job(2)), "2025-11-24T16:00:00Z"));
    assert_eq!(inventory.version_of(job(3)), Some(3));
    // No name was changed on the way to the disk: the directory has the keys as they are.
    for path in content {
        assert!(top.path().join("objects").join(object.root()).join(&path).is_file(), "{path}");
    }

    assert!(object.verify().await.unwrap().is_valid());
    // `rocfl` 1.7.0 refuses the name with a backslash and a line feed.
    let objects = top.path().join("objects");
    validate_by_ocfl_py(std::slice::from_ref(&objects)).unwrap();
    // The judge is one: content of an object in a root that has changed is named.
    let (path, _) = inventory.content().next().unwrap().unwrap();
    std::fs::write(objects.join(object.root()).join(&path), "rotten").unwrap();
    let why = validate_by_ocfl_py(&[objects]).unwrap_err();
    assert!(why.contains("E092") || why.contains("E093"), "{why}");
}

#[tokio::test]
async fn a_job_makes_one_version_however_often_it_is_begun() {
    let (store, _, root) = memory(StoreKind::default()).await;
    let object = root.object(ID).unwrap();
    let wanted = files([("a", "1"), ("b/c", "2")]);
    assert_eq!(make(&object, job(1), &wanted).await.unwrap(), 1);
    assert_eq!(make(&object, job(2), &files([("a", "3")])).await.unwrap(), 2);
    let before = store.contents();
    assert_eq!(make(&object, job(1), &wanted).await.unwrap(), 1);
    assert!(matches!(object.begin(new_version(job(2), Start::Head)).await.unwrap(), Begun::Done(2)));
    assert!(store.contents() == before);
    assert_valid(&object, &store).await;
}

#[tokio::test]
async fn many_files_are_stored_at_a_time() {
    let (store, _, root) = memory(StoreKind::default()).await;
    let object = root.object(ID).unwrap();
    let mut writer = begin(&object, job(1), Start::Head).await;
    writer.add("n/0", content(b"before")).await.unwrap();
    let many = (0..300).map(|number| (format!("n/{number}"), content(format!("text {}", number % 100).as_bytes())));
    writer.put_all(stream::iter(many), 16).await.unwrap();
    for twice in [["x/y", "x/y"], ["x", "x/y"], ["x/y", "x"], ["n", "z"], ["n/7/8", "z"]] {
        let error =
            writer.put_all(stream::iter(twice.map(|path| (path.to_owned(), content(b"1")))), 4).await.unwrap_err();
        assert!(error.to_string().starts_with(&format!("object {ID}: ")), "{error}");
    }
    let wanted = paths(&writer);
    writer.commit().await.unwrap();
    let snapshot = object.read().await.unwrap().unwrap();
    let found = read_version(&snapshot, 1).await;
    assert!(found.keys().eq(&wanted));
    assert!((0..300).all(|number| found[&format!("n/{number}")] == format!("text {}", number % 100).into_bytes()));
    assert_valid(&object, &store).await;
}

#[tokio::test]
async fn wrong_content_and_impossible_paths_are_refused_and_leave_the_version_as_it_was() {
    let (store, _, root) = memory(StoreKind::default()).await;
    let object = root.object(ID).unwrap();
    make(&object, job(1), &files([("a", "1"), ("b/c", "2")])).await.unwrap();
    let mut writer = begin(&object, job(2), Start::Head).await;
    let mut wrong = content(b"one thing");
    wrong.open = content(b"other one").open;
    let error = writer.replace("a", wrong).await.unwrap_err().to_string();
    assert!(error.contains("md5 is ") && error.contains(", expected "), "{error}");
    for (path, why) in [
        ("a", "there is a file \"a\" already"),
        ("a/b", "\"a\" is a file, so there can be no \"a/b\""),
        ("b", "\"b\" is a file, so there can be no \"b/c\""),
        ("", "invalid path \"\": it is empty"),
        ("../x", "invalid path \"../x\": it has a part '.' or '..'"),
    ] {
        let error = writer.add(path, content(b"3")).await.unwrap_err().to_string();
        assert_eq!(error, format!("object {ID}: {why}"));
        assert!(writer.rename("b/c", path).is_err() || path == "b", "{path}");
        if path == "b" {
            writer.rename("b", "b/c").unwrap();
        }
    }
    for missing in ["b", "x"] {
        assert!(writer.remove(missing).is_err() && writer.carry(missing).is_err());
        assert!(writer.replace(missing, content(b"3")).await.is_err());
    }
    assert_eq!(paths(&writer), ["a", "b/c"]);
    drop(writer);
    assert_valid(&object, &store).await;
    assert_eq!(read_all(&object).await, [files([("a", "1"), ("b/c", "2")])]);

    let snapshot = object.read().await.unwrap().unwrap();
    for (version, path) in [(0, "a"), (2, "a"), (1, "x")] {
        let error = snapshot.open(version, path).await.err().unwrap().to_string();
        assert!(error.starts_with(&format!("object {ID} has no ")), "{error}");
    }
}

#[tokio::test]
async fn a_space_that_holds_something_else_is_no_storage_root() {
    let (store, _, _) = memory(StoreKind::default()).await;
    let open = async |space: &str| Root::open(store.clone(), space.parse().unwrap()).await;
    let item = |space: &str, key: &str| queuekeeper_store::Item::new(space.parse().unwrap(), key.parse().unwrap());
    store.plant(&item("other", "a"), b"1");
    store.plant(&item("older", "0=ocfl_1.1"), b"ocfl_1.0\n");
    store.plant(&item("bare", "0=ocfl_1.1"), b"ocfl_1.1\n");
    store.plant(&item("flat", "0=ocfl_1.1"), b"ocfl_1.1\n");
    store.plant(&item("flat", "ocfl_layout.json"), br#"{"extension": "0002-flat-direct-storage-layout"}"#);
    for (space, why) in [
        ("other", "it has no 0=ocfl_1.1 but other items, such as a"),
        ("older", "0=ocfl_1.1 does not hold"),
        ("bare", "it has no ocfl_layout.json"),
        ("flat", "its layout is \"0002-flat-direct-storage-layout\""),
    ] {
        let error = open(space).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("space memory/{space} is no OCFL storage root of ours: {why}")), "{error}");
    }
    // One that was begun and not finished is finished.
    store.plant(&item("begun", "ocfl_layout.json"), br#"{"extension": "0003-hash-and-id-n-tuple-storage-layout"}"#);
    open("begun").await.unwrap();
    open("begun").await.unwrap();

    let error = Root::open(memory_without_conditions(), "objects".parse().unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("does not support conditional writes"), "{error}");
}

fn memory_without_conditions() -> Arc<dyn Store> {
    let kind = StoreKind { conditions: false, ..StoreKind::default() };
    Arc::new(crate::memory::MemoryStore::new("weak", kind, crate::steps::Steps::default()))
}

//! Which objects a storage root has, on both kinds of store.

use std::sync::Arc;

use futures::TryStreamExt as _;
use queuekeeper_store::ocfl::{Found, Root, Start};
use queuekeeper_store::{DirectoryStore, Store};

use crate::bucket::{BUCKET, bucket};
use crate::helpers::{begin, content, files, job, make};

/// An identifier whose folder has a part of it and a digest.
fn long_id() -> String {
    format!("ark:/99999/{}", "long-".repeat(40))
}

async fn found(root: &Root, after: Option<&str>) -> (Vec<(String, String)>, Vec<String>) {
    let (mut objects, mut others) = (Vec::new(), Vec::new());
    for found in root.objects(after).try_collect::<Vec<_>>().await.unwrap() {
        match found {
            Found::Object(object) => objects.push((object.root().to_owned(), object.id().to_owned())),
            Found::Other { key, .. } => others.push(key),
        }
    }
    (objects, others)
}

/// Fills a root and compares; `plant` puts an item there that this program did not write.
async fn check(store: Arc<dyn Store>, plant: impl Fn(&str)) {
    let root = Root::open(store, "objects".parse().unwrap()).await.unwrap();
    assert_eq!(found(&root, None).await, (Vec::new(), Vec::new()));
    let mut expected = Vec::new();
    let wanted = files([("a", "1")]);
    for id in ["ark:/99999/one", "ark:/99999/two", "å+b 100", &long_id()] {
        let object = root.object(id).unwrap();
        make(&object, job(1), &wanted).await.unwrap();
        expected.push((object.root().to_owned(), id.to_owned()));
    }
    // A first version that is not there yet, and an object with more items than a page of a listing has.
    let unfinished = root.object("ark:/99999/unfinished").unwrap();
    begin(&unfinished, job(2), Start::Head).await.add("a", content(b"1")).await.unwrap();
    expected.push((unfinished.root().to_owned(), unfinished.id().to_owned()));
    let large = root.object("ark:/99999/large").unwrap();
    make(&large, job(1), &wanted).await.unwrap();
    expected.push((large.root().to_owned(), large.id().to_owned()));
    for number in 0..2500 {
        plant(&format!("{}/v1/content/{number}", large.root()));
    }
    expected.sort();

    // Beside an object, and where the search for what follows it begins anew; at no object's place; too high up.
    let beside = format!("{}0", large.root());
    let others = [beside.as_str(), "zzz/zzz/zzz/wrong/file", "stray"];
    for key in others {
        plant(key);
    }
    let (objects, mut left) = found(&root, None).await;
    assert_eq!(objects, expected);
    left.sort();
    let mut other_keys = [beside.clone(), "stray".to_owned(), "zzz/zzz/zzz/wrong".to_owned()];
    other_keys.sort();
    assert_eq!(left, other_keys);

    for (at, (place, _)) in expected.iter().enumerate() {
        assert_eq!(found(&root, Some(place)).await.0, expected[at + 1..], "behind {place}");
    }
    assert!(found(&root, Some(large.root())).await.1.contains(&beside));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_objects_of_a_root_in_a_directory_are_found_one_by_one() {
    let top = tempfile::tempdir().unwrap();
    let store = DirectoryStore::open("main".parse().unwrap(), top.path().to_owned()).await.unwrap();
    let plant = |key: &str| {
        let file = top.path().join("objects").join(key);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "1").unwrap();
    };
    check(Arc::new(store), plant).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_objects_of_a_root_in_a_bucket_are_found_one_by_one() {
    let (server, store) = bucket().await;
    check(store, |key| server.plant(BUCKET, [format!("copies/objects/{key}")], b"1")).await;
}

//! What is wrong with an object, each thing found by a verification.

use std::sync::Arc;

use futures::TryStreamExt as _;
use queuekeeper_store::ocfl::{Abandoned, Object, OcflError, Root};
use queuekeeper_store::{Item, Store as _};

use crate::helpers::{ID, assert_valid, files, job, make, memory, read_all};
use crate::memory::{MemoryStore, StoreKind};

async fn two_versions() -> (Arc<MemoryStore>, Root, Object) {
    let (store, _, root) = memory(StoreKind::default()).await;
    let object = root.object(ID).unwrap();
    make(&object, job(1), &files([("a", "1"), ("b", "2")])).await.unwrap();
    make(&object, job(2), &files([("a", "3")])).await.unwrap();
    (store, root, object)
}

fn item(object: &Object, file: &str) -> Item {
    Item::new("objects".parse().unwrap(), format!("{}/{file}", object.root()).parse().unwrap())
}

fn content_path(version: u32, job_number: u128, path: &str) -> String {
    format!("v{version}/content/{}/{path}", job(job_number))
}

#[tokio::test]
async fn each_damage_is_found_and_named() {
    let a = content_path(1, 1, "a");
    let stray = content_path(1, 9, "stray");
    let cases: [(&str, Option<&'static [u8]>, &str, &str); 12] = [
        (&a, Some(b"X"), &a, "its sha256 is "),
        (&a, None, &a, "it is missing"),
        (&stray, Some(b"x"), &stray, "no inventory names it"),
        ("v3/content/x", Some(b"x"), "v3/content/x", "no inventory names it"),
        ("v1/notes.txt", Some(b"x"), "v1/notes.txt", "no inventory names it"),
        ("0=ocfl_object_1.1", None, "0=ocfl_object_1.1", "it is missing"),
        ("0=ocfl_object_1.1", Some(b"ocfl_object_1.0\n"), "0=ocfl_object_1.1", "it does not hold"),
        ("inventory.json", Some(b"{}"), "inventory.json", "the inventory has no \"id\""),
        ("inventory.json", None, "inventory.json", "it is missing"),
        ("inventory.json.sha512", Some(b"x inventory.json\n"), "inventory.json.sha512", "sha512 digests have"),
        ("v1/inventory.json", Some(b"{"), "v1/inventory.json", "EOF while parsing"),
        ("v1/inventory.json.sha512", Some(b""), "v1/inventory.json.sha512", "it does not have the form"),
    ];
    for (file, bytes, found, why) in cases {
        let (store, _, object) = two_versions().await;
        match bytes {
            Some(bytes) => drop(store.plant(&item(&object, file), bytes)),
            None => drop(store.delete(&item(&object, file), None).await.unwrap()),
        }
        let verified = object.verify().await.unwrap();
        let finding = verified.findings.iter().find(|finding| finding.file == found);
        assert!(finding.is_some_and(|finding| finding.what.starts_with(why)), "{file}: {:?}", verified.findings);
        assert_eq!(verified.count, verified.findings.len() as u64);
        // Reading goes on, with what is sound.
        assert_eq!(object.read().await.unwrap().unwrap().inventory().head(), 2);
    }
    let (_, _, object) = two_versions().await;
    let verified = object.verify().await.unwrap();
    assert_eq!((verified.files, verified.bytes, verified.count), (3, 3, 0));
}

#[tokio::test]
async fn damaged_content_ends_with_an_error_when_it_is_read() {
    let (store, _, object) = two_versions().await;
    store.plant(&item(&object, &content_path(1, 1, "b")), b"X");
    let snapshot = object.read().await.unwrap().unwrap();
    let content = snapshot.open(1, "b").await.unwrap();
    let error = content.chunks.try_collect::<Vec<_>>().await.unwrap_err().to_string();
    assert!(error.starts_with("its SHA-512 is ") && error.ends_with("the content is damaged"), "{error}");
    assert!(snapshot.open(1, "a").await.unwrap().chunks.try_collect::<Vec<_>>().await.is_ok());
}

#[tokio::test]
async fn a_root_inventory_that_is_damaged_or_gone_is_put_back_by_a_repair_only() {
    for bytes in [Some(&b"{}"[..]), None] {
        let (store, _, object) = two_versions().await;
        let before = store.contents();
        match bytes {
            Some(bytes) => drop(store.plant(&item(&object, "inventory.json"), bytes)),
            None => drop(store.delete(&item(&object, "inventory.json"), None).await.unwrap()),
        }
        if bytes.is_some() {
            let error = make(&object, job(3), &files([("c", "4")])).await.unwrap_err();
            assert!(matches!(error, OcflError::Damaged { .. }) && error.to_string().ends_with("; repair the object"));
        }
        let planned = object.plan_repair(&Abandoned::None).await.unwrap();
        let repaired = object.repair(&Abandoned::None).await.unwrap();
        assert_eq!(repaired, planned);
        assert!(repaired.restored && repaired.removed == 0);
        assert!(store.contents() == before);
        assert_valid(&object, &store).await;
    }
}

#[tokio::test]
async fn a_repair_leaves_alone_what_no_writer_of_ours_has_written() {
    let (store, _, object) = two_versions().await;
    let strays = ["v1/content/stray", "v1/content/Folder/stray", "v2/content/0193/x", "v4/content/x", "notes"];
    for stray in strays {
        store.plant(&item(&object, stray), b"x");
    }
    let before = store.contents();
    let repaired = object.repair(&Abandoned::All).await.unwrap();
    assert_eq!((repaired.removed, repaired.finished), (0, false));
    assert!(store.contents() == before);
    assert_eq!(object.verify().await.unwrap().count, strays.len() as u64);
    assert_eq!(read_all(&object).await.len(), 2);
}

#[tokio::test]
async fn an_inventory_of_another_object_is_not_taken() {
    let (store, root, object) = two_versions().await;
    let other = root.object("ark:/99999/other").unwrap();
    let contents = store.contents();
    for file in ["inventory.json", "inventory.json.sha512", "0=ocfl_object_1.1"] {
        let bytes = contents[&item(&object, file)].to_vec();
        store.plant(&item(&other, file), bytes.leak());
    }
    let error = other.read().await.unwrap_err().to_string();
    let expected = format!("object ark:/99999/other: inventory.json: it is that of object {ID:?}");
    assert_eq!(error, expected);
    let missing = root.object("ark:/99999/none").unwrap();
    assert!(missing.read().await.unwrap().is_none());
    let error = missing.verify().await.unwrap_err().to_string();
    assert_eq!(error, "object ark:/99999/none has no version");
}

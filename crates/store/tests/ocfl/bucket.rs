//! Objects in a bucket of S3.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt as _;
use queuekeeper_store::ocfl::{Abandoned, Object, Repaired, Root, Start};
use queuekeeper_store::s3::{AccessKey, Credentials, S3Config, S3Store};
use queuekeeper_store::{Item, SpaceName, Store, StoreFamilies};
use queuekeeper_testkit::s3::{S3Server, Settings};

use crate::helpers::{ID, begin, content, export, files, job, make, read_all, validate};

pub(crate) const BUCKET: &str = "preservation";

pub(crate) async fn bucket() -> (S3Server, Arc<dyn Store>) {
    let server = S3Server::start(Settings::default()).await.unwrap();
    server.create_bucket(BUCKET);
    let url = format!("s3://{BUCKET}/copies");
    let mut config = S3Config::new("replica".parse().unwrap(), url.parse().unwrap());
    config.endpoint = Some(server.endpoint());
    config.credentials = Credentials::Key(AccessKey::new(server.access_key(), server.secret_key()));
    let metrics = StoreFamilies::default().store(&config.name);
    let store = S3Store::new(config, metrics).await.unwrap();
    (server, Arc::new(store))
}

/// Lets another validator judge a copy of a space.
async fn assert_copy_is_valid(store: &dyn Store, space: &SpaceName) {
    let mut contents = BTreeMap::new();
    for listed in store.list(space, b"", None).try_collect::<Vec<_>>().await.unwrap() {
        let item = Item::new(space.clone(), listed.key);
        let pieces: Vec<Bytes> = store.get(&item, None, None).await.unwrap().chunks.try_collect().await.unwrap();
        contents.insert(item, Bytes::from(pieces.concat()));
    }
    let top = tempfile::tempdir().unwrap();
    export(&contents, top.path());
    validate(&[top.path().to_owned()]).unwrap();
}

async fn assert_valid(object: &Object) {
    let verified = object.verify().await.unwrap();
    assert!(verified.is_valid(), "{:#?}", verified.findings);
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_in_a_bucket_have_one_winner_each_and_are_valid() {
    let (_server, store) = bucket().await;
    let space: SpaceName = "objects".parse().unwrap();
    let root = Root::open(Arc::clone(&store), space.clone()).await.unwrap();
    let object = root.object(ID).unwrap();
    let first = files([("producer/a", "1"), ("producer/é", "2"), ("producer/b/c", "3")]);
    assert_eq!(make(&object, job(1), &first).await.unwrap(), 1);
    assert_valid(&object).await;

    let mut one = begin(&object, job(2), Start::Head).await;
    let mut other = begin(&object, job(3), Start::Head).await;
    one.replace("producer/a", content(b"one")).await.unwrap();
    other.replace("producer/a", content(b"other")).await.unwrap();
    assert_eq!(one.commit().await.unwrap(), 2);
    assert!(other.commit().await.unwrap_err().is_conflict());
    let mut other = begin(&object, job(3), Start::Head).await;
    other.rename("producer/b/c", "producer/b").unwrap();
    assert_eq!(other.commit().await.unwrap(), 3);
    assert_eq!(make(&object, job(2), &first).await.unwrap(), 2);

    let mut second = first.clone();
    second.insert("producer/a".to_owned(), b"one".to_vec());
    let mut third = second.clone();
    let moved = third.remove("producer/b/c").unwrap();
    third.insert("producer/b".to_owned(), moved);
    assert_eq!(read_all(&object).await, [first, second, third]);
    assert_eq!(object.repair(&Abandoned::All).await.unwrap(), Repaired::default());
    assert_valid(&object).await;
    assert_copy_is_valid(&*store, &space).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_dies_in_a_bucket_is_repaired_or_resumed() {
    let (_server, store) = bucket().await;
    let space: SpaceName = "objects".parse().unwrap();
    let root = Root::open(Arc::clone(&store), space.clone()).await.unwrap();
    let wanted = files([("a", "1"), ("b", "2")]);
    let [resumed, repaired] = ["resumed", "repaired"].map(|name| root.object(&format!("ark:/99999/{name}")).unwrap());
    for object in [&resumed, &repaired] {
        let mut writer = begin(object, job(1), Start::Head).await;
        writer.add("a", content(b"1")).await.unwrap();
        drop(writer);
        assert!(object.read().await.unwrap().is_none());
    }
    assert_eq!(make(&resumed, job(1), &wanted).await.unwrap(), 1);
    assert_eq!(read_all(&resumed).await, [wanted]);
    assert_valid(&resumed).await;
    assert_eq!(repaired.repair(&Abandoned::Folders(vec![job(1)])).await.unwrap().removed, 1);
    assert_copy_is_valid(&*store, &space).await;
}

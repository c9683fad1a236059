//! Spaces as prefixes and as buckets, and what a probe finds out.

use futures::TryStreamExt as _;
use queuekeeper_store::store::{Item, Listed, Put, Store as _};
use queuekeeper_store::{Algorithm, ErrorKind, SpaceName};
use queuekeeper_testkit::s3::{S3Server, Settings};

use super::common::{BUCKET, Fixture, chunks, config, item, store};

fn names(names: &[&str]) -> Vec<SpaceName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_space_of_a_shared_bucket_exists_once_it_was_made_or_has_an_item() {
    let fixture = Fixture::start().await.probed().await;
    let store = &fixture.store;
    let space = item("a").space;
    fixture.server.plant(BUCKET, ["copies/found/a", "other/b", "copies/not a name/c", "copies/file"], b"x");
    assert_eq!(store.spaces().await.unwrap(), names(&["found", "maps"]));
    assert!(!store.create_space(&space).await.unwrap());
    assert!(!store.create_space(&names(&["found"])[0]).await.unwrap());
    let listed: Vec<Listed> = store.list(&space, b"", None).try_collect().await.unwrap();
    assert_eq!(listed, []);

    fixture.put("a", "1").await.unwrap();
    assert!(matches!(store.delete_space(&space).await.unwrap_err().kind, ErrorKind::NotEmpty));
    store.delete(&item("a"), None).await.unwrap();
    assert!(store.delete_space(&space).await.unwrap());
    assert!(!store.delete_space(&space).await.unwrap());
    assert_eq!(store.spaces().await.unwrap(), names(&["found"]));

    let is_missing = |kind: &ErrorKind| matches!(kind, ErrorKind::NoSpace);
    assert!(is_missing(&store.head(&item("a")).await.unwrap_err().kind));
    assert!(store.get(&item("a"), None, None).await.is_err_and(|error| is_missing(&error.kind)));
    assert!(is_missing(&fixture.put("a", "1").await.unwrap_err().kind));
    let listed: Result<Vec<Listed>, _> = store.list(&space, b"", None).try_collect().await;
    assert!(is_missing(&listed.unwrap_err().kind));
}

#[tokio::test]
async fn each_space_may_have_a_bucket_of_its_own() {
    let server = S3Server::start(Settings::default()).await.unwrap();
    server.create_bucket("unrelated");
    let mut config = config(&server);
    config.location = "s3://{space}-cold".parse().unwrap();
    let store = store(config).await;
    let space = item("a").space;
    assert!(store.create_space(&space).await.unwrap());
    assert!(!store.create_space(&space).await.unwrap());
    assert_eq!(store.spaces().await.unwrap(), names(&["maps"]));
    store.put(&item("a//b"), chunks("1"), Put::default()).await.unwrap();
    assert_eq!(server.keys("maps-cold"), ["a//b"]);
    assert!(matches!(store.delete_space(&space).await.unwrap_err().kind, ErrorKind::NotEmpty));
    assert!(store.delete(&item("a//b"), None).await.unwrap());
    assert!(store.delete_space(&space).await.unwrap());
    assert!(matches!(store.head(&item("a")).await.unwrap_err().kind, ErrorKind::NoSpace));
    let listed: Result<Vec<Listed>, _> = store.list(&space, b"", None).try_collect().await;
    assert!(matches!(listed.unwrap_err().kind, ErrorKind::NoSpace));
    let odd = Item::new("Capitals".parse().unwrap(), item("a").key);
    assert!(matches!(store.head(&odd).await.unwrap_err().kind, ErrorKind::Unsupported(_)));
}

#[tokio::test]
async fn a_bucket_that_a_probe_made_can_be_removed_again() {
    let server = S3Server::start(Settings::default()).await.unwrap();
    let mut config = config(&server);
    config.location = "s3://{space}-cold".parse().unwrap();
    let probe = names(&["x-queuekeeper-probe"]);
    let first = store(config.clone()).await;
    first.probe().await.unwrap();
    assert_eq!(first.spaces().await.unwrap(), probe);
    // One that was there is not of this probe.
    let second = store(config).await;
    second.probe().await.unwrap();
    assert!(!second.remove_probe_bucket().await.unwrap());
    server.plant("x-queuekeeper-probe-cold", ["other"], b"x");
    let kept = first.remove_probe_bucket().await.unwrap_err().to_string();
    assert!(kept.contains("delete_space x-queuekeeper-probe-cold: the space is not empty"), "{kept}");
    second.delete(&Item::new(probe[0].clone(), "other".parse().unwrap()), None).await.unwrap();
    second.delete_space(&probe[0]).await.unwrap();
    second.probe().await.unwrap();

    let third = store(self::config(&server)).await;
    assert!(!third.remove_probe_bucket().await.unwrap());
}

#[tokio::test]
async fn a_probe_finds_what_the_service_does_and_leaves_nothing() {
    let fixture = Fixture::start_with(|config| config.storage_class = Some("GLACIER_IR".to_owned())).await;
    let capabilities = fixture.store.probe().await.unwrap();
    assert!(capabilities.if_absent && capabilities.if_match);
    assert!(!capabilities.versions && !capabilities.object_lock);
    assert_eq!((capabilities.minimum_days, capabilities.cold_reads), (90, true));
    let kept = [Algorithm::Crc32, Algorithm::Crc64Nvme, Algorithm::Md5, Algorithm::Sha256];
    assert_eq!(capabilities.checksums, kept);
    assert_eq!(fixture.server.keys(BUCKET), ["copies/.spaces/maps"]);
    assert_eq!(fixture.server.uploads(BUCKET), 0);
}

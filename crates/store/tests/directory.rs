//! The store in a directory.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use jiff::{SignedDuration, Timestamp};
use queuekeeper_store::store::{Condition, CopyControl, Put};
use queuekeeper_store::{Algorithm, DirectoryStore, ErrorKind, SpaceName, Store};

#[path = "support/contract.rs"]
mod contract;

use contract::{content, digests, item, list, put, read};

async fn open(top: &Path) -> DirectoryStore {
    DirectoryStore::open("main".parse().unwrap(), top.to_owned()).await.unwrap()
}

async fn with_space(top: &Path) -> (DirectoryStore, SpaceName) {
    let (store, space) = (open(top).await, "objects".parse().unwrap());
    store.create_space(&space).await.unwrap();
    (store, space)
}

fn files_below(top: &Path) -> usize {
    let Ok(entries) = fs::read_dir(top) else { return 0 };
    entries.map(|entry| entry.unwrap().path()).map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_keeps_the_promises_of_a_store() {
    let top = tempfile::tempdir().unwrap();
    contract::keeps_its_promises(Arc::new(open(top.path()).await)).await;
    let own = top.path().join(".queuekeeper");
    assert_eq!(files_below(&own.join("temporary")) + files_below(&own.join("records")), 0);
    let can = open(top.path()).await.probe().await.unwrap();
    assert!(can.if_absent && can.if_match && can.checksums.contains(&Algorithm::Sha512), "{can:?}");
    assert_eq!(open(top.path()).await.spaces().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_keys_are_plain_files_that_need_no_program_to_be_read() {
    let top = tempfile::tempdir().unwrap();
    let (store, space) = with_space(top.path()).await;
    for key in ["ark%3a%2f99999%2ffk4x/v1/content/a b.txt", "0=ocfl_1.1", "e\u{301}"] {
        put(&store, &item(&space, key), b"content", Put::default()).await.unwrap();
        assert_eq!(fs::read(top.path().join("objects").join(key)).unwrap(), b"content");
    }
    // What others put there is listed and read as it is, and has no properties but its own.
    fs::create_dir(top.path().join("objects/theirs")).unwrap();
    fs::write(top.path().join("objects/theirs/100%.txt"), b"brought").unwrap();
    let brought = item(&space, "theirs/100%.txt");
    assert_eq!(read(&store, &brought).await.unwrap(), b"brought");
    assert!(store.head(&brought).await.unwrap().is_some_and(|found| found.checksums.is_empty()));
    assert_eq!(list(&store, &space, b"theirs", None).await, [(b"theirs/100%.txt".to_vec(), 7)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn digests_are_of_the_content_that_is_there_and_of_no_other() {
    let top = tempfile::tempdir().unwrap();
    let (store, space) = with_space(top.path()).await;
    let at = item(&space, "a");
    let compute = || Put { compute: vec![Algorithm::Sha256], ..Put::default() };
    put(&store, &at, b"ours", compute()).await.unwrap();
    let kept = store.head(&at).await.unwrap().unwrap();
    assert_eq!(kept.checksums, digests(b"ours", &[Algorithm::Sha256]));
    fs::write(top.path().join("objects/a"), b"their").unwrap();
    let theirs = store.head(&at).await.unwrap().unwrap();
    assert!(theirs.checksums.is_empty() && theirs.etag != kept.etag);
    put(&store, &at, b"again", compute()).await.unwrap();
    // A copy is compared with the digests of what it is made of.
    let facts = fs::metadata(top.path().join("objects/a")).unwrap();
    fs::write(top.path().join("objects/a"), b"ag4in").unwrap();
    let file = fs::File::options().write(true).open(top.path().join("objects/a")).unwrap();
    file.set_modified(facts.modified().unwrap()).unwrap();
    let failed = store.copy(&at, None, &item(&space, "b"), &Condition::None).await.unwrap_err();
    assert!(matches!(failed.kind, ErrorKind::Digest { .. }), "{failed}");
    assert!(store.head(&item(&space, "b")).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_read_an_item_may_read_its_record() {
    let top = tempfile::tempdir().unwrap();
    let (store, space) = with_space(top.path()).await;
    put(&store, &item(&space, "a"), b"a", Put { compute: vec![Algorithm::Sha256], ..Put::default() }).await.unwrap();
    let records = top.path().join(".queuekeeper/records/objects");
    let folder = fs::read_dir(records).unwrap().next().unwrap().unwrap().path();
    let record = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&record), mode(&top.path().join("objects/a")));
    fs::set_permissions(&record, fs::Permissions::from_mode(0o200)).unwrap();
    if !rustix::process::geteuid().is_root() {
        let failed = store.head(&item(&space, "a")).await.unwrap_err().to_string();
        assert!(failed.contains(&record.display().to_string()), "{failed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_ended_never_appears() {
    let top = tempfile::tempdir().unwrap();
    let (store, space) = with_space(top.path()).await;
    let [from, to] = ["a", "b"].map(|key| item(&space, key));
    put(&store, &from, b"a", Put::default()).await.unwrap();
    let control = CopyControl::default();
    control.abort.cancel();
    let ended = store.copy_with(&from, None, &to, &Condition::None, &control).await.unwrap_err();
    assert!(matches!(ended.kind, ErrorKind::Stopped(_)), "{ended}");
    assert!(store.head(&to).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_link_leads_out_of_a_space() {
    let (top, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, space) = with_space(top.path()).await;
    fs::write(outside.path().join("secret"), b"secret").unwrap();
    symlink(outside.path(), top.path().join("objects/out")).unwrap();
    symlink(outside.path().join("secret"), top.path().join("objects/file")).unwrap();
    for key in ["out/secret", "file"] {
        let failed = store.get(&item(&space, key), None, None).await.map(drop).unwrap_err();
        assert!(failed.to_string().contains("symbolic link"), "{failed}");
        assert!(put(&store, &item(&space, key), b"x", Put::default()).await.is_err());
    }
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
    let listed = store.list(&space, b"", None).try_collect::<Vec<_>>().await.unwrap_err();
    assert!(listed.to_string().contains("rename or remove it"), "{listed}");
    let listed = store.list(&space, b"out/s", None).try_collect::<Vec<_>>().await.unwrap_err();
    assert!(listed.to_string().contains("symbolic link"), "{listed}");
    symlink(outside.path(), top.path().join("linked")).unwrap();
    let linked: SpaceName = "linked".parse().unwrap();
    assert!(store.head(&item(&linked, "secret")).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_by_prefix_looks_at_nothing_beside_it() {
    let top = tempfile::tempdir().unwrap();
    let (store, space) = with_space(top.path()).await;
    let long = format!("{}/x", "l".repeat(400));
    let keys = ["a/b/c", "a/b", "a/b//d", "a/bc", "a/b/%2E", "//e", "/", long.as_str()];
    for key in keys {
        put(&store, &item(&space, key), b"x", Put::default()).await.unwrap();
    }
    // It ends a listing that comes upon it.
    symlink("/dev/null", top.path().join("objects/a/odd")).unwrap();
    symlink("/dev/null", top.path().join("objects/odd")).unwrap();
    let listed = async |prefix: &str| {
        let found = store.list(&space, prefix.as_bytes(), None).map_ok(|item| item.key.to_string());
        found.try_collect::<Vec<_>>().await
    };
    let long_folder = format!("{}/", "l".repeat(400));
    for (prefix, expected) in [
        ("a/b/", &["a/b/%2E", "a/b//d", "a/b/c"][..]),
        ("a/b/c", &["a/b/c"]),
        ("a/b//", &["a/b//d"]),
        ("//", &["//e"]),
        ("a/b/c/", &[]),
        ("gone/", &[]),
        (&long_folder, &[&long]),
    ] {
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(listed(prefix).await.unwrap(), expected, "{prefix}");
    }
    for prefix in ["a/", "a/b", "", "l"] {
        assert!(listed(prefix).await.unwrap_err().to_string().contains("odd"), "{prefix}");
    }
    let gone = store.list(&"gone".parse().unwrap(), b"a/", None).try_collect::<Vec<_>>().await.unwrap_err();
    assert!(matches!(gone.kind, ErrorKind::NoSpace), "{gone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_writer_left_is_swept_and_what_is_there_stays() {
    let top = tempfile::tempdir().unwrap();
    let (store, space) = with_space(top.path()).await;
    let compute = || Put { compute: vec![Algorithm::Sha256], ..Put::default() };
    for key in ["stays", "goes"] {
        put(&store, &item(&space, key), b"content", compute()).await.unwrap();
    }
    fs::remove_file(top.path().join("objects/goes")).unwrap();
    fs::write(top.path().join(".queuekeeper/temporary/left"), b"half").unwrap();
    let now = Timestamp::now();
    assert_eq!(store.sweep(now - SignedDuration::from_hours(1)).await.unwrap(), 0);
    assert_eq!(store.sweep(now + SignedDuration::from_hours(1)).await.unwrap(), 2);
    assert!(!store.head(&item(&space, "stays")).await.unwrap().unwrap().checksums.is_empty());
    assert_eq!(files_below(&top.path().join(".queuekeeper/records")), 1);
    // Those that the last look could not have removed only.
    fs::remove_file(top.path().join("objects/stays")).unwrap();
    assert_eq!(store.sweep(now).await.unwrap(), 0);
    assert_eq!(store.sweep(Timestamp::now() + SignedDuration::from_secs(1)).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_done_although_the_record_of_what_was_there_before_cannot_be_removed() {
    let top = tempfile::tempdir().unwrap();
    let (store, space) = with_space(top.path()).await;
    let compute = || Put { compute: vec![Algorithm::Sha256], ..Put::default() };
    let at = item(&space, "a");
    // A directory in the place of the record, which is no file to remove.
    let block = || {
        let records = top.path().join(".queuekeeper/records/objects");
        let folder = fs::read_dir(&records).unwrap().next().unwrap().unwrap().path();
        let record = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_file());
        let record = record.unwrap();
        fs::remove_file(&record).unwrap();
        fs::create_dir(&record).unwrap();
    };
    put(&store, &at, b"one", compute()).await.unwrap();
    block();
    let written = put(&store, &at, b"two", compute()).await.unwrap();
    assert_eq!(store.head(&at).await.unwrap().unwrap().etag, written.etag);
    block();
    assert!(store.delete(&at, Some(&written.etag)).await.unwrap());
    assert!(store.head(&at).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_and_one_below_it_are_both_there_at_every_instant() {
    let top = tempfile::tempdir().unwrap();
    let (store, space) = with_space(top.path()).await;
    let (one, below) = (item(&space, "d"), item(&space, "d/e"));
    for round in 0..20u8 {
        put(&store, &one, &[round], Put::default()).await.unwrap();
        let writes = async {
            put(&store, &below, b"below", Put::default()).await.unwrap();
            store.delete(&below, None).await.unwrap();
        };
        let reads = async {
            for _ in 0..20 {
                assert_eq!(read(&store, &one).await.unwrap(), [round]);
            }
        };
        let overwrites = async {
            for _ in 0..5 {
                put(&store, &one, &[round], Put::default()).await.unwrap();
            }
        };
        tokio::join!(writes, reads, overwrites);
        assert_eq!(list(&store, &space, b"", None).await, [(b"d".to_vec(), 1)]);
        store.delete(&one, None).await.unwrap();
        assert_eq!(list(&store, &space, b"", None).await, []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_file_system_refuses_is_one_line_that_names_the_store() {
    let top = tempfile::tempdir().unwrap();
    let failed = DirectoryStore::open("main".parse().unwrap(), top.path().join("gone")).await.map(drop).unwrap_err();
    assert!(failed.to_string().starts_with("store main: "), "{failed}");
    assert!(failed.to_string().contains("mount its volume"), "{failed}");
    let file = top.path().join("file");
    fs::write(&file, b"").unwrap();
    assert!(DirectoryStore::open("main".parse().unwrap(), file).await.is_err());
    let (store, space) = with_space(top.path()).await;
    // Root may write everywhere, so that only others see it.
    fs::set_permissions(top.path().join("objects"), fs::Permissions::from_mode(0o500)).unwrap();
    let written = put(&store, &item(&space, "a"), b"a", Put::default()).await;
    if !rustix::process::geteuid().is_root() {
        assert!(written.unwrap_err().to_string().contains("change the owner or mode"));
    }
    fs::set_permissions(top.path().join("objects"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_breaks_off_leaves_nothing() {
    let top = tempfile::tempdir().unwrap();
    let (store, space) = with_space(top.path()).await;
    let half = content(&vec![1; 3_000_000], 1000);
    let broken = half.chain(futures::stream::iter([Err(std::io::Error::other("cut off"))])).boxed();
    assert!(store.put(&item(&space, "a"), broken, Put::default()).await.is_err());
    assert_eq!(files_below(top.path()), files_below(&top.path().join(".queuekeeper/locks")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_is_away_is_no_empty_store_and_nothing_is_begun_in_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let (top, away) = (directory.path().join("store"), directory.path().join("away"));
    fs::create_dir(&top).unwrap();
    let (store, space) = with_space(&top).await;
    let at = item(&space, "a");
    put(&store, &at, b"content", Put::default()).await.unwrap();
    let other: SpaceName = "others".parse().unwrap();
    for is_mount_point in [false, true] {
        fs::rename(&top, &away).unwrap();
        if is_mount_point {
            fs::create_dir(&top).unwrap();
        }
        let failed = [
            store.create_space(&other).await.unwrap_err(),
            store.delete_space(&space).await.unwrap_err(),
            store.spaces().await.unwrap_err(),
            store.head(&at).await.unwrap_err(),
            read(&store, &at).await.unwrap_err(),
            put(&store, &at, b"more", Put::default()).await.unwrap_err(),
            store.delete(&at, None).await.unwrap_err(),
            store.list(&space, b"", None).try_next().await.unwrap_err(),
            store.probe().await.unwrap_err(),
        ];
        for error in failed {
            let shown = error.to_string();
            assert!(error.is_temporary() && shown.contains("mount its volume"), "{shown}");
            assert!(shown.contains(&top.display().to_string()), "{shown}");
        }
        if is_mount_point {
            assert_eq!(fs::read_dir(&top).unwrap().count(), 0);
            fs::remove_dir(&top).unwrap();
        }
        fs::rename(&away, &top).unwrap();
        assert_eq!(read(&store, &at).await.unwrap(), b"content");
    }
    // What is missing in one that is there is missing.
    assert!(matches!(read(&store, &item(&space, "b")).await.unwrap_err().kind, ErrorKind::NotFound));
    assert!(matches!(read(&store, &item(&other, "b")).await.unwrap_err().kind, ErrorKind::NoSpace));
}

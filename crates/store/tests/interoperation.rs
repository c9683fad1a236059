//! The S3 store at a server that nobody here wrote: `s3s-fs`, which keeps objects as files, and so not every key.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use queuekeeper_store::retry::RetryPolicy;
use queuekeeper_store::s3::{AccessKey, Credentials, S3Config, S3Store};
use queuekeeper_store::store::{Condition, EntityTag, Put, UserProperties};
use queuekeeper_store::{Algorithm, ErrorKind, Key, KeyForm, SpaceName, Store, StoreFamilies};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

#[path = "support/contract.rs"]
#[allow(dead_code, reason = "it has what a store with every promise is asked for")]
mod contract;

use contract::{content, digests, item, list, odd_keys, put, read};

const BUCKET: &str = "preservation";

const MIB: usize = 1 << 20;

/// The server, and a store in it.
struct Fixture {
    store: S3Store,
    space: SpaceName,
    _accepting: AbortOnDropHandle<()>,
    _top: TempDir,
}

impl Fixture {
    async fn start() -> Self {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join(BUCKET)).unwrap();
        let mut builder = S3ServiceBuilder::new(FileSystem::new(top.path()).unwrap());
        builder.set_auth(SimpleAuth::from_single("key", "secret"));
        let service = builder.build();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let accepting = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let service = service.clone();
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        let mut config = S3Config::new("other".parse().unwrap(), format!("s3://{BUCKET}/copies").parse().unwrap());
        config.endpoint = Some(endpoint);
        config.credentials = Credentials::Key(AccessKey::new("key", "secret"));
        config.retry = RetryPolicy { attempts: 2, ..RetryPolicy::default() };
        let metrics = StoreFamilies::default().store(&config.name);
        let store = S3Store::new(config, metrics).await.unwrap();
        let space: SpaceName = "maps".parse().unwrap();
        assert!(store.create_space(&space).await.unwrap());
        Self { store, space, _accepting: AbortOnDropHandle::new(accepting), _top: top }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_says_which_conditions_and_keys_it_does_not_hold() {
    let Fixture { store, space, .. } = &Fixture::start().await;
    let can = store.probe().await.unwrap();
    assert!(can.if_absent && !can.if_match, "{can:?}");
    assert_eq!(can.refused_keys, KeyForm::ALL);
    assert_eq!(list(store, space, b"", None).await, []);
    assert_eq!(store.spaces().await.unwrap(), std::slice::from_ref(space));
}

#[tokio::test(flavor = "multi_thread")]
async fn content_goes_in_and_out_whole_and_in_parts_and_by_ranges() {
    let Fixture { store, space, .. } = &Fixture::start().await;
    let user = UserProperties {
        content_type: Some("image/tiff".to_owned()),
        metadata: [("creator".to_owned(), "A. Author".to_owned())].into(),
        ..UserProperties::default()
    };
    for size in [0, 1, 8 * MIB, 17 * MIB + 1] {
        let bytes: Vec<u8> = (0..size).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let (at, to) = (item(space, format!("a/{size}")), item(space, format!("copies of/{size}")));
        let put = Put {
            size: Some(size as u64),
            expected: digests(&bytes, &[Algorithm::Md5, Algorithm::Sha256]),
            user: user.clone(),
            condition: Condition::IfAbsent,
            ..Put::default()
        };
        let written = store.put(&at, content(&bytes, 65_521), put.clone()).await.unwrap();
        let found = store.head(&at).await.unwrap().unwrap();
        assert_eq!((found.size, &found.etag, &found.user), (size as u64, &written.etag, &user));
        assert_ne!(found.checksums.agree(&digests(&bytes, &Algorithm::ALL)), Some(false), "{:?}", found.checksums);
        assert!(read(store, &at).await.unwrap() == bytes, "{size}");
        // It closes the connection on content that it refuses: the same content would count as written by the lost
        // request.
        let put = Put { size: Some(5), expected: digests(b"other", &[Algorithm::Sha256]), ..put };
        let refused = store.put(&at, content(b"other", 5), put).await.unwrap_err();
        assert!(refused.is_precondition(), "{refused}");
        let wrong = Put { expected: digests(b"other", &[Algorithm::Sha256]), ..Put::default() };
        let refused = store.put(&at, content(&bytes, 65_521), wrong).await.unwrap_err();
        assert!(matches!(refused.kind, ErrorKind::Digest { .. }), "{refused}");

        if size > 0 {
            let end = size as u64;
            for range in [0..1, end - 1..end, end / 2..end + 10] {
                let chunks = store.get(&at, Some(range.clone()), Some(&written.etag)).await.unwrap().chunks;
                let chunks: Vec<_> = futures::TryStreamExt::try_collect(chunks).await.unwrap();
                let [from, to] = [range.start, range.end.min(end)].map(|at| usize::try_from(at).unwrap());
                assert!(chunks.concat() == bytes[from..to], "{range:?}");
            }
        }
        let other = EntityTag("0".repeat(32));
        assert!(store.get(&at, None, Some(&other)).await.is_err_and(|error| error.is_precondition()));
        let copied = store.copy(&at, Some(&written.etag), &to, &Condition::None).await.unwrap();
        assert_eq!(copied.size, size as u64);
        assert!(read(store, &to).await.unwrap() == bytes, "{size}");
        assert!(store.delete(&to, None).await.unwrap());
        assert!(store.head(&to).await.unwrap().is_none());
    }
    assert_eq!(list(store, space, b"", None).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_an_item_of_its_own_or_an_error_that_names_it() {
    let Fixture { store, space, .. } = &Fixture::start().await;
    let mut there = BTreeMap::new();
    // It says that names in its lists are encoded and does not encode them: those with control characters are no XML,
    // and those with a percent or plus sign are decoded to other ones. Both fail the list, as a whole.
    let is_listable = |key: &Vec<u8>| !key.iter().any(|byte| *byte < b' ' || matches!(*byte, 0x7f | b'%' | b'+'));
    for key in odd_keys().into_iter().filter(is_listable) {
        match put(store, &item(space, &key), &key, Put::default()).await {
            Ok(_) => _ = there.insert(key.clone(), key.len() as u64),
            Err(error) => {
                let named = item(space, &key).to_string();
                assert!(error.subject == named, "{error}");
            }
        }
    }
    assert!(there.len() > 20);
    let expected: Vec<_> = there.clone().into_iter().collect();
    assert_eq!(list(store, space, b"", None).await, expected);
    for key in there.keys() {
        let here = item(space, key);
        assert_eq!(read(store, &here).await.unwrap(), *key, "{here}");
        assert!(store.delete(&here, None).await.unwrap(), "{here}");
    }
    assert_eq!(list(store, space, b"", None).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_several_pages_is_in_order_and_goes_on_behind_any_key() {
    let Fixture { store, space, .. } = &Fixture::start().await;
    let mut expected = Vec::new();
    for number in 0..1_200 {
        let key = format!("folder {:02}/{number:05}", number / 100);
        put(store, &item(space, &key), b"x", Put::default()).await.unwrap();
        expected.push((key.into_bytes(), 1));
    }
    assert_eq!(list(store, space, b"", None).await, expected);
    let after = Key::new(&*expected[1_100].0).unwrap();
    assert_eq!(list(store, space, b"", Some(&after)).await, expected[1_101..]);
    assert_eq!(list(store, space, b"folder 11/", None).await, expected[1_100..]);
}

//! What every store promises, tried on one.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use queuekeeper_store::store::{Chunks, CommitGuard, Condition, EntityTag, Put, UserProperties, Written};
use queuekeeper_store::{Algorithm, Digests, Error, ErrorKind, Hashers, Item, Key, SpaceName, Store};

/// Keys that some store or library takes for others, or for none.
pub(crate) fn odd_keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = [
        "a//b",
        "a/b",
        "/a",
        "a/",
        "/",
        "//",
        ".",
        "..",
        "a/./b",
        "a/../b",
        "a/..",
        "d",
        "d/e",
        "d/e/f",
        "d!",
        "d-",
        "d0",
        "%",
        "%2F",
        "%2f",
        "%zz",
        "100%",
        "%25",
        "%2E%2E",
        "a b",
        "a+b",
        "a%20b",
        "a?b",
        "a#b",
        "a&b=c",
        "a\\b",
        "a\tb",
        "a\nb",
        "a\rb",
        "a\u{1}b",
        "\u{7f}",
        "e\u{301}",
        "\u{e9}",
        "\u{202e}a",
        "😀",
        "\"<>'",
        " a ",
        "a:b",
        "~a",
        "a*b",
        "(a)",
    ]
    .into_iter()
    .map(|key| key.as_bytes().to_vec())
    .collect();
    keys.extend([vec![b'x'; 1024], vec![b'x'; 255], vec![b'x'; 256], "é".repeat(512).into_bytes()]);
    keys.push([vec![b'y'; 255], vec![b'/'], vec![b'y'; 256]].concat());
    keys
}

/// An item of a space.
pub(crate) fn item(space: &SpaceName, key: impl AsRef<[u8]>) -> Item {
    Item::new(space.clone(), Key::new(key.as_ref()).unwrap())
}

/// Content in pieces of that many bytes.
pub(crate) fn content(bytes: &[u8], piece: usize) -> Chunks {
    let pieces: Vec<_> = bytes.chunks(piece.max(1)).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    stream::iter(pieces).boxed()
}

/// The digests of some bytes.
pub(crate) fn digests(bytes: &[u8], algorithms: &[Algorithm]) -> Digests {
    let mut hashers = Hashers::new(algorithms.iter().copied());
    hashers.update(bytes);
    hashers.finish()
}

/// Writes some bytes.
pub(crate) async fn put(store: &dyn Store, item: &Item, bytes: &[u8], put: Put) -> Result<Written, Error> {
    store.put(item, content(bytes, 7), put).await
}

/// Reads an item whole.
pub(crate) async fn read(store: &dyn Store, item: &Item) -> Result<Vec<u8>, Error> {
    let chunks = store.get(item, None, None).await?.chunks;
    Ok(chunks.try_collect::<Vec<_>>().await.unwrap().concat())
}

/// The keys of a space, with sizes.
pub(crate) async fn list(
    store: &dyn Store,
    space: &SpaceName,
    prefix: &[u8],
    after: Option<&Key>,
) -> Vec<(Vec<u8>, u64)> {
    let listed: Vec<_> = store.list(space, prefix, after).try_collect().await.unwrap();
    listed.into_iter().map(|item| (item.key.as_bytes().to_vec(), item.size)).collect()
}

/// Everything that a store promises.
pub(crate) async fn keeps_its_promises(store: Arc<dyn Store>) {
    let store = &*store;
    spaces(store).await;
    let space: SpaceName = "contract".parse().unwrap();
    assert!(store.create_space(&space).await.unwrap());
    every_key_is_an_item_of_its_own(store, &space).await;
    conditions_hold(store, &space).await;
    content_appears_whole_or_not_at_all(store, &space).await;
    ranges_and_states(store, &space).await;
    properties_are_kept(store, &space).await;
    assert_eq!(list(store, &space, b"", None).await, []);
    assert!(store.delete_space(&space).await.unwrap());
}

async fn spaces(store: &dyn Store) {
    let (one, two): (SpaceName, SpaceName) = ("one".parse().unwrap(), "two-2".parse().unwrap());
    assert_eq!(store.spaces().await.unwrap(), []);
    assert!(store.create_space(&two).await.unwrap() && store.create_space(&one).await.unwrap());
    assert!(!store.create_space(&one).await.unwrap());
    assert_eq!(store.spaces().await.unwrap(), [one.clone(), two.clone()]);
    assert_eq!(list(store, &one, b"", None).await, []);
    let at = item(&one, "a");
    put(store, &at, b"a", Put::default()).await.unwrap();
    let refused = store.delete_space(&one).await.unwrap_err();
    assert!(matches!(refused.kind, ErrorKind::NotEmpty), "{refused}");
    assert!(store.delete(&at, None).await.unwrap());
    assert!(store.delete_space(&one).await.unwrap() && store.delete_space(&two).await.unwrap());
    assert!(!store.delete_space(&one).await.unwrap());
    assert_eq!(store.spaces().await.unwrap(), []);
    for failed in [
        store.head(&at).await.unwrap_err(),
        put(store, &at, b"a", Put::default()).await.unwrap_err(),
        store.list(&one, b"", None).try_collect::<Vec<_>>().await.unwrap_err(),
    ] {
        assert!(matches!(failed.kind, ErrorKind::NoSpace), "{failed}");
        assert!(failed.to_string().contains(store.name().as_str()), "{failed}");
    }
}

async fn every_key_is_an_item_of_its_own(store: &dyn Store, space: &SpaceName) {
    let mut there = BTreeMap::new();
    // Both orders of what lies below what: `d` before `d/e`, and after it.
    for round in 0..2 {
        let mut keys = odd_keys();
        if round == 1 {
            keys.reverse();
        }
        for key in &keys {
            let written = match put(store, &item(space, key), key, Put::default()).await {
                Ok(written) => written,
                Err(error) => {
                    let is_named = matches!(error.kind, ErrorKind::Unsupported(_));
                    assert!(is_named && error.to_string().contains(&Key::new(&**key).unwrap().to_string()), "{error}");
                    continue;
                }
            };
            assert_eq!(written.size, key.len() as u64);
            there.insert(key.clone(), key.len() as u64);
        }
        assert!(there.len() > 40, "{there:?}");
        let expected: Vec<_> = there.clone().into_iter().collect();
        assert_eq!(list(store, space, b"", None).await, expected);
        for (at, key) in there.keys().enumerate() {
            let here = item(space, key);
            assert_eq!(read(store, &here).await.unwrap(), *key, "{here}");
            assert!(store.head(&here).await.unwrap().is_some_and(|found| found.size == key.len() as u64), "{here}");
            let after = Key::new(&**key).unwrap();
            assert_eq!(list(store, space, b"", Some(&after)).await, expected[at + 1..], "after {after}");
            let below: Vec<_> = expected.iter().filter(|(other, _)| other.starts_with(key)).cloned().collect();
            assert_eq!(list(store, space, key, None).await, below, "with {after}");
        }
        let copied = item(space, "copied//to/.");
        for key in there.keys() {
            let here = item(space, key);
            store.copy(&here, None, &copied, &Condition::None).await.unwrap();
            assert_eq!(read(store, &copied).await.unwrap(), *key);
        }
        store.delete(&copied, None).await.unwrap();
        let mut left: BTreeSet<_> = there.keys().cloned().collect();
        for key in std::mem::take(&mut there).into_keys() {
            let here = item(space, &key);
            store.delete(&here, None).await.unwrap();
            left.remove(&key);
            assert!(store.head(&here).await.unwrap().is_none(), "{here}");
            assert!(matches!(store.get(&here, None, None).await.map(drop).unwrap_err().kind, ErrorKind::NotFound));
            store.delete(&here, None).await.unwrap();
        }
        assert_eq!(list(store, space, b"", None).await, []);
    }
}

async fn conditions_hold(store: &dyn Store, space: &SpaceName) {
    let at = item(space, "conditions");
    let with = |condition| Put { condition, ..Put::default() };
    let first = put(store, &at, b"first", with(Condition::IfAbsent)).await.unwrap();
    for refused in [Condition::IfAbsent, Condition::IfMatch(EntityTag("other".to_owned()))] {
        let error = put(store, &at, b"other", with(refused)).await.unwrap_err();
        assert!(error.is_precondition(), "{error}");
    }
    let second = put(store, &at, b"again", with(Condition::IfMatch(first.etag.clone()))).await.unwrap();
    assert_ne!(first.etag, second.etag);
    assert!(
        put(store, &at, b"late!", with(Condition::IfMatch(first.etag.clone()))).await.unwrap_err().is_precondition()
    );
    assert!(store.get(&at, None, Some(&first.etag)).await.map(drop).unwrap_err().is_precondition());
    assert!(store.delete(&at, Some(&first.etag)).await.unwrap_err().is_precondition());
    let to = item(space, "copy");
    for (if_match, condition, is_done) in [
        (Some(&first.etag), Condition::None, false),
        (Some(&second.etag), Condition::IfAbsent, true),
        (None, Condition::IfAbsent, false),
        (None, Condition::None, true),
    ] {
        let copied = store.copy(&at, if_match, &to, &condition).await;
        assert_eq!(copied.is_ok(), is_done, "{if_match:?} {condition:?}");
        assert!(copied.err().is_none_or(|error| error.is_precondition()));
    }
    assert_eq!(read(store, &at).await.unwrap(), b"again");
    store.delete(&at, Some(&second.etag)).await.unwrap();
    store.delete(&to, None).await.unwrap();
    let missing = put(store, &at, b"x", with(Condition::IfMatch(second.etag))).await.unwrap_err();
    assert!(matches!(missing.kind, ErrorKind::Precondition | ErrorKind::NotFound), "{missing}");

    // Of many at the same time, one wins.
    let rivals = (0..8u8).map(|rival| put_owned(store, &at, vec![rival; 100], Condition::IfAbsent));
    let outcomes = futures::future::join_all(rivals).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert!(outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).all(Error::is_precondition));
    let winner = outcomes.iter().position(Result::is_ok).unwrap();
    assert_eq!(read(store, &at).await.unwrap(), vec![u8::try_from(winner).unwrap(); 100]);
    store.delete(&at, None).await.unwrap();
}

async fn put_owned(store: &dyn Store, at: &Item, bytes: Vec<u8>, condition: Condition) -> Result<Written, Error> {
    put(store, at, &bytes, Put { condition, ..Put::default() }).await
}

/// A guard that refuses, or looks at what passes.
struct Watched(Option<&'static str>, parking_lot::Mutex<Vec<(u64, Digests)>>);

#[async_trait::async_trait]
impl CommitGuard for Watched {
    async fn pass(&self, size: u64, digests: &Digests) -> Result<(), String> {
        self.1.lock().push((size, digests.clone()));
        self.0.map_or(Ok(()), |why| Err(why.to_owned()))
    }
}

async fn content_appears_whole_or_not_at_all(store: &dyn Store, space: &SpaceName) {
    let at = item(space, "whole");
    // More than one part, for those who send parts.
    let large: Vec<u8> = (0..9_500_000u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    for bytes in [&b""[..], b"small", &large] {
        let all = digests(bytes, &Algorithm::ALL);
        let wrong = digests(b"other", &[Algorithm::Sha256]);
        let size = bytes.len() as u64;
        let send = |put| store.put(&at, content(bytes, 100_000), put);
        let failed = send(Put { expected: wrong, ..Put::default() }).await.unwrap_err();
        assert!(matches!(failed.kind, ErrorKind::Digest { .. }), "{failed}");
        for wrong in [size + 1, size.wrapping_sub(1)].into_iter().filter(|wrong| *wrong != u64::MAX) {
            let failed = send(Put { size: Some(wrong), ..Put::default() }).await.unwrap_err();
            assert!(matches!(failed.kind, ErrorKind::Size { .. }), "{failed}");
        }
        let closed = Arc::new(Watched(Some("the lease has ended"), parking_lot::Mutex::default()));
        let failed = send(Put { guard: Some(closed), ..Put::default() }).await.unwrap_err();
        assert!(failed.to_string().contains("the lease has ended"), "{failed}");
        let broken = content(bytes, 100_000).chain(stream::iter([Err(std::io::Error::other("cut off"))])).boxed();
        let failed = store.put(&at, broken, Put::default()).await.unwrap_err();
        assert!(matches!(failed.kind, ErrorKind::Source(_)), "{failed}");
        let put = Put::default();
        put.abort.cancel();
        let failed = send(put).await.unwrap_err();
        assert!(matches!(failed.kind, ErrorKind::Stopped(_)), "{failed}");
        // Who no longer waits has given it up.
        let endless = content(bytes, 100_000).chain(stream::pending()).boxed();
        assert!(store.put(&at, endless, Put::default()).now_or_never().is_none());
        assert!(store.head(&at).await.unwrap().is_none());

        let guard = Arc::new(Watched(None, parking_lot::Mutex::default()));
        let put = Put {
            size: Some(size),
            expected: all.clone(),
            compute: vec![Algorithm::Md5],
            guard: Some(Arc::<Watched>::clone(&guard)),
            ..Put::default()
        };
        let written = send(put).await.unwrap();
        assert_eq!((written.size, &written.digests), (size, &all));
        assert_eq!(*guard.1.lock(), [(size, all.clone())]);
        let found = store.head(&at).await.unwrap().unwrap();
        assert_eq!((found.size, &found.etag), (size, &written.etag));
        assert_ne!(found.checksums.agree(&all), Some(false));
        assert!(read(store, &at).await.unwrap() == bytes);
        store.delete(&at, None).await.unwrap();
    }
}

async fn ranges_and_states(store: &dyn Store, space: &SpaceName) {
    let at = item(space, "ranges");
    let bytes: Vec<u8> = (0..=255).collect();
    let written = put(store, &at, &bytes, Put::default()).await.unwrap();
    for range in [0..1, 0..256, 255..256, 10..20, 200..1000, 0..u64::MAX] {
        let got = store.get(&at, Some(range.clone()), Some(&written.etag)).await.unwrap();
        assert_eq!((got.properties.size, &got.properties.etag), (256, &written.etag));
        let end = usize::try_from(range.end.min(256)).unwrap();
        let chunks = got.chunks.try_collect::<Vec<_>>().await.unwrap().concat();
        assert_eq!(chunks, bytes[usize::try_from(range.start).unwrap()..end], "{range:?}");
    }
    for start in [256, 1000] {
        let error = store.get(&at, Some(start..2000), None).await.map(drop).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Range { size: 256 }), "{error}");
    }
    store.delete(&at, None).await.unwrap();
}

async fn properties_are_kept(store: &dyn Store, space: &SpaceName) {
    let (at, to) = (item(space, "properties"), item(space, "properties/of the copy"));
    let user = UserProperties {
        content_type: Some("text/plain; charset=utf-8".to_owned()),
        content_encoding: Some("gzip".to_owned()),
        metadata: [("creator", "R. Obbins"), ("x-y", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    };
    let written = put(store, &at, b"content", Put { user: user.clone(), ..Put::default() }).await.unwrap();
    let found = store.head(&at).await.unwrap().unwrap();
    assert_eq!((&found.user, &found.etag), (&user, &written.etag));
    store.copy(&at, None, &to, &Condition::None).await.unwrap();
    assert_eq!(store.head(&to).await.unwrap().unwrap().user, user);
    let other = UserProperties { content_type: Some("text/html".to_owned()), ..UserProperties::default() };
    let stale = EntityTag("other".to_owned());
    assert!(store.set_properties(&at, &other, Some(&stale)).await.unwrap_err().is_precondition());
    let set = store.set_properties(&at, &other, Some(&written.etag)).await.unwrap();
    let found = store.head(&at).await.unwrap().unwrap();
    assert_eq!((&found.user, &found.etag, found.size), (&other, &set.etag, 7));
    assert_eq!(read(store, &at).await.unwrap(), b"content");
    for gone in [&at, &to] {
        store.delete(gone, None).await.unwrap();
    }
    let missing = store.set_properties(&at, &other, None).await.unwrap_err();
    assert!(matches!(missing.kind, ErrorKind::NotFound), "{missing}");
}

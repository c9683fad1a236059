//! Every legal key, through every operation.

use futures::TryStreamExt as _;
use queuekeeper_store::store::{Condition, Item, Listed, Store as _, UserProperties};
use queuekeeper_store::{ErrorKind, Key};

use super::common::{BUCKET, Fixture, item};

/// Keys that some client normalizes, decodes or skips. `copies/maps/` is before each.
fn odd_keys() -> Vec<String> {
    let mut keys: Vec<String> = [
        "a",
        "a//b",
        "/a",
        "a/",
        "/",
        "//",
        ".",
        "..",
        "./a",
        "../a",
        "a/../b",
        "a/./b",
        "a/..",
        "d",
        "d/e",
        "d//",
        "a-b",
        "a.b",
        "a/b",
        "a b",
        " a",
        "a ",
        "a+b",
        "a%2Fb",
        "%zz",
        "%",
        "%00",
        "a%",
        "a?b=c",
        "a#b",
        "a&b",
        "a=b",
        "a;b",
        "a:b",
        "a@b",
        "a\\b",
        "a\"b",
        "a'b",
        "a<b>c",
        "a*b",
        "a|b",
        "a~b",
        "a{b}",
        "a^b",
        "a`b",
        "a\tb",
        "a\nb",
        "a\rb",
        "\u{1}",
        "\u{7f}",
        "e\u{301}",
        "\u{e9}",
        "\u{ffff}",
        "\u{10ffff}",
        "\u{fffe}",
        "\u{202e}a",
        "\u{1f600}",
        "?versionId=x",
        "..%2f..",
    ]
    .map(str::to_owned)
    .into();
    let room = Key::MOST_BYTES - "copies/maps/".len();
    keys.push("k".repeat(room));
    keys.push("\u{e9}".repeat(room / 2));
    keys
}

#[tokio::test]
async fn every_legal_key_is_written_listed_read_copied_changed_and_deleted_as_itself() {
    let fixture = Fixture::start().await;
    let store = &fixture.store;
    let mut keys = odd_keys();
    for key in &keys {
        fixture.put(key, key).await.unwrap();
    }
    // Each is an object of its own in the server, under its own bytes.
    keys.sort_unstable();
    let held = fixture.server.keys(BUCKET);
    let held: Vec<&str> = held.iter().filter_map(|key| key.strip_prefix("copies/maps/")).collect();
    assert_eq!(held, keys);
    let listed: Vec<Listed> = store.list(&item("a").space, b"", None).try_collect().await.unwrap();
    let listed: Vec<&str> = listed.iter().map(|listed| listed.key.as_str().unwrap()).collect();
    assert_eq!(listed, keys);

    let user = UserProperties { metadata: [("n".to_owned(), "1".to_owned())].into(), ..UserProperties::default() };
    for key in &keys {
        let item = item(key);
        assert_eq!(fixture.read(key).await, key.as_bytes(), "{key:?}");
        store.set_properties(&item, &user, None).await.unwrap();
        assert_eq!(store.head(&item).await.unwrap().unwrap().user, user, "{key:?}");
        let rest: Vec<Listed> = store.list(&item.space, b"", Some(&item.key)).try_collect().await.unwrap();
        assert_eq!(rest.len(), keys.iter().filter(|other| *other > key).count(), "after {key:?}");
    }
    // As long as the other one: the longest key has room for no more.
    let copies: queuekeeper_store::SpaceName = "more".parse().unwrap();
    store.create_space(&copies).await.unwrap();
    for key in &keys {
        let to = Item::new(copies.clone(), item(key).key);
        store.copy(&item(key), None, &to, &Condition::IfAbsent).await.unwrap();
        assert!(store.delete(&item(key), None).await.unwrap(), "{key:?}");
        assert_eq!(store.head(&item(key)).await.unwrap(), None, "{key:?}");
        let content = store.get(&to, None, None).await.unwrap();
        assert_eq!(super::common::read(content).await.unwrap(), key.as_bytes());
    }
    assert!(fixture.server.keys(BUCKET).iter().all(|key| !key.starts_with("copies/maps/")));
}

#[tokio::test]
async fn a_key_that_s3_cannot_hold_is_refused_by_name_and_no_request_is_made() {
    let fixture = Fixture::start().await.probed().await;
    let room = Key::MOST_BYTES - "copies/maps/".len();
    for (key, why) in [(vec![b'a', 0xff], "UTF-8"), (vec![b'k'; room + 1], "1024")] {
        let odd = Item::new(item("a").space, Key::new(key).unwrap());
        let error = fixture.store.head(&odd).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Unsupported(_)) && error.to_string().contains(why), "{error}");
    }
    assert!(fixture.server.counts().is_empty());
}

//! Inventories that are read back, and those that are refused.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};

use super::{Failure, Inventory, Loaded};
use crate::ocfl::chunks;

fn hex(digit: char) -> String {
    digit.to_string().repeat(128)
}

async fn read(text: &str, piece_bytes: usize) -> Result<Loaded, String> {
    let pieces: Vec<_> = text.as_bytes().chunks(piece_bytes).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    match chunks::read_inventory(stream::iter(pieces).boxed(), &Arc::from(std::env::temp_dir())).await {
        Ok(loaded) => Ok(loaded),
        Err(Failure::Form(why)) => Err(why),
        Err(Failure::Read(error) | Failure::Temporary(error)) => panic!("{error}"),
    }
}

async fn text(inventory: &Inventory) -> String {
    let pieces: Vec<Bytes> = chunks::inventory_chunks(Arc::new(inventory.clone())).try_collect().await.unwrap();
    String::from_utf8(pieces.concat()).unwrap()
}

/// Written by another program: other order, capitals, two content paths for one digest, no message, no user.
fn foreign() -> String {
    let (a, b) = (hex('a'), hex('b'));
    let big_a = hex('A');
    format!(
        r#"{{"head": "v2", "versions": {{
            "v2": {{"state": {{"{a}": ["é\u00e9", "x/y"], "{b}": ["\"\\"]}}, "created": "2020-01-02T03:04:05+01:00",
                    "user": {{"address": "mailto:a@b", "name": "A"}}}},
            "v1": {{"created": "2019-01-01T02:03:04Z", "state": {{"{a}": ["one"]}}, "message": "job x"}}}},
        "fixity": {{"md5": {{"0123": ["v1/content/one"]}}, "blake2b-512": {{"{b}": ["v2/content/two"]}}}},
        "contentDirectory": "content", "digestAlgorithm": "sha512", "id": "urn:1",
        "type": "https://ocfl.io/1.1/spec/#inventory",
        "manifest": {{"{big_a}": ["v1/content/one", "v1/content/again"], "{b}": ["v2/content/two"]}}}}"#
    )
}

#[tokio::test]
async fn what_another_program_wrote_is_kept_when_a_version_is_added() {
    let read_once = read(&foreign(), 7).await.unwrap();
    let inventory = read_once.inventory;
    assert_eq!((inventory.id(), inventory.head(), read_once.bytes), ("urn:1", 2, foreign().len() as u64));
    let version = inventory.version(2).unwrap();
    assert_eq!((version.created, version.message, version.files), ("2020-01-02T03:04:05+01:00", None, 3));
    assert_eq!(version.user.map(|user| (user.name.as_str(), user.address.as_deref())), Some(("A", Some("mailto:a@b"))));
    assert_eq!(inventory.version(1).and_then(|version| version.job()), None);
    let files = inventory.files(2).map(|file| file.map(|file| (file.path, file.content_path)));
    let mut paths: Vec<_> = files.collect::<Result<_, _>>().unwrap();
    paths.sort_unstable();
    assert_eq!(paths[0], ("\"\\".to_owned(), "v2/content/two".to_owned()));
    assert_eq!((paths[1].0.as_str(), paths[2].0.as_str()), ("x/y", "éé"));
    assert!(inventory.file(2, "one").unwrap().is_none() && inventory.file(1, "one").unwrap().is_some());
    assert_eq!((inventory.files(0).count(), inventory.files(3).count()), (0, 0));

    let written = text(&inventory).await;
    let again = read(&written, 4096).await.unwrap();
    assert_eq!(text(&again.inventory).await, written);
    assert_eq!(super::measure(&again.inventory).unwrap(), (again.digest, written.len() as u64));
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let (mut given, mut found) = (value(&foreign().to_lowercase()), value(&written.to_lowercase()));
    for value in [&mut given, &mut found] {
        // The order of an array says nothing.
        let manifest = value["manifest"][hex('a')].as_array_mut().unwrap();
        manifest.sort_by_key(ToString::to_string);
        let state = value["versions"]["v2"]["state"][hex('a')].as_array_mut().unwrap();
        state.sort_by_key(ToString::to_string);
    }
    assert_eq!(given, found);
}

#[tokio::test]
async fn what_is_no_inventory_is_refused_with_the_place_and_the_reason() {
    let long = "a".repeat(70_000);
    let many = (0..40).fold(String::new(), |mut all, number| {
        let _ = write!(all, r#""x{number}": {{}},"#);
        all
    });
    for (from, to, why) in [
        ("\"head\": \"v2\", ", "", "the inventory has no \"head\""),
        ("\"head\": \"v2\"", "\"head\": \"v3\"", "head is v3, and its 2 versions are not v1 to v3"),
        ("\"head\": \"v2\"", "\"head\": \"v02\"", "\"v02\" is no version name"),
        ("\"head\": \"v2\"", "\"head\": 2", "expected a string at line 1"),
        ("\"head\": \"v2\"", "\"head\": \"v2\", \"head\": \"v2\"", "key \"head\" comes twice at line 1"),
        ("\"head\": \"v2\"", "\"head\": \"v2\", \"more\": 1", "unknown key \"more\" at line 1"),
        ("\"v1\": {", "\"v10001\": {", "\"v10001\" is no version name"),
        ("\"v1\": {", "\"v2\": {", "version 2 comes twice"),
        ("spec/#inventory", "spec/#other", "type is \"https://ocfl.io/1.1/spec/#other\""),
        ("sha512", "sha256", "digestAlgorithm is \"sha256\"; this program reads \"sha512\" only"),
        ("\"contentDirectory\": \"content\"", "\"contentDirectory\": \"..\"", "contentDirectory is \"..\""),
        ("\"created\": \"2019-01-01T02:03:04Z\", ", "", "a version has no \"created\""),
        ("\"name\": \"A\"", "\"address\": \"A\"", "key \"address\" comes twice"),
        (&hex('A'), "zz", "sha512 digests have 128 hexadecimal digits at line"),
        (&hex('A'), &hex('c'), "the digest of \"one\" in version 1 is not in the manifest"),
        ("[\"one\"]", "[\"../one\"]", "it has a part '.' or '..' at line"),
        ("[\"one\"]", "[\"one\", \"one\"]", "path \"one\" comes twice in version 1"),
        ("[\"one\"]", "[\"one\", \"one/x\"]", "path \"one\" is a file and the folder of \"one/x\""),
        ("[\"one\"]", "\"one\"", "expected an array of paths"),
        ("\"v1/content/again\"]", "\"v1/content/one\"]", "content path \"v1/content/one\" comes twice"),
        ("\"v1/content/again\"]", "\"v1/content/one/x\"]", "content path \"v1/content/one\" is a file and the folder"),
        ("\"v1/content/again\"]", "\"v3/content/again\"]", "content path \"v3/content/again\" does not begin with"),
        ("\"v1/content/again\"]", "\"v+1/content/again\"]", "content path \"v+1/content/again\" does not begin with"),
        ("\"v1/content/again\"]", &format!("\"v1/content/{}\"]", "a".repeat(900)), "is longer than 800 bytes"),
        ("\"v1/content/again\"]", "\"x\"]", "content path \"x\" does not begin with"),
        ("\"v1/content/again\"]", "\"/etc/passwd\"]", "it begins or ends with a slash"),
        ("{\"0123\": [\"v1/content/one\"]}", "{\"0123\": [\"x\"]}", "the fixity block names \"x\", which is not in"),
        ("\"job x\"", &format!("\"{long}\""), "it has a string of more than 65536 bytes"),
        ("\"job x\"", &"[".repeat(5000), "it is nested more than 8 deep"),
        ("\"fixity\": {", &format!("\"fixity\": {{{many}"), "more than 32 algorithms"),
        ("\"manifest\": {", "\"manifest\": [", "expected an object of digests"),
        ("\"urn:1\"", "\"urn:1", "control character"),
    ] {
        let text = foreign();
        assert!(text.contains(from), "{from}");
        let refused = read(&text.replacen(from, to, 1), 1000).await.unwrap_err();
        assert!(refused.contains(why), "{from:?} -> {to:.50?}: {refused}");
        assert!(refused.len() < 500 && !refused.contains('\n'), "{refused}");
    }
    let more = read(&(foreign() + " 1"), 1000).await.unwrap_err();
    assert!(more.starts_with("trailing characters at line"), "{more}");
    let text = foreign();
    for length in 0..text.len() {
        let Some(start) = text.get(..length) else { continue };
        assert!(read(start, 300).await.is_err(), "cut off at {length}");
    }
}

//! Random sequences of changes, compared with a map of paths.

use proptest::prelude::*;
use queuekeeper_store::ocfl::{Abandoned, Start};

use crate::helpers::{Files, ID, begin, content, job, memory, paths, read_all, undigested};
use crate::memory::StoreKind;

#[derive(Clone, Debug)]
enum Change {
    Add(String, u8, bool),
    Replace(usize, u8, bool),
    Remove(usize),
    Rename(usize, String),
    Commit(bool),
    /// The writer is dropped, and the job begins again from the version before.
    Die,
}

fn path() -> impl Strategy<Value = String> {
    // Few names, so that files and folders meet; some that no store holds literally.
    proptest::collection::vec(prop_oneof!["[a-c]", Just("é".to_owned()), Just(".x".to_owned())], 1..4)
        .prop_map(|parts| parts.join("/"))
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        5 => (path(), 0..6_u8, any::<bool>()).prop_map(|(path, byte, known)| Change::Add(path, byte, known)),
        2 => (any::<usize>(), 0..6_u8, any::<bool>()).prop_map(|(at, byte, known)| Change::Replace(at, byte, known)),
        2 => any::<usize>().prop_map(Change::Remove),
        2 => (any::<usize>(), path()).prop_map(|(at, path)| Change::Rename(at, path)),
        2 => any::<bool>().prop_map(Change::Commit),
        1 => Just(Change::Die),
    ]
}

/// Whether a path can come into a version beside its files.
fn fits(path: &str, files: &Files) -> bool {
    let is_inside = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    files.keys().all(|other| other != path && !is_inside(other, path) && !is_inside(path, other))
}

fn file(byte: u8, is_known: bool) -> (Vec<u8>, queuekeeper_store::ocfl::NewFile) {
    let bytes = vec![b'a' + byte; usize::from(byte)];
    let file = if is_known { content(&bytes) } else { undigested(&bytes) };
    (bytes, file)
}

async fn run(changes: Vec<Change>) {
    let (_, _, root) = memory(StoreKind { tags_by_content: true, ..StoreKind::default() }).await;
    let object = root.object(ID).unwrap();
    let mut versions: Vec<Files> = Vec::new();
    let mut number = 1;
    let mut files = Files::new();
    let mut writer = begin(&object, job(number), Start::Head).await;
    for change in changes {
        let pick = |at: usize| files.keys().nth(at % files.len().max(1)).cloned();
        match change {
            Change::Add(path, byte, is_known) => {
                let (bytes, file) = file(byte, is_known);
                let added = writer.add(&path, file).await;
                assert_eq!(added.is_ok(), fits(&path, &files), "{path} {files:?}");
                if added.is_ok() {
                    files.insert(path, bytes);
                }
            }
            Change::Replace(at, byte, is_known) => {
                if let Some(path) = pick(at) {
                    let (bytes, file) = file(byte, is_known);
                    writer.replace(&path, file).await.unwrap();
                    files.insert(path, bytes);
                }
            }
            Change::Remove(at) => {
                if let Some(path) = pick(at) {
                    writer.remove(&path).unwrap();
                    files.remove(&path);
                }
            }
            Change::Rename(at, to) => {
                if let Some(from) = pick(at) {
                    let bytes = files.remove(&from).unwrap();
                    let renamed = writer.rename(&from, &to);
                    assert_eq!(renamed.is_ok(), fits(&to, &files), "{from} {to} {files:?}");
                    files.insert(if renamed.is_ok() { to } else { from }, bytes);
                }
            }
            Change::Commit(keeps) => {
                assert_eq!(writer.commit().await.unwrap() as usize, versions.len() + 1);
                versions.push(files.clone());
                number += 1;
                let start = if keeps { Start::Head } else { Start::Empty };
                writer = begin(&object, job(number), start).await;
                if !keeps {
                    files.clear();
                }
                assert_eq!(read_all(&object).await, versions);
                let verified = object.verify().await.unwrap();
                assert!(verified.is_valid(), "{:?}", verified.findings);
            }
            Change::Die => {
                drop(writer);
                writer = begin(&object, job(number), Start::Head).await;
                files = versions.last().cloned().unwrap_or_default();
            }
        }
        assert!(paths(&writer).iter().eq(files.keys()));
    }
    drop(writer);
    assert_eq!(read_all(&object).await, versions);
    if !versions.is_empty() {
        // What the last writer has left is removed as that of a killed one.
        object.repair(&Abandoned::All).await.unwrap();
        assert!(object.verify().await.unwrap().is_valid());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn an_object_has_what_was_done_to_it(changes in proptest::collection::vec(change(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(changes));
    }
}

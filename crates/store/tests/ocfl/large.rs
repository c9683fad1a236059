//! An object with many files: how much memory it takes, and how long.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use queuekeeper_store::ocfl::{NewFile, Root, Start};
use queuekeeper_store::{DirectoryStore, Store};

use crate::helpers::{ID, begin, content, job, validate};

/// How many files the test has without the long form.
const FEW: usize = 1000;

/// What each file of the object may add to the peak of memory, in bytes: inventories at two versions, a state that is
/// being written, and what the listing of a large folder takes.
const MOST_BYTES_PER_FILE: usize = 2048;

/// What does not depend on the number of files, in bytes.
const MOST_BYTES: usize = 64 << 20;

/// The peak of this process's memory since the last call, in bytes.
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    // Begins a new peak.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    kilobytes * 1024
}

fn path(number: usize) -> String {
    format!("producer/collection {:02}/folder-{:03}/page-{number:06}.tif", number % 100, number % 1000)
}

/// Content of 1 KiB that is made when it is read.
fn page(number: usize) -> NewFile {
    NewFile::new(move || stream::iter([io::Result::Ok(Bytes::from(format!("{number:01024}")))]).boxed())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_with_many_files_is_made_changed_and_verified_in_little_memory() {
    let long = std::env::var("QUEUEKEEPER_OCFL_FILES").ok().map(|files| files.parse().unwrap());
    let files: usize = long.unwrap_or(FEW);
    let top = tempfile::tempdir().unwrap();
    let store = DirectoryStore::open("main".parse().unwrap(), top.path().to_owned()).await.unwrap();
    let root = Root::open(Arc::new(store) as Arc<dyn Store>, "objects".parse().unwrap()).await.unwrap();
    let object = root.object(ID).unwrap();

    let before = peak_bytes();
    let mut began = Instant::now();
    let mut peak = 0;
    let mut report = |what: &str| {
        let bytes = peak_bytes();
        peak = peak.max(bytes);
        #[expect(clippy::print_stdout, reason = "the long form is run by hand, for its figures")]
        if long.is_some() {
            let [bytes, before] = [bytes, before].map(|bytes| bytes >> 20);
            println!(
                "{files} files, {what}: {:.1} s, peak {bytes} MB (before: {before} MB)",
                began.elapsed().as_secs_f64()
            );
        }
        began = Instant::now();
    };

    let mut writer = begin(&object, job(1), Start::Head).await;
    writer.put_all(stream::iter((0..files).map(|number| (path(number), page(number)))), 16).await.unwrap();
    report("content of version 1");
    assert_eq!(writer.commit().await.unwrap(), 1);
    report("commit of version 1");

    let mut writer = begin(&object, job(2), Start::Head).await;
    writer.replace(&path(7), content(b"changed")).await.unwrap();
    writer.rename(&path(8), "producer/moved").unwrap();
    assert_eq!(writer.commit().await.unwrap(), 2);
    report("version 2, with one file replaced");

    let snapshot = object.read().await.unwrap().unwrap();
    let inventory = snapshot.inventory();
    assert_eq!((inventory.files(1).count(), inventory.files(2).count()), (files, files));
    assert_eq!(inventory.content().count(), files + 1);
    assert!(inventory.file(1, &path(8)).is_some() && inventory.file(2, &path(8)).is_none());
    drop(snapshot);
    report("reading version 2");

    let verified = object.verify().await.unwrap();
    assert!(verified.is_valid(), "{:?}", verified.findings);
    assert_eq!((verified.files, verified.bytes), (files as u64 + 1, files as u64 * 1024 + 7));
    report("verification");

    // Other tests of this process take memory at the same time, where it is not the only one.
    if long.is_some() {
        let most = MOST_BYTES + files * MOST_BYTES_PER_FILE;
        assert!(peak - before < most, "{} bytes above {before}, at most {most}", peak - before);
    }
    validate(&[top.path().join("objects")]).unwrap();
}

//! An object with many files: how much memory it takes, and how long.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use queuekeeper_store::ocfl::{NewFile, Root, Start};
use queuekeeper_store::{DirectoryStore, Store};

use crate::helpers::{ID, begin, content, job, validate};

/// How many files the objects have that are compared, without the long form: so many that what is sorted in memory is full.
const FILES: [usize; 2] = [2_000, 6_000];

/// By how much the peak of a process's memory may grow from the smaller object to the larger one, in bytes. On a busy
/// machine it varies by 7 MB between equal runs; the long form has the files to tell 200 bytes for each from that.
const MOST_GROWTH: usize = 12 << 20;

/// The same in the long form, which begins with 1,000 files.
const MOST_GROWTH_LONG: usize = 20 << 20;

/// Names the number of files to the process that makes the object.
const CHILD: &str = "QUEUEKEEPER_OCFL_CHILD";

/// What its last line begins with.
const PEAK: &str = "peak of all, in bytes: ";

/// The peak of this process's memory, in bytes.
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

fn path(number: usize) -> String {
    format!("producer/collection {:02}/folder-{:03}/page-{number:06}.tif", number % 100, number % 1000)
}

/// Content of 1 KiB that is made when it is read.
fn page(number: usize) -> NewFile {
    NewFile::new(move || stream::iter([io::Result::Ok(Bytes::from(format!("{number:01024}")))]).boxed())
}

/// Makes an object with so many files, changes, reads and verifies it, and prints what that takes.
#[expect(clippy::print_stdout, reason = "the figures are read by the process that compares them, and by hand")]
async fn make_and_verify(files: usize, top: &Path) {
    let store = DirectoryStore::open("main".parse().unwrap(), top.to_owned()).await.unwrap();
    let root = Root::open(Arc::new(store) as Arc<dyn Store>, "objects".parse().unwrap()).await.unwrap();
    let object = root.object(ID).unwrap();
    let mut began = Instant::now();
    let mut report = |what: &str| {
        let (seconds, peak) = (began.elapsed().as_secs_f64(), peak_bytes() >> 20);
        println!("{files} files, {what}: {seconds:.1} s, peak so far {peak} MB");
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
    for number in (100..files).step_by(10) {
        writer.remove(&path(number)).unwrap();
    }
    let removed = (100..files).step_by(10).count();
    assert_eq!(writer.commit().await.unwrap(), 2);
    report("version 2, with files replaced, renamed and removed");

    let snapshot = object.read().await.unwrap().unwrap();
    let inventory = snapshot.inventory();
    assert_eq!((inventory.files(1).count(), inventory.files(2).count()), (files, files - removed));
    assert!(inventory.files(2).all(|file| file.is_ok_and(|file| file.content_path.starts_with('v'))));
    assert_eq!(inventory.content().count(), files + 1);
    assert!(inventory.file(1, &path(8)).unwrap().is_some() && inventory.file(2, &path(8)).unwrap().is_none());
    drop(snapshot);
    report("reading version 2");

    let verified = object.verify().await.unwrap();
    assert!(verified.is_valid(), "{:?}", verified.findings);
    assert_eq!((verified.files, verified.bytes), (files as u64 + 1, files as u64 * 1024 + 7));
    report("verification");
    println!("{PEAK}{}", peak_bytes());
}

/// The peak of the memory of a process of its own that makes an object with so many files.
fn peak_of(files: usize, is_long: bool) -> usize {
    // In memory that is not the process's, where there is some: a thousand files are synced in no time there.
    let shared = Path::new("/dev/shm");
    let top = if !is_long && shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }.unwrap();
    let name = "large::an_object_with_many_files_is_made_changed_and_verified_in_little_memory";
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name, "--nocapture"]).env(CHILD, files.to_string()).current_dir(top.path());
    let output = child.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    #[expect(clippy::print_stdout, reason = "the long form is run by hand, for its figures")]
    if is_long {
        printed.lines().filter(|line| line.starts_with(&files.to_string())).for_each(|line| println!("{line}"));
    }
    if is_long || files == FILES[0] {
        validate(&[top.path().join("objects")]).unwrap();
    }
    printed.lines().find_map(|line| line.strip_prefix(PEAK)).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_with_many_files_is_made_changed_and_verified_in_little_memory() {
    if let Ok(files) = std::env::var(CHILD) {
        return make_and_verify(files.parse().unwrap(), &std::env::current_dir().unwrap()).await;
    }
    let long = std::env::var("QUEUEKEEPER_OCFL_FILES").ok().map(|files| files.parse().unwrap());
    let ([few, many], most) = long.map_or((FILES, MOST_GROWTH), |files| ([1000, files], MOST_GROWTH_LONG));
    let [before, after] = [few, many].map(|files| peak_of(files, long.is_some()));
    assert!(after < before + most, "{before} bytes with {few} files, {after} with {many}");
}

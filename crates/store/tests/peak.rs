//! How much memory an object with many files takes: the peak of live bytes, which the allocator of this program counts.
//! No other test runs in it.
//!
//! The long form, by hand, prints each figure: `QUEUEKEEPER_OCFL_FILES=400000 cargo test -p queuekeeper-store --test
//! peak -- --nocapture`; with `QUEUEKEEPER_OCFL_STORE=s3`, in the S3 server of the tests, which is a process of its
//! own.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]
#![expect(clippy::print_stdout, reason = "the figures of the long form, and the address of the server")]

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use peak_alloc::PeakAlloc;
use queuekeeper_store::ocfl::{NewFile, Root, Start};
use queuekeeper_store::s3::{AccessKey, Credentials, S3Config, S3Store};
use queuekeeper_store::{DirectoryStore, Store, StoreFamilies};
use queuekeeper_testkit::s3::{S3Server, Settings};

#[path = "ocfl/helpers.rs"]
#[allow(dead_code, reason = "it has what the tests of objects need")]
mod helpers;
#[path = "support/memory.rs"]
mod memory;
#[path = "support/steps.rs"]
mod steps;

use helpers::{ID, begin, content, job, validate};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// How many files the objects have that are compared. With the first, nearly each buffer of what is sorted is full:
/// peaks grow up to some 10,000 files, and no more up to 24,000.
const FILES: [usize; 2] = [8_000, 12_000];

/// By how much a peak may differ between them, in bytes: the last buffers fill, and what is on its way at the same time
/// varies. That is less than 300 bytes for each of the files that one has more than the other.
const MOST_DIFFERENCE: usize = 896 << 10;

/// By how many bytes it may grow with each file: a filter of the names has two.
const MOST_PER_FILE: usize = 8;

/// Asks for a server, in a process of its own.
const SERVE: &str = "QUEUEKEEPER_PEAK_SERVE";

const BUCKET: &str = "preservation";

/// The S3 server of the tests, which ends with this.
struct Served {
    child: Child,
    endpoint: String,
}

impl Served {
    fn start(directory: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", TEST, "--nocapture"]).env(SERVE, directory);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let endpoint = lines.map(Result::unwrap).find(|line| line.starts_with("http://")).unwrap();
        Self { child, endpoint }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

async fn serve(directory: PathBuf) {
    let server = S3Server::start(Settings { directory: Some(directory), ..Settings::default() }).await.unwrap();
    server.create_bucket(BUCKET);
    println!("\n{}", server.endpoint());
    let wait = || io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(wait).await.unwrap().unwrap();
}

async fn s3(served: &Served) -> Arc<dyn Store> {
    let Settings { access_key, secret_key, .. } = Settings::default();
    let mut config = S3Config::new("replica".parse().unwrap(), format!("s3://{BUCKET}/copies").parse().unwrap());
    config.endpoint = Some(served.endpoint.clone());
    config.credentials = Credentials::Key(AccessKey::new(&access_key, &secret_key));
    let metrics = StoreFamilies::default().store(&config.name);
    Arc::new(S3Store::new(config, metrics).await.unwrap())
}

fn path(number: usize) -> String {
    format!("producer/collection {:02}/folder-{:03}/page-{number:06}.tif", number % 100, number % 1000)
}

/// Content that is made when it is read.
fn page(number: usize) -> NewFile {
    NewFile::new(move || stream::iter([io::Result::Ok(Bytes::from(format!("{number:01024}")))]).boxed())
}

/// What each phase had at its peak, in bytes that were not there before the first one.
struct Peaks {
    began: Instant,
    before: usize,
    phases: Vec<(&'static str, usize)>,
}

impl Peaks {
    fn begin() -> Self {
        ALLOCATOR.reset_peak_usage();
        Self { began: Instant::now(), before: ALLOCATOR.current_usage(), phases: Vec::new() }
    }

    fn end(&mut self, phase: &'static str, files: usize) {
        let peak = ALLOCATOR.peak_usage().saturating_sub(self.before);
        let seconds = self.began.elapsed().as_secs_f64();
        println!("{files} files, {phase}: {seconds:.1} s, peak {} KiB of live bytes", peak >> 10);
        self.phases.push((phase, peak));
        ALLOCATOR.reset_peak_usage();
        self.began = Instant::now();
    }
}

/// Makes an object with so many files, changes, reads and verifies it.
async fn peaks_of(files: usize, store: Arc<dyn Store>) -> Peaks {
    let root = Root::open(store, "objects".parse().unwrap()).await.unwrap();
    let object = root.object(ID).unwrap();
    let mut peaks = Peaks::begin();

    let mut writer = begin(&object, job(1), Start::Head).await;
    writer.put_all(stream::iter((0..files).map(|number| (path(number), page(number)))), 16).await.unwrap();
    peaks.end("content of version 1", files);
    assert_eq!(writer.commit().await.unwrap(), 1);
    peaks.end("commit of version 1", files);

    let mut writer = begin(&object, job(2), Start::Head).await;
    writer.replace(&path(7), content(b"changed")).await.unwrap();
    writer.rename(&path(8), "producer/moved").unwrap();
    for number in (100..files).step_by(10) {
        writer.remove(&path(number)).unwrap();
    }
    let removed = (100..files).step_by(10).count();
    assert_eq!(writer.commit().await.unwrap(), 2);
    peaks.end("version 2, with files replaced, renamed and removed", files);

    let snapshot = object.read().await.unwrap().unwrap();
    let inventory = snapshot.inventory();
    assert_eq!((inventory.files(1).count(), inventory.files(2).count()), (files, files - removed));
    assert!(inventory.files(2).all(|file| file.is_ok_and(|file| file.content_path.starts_with('v'))));
    assert_eq!(inventory.content().count(), files + 1);
    assert!(inventory.file(1, &path(8)).unwrap().is_some() && inventory.file(2, &path(8)).unwrap().is_none());
    drop(snapshot);
    peaks.end("reading version 2", files);

    let verified = object.verify().await.unwrap();
    assert!(verified.is_valid(), "{:?}", verified.findings);
    assert_eq!((verified.files, verified.bytes), (files as u64 + 1, files as u64 * 1024 + 7));
    peaks.end("verification", files);
    peaks
}

/// The peak of this process's memory, in MiB, as the system counts it.
fn resident_mib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() >> 10
}

const TEST: &str = "an_object_with_many_files_is_made_changed_and_verified_in_flat_memory";

#[tokio::test(flavor = "multi_thread")]
async fn an_object_with_many_files_is_made_changed_and_verified_in_flat_memory() {
    if let Some(directory) = std::env::var_os(SERVE) {
        return serve(directory.into()).await;
    }
    let long = std::env::var("QUEUEKEEPER_OCFL_FILES").ok().map(|files| files.parse().unwrap());
    let is_s3 = std::env::var("QUEUEKEEPER_OCFL_STORE").is_ok_and(|kind| kind == "s3");
    let files = long.map_or(FILES, |files| [FILES[0], files]);
    // In memory that is not the process's, where there is some: thousands of files are synced in no time there.
    let shared = Path::new("/dev/shm");
    let measured = async |number: usize| {
        let top = if long.is_none() && shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() };
        let top = top.unwrap();
        let served = is_s3.then(|| Served::start(top.path()));
        let store: Arc<dyn Store> = match &served {
            Some(served) => s3(served).await,
            None => Arc::new(DirectoryStore::open("main".parse().unwrap(), top.path().to_owned()).await.unwrap()),
        };
        let peaks = peaks_of(number, store).await;
        println!("{number} files: peak so far {} MiB, as the system counts it", resident_mib());
        if served.is_none() && (long.is_some() || number == FILES[0]) {
            validate(&[top.path().join("objects")]).unwrap();
        }
        peaks.phases
    };
    let most = MOST_DIFFERENCE + MOST_PER_FILE * (files[1] - files[0]);
    let few = measured(files[0]).await;
    let mut many = measured(files[1]).await;
    let is_larger = |((_, few), (_, many)): (&(&str, usize), &(&str, usize))| *many >= few + most;
    if few.iter().zip(&many).any(is_larger) {
        // What is on its way at once depends on how the threads have their turns, and what an object keeps of each file
        // does not: that is there again.
        for ((_, first), (_, again)) in many.iter_mut().zip(measured(files[1]).await) {
            *first = again.min(*first);
        }
    }
    for ((phase, few), (_, many)) in few.iter().zip(&many) {
        assert!(*many < few + most, "{phase}: {few} bytes with {} files, {many} with {}", files[0], files[1]);
    }
}

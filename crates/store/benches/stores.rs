//! Stores against the tools that people use otherwise: ratios of one run, since machines differ.
//!
//! `cargo bench -p queuekeeper-store -- CASE [--files N] [--size BYTES] [--rounds N]`, where CASE is `small`, `large` or
//! `list`. Needs `cp`, `sha256sum`, and `rclone` for the comparison with that. See `--help` of none: it is this text.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::print_stdout, reason = "the result of a benchmark")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use queuekeeper_store::store::Put;
use queuekeeper_store::{Algorithm, DirectoryStore, Item, Key, SpaceName, Store};
use tokio::fs::File;
use tokio_util::io::ReaderStream;

/// As many transfers at once, here and in rclone.
const TRANSFERS: usize = 8;

/// What one case is run with.
struct Settings {
    files: usize,
    size: u64,
    rounds: usize,
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number = |name: &str, usual: u64| {
        let at = arguments.iter().position(|argument| argument == name);
        at.map_or(usual, |at| arguments[at + 1].parse().unwrap())
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let rounds = usize::try_from(number("--rounds", 3)).unwrap();
    let files = |usual| usize::try_from(number("--files", usual)).unwrap();
    match arguments.first().map(String::as_str) {
        Some("small") => {
            let settings = Settings { files: files(10_000), size: number("--size", 10_000), rounds };
            runtime.block_on(transfer(&settings));
        }
        Some("large") => {
            let settings = Settings { files: 1, size: number("--size", 4 << 30), rounds };
            runtime.block_on(transfer(&settings));
        }
        Some("list") => runtime.block_on(list(files(1_000_000))),
        _ => println!("cases: small, large, list; run with -- CASE"),
    }
}

/// Files with content that does not compress and does not repeat.
fn fill(directory: &Path, settings: &Settings) {
    fs::create_dir(directory).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut block = vec![0; 1 << 20];
    for number in 0..settings.files {
        let folder = directory.join(format!("{:03}", number / 1000));
        fs::create_dir_all(&folder).unwrap();
        let mut file = fs::File::create(folder.join(format!("{number:07}"))).unwrap();
        let mut left = settings.size;
        while left > 0 {
            for word in block.chunks_exact_mut(8) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                word.copy_from_slice(&state.to_le_bytes());
            }
            let next = usize::try_from(left.min(block.len() as u64)).unwrap();
            std::io::Write::write_all(&mut file, &block[..next]).unwrap();
            left -= next as u64;
        }
    }
}

fn paths(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in fs::read_dir(directory).unwrap() {
        found.extend(fs::read_dir(folder.unwrap().path()).unwrap().map(|file| file.unwrap().path()));
    }
    found.sort();
    found
}

fn sh(script: &str) -> Option<Duration> {
    let began = Instant::now();
    let status = Command::new("sh").args(["-ec", script]).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    status.success().then(|| began.elapsed())
}

/// Puts and gets, beside `cp` with `sha256sum` and beside rclone.
async fn transfer(settings: &Settings) {
    let top = tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(std::env::var_os("BENCH_DIR").map_or(std::env::temp_dir(), PathBuf::from))
        .unwrap();
    let source = top.path().join("source");
    fill(&source, settings);
    let files = paths(&source);
    let from = source.display();
    println!(
        "{} files of {} bytes, {TRANSFERS} at once; seconds, and ours over theirs (less is better)",
        settings.files, settings.size
    );
    for round in 0..settings.rounds {
        let place = top.path().join(format!("store-{round}"));
        fs::create_dir(&place).unwrap();
        let store: Arc<dyn Store> =
            Arc::new(DirectoryStore::open("bench".parse().unwrap(), place.clone()).await.unwrap());
        let space: SpaceName = "space".parse().unwrap();
        store.create_space(&space).await.unwrap();
        let began = Instant::now();
        put_all(&store, &space, &source, &files).await;
        let put = began.elapsed();
        let began = Instant::now();
        get_all(&store, &space, &top.path().join(format!("got-{round}")), &source, &files).await;
        let get = began.elapsed();
        let theirs = |name: &str| top.path().join(format!("{name}-{round}"));
        let cp = theirs("cp");
        let copied = sh(&format!(
            "cp -r {from} {0}; find {0} -type f -print0 | xargs -0 -P 2 -n 1000 sha256sum; sync -f {0}",
            cp.display()
        ))
        .unwrap();
        let rclone = theirs("rclone");
        let cloned = sh(&format!(
            "rclone copy --checksum --transfers {TRANSFERS} --checkers {TRANSFERS} --config /dev/null {from} {0}; sync -f {0}",
            rclone.display()
        ));
        println!(
            "put {:.2} ({:.2} of cp + sha256sum {:.2}{})  get {:.2} ({:.2})  peak memory {} MB",
            put.as_secs_f64(),
            put.as_secs_f64() / copied.as_secs_f64(),
            copied.as_secs_f64(),
            cloned.map_or(String::new(), |cloned| {
                format!(", {:.2} of rclone {:.2}", put.as_secs_f64() / cloned.as_secs_f64(), cloned.as_secs_f64())
            }),
            get.as_secs_f64(),
            get.as_secs_f64() / copied.as_secs_f64(),
            peak_mb()
        );
        for gone in [cp, rclone, place, theirs("got")] {
            let _ = fs::remove_dir_all(gone);
        }
    }
}

fn key(source: &Path, file: &Path) -> Key {
    file.strip_prefix(source).unwrap().to_str().unwrap().parse().unwrap()
}

async fn put_all(store: &Arc<dyn Store>, space: &SpaceName, source: &Path, files: &[PathBuf]) {
    let puts = stream::iter(files).map(|path| async move {
        let file = File::open(path).await.unwrap();
        let size = Some(file.metadata().await.unwrap().len());
        let content = ReaderStream::with_capacity(file, 256 << 10).boxed();
        let put = Put { size, compute: vec![Algorithm::Sha256], ..Put::default() };
        store.put(&Item::new(space.clone(), key(source, path)), content, put).await.unwrap();
    });
    puts.buffer_unordered(TRANSFERS).collect::<Vec<_>>().await;
}

async fn get_all(store: &Arc<dyn Store>, space: &SpaceName, to: &Path, source: &Path, files: &[PathBuf]) {
    fs::create_dir(to).unwrap();
    let gets = stream::iter(files).map(|path| async move {
        let got = store.get(&Item::new(space.clone(), key(source, path)), None, None).await.unwrap();
        let mut hashers = queuekeeper_store::Hashers::new([Algorithm::Sha256]);
        let mut file = File::create(to.join(path.file_name().unwrap())).await.unwrap();
        let mut chunks = got.chunks;
        while let Some(chunk) = chunks.try_next().await.unwrap() {
            hashers.update(&chunk);
            tokio::io::AsyncWriteExt::write_all(&mut file, &chunk).await.unwrap();
        }
        assert_ne!(got.properties.checksums.agree(&hashers.finish()), Some(false));
    });
    gets.buffer_unordered(TRANSFERS).collect::<Vec<_>>().await;
}

/// The listing of one folder with that many items, and of as many in folders.
async fn list(files: usize) {
    let top = tempfile::tempdir_in(std::env::var_os("BENCH_DIR").map_or(std::env::temp_dir(), PathBuf::from)).unwrap();
    let store = DirectoryStore::open("bench".parse().unwrap(), top.path().to_owned()).await.unwrap();
    for (name, per_folder) in [("flat", usize::MAX), ("deep", 1000)] {
        let space: SpaceName = name.parse().unwrap();
        store.create_space(&space).await.unwrap();
        for number in 0..files {
            let folder = top.path().join(name).join(format!("{:06}", number / per_folder));
            if number % per_folder == 0 {
                fs::create_dir_all(&folder).unwrap();
            }
            fs::File::create(folder.join(format!("{number:09}"))).unwrap();
        }
        let before = peak_mb();
        let began = Instant::now();
        let count = store.list(&space, b"", None).try_fold(0_usize, async |count, _| Ok(count + 1)).await.unwrap();
        assert_eq!(count, files);
        let ours = began.elapsed();
        let find =
            sh(&format!("find {} -type f -printf '%P %s %T@\\n' | LC_ALL=C sort", top.path().join(name).display()))
                .unwrap();
        println!(
            "{name}: {count} items in {:.1} s ({:.2} of find | sort), peak memory {} MB (before: {before} MB)",
            ours.as_secs_f64(),
            ours.as_secs_f64() / find.as_secs_f64(),
            peak_mb()
        );
    }
}

fn peak_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1024
}

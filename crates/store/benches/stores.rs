//! Stores against the tools that are used otherwise: ratios of one run, since machines differ.
//!
//! `cargo bench -p queuekeeper-store -- CASE [directory|s3] [--files N] [--size BYTES] [--rounds N]`, where CASE is
//! `small` (10,000 files of 10 kB), `large` (one file of 4 GiB) or `list` (10^6 keys). Content lies in `BENCH_DIR`, a
//! temporary directory by default; `large` needs five times its size there. Needs `cp`, `sha256sum`, `sync` and
//! `rclone`.
//!
//! Everything that is timed runs in a process of its own, so that its peak of memory is its own, too. The S3 server is
//! that of `testkit`, in another one, the same for all.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::print_stdout, reason = "the result of a benchmark")]

#[path = "stores/child.rs"]
mod child;
#[path = "stores/rivals.rs"]
mod rivals;

use std::fs;
use std::path::{Path, PathBuf};

use child::{Ran, Served};
use rivals::{Timed, rclone, sh};

/// How many transfers run at once, here and in rclone.
const TRANSFERS: usize = 8;

/// The space that everything is put into.
const SPACE: &str = "space";

/// What one case is run with.
struct Settings {
    kinds: Vec<&'static str>,
    files: usize,
    size: u64,
    rounds: usize,
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if arguments.first().is_some_and(|first| first == child::MARK) {
        return child::run(&arguments[1..]);
    }
    let number = |name: &str, usual: u64| {
        let at = arguments.iter().position(|argument| argument == name);
        at.map_or(usual, |at| arguments[at + 1].parse().unwrap())
    };
    let wanted: Vec<_> = child::KINDS.into_iter().filter(|kind| arguments.iter().any(|one| one == kind)).collect();
    let settings = |files: u64, size: u64, rounds: u64| Settings {
        kinds: if wanted.is_empty() { child::KINDS.to_vec() } else { wanted.clone() },
        files: usize::try_from(number("--files", files)).unwrap(),
        size: number("--size", size),
        rounds: usize::try_from(number("--rounds", rounds)).unwrap(),
    };
    match arguments.first().map(String::as_str) {
        Some("small") => transfer(&settings(10_000, 10_000, 3)),
        Some("large") => transfer(&settings(1, 4 << 30, 1)),
        Some("list") => list(&settings(1_000_000, 0, 1)),
        _ => println!("cases: small, large, list; run with -- CASE"),
    }
}

fn temporary() -> tempfile::TempDir {
    let place = std::env::var_os("BENCH_DIR").map_or(std::env::temp_dir(), PathBuf::from);
    tempfile::Builder::new().prefix("bench-").tempdir_in(place).unwrap()
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
            let next = usize::try_from(left.min(block.len() as u64)).unwrap();
            for word in block[..next].chunks_mut(8) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
            }
            std::io::Write::write_all(&mut file, &block[..next]).unwrap();
            left -= next as u64;
        }
    }
}

fn report(what: &str, ours: &Ran, theirs: &[Timed]) {
    println!("{what}: {:.2} s, peak {} MB", ours.seconds, ours.peak_mb);
    for Timed { name, seconds } in theirs {
        println!("    {:5.2} of the speed of {name} ({seconds:.2} s)", seconds / ours.seconds);
    }
}

/// Puts and gets.
fn transfer(settings: &Settings) {
    let top = temporary();
    let source = top.path().join("source");
    fill(&source, settings);
    println!("{} files of {} bytes, {TRANSFERS} at once", settings.files, settings.size);
    for round in 0..settings.rounds {
        for kind in &settings.kinds {
            let place = tempfile::tempdir_in(top.path()).unwrap();
            match *kind {
                "directory" => directory(place.path(), &source, round),
                _ => s3(place.path(), &source, round),
            }
        }
    }
}

fn directory(place: &Path, source: &Path, round: usize) {
    let at = |name: &str| place.join(name);
    let (store, got) = (at("store"), at("got"));
    fs::create_dir(&store).unwrap();
    let spec = store.to_str().unwrap();
    let put = child::time(&["put", "directory", spec, source.to_str().unwrap()], None);
    let theirs = rivals::of_put(source, place);
    report(&format!("directory, round {round}, put"), &put, &theirs);
    let get = child::time(&["get", "directory", spec, got.to_str().unwrap()], None);
    fs::remove_dir_all(&got).unwrap();
    report(&format!("directory, round {round}, get"), &get, &rivals::of_get(&store.join(SPACE), place));
}

fn s3(place: &Path, source: &Path, round: usize) {
    let at = |name: &str| place.join(name);
    fs::create_dir(at("server")).unwrap();
    let server = Served::start(&at("server"), 0);
    let got = at("got");
    let put = child::time(&["put", "s3", "s3://bench", source.to_str().unwrap()], Some(&server));
    // What the server has of one of them is what the other one's is compared with: so much room is not there for both.
    let get = child::time(&["get", "s3", "s3://bench", got.to_str().unwrap()], Some(&server));
    fs::remove_dir_all(&got).unwrap();
    let theirs = rclone(Some(&server), &format!("bench:bench/{SPACE}"), got.to_str().unwrap(), place);
    fs::remove_dir_all(&got).unwrap();
    report(&format!("s3, round {round}, get"), &get, &theirs);
    drop(server);
    fs::remove_dir_all(at("server")).unwrap();

    fs::create_dir(at("server")).unwrap();
    let server = Served::start(&at("server"), 0);
    let mut theirs = rclone(Some(&server), source.to_str().unwrap(), &format!("bench:bench/{SPACE}"), place);
    drop(server);
    theirs.extend(rivals::cp(source, place));
    report(&format!("s3, round {round}, put"), &put, &theirs);
}

/// Listings of one folder with all items, of as many in folders, and of a bucket.
fn list(settings: &Settings) {
    for kind in &settings.kinds {
        let top = temporary();
        // A tenth first: memory that grows with the keys shows.
        for files in [settings.files / 10, settings.files] {
            if *kind == "s3" {
                let server = Served::start(top.path(), files);
                let ours = child::time(&["list", "s3", "s3://bench", &files.to_string()], Some(&server));
                println!("s3: {files} keys in {:.1} s, peak {} MB", ours.seconds, ours.peak_mb);
                continue;
            }
            for (name, per_folder) in [("flat", usize::MAX), ("deep", 1000)] {
                let space = top.path().join(name).join(SPACE);
                for number in 0..files {
                    let folder = space.join(format!("{:06}", number / per_folder));
                    if number % per_folder == 0 {
                        fs::create_dir_all(&folder).unwrap();
                    }
                    fs::File::create(folder.join(format!("{number:09}"))).unwrap();
                }
                let store = top.path().join(name);
                let ours = child::time(&["list", "directory", store.to_str().unwrap(), &files.to_string()], None);
                let find = format!("find {} -type f -printf '%P %s %T@\\n' | LC_ALL=C sort", space.display());
                let find = Timed { name: "find | sort", seconds: sh(&find, &[]) };
                report(&format!("directory, {files} keys, {name}"), &ours, &[find]);
                fs::remove_dir_all(store).unwrap();
            }
        }
    }
}

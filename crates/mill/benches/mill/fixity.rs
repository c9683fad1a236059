//! Content that is read and proven, against programs that only read and hash it.

use super::process::{self, Ran};
use super::rivals;
use super::world::World;
use super::{Options, SPACE, report, temporary};

/// The goals: a part of what the others do in a second.
const GOALS: [(&str, &str); 2] = [("small", ">= 0.40"), ("large", ">= 0.85")];

pub(crate) fn measure(options: &Options) {
    let processors = std::thread::available_parallelism().unwrap().get();
    for kind in options.kinds(&GOALS.map(|(kind, _)| kind)) {
        let usual = if kind == "small" { (100_000, 10_000) } else { (4, 1 << 30) };
        let (files, size) = (options.count("--files", usual.0), options.number("--size", usual.1));
        if kind == "small" {
            small(files, size, options.workers(), processors);
        } else {
            large(files, size, processors);
        }
    }
}

/// A directory with so many items, of which the catalogue has a SHA-256 digest, and another one.
fn filled(top: &tempfile::TempDir, files: usize, size: u64, also: &[&str]) -> World {
    let world = World::new(top.path(), World::sqlite(top.path()), [None, None]);
    let (files, size) = (files.to_string(), size.to_string());
    process::time("fill", &world, &[&[files.as_str(), &size], also].concat());
    world
}

fn goal(kind: &str) -> &'static str {
    GOALS.iter().find(|(of, _)| *of == kind).unwrap().1
}

fn small(files: usize, size: u64, workers: usize, processors: usize) {
    let top = temporary();
    let world = filled(&top, files, size, &[]);
    println!("{files} items of {size} bytes, {workers} workers");
    let items = f64::from(u32::try_from(files).unwrap());
    // Each reads what was read before, as far as the memory of this machine goes.
    let bare = [1, processors].map(|threads| (threads, process::time("hash", &world, &[&threads.to_string()])));
    let ours = process::time("check", &world, &[&workers.to_string()]);
    for (threads, bare) in bare {
        let what = format!(
            "items read and proven, against a bare loop, {threads} thread{}",
            if threads == 1 { "" } else { "s" }
        );
        let goal = if threads == 1 { goal("small") } else { "none" };
        let detail = format!("{:.0} and {:.0} items/s", items / ours.seconds, items / bare.seconds);
        report("directory", &what, bare.seconds / ours.seconds, goal, &detail);
    }
    costs(&ours, items);
}

fn large(files: usize, size: u64, processors: usize) {
    for also in [&[][..], &["md5"]] {
        let top = temporary();
        let world = filled(&top, files, size, also);
        let algorithms = [&["sha256"], also].concat();
        println!(
            "{files} items of {size} bytes, {} by {processors} workers and as many processes",
            algorithms.join(" and ")
        );
        let content = top.path().join("main").join(SPACE);
        let hash = |algorithm: &&str| {
            let find = format!("find {} -type f -print0", content.display());
            rivals::sh(&format!("{find} | xargs -0 -n 1 -P {processors} openssl dgst -{algorithm}"), &[])
        };
        let openssl: f64 = algorithms.iter().map(hash).sum();
        let ours = process::time("check", &world, &[&processors.to_string()]);
        let bytes = f64::from(u32::try_from(files).unwrap()) * f64::from(u32::try_from(size / 1000).unwrap()) / 1000.0;
        let detail = format!("{:.0} and {:.0} MB/s", bytes / ours.seconds, bytes / openssl);
        let what = format!("bytes read and proven by {}, against openssl", algorithms.join(" and "));
        report("directory", &what, openssl / ours.seconds, goal("large"), &detail);
        costs(&ours, f64::from(u32::try_from(files).unwrap()));
    }
}

fn costs(ours: &Ran, items: f64) {
    let each = 1000.0 * ours.cpu_seconds / items;
    println!("{:10}  the mill: {each:.2} ms of a processor an item, peak {} MB", "directory", ours.peak_mb);
}

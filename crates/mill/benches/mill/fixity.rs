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
    process::time("fill", &world, &[&["0", files.as_str(), &size], also].concat());
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

/// A loop of checks over small items and then over large ones: how long it was forecast to take, against how long it
/// took.
pub(crate) fn forecast(options: &Options) {
    let small = (options.count("--files", 200_000), options.number("--size", 10_000));
    let large = (options.count("--large", 8), 1_u64 << 30);
    let (top, workers) = (temporary(), options.count("--workers", 2));
    let world = World::new(top.path(), World::sqlite(top.path()), [None, None]);
    for (first, (files, size)) in [(0, small), (small.0, large)] {
        process::time("fill", &world, &[&first.to_string(), &files.to_string(), &size.to_string()]);
    }
    println!("{} items of {} bytes, then {} of {}, {workers} workers", small.0, small.1, large.0, large.1);
    let said = process::said("forecast", &world, &[&workers.to_string()]);
    let took = said["took"].as_f64().unwrap();
    let forecasts: Vec<_> = said["forecasts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| [&one[0], &one[1]].map(|at| at.as_f64().unwrap()))
        .collect();
    for part in [0.25, 0.5, 0.75] {
        let Some([at, ends]) = forecasts.iter().find(|[at, _]| *at >= part * took) else {
            println!(
                "directory   no forecast after {part} of the loop, which took {took:.0} s: more or larger items are needed"
            );
            continue;
        };
        let detail = format!("after {at:.0} s: {ends:.0} s; it took {took:.0} s");
        report("directory", "forecast end of a loop, against its end", ends / took, "0.80 to 1.20", &detail);
    }
}

fn costs(ours: &Ran, items: f64) {
    let each = 1000.0 * ours.cpu_seconds / items;
    println!("{:10}  the mill: {each:.2} ms of a processor an item, peak {} MB", "directory", ours.peak_mb);
}

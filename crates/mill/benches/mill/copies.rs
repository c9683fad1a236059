//! Items that are copied by the mill, against rclone.

use std::path::Path;

use super::child::Served;
use super::process::{self, Ran};
use super::rivals::{self, Timed};
use super::world::World;
use super::{Options, SPACE, report, temporary};

/// What is copied to what.
const KINDS: [&str; 3] = ["directory", "s3", "mixed"];

/// From which size on it counts how many bytes are copied, and not how many items.
const LARGE_BYTES: u64 = 1_000_000;

/// Copies so many items of such a size, where nothing else is said.
pub(crate) fn measure(options: &Options, usual: (u64, u64)) {
    let (files, size) = (options.count("--files", usual.0), options.number("--size", usual.1));
    let workers = options.workers();
    println!("{files} items of {size} bytes, {workers} workers and as many transfers");
    for _round in 0..options.count("--rounds", 1) {
        for kind in options.kinds(&KINDS) {
            copy(kind, files, size, workers);
        }
    }
}

/// The servers of the source and of the copy.
type Servers = [Option<Served>; 2];

fn copy(kind: &str, files: usize, size: u64, workers: usize) {
    let top = temporary();
    let is_bucket = match kind {
        "directory" => [false, false],
        "s3" => [true, true],
        _ => [false, true],
    };
    let serve = |name: &str| {
        let directory = top.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        Served::start(&directory, 0)
    };
    let servers = [is_bucket[0].then(|| serve("server-main")), is_bucket[1].then(|| serve("server-replica"))];
    let endpoints = servers.each_ref().map(|server| server.as_ref().map(|server| server.endpoint.clone()));
    let world = World::new(top.path(), World::sqlite(top.path()), endpoints);
    process::time("fill", &world, &["0", &files.to_string(), &size.to_string()]);
    let workers_text = workers.to_string();
    let first = process::time("run", &world, &["bench", &workers_text]);
    let again = process::time("loop", &world, &[]);
    let catalogue_bytes = world.sqlite_bytes();
    drop_copy(top.path(), &servers);

    // Into a bucket, or a directory, that is as empty.
    let [main, replica] = servers;
    let replica = if is_bucket[1] {
        drop(replica);
        std::fs::remove_dir_all(top.path().join("server-replica")).unwrap();
        Some(serve("server-replica"))
    } else {
        None
    };
    let servers = [main, replica];
    let theirs = [rclone(top.path(), &servers, workers), rclone(top.path(), &servers, workers)];
    compare(kind, (files, size), &first, &again, &theirs);
    println!("{kind:10}  the catalogue has {} bytes for an item and its copy", catalogue_bytes / files as u64);
}

/// Removes the copy that the mill has made, where it is in a directory.
fn drop_copy(top: &Path, servers: &Servers) {
    if servers[1].is_none() {
        std::fs::remove_dir_all(top.join("replica")).unwrap();
    }
}

/// `rclone copy --checksum` of the source: without a sync, and with one at the end where it writes to files here.
fn rclone(top: &Path, servers: &Servers, transfers: usize) -> [Timed; 2] {
    rivals::settle(top);
    let [main, replica] = servers;
    let mut variables = main.as_ref().map(Served::rclone).unwrap_or_default();
    let renamed = |(name, value): (String, String)| (name.replace("_BENCH_", "_COPY_"), value);
    variables.extend(replica.iter().flat_map(Served::rclone).map(renamed));
    let place = |server: &Option<Served>, remote: &str, name: &str| match server {
        Some(_) => format!("{remote}:bench/{SPACE}"),
        None => top.join(name).join(SPACE).display().to_string(),
    };
    let (from, to) = (place(main, "bench", "main"), place(replica, "copy", "rclone"));
    let options = format!("--checksum --transfers {transfers} --checkers {transfers} --config /dev/null");
    let copied = rivals::sh(&format!("rclone copy {options} {from} {to}"), &variables);
    let synced = copied + if replica.is_none() { rivals::sh(&format!("sync -f {to}"), &[]) } else { 0.0 };
    [
        Timed { name: "rclone copy --checksum", seconds: copied },
        Timed { name: "rclone copy --checksum, synced at the end", seconds: synced },
    ]
}

fn compare(kind: &str, (files, size): (usize, u64), first: &Ran, again: &Ran, theirs: &[[Timed; 2]; 2]) {
    let items = f64::from(u32::try_from(files).unwrap());
    let mb = items * f64::from(u32::try_from(size / 1000).unwrap()) / 1000.0;
    let (goal, of_seconds): (_, Box<dyn Fn(f64) -> String>) = if size >= LARGE_BYTES {
        (">= 0.90", Box::new(|seconds| format!("{:.0} MB/s", mb / seconds)))
    } else {
        (">= 1", Box::new(|seconds| format!("{:.0} items/s", items / seconds)))
    };
    let lines = |what: &str, ours: &Ran, theirs: &[Timed; 2], goal: &str| {
        for (at, Timed { name, seconds }) in theirs.iter().enumerate() {
            // Without a server both are the same.
            if at == 1 && theirs[0].seconds >= *seconds {
                continue;
            }
            let detail = format!("{} and {}", of_seconds(ours.seconds), of_seconds(*seconds));
            report(kind, &format!("{what}, against {name}"), seconds / ours.seconds, goal, &detail);
        }
    };
    lines("copies", first, &theirs[0], goal);
    lines("a loop without changes", again, &theirs[1], ">= 1");
    let each = 1000.0 * first.cpu_seconds / items;
    let busy = first.cpu_seconds / first.seconds;
    println!(
        "{kind:10}  the mill at work: {each:.2} ms of a processor an item, {busy:.2} processors, peak {} MB; its loop {} MB",
        first.peak_mb, again.peak_mb
    );
}

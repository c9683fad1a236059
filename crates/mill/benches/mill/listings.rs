//! Two listings merged, against both listed one after the other.

use std::fs::File;
use std::path::Path;

use super::child::Served;
use super::process;
use super::world::{STORES, World};
use super::{Options, SPACE, report, temporary};

const KINDS: [&str; 2] = ["directory", "s3"];

/// How many files a folder has.
const IN_FOLDER: usize = 1000;

pub(crate) fn measure(options: &Options) {
    let keys = options.count("--keys", 1_000_000);
    for kind in options.kinds(&KINDS) {
        // A tenth first: memory that grows with the keys shows.
        let peaks = [keys / 10, keys].map(|keys| merged(kind, keys));
        let [few, many] = peaks;
        let detail = format!("{few} MB with {} keys, {many} MB with {keys}", keys / 10);
        report(kind, "memory of a merge of ten times as many keys", ratio(many, few), "1", &detail);
    }
}

fn ratio(one: u64, other: u64) -> f64 {
    f64::from(u32::try_from(one).unwrap()) / f64::from(u32::try_from(other).unwrap())
}

/// The peak of the memory of a merge, in MB.
fn merged(kind: &str, keys: usize) -> u64 {
    let top = temporary();
    let servers = if kind == "s3" {
        STORES.map(|name| {
            let directory = top.path().join(format!("server-{name}"));
            std::fs::create_dir(&directory).unwrap();
            Some(Served::start(&directory, keys))
        })
    } else {
        for name in STORES {
            plant(&top.path().join(name).join(SPACE), keys);
        }
        [None, None]
    };
    let endpoints = servers.each_ref().map(|server| server.as_ref().map(|server| server.endpoint.clone()));
    let world = World::new(top.path(), World::sqlite(top.path()), endpoints);
    let count = keys.to_string();
    let both = process::time("both", &world, &[&count]);
    let merged = process::time("merge", &world, &[&count]);
    let per_second = f64::from(u32::try_from(keys).unwrap()) / merged.seconds;
    let detail = format!(
        "{per_second:.0} keys/s, {:.1} s and {:.1} s, peak {} MB and {} MB",
        merged.seconds, both.seconds, merged.peak_mb, both.peak_mb
    );
    let what = format!("time of a merge of 2 x {keys} keys, against both listings");
    report(kind, &what, merged.seconds / both.seconds, "<= 1.30", &detail);
    merged.peak_mb
}

/// Makes empty files.
fn plant(space: &Path, keys: usize) {
    for number in 0..keys {
        let folder = space.join(format!("{:06}", number / IN_FOLDER));
        if number % IN_FOLDER == 0 {
            std::fs::create_dir_all(&folder).unwrap();
        }
        File::create(folder.join(format!("{number:09}"))).unwrap();
    }
}

//! The mill beside rclone, beside bare SQL, and by itself: ratios of one run, since machines differ. Each line has the
//! goal beside it, where there is one.
//!
//! `cargo bench -p queuekeeper-mill -- CASE [OPTION ...]`, where CASE is
//! - `small [directory|s3|mixed] [--files N] [--size BYTES] [--rounds N]`: 100,000 items of 10 kB are copied from one
//!   directory to another, from one bucket to another, and from a directory to a bucket; and a loop in which nothing
//!   has changed;
//! - `large [directory|s3|mixed] [--files N] [--size BYTES]`: the same of 4 items of 1 GiB;
//! - `fixity [small|large] [--files N] [--size BYTES]`: each item of a directory is read and proven, 100,000 of 10 kB
//!   and 4 of 1 GiB;
//! - `forecast [--files N] [--size BYTES] [--large N]`: when a loop of checks was forecast to end, while it went
//!   through 200,000 items of 10 kB and 8 of 1 GiB;
//! - `burst [--events N] [--files N]`: 10,000 items are copied while 10^6 changes are recorded that lead to no copy;
//! - `merge [directory|s3] [--keys N]`: two listings of 10^6 keys;
//! - `queue [--rows N] [--rounds N]`: tasks are put, taken and finished by 20 connections, with 10^4 and 10^7 rows;
//! - `idle [--seconds N]`: what 20 workers cost that have nothing to do;
//! - `machines [--files N] [--size BYTES]`: one process and four of them with 20 workers each, on one PostgreSQL.
//!
//! `--workers N` is how many workers a process has, and how many transfers rclone makes at once (20). Content and
//! databases lie in `BENCH_DIR`, a temporary directory by default; `large` needs four times its bytes there, `queue`
//! some 10 GB. Needs `rclone` and PostgreSQL. What is timed runs in processes of their own; each S3 server is that of
//! `testkit`, in another one.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::print_stdout, reason = "the result of a benchmark")]

#[path = "mill/bare.rs"]
mod bare;
#[path = "mill/burst.rs"]
mod burst;
#[path = "../../store/benches/stores/child.rs"]
#[expect(dead_code, reason = "the stores' own benchmark uses all of it")]
mod child;
#[path = "mill/copies.rs"]
mod copies;
#[path = "mill/database.rs"]
mod database;
#[path = "mill/fixity.rs"]
mod fixity;
#[path = "mill/idle.rs"]
mod idle;
#[path = "mill/listings.rs"]
mod listings;
#[path = "mill/machines.rs"]
mod machines;
#[path = "mill/process.rs"]
mod process;
#[path = "mill/queue.rs"]
mod queue;
#[path = "../../store/benches/stores/rivals.rs"]
#[expect(dead_code, reason = "the stores' own benchmark uses all of it")]
mod rivals;
#[path = "mill/world.rs"]
mod world;

use std::path::PathBuf;

// As the program itself has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How many workers a process has, and how many transfers rclone makes at once.
const TRANSFERS: usize = 20;

/// The space that is copied.
const SPACE: &str = "space";

/// What stands behind the case on the command line.
struct Options(Vec<String>);

impl Options {
    /// The number behind an option, or the usual one.
    fn number(&self, name: &str, usual: u64) -> u64 {
        let at = self.0.iter().position(|argument| argument == name);
        at.map_or(usual, |at| self.0[at + 1].parse().unwrap())
    }

    fn count(&self, name: &str, usual: u64) -> usize {
        usize::try_from(self.number(name, usual)).unwrap()
    }

    fn workers(&self) -> usize {
        self.count("--workers", TRANSFERS as u64)
    }

    /// Those of some kinds that are named, or all of them.
    fn kinds(&self, all: &[&'static str]) -> Vec<&'static str> {
        let named: Vec<_> = all.iter().copied().filter(|kind| self.0.iter().any(|one| one == kind)).collect();
        if named.is_empty() { all.to_vec() } else { named }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let first = arguments.next().unwrap_or_default();
    let rest: Vec<_> = arguments.collect();
    let options = Options(rest.clone());
    match first.as_str() {
        child::MARK => child::run(&rest),
        process::MARK => process::run(&rest),
        "small" => copies::measure(&options, (100_000, 10_000)),
        "large" => copies::measure(&options, (4, 1 << 30)),
        "burst" => burst::measure(&options),
        "fixity" => fixity::measure(&options),
        "forecast" => fixity::forecast(&options),
        "merge" => listings::measure(&options),
        "queue" => queue::measure(&options),
        "idle" => idle::measure(&options),
        "machines" => machines::measure(&options),
        _ => println!("cases: small, large, fixity, forecast, burst, merge, queue, idle, machines; run with -- CASE"),
    }
}

fn temporary() -> tempfile::TempDir {
    let place = std::env::var_os("BENCH_DIR").map_or(std::env::temp_dir(), PathBuf::from);
    tempfile::Builder::new().prefix("bench-").tempdir_in(place).unwrap()
}

/// Prints one figure, with its goal.
fn report(of: &str, what: &str, ratio: f64, goal: &str, detail: &str) {
    println!("{of:10}  {what:58}  {ratio:6.2}  (goal {goal})  {detail}");
}

//! What a mill costs that has nothing to do.

use std::thread::sleep;
use std::time::Duration;

use queuekeeper_testkit::postgres::Postgres;

use super::process::Working;
use super::world::World;
use super::{Options, report, temporary};

const DATABASE: &str = "idle";

/// How long the server counts a transaction before it shows it, and how long a mill may take to begin.
const SETTLE: Duration = Duration::from_secs(15);

/// How many transactions there were, by a look from another database.
fn transactions(server: &Postgres) -> f64 {
    let sql = format!("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{DATABASE}'");
    server.query("postgres", &sql).trim().parse().unwrap()
}

pub(crate) fn measure(options: &Options) {
    // Longer than the longest wait.
    let seconds = options.number("--seconds", 1200);
    let (server, top) = (Postgres::start(), temporary());
    let world = World::new(top.path(), server.create(DATABASE), [None, None]);
    let working = Working::start(&world, "idle", options.workers());
    sleep(SETTLE);
    let (before, (cpu_before, _)) = (transactions(&server), working.used());
    sleep(Duration::from_secs(seconds));
    let (after, (cpu_after, memory)) = (transactions(&server), working.used());
    let minutes = f64::from(u32::try_from(seconds).unwrap()) / 60.0;
    let a_minute = (after - before) / minutes;
    let detail = format!("{} transactions in {minutes:.1} minutes", after - before);
    report("PostgreSQL", "transactions a minute of a mill without work", a_minute, "each query at most once", &detail);
    let share = 100.0 * (cpu_after - cpu_before) / (60.0 * minutes);
    println!("{:10}  its processor time: {share:.3} % of one processor; its memory: {memory} MB", "PostgreSQL");
}

//! Several processes on one PostgreSQL: how many items a second, and that none is copied twice.

use std::time::{Duration, Instant};

use queuekeeper_catalogue::Catalogue;
use queuekeeper_mill::producer::PRODUCER;
use queuekeeper_testkit::postgres::Postgres;

use super::process::{self, Working};
use super::rivals;
use super::world::World;
use super::{Options, report, temporary};

/// How many processes share the work.
const PROCESSES: usize = 4;

/// How often it is seen whether all is done.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn measure(options: &Options) {
    let (files, size) = (options.count("--files", 100_000), options.number("--size", 10_000));
    let workers = options.workers();
    println!("{files} items of {size} bytes, {workers} workers in each process");
    let server = Postgres::start();
    let [one, four] = [1, PROCESSES].map(|processes| items_a_second(&server, processes, files, size, workers));
    let detail = format!("{four:.0} and {one:.0} items/s; no item was copied twice");
    report("PostgreSQL", &format!("{PROCESSES} processes, against one"), four / one, "none", &detail);
}

fn items_a_second(server: &Postgres, processes: usize, files: usize, size: u64, workers: usize) -> f64 {
    let (top, database) = (temporary(), format!("of_{processes}"));
    let world = World::new(top.path(), server.create(&database), [None, None]);
    process::time("fill", &world, &["0", &files.to_string(), &size.to_string()]);
    rivals::settle(top.path());
    let began = Instant::now();
    let working: Vec<_> = (0..processes).map(|at| Working::start(&world, &format!("process-{at}"), workers)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let catalogue = Catalogue::open(&world.database).await.unwrap();
        while !process::is_done(&catalogue, PRODUCER).await {
            tokio::time::sleep(LOOK).await;
        }
        catalogue.close().await;
    });
    let seconds = began.elapsed().as_secs_f64();
    let used: Vec<_> = working.iter().map(Working::used).collect();
    drop(working);
    let (cpu, memory) = used.iter().fold((0.0, 0), |(cpu, most), used| (cpu + used.0, most.max(used.1)));
    println!(
        "{:10}  {processes} processes: {cpu:.1} s of a processor in {seconds:.1} s, at most {memory} MB",
        "PostgreSQL"
    );
    let sql = "SELECT COUNT(*), COUNT(DISTINCT key) FROM audit_log WHERE store = 'replica' AND key <> ''";
    assert_eq!(server.query(&database, sql).trim(), format!("{files}|{files}"), "events and items of the copy");
    f64::from(u32::try_from(files).unwrap()) / seconds
}

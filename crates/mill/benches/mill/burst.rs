//! Copies while a burst of changes comes that lead to none.

use std::time::{Duration, Instant};

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::counters::Counter;
use queuekeeper_catalogue::tasks::TaskQueue;
use queuekeeper_mill::producer::PRODUCER;
use queuekeeper_testkit::postgres::Postgres;

use super::database::DatabaseKind;
use super::process::{self, Working};
use super::world::World;
use super::{Options, report, rivals, temporary};

/// How often it is seen whether all is done.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn measure(options: &Options) {
    let (events, files) = (options.count("--events", 1_000_000), options.count("--files", 10_000));
    let size = options.number("--size", 10_000);
    for kind in [DatabaseKind::Sqlite(temporary()), DatabaseKind::Postgres(Box::new(Postgres::start()))] {
        let alone = Ran::of(&kind, 0, files, size, options.workers());
        let beside = Ran::of(&kind, events, files, size, options.workers());
        let items = f64::from(u32::try_from(files).unwrap());
        let detail = format!("{:.0} and {:.0} items/s", items / beside.copied, items / alone.copied);
        report(
            kind.name(),
            "copies beside the events, against copies alone",
            alone.copied / beside.copied,
            "none",
            &detail,
        );
        println!(
            "{:10}  {events} events recorded in {:.0} s, all processed after {:.0} s; the mill: peak {} MB, alone {} MB",
            kind.name(),
            beside.recorded,
            beside.all,
            beside.peak_mb,
            alone.peak_mb
        );
    }
}

/// The seconds until something was done, from the beginning.
struct Ran {
    recorded: f64,
    copied: f64,
    all: f64,
    peak_mb: u64,
}

impl Ran {
    fn of(kind: &DatabaseKind, events: usize, files: usize, size: u64, workers: usize) -> Self {
        let top = temporary();
        let world = World::new(top.path(), kind.url(&format!("beside_{events}")), [None, None]);
        process::time("fill", &world, &["0", &files.to_string(), &size.to_string()]);
        rivals::settle(top.path());
        let working = Working::start(&world, "bench", workers);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let catalogue = Catalogue::open(&world.database).await.unwrap();
            // The mill follows what is recorded from here on.
            while catalogue.loop_state(PRODUCER).await.unwrap().is_none() {
                tokio::time::sleep(LOOK).await;
            }
            let began = Instant::now();
            let mut burst = process::start("burst", &world, &[&events.to_string()]);
            let (mut recorded, mut copied) = (None, None);
            while !(recorded.is_some() && copied.is_some() && processed(&catalogue).await >= events) {
                tokio::time::sleep(LOOK).await;
                let seconds = began.elapsed().as_secs_f64();
                if recorded.is_none()
                    && let Some(status) = burst.try_wait().unwrap()
                {
                    assert!(status.success());
                    recorded = Some(seconds);
                }
                if copied.is_none() && is_copied(&catalogue).await {
                    copied = Some(seconds);
                }
            }
            burst.wait().unwrap();
            catalogue.close().await;
            let all = began.elapsed().as_secs_f64();
            Self { recorded: recorded.unwrap(), copied: copied.unwrap(), all, peak_mb: working.peak_mb() }
        })
    }
}

/// How many changes have led to what they lead to.
async fn processed(catalogue: &Catalogue) -> usize {
    let counters = catalogue.counters().await.unwrap();
    let done = counters.get(&(Counter::EndedTasks, "audit/done".to_owned()));
    done.map_or(0, |done| usize::try_from(*done).unwrap())
}

/// Whether a loop has ended, and no copy waits.
async fn is_copied(catalogue: &Catalogue) -> bool {
    let has_ended = catalogue.loop_state(PRODUCER).await.unwrap().is_some_and(|state| state.ended.is_some());
    let figures = catalogue.task_figures().await.unwrap();
    let copies = |queue| matches!(queue, TaskQueue::DuplicationHigh | TaskQueue::DuplicationLow);
    has_ended && figures.iter().filter(|of| copies(of.queue)).all(|of| of.waiting == 0)
}

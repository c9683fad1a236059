//! Tasks that are put, taken and finished, against the same statements by themselves; and what a long queue costs.

use std::time::{Duration, Instant};

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::tasks::{EndedTask, NewTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject, Tasks};
use queuekeeper_store::Key;
use queuekeeper_testkit::postgres::Postgres;
use tokio::task::JoinSet;

use super::bare::Bare;
use super::database::DatabaseKind;
use super::{Options, report, temporary};

/// Whose tasks they are, and whose tasks the bare statements have: both in one table, so that neither skips what the
/// other has left there.
const ACCOUNT: &str = "one";
const OTHER: &str = "two";

/// Who puts and takes at once.
const CONNECTIONS: u32 = 20;

/// How many tasks are put, or taken, at once.
const TENS: u32 = 10;

/// The rows of the smaller table.
const FEW: u64 = 10_000;

/// One row in so many is a dead letter.
const DEAD: u64 = 10;

const LEASE: Duration = Duration::from_mins(5);

/// How often each of what a long queue costs is measured.
const TIMES: usize = 200;

pub(crate) fn measure(options: &Options) {
    let many = options.number("--rows", 10_000_000);
    // All tasks of the smaller table.
    let most = u64::from(CONNECTIONS * TENS);
    let usual = (waiting_and_dead(FEW.min(many)).0 / most).max(1);
    let rounds = u32::try_from(options.number("--rounds", usual)).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for kind in [DatabaseKind::Sqlite(temporary()), DatabaseKind::Postgres(Box::new(Postgres::start()))] {
        runtime.block_on(async {
            puts(&kind, rounds).await;
            for (name, rows) in [("few", FEW.min(many)), ("many", many)] {
                takes(&kind, name, rows, rounds).await;
            }
            let few = Costs::of(&kind, FEW.min(many), "few").await;
            Costs::of(&kind, many, "many").await.report(&kind, &few);
        });
    }
}

/// How many tasks of each of the two accounts wait, of so many in all, and how many are dead letters.
fn waiting_and_dead(rows: u64) -> (u64, u64) {
    let dead = rows / 2 / DEAD;
    (rows / 2 - dead, dead)
}

fn per_second(rounds: u32, elapsed: Duration) -> f64 {
    f64::from(CONNECTIONS * rounds * TENS) / elapsed.as_secs_f64()
}

fn key(writer: u32, round: u32, number: u32) -> String {
    format!("new/{writer:03}/{round:06}/{number:03}")
}

fn task(key: String) -> NewTask {
    let subject = TaskSubject {
        kind: TaskKind::Duplicate,
        account: ACCOUNT.to_owned(),
        space: "space".parse().unwrap(),
        key: Some(Key::new(key.into_bytes()).unwrap()),
        destination: Some("replica".parse().unwrap()),
    };
    NewTask { queue: TaskQueue::DuplicationLow, subject, source: Some("main".parse().unwrap()) }
}

async fn take_and_finish(catalogue: &Catalogue) -> usize {
    let kinds = [TaskKind::Duplicate];
    let tasks = Tasks { queue: TaskQueue::DuplicationLow, account: ACCOUNT, kinds: &kinds, limit: TENS };
    let taken = catalogue.take_tasks(&tasks, "bench", LEASE).await.unwrap();
    let done = |task| EndedTask { task, outcome: TaskOutcome::Done, follow_ups: Vec::new(), checked: None };
    let ended: Vec<_> = taken.into_iter().map(done).collect();
    assert!(catalogue.end_tasks(&ended).await.unwrap().iter().all(|ours| *ours));
    ended.len()
}

/// Folds the counters once a second, as a mill does, until it is aborted.
fn fold(catalogue: &Catalogue) -> tokio::task::JoinHandle<()> {
    let catalogue = catalogue.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            catalogue.fold().await.unwrap();
        }
    })
}

/// Opens a catalogue, and as many of its connections as are used at once.
async fn open(url: &str) -> Catalogue {
    let (catalogue, mut connections) = (Catalogue::open(url).await.unwrap(), JoinSet::new());
    for _connection in 0..CONNECTIONS {
        let catalogue = catalogue.clone();
        connections.spawn(async move { catalogue.put_tasks(&[]).await.unwrap() });
    }
    connections.join_all().await;
    catalogue
}

async fn puts(kind: &DatabaseKind, rounds: u32) {
    let catalogue = open(&kind.url("puts")).await;
    let (folding, began, mut writers) = (fold(&catalogue), Instant::now(), JoinSet::new());
    for writer in 0..CONNECTIONS {
        let catalogue = catalogue.clone();
        writers.spawn(async move {
            for round in 0..rounds {
                let tasks: Vec<_> = (0..TENS).map(|number| task(key(writer, round, number))).collect();
                assert_eq!(catalogue.put_tasks(&tasks).await.unwrap(), u64::from(TENS));
            }
        });
    }
    writers.join_all().await;
    let ours = per_second(rounds, began.elapsed());
    folding.abort();
    catalogue.close().await;

    let url = kind.url("bare_puts");
    drop(Catalogue::open(&url).await.unwrap());
    let mut connections = Vec::new();
    for _connection in 0..CONNECTIONS {
        connections.push(Bare::connect(&url).await);
    }
    let (began, mut writers) = (Instant::now(), JoinSet::new());
    for (writer, mut bare) in (0..CONNECTIONS).zip(connections) {
        writers.spawn(async move {
            for round in 0..rounds {
                bare.put(OTHER, &(0..TENS).map(|number| key(writer, round, number)).collect::<Vec<_>>()).await;
            }
        });
    }
    writers.join_all().await;
    let bare = per_second(rounds, began.elapsed());
    let detail = format!("{ours:.0} and {bare:.0} tasks/s, {CONNECTIONS} connections, in tens");
    report(kind.name(), "tasks put, against bare SQL", ours / bare, "none", &detail);
}

async fn takes(kind: &DatabaseKind, name: &str, rows: u64, rounds: u32) {
    let (waiting, dead) = waiting_and_dead(rows);
    let url = kind.url(&format!("takes_{name}"));
    let catalogue = open(&url).await;
    let mut connections = Vec::new();
    for _connection in 0..CONNECTIONS {
        connections.push(Bare::connect(&url).await);
    }
    for account in [ACCOUNT, OTHER] {
        connections[0].fill(account, waiting, dead).await;
    }
    let (began, mut workers) = (Instant::now(), JoinSet::new());
    for mut bare in connections {
        workers.spawn(async move {
            let mut taken = 0;
            for _round in 0..rounds {
                taken += bare.take_and_finish(OTHER, i64::from(TENS)).await;
            }
            taken
        });
    }
    let taken: usize = workers.join_all().await.into_iter().sum();
    let bare = per_second(rounds, began.elapsed());
    let (folding, began, mut workers) = (fold(&catalogue), Instant::now(), JoinSet::new());
    for _worker in 0..CONNECTIONS {
        let catalogue = catalogue.clone();
        workers.spawn(async move {
            let mut taken = 0;
            for _round in 0..rounds {
                taken += take_and_finish(&catalogue).await;
            }
            taken
        });
    }
    let ours_taken: usize = workers.join_all().await.into_iter().sum();
    let ours = per_second(rounds, began.elapsed());
    folding.abort();
    catalogue.close().await;
    let all = usize::try_from(CONNECTIONS * rounds * TENS).unwrap();
    assert_eq!((taken, ours_taken), (all, all), "tasks that were taken");
    let what = format!("tasks taken and finished of {rows}, against bare SQL");
    let detail = format!("{ours:.0} and {bare:.0} tasks/s, {CONNECTIONS} connections, in tens");
    report(kind.name(), &what, ours / bare, ">= 0.60", &detail);
}

/// The median times of what a page, a scrape and a worker ask, by one connection.
struct Costs {
    rows: u64,
    take: Duration,
    scrape: Duration,
    page: Duration,
}

impl Costs {
    async fn of(kind: &DatabaseKind, rows: u64, name: &str) -> Self {
        let url = kind.url(&format!("costs_{name}"));
        let catalogue = Catalogue::open(&url).await.unwrap();
        let dead = rows / DEAD;
        Bare::connect(&url).await.fill(ACCOUNT, rows - dead, dead).await;
        let accounts = [ACCOUNT.to_owned()];
        // Where a page begins: spread over all dead letters, which were made last.
        let (first, step) = (rows - dead, (dead / TIMES as u64).max(1));
        let mut after = (0..TIMES as u64).map(|at| first + at * step);
        let take = median(async || {
            take_and_finish(&catalogue).await;
        })
        .await;
        // As a mill does once a second.
        while catalogue.fold().await.unwrap() > 0 {}
        let costs = Self {
            rows,
            take,
            scrape: median(async || {
                drop(catalogue.task_figures().await.unwrap());
                for queue in TaskQueue::ALL {
                    catalogue.oldest_task(queue, &accounts).await.unwrap();
                }
            })
            .await,
            page: median(async || {
                drop(catalogue.dead_letters(ACCOUNT, after.next().unwrap_or(first), 100).await.unwrap());
            })
            .await,
        };
        catalogue.close().await;
        costs
    }

    fn report(&self, kind: &DatabaseKind, few: &Self) {
        let rows = [few.rows, self.rows];
        for (what, few, many_took) in [
            ("ten tasks taken and finished", few.take, self.take),
            ("the figures of a scrape", few.scrape, self.scrape),
            ("a page of dead letters", few.page, self.page),
        ] {
            let detail = format!("{few:?} of {} rows, {many_took:?} of {}", rows[0], rows[1]);
            let what = format!("time of {what}, of many rows against few");
            report(kind.name(), &what, many_took.as_secs_f64() / few.as_secs_f64(), "1", &detail);
        }
    }
}

/// The median time of what is done again and again.
async fn median(mut once: impl AsyncFnMut()) -> Duration {
    let mut times = Vec::with_capacity(TIMES);
    for _time in 0..TIMES {
        let began = Instant::now();
        once().await;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    times[TIMES / 2]
}

//! What the catalogue costs beside bare SQL, as ratios of one run, on SQLite and on PostgreSQL.
//!
//! `cargo bench -p queuekeeper-catalogue -- [ROWS [PAGE_ROWS]]`: how many rows are inserted (10^6), and how many rows
//! the larger table has of which a page is read (10^6; 10^7 takes some minutes and 10 GB of disk).

#![expect(clippy::unwrap_used, reason = "what fails in a bench ends it")]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

#[path = "catalogue/bare.rs"]
mod bare;

use std::time::{Duration, Instant};

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::inventory::{File, NewVersion};
use queuekeeper_store::audit::{AuditSink as _, Begun, Change, Intent, Settlement, Subject};
use queuekeeper_store::store::EntityTag;
use queuekeeper_store::{Algorithm, Digest, Digests, Key};
use queuekeeper_testkit::postgres::Postgres;
use tempfile::TempDir;
use tokio::task::JoinSet;
use uuid::Uuid;

use self::bare::Bare;

/// How many files a version has whose rows are counted.
const FILES: u32 = 100_000;

/// Writers at once, where counters are measured.
const CONNECTIONS: u32 = 20;

/// The rows of the smaller table of which a page is read.
const FEW: u64 = 10_000;

/// How many pages are read of each.
const PAGES: u32 = 1_000;

fn version(number: u64) -> NewVersion {
    NewVersion {
        ark: format!("ark:/99999/{number:012}"),
        owner: "owner".to_owned(),
        collection: "collection".to_owned(),
        title: Some("a title of some length".to_owned()),
        creator: None,
        date: None,
        number: 1,
        job: Uuid::now_v7(),
        batch: Some(Uuid::now_v7()),
        submitter: "submitter".to_owned(),
        message: "message".to_owned(),
        local_ids: Vec::new(),
    }
}

fn files(count: u32) -> impl Iterator<Item = File> + Send {
    let digests: Digests = [Digest::new(Algorithm::Sha512, &[7; 64]).unwrap()].into_iter().collect();
    (0..count).map(move |number| File {
        path: format!("producer/page-{number:08}.tif"),
        content_path: format!("v1/content/0190163d-8694-739b-aea5-966c26f8ad91/producer/page-{number:08}.tif"),
        size: number.into(),
        digests: digests.clone(),
        media_type: Some("image/tiff".to_owned()),
        is_billable: true,
    })
}

/// Databases of one kind, a new one for each measurement.
enum DatabaseKind {
    Sqlite(TempDir),
    Postgres(Box<Postgres>),
}

impl DatabaseKind {
    fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }

    fn url(&self, name: &str) -> String {
        match self {
            Self::Sqlite(directory) => format!("sqlite:{}", directory.path().join(format!("{name}.db")).display()),
            Self::Postgres(server) => server.create(name),
        }
    }
}

fn report(kind: &DatabaseKind, what: &str, ratio: f64, goal: &str, detail: &str) {
    println!("{:10}  {what:46}  {ratio:5.2}  (goal {goal})  {detail}", kind.name());
}

fn per_second(count: u32, elapsed: Duration) -> f64 {
    f64::from(count) / elapsed.as_secs_f64()
}

/// Rows of files, by `record_version`, against the same statements without anything around them.
async fn inserts(kind: &DatabaseKind, rows: u32) {
    let versions = rows.div_ceil(FILES);
    let of = rows.min(FILES);
    let url = kind.url("bare_inserts");
    drop(Catalogue::open(&url).await.unwrap());
    let mut bare = Bare::connect(&url).await;
    let (mut slow, mut fast) = (Duration::ZERO, Duration::ZERO);
    let catalogue = Catalogue::open(&kind.url("inserts")).await.unwrap();
    // In turns, so that both have the same share of what else the machine does.
    for number in 0..u64::from(versions) {
        let new = version(number);
        let began = Instant::now();
        bare.record(&new, files(of)).await;
        fast += began.elapsed();
        let began = Instant::now();
        catalogue.record_version(&new, files(of)).await.unwrap();
        slow += began.elapsed();
    }
    let (ours, bare) = (per_second(versions * of, slow), per_second(versions * of, fast));
    let detail = format!("{ours:.0} and {bare:.0} rows/s, {} rows", versions * of);
    report(kind, "rows inserted, against a bare loop", ours / bare, ">= 0.80", &detail);
    catalogue.close().await;
}

/// Small versions by many connections, against the same statements without counters.
async fn counters(kind: &DatabaseKind, rounds: u32) {
    let catalogue = Catalogue::open(&kind.url("counters")).await.unwrap();
    let folder = tokio::spawn({
        let catalogue = catalogue.clone();
        async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                catalogue.fold().await.unwrap();
            }
        }
    });
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in 0..CONNECTIONS {
        let catalogue = catalogue.clone();
        tasks.spawn(async move {
            for round in 0..rounds {
                let new = version(u64::from(writer * rounds + round));
                catalogue.record_version(&new, files(1)).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let ours = per_second(CONNECTIONS * rounds, began.elapsed());
    folder.abort();
    catalogue.close().await;

    let url = kind.url("bare_counters");
    drop(Catalogue::open(&url).await.unwrap());
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in 0..CONNECTIONS {
        let url = url.clone();
        tasks.spawn(async move {
            let mut bare = Bare::connect(&url).await;
            for round in 0..rounds {
                bare.record(&version(u64::from(writer * rounds + round)), files(1)).await;
            }
        });
    }
    tasks.join_all().await;
    let bare = per_second(CONNECTIONS * rounds, began.elapsed());
    let detail = format!("{ours:.0} and {bare:.0} transactions/s, {CONNECTIONS} connections");
    report(kind, "counters by deltas, against none", ours / bare, ">= 0.60", &detail);
}

/// Changes of content, begun and settled by many connections: each transaction has a place in one chain.
async fn changes(kind: &DatabaseKind, rounds: u32) {
    let catalogue = Catalogue::open(&kind.url("changes")).await.unwrap();
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in 0..CONNECTIONS {
        let catalogue = catalogue.clone();
        tasks.spawn(async move {
            for round in 0..rounds {
                let intent = intent(format!("{writer}/{round}"));
                let digests = [Digest::new(Algorithm::Sha256, &[7; 32]).unwrap()].into_iter().collect();
                let etag = Some(EntityTag("etag".to_owned()));
                assert_eq!(catalogue.begin(&intent, Duration::from_mins(5)).await, Ok(Begun::Ours));
                let done = Settlement::Done { change: Change::Add, etag, size: Some(1), digests };
                catalogue.settle(&intent, &done).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let changes = per_second(CONNECTIONS * rounds, began.elapsed());
    println!(
        "{:10}  {:46}  {changes:5.0} a second, {CONNECTIONS} connections",
        kind.name(),
        "changes begun and settled"
    );
    catalogue.close().await;
}

fn intent(key: String) -> Intent {
    Intent {
        id: Uuid::now_v7(),
        holder: Uuid::now_v7(),
        user: "ada".to_owned(),
        subject: Subject {
            store: "main".parse().unwrap(),
            space: "space".parse().unwrap(),
            key: Some(Key::new(key.into_bytes()).unwrap()),
        },
        change: Change::Add,
        seen: None,
        size: Some(1),
        digests: Digests::default(),
        source: None,
        upload: None,
        properties: None,
    }
}

/// The median times of a page of 100 objects, each behind a random ARK: read for the first time, and once more at once.
/// The database has of few rows all in its memory, of many only those that were just read: the second time is that of
/// the statement, the first one that of the statement and of bringing its rows there.
async fn page(kind: &DatabaseKind, rows: u64) -> [Duration; 2] {
    let url = kind.url(&format!("page_{rows}"));
    let catalogue = Catalogue::open(&url).await.unwrap();
    Bare::connect(&url).await.fill(rows).await;
    let mut state = 1u64;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..PAGES {
        // Any sequence that visits the whole table; Knuth's multiplier.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let after = format!("ark:/99999/{:012}", (state >> 33) % (rows - 100));
        for times in &mut times {
            let began = Instant::now();
            let page = catalogue.objects(Some("collection"), &after, 100).await.unwrap();
            times.push(began.elapsed());
            assert!(page.len() >= 99, "{after}: {}", page.len());
        }
    }
    catalogue.close().await;
    times.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    })
}

async fn pages(kind: &DatabaseKind, many: u64) {
    let (few, larger) = (page(kind, FEW).await, page(kind, many).await);
    let of = ["time of a page of many rows, against few", "the same of a page that was just read"];
    for ((what, few), larger) in of.into_iter().zip(few).zip(larger) {
        let detail = format!("{few:?} of {FEW} rows, {larger:?} of {many}");
        report(kind, what, larger.as_secs_f64() / few.as_secs_f64(), "1", &detail);
    }
}

#[tokio::main]
async fn main() {
    // Cargo passes `--bench`.
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let rows = u32::try_from(numbers.next().unwrap_or(1_000_000)).unwrap();
    let many = numbers.next().unwrap_or(1_000_000);
    for kind in
        [DatabaseKind::Sqlite(tempfile::tempdir().unwrap()), DatabaseKind::Postgres(Box::new(Postgres::start()))]
    {
        inserts(&kind, rows).await;
        counters(&kind, (rows / 2_000).clamp(10, 250)).await;
        changes(&kind, (rows / 4_000).clamp(10, 100)).await;
        pages(&kind, many).await;
    }
}

//! One episode after the other, and what came of them.

use std::collections::BTreeMap;
use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_mill::producer::Step;
use queuekeeper_testkit::postgres::Postgres;
use queuekeeper_testkit::s3::{Privileges, S3Server, Settings};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::depositor::{self, Deposited, Promised};
use super::operator::{DATABASE, LIMIT, Operator};
use super::oracle;
use super::processes::{PRODUCER, Processes};
use super::rot;
use super::world::{self, BUCKET, Deployment, FOREIGN, MAIN, PREFIX, REPLICA, SPACE};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Episode {
    /// A process of workers is killed, and another one started.
    KillWorkers,
    /// The process that only leads loops is killed, and another one started; and no process leads any more.
    KillProducer,
    /// All processes are killed.
    KillAll,
    /// The database server is killed, and started again a little later.
    KillDatabase,
    /// The leases of all tasks end while their workers work on.
    EndLeases,
    /// No process leads the loop any more, though the one that did goes on.
    EndLead,
}

/// How often each happens in a round.
const ROUND: [(Episode, usize); 6] = [
    (Episode::KillWorkers, 4),
    (Episode::KillProducer, 1),
    (Episode::KillAll, 1),
    (Episode::KillDatabase, 2),
    (Episode::EndLeases, 1),
    (Episode::EndLead, 1),
];

/// How long there is peace before each, at most.
pub(super) const PEACE: Duration = Duration::from_millis(1200);

/// How long the server is away, at most.
const AWAY: Duration = Duration::from_millis(800);

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

impl Episode {
    async fn happens(self, processes: &mut Processes, operator: &Operator, rng: &mut StdRng) {
        match self {
            Self::KillWorkers => processes.kill(rng.random_range(0..PRODUCER)),
            Self::KillProducer => {
                processes.kill(PRODUCER);
                operator.end_lead();
            }
            Self::KillAll => processes.kill_all(),
            Self::KillDatabase => {
                let away = AWAY.mul_f64(rng.random_range(0.0..1.0));
                tokio::task::block_in_place(|| operator.server.lock().kill());
                sleep(away).await;
                tokio::task::block_in_place(|| operator.server.lock().restart());
            }
            Self::EndLeases => operator.end_leases_of_all(),
            Self::EndLead => operator.end_lead(),
        }
        operator.end_leases(&processes.names());
    }
}

/// What the depositor was promised and does not find.
fn broken(deposited: &Deposited, source: &oracle::Contents) -> Vec<String> {
    let line = |(key, promised): (&String, &Promised)| match (promised, source.get(key)) {
        (Promised::Unknown, _) | (Promised::Nothing, None) => None,
        (Promised::Content(content), Some(found)) if content == found => None,
        (promised, found) => {
            let (found, was) = (found.is_some(), *promised != Promised::Nothing);
            Some(format!("the source: {key} was promised: {was}, and is there: {found}"))
        }
    };
    deposited.promised.iter().filter_map(line).collect()
}

/// Goes through everything by a loop that looks at each item.
async fn go_through(place: &Deployment, operator: &Operator) {
    let mut mill = world::mill(place, "operator", 0).await.unwrap();
    mill.settings.thorough_every = 1;
    let deadline = Instant::now() + LIMIT;
    loop {
        // Another process leads for as long as it lives.
        operator.end_lead();
        match mill.produce_once(&CancellationToken::new()).await {
            Ok(Step::Idle) => break,
            // Another process leads, or a store or the database did not answer in time.
            Ok(Step::Follows | Step::Stuck(_)) | Err(_) if Instant::now() < deadline => {
                sleep(Duration::from_millis(100)).await;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "the report is what the long form is for")]
async fn whatever_is_killed_every_item_is_copied_once_and_nothing_else_is_there() {
    let seed = number("QUEUEKEEPER_CHAOS_SEED").unwrap_or_else(rand::random);
    let minutes = number("QUEUEKEEPER_CHAOS_MINUTES").unwrap_or(0);
    // Half of the time, and as much for what rots.
    let half = Duration::from_secs(minutes * 30);
    let until = Instant::now() + half;
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);

    let directory = tempfile::tempdir().unwrap();
    let bucket = S3Server::start(Settings::default()).await.unwrap();
    bucket.create_bucket(BUCKET);
    bucket.restrict(&Privileges::Write.document(BUCKET, PREFIX));
    world::set_up(directory.path());
    let server = tokio::task::block_in_place(Postgres::start);
    let database = server.create(DATABASE);
    let place = Deployment { directory: directory.path().to_owned(), database, endpoint: bucket.endpoint() };
    let mill = world::mill(&place, "operator", 0).await.unwrap();
    // What is put aside here need not be kept at all: it is not looked for again today.
    mill.asides_once().await.unwrap().unwrap();
    // From here on the log is followed: what a loop finds is not needed.
    assert_eq!(mill.produce_once(&CancellationToken::new()).await.unwrap(), Step::Idle);
    let catalogue = Catalogue::open(&place.database).await.unwrap();
    mill.catalogue.close().await;
    let source = world::audited(&place, MAIN, &catalogue, "depositor").await.unwrap();
    queuekeeper_store::Store::create_space(&source, &world::space()).await.unwrap();
    let foreign = directory.path().join(REPLICA).join(SPACE);
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join(FOREIGN), FOREIGN).unwrap();
    bucket.plant(BUCKET, [format!("{PREFIX}/{SPACE}/{FOREIGN}")], FOREIGN.as_bytes());
    let mut operator = Operator::new(&place, catalogue.clone(), server).await;

    let mut processes = Processes::start(&place);
    let stop = CancellationToken::new();
    let depositor = tokio::spawn(depositor::run(source, StdRng::seed_from_u64(rng.random()), stop.clone()));
    let mut happened = BTreeMap::<Episode, usize>::new();
    loop {
        let mut round: Vec<_> = ROUND.iter().flat_map(|(episode, often)| vec![*episode; *often]).collect();
        round.shuffle(&mut rng);
        for episode in round {
            sleep(PEACE.mul_f64(rng.random_range(0.0..1.0))).await;
            episode.happens(&mut processes, &operator, &mut rng).await;
            *happened.entry(episode).or_default() += 1;
        }
        if Instant::now() >= until {
            break;
        }
    }
    stop.cancel();
    let deposited = depositor.await.unwrap();
    println!("  {happened:?}; {} changes at the source, {} without an answer", deposited.done, deposited.failed);

    operator.await_quiet(&processes.names(), "after the last change").await;
    processes.none_has_ended();
    let mut wrong = oracle::wrong(directory.path(), &bucket, &operator);
    wrong.extend(broken(&deposited, &oracle::in_directory(&directory.path().join(MAIN), SPACE)));
    assert!(wrong.is_empty(), "seed {seed}:\n{}", wrong.join("\n"));

    // A look at everything finds nothing to do.
    let events = |operator: &Operator| operator.query("SELECT COUNT(*) FROM audit_log");
    let before = events(&operator);
    go_through(&place, &operator).await;
    let looked = operator.query("SELECT COUNT(*) FROM tasks");
    operator.await_quiet(&processes.names(), "after a loop").await;
    assert_eq!(events(&operator), before, "seed {seed}");
    println!("  {} events; a loop left {} tasks, and no event", before.trim(), looked.trim());
    assert_eq!(catalogue.check().await.unwrap(), [], "seed {seed}");

    let (until, mut rounds, mut rotten) = (Instant::now() + half, 0, 0);
    loop {
        let (planted, wrong) = rot::round(&place, &bucket, &mut processes, &mut operator, &mut rng).await;
        assert!(wrong.is_empty(), "seed {seed}, round {rounds}:\n{}", wrong.join("\n"));
        (rounds, rotten) = (rounds + 1, rotten + planted);
        if Instant::now() >= until {
            break;
        }
    }
    println!("  {rotten} copies rotted in {rounds} rounds: each was repaired once, and nothing else was written over");
    assert_eq!(catalogue.check().await.unwrap(), [], "seed {seed}");
    println!("  dead letters that were tried again: {:?}", operator.dead);
}

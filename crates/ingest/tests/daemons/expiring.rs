//! Two hosts that work on one queue, each of which is cut off from ZooKeeper at random instants, for shorter and for
//! longer than its session lasts.
//!
//! `QUEUEKEEPER_TEST_EXPIRING=1000` takes so many jobs, and `SEED` another course; each run prints the one it takes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use queuekeeper_ingest::settings::Settings;
use queuekeeper_mail::settings::{MailSettings, Route};
use queuekeeper_testkit::proxy::{Direction, Newcomers, Proxy};
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;

use super::crashes::{Random, number};
use super::settings::quick;
use super::world::World;

/// How many jobs there are where nothing else is said.
const JOBS: u64 = 150;

/// How long a session lasts.
const SESSION: Duration = Duration::from_secs(1);

/// How long the jobs may take, many of which are begun again and again.
const LIMIT: Duration = Duration::from_mins(15);

/// How many sessions must have ended for the test to say something.
const EXPIRED: usize = 4;

/// Cuts a host off and lets it through again, until it is dropped.
async fn disturb(proxy: &Proxy, mut random: Random) -> ! {
    loop {
        random.sleep(200..1_200).await;
        match random.below(3) {
            0 => proxy.cut(Newcomers::Refuse),
            1 => proxy.stall(Direction::Both),
            _ => proxy.stall(Direction::ToClient),
        }
        random.sleep(100..3_000).await;
        proxy.restore();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "what a run took, to have it again")]
async fn two_hosts_whose_sessions_expire_at_random_do_each_job_of_a_batch_once() {
    let (seed, jobs) = (number("SEED", 0x5eed), number("QUEUEKEEPER_TEST_EXPIRING", JOBS));
    let rows = usize::try_from(jobs).unwrap();
    let options = Options { tick: Duration::from_millis(250), ..Options::default() };
    let server = Arc::new(PrivateServer::start(options).await.unwrap());
    let port = server.connect_string().rsplit_once(':').unwrap().1.parse().unwrap();
    let world = World::on(server, "", quick()).await;
    world.add_profile("reported", "notification: {addresses: [staff@library.example]}\n");
    let settings = || {
        let route = Route::Directory(world.directory.path().join("mails"));
        Settings { mail: MailSettings { route, lease: SESSION, ..MailSettings::default() }, ..quick() }
    };
    let proxies = [Proxy::start(port).await, Proxy::start(port).await];
    let [first, second] = [&proxies[0], &proxies[1]].map(Proxy::connect_string);
    let daemons = [
        world.start_through(&first, settings(), SESSION).await,
        world.start_through(&second, settings(), SESSION).await,
    ];
    let batch = world.deposit_rows_to("reported", "shared", rows).await;

    let mut sessions = BTreeSet::new();
    let random = Random::new(seed);
    tokio::select! {
        _ = disturb(&proxies[0], random.clone()) => {}
        _ = disturb(&proxies[1], random.another()) => {}
        _ = async {
            loop {
                sessions.extend(world.children("/queuekeeper/daemons").await);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        } => {}
        _ = world.ended_within(LIMIT, batch) => {}
    }
    println!("seed {seed}: {jobs} jobs, {} sessions", sessions.len());
    assert!(sessions.len() >= daemons.len() + EXPIRED, "seed {seed}: {sessions:?}");
    proxies.iter().for_each(Proxy::restore);

    let arks = world.check_batch(batch, rows).await;
    let counts = ["objects", "versions", "identifiers", "outbox"]
        .map(|table| world.sql(&format!("SELECT count(*) FROM {table}"))[0][0].as_u64().unwrap());
    assert_eq!(counts, [jobs, jobs, jobs, 1], "seed {seed}: rows of the catalogue");
    let recorded: BTreeSet<_> =
        world.sql("SELECT ark FROM objects").iter().map(|row| row[0].as_str().unwrap().to_owned()).collect();
    assert_eq!(recorded, arks, "seed {seed}");
    assert_eq!(std::fs::read_dir(world.directory.path().join("mails")).unwrap().count(), 1, "seed {seed}: one report");
    world.check_nothing_is_left().await;
    for daemons in daemons {
        daemons.stop().await;
    }
}

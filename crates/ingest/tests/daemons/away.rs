//! A store that fails now and then, and a database that is away for a time.

use std::sync::Arc;
use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_ingest::services::Services;
use queuekeeper_queue::record::Retry;
use queuekeeper_queue::state::BatchState;
use queuekeeper_store::retry::RetryPolicy;
use queuekeeper_store::s3::{AccessKey, Credentials, S3Config, S3Store};
use queuekeeper_store::{StoreFamilies, StoreName};
use queuekeeper_testkit::origin::OriginFault;
use queuekeeper_testkit::postgres::Postgres;
use queuekeeper_testkit::s3::{Effect, Fault, Privileges, S3Server, Settings};
use queuekeeper_testkit::wait::{eventually, eventually_some};

use super::settings::quick;
use super::world::{SESSION, World, services};

const LIMIT: Duration = Duration::from_mins(5);

/// How many jobs there are before the database goes.
const BEFORE: usize = 40;

/// How long the slowest of them is fetched.
const LONGEST: Duration = Duration::from_secs(30);

/// The daemons' services with all objects on an S3 server.
async fn on_s3(world: &World, server: &S3Server) -> Arc<Services> {
    let name: StoreName = "main".parse().unwrap();
    let mut config = S3Config::new(name.clone(), "s3://objects/root".parse().unwrap());
    config.endpoint = Some(server.endpoint());
    config.credentials = Credentials::Key(AccessKey::new(server.access_key(), server.secret_key()));
    let short = Duration::from_millis(5);
    config.retry = RetryPolicy { attempts: 4, within: Duration::from_secs(10), first: short, most: short * 4 };
    let metrics = StoreFamilies::default().store(&name);
    let mut services = services(world.directory.path(), quick()).await;
    let store = S3Store::new(config, metrics).await.unwrap();
    Arc::get_mut(&mut services).unwrap().stores.insert(name, Arc::new(store));
    services
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_fails_one_request_in_ten_fails_no_job_and_gets_each_version_once() {
    let mut world = World::with(quick()).await;
    let server = S3Server::start(Settings::default()).await.unwrap();
    server.create_bucket("objects");
    server.restrict(&Privileges::Write.document("objects", "root"));
    world.services = on_s3(&world, &server).await;
    let daemons = world.start_with(on_s3(&world, &server).await, SESSION);
    let refused = server.inject(Fault::new(Effect::SLOW_DOWN).every(10));
    // What was done although nothing says so.
    let lost = server.inject(Fault::new(Effect::CutAnswer).on_writes().every(17));
    let batch = world.deposit_rows("failing", 40).await;
    let (state, _) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    assert!(
        refused.count() > 20 && lost.count() > 5,
        "{} requests refused, {} answers lost",
        refused.count(),
        lost.count()
    );
    server.clear_faults();
    world.check_batch(batch, 40).await;
    world.check_nothing_is_left().await;
    daemons.stop().await;
}

/// The daemons' services on another catalogue.
async fn on_catalogue(world: &World, url: &str) -> Arc<Services> {
    let mut services = services(world.directory.path(), quick()).await;
    Arc::get_mut(&mut services).unwrap().catalogue = Catalogue::open(url).await.unwrap();
    services
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_for_a_time_holds_jobs_up_and_loses_and_doubles_nothing() {
    let mut postgres = Postgres::start();
    let url = postgres.create("ingest");
    let mut world = World::with(quick()).await;
    world.services = on_catalogue(&world, &url).await;
    world.catalogue = Some(url.clone());
    let daemons = world.start_with(on_catalogue(&world, &url).await, SESSION);
    // Few are fetched at a time, so that most of them are still to be done when the first are seen; and one takes so
    // long that not all are done where that is seen late.
    let faults = (0..BEFORE).map(|row| OriginFault::Slow(if row == 0 { LONGEST } else { Duration::from_secs(1) }));
    world.origin.fail("/row", faults);
    let before = world.deposit_rows("before", BEFORE).await;
    eventually(LIMIT, "some of the first are completed", async || {
        world.children("/jobs/states/completed").await.len() > 5
    })
    .await;
    postgres.kill();
    let meanwhile = world.deposit_rows("meanwhile", 10).await;
    let retry = eventually_some(LIMIT, "a job waits for the database", async || {
        for job in world.children("/queuekeeper/retry").await {
            let note = world.queue.client().get_data(&format!("/queuekeeper/retry/{job}")).await.ok();
            let retry = note.and_then(|(data, _)| Retry::decode(&data));
            // Others may wait for something else.
            if let Some(retry) = retry.filter(|retry| retry.why.contains("catalogue")) {
                return Some(retry);
            }
        }
        None
    })
    .await;
    assert!(!retry.why.contains(postgres.password()), "{retry:?}");
    let report = world.queue.batch_report(meanwhile).await.unwrap();
    assert!(report.failed.is_empty() && report.completed.is_empty(), "{report:?}");
    assert_eq!(world.queue.load_batch(before).await.unwrap().check_loadable().unwrap(), BatchState::Reporting);
    postgres.restart();
    world.check_batch(before, BEFORE).await;
    world.check_batch(meanwhile, 10).await;
    world.check_nothing_is_left().await;
    daemons.stop().await;
}

//! Origins that fail, for a while or for good.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::fetch::HostLimits;
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_queue::JobChange;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::record::Retry;
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_testkit::origin::{Origin, OriginFault};
use queuekeeper_testkit::wait::{eventually, eventually_some};
use serde_json::json;

use super::contents::manifest;
use super::settings::{only, quick};
use super::world::{SESSION, World, services};

const LIMIT: Duration = Duration::from_mins(3);

impl World {
    /// The only job of a batch, once it waits for another attempt.
    async fn waiting(&self, batch: BatchId) -> (JobId, Retry) {
        eventually_some(LIMIT, "a job waits for another attempt", async || {
            let job = *self.queue.batch_report(batch).await.unwrap().processing.first()?;
            let note = format!("/queuekeeper/retry/{job}");
            let (data, _) = self.queue.client().get_data(&note).await.ok()?;
            Some((job, Retry::decode(&data).unwrap()))
        })
        .await
    }

    /// The same once it has no lock, in this state.
    async fn waiting_in(&self, batch: BatchId, state: JobState) -> (JobId, Retry) {
        eventually_some(LIMIT, "a job without a lock waits for another attempt", async || {
            let (job, retry) = self.waiting(batch).await;
            let found = self.job(job).await;
            (found.state() == Some(state) && found.lock().is_none()).then_some((job, retry))
        })
        .await
    }

    /// Space and priority of the only job of a batch, once it is estimated.
    async fn estimated(&self, batch: BatchId) -> (Option<u64>, u8) {
        eventually_some(LIMIT, "a job is estimated", async || {
            let job = self.job(*self.queue.batch_report(batch).await.unwrap().processing.first()?).await;
            let is_done = job.state() == Some(JobState::Provisioning);
            is_done.then(|| (job.space_needed().unwrap(), job.priority().unwrap().number()))
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_waits_out_an_origin_that_is_away_and_fails_at_once_where_it_never_succeeds() {
    let world = World::with(quick()).await;
    let daemons = world.start();
    let say = |path: &str, size: u64| json!({"type": "file", "filename": "a.txt", "payload_url": world.origin.url(path), "size": size.to_string()});

    // Its lock and its worker are given back, and why it waits is written down.
    world.origin.serve("/a", "content");
    // The first wait is long enough to be seen on a busy machine.
    world.origin.fail("/a", [OriginFault::Status(503, Some("15")), OriginFault::Status(503, None)]);
    let (batch, _) = world.deposit(say("/a", 7)).await;
    let (_, retry) = world.waiting_in(batch, JobState::Downloading).await;
    assert!(retry.why.contains(&world.origin.url("/a")) && retry.why.contains("503"), "{retry:?}");
    let (state, _) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    assert_eq!(world.origin.take_requests().len(), 3);
    assert!(world.children("/queuekeeper/retry").await.is_empty());

    // What never succeeds is not tried again.
    let (batch, _) = world.deposit(say("/missing", 7)).await;
    let (state, report) = world.ended(batch).await;
    let message = world.message(report.failed[0]).await;
    assert_eq!((state, world.origin.take_requests().len()), (BatchState::Failed, 1), "{message}");
    assert!(message.contains("/missing") && message.contains("404"), "{message}");

    // An operator's change ends a wait.
    world.origin.serve("/b", "content");
    world.origin.fail("/b", [OriginFault::Status(503, Some("600"))]);
    let (batch, _) = world.deposit(say("/b", 7)).await;
    let (job, retry) = world.waiting(batch).await;
    assert!(retry.not_before.duration_since(retry.since).as_secs() > 60, "{retry:?}");
    let change = JobChange::to(JobState::Failed).by_operator().with_message("by hand");
    world.queue.change_job(job, &change, Timestamp::now()).await.unwrap();
    world.queue.change_job(job, &JobChange::resume(), Timestamp::now()).await.unwrap();
    eventually(LIMIT, "the resumed job is completed", async || {
        world.job(job).await.state() == Some(JobState::Completed)
    })
    .await;
    assert!(world.children("/queuekeeper/retry").await.is_empty());
    world.check_object(&world.ark(job).await, 1).await;
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_size_is_waited_for_once_while_its_host_is_away_and_then_taken_as_unknown() {
    let mut settings = only(&[Daemon::Batch, Daemon::Pending, Daemon::Estimating], quick());
    // No time at all may be left for others to be tried in: Estimating fails no job.
    settings.retry_within = Duration::ZERO;
    // Jobs come to Estimating meanwhile, also on a busy machine.
    let pause = Duration::from_secs(15);
    settings.fetch.hosts = HostLimits { failures: 1, first: pause, most: pause, ..HostLimits::default() };
    let world = World::with(settings).await;
    let daemons = world.start();
    let say = |kind: &str, path: &str| json!({"type": kind, "filename": "a", "payload_url": world.origin.url(path)});
    let unavailable = OriginFault::Status(503, None);
    // One request that its host does not answer, and it is away.
    let go_away = async || {
        let _before = world.origin.take_requests();
        world.origin.fail("/gone", [OriginFault::Status(403, None), unavailable.clone()]);
        let (batch, _) = world.deposit(say("file", "/gone")).await;
        let found = world.estimated(batch).await;
        assert_eq!(world.origin.take_requests().len(), 2);
        found
    };
    let (unknown, later) = go_away().await;
    assert_eq!(unknown, None);

    // Neither the manifest nor the sizes of its files are requested.
    world.origin.serve("/a", "content");
    let rows = manifest(ManifestProfile::Ingest, [format!("{} | | | | | a.txt", world.origin.url("/a"))]);
    let bytes = rows.len() as u64 + 7;
    world.origin.serve("/a.checkm", rows);
    for kind in ["object-manifest", "file"] {
        let path = if kind == "file" { "/a" } else { "/a.checkm" };
        let (batch, _) = world.deposit(say(kind, path)).await;
        let (_, retry) = world.waiting_in(batch, JobState::Estimating).await;
        assert!(retry.why.contains("503") && retry.why.contains("no further request is sent to it"), "{retry:?}");
        assert_eq!(retry.attempts, 1);
        assert_eq!(world.origin.take_requests(), []);

        // Back in time, it says the size; still away, the job goes on without.
        let is_back = kind == "object-manifest";
        if !is_back {
            world.origin.fail(path, [unavailable.clone()]);
        }
        // Nothing is to be seen before.
        tokio::time::sleep(retry.not_before.duration_since(Timestamp::now()).try_into().unwrap_or_default()).await;
        let (space, priority) = world.estimated(batch).await;
        if is_back {
            assert_eq!((space, priority + 10), (Some(bytes), later));
            go_away().await;
        } else {
            assert_eq!((space, priority), (None, later));
            assert_eq!(world.origin.take_requests().len(), 1);
        }
        assert!(world.children("/queuekeeper/retry").await.is_empty());
    }
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_waits_in_estimating_for_a_working_storage_that_cannot_be_read_however_long_that_takes() {
    let world = World::new().await;
    let before = world.start_anew(only(&[Daemon::Batch, Daemon::Pending], quick()), SESSION).await;
    world.origin.serve("/a", "content");
    let url = world.origin.url("/a");
    let (batch, _) = world.deposit(json!({"type": "file", "filename": "a", "payload_url": url, "size": "7"})).await;
    let estimating = "/jobs/states/estimating";
    eventually(LIMIT, "it comes to Estimating", async || world.children(estimating).await.len() == 1).await;
    before.stop().await;

    // No time at all may be left for others to be tried in.
    let mut settings = only(&[Daemon::Estimating], quick());
    settings.retry_within = Duration::ZERO;
    let services = services(world.directory.path(), settings).await;
    let [working, away] = ["working", "away"].map(|name| world.directory.path().join(name));
    std::fs::rename(&working, &away).unwrap();
    std::fs::write(&working, "what a mount has left").unwrap();
    let daemons = world.start_with(services, SESSION);
    let retry = eventually_some(LIMIT, "it was tried more than once", async || {
        let (_, retry) = world.waiting(batch).await;
        (retry.attempts > 2).then_some(retry)
    })
    .await;
    assert!(retry.why.starts_with("working storage: cannot "), "{retry:?}");
    std::fs::remove_file(&working).unwrap();
    std::fs::rename(&away, &working).unwrap();
    assert_eq!(world.estimated(batch).await.0, Some(7));
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_waits_for_a_store_whose_volume_is_away_and_begins_nothing_in_its_place() {
    let world = World::with(quick()).await;
    world.origin.serve("/a", "content");
    let [objects, away] = ["objects", "away"].map(|name| world.directory.path().join(name));
    let daemons = world.start();
    for is_mount_point in [false, true] {
        std::fs::rename(&objects, &away).unwrap();
        if is_mount_point {
            std::fs::create_dir(&objects).unwrap();
        }
        let url = world.origin.url("/a");
        let (batch, _) = world.deposit(json!({"type": "file", "filename": "a", "payload_url": url})).await;
        let (job, retry) = eventually_some(LIMIT, "it was tried more than once", async || {
            let (job, retry) = world.waiting(batch).await;
            (retry.attempts > 2).then_some((job, retry))
        })
        .await;
        assert!(retry.why.starts_with("store main: ") && retry.why.contains("mount its volume"), "{retry:?}");
        assert_eq!(world.job(job).await.state(), Some(JobState::Storing));
        if is_mount_point {
            assert_eq!(std::fs::read_dir(&objects).unwrap().count(), 0);
            std::fs::remove_dir(&objects).unwrap();
        }
        std::fs::rename(&away, &objects).unwrap();
        assert_eq!(world.ended(batch).await.0, BatchState::Completed, "{:?}", world.jobs(batch).await);
        world.check_object(&world.ark(job).await, 1).await;
    }
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_gets_no_connection_to_a_slow_host_gives_its_worker_back_and_was_not_tried() {
    let mut settings = quick();
    settings.workers.insert(Daemon::Downloading, 2);
    // Whatever counts as an attempt fails the job.
    settings.retry_within = Duration::ZERO;
    // The others come to the host meanwhile, also on a busy machine.
    settings.fetch.silence = Duration::from_secs(15);
    settings.fetch.hosts = HostLimits { connections: 1, wait: Duration::from_millis(100), ..HostLimits::default() };
    let world = World::with(settings).await;
    let other = Origin::start().await;
    let profile = std::fs::read_to_string(world.directory.path().join("profiles/demo.yaml")).unwrap();
    let profile = profile.replace("name: demo", "name: far");
    let profile = profile.replace(&world.origin.address().to_string(), &other.address().to_string());
    std::fs::write(world.directory.path().join("profiles/far.yaml"), profile).unwrap();
    world.services.profiles.write().read_again().unwrap();
    for path in ["/slow", "/a"] {
        world.origin.serve(path, "content");
    }
    other.serve("/a", "content");
    world.origin.fail("/slow", [OriginFault::Stall(3)]);
    let say = |profile: &str, url: String| json!({"profile": profile, "type": "file", "filename": "a", "payload_url": url, "size": "7"});
    let daemons = world.start();
    let (slow, _) = world.deposit(say("demo", world.origin.url("/slow"))).await;
    eventually(LIMIT, "it is being fetched", async || !world.origin.take_requests().is_empty()).await;
    let (waits, _) = world.deposit(say("demo", world.origin.url("/a"))).await;
    let (job, retry) = world.waiting(waits).await;
    assert!(retry.why.contains("are in use (at most 1)") && retry.attempts == 0, "{retry:?}");
    assert_eq!(world.job(job).await.state(), Some(JobState::Downloading));
    // The other worker is free for other hosts.
    let (far, _) = world.deposit(say("far", other.url("/a"))).await;
    assert_eq!(world.ended(far).await.0, BatchState::Completed);
    assert_eq!(world.ended(slow).await.0, BatchState::Failed);
    assert_eq!(world.ended(waits).await.0, BatchState::Completed);
    daemons.stop().await;
}

//! Grants of working storage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::directory::WorkingStorage;
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_ingest::step::Services;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::origin::OriginFault;
use queuekeeper_testkit::wait::eventually;
use serde_json::{Value, json};

use super::world::{Daemons, World, manifest, only, quick, services};

const LIMIT: Duration = Duration::from_mins(5);

const JOBS: usize = 5;

/// Settings under which the volume may hold so many bytes more than it does now.
fn with_margin(working: &WorkingStorage, margin: u64, mut settings: Settings) -> Settings {
    let (total, free) = working.space().unwrap();
    settings.space.threshold = (total - free + margin) as f64 / total as f64;
    settings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_jobs_that_fit_one_at_a_time_each_passes_when_the_one_before_has_ended() {
    let world = World::with(quick()).await;
    let rows = (0..=JOBS).map(|row| {
        let path = format!("/{row}");
        world.origin.serve(&path, vec![b'x'; 40_000]);
        world.origin.fail(&path, [OriginFault::Slow(Duration::from_millis(100))]);
        format!("{} | | | 40000 | | f{row}.txt", world.origin.url(&path))
    });
    world.origin.serve("/all.checkm", manifest(ManifestProfile::SingleFileBatch, rows));
    let before = [Daemon::Batch, Daemon::Pending, Daemon::Estimating];
    let before = world.start_anew(only(&before, quick()), Duration::from_secs(10)).await;
    let url = world.origin.url("/all.checkm");
    let say = json!({"type": "single-file-batch-manifest", "filename": "all.checkm", "payload_url": url});
    let (batch, _) = world.deposit(say).await;
    eventually(LIMIT, "all jobs wait for space", async || {
        world.children("/jobs/states/provisioning").await.len() == JOBS + 1
    })
    .await;
    before.stop().await;

    // They are small, but say that they need much; and one needs more than the volume may ever hold.
    let (total, _) = world.services.working.space().unwrap();
    let needed = total / 8;
    let jobs = world.queue.batch_report(batch).await.unwrap().processing;
    for (at, job) in jobs.iter().enumerate() {
        let bytes = if at == 2 { total } else { needed };
        let path = format!("/jobs/{job}/space_needed");
        world.queue.client().set_data(&path, bytes.to_string().as_bytes(), None).await.unwrap();
    }
    let settings = with_margin(&world.services.working, needed + needed / 2, quick());
    let began = Instant::now();
    let daemons = [
        world.start_anew(settings.clone(), Duration::from_secs(10)).await,
        world.start_anew(settings, Duration::from_secs(10)).await,
    ];
    let grants = format!("/queuekeeper/space/{}", world.services.working.volume());
    // When each grant was seen first and last.
    let mut seen: BTreeMap<String, (Duration, Duration)> = BTreeMap::new();
    let mut failed_after = None;
    eventually(LIMIT, "all jobs have ended", async || {
        if let Ok((data, _)) = world.queue.client().get_data(&grants).await {
            let granted: Value = serde_json::from_slice(&data).unwrap();
            let granted = granted["grants"].as_object().unwrap();
            assert!(granted.len() <= 1, "{granted:?}");
            for job in granted.keys() {
                let now = began.elapsed();
                seen.entry(job.clone()).or_insert((now, now)).1 = now;
            }
        }
        let report = world.queue.batch_report(batch).await.unwrap();
        if !report.failed.is_empty() {
            failed_after.get_or_insert(began.elapsed());
        }
        report.processing.is_empty()
    })
    .await;
    let (state, report) = world.ended(batch).await;
    assert_eq!((state, report.completed.len(), &report.failed[..]), (BatchState::Failed, JOBS, &jobs[2..3]));
    let message = world.message(jobs[2]).await;
    assert!(message.contains(&total.to_string()) && message.contains("deposit it in parts"), "{message}");
    let mut times: Vec<_> = seen.values().copied().collect();
    times.sort_unstable();
    assert!(failed_after.unwrap() < times.last().unwrap().0, "{failed_after:?} {times:?}");
    assert_eq!(times.len(), JOBS, "{seen:?}");
    for pair in times.windows(2) {
        let idle = pair[1].0.saturating_sub(pair[0].1);
        assert!(idle < Duration::from_millis(1_500), "{times:?}");
    }
    for job in report.completed {
        world.check_object(&world.ark(job).await, 1).await;
    }
    for daemons in daemons {
        daemons.stop().await;
    }
}

/// Starts daemons whose working storage is this folder of the world.
async fn start_on(world: &World, working: &str, daemons: &[Daemon]) -> Daemons {
    let of = Arc::into_inner(services(world.directory.path(), only(daemons, quick())).await).unwrap();
    let working = WorkingStorage::open(&world.directory.path().join(working)).unwrap();
    let services = Services::new(of.catalogue, of.stores, of.profiles.into_inner(), working, of.settings);
    world.start_with(Arc::new(services), Duration::from_secs(10))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_taken_only_by_those_who_see_the_volume_on_which_it_was_given_room() {
    let world = World::new().await;
    std::fs::create_dir(world.directory.path().join("beside")).unwrap();
    world.origin.serve("/f", "content");
    let rows = |batch: &str| {
        let url = world.origin.url("/f");
        let rows = (0..JOBS).map(|row| format!("{url} | | | 7 | | {batch}{row}.txt"));
        manifest(ManifestProfile::SingleFileBatch, rows.collect::<Vec<_>>())
    };
    let deposit = async |name: &str| {
        let path = format!("/{name}.checkm");
        world.origin.serve(&path, rows(name));
        let url = world.origin.url(&path);
        let say = json!({"type": "single-file-batch-manifest", "filename": "all.checkm", "payload_url": url});
        world.deposit(say).await.0
    };
    let processing = async || BTreeSet::from_iter(world.children("/jobs/states/processing").await);
    let (before, after) = Daemon::ALL.split_at(5);
    assert_eq!(after[0], Daemon::Processing);

    // Their files are on one volume, where no process goes on with them.
    let downloading = start_on(&world, "working", before).await;
    let first = deposit("first").await;
    eventually(LIMIT, "all were downloaded", async || processing().await.len() == JOBS).await;
    downloading.stop().await;
    let waiting = processing().await;
    // Those on the other volume do all the work that comes, and leave these as they are.
    let others = start_on(&world, "beside", &Daemon::ALL).await;
    let second = deposit("second").await;
    let (state, report) = world.ended(second).await;
    assert_eq!((state, report.completed.len()), (BatchState::Completed, JOBS), "{:?}", world.jobs(second).await);
    assert_eq!(processing().await, waiting, "{:?}", world.jobs(first).await);
    for entry in waiting {
        let job = world.job(entry.split_once('-').unwrap().1.parse().unwrap()).await;
        assert!(job.lock().is_none() && job.version() == Some(4), "{:?}", job.version());
    }
    assert!(world.children("/queuekeeper/retry").await.is_empty());

    // On each volume there are processes for all states, on one of them two that share these.
    let sharing = [start_on(&world, "working", before).await, start_on(&world, "working", after).await];
    let third = [deposit("third").await, deposit("fourth").await, deposit("fifth").await];
    for batch in third.into_iter().chain([first]) {
        let (state, report) = world.ended(batch).await;
        assert_eq!((state, report.completed.len()), (BatchState::Completed, JOBS), "{:?}", world.jobs(batch).await);
        for job in report.completed {
            world.check_object(&world.ark(job).await, 1).await;
        }
    }
    assert_eq!(world.children("/queuekeeper/space").await.len(), 2, "room was given on both");
    for daemons in sharing.into_iter().chain([others]) {
        daemons.stop().await;
    }
}

//! Grants of working storage.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::directory::WorkingStorage;
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::origin::OriginFault;
use queuekeeper_testkit::wait::eventually;
use serde_json::{Value, json};

use super::world::{World, manifest, only, quick};

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

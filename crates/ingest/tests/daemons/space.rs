//! Grants of working storage.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::deposit::{DepositError, NewDeposit};
use queuekeeper_ingest::kind::DepositType;
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_ingest::services::Services;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_ingest::working::{SizeLimit, WorkingStorage};
use queuekeeper_queue::record::GrantsNote;
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_queue::{ItemChange, JobChange};
use queuekeeper_testkit::origin::OriginFault;
use queuekeeper_testkit::wait::eventually;
use serde_json::json;
use uuid::Uuid;

use super::contents::{manifest, zip};
use super::settings::{only, quick};
use super::world::{Daemons, SESSION, World, services};

const LIMIT: Duration = Duration::from_mins(5);

const JOBS: usize = 5;

/// How long the file of a job is fetched at least.
const FETCHED_IN: Duration = Duration::from_secs(2);

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
        world.origin.serve(&path, vec![b'x'; 10_000]);
        // It comes in one piece.
        world.origin.fail(&path, [OriginFault::Slow(FETCHED_IN)]);
        format!("{} | | | 10000 | | f{row}.txt", world.origin.url(&path))
    });
    world.origin.serve("/all.checkm", manifest(ManifestProfile::SingleFileBatch, rows));
    let before = [Daemon::Batch, Daemon::Pending, Daemon::Estimating];
    let before = world.start_anew(only(&before, quick()), SESSION).await;
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
    let daemons = [world.start_anew(settings.clone(), SESSION).await, world.start_anew(settings, SESSION).await];
    let note = format!("/queuekeeper/space/{}", world.services.working.volume());
    let granted = async || {
        let (data, _) = world.queue.client().get_data(&note).await.ok()?;
        Some(GrantsNote::decode(&data).unwrap().grants)
    };
    eventually(LIMIT, "all jobs have ended", async || {
        if let Some(granted) = granted().await {
            assert!(granted.len() <= 1, "{granted:?}");
        }
        world.queue.batch_report(batch).await.unwrap().processing.is_empty()
    })
    .await;
    let (state, report) = world.ended(batch).await;
    assert_eq!((state, report.completed.len(), &report.failed[..]), (BatchState::Failed, JOBS, &jobs[2..3]));
    let message = world.message(jobs[2]).await;
    assert!(message.contains(&total.to_string()) && message.contains("deposit it in parts"), "{message}");
    // The server knows when each has ended, also where nobody looked.
    let ended = async |job| world.job(job).await.entered().unwrap();
    let (failed, mut completed) = (ended(jobs[2]).await, Vec::new());
    for job in &report.completed {
        completed.push(ended(*job).await);
    }
    completed.sort_unstable();
    assert!(failed < completed[JOBS - 1], "{failed} {completed:?}");
    let pairs = completed.windows(2);
    let mut between: Vec<_> = pairs.map(|pair| pair[1].duration_since(pair[0]).unsigned_abs()).collect();
    between.sort_unstable();
    assert!(between[0] >= FETCHED_IN, "two at a time: {completed:?}");
    // A machine that stands still holds one or two of them up, and a daemon that seldom looks for room, all.
    assert!(between[(between.len() - 1) / 2] < FETCHED_IN + Duration::from_secs(7), "{completed:?}");
    eventually(LIMIT, "all grants have ended", async || granted().await.is_some_and(|granted| granted.is_empty()))
        .await;
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
    world.start_with(Arc::new(services), SESSION)
}

/// Starts daemons whose working storage has so many bytes, of which they may use four fifths.
async fn start_limited(world: &World, limit: &SizeLimit, settings: Settings) -> Daemons {
    let of = Arc::into_inner(services(world.directory.path(), settings).await).unwrap();
    let working = of.working.clone().limited(limit.clone());
    let services = Services::new(of.catalogue, of.stores, of.profiles.into_inner(), working, of.settings);
    world.start_with(Arc::new(services), SESSION)
}

/// A container that is much larger than it is taken for: it needs at least 64 MiB, as any archive may.
fn outgrowing() -> Vec<u8> {
    zip(&[("zeros", &"0".repeat(1 << 20))])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_outgrows_its_grant_waits_for_longer_than_a_failing_one_is_tried() {
    let (world, limit) = (World::new().await, SizeLimit::new(100 << 20));
    let settings = || Settings { retry_within: Duration::ZERO, ..quick() };
    let (before, after) = Daemon::ALL.split_at(5);
    world.origin.serve("/first", vec![b'x'; 20 << 20]);
    world.origin.serve("/c.zip", outgrowing());
    let say = |kind: &str, name: &str| json!({"type": kind, "filename": name, "payload_url": world.origin.url(&format!("/{name}"))});
    let downloading = start_limited(&world, &limit, only(before, settings())).await;
    let first = world.deposit(say("file", "first")).await.0;
    eventually(LIMIT, "its files are there", async || !world.children("/jobs/states/processing").await.is_empty())
        .await;
    let second = world.deposit(say("container", "c.zip")).await.0;
    let mut waits = BTreeSet::new();
    eventually(LIMIT, "it has waited several times", async || {
        for job in world.children("/queuekeeper/retry").await {
            // It may be taken just now.
            let Ok((note, _)) = world.queue.client().get_data(&format!("/queuekeeper/retry/{job}")).await else {
                continue;
            };
            let note = String::from_utf8(note).unwrap();
            assert!(note.contains("waits for working storage"), "{note}");
            waits.insert(note);
        }
        assert!(world.queue.batch_report(second).await.unwrap().failed.is_empty(), "{:?}", world.jobs(second).await);
        waits.len() > 3
    })
    .await;
    let rest = start_limited(&world, &limit, only(after, settings())).await;
    for batch in [first, second] {
        assert_eq!(world.ended(batch).await.0, BatchState::Completed, "{:?}", world.jobs(batch).await);
    }
    for daemons in [downloading, rest] {
        daemons.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_youngest_of_jobs_that_all_wait_fails_without_its_files_and_has_its_upload_when_it_is_resumed() {
    let (world, limit) = (World::new().await, SizeLimit::new(100 << 20));
    let working = world.directory.path().join("working");
    std::fs::write(working.join("of-others"), vec![b'x'; 60 << 20]).unwrap();
    let uuid = format!("bid-{}", Uuid::new_v4());
    std::fs::create_dir(working.join(&uuid)).unwrap();
    std::fs::write(working.join(&uuid).join("c.zip"), outgrowing()).unwrap();
    let daemons = start_limited(&world, &limit, quick()).await;
    let batch = world.deposit_as(&uuid, json!({"type": "container", "filename": "c.zip"})).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!((state, report.failed.len()), (BatchState::Failed, 1));
    let message = world.message(report.failed[0]).await;
    assert!(message.contains("all other jobs are also waiting for working storage"), "{message}");
    let names = |path: &Path| -> BTreeSet<String> {
        let entries = std::fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let of_batch = names(&working.join(&uuid));
    let job = of_batch.iter().find(|name| name.starts_with("jid-")).unwrap();
    assert!(of_batch.contains("c.zip") && names(&working.join(&uuid).join(job)) == ["system".to_owned()].into());

    std::fs::remove_file(working.join("of-others")).unwrap();
    world.queue.change_job(report.failed[0], &JobChange::resume(), Timestamp::now()).await.unwrap();
    let again = ItemChange::to(BatchState::UpdateReporting).by_operator();
    world.queue.change_batch(batch, &again, Timestamp::now()).await.unwrap();
    eventually(LIMIT, "it is completed", async || world.queue.batch_report(batch).await.unwrap().completed.len() == 1)
        .await;
    world.check_object(&world.ark(report.failed[0]).await, 1).await;
    daemons.stop().await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_uploaded_to_a_volume_is_left_to_those_who_see_it() {
    let world = World::new().await;
    std::fs::create_dir(world.directory.path().join("beside")).unwrap();
    world.origin.serve("/f", "content");
    let here = WorkingStorage::open(&world.directory.path().join("working")).unwrap();
    let upload = async |kind: DepositType, content: String| {
        let deposit = NewDeposit {
            profile: "demo".to_owned(),
            kind: Some(kind),
            file_name: "upload".to_owned(),
            submitter: "tester".to_owned(),
            ..NewDeposit::default()
        };
        deposit.upload(&world.queue, &here, Uuid::new_v4(), Cursor::new(content)).await.unwrap().batch
    };
    let file = upload(DepositType::File, "a file".to_owned()).await;
    let only_batch = start_on(&world, "working", &[Daemon::Batch]).await;
    let has_job = async |batch| world.queue.batch_report(batch).await.is_ok_and(|report| report.processing.len() == 1);
    eventually(LIMIT, "it has its job", async || has_job(file).await).await;
    only_batch.stop().await;
    let row = format!("{} | | | 7 | | row.txt", world.origin.url("/f"));
    let rows = upload(DepositType::SingleFileBatchManifest, manifest(ManifestProfile::SingleFileBatch, [row])).await;

    // Those on the other volume do all other work, and its estimate.
    let others = start_on(&world, "beside", &Daemon::ALL).await;
    for _ in 0..3 {
        let say = json!({"type": "file", "filename": "f", "payload_url": world.origin.url("/f")});
        let (state, _) = world.ended(world.deposit(say).await.0).await;
        assert_eq!(state, BatchState::Completed);
    }
    eventually(LIMIT, "it waits", async || world.children("/jobs/states/provisioning").await.len() == 1).await;
    let job = world.job(world.queue.batch_report(file).await.unwrap().processing[0]).await;
    assert_eq!(job.space_needed(), Ok(Some(6)));
    assert!(!has_job(rows).await);
    let see = start_on(&world, "working", &Daemon::ALL).await;
    for batch in [file, rows] {
        assert_eq!(world.ended(batch).await.0, BatchState::Completed, "{:?}", world.jobs(batch).await);
    }
    for daemons in [others, see] {
        daemons.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_url_with_a_query_is_fetched_by_those_who_have_its_query_and_only_the_deposit_that_was_made_keeps_one() {
    let world = World::with(quick()).await;
    std::fs::create_dir(world.directory.path().join("beside")).unwrap();
    let here = WorkingStorage::open(&world.directory.path().join("working")).unwrap();
    for path in ["/plain", "/f?sig=2", "/row?sig=3"] {
        world.origin.serve(path, "content");
    }
    let row = format!("{} | | | 7 | | row.txt", world.origin.url("/row?sig=3"));
    world.origin.serve("/rows", manifest(ManifestProfile::SingleFileBatch, [row]));
    let say = |kind: &str, path: &str| json!({"type": kind, "filename": "f", "payload_url": world.origin.url(path)});
    let rows = world.deposit(say("single-file-batch-manifest", "/rows")).await.0;
    let only_batch = start_on(&world, "working", &[Daemon::Batch]).await;
    let has_job = async |batch| world.queue.batch_report(batch).await.is_ok_and(|report| report.processing.len() == 1);
    eventually(LIMIT, "it has its job", async || has_job(rows).await).await;
    only_batch.stop().await;

    let file_name = "f".to_owned();
    let deposit =
        NewDeposit { profile: "demo".to_owned(), kind: Some(DepositType::File), file_name, ..NewDeposit::default() };
    let uuid = Uuid::new_v4();
    let refer = async |path: &str| {
        deposit.refer(&world.queue, Some(&here), uuid, &world.origin.url(path).parse().unwrap()).await
    };
    let file = refer("/f?sig=1").await.unwrap();
    // Signed again, and another one with the same key.
    assert_eq!(refer("/f?sig=2").await.unwrap(), file);
    let other = refer("/other?sig=1").await.unwrap_err();
    assert!(matches!(other, DepositError::Other { what: "url", .. }), "{other}");

    let others = start_on(&world, "beside", &Daemon::ALL).await;
    let gone = world.deposit(say("file", "/gone?..")).await.0;
    assert_eq!(world.ended(gone).await.0, BatchState::Failed);
    let message = world.queue.load_batch(gone).await.unwrap().message();
    let sentence = "is no longer kept: deposit it again";
    assert!(message.starts_with("the query of its URL ") && message.ends_with(sentence), "{message}");
    for _ in 0..3 {
        assert_eq!(world.ended(world.deposit(say("file", "/plain")).await.0).await.0, BatchState::Completed);
    }
    eventually(LIMIT, "it waits", async || world.children("/jobs/states/provisioning").await.len() == 1).await;
    assert!(has_job(rows).await && !has_job(file.batch).await);
    others.stop().await;

    let see = start_on(&world, "working", &Daemon::ALL).await;
    for batch in [rows, file.batch] {
        assert_eq!(world.ended(batch).await.0, BatchState::Completed, "{:?}", world.jobs(batch).await);
    }
    let kept = || std::fs::read_dir(here.batch(&file.id)).map_or(0, Iterator::count);
    eventually(LIMIT, "its directory is removed", async || kept() == 0).await;
    assert_eq!((refer("/f?sig=4").await.unwrap(), kept()), (file.clone(), 0));
    see.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_job_that_is_resumed_is_taken_by_those_who_see_its_files() {
    let world = World::new().await;
    let [working, beside] = ["working", "beside"].map(|name| world.directory.path().join(name));
    std::fs::create_dir(&beside).unwrap();
    world.origin.serve("/f", "content");
    let say = || json!({"type": "file", "filename": "f", "payload_url": world.origin.url("/f")});
    // There are two volumes.
    let others = start_on(&world, "beside", &Daemon::ALL).await;
    assert_eq!(world.ended(world.deposit(say()).await.0).await.0, BatchState::Completed);
    others.stop().await;
    std::fs::write(working.join("Process_FAIL"), "").unwrap();
    let see = start_on(&world, "working", &Daemon::ALL).await;
    let batch = world.deposit(say()).await.0;
    let (state, report) = world.ended(batch).await;
    assert_eq!((state, report.failed.len()), (BatchState::Failed, 1));
    let volume = WorkingStorage::open(&working).unwrap().volume();
    let grants = async || {
        let (data, _) = world.queue.client().get_data(&format!("/queuekeeper/space/{volume}")).await.unwrap();
        let note = GrantsNote::decode(&data).unwrap();
        note.grants.values().map(|grant| grant.bytes).collect::<Vec<_>>()
    };
    eventually(LIMIT, "its grant says no more than where its files are", async || grants().await == [0]).await;
    see.stop().await;
    std::fs::remove_file(working.join("Process_FAIL")).unwrap();

    let others = start_on(&world, "beside", &Daemon::ALL).await;
    let job = report.failed[0];
    world.queue.change_job(job, &JobChange::resume(), Timestamp::now()).await.unwrap();
    let again = ItemChange::to(BatchState::UpdateReporting).by_operator();
    world.queue.change_batch(batch, &again, Timestamp::now()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(world.ended(world.deposit(say()).await.0).await.0, BatchState::Completed);
    }
    assert_eq!(world.job(job).await.state(), Some(JobState::Processing), "{}", world.message(job).await);
    let see = start_on(&world, "working", &Daemon::ALL).await;
    eventually(LIMIT, "it is completed", async || world.job(job).await.state() == Some(JobState::Completed)).await;
    eventually(LIMIT, "its grant has ended", async || grants().await.is_empty()).await;
    for daemons in [others, see] {
        daemons.stop().await;
    }
}

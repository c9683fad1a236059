//! Why a job, a state and a batch are not moving, on real trees.

use jiff::{SignedDuration, Timestamp};
use queuekeeper::insight;
use queuekeeper::insight::{Cause, CauseKind, Diagnosis, Verdict};
use queuekeeper::mirror::{Happening, Volume};
use queuekeeper_queue::fault::{Fault, Limits};
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::state::JobState;

use super::world::{LIMIT, Mirror, World, status, without_daemons};
use queuekeeper_testkit::wait::{eventually, eventually_some};

const TEN_MINUTES: i64 = 600;

/// A volume on which a job may need 500 bytes and not be kept back.
const VOLUME: Volume = Volume { size_bytes: 10_000, free_bytes: 2_500, threshold: 0.8, left_bytes: 500 };

/// What is said of a job so many seconds from now.
fn of_job(mirror: &Mirror, job: u32, seconds: i64) -> Diagnosis {
    let now = Timestamp::now() + SignedDuration::from_secs(seconds);
    insight::why_job(&mirror.store, JobId::new(job), Some(VOLUME), now).expect("the job is mirrored")
}

fn kinds(diagnosis: &Diagnosis) -> Vec<&'static str> {
    diagnosis.causes.iter().map(|cause| cause.kind.label()).collect()
}

/// Waits until these are the causes, the first ones, and gives the first.
async fn first(mirror: &Mirror, job: u32, seconds: i64, expected: &[&str]) -> (Diagnosis, Cause) {
    let found = eventually_some(LIMIT, &format!("{job} waits because of {expected:?}"), async || {
        let diagnosis = of_job(mirror, job, seconds);
        kinds(&diagnosis).starts_with(expected).then_some(diagnosis)
    })
    .await;
    let cause = found.causes[0].clone();
    (found, cause)
}

fn failed(message: &str) -> String {
    format!(r#"{{"status":"Failed","last_successful_status":"Provisioning","retry_count":0,"message":"{message}"}}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_waits_for_is_said_as_it_is_in_the_tree() {
    let world = World::new("why").await;
    for job in 20..23 {
        world.job(job, "Estimating").await;
    }
    let mirror = Mirror::start(&world, Limits::default()).await;

    let (diagnosis, cause) = first(&mirror, 22, 0, &["behind_others"]).await;
    assert_eq!(diagnosis.verdict, Verdict::Waiting);
    assert!(cause.sentence.starts_with("3 jobs are ahead of it: earlier ones of the same priority."), "{cause:?}");
    assert_eq!(cause.items[0].to_string(), "/jobs/states/estimating/05-jid0000000022");

    let (diagnosis, cause) = first(&mirror, 22, TEN_MINUTES, &["no_daemon", "behind_others"]).await;
    assert_eq!(
        (diagnosis.verdict, cause.items[0].to_string()),
        (Verdict::Stopped, "/jobs/states/estimating".to_owned())
    );

    world.create("/locks/queue/ingest", r#"{"who":"alice","why":"a new <volume>"}"#).await;
    let (_, cause) = first(&mirror, 22, TEN_MINUTES, &["queue_paused", "behind_others"]).await;
    assert!(cause.evidence.starts_with("By “alice”; reason: “a new <volume>”."), "{cause:?}");
    assert!(cause.since.unwrap().duration_since(Timestamp::now()).as_secs_f64().abs() < 60.0);
    assert_eq!(kinds(&of_job(&mirror, 6, 0)), ["next_in_line"], "the inventory goes on");
    world.delete("/locks/queue/ingest").await;

    world.create("/locks/collections/c0", "").await;
    let (_, cause) = first(&mirror, 0, 0, &["collection_held"]).await;
    assert_eq!(cause.items[0].to_string(), "/locks/collections/c0");
    assert_eq!(first(&mirror, 10, 0, &["held"]).await.0.headline, "It is held with its collection.");
    world.delete("/locks/collections/c10").await;
    eventually(LIMIT, "its collection is not held", async || {
        of_job(&mirror, 10, 0).causes[0].evidence.contains("“c10” is not held")
    })
    .await;

    assert_eq!(first(&mirror, 8, 0, &["done"]).await.0.verdict, Verdict::Done);
    assert!(insight::why_job(&mirror.store, JobId::new(99), None, Timestamp::now()).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_holds_a_job_is_named_with_all_else_that_they_hold() {
    let world = World::new("holders").await;
    let daemon = world.another().await;
    for job in 30..36 {
        world.job(job, "Provisioning").await;
    }
    let mirror = Mirror::start(&world, without_daemons()).await;
    let lock = zookeeper_client::CreateMode::Ephemeral.with_acls(zookeeper_client::Acls::anyone_all());
    for job in [2, 30, 31, 32, 33] {
        daemon.create(&format!("/jobs/jid{job:010}/lock"), b"", &lock).await.unwrap();
    }
    let session = format!("0x{:x}", daemon.session_id().0);
    let also = format!("by session {session}, which also holds 4 other locks.");
    eventually(LIMIT, &also, async || of_job(&mirror, 30, 0).causes[0].evidence.ends_with(&also)).await;
    let (diagnosis, cause) = first(&mirror, 30, 0, &["waiting_for_space"]).await;
    assert_eq!((diagnosis.verdict, &*diagnosis.headline), (Verdict::Stopped, "It is waiting for working storage."));
    assert_eq!(cause.sentence, "With its 1,000 bytes, working storage would be 85 % full; the limit is 80 %.");
    assert_eq!(cause.items.len(), 4);

    let (_, cause) = first(&mirror, 35, 0, &["waiting_for_space", "pool_full", "behind_others"]).await;
    assert_eq!(cause.kind, CauseKind::WaitingForSpace);
    let full = of_job(&mirror, 35, 0).causes[1].clone();
    assert!(full.sentence.starts_with("One daemon takes no more jobs: its pool is full"), "{full:?}");
    assert!(full.evidence.contains(&session) && full.evidence.contains("none of the other 2 jobs"), "{full:?}");
    let now = Timestamp::now();
    let state = insight::why_state(&mirror.store, JobState::Provisioning, Some(VOLUME), now).unwrap();
    assert_eq!((state.verdict, kinds(&state)), (Verdict::Stopped, vec!["waiting_for_space", "pool_full"]));
    let roomy = Volume { left_bytes: 5_000, ..VOLUME };
    let working = insight::why_job(&mirror.store, JobId::new(30), Some(roomy), now).unwrap();
    assert_eq!((working.verdict, kinds(&working)), (Verdict::Moving, vec!["in_progress"]));

    // The session ends, and with it all that it holds.
    drop(daemon);
    let (_, cause) = first(&mirror, 35, 0, &["waiting_for_space", "behind_others"]).await;
    assert_eq!(cause.items.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_broken_stands_before_whose_turn_it_is() {
    let world = World::new("broken").await;
    world.job(40, "Estimating").await;
    for (job, message) in [(41, "404 for https://a.example/1"), (42, "404 for https://a.example/22"), (43, "another")] {
        world.job(job, "Failed").await;
        world.set(&format!("/jobs/jid{job:010}/status"), &failed(message)).await;
    }
    let mirror = Mirror::start(&world, without_daemons()).await;

    let (diagnosis, cause) = first(&mirror, 41, 0, &["failed"]).await;
    assert_eq!(diagnosis.headline, "It failed in Downloading and needs an operator.");
    assert!(cause.evidence.starts_with("1 other job failed with the same message"), "{cause:?}");

    world.create("/jobs/states/estimating/00-jid0000000005", "").await;
    let (diagnosis, cause) = first(&mirror, 40, TEN_MINUTES, &["head_blocked", "behind_others"]).await;
    assert_eq!(diagnosis.headline, "An entry at the head of Estimating blocks all others.");
    assert!(cause.sentence.starts_with("The orphan entry 00-jid0000000005, whose job is in Storing,"), "{cause:?}");
    assert_eq!(cause.items[0].to_string(), "/jobs/states/estimating/00-jid0000000005");
    assert_eq!(diagnosis.causes[1].sentence, "1 job is ahead of it: earlier ones of the same priority.");
    assert_eq!(cause.fix, Some(Fault::OrphanEntry.fix()));
    let now = Timestamp::now() + SignedDuration::from_secs(TEN_MINUTES);
    let state = insight::why_state(&mirror.store, JobState::Estimating, None, now).unwrap();
    assert_eq!((state.verdict, kinds(&state)), (Verdict::Stopped, vec!["head_blocked"]));
    world.delete("/jobs/states/estimating/00-jid0000000005").await;

    world.delete("/jobs/states/estimating/05-jid0000000040").await;
    let (diagnosis, _) = first(&mirror, 40, TEN_MINUTES, &["missing_entry"]).await;
    assert_eq!(diagnosis.headline, "No daemon can see it: it has no queue entry.");

    world.set("/jobs/jid0000000040/priority", "104").await;
    world.create("/jobs/states/estimating/104-jid0000000040", "").await;
    let (_, cause) = first(&mirror, 40, TEN_MINUTES, &["priority_out_of_range"]).await;
    assert_eq!(cause.sentence, "Priority 104 makes its entry unreadable to the daemons.");

    world.delete("/jobs/jid0000000004/space_needed").await;
    assert_eq!(first(&mirror, 4, TEN_MINUTES, &["unloadable_job"]).await.0.headline, "No daemon can load it.");
    world.set("/jobs/jid0000000003/bid", "bid0000000077").await;
    let (diagnosis, _) = first(&mirror, 3, TEN_MINUTES, &["unloadable_job"]).await;
    assert_eq!(diagnosis.causes.last().unwrap().sentence, "Its batch bid0000000077 does not exist.");
    world.set("/jobs/jid0000000007/status", &status("Tele\u{7}porting", 0).replace('\u{7}', "\\u0007")).await;
    let (_, cause) = first(&mirror, 7, 0, &["status_unknown"]).await;
    assert!(cause.sentence.contains("“Tele\\u{7}porting”"), "{cause:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_says_how_far_it_is() {
    let world = World::new("batches").await;
    world.batch(1, "Pending").await;
    let mirror = Mirror::start(&world, without_daemons()).await;
    let of = |batch| insight::why_batch(&mirror.store, BatchId::new(batch), None, Timestamp::now()).unwrap().0;
    assert_eq!(kinds(&of(0)), ["jobs_to_do", "jobs_held"]);
    assert_eq!(of(0).causes[0].sentence, "9 of its 12 jobs have not finished.");
    assert_eq!(of(0).causes[0].evidence, "1 completed, 1 failed, 1 deleted.");
    let note = r#"{"who":"ann","why":"a court order."}"#;
    world.set("/locks/collections/c10", note).await;
    let held = "Collection “c10” is held. By “ann”; reason: “a court order”. Daemons do not release held";
    eventually(LIMIT, "the hold is named", async || of(0).causes[1].evidence.starts_with(held)).await;
    world.delete("/batches/bid0000000001/states/batch-processing").await;
    for folder in ["batch-failed", "batch-completed", "batch-deleted"] {
        world.delete(&format!("/batches/bid0000000001/states/{folder}")).await;
    }
    world.delete("/batches/bid0000000001/states").await;
    eventually(LIMIT, "it is not acquired", async || kinds(&of(1)) == ["batch_not_acquired"]).await;
    assert!(insight::why_batch(&mirror.store, BatchId::new(2), None, Timestamp::now()).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_s_way_is_remembered_while_it_is_there() {
    let world = World::new("way").await;
    let mirror = Mirror::start(&world, without_daemons()).await;
    let job = JobId::new(1);
    assert_eq!(mirror.store.past(job), []);
    world.ephemeral("/jobs/jid0000000001/lock").await;
    let taken = || mirror.store.past(job).into_iter().map(|event| event.what).collect::<Vec<_>>();
    let session = Some(world.client.session_id().0);
    eventually(LIMIT, "the lock was seen", async || taken() == [Happening::Locked { session }]).await;
    world.set("/jobs/jid0000000001/status", &status("Provisioning", 0)).await;
    let (from, to) = (Some(JobState::Estimating), Some(JobState::Provisioning));
    let moved = Happening::Moved { from, to, session, is_resumed: false };
    eventually(LIMIT, "the step took its place", async || taken() == [moved]).await;
    world.delete("/jobs/jid0000000001/lock").await;
    world.set("/jobs/jid0000000001/priority", "7").await;
    let both = [moved, Happening::Priority { from: 5, to: 7 }];
    eventually(LIMIT, "the priority was seen", async || taken() == both).await;
    let at = mirror.store.past(job)[0].at;
    let (_, stat) = world.client.get_data("/jobs/jid0000000001/status").await.unwrap();
    assert_eq!(at.as_second(), stat.mtime / 1_000);
    for node in ["bid", "configuration", "identifiers", "status", "priority", "space_needed"] {
        world.delete(&format!("/jobs/jid0000000001/{node}")).await;
    }
    world.delete("/jobs/jid0000000001").await;
    eventually(LIMIT, "it is gone, and its way with it", async || {
        mirror.store.job(job).is_none() && taken().is_empty()
    })
    .await;
}

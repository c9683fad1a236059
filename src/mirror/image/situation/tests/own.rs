//! What our own daemons report is shown for the items and states that it is about, and of no others.

use super::*;
use crate::mirror::image::Granted;
use queuekeeper_queue::record::{BatchWait, DaemonNote, WithdrawalNote, WithdrawnNote};

const STATES: [JobState; 5] =
    [JobState::Provisioning, JobState::Downloading, JobState::Storing, JobState::Held, JobState::Completed];

const VOLUME: &str = "volume";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn note(image: &mut Image, path: Path, data: Vec<u8>) {
    image.apply(path, &Found::Node { data, stat: new_stat(1) });
}

/// A job in each state, of the batch of that number, with a grant, and what the daemons say of the first of them.
fn image_with_notes() -> Image {
    let mut image = empty();
    let mut grants = Vec::new();
    for (number, state) in STATES.iter().enumerate() {
        let status = format!(r#"{{"status":"{state}","retry_count":0}}"#);
        put(&mut image, &format!("/jobs/jid{number:010}/status"), status, 1_000, 0);
        put(&mut image, &format!("/jobs/jid{number:010}/bid"), format!("bid{number:010}"), 1_000, 0);
        put(&mut image, &format!("/batches/bid{number:010}/status"), r#"{"status":"Processing"}"#.to_owned(), 1_000, 0);
        grants.push(format!(r#""jid{number:010}":{{"bytes":10,"since":2000}}"#));
    }
    let first = BatchId::new(0);
    let wait = BatchWait { batch: first, since: at(20), attempts: 1, full: None, why: "503".to_owned() };
    let daemon = DaemonNote {
        host: "host".to_owned(),
        pid: 7,
        version: String::new(),
        since: at(1),
        volume: "another".to_owned(),
        // No daemon works on jobs in the last two; a note may say anything.
        workers: STATES.map(|state| (state.label().to_owned(), 4)).into(),
        mail: None,
        waits: vec![wait],
    };
    note(&mut image, Path::daemon(1), daemon.encode());
    let retry = Retry {
        version: 0,
        since: at(1),
        attempts: 2,
        not_before: at(60),
        waits_since: None,
        why: "503 from host".to_owned(),
    };
    note(&mut image, Path::retry(JobId::new(0)), retry.encode());
    note(&mut image, Path::expansion(first), ExpansionNote::default().encode());
    let withdrawal = WithdrawalNote::new(WithdrawnNote { who: "alice", why: "" }, at(5), None);
    note(&mut image, Path::withdrawal(first), withdrawal.encode());
    note(&mut image, Path::store_hold("main").unwrap(), br#"{"who":"anna","why":"disks"}"#.to_vec());
    note(&mut image, Path::space(VOLUME).unwrap(), format!(r#"{{"grants":{{{}}}}}"#, grants.join(",")).into_bytes());
    image
}

#[test]
fn what_daemons_of_ours_say_is_reported_for_what_it_is_about() {
    let (image, limits) = (image_with_notes(), Limits::default());
    let query = FaultQuery { now_ms: NOW_MS, offset: offset(), limits: &limits, space: None };
    for (number, state) in (0..).zip(STATES) {
        let is_first = number == 0;
        let job = image.job_situation(JobId::new(number), &Flow::default(), query).unwrap();
        assert_eq!(job.retry.as_ref().map(|retry| &*retry.why), is_first.then_some("503 from host"), "{state}");
        assert_eq!(image.job_retry(JobId::new(number)), job.retry);
        assert_eq!(job.withdrawal.as_ref().map(|note| &*note.who), is_first.then_some("alice"));
        // Before the files of a job are there nothing has to see them, and where no daemon works on it nothing does.
        let has_files = matches!(state, JobState::Downloading | JobState::Storing);
        assert_eq!(job.unseen_volume.as_deref(), has_files.then_some(VOLUME), "{state}");

        let found = job.in_state.unwrap();
        assert_eq!((found.workers, found.is_ours), (4, true));
        let granted = Granted { jobs: 5, bytes: 50, since: Some(at(2)) };
        assert_eq!(found.granted, (state == JobState::Provisioning).then_some(granted), "{state}");
        let held: Vec<_> =
            found.held_stores.iter().map(|(store, pause)| (&**store, &*pause.who, &*pause.why)).collect();
        assert_eq!(held.first(), (state == JobState::Storing).then_some(&("main", "anna", "disks")), "{state}");

        let id = BatchId::new(number);
        let batch = image.batch_situation(id, None, &WorkedOn::default(), query).unwrap();
        assert_eq!(batch.waits.as_ref().map(|wait| &*wait.why), is_first.then_some("503"));
        assert_eq!(image.batch_wait(id), batch.waits);
        assert_eq!(batch.withdrawal, job.withdrawal);
        assert_eq!(batch.expansion, is_first.then_some(0));
    }
    assert_eq!((image.job_retry(JobId::new(99)), image.batch_wait(BatchId::new(99))), (None, None));
}

#[test]
fn of_a_session_with_many_jobs_that_are_kept_back_the_first_five_are_named() {
    let mut image = empty();
    for number in 0..7 {
        let mut node = |node: &str, data: &str, age: i64| {
            put(&mut image, &format!("/jobs/jid{number:010}/{node}"), data.to_owned(), age, 8);
        };
        node("status", r#"{"status":"Provisioning","retry_count":0}"#, 9_000);
        node("space_needed", "1000", 9_000);
        node("lock", "", 8_000 - number);
    }
    let limits = Limits::default();
    let query = FaultQuery { now_ms: NOW_MS, offset: offset(), limits: &limits, space: Some(10) };
    let pools = image.state_situation(JobState::Provisioning, &Flow::default(), query).pools;
    let named = |pool: &Pool| pool.items.iter().map(|job| job.number()).collect::<Vec<_>>();
    assert_eq!(pools.iter().map(|pool| (pool.jobs, named(pool))).collect::<Vec<_>>(), [(7, vec![0, 1, 2, 3, 4])]);
}

#[test]
fn a_job_whose_priority_is_out_of_range_is_no_obstacle_where_its_entry_stands() {
    let mut image = empty();
    // Nothing else is wrong with it.
    for (path, data) in [
        ("/jobs/jid0000000001/status", r#"{"status":"Pending","retry_count":0}"#),
        ("/jobs/jid0000000001/bid", "bid0000000001"),
        ("/jobs/jid0000000001/priority", "100"),
        ("/jobs/jid0000000001/space_needed", "0"),
        ("/jobs/states/pending/100-jid0000000001", ""),
        ("/batches/bid0000000001/status", r#"{"status":"Processing"}"#),
        ("/batches/bid0000000001/states", ""),
        ("/batches/bid0000000001/states/batch-processing", ""),
        ("/batches/bid0000000001/states/batch-processing/jid0000000001", ""),
    ] {
        put(&mut image, path, data.to_owned(), 9_000, 0);
    }
    let limits = Limits::default();
    image.evaluate_all(None, 0, 0, &limits);
    let query = FaultQuery { now_ms: NOW_MS, offset: offset(), limits: &limits, space: None };
    let faults = image.faults_of(&Path::Job(JobId::new(1)), query);
    assert_eq!(faults.iter().map(|found| found.fault).collect::<Vec<_>>(), [Fault::PriorityOutOfRange]);
    assert_eq!(image.state_situation(JobState::Pending, &Flow::default(), query).head, None);
}

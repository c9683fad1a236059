use std::sync::atomic::Ordering;

use jiff::Timestamp;
use queuekeeper_queue::Operation;
use queuekeeper_queue::record::GrantNote;

use super::locked::MOST_FAILED;
use super::*;
use crate::working::{SizeLimit, WorkingStorage};

/// A job that wants so many MiB, and has come just now.
fn wanted(number: u32, mib: u64) -> GrantRequest {
    GrantRequest { job: JobId::new(number), bytes: Some(mib << 20), priority: 5, age: Duration::ZERO }
}

#[tokio::test]
async fn what_is_reserved_for_one_keeps_none_back_that_comes_before_it() {
    let here = tempfile::tempdir().unwrap();
    let storage = WorkingStorage::open(here.path()).unwrap().limited(SizeLimit::new(100 << 20));
    let rules = Rules { wait_limit: Duration::from_mins(1), ..Rules::default() };
    let grants = Grants::new(Uuid::nil(), rules);
    let mut locked = LockedGrants { of: &grants, known: grants.known.lock().await, next: None };
    let waits = |number, age| GrantRequest { age: Duration::from_secs(age), ..wanted(number, 30) };
    // All have waited for too long, and there is room for the first two.
    let waiting = [waits(1, 90), waits(2, 80), waits(3, 70), waits(4, 65)];
    let now = Timestamp::now();
    let round = locked.decide(&storage, &waiting, now).unwrap();
    assert_eq!(round.passed.iter().map(|(job, _)| job.number()).collect::<Vec<_>>(), [1, 2]);
    let mut is_granted = |wanted: &GrantRequest| {
        let granted = locked.grant(&storage, wanted, now).unwrap().is_some();
        if granted {
            locked.committed();
        }
        granted
    };
    assert!(is_granted(&waiting[0]) && is_granted(&waiting[1]));
    assert!(!is_granted(&waiting[2]), "there is no room");
    let small = GrantRequest { bytes: Some(1), ..waits(5, 0) };
    assert!(!is_granted(&small), "what is free is reserved");
    grants.ended(JobId::new(1));
    assert!(!is_granted(&waiting[3]), "so is what becomes free");
    assert!(is_granted(&waiting[2]));
    assert!(is_granted(&small), "nothing is reserved any more");
}

#[tokio::test]
async fn what_a_job_has_written_is_not_kept_for_it_any_more_whichever_process_wrote_it() {
    let here = tempfile::tempdir().unwrap();
    let storage = WorkingStorage::open(here.path()).unwrap().limited(SizeLimit::new(100 << 20));
    let grants = Grants::new(Uuid::nil(), Rules::default());
    let mut locked = LockedGrants { of: &grants, known: grants.known.lock().await, next: None };
    let (job, now) = (JobId::new(1), Timestamp::now());
    assert!(locked.grant(&storage, &wanted(1, 60), now).unwrap().is_some());
    locked.committed();
    let file = std::fs::File::create(here.path().join("content")).unwrap();
    crate::working::allocate(&file, 50 << 20).unwrap();
    // Of 80 MiB that may be used 50 are, and of the 60 that were granted 10 are still to come.
    let fits = |locked: &LockedGrants<'_>, mib| {
        let round = locked.decide(&storage, &[wanted(2, mib)], now).unwrap();
        !round.passed.is_empty()
    };
    assert!(!fits(&locked, 1), "nothing is known of what was written");
    let written = HashMap::from([(job, 50 << 20)]);
    grants.written(job).store(50 << 20, Ordering::Relaxed);
    assert!(fits(&locked, 19) && !fits(&locked, 21));
    grants.written.lock().clear();
    locked.known.downloads.clone_from(&written);
    assert!(fits(&locked, 19) && !fits(&locked, 21));
    locked.known.downloads.clear();
    grants.set_downloaded(written);
    assert!(fits(&locked, 19) && !fits(&locked, 21));
}

#[tokio::test]
async fn a_failed_job_keeps_a_grant_of_no_bytes_and_the_oldest_of_too_many_are_forgotten() {
    let here = tempfile::tempdir().unwrap();
    let storage = WorkingStorage::open(here.path()).unwrap().limited(SizeLimit::new(100 << 20));
    let grants = Grants::new(Uuid::nil(), Rules::default());
    let mut locked = LockedGrants { of: &grants, known: grants.known.lock().await, next: None };
    let (job, now) = (JobId::new(7_000), Timestamp::now());
    assert!(locked.grant(&storage, &wanted(7_000, 60), now).unwrap().is_some());
    locked.committed();
    let fail = |locked: &mut LockedGrants<'_>| {
        grants.failed(job);
        assert!(locked.remove_ended().is_some());
        locked.committed();
        assert!(locked.remove_ended().is_none());
    };
    fail(&mut locked);
    assert_eq!((locked.of(job), locked.total()), (Some(0), 0));
    // It takes no room, and frees none: where another one needs more, no job is left to wait for.
    assert!(locked.grant(&storage, &wanted(2, 70), now).unwrap().is_some());
    locked.committed();
    let file = std::fs::File::create(here.path().join("of-others")).unwrap();
    crate::working::allocate(&file, 60 << 20).unwrap();
    let (_, outcome) = locked.extend(&storage, JobId::new(2), 75 << 20, now).unwrap();
    assert!(matches!(outcome, Extension::GivesUp(_)), "{outcome:?}");
    grants.ended(JobId::new(2));
    // When it is resumed, it is granted room as any other.
    assert!(locked.grant(&storage, &wanted(7_000, 10), now).unwrap().is_some());
    locked.committed();
    assert_eq!(locked.of(job), Some(10 << 20));

    let form = |since| GrantNote { bytes: 0, since, extension: None };
    let many = (0..1_500).map(|number| (JobId::new(number).to_string(), form(i64::from(number))));
    locked.known.granted.grants.extend(many);
    fail(&mut locked);
    let left: BTreeSet<_> = locked.jobs().collect();
    assert_eq!((left.len(), left.first(), left.last()), (MOST_FAILED, Some(&JobId::new(501)), Some(&job)));
}

#[test]
fn the_grants_of_as_many_jobs_as_may_have_one_fit_into_a_znode() {
    let form = GrantNote { bytes: 1 << 50, since: 1_764_000_000_000, extension: Some(1 << 50) };
    let jobs = u32::try_from(space::MOST_GRANTS + MOST_FAILED).unwrap();
    let grants = (0..jobs).map(|number| (JobId::new(number).to_string(), form)).collect();
    assert!(GrantsNote { grants }.encode().len() < 950 << 10);
}

#[tokio::test]
async fn where_no_grant_was_ever_written_a_job_that_ends_without_one_does_not_make_them_known() {
    let here = tempfile::tempdir().unwrap();
    let storage = WorkingStorage::open(here.path()).unwrap().limited(SizeLimit::new(100 << 20));
    let grants = Grants::new(Uuid::nil(), Rules::default());
    let mut locked = LockedGrants { of: &grants, known: grants.known.lock().await, next: None };
    grants.ended(JobId::new(1));
    assert!(locked.remove_ended().is_none());
    // Set as the first version, they would take the place of what another process has granted meanwhile.
    let written = locked.grant(&storage, &wanted(2, 30), Timestamp::now()).unwrap().unwrap();
    assert!(matches!(written.operations(), [Operation::Create { .. }]), "{written:?}");
}

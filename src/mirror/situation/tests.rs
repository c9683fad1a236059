//! What follows from a situation.

use super::*;

#[test]
fn a_volume_keeps_back_what_needs_more_than_is_left() {
    let volume = Volume { size_bytes: 1_000, free_bytes: 600, threshold: 0.8, left_bytes: 400 };
    let used = [0, 100, 600, 1_600].map(|bytes| volume.used_with(bytes));
    for (used, expected) in used.into_iter().zip([0.4, 0.5, 1.0, 2.0]) {
        assert!((used - expected).abs() < 1e-9, "{used} instead of {expected}");
    }
    assert_eq!([0, 400, 401, u64::MAX].map(|bytes| volume.keeps_back(bytes)), [false, false, true, true]);
    let full = Volume { left_bytes: -1, ..volume };
    assert!(full.keeps_back(0), "above the threshold nothing fits");
    let unknown = Volume { size_bytes: 0, free_bytes: 0, ..volume };
    assert!(unknown.used_with(1).is_finite());
}

#[test]
fn a_pause_names_who_requested_it_and_why() {
    let requested = |who: &str, why: &str| PauseSituation { since: None, who: who.into(), why: why.into() }.requested();
    assert_eq!(requested("", " "), "");
    let (who, why) = (requested("alice", ""), requested(" ", "disks. "));
    assert!(who.contains("alice") && !who.to_lowercase().contains("reason"), "{who}");
    assert!(why.contains("disks") && !why.contains("By") && !why.contains("disks."), "{why}");
    let both = requested("alice", "disks");
    assert!(both.contains("alice") && both.contains("; reason: ") && both.contains("disks"), "{both}");
    assert!([who, why, both].iter().all(|text| text.ends_with(". ")));
}

fn provisioning() -> StateSituation {
    let granted = Granted { jobs: 1, bytes: 10, since: None };
    StateSituation {
        state: JobState::Provisioning,
        jobs: 5,
        locked: 3,
        looked_at: 1,
        oldest: None,
        flow: StateFlow::default(),
        taken: None,
        head: None,
        pools: Vec::new(),
        backlog: None,
        space_needed_bytes: 0,
        pause: None,
        faults: Vec::new(),
        usual: Duration::ZERO,
        workers: 1,
        is_ours: true,
        unserved: None,
        granted: Some(granted),
        held_stores: Vec::new(),
    }
}

#[test]
fn jobs_that_are_only_looked_at_are_untaken() {
    let untaken = |jobs, locked, looked_at| StateSituation { jobs, locked, looked_at, ..provisioning() }.untaken();
    assert_eq!([untaken(5, 3, 1), untaken(5, 5, 0), untaken(5, 5, 5), untaken(5, 0, 0)], [3, 0, 5, 5]);
    assert_eq!([untaken(1, 2, 0), untaken(5, 1, 3)], [0, 5], "read at two moments");
}

#[test]
fn jobs_may_wait_for_grants_where_nothing_else_explains_it() {
    assert!(provisioning().may_wait_for_grants());
    let no_grants = Granted { jobs: 0, bytes: 0, since: None };
    let head = QueueHead {
        entry: Path::Jobs,
        job: JobId::new(1),
        job_state: None,
        fault: Fault::OrphanEntry,
        since: Timestamp::UNIX_EPOCH,
    };
    for (why, state) in [
        ("no daemon grants", StateSituation { granted: None, ..provisioning() }),
        ("nothing is granted", StateSituation { granted: Some(no_grants), ..provisioning() }),
        ("all are taken", StateSituation { locked: 5, looked_at: 0, ..provisioning() }),
        ("there is no worker", StateSituation { workers: 0, ..provisioning() }),
        ("the queue is paused", StateSituation { pause: Some(PauseSituation::default()), ..provisioning() }),
        ("the head blocks it", StateSituation { head: Some(head), ..provisioning() }),
    ] {
        assert!(!state.may_wait_for_grants(), "{why}");
    }
}

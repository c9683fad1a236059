//! States and batches.

use super::*;
use crate::mirror::{JobHold, Rates};
use queuekeeper_queue::record::{WithdrawalNote, WithdrawnNote};

#[test]
fn a_state_tells_the_same_for_all_of_its_jobs() {
    let of = |state: &StateSituation| lines(&diagnose_state(state, Some(&volume()), now()));
    assert_eq!(
        of(&state(JobState::Storing)),
        [
            "moving: Storing is moving.",
            "flowing: 100 jobs are in it, 2 being worked on. Jobs leave it at about 120 an hour. | The last one left 30 s ago.",
        ]
    );
    let mut stuck = state(JobState::Provisioning);
    stuck.flow = StateFlow { last_left: Some(before(55 * MINUTE)), ..StateFlow::default() };
    stuck.oldest = Some(before(3 * HOUR));
    stuck.space_needed_bytes = 6 << 40;
    stuck.pools = vec![Pool {
        session: 0x1f,
        address: Some("10.0.0.5:40834".into()),
        jobs: 5,
        items: vec![JobId::new(1)],
        since: before(55 * MINUTE),
    }];
    assert_eq!(
        of(&stuck)[..2],
        [
            "stopped: No job has left Provisioning for 55 min.",
            "waiting_for_space: Daemons have locked 5 jobs that wait for working storage: it is 85 % full; the limit is 80 %. | The \
             first one has been waiting for 55 min. The 98 jobs that no daemon has taken yet need another 6.0 TiB.",
        ]
    );
    assert!(of(&stuck)[2].starts_with("pool_full: One daemon takes no more jobs: "));
    assert!(of(&stuck)[2].contains("Session 0x1f at 10.0.0.5:40834 has kept"), "{}", of(&stuck)[2]);
    let paused = StateSituation { pause: Some(pause()), ..state(JobState::Storing) };
    assert_eq!(of(&paused)[0], "stopped: Storing is waiting for the ingest queue to be unpaused.");
    let held = StateSituation { held_stores: vec![("main".into(), pause())], ..state(JobState::Storing) };
    assert_eq!(
        of(&held),
        [
            "moving: Storing is moving.",
            "store_held: The store “main” has been held for 2.0 h. | By “alice”; reason: “the volume is\\u{202e} \
             enlarged”. Jobs of collections that are kept in it wait in Storing; jobs for other stores continue.",
            "flowing: 100 jobs are in it, 2 being worked on. Jobs leave it at about 120 an hour. | The last one left 30 s ago.",
        ]
    );
    let empty = StateSituation { jobs: 0, locked: 0, ..state(JobState::Storing) };
    assert_eq!(of(&empty), ["moving: No job is in Storing.", "empty: No job is in Storing."]);
    assert_eq!(
        of(&StateSituation { jobs: 1, ..state(JobState::Failed) }),
        [
            "stopped: 1 job is failed and needs an operator.",
            "waits_for_operator: 1 job is failed and needs an operator."
        ]
    );
    assert_eq!(of(&state(JobState::Completed))[0], "done: 100 jobs are completed.");
    let slow =
        StateSituation { flow: StateFlow { left_1h: pace(0), ..StateFlow::default() }, ..state(JobState::Storing) };
    assert_eq!(of(&slow)[0], "waiting: Storing is waiting.");
}

fn batch(of: BatchState, references: [Option<u32>; 4]) -> BatchSituation {
    BatchSituation {
        id: BatchId::new(7),
        state: Some(of),
        status_text: "".into(),
        entered: Some(before(HOUR)),
        message: "".into(),
        is_acquired: true,
        references,
        lock: None,
        holds: Vec::new(),
        held: 0,
        states: Vec::new(),
        rates: Some(Rates { recent: Pace::default(), longer: pace(600), latest: Pace::default() }),
        pause: None,
        faults: Vec::new(),
        expansion: None,
        waits: None,
        withdrawal: None,
    }
}

#[test]
fn a_batch_tells_how_far_it_is() {
    let of = |batch: &BatchSituation| lines(&diagnose_batch(batch, Some(&volume()), now()));
    let mut counts = [Some(0); 4];
    counts[JobOutcome::Processing as usize] = Some(1_391);
    counts[JobOutcome::Completed as usize] = Some(6_120);
    counts[JobOutcome::Failed as usize] = Some(4);
    let running = batch(BatchState::Reporting, counts);
    assert_eq!(
        of(&running),
        [
            "moving: It is moving.",
            "jobs_to_do: 1,391 of its 7,515 jobs have not finished. | 6,120 completed, 4 failed. At about 600 an hour, they finish in \
             about 2.3 h.",
        ]
    );
    let promised = |is_stale| why::promised(&running, Some(volume()), is_stale, now());
    assert!(matches!(promised(false), Forecast::Ends(..)));
    assert_eq!(promised(true), Forecast::Stale, "nothing is promised from figures that are not current");
    assert_eq!((Forecast::Stale.times(), &*Forecast::Stale.phrase()), (None, "–"));
    let still = BatchSituation {
        rates: Some(Rates { recent: Pace::default(), longer: pace(0), latest: Pace::default() }),
        ..running.clone()
    };
    assert_eq!(of(&still)[0], "waiting: It is waiting for its jobs.");
    assert!(of(&still)[1].ends_with("None has finished recently."));
    counts[JobOutcome::Processing as usize] = Some(0);
    assert_eq!(
        of(&batch(BatchState::Reporting, counts)),
        [
            "waiting: It is waiting for its report.",
            "report_due: All its jobs have finished. Its report has not been made yet. | 6,120 completed, 4 failed."
        ]
    );
    let overdue = BatchSituation {
        faults: vec![fault(Fault::OverdueBatch, Path::BatchNode(BatchId::new(7), BatchNode::Status))],
        ..batch(BatchState::Reporting, counts)
    };
    assert_eq!(of(&overdue)[0], "stopped: Overdue batch.");
    let new = BatchSituation { is_acquired: false, pause: Some(pause()), ..batch(BatchState::Pending, [None; 4]) };
    assert_eq!(of(&new)[0], "stopped: It is waiting for the ingest queue to be unpaused.");
    assert!(of(&new)[2].starts_with("batch_not_acquired: It has been waiting for 1.0 h for a daemon to acquire it."));
    let held = BatchSituation { is_acquired: false, ..batch(BatchState::Held, [None; 4]) };
    assert_eq!(of(&held), ["stopped: It has been held for 1.0 h.", "held: It has been held for 1.0 h."]);
    let creating = BatchSituation { lock: Some(lock(0)), ..batch(BatchState::Processing, [Some(0); 4]) };
    assert_eq!(
        of(&creating),
        [
            "moving: A daemon has been working on it for 1.5 h.",
            "in_progress: A daemon has been working on it for 1.5 h. | Locked by session 0x1000a3f. Its jobs are being created.",
        ]
    );
    let expanding = BatchSituation { expansion: Some(900), ..creating.clone() };
    assert_eq!(
        of(&expanding)[..2],
        ["moving: Its jobs are being created.", "being_created: Its jobs are being created, 900 so far."]
    );
    let left = BatchSituation { lock: None, ..expanding };
    assert_eq!(
        of(&left)[..2],
        [
            "waiting: Its jobs are being created.",
            "being_created: Its jobs are being created, 900 so far. | No daemon is creating them now; a batch daemon will continue.",
        ]
    );
    // Looked at now, for which it is locked: it waits all the same.
    let wait = BatchWait {
        batch: left.id,
        since: before(12 * MINUTE),
        attempts: 0,
        full: Some(Path::Jobs),
        why: String::new(),
    };
    for lock in [None, Some(lock(0))] {
        let full = BatchSituation { lock, waits: Some(wait.clone()), ..left.clone() };
        assert_eq!(
            of(&full)[..2],
            [
                "waiting: It is waiting for room for its jobs.",
                "waiting_for_room: It has been waiting for 12 min for room in /jobs, which has as many jobs as Java programs can list. | 900 of its jobs have been created so far.",
            ]
        );
    }
    let tried = BatchWait { attempts: 3, full: None, why: "503 from host".to_owned(), ..wait };
    assert_eq!(
        of(&BatchSituation { expansion: Some(0), waits: Some(tried), ..left.clone() })[..2],
        [
            "waiting: It is waiting for another attempt to create its jobs.",
            "waiting_for_retry: 3 attempts have failed in 12 min, the last one with: “503 from host” | None of its jobs has been \
             created yet.",
        ]
    );
    let mut failed = batch(BatchState::Failed, counts);
    failed.message = "mail server".into();
    assert_eq!(of(&failed)[0], "stopped: It failed and needs an operator.");
    assert!(
        of(&failed)[1].starts_with("failed: It failed 1.0 h ago: “mail server” | Its jobs: 6,120 completed, 4 failed.")
    );
    assert_eq!(of(&batch(BatchState::Completed, counts))[0], "done: It is done, and its report has been made.");
}

#[test]
fn a_batch_tells_that_it_is_being_withdrawn_or_was() {
    let of = |batch: &BatchSituation| lines(&diagnose_batch(batch, Some(&volume()), now()));
    let mut counts = [Some(0); 4];
    counts[JobOutcome::Processing as usize] = Some(3);
    let note = WithdrawalNote::new(WithdrawnNote { who: "alice", why: "" }, before(90 * MINUTE), None);
    let held = JobHold::ByOperator(note.held_message().into());
    let mut withdrawing = BatchSituation {
        withdrawal: Some(note.clone()),
        lock: Some(lock(0)),
        held: 2,
        holds: vec![held],
        ..batch(BatchState::Reporting, counts)
    };
    let sentence = "being_withdrawn: “alice” began to withdraw the deposit 1.5 h ago.";
    let how = "The jobs of the deposit are being set to Held; none is deleted until all are Held.";
    assert_eq!(
        of(&withdrawing),
        ["moving: “alice” began to withdraw the deposit 1.5 h ago.".to_owned(), format!("{sentence} | {how}")]
    );
    withdrawing.lock = None;
    let left = "No process is working on the withdrawal now; a batch daemon will continue it.";
    assert_eq!(of(&withdrawing)[1], format!("{sentence} | {how} {left}"));
    assert!(of(&withdrawing)[0].starts_with("waiting: "));
    let mut job = job(JobState::Held);
    (job.withdrawal, job.message) = (Some(note.clone()), note.held_message().into());
    let found = lines(&diagnose_job(&job, Some(&volume()), now()));
    assert_eq!(
        found[..2],
        ["waiting: It is being withdrawn with its deposit.".to_owned(), format!("{sentence} | {how}")]
    );

    let mut withdrawn = batch(BatchState::Deleted, [None; 4]);
    withdrawn.message = note.withdrawn().to_string().into();
    assert_eq!(of(&withdrawn)[..1], ["done: It was withdrawn."],);
    assert!(of(&withdrawn)[1].starts_with("done: It was withdrawn by “alice” 1.0 h ago. | "), "{:?}", of(&withdrawn));
    (job.state, job.withdrawal, job.message) = (Some(JobState::Deleted), None, withdrawn.message.clone());
    let found = lines(&diagnose_job(&job, Some(&volume()), now()));
    assert_eq!(found[..2], ["done: It was withdrawn.", "done: It was withdrawn by “alice” 12 min ago."]);
}

#[test]
fn a_batch_whose_jobs_stand_is_not_moving_and_has_no_time_to_end_in() {
    let of = |batch: &BatchSituation| lines(&diagnose_batch(batch, Some(&volume()), now()));
    let mut counts = [Some(0); 4];
    counts[JobOutcome::Processing as usize] = Some(3);
    counts[JobOutcome::Completed as usize] = Some(60);
    let moving = batch(BatchState::Reporting, counts);
    // All that are left are Held: that alone decides.
    assert_eq!(
        of(&BatchSituation { held: 3, ..moving.clone() }),
        [
            "stopped: It is waiting for jobs that are Held.",
            "jobs_held: 3 of its jobs are Held. | Daemons do not release held jobs, and the batch cannot complete while they are held.",
            "jobs_to_do: 3 of its 63 jobs have not finished. | 60 completed, 0 failed.",
        ]
    );
    // Some are: the others move, and yet the end cannot be estimated.
    assert_eq!(
        of(&BatchSituation { held: 1, ..moving.clone() })[..2],
        ["moving: It is moving.", "jobs_to_do: 3 of its 63 jobs have not finished. | 60 completed, 0 failed."]
    );
    let mut blocked = state(JobState::Storing);
    blocked.locked = 0;
    blocked.faults = vec![fault(Fault::NoDaemon, Path::StateFolder(JobState::Storing.into()))];
    let stopped = BatchSituation { states: vec![(blocked.clone().into(), 3)], ..moving.clone() };
    assert_eq!(
        of(&stopped)[..2],
        [
            "stopped: It is waiting for jobs in a state that is stuck.",
            "jobs_stopped: 3 of its jobs are waiting in Storing: No daemon has taken a job from Storing for 20 s. | None of its 100 \
             jobs is locked.",
        ]
    );
    let partly = BatchSituation {
        states: vec![(blocked.clone().into(), 1), (state(JobState::Notify).into(), 2)],
        ..moving.clone()
    };
    assert_eq!(of(&partly)[0], "moving: It is moving.");
    assert_eq!(of(&partly)[1], "jobs_to_do: 3 of its 63 jobs have not finished. | 60 completed, 0 failed.");
    assert!(of(&partly)[2].starts_with("jobs_stopped: 1 of its jobs is waiting in Storing: "));
    // None waits in the state that is stopped, and yet all have to pass it.
    let states = vec![(state(JobState::Downloading).into(), 3), (blocked.into(), 0)];
    let ahead = BatchSituation { states, ..moving };
    assert_eq!(of(&ahead)[1], "jobs_to_do: 3 of its 63 jobs have not finished. | 60 completed, 0 failed.");
    assert!(of(&ahead)[2].starts_with("jobs_stopped: Its jobs still have to pass Storing: No daemon has taken a job"));
    let refused = BatchSituation { message: "invalid manifest".into(), ..batch(BatchState::Failed, [Some(0); 4]) };
    assert_eq!(
        of(&refused),
        [
            "stopped: It failed and needs an operator.",
            "failed: It failed 1.0 h ago: “invalid manifest” | It has no jobs.",
        ]
    );
    let fix = diagnose_batch(&refused, None, now()).causes[0].fix;
    assert!(fix.is_some_and(|fix| fix.contains("as a new deposit")), "{fix:?}");
    let ends = why::promised(&ahead, Some(volume()), false, now());
    assert_eq!(ends, Forecast::Stopped(JobState::Storing));
}

//! Situations and what is said of them.

mod at_rest;
mod others;
mod waiting;

use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::mirror::{
    Backlog, BatchContext, BatchSituation, FoundFault, Granted, Holding, JobSituation, Pace, PauseSituation, Pool,
    QueueHead, QueuePosition, StateFlow, StateSituation, Volume,
};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::id::{BatchId, JobId, Priority};
use queuekeeper_queue::path::{BatchNode, EntryName, JobNode, Path};
use queuekeeper_queue::record::{BatchWait, Retry};
use queuekeeper_queue::state::{BatchState, JobOutcome, JobState};

const JOB: JobId = JobId::new(42);

const MINUTE: i64 = 60;

const HOUR: i64 = 3_600;

fn now() -> Timestamp {
    Timestamp::from_second(1_795_255_200).unwrap()
}

fn before(seconds: i64) -> Timestamp {
    now() - jiff::SignedDuration::from_secs(seconds)
}

fn pace(count: u64) -> Pace {
    Pace { count, over: Duration::from_hours(1) }
}

fn volume() -> Volume {
    Volume { size_bytes: 100 << 40, free_bytes: 15 << 40, threshold: 0.8, left_bytes: -(5 << 40) }
}

/// A state in which jobs flow.
fn state(state: JobState) -> StateSituation {
    let flow = StateFlow {
        left_5m: Pace::default(),
        left_1h: pace(120),
        last_left: Some(before(30)),
        seen_left: Some(before(30)),
        seen_passed: Some(before(30)),
    };
    StateSituation {
        state,
        jobs: 100,
        locked: 2,
        looked_at: 0,
        oldest: Some(before(HOUR)),
        flow,
        taken: Some(before(20)),
        head: None,
        pools: Vec::new(),
        backlog: None,
        space_needed_bytes: 0,
        pause: None,
        faults: Vec::new(),
        usual: Duration::from_hours(1),
        workers: 0,
        is_ours: false,
        unserved: None,
        granted: None,
        held_stores: Vec::new(),
    }
}

/// A healthy job that waits for its turn behind 41 others.
fn job(of: JobState) -> JobSituation {
    let entry = Path::entry(of, Priority::new(5).unwrap(), JOB);
    JobSituation {
        id: JOB,
        state: Some(of),
        status_text: "".into(),
        entered: Some(before(12 * MINUTE)),
        last_successful: None,
        message: "".into(),
        same_message: 0,
        retries: 0,
        space_needed_bytes: 1 << 30,
        collection: "demo".into(),
        hold: None,
        lock: None,
        usual_lock: Duration::from_hours(24),
        place: Some((entry, QueuePosition { more_urgent: 30, earlier: 11, locked: 2, held_ahead: 1 })),
        batch: Some(BatchContext {
            id: BatchId::new(7),
            exists: true,
            is_acquired: true,
            state: Some(BatchState::Reporting),
            entered: Some(before(HOUR)),
        }),
        faults: Vec::new(),
        in_state: Some(state(of)),
        retry: None,
        expansion: None,
        withdrawal: None,
        unseen_volume: None,
    }
}

fn lock(others: u32) -> Holding {
    let others_paths = (0..others.min(5)).map(|other| Path::JobNode(JobId::new(other), JobNode::Lock)).collect();
    Holding {
        session: 0x0100_0a3f,
        address: None,
        since: before(90 * MINUTE),
        others: others_paths,
        others_count: others.into(),
    }
}

fn fault(fault: Fault, node: Path) -> FoundFault {
    FoundFault {
        fault,
        item: Path::Job(JOB),
        since: before(10 * MINUTE),
        how: "It shows.",
        effect: fault.effect(),
        fix: fault.fix(),
        nodes: vec![node],
    }
}

fn pause() -> PauseSituation {
    PauseSituation { since: Some(before(2 * HOUR)), who: "alice".into(), why: "the volume is\u{202e} enlarged".into() }
}

/// What is said: the verdict, the headline, and each cause with its evidence.
fn lines(diagnosis: &Diagnosis) -> Vec<String> {
    let causes = diagnosis.causes.iter().map(|cause| {
        let evidence = if cause.evidence.is_empty() { String::new() } else { format!(" | {}", cause.evidence) };
        format!("{}: {}{evidence}", cause.kind.label(), cause.sentence)
    });
    std::iter::once(format!("{}: {}", diagnosis.verdict.label(), diagnosis.headline)).chain(causes).collect()
}

fn of_job(job: &JobSituation) -> Vec<String> {
    lines(&diagnose_job(job, Some(&volume()), now()))
}

const BEHIND: &str = "behind_others: 41 jobs are ahead of it: 30 of higher priority and 11 earlier ones. | At about 120 jobs \
                      an hour, its turn comes in about 20 min, unless more urgent jobs keep arriving. 2 of them are locked by daemons. It entered Estimating 12 min \
                      ago.";

#[test]
fn a_job_that_waits_for_its_turn_knows_when_that_is() {
    assert_eq!(of_job(&job(JobState::Estimating)), ["waiting: It is waiting for its turn.", BEHIND]);
    let mut still = job(JobState::Estimating);
    still.in_state.as_mut().unwrap().flow = StateFlow { left_1h: pace(0), ..StateFlow::default() };
    assert!(
        of_job(&still)[1].contains("No job has moved on from the state recently, so its turn cannot be estimated.")
    );
    still.in_state.as_mut().unwrap().flow = StateFlow::default();
    assert!(of_job(&still)[1].contains("The rate is not known yet: measuring it takes half a minute."));
    for (more_urgent, earlier, locked, sentence) in [
        (0, 0, 0, "next_in_line: It is first in its state. | It entered Estimating 12 min ago."),
        (
            0,
            1,
            1,
            "next_in_line: It is next in line: the job ahead of it is locked by a daemon. | It entered Estimating 12 min ago.",
        ),
        (
            1,
            0,
            0,
            "behind_others: 1 job is ahead of it: of higher priority. | At about 120 jobs an hour, its turn comes in about 1 min, unless more urgent jobs keep arriving. It entered Estimating 12 min ago.",
        ),
    ] {
        let mut next = job(JobState::Estimating);
        next.place.as_mut().unwrap().1 = QueuePosition { more_urgent, earlier, locked, held_ahead: 0 };
        assert_eq!(of_job(&next)[1], sentence);
    }
}

#[test]
fn a_pause_comes_first_and_does_not_stop_the_inventory() {
    let paused = |of| {
        let mut job = job(of);
        job.in_state.as_mut().unwrap().pause = Some(pause());
        of_job(&job)
    };
    assert_eq!(
        paused(JobState::Estimating),
        [
            "stopped: It is waiting for the ingest queue to be unpaused.",
            "queue_paused: The ingest queue has been paused for 2.0 h. | By “alice”; reason: “the volume is\\u{202e} enlarged”. \
             Until it is unpaused, only the inventory daemon takes jobs; jobs whose completion would free space wait too.",
            // No rate of the past says how long that takes now.
            "behind_others: 41 jobs are ahead of it: 30 of higher priority and 11 earlier ones. | 2 of them are locked by daemons. \
             It entered Estimating 12 min ago.",
        ]
    );
    assert_eq!(paused(JobState::Recording)[0], "waiting: It is waiting for its turn.");
}

#[test]
fn a_locked_job_is_worked_on_and_its_session_is_named() {
    let mut job = job(JobState::Downloading);
    job.lock = Some(lock(4));
    assert_eq!(
        of_job(&job),
        [
            "moving: It is moving: a daemon is working on it.",
            "in_progress: A daemon has been working on it for 1.5 h. | Locked for 1.5 h by session 0x1000a3f, which also holds 4 other locks. \
             The limit for a step in Downloading is 24 h.",
        ]
    );
    let diagnosis = diagnose_job(&job, None, now());
    assert_eq!((diagnosis.causes[0].items.len(), diagnosis.causes[0].more), (4, 0));
    job.faults = vec![fault(Fault::LeakedLock, Path::JobNode(JOB, JobNode::Lock))];
    assert_eq!(
        of_job(&job),
        [
            "stopped: It is locked, and the lock may have leaked.",
            "leaked_lock: It has been locked for 1.5 h by session 0x1000a3f, which also holds 4 other locks. | It shows. The item \
             is not acquired while the lock exists. A daemon may still be working on it.",
        ]
    );
}

#[test]
fn a_full_pool_looks_at_nobody_else() {
    let mut job = job(JobState::Provisioning);
    job.space_needed_bytes = 0;
    let pool = |session, jobs| Pool {
        session,
        address: None,
        jobs,
        items: (0..5).map(JobId::new).collect(),
        since: before(55 * MINUTE),
    };
    // A volume above its limit keeps even the smallest job back.
    let kept_back = Volume { left_bytes: 10, ..volume() };
    job.in_state.as_mut().unwrap().pools = vec![pool(0x1f, 5), pool(0x2f, 4)];
    let diagnosis = diagnose_job(&job, Some(&kept_back), now());
    assert_eq!(
        lines(&diagnosis)[..2],
        [
            "stopped: It is waiting for a daemon, and the daemons are waiting for working storage.",
            "pool_full: One daemon takes no more jobs: its pool is full of jobs that wait for working storage. | Session 0x1f has kept 5 of them locked for 55 min. It keeps a job while that job would bring storage above the limit, so it takes none of the other 98 jobs. 85 TiB of 100 TiB used.",
        ]
    );
    assert_eq!((diagnosis.causes[0].items.len(), diagnosis.causes[0].more), (5, 0));
    assert_eq!(diagnosis.causes[1].kind, CauseKind::Behind);
    job.in_state.as_mut().unwrap().pools = vec![pool(0x1f, 4)];
    assert_eq!(diagnose_job(&job, Some(&kept_back), now()).verdict, Verdict::Waiting);
    job.space_needed_bytes = 24 << 30;
    let first = lines(&diagnose_job(&job, Some(&kept_back), now()));
    assert_eq!(first[0], "stopped: It is waiting for working storage, and no daemon has taken it yet.");
    assert!(
        first[1].starts_with("waiting_for_space: With its 24 GiB, working storage would be 85 % full"),
        "{first:?}"
    );
}

#[test]
fn a_bad_entry_at_the_head_starves_the_state_but_is_not_said_of_itself() {
    let head = |fault, job| QueueHead {
        entry: Path::entry(JobState::Estimating, Priority::new(5).unwrap(), job),
        job,
        job_state: Some(JobState::Storing),
        fault,
        since: before(12 * MINUTE),
    };
    let mut starved = job(JobState::Estimating);
    let state = starved.in_state.as_mut().unwrap();
    state.head = Some(head(Fault::OrphanEntry, JobId::new(41)));
    // As long as jobs leave the state, whatever stands at its head blocks nothing.
    assert_eq!(of_job(&starved), ["waiting: It is waiting for its turn.", BEHIND]);
    starved.in_state.as_mut().unwrap().flow.last_left = Some(before(13 * MINUTE));
    assert_eq!(
        of_job(&starved)[..2],
        [
            "stopped: An entry at the head of Estimating blocks all others.",
            "head_blocked: The orphan entry 05-jid0000000041, whose job is in Storing, blocks Estimating. | A Java \
             daemon that takes it ends its poll there and reaches none of the 98 jobs behind it. Daemons of queuekeeper skip it.",
        ]
    );
    let mut own = job(JobState::Estimating);
    let state = own.in_state.as_mut().unwrap();
    (state.head, state.flow.last_left) = (Some(head(Fault::UnloadableJob, JOB)), None);
    own.faults = vec![fault(Fault::UnloadableJob, Path::JobNode(JOB, JobNode::Status))];
    let lines = of_job(&own);
    assert_eq!(lines[0], "stopped: No daemon can load it.");
    assert!(
        lines[1].starts_with("unloadable_job: ") && !lines.iter().any(|line| line.contains("head_blocked")),
        "{lines:?}"
    );
}

#[test]
fn a_state_without_daemons_is_named_with_its_time() {
    let mut job = job(JobState::Estimating);
    let state = job.in_state.as_mut().unwrap();
    (state.locked, state.taken, state.flow.last_left) = (0, Some(before(55 * MINUTE)), Some(before(58 * MINUTE)));
    assert_eq!(of_job(&job)[0], "waiting: It is waiting for its turn.", "no daemon had the time to poll yet");
    let folder = || Path::StateFolder(JobState::Estimating.into());
    let state = job.in_state.as_mut().unwrap();
    state.faults = vec![fault(Fault::StuckState, folder()), fault(Fault::NoDaemon, folder())];
    assert_eq!(
        of_job(&job)[..2],
        [
            "stopped: It is waiting for a daemon, but none takes jobs from Estimating.",
            "no_daemon: No daemon has taken a job from Estimating for 55 min. | None of its 100 jobs is locked.",
        ]
    );
    let state = job.in_state.as_mut().unwrap();
    (state.taken, state.flow.last_left) = (None, None);
    assert!(of_job(&job)[1].starts_with("no_daemon: No daemon takes jobs from Estimating."));
    assert!(!of_job(&job).iter().any(|line| line.contains("its turn comes in")), "{:?}", of_job(&job));
    // A state that daemons hold jobs of is stuck in another way.
    let state = job.in_state.as_mut().unwrap();
    (state.locked, state.oldest) = (2, Some(before(HOUR)));
    state.faults = vec![fault(Fault::StuckState, folder())];
    assert_eq!(
        of_job(&job)[..2],
        ["stopped: No job leaves Estimating.", &*format!("stuck_state: It shows. | {}", Fault::StuckState.effect())]
    );
}

#[test]
fn faults_of_the_job_itself_come_before_its_turn_and_harmless_ones_after() {
    let entry = Path::Entry(JobState::Estimating.into(), EntryName { priority: 104, job: JOB });
    let mut job = job(JobState::Estimating);
    job.faults = vec![
        fault(Fault::MissingReference, Path::Job(JOB)),
        fault(Fault::PriorityOutOfRange, entry),
        fault(Fault::MissingEntry, Path::Job(JOB)),
    ];
    let lines = of_job(&job);
    assert_eq!(lines[0], "stopped: Its priority makes it unreadable to the daemons.");
    assert!(lines[1].starts_with("priority_out_of_range: Priority 104 makes its entry unreadable to the daemons. | "));
    let kinds: Vec<_> = lines[1..].iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(kinds, ["priority_out_of_range", "missing_entry", "behind_others", "missing_reference"]);
    let fixes: Vec<_> = diagnose_job(&job, None, now()).causes.iter().map(|cause| cause.fix.is_some()).collect();
    assert_eq!(fixes, [true, true, false, true]);
}

#[test]
fn batches_and_states_that_nobody_knows_are_lines() {
    let mut odd = job(JobState::Estimating);
    (odd.state, odd.in_state, odd.status_text) = (None, None, "Tele\nporting".into());
    assert_eq!(
        of_job(&odd),
        [
            "stopped: The daemons do not know its status.",
            "status_unknown: The daemons do not know its status “Tele\\nporting”. | No daemon can load it.",
        ]
    );
    let batch = |change: fn(&mut BatchContext)| {
        let mut job = job(JobState::Estimating);
        change(job.batch.as_mut().unwrap());
        of_job(&job).pop().unwrap()
    };
    assert_eq!(batch(|batch| batch.exists = false), "batch_gone: Its batch bid0000000007 does not exist.");
    assert!(batch(|batch| batch.is_acquired = false).starts_with("batch_not_acquired: No daemon has acquired"));
    assert_eq!(
        batch(|batch| batch.state = Some(BatchState::Deleted)),
        "batch_at_rest: Its batch bid0000000007 was deleted 1.0 h ago."
    );
    assert_eq!(batch(|_| ()), BEHIND);
    let mut done = job(JobState::Completed);
    done.batch.as_mut().unwrap().state = Some(BatchState::Completed);
    assert_eq!(of_job(&done), ["done: It is done.", "done: It was completed 12 min ago."]);
    done.state = Some(JobState::Deleted);
    assert_eq!(of_job(&done), ["done: It is deleted.", "done: It was deleted 12 min ago."]);
}

#[test]
fn kinds_have_names_of_their_own_and_sentences_end() {
    let mut labels: Vec<_> = CauseKind::LABELS.to_vec();
    labels.extend(Fault::ALL.map(|fault| CauseKind::Fault(fault).label()));
    labels.sort_unstable();
    let all = labels.len();
    labels.dedup();
    assert_eq!(labels.len(), all);
}

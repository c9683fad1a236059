//! Daemons and operators on the same jobs: afterwards no job is in two states, in none, or lost, and the audit trail
//! agrees with the tree.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use queuekeeper::actions::audit::{ActionId, Record};
use queuekeeper::actions::{ActionKind, Refusal, Role, Target};
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::state::{JobState, State as _};
use queuekeeper_queue::{Error, JobChange, NewJob, Queue};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;

use super::served::{Served, least, with};
use queuekeeper_testkit::queue::{World, base, borrowed};

const JOBS: u32 = 2_000;
const DAEMONS: u64 = 8;
const OPERATORS: usize = 4;

/// The duration of the race, in seconds; longer for manual runs.
const SECONDS: &str = "QUEUEKEEPER_TEST_RACE_SECONDS";

/// How much longer it may take until there is a conflict, on a machine where little is done in that time.
const LONGER: Duration = Duration::from_mins(5);

/// How long the race goes on.
struct Race {
    end: Instant,
    has_conflict: AtomicBool,
}

impl Race {
    fn goes_on(&self) -> bool {
        let now = Instant::now();
        now < self.end || (!self.has_conflict.load(Ordering::Relaxed) && now < self.end + LONGER)
    }
}

/// Takes jobs out of any state, and fails one in eight.
async fn daemon(queue: Queue, seed: u64, race: Arc<Race>) -> u64 {
    let mut dice = StdRng::seed_from_u64(seed);
    let states: Vec<JobState> = JobState::ALL.iter().copied().filter(|state| state.success().is_some()).collect();
    let mut done = 0;
    while race.goes_on() {
        let state = states[dice.random_range(0..states.len())];
        let mut poll = queue.poll_jobs(state).await.unwrap();
        for _ in 0..20 {
            let Some(job) = poll.next(Timestamp::now()).await.unwrap() else { break };
            let change = if dice.random_ratio(1, 8) { JobChange::failure("no luck") } else { JobChange::success() };
            match queue.finish_job(&job, &change, Timestamp::now()).await {
                Ok(_) => done += 1,
                // An operator broke the lock.
                Err(Error::Conflict(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    done
}

/// Reads a job and requests an action that its state allows; concurrent changes decide whether it is done.
async fn operator(served: &Served, queue: Queue, jobs: &[JobId], seed: u64, race: &Race) -> (u64, u64) {
    let mut dice = StdRng::seed_from_u64(seed);
    let (mut done, mut refused) = (0, 0);
    while race.goes_on() {
        let id = jobs[dice.random_range(0..jobs.len())];
        let job = queue.load_job(id).await.unwrap();
        let action = match job.state().unwrap() {
            JobState::Failed if dice.random_ratio(1, 40) => ActionKind::Delete,
            JobState::Failed => ActionKind::Resume,
            JobState::Pending if dice.random() => ActionKind::Hold,
            JobState::Held => ActionKind::Release,
            JobState::Completed | JobState::Deleted => continue,
            _ if dice.random_ratio(1, 4) => ActionKind::Fail,
            _ => ActionKind::SetPriority,
        };
        let parameters = least(action, dice.random_range(0..100));
        let action = with(action, Target::Job(id), parameters).at_version(job.version());
        match served.action(action, Role::Admin, "a race").await {
            Ok(_) => done += 1,
            Err(Refusal::Conflict { .. }) => {
                race.has_conflict.store(true, Ordering::Relaxed);
                refused += 1;
            }
            Err(refusal) => panic!("{refusal:?}"),
        }
    }
    (done, refused)
}

#[tokio::test(flavor = "multi_thread")]
async fn daemons_and_operators_at_the_same_jobs_lose_none_and_double_none() {
    let seconds = std::env::var(SECONDS).ok().map_or(30, |text| text.parse().unwrap());
    let world = World::new(&borrowed(&base())).await;
    let batch = "bid0000000000".parse().unwrap();
    let jobs: Vec<NewJob> = (0..JOBS).map(|_| NewJob::new(r#"{"profile":"demo"}"#)).collect();
    let jobs = world.queue.create_jobs(batch, &jobs, Timestamp::now()).await.unwrap();

    let end = Instant::now() + Duration::from_secs(seconds);
    let race = Arc::new(Race { end, has_conflict: AtomicBool::new(false) });
    let mut daemons = JoinSet::new();
    for seed in 0..DAEMONS {
        daemons.spawn(daemon(world.another().await, seed, Arc::clone(&race)));
    }
    let served = Served::on(world.another().await);
    let mut operators = Vec::new();
    for seed in (100..).take(OPERATORS) {
        operators.push(operator(&served, world.another().await, &jobs, seed, &race));
    }
    let requested = futures::future::join_all(operators).await;
    let stepped: u64 = daemons.join_all().await.iter().sum();
    let (done, refused) = requested.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    assert!(
        stepped > 0 && done > 0 && refused > 0,
        "no conflicts: {stepped} steps, {done} actions done, {refused} refused"
    );

    let trail = Trail::of(&served.records());
    assert_eq!(trail.done, done, "each action that was done is in the trail as done");
    // The others were refused before anything was recorded.
    assert!(trail.refused <= refused);
    agrees(&world, &jobs, &trail).await;
}

/// The history of each job in the audit trail.
#[derive(Debug, Default)]
struct Trail {
    done: u64,
    refused: u64,
    resumed: BTreeMap<String, u64>,
    /// All priorities that were set, in order, except for concurrent ones.
    priorities: BTreeMap<String, Vec<String>>,
    deleted: Vec<String>,
}

impl Trail {
    fn of(records: &[Record]) -> Self {
        let mut trail = Self::default();
        let mut open: BTreeMap<ActionId, (&str, &str, Option<u8>)> = BTreeMap::new();
        for record in records {
            match record {
                Record::Requested { id, action, targets, operations, .. } => {
                    let set = operations.iter().find_map(|operation| {
                        let (_, rest) = operation.split_once("/priority at version ")?;
                        rest.split_once(" = ")?.1.parse().ok()
                    });
                    assert!(open.insert(*id, (action, &targets[0], set)).is_none(), "an id is there twice");
                }
                other @ (Record::Started { .. }
                | Record::Alerts { .. }
                | Record::AlertsUnchanged { .. }
                | Record::Decision { .. }
                | Record::Settled { .. }) => unreachable!("no alerts come, and nothing ended: {other:?}"),
                Record::Outcome { id, outcome, .. } => {
                    let (action, target, priority) = open.remove(id).expect("what ends was requested");
                    if outcome != "done" {
                        assert_eq!(outcome, "conflict");
                        trail.refused += 1;
                        continue;
                    }
                    trail.done += 1;
                    match action {
                        "resume" => *trail.resumed.entry(target.to_owned()).or_default() += 1,
                        "delete" => trail.deleted.push(target.to_owned()),
                        "set_priority" => {
                            let priority = priority.expect("it says which").to_string();
                            trail.priorities.entry(target.to_owned()).or_default().push(priority);
                        }
                        _ => {}
                    }
                }
            }
        }
        assert!(open.is_empty(), "what was requested came to an end: {open:?}");
        trail
    }
}

async fn agrees(world: &World, jobs: &[JobId], trail: &Trail) {
    let tree = world.tree().await;
    let text = |path: &str| String::from_utf8(tree[path].0.clone()).unwrap();
    let mut entries: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut references: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in tree.keys() {
        let parts: Vec<&str> = path.split('/').collect();
        match parts[..] {
            ["", "jobs", "states", state, entry] => {
                let (priority, jid) = entry.split_once('-').unwrap();
                entries.entry(jid).or_default().push(format!("{state} {}", priority.parse::<u8>().unwrap()));
            }
            ["", "batches", _, "states", outcome, jid] => references.entry(jid).or_default().push(outcome),
            ["", "jobs", _, "lock"] => panic!("{path} was left behind"),
            _ => {}
        }
    }
    let mut deleted = Vec::new();
    for job in jobs {
        let jid = job.to_string();
        let status: serde_json::Value = serde_json::from_str(&text(&format!("/jobs/{jid}/status"))).unwrap();
        let state = status["status"].as_str().unwrap().to_lowercase();
        let priority = text(&format!("/jobs/{jid}/priority"));
        assert_eq!(entries[jid.as_str()], [format!("{state} {priority}")], "{jid}");
        let outcome = match state.as_str() {
            "failed" => "batch-failed",
            "completed" => "batch-completed",
            "deleted" => "batch-deleted",
            _ => "batch-processing",
        };
        assert_eq!(references[jid.as_str()], [outcome], "{jid}");
        assert_eq!(status["retry_count"].as_u64().unwrap(), trail.resumed.get(&jid).copied().unwrap_or(0), "{jid}");
        let set = trail.priorities.get(&jid).map_or(&[][..], Vec::as_slice);
        // Each operator waits for their own action, so one of the last four was the last.
        let last = &set[set.len().saturating_sub(OPERATORS)..];
        assert!(last.contains(&priority) || (set.is_empty() && priority == "5"), "{jid}: {priority}, {set:?}");
        if state == "deleted" {
            deleted.push(jid);
        }
    }
    assert_eq!((entries.len(), references.len()), (jobs.len(), jobs.len()));
    let mut requested = trail.deleted.clone();
    requested.sort_unstable();
    assert_eq!(deleted, requested);
}

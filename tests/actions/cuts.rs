//! A connection that is cut at every point of an action: what came of it is known or said not to be, the audit trail says
//! the same, and whoever requests it again gets what an action without a cut gives.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use queuekeeper::actions::audit::Record;
use queuekeeper::actions::{
    ActionKind, ActionParameters, BulkAction, ListOf, Outcome, Reached, Reason, Refusal, Role, Target,
};
use queuekeeper_queue::Queue;
use queuekeeper_queue::id::JobId;
use zookeeper_client::Client;

use super::served::{Served, actor, with};
use crate::queue::world::{EPHEMERAL, World, base, borrowed, connect, data, job, now, server};
use crate::support::tree::Tree;
use crate::support::wait::eventually;
use crate::support::wire::{Cut, Point, Wire};

const LIMIT: Duration = Duration::from_secs(20);

/// How many cuts are tried at once.
const AT_ONCE: usize = 48;

/// How many jobs one transaction is about, so that a batch takes several.
const JOBS_PER_TRANSACTION: usize = 2;

/// Jobs of a list.
const LISTED: u32 = 4;

/// What is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// One action, on this target.
    One(ActionKind, &'static str),
    /// Resuming each of a list of jobs.
    List,
}

/// What came of it.
#[derive(Debug)]
enum Came {
    One(Result<(), Refusal>),
    /// The items that were not done, and why.
    List(BTreeMap<String, Refusal>),
}

impl Case {
    fn nodes(self) -> Vec<(String, String)> {
        let mut nodes = base();
        match self {
            Self::One(ActionKind::Delete, _) => {
                nodes.extend((1..=3).flat_map(|number| job(number, "Failed")));
                nodes.extend(job(4, "Completed"));
            }
            Self::One(ActionKind::Purge, _) => nodes.extend((1..=3).flat_map(|number| job(number, "Completed"))),
            Self::One(ActionKind::Release, _) => nodes.extend(job(1, "Held")),
            Self::One(..) => nodes.extend(job(1, "Failed")),
            Self::List => nodes.extend((1..=LISTED).flat_map(|number| job(number, "Failed"))),
        }
        let batch = match self {
            Self::One(ActionKind::Delete, _) => "Failed",
            Self::One(ActionKind::Purge, _) => "Completed",
            _ => "Reporting",
        };
        let status = nodes.iter_mut().find(|(path, _)| path == "/batches/bid0000000000/status").unwrap();
        status.1 = status.1.replace("Reporting", batch);
        nodes
    }

    async fn world(self) -> World {
        let world = World::new(&borrowed(&self.nodes())).await;
        if let Self::One(ActionKind::BreakLock, path) = self {
            world.raw.create(path.strip_prefix("lock:").unwrap(), b"", &EPHEMERAL).await.unwrap();
        }
        world
    }

    /// Requests it, and waits until it is over.
    async fn action(self, served: &Served) -> Came {
        match self {
            Self::One(action, on) => {
                let action = with(
                    action,
                    on.parse().unwrap(),
                    ActionParameters { force: action == ActionKind::BreakLock, ..ActionParameters::default() },
                );
                Came::One(served.action(action, Role::Admin, "tried by hand").await.map(drop))
            }
            Self::List => {
                let each = BulkAction::new(ActionKind::Resume);
                let items = (1..=LISTED).map(|number| (Target::Job(JobId::new(number)), None)).collect();
                let actions = &served.actions;
                let frozen = actions.freeze(each, ListOf::Jobs, items, &actor(Role::Admin), now()).unwrap();
                let reason = Reason::new("tried by hand").unwrap();
                let work = actions.execute_frozen(frozen.id, actor(Role::Admin), reason, now()).unwrap();
                work.over().await.unwrap();
                Came::List(work.undone().into_iter().collect())
            }
        }
    }
}

/// What one order without a cut makes of the tree, and how many requests it takes.
async fn uncut(case: Case) -> (BTreeMap<String, String>, usize) {
    let world = case.world().await;
    let before = world.tree().await;
    let wire = Wire::start(server().await.port()).await;
    let served = Served::on(queue_over(&world, &wire.connect_string(), LIMIT).await);
    wire.arm(None);
    let came = case.action(&served).await;
    assert!(came.refusals().is_empty(), "{case:?}: {came:?}");
    let after = data(&world.tree().await);
    assert_ne!(after, data(&before), "{case:?}");
    (after, wire.requests())
}

async fn queue_over(world: &World, address: &str, limit: Duration) -> Queue {
    let client = connect(&format!("{address}{}", world.chroot)).await;
    Queue::new(client).with_jobs_per_transaction(JOBS_PER_TRANSACTION).with_time_limit(limit)
}

impl Came {
    fn refusals(&self) -> Vec<&Refusal> {
        match self {
            Self::One(came) => came.as_ref().err().into_iter().collect(),
            Self::List(undone) => undone.values().collect(),
        }
    }
}

/// One action, and one cut.
struct Trial {
    case: Case,
    point: Point,
    cut: Cut,
}

impl Trial {
    /// Requests it over a connection that is cut there, and again over one that is not. Gives whether it was cut at all,
    /// and whether the outcome was said not to be known.
    async fn run(&self, expected: &BTreeMap<String, String>) -> (bool, bool) {
        let Self { case, point, cut } = *self;
        let what = format!("{case:?} {point:?} {cut:?}");
        let world = case.world().await;
        let before = world.tree().await;
        let wire = Wire::start(server().await.port()).await;
        // Nobody answers during a long cut, and that is not waited for.
        let limit = if cut == Cut::Long { Duration::from_millis(400) } else { LIMIT };
        let queue = queue_over(&world, &wire.connect_string(), limit).await;
        let client = queue.client().clone();
        let served = Served::on(queue);
        wire.arm(Some((point, cut)));
        let came = case.action(&served).await;
        let was_cut = wire.was_cut();
        let after = world.tree().await;
        match &came {
            Came::One(came) => told(&what, came, &served, [&before, &after], expected),
            Came::List(undone) => told_of_each(&what, undone, &served, &before, &after),
        }
        let is_unknown = came.refusals().iter().any(|refusal| matches!(refusal, Refusal::Unknown(_)));

        wire.restore();
        // As a server does, over the same connection when it is back; or as the command line does, over one of its own:
        // first beside whatever the other client may still have to say, when each may stand in the other's way.
        let again = match cut {
            Cut::Short => served,
            Cut::Long => {
                let another = Served::on(queue_over(&world, &server().await.connect_string(), LIMIT).await);
                case.action(&another).await;
                another
            }
        };
        settled(&client).await;
        for refusal in case.action(&again).await.refusals() {
            // What was done already is refused, and nothing else is.
            let is_done = matches!(refusal, Refusal::Conflict { .. } | Refusal::Missing(_));
            assert!(is_done, "{what}, again: {refusal:?}");
        }
        assert_eq!(&data(&world.tree().await), expected, "{what}: {came:?}");
        (was_cut, is_unknown)
    }
}

/// Waits until everything was sent that a client still had to send.
async fn settled(client: &Client) {
    eventually(LIMIT, "the connection is back", async || client.sync("/").await.is_ok()).await;
}

/// One action: it was done, or nothing was, or that is said not to be known; and the audit trail says so.
fn told(
    what: &str,
    came: &Result<(), Refusal>,
    served: &Served,
    [before, after]: [&Tree; 2],
    expected: &BTreeMap<String, String>,
) {
    match came {
        Ok(()) => assert_eq!(&data(after), expected, "{what}"),
        Err(Refusal::Unknown(why)) => assert!(!why.contains("nothing was done"), "{what}: {why}"),
        Err(refusal) => {
            assert_eq!(after, before, "{what}: {refusal:?}");
            assert!(refusal.to_string().contains("nothing was done"), "{what}: {refusal}");
        }
    }
    let label = came.as_ref().map_or_else(Refusal::label, |()| "done");
    let records = served.records();
    match &records[..] {
        [] => assert!(after == before && came.is_err(), "{what}: {came:?}, and no line of it"),
        [Record::Requested { id, operations, .. }, begun @ .., Record::Outcome { id: same, outcome, detail, .. }] => {
            assert_eq!((id, outcome.as_str()), (same, label), "{what}");
            let is_named = begun.iter().all(|record| matches!(record, Record::Begun { id: same, .. } if same == id));
            assert!(is_named, "{what}: {begun:?}");
            assert!(!operations.is_empty(), "{what}");
            if let Err(refusal) = came {
                assert_eq!(detail.as_deref(), Some(refusal.to_string().as_str()), "{what}");
            }
        }
        records => panic!("{what}: {came:?}: {records:?}"),
    }
}

/// A list: each of its jobs was done, or nothing was done to it, or that is said not to be known; and so is a line each.
fn told_of_each(what: &str, undone: &BTreeMap<String, Refusal>, served: &Served, before: &Tree, after: &Tree) {
    let records = served.records();
    let Record::Requested { id, targets, .. } = &records[0] else { panic!("{what}: {records:?}") };
    assert_eq!(targets.len(), LISTED as usize, "{what}");
    assert!(records.iter().all(|record| record.id() == *id), "{what}: {records:?}");
    assert_eq!(records.len(), 2 + targets.len(), "{what}: {records:?}");
    for target in targets {
        let lines: Vec<_> = records.iter().filter_map(|record| outcome_of(record, Some(target))).collect();
        let label = undone.get(target).map_or("done", Refusal::label);
        assert_eq!(lines, [label], "{what}: {target}");
        let of_job = |tree: &Tree| -> Tree {
            tree.iter()
                .filter(|(path, _)| path.contains(&**target))
                .map(|(path, node)| (path.clone(), node.clone()))
                .collect()
        };
        match undone.get(target) {
            None => assert!(of_job(after).contains_key(&format!("/jobs/states/downloading/05-{target}")), "{what}"),
            Some(Refusal::Unknown(_)) => {}
            Some(refusal) => assert_eq!(of_job(after), of_job(before), "{what}: {refusal}"),
        }
    }
    let whole = match (undone.len(), undone.values().any(|refusal| matches!(refusal, Refusal::Unknown(_)))) {
        (0, _) => "done",
        (_, true) => "unknown",
        (not_done, false) if not_done == targets.len() => "conflict",
        (_, false) => "in_part",
    };
    assert_eq!(outcome_of(records.last().unwrap(), None), Some(whole), "{what}");
}

/// The outcome of a target, or of all of them.
fn outcome_of<'a>(record: &'a Record, of: Option<&str>) -> Option<&'a str> {
    match record {
        Record::Outcome { target, outcome, .. } if target.as_deref() == of => Some(outcome),
        _ => None,
    }
}

/// Cuts at every point of an action, and a bit further.
async fn cut_everywhere(case: Case) {
    let (expected, requests) = uncut(case).await;
    assert!(requests >= 2, "{case:?}");
    let places = (1..=requests).flat_map(|at| [Point::Unsent(at), Point::Unanswered(at), Point::Answered(at)]);
    // Past the last there is nothing to cut.
    let places: Vec<_> = places.chain([Point::Unsent(requests + 1)]).collect();
    let trials = places.iter().flat_map(|point| [Cut::Short, Cut::Long].map(|cut| Trial { case, point: *point, cut }));
    let trials: Vec<_> = trials.collect();
    let outcomes = futures::stream::iter(&trials).map(|trial| trial.run(&expected));
    let outcomes: Vec<_> = outcomes.buffered(AT_ONCE).collect().await;
    for (trial, (was_cut, _)) in trials.iter().zip(&outcomes) {
        // Whoever waits for a short time only may give up before it comes to that, on a machine that has much to do.
        if trial.cut == Cut::Short {
            assert_eq!(*was_cut, trial.point != Point::Unsent(requests + 1), "{case:?} {:?}", trial.point);
        }
    }
    // A commit whose answer nobody gave is one of which nothing can be known.
    let unknown = trials.iter().zip(&outcomes).any(|(trial, (_, is_unknown))| trial.cut == Cut::Long && *is_unknown);
    assert!(unknown, "{case:?}: no outcome was said not to be known");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_resumed_once_wherever_the_connection_is_cut() {
    cut_everywhere(Case::One(ActionKind::Resume, "jid0000000001")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_released_and_another_purged_once_wherever_the_connection_is_cut() {
    cut_everywhere(Case::One(ActionKind::Release, "jid0000000001")).await;
    cut_everywhere(Case::One(ActionKind::Purge, "jid0000000001")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_deleted_with_its_jobs_wherever_the_connection_is_cut() {
    cut_everywhere(Case::One(ActionKind::Delete, "bid0000000000")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_purged_with_its_jobs_wherever_the_connection_is_cut() {
    cut_everywhere(Case::One(ActionKind::Purge, "bid0000000000")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_broken_once_wherever_the_connection_is_cut() {
    cut_everywhere(Case::One(ActionKind::BreakLock, "lock:/jobs/jid0000000001/lock")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_paused_once_wherever_the_connection_is_cut() {
    cut_everywhere(Case::One(ActionKind::Pause, "queue:ingest")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_job_of_a_list_is_resumed_once_wherever_the_connection_is_cut() {
    cut_everywhere(Case::List).await;
}

/// Resumes the jobs of a list over a connection that is cut before the answer to the last commit, and comes back after so
/// long. Gives what came of it, and how many were resumed by the tree itself.
async fn cut_list(comes_back_after: Option<Duration>) -> (Reached, Outcome, u64) {
    let (_, requests) = uncut(Case::List).await;
    let world = Case::List.world().await;
    let wire = Wire::start(server().await.port()).await;
    let limit = Duration::from_secs(1);
    let served = Served::on(queue_over(&world, &wire.connect_string(), limit).await);
    wire.arm(Some((Point::Unanswered(requests), Cut::Long)));
    let each = BulkAction::new(ActionKind::Resume);
    let items = (1..=LISTED).map(|number| (Target::Job(JobId::new(number)), None)).collect();
    let frozen = served.actions.freeze(each, ListOf::Jobs, items, &actor(Role::Admin), now()).unwrap();
    let reason = Reason::new("tried by hand").unwrap();
    let work = served.actions.execute_frozen(frozen.id, actor(Role::Admin), reason, now()).unwrap();
    let come_back = async {
        eventually(LIMIT, "the connection is cut", async || wire.was_cut()).await;
        if let Some(after) = comes_back_after {
            tokio::time::sleep(after).await;
            wire.restore();
        }
    };
    let (outcome, ()) = tokio::join!(work.over(), come_back);
    let tree = world.tree().await;
    let resumed = tree.keys().filter(|path| path.starts_with("/jobs/states/downloading/")).count();
    (work.reached(), outcome.unwrap(), resumed as u64)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_known_counts_as_neither_done_nor_not_done() {
    let (reached, outcome, resumed) = cut_list(None).await;
    let Reached { done, failed, unknown, of } = reached;
    assert!(unknown > 0 && done + failed + unknown == of && of == u64::from(LISTED), "{reached:?}");
    assert!(done <= resumed && failed <= of - resumed, "{reached:?}, and {resumed} were resumed");
    assert_eq!(outcome.label(), "unknown");
    let told = format!("{done} done, {failed} not done, {unknown} unknown, 0 not begun");
    assert_eq!(outcome.detail.as_deref(), Some(told.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_of_a_list_is_learned_when_the_connection_comes_back() {
    // Later than a commit and the first look after it give up.
    let (reached, _, resumed) = cut_list(Some(Duration::from_millis(1_500))).await;
    let of = u64::from(LISTED);
    assert!(resumed > 0, "what was committed and not answered is done");
    assert_eq!(reached, Reached { done: resumed, failed: of - resumed, unknown: 0, of });
}

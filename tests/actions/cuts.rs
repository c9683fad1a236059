//! A connection that is cut at every point of an action: the outcome is known or reported as unknown, the audit trail
//! agrees, and a new request leads to the same result as an action without a cut.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use futures::StreamExt as _;
use queuekeeper::actions::audit::Record;
use queuekeeper::actions::{
    ActionKind, ActionOutcome, ActionParameters, BulkAction, ListOf, Progress, Reason, Refusal, Role, Target,
};
use queuekeeper_queue::Queue;
use queuekeeper_queue::id::JobId;
use zookeeper_client::Client;

use super::served::{Served, actor, with};
use queuekeeper_testkit::queue::{EPHEMERAL, World, base, borrowed, data, job, now};
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::tree::Tree;
use queuekeeper_testkit::wait::eventually;
use queuekeeper_testkit::wire::{Cut, Point, Wire};

const LIMIT: Duration = Duration::from_mins(1);

/// How many cuts are tried concurrently.
const AT_ONCE: usize = 48;

/// How many jobs one transaction has, so that a batch needs several.
const JOBS_PER_TRANSACTION: usize = 2;

/// The number of jobs of a list.
const LISTED: u32 = 4;

/// The action of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CutAction {
    /// One action, on this target.
    One(ActionKind, &'static str),
    /// Resume on each job of a list.
    List,
}

/// The outcome of an action.
#[derive(Debug)]
enum ActionResult {
    One(Result<(), Refusal>),
    /// The items that were not done, with the reasons.
    List(BTreeMap<String, Refusal>),
}

impl CutAction {
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

    /// Executes it, and waits until it has finished.
    async fn action(self, served: &Served) -> ActionResult {
        match self {
            Self::One(action, on) => {
                let action = with(
                    action,
                    on.parse().unwrap(),
                    ActionParameters { force: action == ActionKind::BreakLock, ..ActionParameters::default() },
                );
                ActionResult::One(served.action(action, Role::Admin, "tried by hand").await.map(drop))
            }
            Self::List => {
                let each = BulkAction::new(ActionKind::Resume);
                let items = (1..=LISTED).map(|number| (Target::Job(JobId::new(number)), None)).collect();
                let actions = &served.actions;
                let frozen = actions.freeze(each, ListOf::Jobs, items, &actor(Role::Admin), now()).unwrap();
                let reason = Reason::new("tried by hand").unwrap();
                let work = actions.execute_frozen(frozen.id, actor(Role::Admin), reason, now()).unwrap();
                work.finished().await.unwrap();
                ActionResult::List(work.not_done().into_iter().collect())
            }
        }
    }
}

/// The tree after the action without a cut, and the number of its requests.
async fn uncut(case: CutAction) -> (BTreeMap<String, String>, usize) {
    let world = case.world().await;
    let before = world.tree().await;
    let wire = Wire::start(shared().await.port()).await;
    let served = Served::on(queue_over(&world, &wire.connect_string(), LIMIT).await);
    wire.arm(None);
    let result = case.action(&served).await;
    assert!(result.refusals().is_empty(), "{case:?}: {result:?}");
    let after = data(&world.tree().await);
    assert_ne!(after, data(&before), "{case:?}");
    (after, wire.requests())
}

async fn queue_over(world: &World, address: &str, limit: Duration) -> Queue {
    let client = connect(&format!("{address}{}", world.chroot)).await;
    Queue::new(client).with_jobs_per_transaction(JOBS_PER_TRANSACTION).with_time_limit(limit)
}

impl ActionResult {
    fn refusals(&self) -> Vec<&Refusal> {
        match self {
            Self::One(result) => result.as_ref().err().into_iter().collect(),
            Self::List(not_done) => not_done.values().collect(),
        }
    }
}

/// One action with one cut.
struct CutTest {
    case: CutAction,
    point: Point,
    cut: Cut,
    /// How long the response to a request is awaited.
    limit: Duration,
}

impl CutTest {
    /// Executes it over a connection that is cut at the point, and again over one that is not. Returns whether it was
    /// cut, and whether the outcome was reported as unknown.
    async fn run(&self, expected: &BTreeMap<String, String>) -> (bool, bool) {
        let Self { case, point, cut, limit } = *self;
        let what = format!("{case:?} {point:?} {cut:?}");
        let world = case.world().await;
        let before = world.tree().await;
        let wire = Wire::start(shared().await.port()).await;
        let queue = queue_over(&world, &wire.connect_string(), limit).await;
        let client = queue.client().clone();
        let served = Served::on(queue);
        wire.arm(Some((point, cut)));
        let result = case.action(&served).await;
        let was_cut = wire.was_cut();
        let after = world.tree().await;
        match &result {
            ActionResult::One(result) => check(&what, result, &served, [&before, &after], expected),
            ActionResult::List(not_done) => check_each(&what, not_done, &served, &before, &after),
        }
        let is_unknown = result.refusals().iter().any(|refusal| matches!(refusal, Refusal::Unknown(_)));

        wire.restore();
        // Like a server, over the same connection when it is back; or like the command line, over a new one: first
        // while the other client may still send requests, so that the two may conflict.
        let again = match cut {
            Cut::Short => served,
            Cut::Long => {
                let another = Served::on(queue_over(&world, &shared().await.connect_string(), LIMIT).await);
                case.action(&another).await;
                another
            }
        };
        settled(&client).await;
        for refusal in case.action(&again).await.refusals() {
            // What was done already is refused, and nothing else.
            let is_done = matches!(refusal, Refusal::Conflict { .. } | Refusal::Missing(_));
            assert!(is_done, "{what}, again: {refusal:?}");
        }
        assert_eq!(&data(&world.tree().await), expected, "{what}: {result:?}");
        (was_cut, is_unknown)
    }
}

/// Waits until a client has sent all its requests.
async fn settled(client: &Client) {
    eventually(LIMIT, "the connection is back", async || client.sync("/").await.is_ok()).await;
}

/// One action: it was done, or nothing was, or the outcome is unknown; and the audit trail agrees.
fn check(
    what: &str,
    result: &Result<(), Refusal>,
    served: &Served,
    [before, after]: [&Tree; 2],
    expected: &BTreeMap<String, String>,
) {
    match result {
        Ok(()) => assert_eq!(&data(after), expected, "{what}"),
        Err(Refusal::Unknown(why)) => assert!(!why.contains("nothing was done"), "{what}: {why}"),
        Err(refusal) => {
            assert_eq!(after, before, "{what}: {refusal:?}");
            assert!(refusal.to_string().contains("nothing was done"), "{what}: {refusal}");
        }
    }
    let label = result.as_ref().map_or_else(Refusal::label, |()| "done");
    let records = served.records();
    match &records[..] {
        [] => assert!(after == before && result.is_err(), "{what}: {result:?}, and no line of it"),
        [Record::Requested { id, operations, .. }, started @ .., Record::Outcome { id: same, outcome, detail, .. }] => {
            assert_eq!((id, outcome.as_str()), (same, label), "{what}");
            let is_named =
                started.iter().all(|record| matches!(record, Record::Started { id: same, .. } if same == id));
            assert!(is_named, "{what}: {started:?}");
            assert!(!operations.is_empty(), "{what}");
            if let Err(refusal) = result {
                assert_eq!(detail.as_deref(), Some(refusal.to_string().as_str()), "{what}");
            }
        }
        records => panic!("{what}: {result:?}: {records:?}"),
    }
}

/// A list: each of its jobs was changed, or unchanged, or its outcome is unknown; and each has a record.
fn check_each(what: &str, not_done: &BTreeMap<String, Refusal>, served: &Served, before: &Tree, after: &Tree) {
    let records = served.records();
    let Record::Requested { id, targets, .. } = &records[0] else { panic!("{what}: {records:?}") };
    assert_eq!(targets.len(), LISTED as usize, "{what}");
    assert!(records.iter().all(|record| record.id() == *id), "{what}: {records:?}");
    assert_eq!(records.len(), 2 + targets.len(), "{what}: {records:?}");
    for target in targets {
        let lines: Vec<_> = records.iter().filter_map(|record| outcome_of(record, Some(target))).collect();
        let label = not_done.get(target).map_or("done", Refusal::label);
        assert_eq!(lines, [label], "{what}: {target}");
        let of_job = |tree: &Tree| -> Tree {
            tree.iter()
                .filter(|(path, _)| path.contains(&**target))
                .map(|(path, node)| (path.clone(), node.clone()))
                .collect()
        };
        match not_done.get(target) {
            None => assert!(of_job(after).contains_key(&format!("/jobs/states/downloading/05-{target}")), "{what}"),
            Some(Refusal::Unknown(_)) => {}
            Some(refusal) => assert_eq!(of_job(after), of_job(before), "{what}: {refusal}"),
        }
    }
    let whole = match (not_done.len(), not_done.values().any(|refusal| matches!(refusal, Refusal::Unknown(_)))) {
        (0, _) => "done",
        (_, true) => "unknown",
        (not_done, false) if not_done == targets.len() => "conflict",
        (_, false) => "in_part",
    };
    assert_eq!(outcome_of(records.last().unwrap(), None), Some(whole), "{what}");
}

/// The outcome of a target, or of the whole action.
fn outcome_of<'a>(record: &'a Record, of: Option<&str>) -> Option<&'a str> {
    match record {
        Record::Outcome { target, outcome, .. } if target.as_deref() == of => Some(outcome),
        _ => None,
    }
}

/// For each test, whether the connection was cut, and whether the outcome was reported as unknown.
async fn run_all(tests: &[CutTest], expected: &BTreeMap<String, String>) -> Vec<(bool, bool)> {
    futures::stream::iter(tests).map(|test| test.run(expected)).buffered(AT_ONCE).collect().await
}

/// Cuts at every point of an action, and one further.
async fn cut_everywhere(case: CutAction) {
    let (expected, requests) = uncut(case).await;
    assert!(requests >= 2, "{case:?}");
    let places = (1..=requests).flat_map(|at| [Point::Unsent(at), Point::Unanswered(at), Point::Answered(at)]);
    // After the last one there is nothing to cut.
    let places: Vec<_> = places.chain([Point::Unsent(requests + 1)]).collect();
    let trials =
        |cut, limit| -> Vec<_> { places.iter().map(|point| CutTest { case, point: *point, cut, limit }).collect() };
    let short = trials(Cut::Short, LIMIT);
    for (test, (was_cut, _)) in short.iter().zip(run_all(&short, &expected).await) {
        assert_eq!(was_cut, test.point != Point::Unsent(requests + 1), "{case:?} {:?}", test.point);
    }
    // During a long cut there is no response, which is not awaited. The outcome of a commit without a response is
    // unknown. On a busy machine, all clients may give up before their cuts: then they are to be more patient.
    let mut limit = Duration::from_millis(400);
    while !run_all(&trials(Cut::Long, limit), &expected).await.iter().any(|(_, is_unknown)| *is_unknown) {
        limit *= 2;
        assert!(limit < Duration::from_secs(10), "{case:?}: no outcome was said not to be known");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_resumed_once_wherever_the_connection_is_cut() {
    cut_everywhere(CutAction::One(ActionKind::Resume, "jid0000000001")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_released_and_another_purged_once_wherever_the_connection_is_cut() {
    cut_everywhere(CutAction::One(ActionKind::Release, "jid0000000001")).await;
    cut_everywhere(CutAction::One(ActionKind::Purge, "jid0000000001")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_deleted_with_its_jobs_wherever_the_connection_is_cut() {
    cut_everywhere(CutAction::One(ActionKind::Delete, "bid0000000000")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_purged_with_its_jobs_wherever_the_connection_is_cut() {
    cut_everywhere(CutAction::One(ActionKind::Purge, "bid0000000000")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_broken_once_wherever_the_connection_is_cut() {
    cut_everywhere(CutAction::One(ActionKind::BreakLock, "lock:/jobs/jid0000000001/lock")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_paused_once_wherever_the_connection_is_cut() {
    cut_everywhere(CutAction::One(ActionKind::Pause, "queue:ingest")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_job_of_a_list_is_resumed_once_wherever_the_connection_is_cut() {
    cut_everywhere(CutAction::List).await;
}

/// The outcome of a list over a connection that is cut, and how many jobs are resumed in the tree.
type CutList = (Progress, ActionOutcome, u64);

/// Resumes the jobs of a list over a connection that is cut before the response to the last commit, and comes back, if
/// at all, later than the time limit of a commit and of the first lookup. `None` where it was not cut: a busy machine
/// took longer than the limit for an earlier request.
async fn cut_list(limit: Duration, comes_back: bool) -> Option<CutList> {
    let (_, requests) = uncut(CutAction::List).await;
    let world = CutAction::List.world().await;
    let wire = Wire::start(shared().await.port()).await;
    let served = Served::on(queue_over(&world, &wire.connect_string(), limit).await);
    wire.arm(Some((Point::Unanswered(requests), Cut::Long)));
    let each = BulkAction::new(ActionKind::Resume);
    let items = (1..=LISTED).map(|number| (Target::Job(JobId::new(number)), None)).collect();
    let frozen = served.actions.freeze(each, ListOf::Jobs, items, &actor(Role::Admin), now()).unwrap();
    let reason = Reason::new("tried by hand").unwrap();
    let work = served.actions.execute_frozen(frozen.id, actor(Role::Admin), reason, now()).unwrap();
    let come_back = async {
        while !(comes_back && wire.was_cut()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(limit * 3 / 2).await;
        wire.restore();
        pending::<()>().await;
    };
    let outcome = tokio::select! {
        outcome = work.finished() => outcome.unwrap(),
        () = come_back => unreachable!("it waits for ever"),
    };
    let tree = world.tree().await;
    let resumed = tree.keys().filter(|path| path.starts_with("/jobs/states/downloading/")).count();
    wire.was_cut().then(|| (work.progress(), outcome, resumed as u64))
}

/// The same with a limit of a second or, where what is to be seen is not, with longer and longer ones.
async fn patiently_cut_list(comes_back: bool, is_seen: impl Fn(&Progress) -> bool) -> CutList {
    for seconds in [1, 2, 4, 8] {
        let cut = cut_list(Duration::from_secs(seconds), comes_back).await;
        if let Some(cut) = cut.filter(|(reached, ..)| is_seen(reached)) {
            return cut;
        }
    }
    cut_list(Duration::from_secs(16), comes_back).await.expect("the connection is cut")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_counts_neither_as_done_nor_as_not_done() {
    let (reached, outcome, resumed) = patiently_cut_list(false, |reached| reached.unknown > 0).await;
    let Progress { done, failed, unknown, of } = reached;
    assert!(unknown > 0 && done + failed + unknown == of && of == u64::from(LISTED), "{reached:?}");
    assert!(done <= resumed && failed <= of - resumed, "{reached:?}, and {resumed} were resumed");
    assert_eq!(outcome.label(), "unknown");
    let detail = format!("{done} done, {failed} not done, {unknown} unknown, 0 not started");
    assert_eq!(outcome.detail.as_deref(), Some(detail.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outcomes_of_a_list_are_looked_up_when_the_connection_comes_back() {
    let (reached, _, resumed) = patiently_cut_list(true, |reached| reached.unknown == 0).await;
    let of = u64::from(LISTED);
    assert!(resumed > 0, "what was committed and not answered is done");
    assert_eq!(reached, Progress { done: resumed, failed: of - resumed, unknown: 0, of });
}

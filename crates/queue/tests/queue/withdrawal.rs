//! Withdrawing a deposit: all of its jobs or none, in one transaction or in many, interrupted after each of them.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::record::{ExpansionNote, WithdrawalNote, WithdrawalPhase, WithdrawnNote};
use queuekeeper_queue::state::{BatchState, JobOutcome, JobState, State};
use queuekeeper_queue::{Due, ItemChange, JobChange, NewJob, NextRows, Queue, WithdrawalOutcome, WithdrawalProgress};

use queuekeeper_testkit::queue::{World, data, now};

/// Who withdraws, and why.
pub(super) const BY: WithdrawnNote<'static> = WithdrawnNote { who: "alice", why: "the wrong files" };

/// How many jobs a transaction is about here.
pub(super) const PER_TRANSACTION: usize = 2;

/// Where a batch is that a test withdraws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// In Pending, without jobs.
    Submitted,
    /// In Held, likewise.
    Held,
    /// In Processing; its jobs are still being created, and no daemon does that now.
    Expanding,
    /// In Reporting, with all its jobs.
    Expanded,
}

/// A queue with a batch that has so many jobs.
pub(super) async fn world(stage: Stage, jobs: usize, per_transaction: usize) -> (World, BatchId) {
    let world = World::new(&[]).await;
    let batch = world.queue.create_batch(br#"{"batchID":"u","profile":"demo"}"#, now()).await.unwrap();
    match stage {
        Stage::Submitted => {}
        Stage::Held => drop(world.queue.change_batch(batch, &ItemChange::to(BatchState::Held), now()).await.unwrap()),
        Stage::Expanding | Stage::Expanded => {
            let mut poll = world.queue.poll_batches(Due::Jobs).await.unwrap().expanded();
            let locked = poll.next(now()).await.unwrap().unwrap();
            let new = vec![NewJob::new(r#"{"profile":"demo"}"#); jobs];
            let (rows, last) = (&new[..jobs.saturating_sub(1)], NewJob::new("{}"));
            let has_end = stage == Stage::Expanded;
            if jobs > 0 {
                let rows = NextRows { digest: "d", all: 6, jobs: rows, last: &last, has_end, most_children: None };
                let expansion = locked.new_expansion().unwrap();
                let left = world.queue.expand(&locked, &expansion, rows, now()).await.unwrap();
                assert_eq!(left.is_none(), has_end);
            }
            if has_end {
                let change = ItemChange::to(BatchState::Reporting);
                world.queue.finish_batch(&locked, &change, now()).await.unwrap();
            } else {
                world.queue.unlock_batch(&locked).await.unwrap();
            }
        }
    }
    let queue = world.queue.clone().with_jobs_per_transaction(per_transaction);
    (World { queue, ..world }, batch)
}

/// Stops after so many transactions. What is reported of a phase grows, and never beyond all jobs.
fn stop_after(transactions: usize) -> impl FnMut(WithdrawalProgress) -> ControlFlow<()> + Send {
    let (mut done, mut last) = (0, None);
    move |WithdrawalProgress { phase, jobs, of_jobs }| {
        let before = last.replace((phase, jobs)).filter(|(of, _)| *of == phase);
        assert!(before.is_none_or(|(_, before)| before <= jobs) && jobs <= of_jobs, "{jobs} of {of_jobs} in {phase:?}");
        done += 1;
        if done == transactions { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Withdraws the batch, and stops after so many transactions.
pub(super) async fn withdraw(queue: &Queue, batch: BatchId, transactions: usize) -> WithdrawalOutcome {
    queue.withdraw(batch, BY, now(), stop_after(transactions)).await.unwrap()
}

/// Goes on as a daemon of another process does; `None` where there is nothing to take up.
pub(super) async fn take_up(world: &World, transactions: usize) -> Option<WithdrawalOutcome> {
    let queue = world.another().await.with_jobs_per_transaction(PER_TRANSACTION);
    let (locked, _) = queue.acquire_batch(Due::Withdrawal, now()).await.unwrap();
    Some(queue.finish_withdrawal(&locked?, now(), stop_after(transactions)).await.unwrap())
}

/// The queue without times, versions and messages: what exists, and the states.
async fn shape(world: &World) -> BTreeMap<String, String> {
    let state = |(path, (data, _)): (&String, &(Vec<u8>, _))| {
        let status: serde_json::Value = serde_json::from_slice(data).unwrap_or_default();
        let is_status = path.ends_with("/status");
        let text = if is_status { status["status"].to_string() } else { String::from_utf8_lossy(data).into_owned() };
        (path.clone(), text)
    };
    // A folder of a state is made with the first entry in it, and stays.
    let is_folder = |path: &str| path.starts_with("/jobs/states/") && !path.contains("-jid");
    world.tree().await.iter().filter(|(path, _)| !is_folder(path)).map(state).collect()
}

/// The states of the batch's jobs, having checked that each has one reference and one entry of its state.
pub(super) async fn states(world: &World, batch: BatchId) -> BTreeMap<JobId, JobState> {
    let report = world.queue.batch_report(batch).await.unwrap();
    let mut states = BTreeMap::new();
    let tree = world.tree().await;
    for outcome in JobOutcome::ALL {
        for id in report.of(outcome) {
            let state = world.queue.load_job(*id).await.unwrap().state().unwrap();
            assert_eq!((state.outcome(), states.insert(*id, state)), (outcome, None), "{id} is {state}");
            let entries: Vec<_> = tree.keys().filter(|path| path.ends_with(&format!("-{id}"))).collect();
            let is_last = entries.is_empty() && state == JobState::Pending;
            assert!(is_last || entries == [&format!("/jobs/states/{}/05-{id}", state.label())], "{id}: {entries:?}");
        }
    }
    assert_eq!(states.len(), tree.keys().filter(|path| path.ends_with("/bid")).count());
    states
}

pub(super) async fn own(world: &World, folder: &str) -> Vec<String> {
    world.raw.list_children(&format!("/queuekeeper/{folder}")).await.unwrap_or_default()
}

/// All of it is withdrawn, and nothing of the withdrawal is left.
pub(super) async fn check_withdrawn(world: &World, batch: BatchId, jobs: usize) {
    let states = states(world, batch).await;
    assert_eq!(states.len(), jobs);
    assert!(states.values().all(|state| *state == JobState::Deleted), "{states:?}");
    let status = world.json(&format!("/batches/{batch}/status")).await;
    let message = "Withdrawn by alice with queuekeeper: the wrong files";
    assert_eq!((&status["status"], &status["message"]), (&"Deleted".into(), &message.into()));
    assert!(world.exists(&format!("/batches/{batch}/states")).await);
    for gone in ["lock", "states/batch-processing"] {
        assert!(!world.exists(&format!("/batches/{batch}/{gone}")).await, "{gone}");
    }
    for folder in ["withdrawals", "expansions", "held"] {
        assert_eq!(own(world, folder).await, [""; 0], "{folder}");
    }
    // No daemon finds anything to do with it, and it can be cleaned up.
    for due in [Due::Jobs, Due::RestOfJobs, Due::Report, Due::UpdatedReport, Due::Withdrawal] {
        let (taken, poll) = world.queue.acquire_batch(due, now()).await.unwrap();
        assert!(taken.is_none() && poll.skipped.is_empty(), "{due:?}");
    }
    world.queue.plan_purge(batch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_deposit_is_withdrawn_at_once_wherever_it_is_before_its_jobs_have_left_pending() {
    for (stage, jobs) in [
        (Stage::Submitted, 0),
        (Stage::Held, 0),
        (Stage::Expanding, 0),
        (Stage::Expanding, 4),
        (Stage::Expanded, 1),
        (Stage::Expanded, 4),
    ] {
        let (world, batch) = world(stage, jobs, 4).await;
        if jobs == 4 {
            // One is held by an operator.
            let held = JobChange::to(JobState::Held).with_message("By bob with queuekeeper: wait");
            world.queue.change_job(JobId::new(2), &held, now()).await.unwrap();
        }
        let before = world.tree().await;
        let plan = world.queue.plan_withdrawal(batch).await.unwrap();
        assert_eq!((plan.jobs.len(), plan.hindrance), (jobs, None), "{stage:?}");
        assert_eq!(world.tree().await, before);
        let outcome = world.queue.withdraw(batch, BY, now(), |progress| panic!("{progress:?}")).await;
        assert_eq!(outcome, Ok(WithdrawalOutcome::Withdrawn { jobs }), "{stage:?}");
        check_withdrawn(&world, batch, jobs).await;
        let before = world.tree().await;
        assert_eq!(withdraw(&world.queue, batch, 0).await, WithdrawalOutcome::Withdrawn { jobs });
        assert_eq!(world.tree().await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_with_a_job_that_has_left_pending_is_not_touched() {
    for (state, jobs) in JobState::ALL.iter().flat_map(|state| [(*state, 4), (*state, 7)]) {
        if matches!(state, JobState::Pending | JobState::Held | JobState::Deleted) {
            continue;
        }
        let (world, batch) = world(Stage::Expanded, jobs, 4).await;
        let id = JobId::new(3);
        if state == JobState::Failed {
            world.queue.change_job(id, &JobChange::failure("no"), now()).await.unwrap();
        }
        while world.queue.load_job(id).await.unwrap().state() != Some(state) {
            world.queue.change_job(id, &JobChange::success(), now()).await.unwrap();
        }
        let before = data(&world.tree().await);
        let why = format!("its job {id} is in {state}; it can no longer be withdrawn");
        assert_eq!(withdraw(&world.queue, batch, 0).await, WithdrawalOutcome::NotWithdrawn(why.clone()));
        assert_eq!(world.queue.plan_withdrawal(batch).await.unwrap().hindrance, Some(why));
        assert_eq!(data(&world.tree().await), before);
        assert_eq!(own(&world, "held").await, [""; 0]);
    }
    // One that was reported, and one that a daemon is working on.
    let (world, batch) = world(Stage::Expanded, 1, 4).await;
    let (job, _) = world.queue.acquire_job(JobState::Pending, now()).await.unwrap();
    let outcome = withdraw(&world.queue, batch, 0).await;
    assert!(matches!(&outcome, WithdrawalOutcome::NotWithdrawn(why) if why.contains("at work")), "{outcome:?}");
    world.queue.finish_job(&job.unwrap(), &JobChange::failure("no"), now()).await.unwrap();
    let reporter = world.another().await;
    let locked = reporter.acquire_batch(Due::Report, now()).await.unwrap().0.unwrap();
    let error = world.queue.withdraw(batch, BY, now(), |_| ControlFlow::Continue(())).await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("/batches/{batch}/lock is held by session")), "{error}");
    assert_eq!(locked.state, BatchState::Reporting);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_deposit_that_is_interrupted_after_any_transaction_is_withdrawn_whole_when_taken_up() {
    for (stage, jobs) in [(Stage::Expanded, 7), (Stage::Expanding, 6)] {
        let mut transactions = 1;
        loop {
            let (world, batch) = world(stage, jobs, PER_TRANSACTION).await;
            let outcome = withdraw(&world.queue, batch, transactions).await;
            let found = states(&world, batch).await;
            assert_eq!(found.len(), jobs);
            if outcome != WithdrawalOutcome::Interrupted {
                assert_eq!(outcome, WithdrawalOutcome::Withdrawn { jobs });
                check_withdrawn(&world, batch, jobs).await;
                break;
            }
            let (data, _) = world.raw.get_data(&format!("/queuekeeper/withdrawals/{batch}")).await.unwrap();
            let note = WithdrawalNote::decode(&data).unwrap();
            assert_eq!((note.who.as_str(), note.since), ("alice", now()));
            let has = |state: JobState| found.values().any(|found| *found == state);
            match note.phase {
                WithdrawalPhase::Holding => assert!(has(JobState::Held) && !has(JobState::Deleted)),
                WithdrawalPhase::Deleting => assert!(!has(JobState::Pending)),
                WithdrawalPhase::Returning => panic!("nothing stands against it"),
            }
            // No one takes it for a batch whose jobs are done or are to be created, and none of its jobs is released.
            for due in [Due::Jobs, Due::RestOfJobs, Due::Report] {
                assert!(world.queue.acquire_batch(due, now()).await.unwrap().0.is_none());
            }
            let held = found.iter().find(|(_, state)| **state == JobState::Held).map(|(id, _)| *id);
            if let Some(id) = held {
                let release = JobChange::to(JobState::Pending).by_operator();
                for target in [id.into(), (&world.queue.load_job(id).await.unwrap()).into()] {
                    let target: queuekeeper_queue::JobTarget = target;
                    let error = world.queue.change_job(target, &release, now()).await.unwrap_err();
                    assert!(error.to_string().contains("is being withdrawn"), "{error}");
                }
            }
            // The next one is interrupted, too; the one after it comes to its end.
            let mut outcome = take_up(&world, 1).await.unwrap();
            if outcome == WithdrawalOutcome::Interrupted {
                outcome = if transactions % 2 == 0 {
                    take_up(&world, 0).await.unwrap()
                } else {
                    withdraw(&world.queue, batch, 0).await
                };
            }
            assert_eq!(outcome, WithdrawalOutcome::Withdrawn { jobs }, "after {transactions}");
            check_withdrawn(&world, batch, jobs).await;
            transactions += 1;
        }
        assert!(transactions > 6, "{transactions} transactions are too few to be interrupted in each phase");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_job_of_the_last_row_is_held_with_the_transaction_that_ends_the_creation_of_the_others() {
    let (world, batch) = world(Stage::Expanding, 6, PER_TRANSACTION).await;
    // It has the lowest number as it is created; here it has the highest one, so that it is not the first by chance.
    let (first, last) = (JobId::new(0), JobId::new(5));
    let note = format!("/queuekeeper/expansions/{batch}");
    let noted = ExpansionNote { next: 5, rows: None, digest: "d".to_owned(), last: Some(last) };
    world.raw.set_data(&note, &noted.encode(), None).await.unwrap();
    let entry = |id: JobId| format!("/jobs/states/pending/05-{id}");
    world.raw.create(&entry(first), b"", &queuekeeper_testkit::queue::PERSISTENT).await.unwrap();
    world.raw.delete(&entry(last), None).await.unwrap();

    assert_eq!(withdraw(&world.queue, batch, 1).await, WithdrawalOutcome::Interrupted);
    assert!(!world.exists(&note).await);
    // Each that is left in Pending has its entry: without the expansion one that has none is a fault.
    let found = states(&world, batch).await;
    assert_eq!((found[&last], found.values().filter(|state| **state == JobState::Held).count()), (JobState::Held, 2));
    for (id, state) in &found {
        assert_eq!(world.exists(&entry(*id)).await, *state == JobState::Pending, "{id}");
    }
    assert_eq!(take_up(&world, 0).await, Some(WithdrawalOutcome::Withdrawn { jobs: 6 }));
    check_withdrawn(&world, batch, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_leaves_pending_meanwhile_takes_all_of_them_back_to_where_they_were() {
    for (stage, jobs) in [(Stage::Expanded, 7), (Stage::Expanding, 6)] {
        for transactions in 1..=3 {
            for interrupted in [0, 1, 2] {
                let (world, batch) = world(stage, jobs, PER_TRANSACTION).await;
                let operators = JobChange::to(JobState::Held).with_message("By bob with queuekeeper: wait");
                world.queue.change_job(JobId::new(1), &operators, now()).await.unwrap();
                let expansions = own(&world, "expansions").await;
                let before = shape(&world).await;
                assert_eq!(withdraw(&world.queue, batch, transactions).await, WithdrawalOutcome::Interrupted);
                // Another tool releases one that is held, and a daemon takes it; or it is one that was still Pending.
                let found = states(&world, batch).await;
                let (id, state) = found.into_iter().rfind(|(id, _)| id.number() > 1).unwrap();
                let client = world.another().await;
                if state == JobState::Held {
                    let path = format!("/queuekeeper/withdrawals/{batch}");
                    let (note, _) = world.raw.get_data(&path).await.unwrap();
                    world.raw.delete(&path, None).await.unwrap();
                    let release = JobChange::to(JobState::Pending).by_operator();
                    client.change_job(id, &release, now()).await.unwrap();
                    world.raw.create(&path, &note, &queuekeeper_testkit::queue::PERSISTENT).await.unwrap();
                }
                client.change_job(id, &JobChange::success(), now()).await.unwrap();
                if interrupted > 0 {
                    assert_eq!(take_up(&world, interrupted).await, Some(WithdrawalOutcome::Interrupted));
                }
                let outcome = take_up(&world, 0).await.unwrap();
                let why = format!("its job {id} is in Estimating; it can no longer be withdrawn");
                assert_eq!(outcome, WithdrawalOutcome::TakenBack(why), "after {transactions}");
                // All is as it was but for that job.
                let is_of_job = |path: &String| path.contains(&id.to_string());
                let [mut before, mut after] = [before, shape(&world).await];
                before.retain(|path, _| !is_of_job(path));
                after.retain(|path, _| !is_of_job(path));
                assert_eq!(after, before);
                assert_eq!(own(&world, "expansions").await, expansions);
                assert_eq!([own(&world, "withdrawals").await, own(&world, "held").await], [[""; 0]; 2]);
            }
        }
    }
    // Where the creation of its jobs goes on, each row becomes one job.
    let (world, batch) = world(Stage::Expanding, 6, PER_TRANSACTION).await;
    assert_eq!(withdraw(&world.queue, batch, 2).await, WithdrawalOutcome::Interrupted);
    world.another().await.change_job(JobId::new(5), &JobChange::failure("no"), now()).await.unwrap();
    assert!(matches!(take_up(&world, 0).await, Some(WithdrawalOutcome::TakenBack(_))));
    let (locked, _) = world.queue.acquire_batch(Due::RestOfJobs, now()).await.unwrap();
    let locked = locked.unwrap();
    let expansion = world.queue.expansion(&locked).await.unwrap().unwrap();
    let (last, rows) = (NewJob::new("{}"), [NewJob::new("{}")]);
    let rows = NextRows { digest: "d", all: 6, jobs: &rows, last: &last, has_end: true, most_children: None };
    assert_eq!(world.queue.expand(&locked, &expansion, rows, now()).await, Ok(None));
    assert_eq!(states(&world, batch).await.len(), 7);
    assert_eq!(world.queue.poll_jobs(JobState::Pending).await.unwrap().jobs().count(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_another_tool_releases_when_others_are_deleted_goes_on_with_its_batch() {
    let (world, batch) = world(Stage::Expanded, 7, PER_TRANSACTION).await;
    let mut transactions = 0;
    let report = |progress: WithdrawalProgress| {
        transactions += 1;
        let is_begun = progress.phase == WithdrawalPhase::Deleting && progress.jobs > 0;
        if is_begun { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let outcome = world.queue.withdraw(batch, BY, now(), report).await.unwrap();
    assert_eq!(outcome, WithdrawalOutcome::Interrupted);
    let id = states(&world, batch).await.into_iter().find(|(_, state)| *state == JobState::Held).unwrap().0;
    for (path, data) in [("status", r#"{"status":"Pending","retry_count":0}"#)] {
        world.raw.set_data(&format!("/jobs/{id}/{path}"), data.as_bytes(), None).await.unwrap();
    }
    world.raw.delete(&format!("/jobs/states/held/05-{id}"), None).await.unwrap();
    let entry = format!("/jobs/states/pending/05-{id}");
    world.raw.create(&entry, b"", &queuekeeper_testkit::queue::PERSISTENT).await.unwrap();
    let (job, _) = world.queue.acquire_job(JobState::Pending, now()).await.unwrap();
    let outcome = take_up(&world, 0).await.unwrap();
    assert!(matches!(&outcome, WithdrawalOutcome::InPart(why) if why.contains(&id.to_string())), "{outcome:?}");
    world.queue.finish_job(&job.unwrap(), &JobChange::success(), now()).await.unwrap();
    let states: Vec<_> =
        states(&world, batch).await.into_values().filter(|state| *state != JobState::Deleted).collect();
    assert_eq!(states, [JobState::Estimating]);
    assert_eq!(world.json(&format!("/batches/{batch}/status")).await["status"], "Reporting");
    assert_eq!(own(&world, "withdrawals").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_jobs_are_all_held_already_is_withdrawn_in_several_transactions() {
    let (world, batch) = world(Stage::Expanded, 5, PER_TRANSACTION).await;
    for id in states(&world, batch).await.into_keys() {
        world.queue.change_job(id, &JobChange::to(JobState::Held), now()).await.unwrap();
    }
    assert_eq!(withdraw(&world.queue, batch, 0).await, WithdrawalOutcome::Withdrawn { jobs: 5 });
    check_withdrawn(&world, batch, 5).await;
}

//! Withdrawals that end midway, and what others do meanwhile.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use queuekeeper_queue::id::JobId;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Error, JobChange, Queue, WithdrawalOutcome, WithdrawalProgress};
use queuekeeper_testkit::queue::now;
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::wait::{eventually, eventually_some};
use queuekeeper_testkit::wire::{Cut, Point, Wire};

use super::withdrawal::{BY, PER_TRANSACTION, Stage, check_withdrawn, own, states, take_up, withdraw, world};

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_whose_future_or_session_ends_anywhere_is_taken_up() {
    for transactions in 1..=8 {
        for is_same_session in [true, false] {
            let (world, batch) = world(Stage::Expanded, 7, PER_TRANSACTION).await;
            let client = if is_same_session { world.queue.clone() } else { world.another().await };
            let client = client.with_jobs_per_transaction(PER_TRANSACTION);
            let (stop, stopped) = tokio::sync::oneshot::channel();
            let (mut stop, mut done) = (Some(stop), 0);
            let task = tokio::spawn(async move {
                let report = |_: WithdrawalProgress| {
                    done += 1;
                    if done == transactions
                        && let Some(stop) = stop.take()
                    {
                        stop.send(()).unwrap();
                    }
                    ControlFlow::Continue(())
                };
                client.withdraw(batch, BY, now(), report).await
            });
            let _ = stopped.await;
            task.abort();
            let _ = task.await;
            if is_same_session {
                assert_eq!(withdraw(&world.queue, batch, 0).await, WithdrawalOutcome::Withdrawn { jobs: 7 });
            } else {
                let path = format!("/batches/{batch}/lock");
                let is_free = async || !world.exists(&path).await;
                eventually(Duration::from_secs(30), "its lock ends with the session", is_free).await;
                if let Some(outcome) = take_up(&world, 0).await {
                    assert_eq!(outcome, WithdrawalOutcome::Withdrawn { jobs: 7 });
                }
            }
            check_withdrawn(&world, batch, 7).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_daemon_and_a_withdrawal_at_one_batch_one_has_all_of_it() {
    const JOBS: usize = 60;
    let mut outcomes = BTreeSet::new();
    for round in 0..12 {
        let (world, batch) = world(Stage::Expanded, JOBS, 10).await;
        let daemon = world.another().await;
        let (begun, begin) = tokio::sync::oneshot::channel();
        let (mut begun, mut done) = (Some(begun), 0);
        let (has_first, first) = tokio::sync::oneshot::channel();
        let mut has_first = Some(has_first);
        let work = tokio::spawn(async move {
            let _ = begin.await;
            let mut taken = 0;
            let mut poll = daemon.poll_jobs(JobState::Pending).await.unwrap();
            while let Some(job) = poll.next(now()).await.unwrap() {
                daemon.finish_job(&job, &JobChange::success(), now()).await.unwrap();
                taken += 1;
                // Nobody may wait for it.
                has_first.take().map(|has_first| has_first.send(()));
            }
            assert_eq!(poll.skipped, []);
            taken
        });
        // The daemon begins at another point in each round: before all, with a job finished, and after so many
        // transactions.
        if round == 0 {
            begun.take().map(|begun| begun.send(()));
            first.await.unwrap();
        }
        let report = |_: WithdrawalProgress| {
            done += 1;
            if done == round {
                begun.take().map(|begun| begun.send(()));
            }
            ControlFlow::Continue(())
        };
        let outcome = world.queue.withdraw(batch, BY, now(), report).await.unwrap();
        drop(begun);
        let taken: usize = work.await.unwrap();
        match outcome {
            WithdrawalOutcome::Withdrawn { jobs } => {
                assert_eq!((jobs, taken), (JOBS, 0));
                check_withdrawn(&world, batch, JOBS).await;
                outcomes.insert("withdrawn");
            }
            WithdrawalOutcome::NotWithdrawn(_) | WithdrawalOutcome::TakenBack(_) => {
                let found = states(&world, batch).await;
                let is_back = |state: &JobState| matches!(state, JobState::Pending | JobState::Estimating);
                assert!(taken > 0 && found.len() == JOBS && found.values().all(is_back), "{taken}: {found:?}");
                assert_eq!([own(&world, "withdrawals").await, own(&world, "held").await], [[""; 0]; 2]);
                outcomes.insert("not withdrawn");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(outcomes.len(), 2, "the rounds are to show both: {outcomes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_batch_is_withdrawn_another_withdrawal_is_refused() {
    let (world, batch) = world(Stage::Expanded, 7, PER_TRANSACTION).await;
    let other = world.another().await;
    let mut refused = None;
    let report = |_: WithdrawalProgress| {
        if refused.is_none() {
            let withdrawn = other.withdraw(batch, BY, now(), |_| ControlFlow::Continue(()));
            refused = Some(tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(withdrawn)));
        }
        ControlFlow::Continue(())
    };
    let outcome = world.queue.withdraw(batch, BY, now(), report).await.unwrap();
    assert_eq!(outcome, WithdrawalOutcome::Withdrawn { jobs: 7 });
    assert!(matches!(refused, Some(Err(Error::Conflict(_)))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_leaves_pending_as_a_withdrawal_begins_leaves_all_others_where_they_are() {
    for reads in 0..16 {
        let (world, batch) = world(Stage::Expanded, 5, PER_TRANSACTION).await;
        let (id, daemon) = (JobId::new(4), world.another().await);
        let work = async {
            // It comes a little later in each round.
            for _ in 0..reads {
                daemon.load_job(id).await.unwrap();
            }
            daemon.change_job(id, &JobChange::success(), now()).await.is_ok()
        };
        let withdrawal = world.queue.withdraw(batch, BY, now(), |_| ControlFlow::Continue(()));
        let (outcome, is_taken) = tokio::join!(withdrawal, work);
        match outcome.unwrap() {
            WithdrawalOutcome::Withdrawn { jobs: 5 } if !is_taken => check_withdrawn(&world, batch, 5).await,
            WithdrawalOutcome::NotWithdrawn(why) | WithdrawalOutcome::TakenBack(why) if is_taken => {
                assert_eq!(why, format!("its job {id} is in Estimating; it can no longer be withdrawn"));
                let mut states = states(&world, batch).await;
                assert_eq!((states.remove(&id), states.len()), (Some(JobState::Estimating), 4));
                assert!(states.values().all(|state| *state == JobState::Pending), "{states:?}");
                assert_eq!([own(&world, "withdrawals").await, own(&world, "held").await], [[""; 0]; 2]);
            }
            other => panic!("after {reads} reads: {other:?}, {is_taken}"),
        }
    }
}

/// What becomes of the lock of a withdrawal that was cancelled, before the same process withdraws again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    /// It is broken.
    Broken,
    /// It is there, and another client has written the batch's status.
    Written,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_a_cancelled_withdrawal_left_is_not_relied_on_when_it_has_become_invalid() {
    for meanwhile in [Meanwhile::Broken, Meanwhile::Written] {
        let (world, batch) = world(Stage::Expanded, 7, PER_TRANSACTION).await;
        let queue = world.queue.clone();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let is_cancelled = Arc::new(Barrier::new(2));
        let (mut stop, cancelled) = (Some(stop), Arc::clone(&is_cancelled));
        let task = tokio::spawn(async move {
            let report = |_: WithdrawalProgress| {
                if let Some(stop) = stop.take() {
                    stop.send(()).unwrap();
                    // It is cancelled where it is, with most of its jobs before it.
                    is_cancelled.wait();
                }
                ControlFlow::Continue(())
            };
            queue.withdraw(batch, BY, now(), report).await
        });
        stopped.await.unwrap();
        task.abort();
        cancelled.wait();
        assert!(task.await.unwrap_err().is_cancelled(), "{meanwhile:?}");
        let [lock, status] = ["lock", "status"].map(|node| format!("/batches/{batch}/{node}"));
        match meanwhile {
            Meanwhile::Broken => world.raw.delete(&lock, None).await.unwrap(),
            Meanwhile::Written => {
                let (data, _) = world.raw.get_data(&status).await.unwrap();
                world.raw.set_data(&status, &data, None).await.unwrap();
            }
        }
        let outcome = withdraw(&world.queue, batch, 0).await;
        assert_eq!(outcome, WithdrawalOutcome::Withdrawn { jobs: 7 }, "{meanwhile:?}");
        check_withdrawn(&world, batch, 7).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_whose_lock_was_made_without_an_answer_is_gone_on_with_and_no_other_batch_is() {
    let (world, first) = world(Stage::Expanded, 3, PER_TRANSACTION).await;
    let second = world.queue.create_batch(br#"{"batchID":"v","profile":"demo"}"#, now()).await.unwrap();
    let wire = Wire::of_changes(shared().await.port()).await;
    let client = connect(&format!("{}{}", wire.connect_string(), world.chroot)).await;
    let queue = Queue::new(client).with_time_limit(Duration::from_secs(3));
    let go_on = |_: WithdrawalProgress| ControlFlow::Continue(());
    // The first change is the lock.
    wire.arm(Some((Point::Unanswered(1), Cut::Long)));
    // On a busy machine an answer may come too late before the cut.
    for _ in 0..5 {
        if !wire.was_cut() {
            let lost = queue.withdraw(first, BY, now(), go_on).await;
            assert!(lost.as_ref().is_err_and(Error::is_connection), "{lost:?}");
        }
    }
    assert!(wire.was_cut());
    assert!(world.exists(&format!("/batches/{first}/lock")).await);
    wire.restore();
    let again = async |batch| {
        let is_over = async || match queue.withdraw(batch, BY, now(), go_on).await {
            Err(error) if error.is_connection() => None,
            came => Some(came),
        };
        eventually_some(Duration::from_secs(30), "there is a connection again", is_over).await.unwrap()
    };
    assert_eq!(again(second).await, WithdrawalOutcome::Withdrawn { jobs: 0 });
    assert!(states(&world, first).await.values().all(|state| *state == JobState::Pending));
    assert_eq!(again(first).await, WithdrawalOutcome::Withdrawn { jobs: 3 });
    check_withdrawn(&world, first, 3).await;
}

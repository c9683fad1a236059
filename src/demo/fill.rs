//! The initial queue of the demo: thousands of jobs with a history, in all states.
//!
//! The jobs are created through the queue core, as Pending; then transactions of many jobs each move them to their
//! states. No other client uses the queue at that time.

use std::ops::ControlFlow;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::catalogue::{HELD_IN_TURN, HOLD_REASON};
use super::dice::Dice;
use super::past::{InFlight, InitialState, Past};
use super::scenario::{self, Scenario, Submission, SubmissionKind};
use super::submit::most_objects;
use super::world::World;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::{Error, ItemChange, Queue, Transaction};

/// How many jobs one transaction moves to their states; each takes about 700 bytes.
const JOBS_PER_TRANSACTION: usize = 200;

/// The interval at which progress is logged.
const LOG_INTERVAL: Duration = Duration::from_secs(5);

/// How many seconds ago the oldest submission was created.
const OLDEST_SECONDS: i64 = 9 * 3600;

/// Fills an empty queue, and leaves the scenario where the depositors continue it.
///
/// # Errors
/// When the queue cannot be written.
pub(super) async fn fill(world: &World, queue: &Queue, scenario: &mut Scenario) -> Result<(), Error> {
    let started = Instant::now();
    let mut logged = started;
    let mut dice = Dice::new(world.seed, "fill");
    let mut in_flight = InFlight::default();
    queue.hold_collection(HELD_IN_TURN[0], "operator", HOLD_REASON, Timestamp::now()).await?;
    let most = most_objects(world.jobs);
    let (mut made, mut batches) = (0, 0);
    while made < world.jobs {
        let past = Past::draw(&mut dice, batches);
        let kind = if past == Past::Held {
            SubmissionKind::OfHeld { turn: 0, most }
        } else {
            SubmissionKind::Ordinary { most }
        };
        let mut submission = scenario.next(kind);
        submission.objects.truncate(world.jobs - made);
        let done = made as f64 / world.jobs as f64;
        #[expect(clippy::cast_possible_truncation, reason = "a part of some hours is far below 2^63 seconds")]
        let ago = (OLDEST_SECONDS as f64 * (1.0 - done)) as i64;
        let submitted = Timestamp::now() - jiff::SignedDuration::from_secs(ago);
        make_batch(world, queue, &mut dice, &mut in_flight, past, &submission, submitted).await?;
        made += submission.objects.len();
        batches += 1;
        if logged.elapsed() >= LOG_INTERVAL {
            logged = Instant::now();
            tracing::info!(jobs = made, of_jobs = world.jobs, "filling the queue");
        }
    }
    for (access, count) in [(AccessQueue::Small, 9), (AccessQueue::Large, 4)] {
        for _ in 0..count {
            let token = scenario::token(&mut dice, access == AccessQueue::Large, Timestamp::now());
            queue.create_request(access, &token, Timestamp::now()).await?;
        }
    }
    tracing::info!(jobs = made, batches, after_ms = started.elapsed().as_millis(), "filled the queue");
    Ok(())
}

async fn make_batch(
    world: &World,
    queue: &Queue,
    dice: &mut Dice,
    in_flight: &mut InFlight,
    past: Past,
    submission: &Submission,
    submitted: Timestamp,
) -> Result<(), Error> {
    let batch = queue.create_batch(&submission.data(submitted), submitted).await?;
    queue.change_batch(batch, &ItemChange::to(BatchState::Processing), submitted).await?;
    let mut standings = Vec::with_capacity(submission.objects.len());
    let mut jobs = submission.jobs(submitted);
    for (object, job) in submission.objects.iter().zip(&mut jobs) {
        let minted = submission.minted(world.seed, object);
        let (findings, file) = submission.findings(object, &minted);
        let standing = InitialState::draw(world, dice, in_flight, past, batch, findings, file);
        job.values = standing.values(&findings);
        standings.push((standing, object.bytes));
    }
    let ids = queue.create_jobs(batch, &jobs, submitted).await?;
    let mut moves = Vec::new();
    for (id, (standing, bytes)) in ids.into_iter().zip(&standings) {
        if standing.holds_space() {
            world.volume.take(id, *bytes);
        }
        moves.extend(standing.transaction(batch, id, submission.priority(), Timestamp::now()));
    }
    for chunk in moves.chunks(JOBS_PER_TRANSACTION) {
        let mut transaction = Transaction::new();
        for each in chunk {
            transaction.append(each.clone());
        }
        queue.commit(&transaction).await?;
    }
    queue.change_batch(batch, &ItemChange::success(), Timestamp::now()).await?;
    if past == Past::Deleted {
        delete(queue, batch).await?;
    }
    Ok(())
}

/// Deletes a batch that was reported with failures.
async fn delete(queue: &Queue, batch: BatchId) -> Result<(), Error> {
    queue.change_batch(batch, &ItemChange::to(BatchState::Failed), Timestamp::now()).await?;
    let plan = queue.plan_delete(batch, "deleted by the operator: sent twice", Timestamp::now()).await?;
    queue.execute(&plan, 0, |_| ControlFlow::Continue(())).await?;
    Ok(())
}

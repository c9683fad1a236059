//! What was before the demo: thousands of jobs that have ended, so that lists, charts and searches have something to
//! show.
//!
//! No daemon has worked on them, and no object was stored: their titles say that they are from before the demo. They
//! are created through the queue core, as Pending; then transactions of many jobs each move them to their states. No
//! other client uses the queue at that time. A failed or held one has its file at its depositor's server, so that the
//! daemons work on it once it is resumed or released.

use std::ops::ControlFlow;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_ingest::spec::id_of;
use serde_json::json;
use tokio::time::Instant;

use super::collections::{Form, HELD_IN_TURN, HOLD_REASON};
use super::depositors::most_objects;
use super::dice::Dice;
use super::scenario::{Object, Scenario, Submission, SubmissionKind};
use super::world::World;
use queuekeeper_queue::id::{BatchId, JobId, Priority};
use queuekeeper_queue::path::{JobNode, Path};
use queuekeeper_queue::record::{self, StatusChange};
use queuekeeper_queue::state::{Authority, BatchState, JobOutcome, JobState};
use queuekeeper_queue::{Error, ItemChange, NewJob, Queue, Transaction};

/// How many jobs one transaction moves to their states; each takes about 700 bytes.
const JOBS_PER_TRANSACTION: usize = 200;

/// The interval at which progress is logged.
const LOG_INTERVAL: Duration = Duration::from_secs(5);

/// How many seconds ago the oldest submission was created.
const OLDEST_SECONDS: i64 = 9 * 3600;

/// What titles begin with.
const MARK: &str = "Before the demo: ";

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    /// All its jobs were completed.
    Completed,
    /// Some of its jobs failed, all with one cause.
    Failed,
    /// Its collection is held.
    Held,
    /// It was deleted.
    Deleted,
}

impl Past {
    /// The history of a batch, by its number: the first ones show each kind.
    fn draw(dice: &mut Dice, number: usize) -> Self {
        match number {
            0 => Self::Deleted,
            1 => Self::Completed,
            2 => Self::Held,
            3 => Self::Failed,
            _ => dice.weighted(&[(85, Self::Completed), (10, Self::Failed), (5, Self::Held)]),
        }
    }

    /// What became of one of its jobs, by its index.
    fn job(self, dice: &mut Dice, index: usize) -> JobState {
        match self {
            Self::Failed if index == 0 || dice.happens(0.35) => JobState::Failed,
            Self::Deleted => JobState::Failed,
            Self::Completed | Self::Failed => JobState::Completed,
            Self::Held => JobState::Held,
        }
    }
}

/// Fills an empty queue, and leaves the scenario where the depositors continue it.
///
/// # Errors
/// When the queue cannot be written.
pub(super) async fn fill(world: &World, queue: &Queue, scenario: &mut Scenario) -> Result<(), Error> {
    let started = Instant::now();
    let mut logged = started;
    let mut dice = Dice::new(world.seed, "history");
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
        make_batch(world, queue, &mut dice, past, &submission, submitted).await?;
        made += submission.objects.len();
        batches += 1;
        if logged.elapsed() >= LOG_INTERVAL {
            logged = Instant::now();
            tracing::info!(jobs = made, of_jobs = world.jobs, "filling the queue");
        }
    }
    tracing::info!(jobs = made, batches, after_ms = started.elapsed().as_millis(), "filled the queue");
    Ok(())
}

async fn make_batch(
    world: &World,
    queue: &Queue,
    dice: &mut Dice,
    past: Past,
    submission: &Submission,
    submitted: Timestamp,
) -> Result<(), Error> {
    let batch = queue.create_batch(&batch_data(submission, submitted), submitted).await?;
    queue.change_batch(batch, &ItemChange::to(BatchState::Processing), submitted).await?;
    let jobs: Vec<NewJob> =
        submission.objects.iter().map(|object| new_job(world, dice, submission, object, submitted)).collect();
    let ids = queue.create_jobs(batch, &jobs, submitted).await?;
    let states: Vec<JobState> = (0..ids.len()).map(|index| past.job(dice, index)).collect();
    let refused = fetch_refused(dice, submission);
    let moves: Vec<_> = ids.into_iter().zip(&states).map(|(id, state)| to_state(batch, id, *state, &refused)).collect();
    for chunk in moves.chunks(JOBS_PER_TRANSACTION) {
        let mut transaction = Transaction::new();
        for each in chunk {
            transaction.append(each.clone());
        }
        queue.commit(&transaction).await?;
    }
    queue.change_batch(batch, &ItemChange::success(), Timestamp::now()).await?;
    let reported = match past {
        // Its report is due when its jobs are released and done.
        Past::Held => return Ok(()),
        _ if states.contains(&JobState::Failed) => BatchState::Failed,
        _ => BatchState::Completed,
    };
    queue.change_batch(batch, &ItemChange::to(reported), Timestamp::now()).await?;
    if past == Past::Deleted {
        let plan = queue.plan_delete(batch, "deleted by the operator: sent twice", Timestamp::now()).await?;
        queue.execute(&plan, 0, |_| ControlFlow::Continue(())).await?;
    }
    Ok(())
}

fn batch_data(submission: &Submission, submitted: Timestamp) -> Vec<u8> {
    json!({
        "batchID": id_of(submission.uuid),
        "profile": submission.collection,
        "type": submission.kind().as_str(),
        "filename": submission.manifest_name(),
        "submitter": submission.submitter,
        "submissionDate": submitted.to_string(),
        "title": format!("{MARK}{}", submission.title),
        "creator": submission.creator,
        "update": submission.is_update,
    })
    .to_string()
    .into_bytes()
}

fn new_job(world: &World, dice: &mut Dice, submission: &Submission, object: &Object, submitted: Timestamp) -> NewJob {
    let origin = world.origins.address(submission.of());
    let kind = match submission.of().form {
        Form::File => "file",
        Form::Container => "container",
        Form::Manifest => "manifest",
    };
    let configuration = json!({
        "batchID": id_of(submission.uuid),
        "jobID": format!("jid-{}", dice.uuid()),
        "profile": submission.collection,
        "type": kind,
        "submitter": submission.submitter,
        "submissionDate": submitted.to_string(),
        "filename": object.file_name,
        "title": format!("{MARK}{}", object.title),
        "creator": submission.creator,
        "localID": object.local_id,
        "update": submission.is_update,
        "payload_url": submission.url(origin, object).to_string(),
    });
    NewJob::new(configuration.to_string()).with_priority(Priority::default())
}

/// What the daemons would have said of all failed jobs of a batch. Its depositor had another server then.
fn fetch_refused(dice: &mut Dice, submission: &Submission) -> String {
    let answer = *dice.pick(&["403 Forbidden", "404 Not Found", "410 Gone"]);
    let host = submission.collection.replace('_', "-");
    let object = submission.objects.first().map(|object| object.file_name.as_str()).unwrap_or_default();
    format!("cannot fetch https://{host}.example.org/{}/{object}: the origin answers {answer}", submission.name)
}

/// The transaction that moves a new job to its state.
fn to_state(batch: BatchId, id: JobId, state: JobState, refused: &str) -> Transaction {
    let from = match state {
        JobState::Completed => JobState::Notify,
        JobState::Failed => JobState::Downloading,
        _ => JobState::Pending,
    };
    let change = StatusChange {
        from: Some(from),
        to: state,
        by: Authority::Daemon,
        last_successful: (state == JobState::Failed).then_some(JobState::Provisioning),
        retry_count: 0,
        message: if state == JobState::Failed { refused } else { "Success" },
        now: Timestamp::now(),
    };
    let mut transaction = Transaction::new();
    transaction
        // The version of a status that was never changed.
        .set(Path::JobNode(id, JobNode::Status), record::job_status(&[], &change), 0)
        .delete(Path::entry(JobState::Pending, Priority::default(), id), None)
        .create(Path::entry(state, Priority::default(), id), Vec::new());
    let outcome = state.outcome();
    if outcome != JobOutcome::Processing {
        transaction
            .delete(Path::Reference(batch, JobOutcome::Processing, id), None)
            .create(Path::Reference(batch, outcome, id), Vec::new());
    }
    transaction
}

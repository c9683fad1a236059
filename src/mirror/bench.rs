//! What applying a change costs, for the benchmark: outside the crate no code sees an image without a server.

use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use zookeeper_client::Stat;

use super::clock::Offset;
use super::history::Record;
use super::image::Image;
use super::read::Found;
use queuekeeper_queue::fault::{Fault, Limits};
use queuekeeper_queue::id::{BatchId, JobId, Priority};
use queuekeeper_queue::path::{BatchNode, JobNode, Path};
use queuekeeper_queue::state::{JobOutcome, JobState, State};

/// How many reads are applied before what they touched is evaluated, as the writer does it under load.
const AT_ONCE: usize = 128;

/// How long before its step a job is locked, in milliseconds.
const WORK_MS: i64 = 5;

/// The batch of all jobs.
const BATCH: BatchId = BatchId::new(0);

/// An image whose jobs have gone all the way, and what it took to apply that.
#[derive(Debug)]
pub struct Applied {
    image: Image,
    jobs: u32,
    /// How long each read took.
    pub each: Duration,
}

impl Applied {
    /// How many steps are remembered of each job, the fewest of all jobs.
    #[must_use]
    pub fn remembered(&self) -> usize {
        let jobs = (0..self.jobs).map(JobId::new);
        jobs.map(|job| self.image.past(job, Offset::default()).len()).min().unwrap_or(0)
    }

    /// How many jobs are suspected of a fault by their shape: none, since they are healthy.
    #[must_use]
    pub fn suspected(&self) -> u64 {
        const KINDS: [Fault; 4] =
            [Fault::OrphanEntry, Fault::MissingEntry, Fault::MissingReference, Fault::UnloadableJob];
        let figures = self.image.fault_figures(i64::MAX, Offset::default());
        KINDS.iter().map(|kind| figures[*kind as usize].count).sum()
    }
}

/// Leads `jobs` jobs from Pending to Completed, one step of each after the other as daemons make them, and takes the
/// processor time of applying that: to the image alone, or (`is_kept`) with faults, history and all that is kept beside
/// it.
#[must_use]
pub fn apply_steps(jobs: u32, is_kept: bool) -> Applied {
    let limits = Limits::default();
    let (mut image, mut history) = (filled(jobs), Record::default());
    let mut now_ms = 1_000_000;
    if is_kept {
        image.evaluate_all(None, now_ms, now_ms, &limits);
    }
    let (mut took, mut reads) = (Duration::ZERO, 0_u32);
    let mut from = JobState::Pending;
    let mut version = 0;
    while let Some(to) = from.success() {
        version += 1;
        for first in (0..jobs).step_by(AT_ONCE / 4) {
            now_ms += 10;
            let some: Vec<_> = (first..jobs.min(first + 32)).map(JobId::new).collect();
            // The lock is seen by itself, the rest of the step at once, as it is read under load.
            let taken: Vec<_> = some.iter().map(|job| lock(*job, now_ms - WORK_MS)).collect();
            let stepped: Vec<_> = some.iter().flat_map(|job| step(*job, from, to, now_ms, version)).collect();
            reads += u32::try_from(taken.len() + stepped.len()).expect("a piece is small");
            let now = Timestamp::from_millisecond(now_ms).expect("some hours after 1970");
            let mut changes = Vec::with_capacity(taken.len() + stepped.len());
            let started = cpu_time();
            for (path, found) in taken.into_iter().chain(stepped) {
                changes.push(if is_kept { image.apply(path, &found) } else { image.apply_alone(path, &found) });
            }
            if is_kept {
                history.note(changes, now);
                image.set_now(now_ms);
                while image.evaluate(now_ms, &limits, AT_ONCE) {}
            }
            took += cpu_time().saturating_sub(started);
        }
        from = to;
    }
    Applied { image, jobs, each: took / reads.max(1) }
}

/// The processor time of this thread so far: what else the machine does is not counted.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("no processor time lies before the start")
}

fn stat(at_ms: i64, version: i32, session: i64) -> Stat {
    Stat {
        czxid: at_ms,
        mzxid: at_ms,
        pzxid: at_ms,
        ctime: at_ms,
        mtime: at_ms,
        version,
        cversion: 0,
        aversion: 0,
        ephemeral_owner: session,
        data_length: 0,
        num_children: 0,
    }
}

fn node(data: impl Into<Vec<u8>>, stat: Stat) -> Found {
    Found::Node { data: data.into(), stat }
}

fn status(state: JobState) -> String {
    format!(
        r#"{{"status":"{state}","last_modified":"2026-03-02 10:17:05 -0800","last_successful_status":null,"retry_count":0,"message":"Success"}}"#
    )
}

fn entry(state: JobState, job: JobId) -> Path {
    Path::entry(state, Priority::new(5).expect("5 is a priority"), job)
}

/// An image of healthy jobs in Pending.
fn filled(jobs: u32) -> Image {
    let mut image = Image::default();
    let batch = BATCH;
    let empty = || node("", stat(1, 0, 0));
    image.apply(Path::Root, &empty());
    image.apply(Path::Batch(batch), &empty());
    image.apply(Path::BatchNode(batch, BatchNode::Status), &node(r#"{"status":"Reporting"}"#, stat(1, 0, 0)));
    image.apply(Path::BatchNode(batch, BatchNode::Submission), &node(r#"{"profile":"demo"}"#, stat(1, 0, 0)));
    image.apply(Path::BatchNode(batch, BatchNode::States), &empty());
    for outcome in [JobOutcome::Processing, JobOutcome::Completed] {
        image.apply(Path::BatchOutcome(batch, outcome), &empty());
    }
    for job in (0..jobs).map(JobId::new) {
        image.apply(Path::Job(job), &empty());
        for (of, data) in [
            (JobNode::Bid, batch.to_string()),
            (
                JobNode::Configuration,
                format!(
                    r#"{{"profile":"demo","filename":"{job}.zip","title":"Papers","objectID":"ark:/99999/{job}"}}"#
                ),
            ),
            (JobNode::Status, status(JobState::Pending)),
            (JobNode::Priority, "5".to_owned()),
            (JobNode::SpaceNeeded, "1000000".to_owned()),
        ] {
            image.apply(Path::JobNode(job, of), &node(data, stat(1, 0, 0)));
        }
        image.apply(entry(JobState::Pending, job), &Found::Listed);
        image.apply(Path::Reference(batch, JobOutcome::Processing, job), &Found::Listed);
    }
    image.finish();
    image
}

fn lock(job: JobId, at_ms: i64) -> (Path, Found) {
    let session = 0x1_0000 + i64::from(job.number() % 40);
    (Path::JobNode(job, JobNode::Lock), node("", stat(at_ms, 0, session)))
}

fn step(job: JobId, from: JobState, to: JobState, at_ms: i64, version: i32) -> Vec<(Path, Found)> {
    let mut reads = vec![
        (Path::JobNode(job, JobNode::Status), node(status(to), stat(at_ms, version, 0))),
        (entry(from, job), Found::Nothing),
        (entry(to, job), node("", stat(at_ms, 0, 0))),
        (Path::JobNode(job, JobNode::Lock), Found::Nothing),
    ];
    if from.outcome() != to.outcome() {
        reads.push((Path::Reference(BATCH, from.outcome(), job), Found::Nothing));
        reads.push((Path::Reference(BATCH, to.outcome(), job), Found::Listed));
    }
    reads
}

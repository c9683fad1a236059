//! Which jobs fail, in which state and with which cause, determined by the seed and the ids alone.

use super::dice::Dice;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::state::JobState;

/// What goes wrong, with `{file}`, `{ark}` and `{node}` to be filled in.
const CAUSES: &[(JobState, &str)] = &[
    (
        JobState::Estimating,
        "[error] EstimateHandler: size of {file} cannot be learned: HTTP 404 from the manifest's host",
    ),
    (JobState::Downloading, "[error] DownloadHandler: java.net.SocketTimeoutException: Read timed out, {file}"),
    (
        JobState::Downloading,
        "[error] DownloadHandler: digest mismatch for {file}: expected sha-256 3f7a.., found 90c1..",
    ),
    (JobState::Downloading, "[error] DownloadHandler: 403 Forbidden: the signed URL of {file} has expired"),
    (JobState::Processing, "[error] MintHandler: cannot mint an identifier: EZID answered 503 Service Unavailable"),
    (JobState::Processing, "[error] ManifestHandler: {file}: not a valid archive: unexpected end of ZLIB input stream"),
    (
        JobState::Storing,
        "[error] StorageHandler: storage node {node}: addVersion of {ark} failed: 500 SlowDown: Please reduce your request rate",
    ),
    (JobState::Storing, "[error] StorageHandler: storage node {node}: java.net.ConnectException: Connection refused"),
    (
        JobState::Recording,
        "[error] InventoryHandler: {ark}: Deadlock found when trying to get lock; try restarting transaction",
    ),
    (
        JobState::Recording,
        "[error] InventoryHandler: {ark}: manifest is not readable: HTTP 500 from storage node {node}",
    ),
    (JobState::Notify, "[error] NotifyHandler: callback to the depositor failed: 502 Bad Gateway"),
];

/// An object above this size never fails: its space would stay in use, and a stall would last until a user acts.
const SPARED_BYTES: u64 = 60 << 30;

/// The failure of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The state in which it does.
    pub(super) state: JobState,
    /// The message of the daemon.
    pub(super) message: String,
}

/// The job whose failure is determined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub(super) batch: BatchId,
    pub(super) job: JobId,
    /// How often it was resumed.
    pub(super) retries: u32,
    pub(super) bytes: u64,
    pub(super) file: &'a str,
    pub(super) ark: &'a str,
}

/// The failure of a job, if it has one.
///
/// One batch in sixteen is affected: a third of its jobs fail with one cause. Of the others one job in eighty fails. A
/// resumed job fails again once in eight times.
pub(super) fn failure(seed: u64, subject: Subject<'_>) -> Option<Failure> {
    if subject.bytes > SPARED_BYTES {
        return None;
    }
    let mut batch = Dice::new(seed, ("batch", subject.batch.number()));
    let is_struck = batch.happens(1.0 / 16.0);
    let shared = *batch.pick(CAUSES);
    let mut job = Dice::new(seed, ("job", subject.job.number(), subject.retries));
    let probability = match (subject.retries, is_struck) {
        (0, true) => 1.0 / 3.0,
        (0, false) => 1.0 / 80.0,
        (_, _) => 1.0 / 8.0,
    };
    if !job.happens(probability) {
        return None;
    }
    let cause = if is_struck { shared } else { *job.pick(CAUSES) };
    Some(describe(cause, &subject, &mut batch))
}

/// A failure in one of these states, with a cause that other jobs of the batch share.
///
/// # Panics
/// When no failure is defined for these states.
pub(super) fn shared_failure(seed: u64, subject: Subject<'_>, states: &[JobState]) -> Failure {
    let mut batch = Dice::new(seed, ("batch that failed", subject.batch.number()));
    let causes: Vec<_> = CAUSES.iter().filter(|(state, _)| states.contains(state)).copied().collect();
    let cause = *batch.pick(&causes);
    describe(cause, &subject, &mut batch)
}

fn describe((state, text): (JobState, &str), subject: &Subject<'_>, batch: &mut Dice) -> Failure {
    let node = batch.weighted(&[(3, "7001"), (1, "7002"), (1, "9501")]);
    let message = text.replace("{file}", subject.file).replace("{ark}", subject.ark).replace("{node}", node);
    Failure { state, message }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn subject(batch: u32, job: u32, retries: u32) -> Subject<'static> {
        let (batch, job) = (BatchId::new(batch), JobId::new(job));
        Subject { batch, job, retries, bytes: 1 << 30, file: "a.zip", ark: "ark:/99999/fk4a" }
    }

    #[test]
    fn the_failure_of_a_job_is_always_the_same() {
        for job in 0..500 {
            assert_eq!(failure(5, subject(job / 40, job, 0)), failure(5, subject(job / 40, job, 0)));
        }
    }

    #[test]
    fn some_batches_have_a_common_cause_and_few_jobs_of_others_fail() {
        let mut causes: BTreeMap<u32, BTreeMap<JobState, usize>> = BTreeMap::new();
        for batch in 0..200 {
            for job in 0..60 {
                if let Some(failure) = failure(9, subject(batch, batch * 60 + job, 0)) {
                    *causes.entry(batch).or_default().entry(failure.state).or_default() += 1;
                    assert!(!failure.message.contains('{'), "{}", failure.message);
                }
            }
        }
        let struck: Vec<_> = causes.values().filter(|states| states.values().sum::<usize>() >= 10).collect();
        assert!((5..=30).contains(&struck.len()), "{struck:?}");
        assert!(struck.iter().all(|states| states.len() == 1), "{struck:?}");
        let all: usize = causes.values().flat_map(BTreeMap::values).sum();
        assert!((150..900).contains(&all), "{all} of 12,000");
    }

    #[test]
    fn most_resumed_jobs_succeed_and_the_largest_never_fail() {
        let failed = (0..800).filter(|job| failure(2, subject(1, *job, 1)).is_some()).count();
        assert!((40..200).contains(&failed), "{failed}");
        let large = |job| Subject { bytes: 500 << 30, ..subject(1, job, 0) };
        assert!((0..2_000).all(|job| failure(2, large(job)).is_none()));
    }
}

//! Looking whether the jobs of a batch can be withdrawn.

use std::collections::BTreeSet;

use crate::batch::Batch;
use crate::error::Error;
use crate::handle::{Found, Queue, Read};
use crate::id::{BatchId, JobId};
use crate::job::Job;
use crate::path::{JobNode, Path};
use crate::purge::PlannedJob;
use crate::record::{self, JobStatus};
use crate::state::{Authority, BatchState, JobState, State as _};

/// The jobs of a batch, by what they are for its withdrawal. Deleted ones are in none of the lists.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Those that are Pending, in order.
    pub(super) pending: Vec<JobId>,
    /// Those that are Held, in order.
    pub(super) held: Vec<JobId>,
    /// Those that cannot be withdrawn.
    pub(super) hindered: BTreeSet<JobId>,
    /// Why the first of these cannot, one sentence.
    pub(super) hindrance: Option<String>,
}

/// What a withdrawal finds of a job.
pub(super) enum Fitness {
    Pending,
    Held,
    /// It is deleted already.
    Deleted,
    /// It cannot be withdrawn, for this reason.
    Hindered(String),
}

impl Candidates {
    /// The jobs that are to be deleted, each with its state.
    pub(super) fn open(&self) -> impl Iterator<Item = PlannedJob> {
        let in_state = |state: JobState| move |job: &JobId| (*job, Some(state));
        let pending = self.pending.iter().map(in_state(JobState::Pending));
        pending.chain(self.held.iter().map(in_state(JobState::Held)))
    }
}

/// Why a batch in this state cannot be withdrawn, whatever its jobs are.
pub(super) fn hindrance_of_batch(batch: &Batch) -> Option<String> {
    match batch.state() {
        Some(state) if state.allows(BatchState::Deleted, Authority::Withdrawal) => None,
        Some(state) => Some(format!("it is {state}; it can no longer be withdrawn")),
        None => Some("its status cannot be read".to_owned()),
    }
}

/// What a withdrawal finds of a job of the batch, by its status and whether it is locked.
pub(super) fn fitness(id: JobId, status: Option<&JobStatus<'_>>, is_locked: bool) -> Fitness {
    let unreadable = || Fitness::Hindered(format!("the status of its job {id} cannot be read"));
    let Some(status) = status else { return unreadable() };
    let Some(state) = status.status.state else { return unreadable() };
    let fits = match state {
        JobState::Pending => Fitness::Pending,
        JobState::Held => Fitness::Held,
        JobState::Deleted => Fitness::Deleted,
        JobState::Estimating
        | JobState::Provisioning
        | JobState::Downloading
        | JobState::Processing
        | JobState::Storing
        | JobState::Recording
        | JobState::Notify
        | JobState::Completed
        | JobState::Failed => {
            return Fitness::Hindered(format!("its job {id} is in {state}; it can no longer be withdrawn"));
        }
    };
    match status.last_successful {
        // What it made there may be stored already.
        Some(last) => {
            Fitness::Hindered(format!("its job {id} has passed {last} before; it can no longer be withdrawn"))
        }
        None if is_locked && state != JobState::Deleted => {
            Fitness::Hindered(format!("a daemon is at work on its job {id}; it can no longer be withdrawn"))
        }
        None => fits,
    }
}

/// The same of a job that was read as a whole.
pub(super) fn fitness_of(job: &Job) -> Fitness {
    let status = job.data(JobNode::Status).map(|_| job.status().value);
    fitness(job.id, status.as_ref(), job.lock().is_some())
}

impl Queue {
    /// Looks at the jobs of a batch. One that is gone, or another batch's, is left out.
    pub(super) async fn candidates(&self, batch: BatchId, ids: &[JobId]) -> Result<Candidates, Error> {
        const READS: usize = 3;
        let reads_of = |id: &JobId| {
            let node = |node| Path::JobNode(*id, node);
            [Read::Data(node(JobNode::Bid)), Read::Data(node(JobNode::Status)), Read::Existence(node(JobNode::Lock))]
        };
        let reads: Vec<_> = ids.iter().flat_map(reads_of).collect();
        let mut found = vec![Found::Nothing; reads.len()];
        self.read_each_alone(&reads, |at, answer| found[at] = answer).await?;
        let mut candidates = Candidates::default();
        for (id, found) in ids.iter().zip(found.chunks_exact(READS)) {
            let data = |at: usize| match &found[at] {
                Found::Data(data, _) => Some(data.as_slice()),
                Found::Nothing | Found::Children(_) => None,
            };
            if data(0).and_then(|bid| record::bid(bid).ok()) != Some(batch) {
                continue;
            }
            let status = data(1).map(|status| JobStatus::decode(status).value);
            match fitness(*id, status.as_ref(), found[2].exists()) {
                Fitness::Pending => candidates.pending.push(*id),
                Fitness::Held => candidates.held.push(*id),
                Fitness::Deleted => {}
                Fitness::Hindered(why) => {
                    candidates.hindered.insert(*id);
                    candidates.hindrance.get_or_insert(why);
                }
            }
        }
        Ok(candidates)
    }

    /// Reads jobs of a batch as a whole. Those that are gone, or another batch's, are left out.
    pub(super) async fn jobs_of_batch(&self, batch: BatchId, ids: &[JobId]) -> Result<Vec<Job>, Error> {
        let reads: Vec<_> = ids.iter().flat_map(|id| Job::reads(*id)).collect();
        let mut found = self.read(&reads).await?.into_iter();
        let jobs = ids.iter().filter_map(|id| {
            let job = Job::from_found(*id, found.by_ref().take(Job::READS).collect::<Vec<_>>())?;
            job.batch().is_ok_and(|own| own == batch).then_some(job)
        });
        Ok(jobs.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::BatchNode;
    use crate::testing::batch;

    #[test]
    fn a_batch_can_be_withdrawn_until_it_is_reported() {
        let of = |status: &str| hindrance_of_batch(&batch(&[(BatchNode::Status, status)], &[]));
        for state in BatchState::ALL {
            let is_open = ["Pending", "Processing", "Reporting", "Held"].contains(&state.name());
            let why = (!is_open).then(|| format!("it is {state}; it can no longer be withdrawn"));
            assert_eq!(of(&format!(r#"{{"status":"{state}"}}"#)), why);
        }
        for odd in [r#"{"status":"odd"}"#, ""] {
            assert_eq!(of(odd).as_deref(), Some("its status cannot be read"));
        }
    }

    #[test]
    fn the_jobs_to_be_deleted_are_those_pending_and_those_held() {
        let [one, two, three] = [1, 2, 3].map(JobId::new);
        let hindered = BTreeSet::from([JobId::new(4)]);
        let candidates = Candidates { pending: vec![one, three], held: vec![two], hindered, hindrance: None };
        let (pending, held) = (Some(JobState::Pending), Some(JobState::Held));
        assert_eq!(candidates.open().collect::<Vec<_>>(), [(one, pending), (three, pending), (two, held)]);
    }

    #[test]
    fn a_job_can_be_withdrawn_until_it_leaves_pending() {
        let id = JobId::new(1);
        let of = |text: &str, is_locked| match fitness(id, Some(&JobStatus::decode(text.as_bytes()).value), is_locked) {
            Fitness::Pending => "pending".to_owned(),
            Fitness::Held => "held".to_owned(),
            Fitness::Deleted => "deleted".to_owned(),
            Fitness::Hindered(why) => why,
        };
        let status = |state: &str, last: &str| format!(r#"{{"status":"{state}","last_successful_status":{last}}}"#);
        for state in ["Pending", "Held", "Deleted"] {
            assert_eq!(of(&status(state, "null"), false), state.to_lowercase());
            let passed = of(&status(state, "\"Storing\""), false);
            assert_eq!(passed, "its job jid0000000001 has passed Storing before; it can no longer be withdrawn");
        }
        let locked = of(&status("Pending", "null"), true);
        assert_eq!(locked, "a daemon is at work on its job jid0000000001; it can no longer be withdrawn");
        for state in JobState::ALL {
            let is_fit = matches!(state, JobState::Pending | JobState::Held | JobState::Deleted);
            let found = of(&status(state.name(), "null"), false);
            assert_eq!(found.contains(&format!("jid0000000001 is in {state}; it can no longer")), !is_fit, "{found}");
        }
        assert_eq!(of(&status("odd", "null"), false), "the status of its job jid0000000001 cannot be read");
        assert!(matches!(fitness(id, None, false), Fitness::Hindered(_)));
    }
}

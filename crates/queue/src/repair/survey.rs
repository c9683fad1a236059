//! The batches, references and entries of all jobs, read once for the repair of many faults.

use std::collections::{BTreeSet, HashMap};

use crate::error::Error;
use crate::handle::{Found, Queue, Read};
use crate::id::{BatchId, JobId};
use crate::job::Job;
use crate::path::{EntryName, Path, StateFolder};
use crate::state::{JobOutcome, JobState, State};

/// How many batches are listed at once.
const LISTED_AT_ONCE: usize = 1_000;

/// All queue entries and all references by their job, as they were when it was made.
///
/// An outdated survey is harmless: what it shows of a job is read again before anything is planned, and whatever a
/// transaction removes must be there. What was made since is missed, and shows as a fault again.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    entries: HashMap<JobId, Vec<Path>>,
    references: HashMap<JobId, Vec<(BatchId, JobOutcome)>>,
}

impl Queue {
    /// Lists all queue entries and all references. For some hundred thousand jobs that takes about a second.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn survey(&self) -> Result<Survey, Error> {
        let entries = self.entries_of_all().await?;
        let mut references: HashMap<JobId, Vec<(BatchId, JobOutcome)>> = HashMap::new();
        for batches in self.batches().await?.chunks(LISTED_AT_ONCE) {
            let folders = batches.iter().flat_map(|batch| JobOutcome::ALL.map(|outcome| (*batch, outcome)));
            let folders: Vec<_> = folders.collect();
            let list = |(batch, outcome): &(BatchId, JobOutcome)| Read::Children(Path::BatchOutcome(*batch, *outcome));
            let found = self.read(&folders.iter().map(list).collect::<Vec<_>>()).await?;
            for (folder, found) in folders.into_iter().zip(found) {
                for job in found.children().iter().filter_map(|name| name.parse().ok()) {
                    references.entry(job).or_default().push(folder);
                }
            }
        }
        Ok(Survey { entries, references })
    }

    /// The entries and references of one job that are there now, of those that were surveyed and those where the job's
    /// own znodes say that one should be.
    pub(super) async fn confirmed(
        &self,
        survey: &Survey,
        id: JobId,
        job: Option<&Job>,
    ) -> Result<(Vec<(StateFolder, EntryName)>, Vec<(BatchId, JobOutcome)>), Error> {
        let own = job.and_then(|job| Some(EntryName::of(job.priority().ok()?, id)));
        let own =
            own.into_iter().flat_map(|name| JobState::ALL.iter().map(move |state| Path::Entry((*state).into(), name)));
        let entries: BTreeSet<Path> = survey.entries.get(&id).into_iter().flatten().cloned().chain(own).collect();
        let batch = job.and_then(|job| job.batch().ok());
        let own = batch.into_iter().flat_map(|batch| JobOutcome::ALL.map(|outcome| (batch, outcome)));
        let references: BTreeSet<_> = survey.references.get(&id).into_iter().flatten().copied().chain(own).collect();
        let reference = |(batch, outcome): &(BatchId, JobOutcome)| Path::Reference(*batch, *outcome, id);
        let reads: Vec<_> =
            entries.iter().cloned().chain(references.iter().map(reference)).map(Read::Existence).collect();
        let mut found = self.read(&reads).await?.into_iter();
        let mut is_there = || found.next().as_ref().is_some_and(Found::exists);
        let entries: Vec<_> = entries.into_iter().filter(|_| is_there()).filter_map(entry).collect();
        let references = references.into_iter().filter(|_| is_there()).collect();
        Ok((entries, references))
    }
}

/// The parts of a queue entry's path.
pub(super) fn entry(path: Path) -> Option<(StateFolder, EntryName)> {
    match path {
        Path::Entry(folder, name) => Some((folder, name)),
        _ => None,
    }
}

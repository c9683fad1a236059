//! The context of a job: its batch, the references to it, and its queue entries.

use crate::handle::{Found, Read};
use crate::id::BatchId;
use crate::path::{BatchNode, EntryName, Path};
use crate::record::ItemStatus;
use crate::state::{BatchState, JobOutcome, JobState, State};

/// Where the batch, references and entries of a job are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobLocation {
    pub(crate) batch: BatchId,
    /// The name of its entry.
    pub(crate) old: EntryName,
    /// The name that its entry is to have.
    pub(crate) new: EntryName,
}

/// What was found there.
#[derive(Clone, Debug)]
pub(crate) struct JobContext {
    /// Whether its batch is there.
    pub(crate) has_batch: bool,
    /// Whether that was acquired.
    pub(crate) is_batch_acquired: bool,
    /// The state of that and the version of its status, where it has one.
    pub(crate) batch_status: Option<(Option<BatchState>, i32)>,
    pub(crate) references: Vec<JobOutcome>,
    pub(crate) entries: Vec<(JobState, EntryName)>,
}

impl JobLocation {
    /// The entries where one of the job may be: in each state, under its old name and its new.
    fn entries(&self) -> impl Iterator<Item = (JobState, EntryName)> + use<> {
        let Self { old, new, .. } = *self;
        let names = std::iter::once(old).chain((new != old).then_some(new));
        names.flat_map(|name| JobState::ALL.iter().map(move |state| (*state, name)))
    }

    pub(crate) fn reference(&self, outcome: JobOutcome) -> Path {
        Path::Reference(self.batch, outcome, self.new.job)
    }
}

impl JobContext {
    /// What is around a job of an acquired batch, but for the state of that.
    pub(super) fn regular(state: JobState, location: &JobLocation) -> Self {
        let (references, entries) = (vec![state.outcome()], vec![(state, location.old)]);
        Self { has_batch: true, is_batch_acquired: true, batch_status: None, references, entries }
    }

    /// Whether this is what is around a job in that state, and nothing else of it.
    pub(super) fn is_regular(&self, state: JobState, location: &JobLocation) -> bool {
        let Self { references, entries, .. } = Self::regular(state, location);
        self.has_batch && self.is_batch_acquired && self.references == references && self.entries == entries
    }

    pub(crate) fn reads(location: &JobLocation) -> Vec<Read> {
        let batch = [
            Read::Existence(Path::Batch(location.batch)),
            Read::Existence(Path::BatchNode(location.batch, BatchNode::States)),
            Read::Data(Path::BatchNode(location.batch, BatchNode::Status)),
        ];
        let references = JobOutcome::ALL.into_iter().map(|outcome| location.reference(outcome));
        let entries = location.entries().map(|(state, entry)| Path::Entry(state.into(), entry));
        batch.into_iter().chain(references.chain(entries).map(Read::Existence)).collect()
    }

    /// Takes what [`Self::reads`] found.
    pub(crate) fn from_found(location: &JobLocation, found: &mut impl Iterator<Item = Found>) -> Self {
        let mut is_there = || found.next().as_ref().is_some_and(Found::exists);
        let (has_batch, is_batch_acquired) = (is_there(), is_there());
        let batch_status = found
            .next()
            .and_then(Found::data)
            .map(|(data, stat)| (ItemStatus::decode(&data).value.status.state, stat.version));
        let mut is_there = || found.next().as_ref().is_some_and(Found::exists);
        Self {
            has_batch,
            is_batch_acquired,
            batch_status,
            references: JobOutcome::ALL.into_iter().filter(|_| is_there()).collect(),
            entries: location.entries().filter(|_| is_there()).collect(),
        }
    }
}

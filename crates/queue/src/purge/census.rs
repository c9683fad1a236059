//! All jobs by their batch, and all queue entries by their job: more than the references alone show.

use std::collections::{BTreeMap, HashMap};

use crate::batch::BatchTarget;
use crate::error::Error;
use crate::handle::{Found, Queue, Read};
use crate::id::{BatchId, JobId};
use crate::job::{Job, JobContext, JobLocation};
use crate::path::{EntryName, JobNode, Path};
use crate::record;

/// How many jobs have their batch read at once.
const ITEMS_PER_READ: usize = 10_000;

/// Which jobs name which batch, and which queue entries name which job; each looked up when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Census {
    jobs: Option<HashMap<BatchId, Vec<JobId>>>,
    entries: Option<HashMap<JobId, Vec<Path>>>,
}

impl Queue {
    /// The jobs of each batch by what the jobs themselves say, in order. Some hundred thousand jobs take less than a
    /// second. A job whose batch cannot be read is in none of the lists.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn jobs_by_batch(&self) -> Result<HashMap<BatchId, Vec<JobId>>, Error> {
        let ids = self.job_ids().await?;
        let mut jobs: HashMap<BatchId, Vec<JobId>> = HashMap::new();
        for ids in ids.chunks(ITEMS_PER_READ) {
            let reads: Vec<_> = ids.iter().map(|id| Read::Data(Path::JobNode(*id, JobNode::Bid))).collect();
            let take = |at: usize, found: Found| {
                if let Some(Ok(batch)) = found.data().map(|(data, _)| record::bid(&data)) {
                    jobs.entry(batch).or_default().push(ids[at]);
                }
            };
            self.read_each_alone(&reads, take).await?;
        }
        for jobs in jobs.values_mut() {
            jobs.sort_unstable();
        }
        Ok(jobs)
    }

    /// All jobs, in order. Names that are no job's are left out.
    pub(crate) async fn job_ids(&self) -> Result<Vec<JobId>, Error> {
        let [found] = self.read_each([Read::Children(Path::Jobs)]).await?;
        let mut ids: Vec<JobId> = found.children().iter().filter_map(|name| name.parse().ok()).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// All queue entries by their job, in whatever state and of whatever priority.
    pub(crate) async fn entries_of_all(&self) -> Result<HashMap<JobId, Vec<Path>>, Error> {
        let mut entries: HashMap<JobId, Vec<Path>> = HashMap::new();
        let folders: Vec<Path> = self.state_folders().await?.into_iter().map(Path::StateFolder).collect();
        let reads: Vec<_> = folders.iter().cloned().map(Read::Children).collect();
        for (folder, found) in folders.iter().zip(self.read(&reads).await?) {
            for name in found.children() {
                if let Some(entry) = EntryName::from_name(&name) {
                    entries.entry(entry.job).or_default().push(folder.any_child(&name));
                }
            }
        }
        Ok(entries)
    }

    /// The jobs that name a batch: those that the target lists, else what all jobs say.
    pub(crate) async fn jobs_of(&self, target: &BatchTarget, census: &mut Census) -> Result<Vec<JobId>, Error> {
        if let Some(jobs) = &target.jobs {
            return Ok(jobs.clone());
        }
        let jobs = match &mut census.jobs {
            Some(jobs) => jobs,
            none => none.insert(self.jobs_by_batch().await?),
        };
        Ok(jobs.get(&target.id).cloned().unwrap_or_default())
    }

    /// The queue entries of some jobs of a batch. They are looked for where each job's own znodes say; all folders are
    /// listed, once, where one is not found there.
    pub(super) async fn entries_of_some(
        &self,
        batch: BatchId,
        jobs: &BTreeMap<JobId, Job>,
        census: &mut Census,
    ) -> Result<HashMap<JobId, Vec<Path>>, Error> {
        let all = match &mut census.entries {
            Some(all) => all,
            none => {
                if let Some(expected) = self.expected_entries(batch, jobs).await? {
                    return Ok(expected);
                }
                none.insert(self.entries_of_all().await?)
            }
        };
        Ok(jobs.keys().filter_map(|id| Some((*id, all.get(id)?.clone()))).collect())
    }

    /// The entries of each job under its own priority, in any state; `None` where one of them has none in its own.
    async fn expected_entries(
        &self,
        batch: BatchId,
        jobs: &BTreeMap<JobId, Job>,
    ) -> Result<Option<HashMap<JobId, Vec<Path>>>, Error> {
        let locations: Option<Vec<_>> = jobs
            .values()
            .map(|job| {
                let entry = EntryName::of(job.priority().ok()?, job.id);
                Some((job.state()?, JobLocation { batch, old: entry, new: entry }))
            })
            .collect();
        let Some(locations) = locations else { return Ok(None) };
        let reads: Vec<_> = locations.iter().flat_map(|(_, location)| JobContext::reads(location)).collect();
        let mut found = self.read(&reads).await?.into_iter();
        let mut entries = HashMap::new();
        for (state, location) in &locations {
            let context = JobContext::from_found(location, &mut found);
            if context.entries.iter().all(|(other, _)| other != state) {
                return Ok(None);
            }
            let paths = context.entries.into_iter().map(|(state, entry)| Path::Entry(state.into(), entry));
            entries.insert(location.new.job, paths.collect());
        }
        Ok(Some(entries))
    }

    /// The znodes at and below some, each before its children, however deep.
    pub(crate) async fn subtree(&self, roots: Vec<Path>) -> Result<Vec<Path>, Error> {
        let mut all = Vec::new();
        let mut level = roots;
        while !level.is_empty() {
            let reads: Vec<_> = level.iter().cloned().map(Read::Children).collect();
            let found = self.read(&reads).await?;
            let mut next = Vec::new();
            for (path, found) in level.iter().zip(found) {
                if found.exists() {
                    all.push(path.clone());
                    next.extend(found.children().iter().map(|name| path.any_child(name)));
                }
            }
            level = next;
        }
        Ok(all)
    }
}

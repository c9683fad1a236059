//! The items to evaluate again.

use hashbrown::HashSet;

use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::Path;

/// The items to evaluate again, each once. Jobs, the vast majority, are kept by their ids alone.
#[derive(Debug, Default)]
pub(super) struct Touched {
    jobs: HashSet<JobId>,
    others: HashSet<Path>,
    /// Those that are being evaluated, some at a time.
    next_jobs: Vec<JobId>,
    next_others: Vec<Path>,
    /// The job that came last. What changes at once about a job is mostly read in a row.
    last: Option<JobId>,
}

impl Touched {
    pub(super) fn insert_job(&mut self, job: JobId) {
        if self.last != Some(job) {
            self.last = Some(job);
            self.jobs.insert(job);
        }
    }

    pub(super) fn insert(&mut self, item: Path) {
        if let Path::Job(job) = item {
            self.insert_job(job);
        } else {
            self.others.insert(item);
        }
    }

    pub(super) fn extend(&mut self, items: impl IntoIterator<Item = Path>) {
        items.into_iter().for_each(|item| self.insert(item));
    }

    /// Takes one of them away. Those that are touched meanwhile come after all that were before.
    pub(super) fn next(&mut self) -> Option<Path> {
        if self.next_jobs.is_empty() && self.next_others.is_empty() {
            self.last = None;
            self.next_jobs.extend(self.jobs.drain());
            self.next_others.extend(self.others.drain());
        }
        self.next_jobs.pop().map(Path::Job).or_else(|| self.next_others.pop())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.others.is_empty() && self.next_jobs.is_empty() && self.next_others.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

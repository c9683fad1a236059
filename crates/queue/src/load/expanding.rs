//! Batches whose jobs were being created while the dump was taken.
//!
//! A dump is no snapshot: how far the creation of jobs is, the batches, and the jobs are read one after another. A
//! batch that was not acquired when it was read may have jobs, which its daemon would create a second time: they are
//! left out. One that was in Processing may lack jobs although nothing was said of it yet: it is noted, and the batch
//! daemon, which leaves out the rows whose jobs exist, creates the rest.

use std::collections::{BTreeMap, BTreeSet};

use super::nodes::DumpNode;
use crate::id::{BatchId, JobId};
use crate::path::{BatchNode, JobNode, Path};
use crate::record::{self, ExpansionNote, ItemStatus};
use crate::state::BatchState;

/// What is known of the batches of a dump whose jobs were being created.
#[derive(Debug, Default)]
pub(super) struct Expanding {
    /// Whether the batch that is being read was acquired.
    is_acquired: bool,
    /// The batches that were to be acquired.
    unacquired: BTreeSet<BatchId>,
    /// Those that were in Processing.
    begun: BTreeSet<BatchId>,
    /// The znode of the job that is being read, until it is known whose job that is.
    job: Option<DumpNode>,
    /// The jobs that are left out.
    left_out: BTreeSet<JobId>,
}

impl Expanding {
    /// Takes the next znode of the dump, and gives those that are to be made, in order.
    pub(super) fn take(&mut self, node: DumpNode) -> Vec<DumpNode> {
        let mut ready = Vec::new();
        match &node.path {
            Path::Batch(_) => self.is_acquired = false,
            Path::BatchNode(_, BatchNode::States) => self.is_acquired = true,
            Path::BatchNode(id, BatchNode::Status) => {
                match ItemStatus::<BatchState>::decode(&node.data).value.status.state {
                    Some(BatchState::Pending) if !self.is_acquired => drop(self.unacquired.insert(*id)),
                    Some(BatchState::Processing) if self.is_acquired => drop(self.begun.insert(*id)),
                    Some(_) | None => {}
                }
            }
            Path::Job(_) => {
                ready.extend(self.job.replace(node));
                return ready;
            }
            Path::JobNode(id, JobNode::Bid) => {
                let batch = record::bid(&node.data).ok();
                if batch.is_some_and(|batch| self.unacquired.contains(&batch)) {
                    self.left_out.insert(*id);
                    self.job = None;
                }
            }
            _ => {}
        }
        ready.extend(self.job.take());
        if !self.is_left_out(&node.path) {
            ready.push(node);
        }
        ready
    }

    /// The znode that is still kept when there are no more.
    pub(super) fn rest(&mut self) -> Option<DumpNode> {
        self.job.take()
    }

    /// Adds a note of each batch in Processing that has none.
    pub(super) fn complete(&self, expansions: &mut BTreeMap<BatchId, ExpansionNote>) {
        for batch in &self.begun {
            expansions.entry(*batch).or_default();
        }
    }

    /// Whether it is a znode of a job that is left out, or leads to one.
    fn is_left_out(&self, path: &Path) -> bool {
        match path {
            Path::Entry(_, entry) => self.left_out.contains(&entry.job),
            Path::Reference(_, _, job) | Path::Job(job) | Path::JobNode(job, _) => self.left_out.contains(job),
            other => {
                let above = std::iter::successors(other.parent(), Path::parent);
                above.into_iter().any(|path| matches!(path, Path::Job(job) if self.left_out.contains(&job)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_a_batch_that_was_not_acquired_are_left_out_and_one_in_processing_is_noted() {
        let status = |state: &str| format!(r#"{{"status":"{state}"}}"#);
        let all = [
            ("/", String::new()),
            ("/batches/bid0000000001", String::new()),
            ("/batches/bid0000000001/status", status("Pending")),
            ("/batches/bid0000000001/submission", "{}".to_owned()),
            ("/batches/bid0000000002", String::new()),
            ("/batches/bid0000000002/states", String::new()),
            ("/batches/bid0000000002/status", status("Processing")),
            ("/batches/bid0000000003", String::new()),
            ("/batches/bid0000000003/states", String::new()),
            ("/batches/bid0000000003/status", status("Reporting")),
            // Without `states` again, after one with them.
            ("/batches/bid0000000004", String::new()),
            ("/batches/bid0000000004/status", status("Pending")),
            ("/batches/bid0000000005", String::new()),
            ("/batches/bid0000000005/states", String::new()),
            ("/batches/bid0000000005/status", status("Pending")),
            ("/batches/bid0000000006", String::new()),
            ("/batches/bid0000000006/status", status("Processing")),
            ("/jobs", String::new()),
            ("/jobs/jid0000000001", String::new()),
            ("/jobs/jid0000000001/bid", "bid0000000001".to_owned()),
            ("/jobs/jid0000000001/status", String::new()),
            ("/jobs/jid0000000001/unknown", String::new()),
            ("/jobs/jid0000000001/unknown/more", String::new()),
            ("/jobs/jid0000000002", String::new()),
            ("/jobs/jid0000000002/bid", "bid0000000002".to_owned()),
            ("/jobs/jid0000000003", String::new()),
            ("/jobs/jid0000000004", String::new()),
            ("/jobs/jid0000000004/bid", "bid0000000004".to_owned()),
            ("/jobs/jid0000000005", String::new()),
            ("/jobs/jid0000000005/bid", "bid0000000005".to_owned()),
            ("/jobs/states", String::new()),
            ("/jobs/states/pending", String::new()),
            ("/jobs/states/pending/05-jid0000000001", String::new()),
            ("/jobs/states/pending/05-jid0000000002", String::new()),
            ("/jobs/jid0000000009", String::new()),
        ];
        let mut expanding = Expanding::default();
        let node =
            |(path, data): &(&str, String)| DumpNode { path: Path::parse(path), data: data.clone().into(), unit: 1 };
        let taken: Vec<_> = all.iter().map(node).flat_map(|node| expanding.take(node)).collect();
        let taken: Vec<_> = taken.into_iter().chain(expanding.rest()).map(|node| node.path.to_string()).collect();
        let is_left_out = |path: &str| ["jid0000000001", "jid0000000004"].iter().any(|job| path.contains(job));
        let expected: Vec<_> =
            all.iter().map(|(path, _)| (*path).to_owned()).filter(|path| !is_left_out(path)).collect();
        assert_eq!(taken, expected);
        let known = ExpansionNote { next: 7, ..ExpansionNote::default() };
        for known in [None, Some(known)] {
            let second = BatchId::new(2);
            let mut notes: BTreeMap<_, _> = known.clone().map(|note| (second, note)).into_iter().collect();
            expanding.complete(&mut notes);
            assert_eq!(notes, BTreeMap::from([(second, known.unwrap_or_default())]));
        }
    }
}

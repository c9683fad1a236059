//! What our credentials do not allow us to read.

use super::Image;
use super::row::Nodes;
use queuekeeper_queue::path::{BatchNode, JobNode, Path, RequestNode};

impl Image {
    /// Whether the image knows a znode of a job, batch or request by what was read there. It does not where there is
    /// none, or one that is closed to us.
    pub(in crate::mirror) fn knows(&self, path: &Path) -> bool {
        let Some((present, closed)) = self.nodes_of(path) else { return false };
        let node = match path {
            Path::JobNode(_, node) => *node as u8,
            Path::BatchNode(_, node) => *node as u8,
            Path::RequestNode(_, _, node) => *node as u8,
            _ => Nodes::SELF,
        };
        present.has(node) && !closed.has(node)
    }

    /// The znodes of a job, batch or request that are there and closed to us.
    pub(in crate::mirror) fn closed_nodes(&self, item: &Path) -> Vec<Path> {
        let Some((_, closed)) = self.nodes_of(item).filter(|(_, closed)| !closed.is_empty()) else { return Vec::new() };
        let own = closed.has(Nodes::SELF).then(|| item.clone());
        let is_closed = |node: u8| closed.has(node);
        let below: Vec<_> = match *item {
            Path::Job(job) => {
                let nodes = JobNode::ALL.iter().filter(|node| is_closed(**node as u8));
                nodes.map(|node| Path::JobNode(job, *node)).collect()
            }
            Path::Batch(batch) => {
                let nodes = BatchNode::ALL.iter().filter(|node| is_closed(**node as u8));
                nodes.map(|node| Path::BatchNode(batch, *node)).collect()
            }
            Path::Request(queue, request) => {
                let nodes = RequestNode::ALL.iter().filter(|node| is_closed(**node as u8));
                nodes.map(|node| Path::RequestNode(queue, request, *node)).collect()
            }
            _ => Vec::new(),
        };
        own.into_iter().chain(below).collect()
    }

    /// Which znodes are there, of the job, batch or request that a path belongs to, and which of them are closed to us;
    /// `None` where the image has no such item.
    fn nodes_of(&self, path: &Path) -> Option<(Nodes, Nodes)> {
        let (present, unreadable, malformed) = match path {
            Path::Job(job) | Path::JobNode(job, _) => {
                let row = self.jobs.get(*job)?;
                (row.nodes, row.unreadable, row.malformed)
            }
            Path::Batch(batch) | Path::BatchNode(batch, _) => {
                let item = &self.batches.get(*batch)?.item;
                (item.nodes, item.unreadable, item.malformed)
            }
            Path::Request(queue, request) | Path::RequestNode(queue, request, _) => {
                let item = &self.access.queue(*queue).get(*request)?.item;
                (item.nodes, item.unreadable, item.malformed)
            }
            _ => return None,
        };
        Some((present, unreadable.without(malformed)))
    }
}

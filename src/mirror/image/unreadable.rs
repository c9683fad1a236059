//! Which znodes cannot be read.

use super::Image;
use queuekeeper_queue::path::{AccessQueue, BatchNode, JobNode, Path, RequestNode};
use queuekeeper_queue::state::JobOutcome;

/// The most that answers and log lines name: enough to see what they have in common, and little to send.
pub(in crate::mirror) const NAMED: usize = 100;

impl Image {
    /// The znodes that cannot be decoded, are not readable, or have an unexpected name, at most `most` of them:
    /// folders first, since what is below a closed one is missing altogether, and of jobs those of any.
    ///
    /// They are searched for on each call, because calls and unreadable znodes are rare. Kinds without any are skipped.
    pub(in crate::mirror) fn unreadable_paths(&self, most: usize) -> Vec<Path> {
        let mut folders: Vec<_> = self.denied.iter().cloned().collect();
        folders.sort();
        let names = self.unexpected.iter().map(|path| Path::Unexpected(path.clone()));
        let some = |count: i64| count > 0;
        let batches = some(self.batches.unreadable).then(|| self.batches.iter()).into_iter().flatten();
        let batches = batches.flat_map(|(batch, entry)| {
            let own = std::iter::once(Path::Batch(batch));
            let nodes = BatchNode::ALL.iter().map(move |node| Path::BatchNode(batch, *node));
            let folders = JobOutcome::ALL.into_iter().map(move |outcome| Path::BatchOutcome(batch, outcome));
            let is_any = !entry.item.unreadable.is_empty() || entry.denied.contains(&true);
            is_any.then(|| own.chain(nodes).chain(folders)).into_iter().flatten()
        });
        let requests = some(self.access.unreadable).then(|| AccessQueue::ALL.iter().copied()).into_iter().flatten();
        let requests = requests.flat_map(|queue| {
            let entries = self.access.queue(queue).iter().filter(|(_, entry)| !entry.item.unreadable.is_empty());
            entries.flat_map(move |(request, _)| {
                let nodes = RequestNode::ALL.iter().map(move |node| Path::RequestNode(queue, request, *node));
                std::iter::once(Path::Request(queue, request)).chain(nodes)
            })
        });
        let locks = some(self.locks.unreadable).then(|| self.locks.iter()).into_iter().flatten();
        let locks = locks.map(|(_, path, _)| path.clone());
        let uuids = some(self.uuids.unreadable).then(|| self.uuids.iter()).into_iter().flatten();
        let uuids = uuids.map(|uuid| Path::BatchUuid(uuid.into()));
        let end = if some(self.jobs.unreadable) { self.jobs.slots() } else { 0 };
        let jobs = self.jobs.slice(0..end).filter(|row| !row.unreadable.is_empty());
        let jobs = jobs.flat_map(|row| {
            let id = row.id();
            let nodes = JobNode::ALL.iter().map(move |node| Path::JobNode(id, *node));
            std::iter::once(Path::Job(id)).chain(nodes)
        });
        let all = folders.into_iter().chain(names).chain(batches).chain(requests).chain(locks).chain(uuids).chain(jobs);
        // Behind the last of them there is nothing to look for.
        let count = usize::try_from(self.unreadable()).unwrap_or(0);
        all.filter(|path| self.is_unreadable(path)).take(most.min(count)).collect()
    }
}

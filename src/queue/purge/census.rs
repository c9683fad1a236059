//! All jobs by their batch, and all queue entries by their job: what references alone do not tell.

use std::collections::HashMap;

use crate::queue::error::Error;
use crate::queue::handle::{Queue, Read};
use crate::queue::id::{BatchId, JobId};
use crate::queue::path::{EntryName, JobNode, Path};
use crate::queue::record;

/// Which jobs name which batch, and which queue entries name which job.
#[derive(Debug, Default)]
pub(super) struct Census {
    pub(super) jobs: HashMap<BatchId, Vec<JobId>>,
    pub(super) entries: HashMap<JobId, Vec<Path>>,
}

impl Queue {
    /// Counts in all jobs. Some hundred thousand take less than a second.
    pub(super) async fn census(&self) -> Result<Census, Error> {
        let mut census = Census::default();
        let folders: Vec<Path> = self.state_folders().await?.into_iter().map(Path::StateFolder).collect();
        let reads: Vec<_> = folders.iter().cloned().map(Read::Children).collect();
        for (folder, found) in folders.iter().zip(self.read(&reads).await?) {
            for name in found.children() {
                if let Some(entry) = EntryName::from_name(&name) {
                    census.entries.entry(entry.job).or_default().push(folder.any_child(&name));
                }
            }
        }
        let [found] = self.read_each([Read::Children(Path::Jobs)]).await?;
        let mut ids: Vec<JobId> = found.children().iter().filter_map(|name| name.parse().ok()).collect();
        ids.sort_unstable();
        let reads: Vec<_> = ids.iter().map(|id| Read::Data(Path::JobNode(*id, JobNode::Bid))).collect();
        for (id, found) in ids.into_iter().zip(self.read(&reads).await?) {
            if let Some(Ok(batch)) = found.data().map(|(data, _)| record::bid(&data)) {
                census.jobs.entry(batch).or_default().push(id);
            }
        }
        Ok(census)
    }

    /// The znodes at and below some, each before its children, however deep.
    pub(super) async fn subtree(&self, roots: Vec<Path>) -> Result<Vec<Path>, Error> {
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

//! Lists and counts.

use std::collections::BTreeMap;

use super::error::Error;
use super::handle::{Queue, Read};
use super::id::{BatchId, RequestId};
use super::path::{AccessQueue, EntryName, Path, StateFolder};
use super::state::{JobState, State};

/// The queue entries of one state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// In the order of work.
    pub entries: Vec<EntryName>,
    /// Names that are no entry's, sorted.
    pub unreadable: Vec<String>,
}

impl Queue {
    /// Lists the queue entries of a state. An entry may be faulty: the state of a job is that of its status.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn entries(&self, state: JobState) -> Result<Entries, Error> {
        let [found] = self.read_each([Read::Children(Path::StateFolder(state.into()))]).await?;
        let mut names = found.children();
        names.sort_unstable();
        let mut list = Entries::default();
        for name in names {
            match EntryName::from_name(&name) {
                Some(entry) => list.entries.push(entry),
                None => list.unreadable.push(name),
            }
        }
        Ok(list)
    }

    /// How many queue entries each state's folder has, also those of states that we do not know. Known states are
    /// always among them.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn count_entries(&self) -> Result<BTreeMap<StateFolder, u32>, Error> {
        let folders = self.state_folders().await?;
        let reads: Vec<_> = folders.iter().map(|folder| Read::Data(Path::StateFolder(folder.clone()))).collect();
        let found = self.read(&reads).await?;
        let counts = found.iter().map(|found| found.stat().map_or(0, |stat| stat.num_children.unsigned_abs()));
        Ok(folders.into_iter().zip(counts).collect())
    }

    /// Lists the batches, oldest first. Names that are no batch's are left out.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn batches(&self) -> Result<Vec<BatchId>, Error> {
        let [found] = self.read_each([Read::Children(Path::Batches)]).await?;
        let mut batches: Vec<_> = found.children().iter().filter_map(|name| name.parse().ok()).collect();
        batches.sort_unstable();
        Ok(batches)
    }

    /// Lists the access requests of a queue, oldest first. Names that are no request's are left out.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn requests(&self, queue: AccessQueue) -> Result<Vec<RequestId>, Error> {
        let [found] = self.read_each([Read::Children(Path::AccessQueue(queue))]).await?;
        let mut requests: Vec<_> = found.children().iter().filter_map(|name| name.parse().ok()).collect();
        requests.sort_unstable();
        Ok(requests)
    }

    /// The folders of queue entries: those of all states that we know, and what others there are.
    pub(super) async fn state_folders(&self) -> Result<Vec<StateFolder>, Error> {
        let [found] = self.read_each([Read::Children(Path::JobStates)]).await?;
        let others = found.children().into_iter().filter_map(|name| StateFolder::from_name(&name));
        let mut folders: Vec<_> = others.filter(|folder| folder.state().is_none()).collect();
        folders.sort_unstable();
        folders.extend(JobState::ALL.iter().map(|state| StateFolder::Known(*state)));
        Ok(folders)
    }
}

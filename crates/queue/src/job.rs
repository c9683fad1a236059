//! A job as its znodes say it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use zookeeper_client::Stat;

use super::error::Error;
use super::handle::{Found, Queue, Read, instant};
use super::id::{BatchId, JobId, Priority};
use super::lock::Lock;
use super::path::{JobNode, Path};
use super::record::{self, Configuration, Decoded, Identifiers, JobStatus, Malformed};
use super::state::JobState;
use super::transaction::{Committed, Operation, Transaction};

mod change;
mod context;
mod edit;
mod plan;
mod target;
mod update;
mod value;

pub(super) use context::{JobContext, JobLocation};
pub use edit::{JobChange, JobChanged};
pub use plan::JobPlan;
pub(super) use plan::state_of;
pub use target::{JobTarget, LockedJob};
pub(super) use update::values_of_new;
pub use value::JobValue;

/// A job as one request found it: all its znodes at one moment, with their versions.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    nodes: BTreeMap<JobNode, (Vec<u8>, Stat)>,
}

impl Queue {
    /// Reads a job, in one round trip. What cannot be read in its values shows in what they decode to.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is no such job, [`Error::Read`] where it cannot be read.
    pub async fn load_job(&self, id: JobId) -> Result<Job, Error> {
        let found = self.read(&Job::reads(id)).await?;
        Job::from_found(id, found).ok_or(Error::Missing(Path::Job(id)))
    }
}

impl Job {
    /// How many reads a job takes.
    pub(super) const READS: usize = JobNode::ALL.len() + 1;

    pub(super) fn reads(id: JobId) -> Vec<Read> {
        let nodes = JobNode::ALL.iter().map(|node| Read::Data(Path::JobNode(id, *node)));
        std::iter::once(Read::Data(Path::Job(id))).chain(nodes).collect()
    }

    /// Takes what [`Self::reads`] found; `None` where there is no such job.
    pub(super) fn from_found(id: JobId, found: impl IntoIterator<Item = Found>) -> Option<Self> {
        let mut found = found.into_iter();
        if !found.next()?.exists() {
            return None;
        }
        let nodes = JobNode::ALL.iter().zip(found).filter_map(|(node, found)| Some((*node, found.data()?))).collect();
        Some(Self { id, nodes })
    }

    /// The job as a transaction left it that was made for it as it is here.
    fn after(mut self, transaction: &Transaction, committed: &Committed) -> Self {
        for (operation, stat) in transaction.operations().iter().zip(&committed.stats) {
            let Path::JobNode(id, node) = operation.path() else { continue };
            if *id != self.id {
                continue;
            }
            match operation {
                Operation::Set { data, version, .. } => {
                    let set = |old: &Stat| Stat { version: version.wrapping_add(1), ..*old };
                    if let Some(stat) = stat.or_else(|| self.stat(*node).map(set)) {
                        self.nodes.insert(*node, (data.clone(), stat));
                    }
                }
                Operation::Create { data, .. } => {
                    // Servers answer a creation without its stat. That of the status, which is set by the same
                    // transaction, has its times; the rest of a new znode is known.
                    let of_status = || self.stat(JobNode::Status).map(|status| new_stat(status, data.len()));
                    if let Some(stat) = stat.or_else(of_status) {
                        self.nodes.insert(*node, (data.clone(), stat));
                    }
                }
                Operation::Delete { .. } => drop(self.nodes.remove(node)),
                Operation::Check { .. } => {}
            }
        }
        self
    }

    /// A znode's data as it is; `None` where there is no such znode.
    #[must_use]
    pub fn data(&self, node: JobNode) -> Option<&[u8]> {
        self.nodes.get(&node).map(|(data, _)| data.as_slice())
    }

    /// A znode's stat; `None` where there is no such znode.
    #[must_use]
    pub fn stat(&self, node: JobNode) -> Option<&Stat> {
        self.nodes.get(&node).map(|(_, stat)| stat)
    }

    /// Its decoded status.
    #[must_use]
    pub fn status(&self) -> Decoded<JobStatus<'_>> {
        JobStatus::decode(self.data(JobNode::Status).unwrap_or_default())
    }

    /// The state that its status names, in any spelling; `None` for one that we do not know, or none.
    #[must_use]
    pub fn state(&self) -> Option<JobState> {
        self.status().value.status.state
    }

    /// The version of its status, which changes with each change of state; `None` where it has no status.
    #[must_use]
    pub fn version(&self) -> Option<i32> {
        self.stat(JobNode::Status).map(|stat| stat.version)
    }

    /// When it entered its state, by the server's clock; `None` where it has no status.
    #[must_use]
    pub fn entered(&self) -> Option<Timestamp> {
        self.stat(JobNode::Status).map(|stat| instant(stat.mtime))
    }

    /// Its batch.
    ///
    /// # Errors
    /// Where `bid` is missing or no batch's id.
    pub fn batch(&self) -> Result<BatchId, Error> {
        self.value(JobNode::Bid, record::bid)
    }

    /// Its priority.
    ///
    /// # Errors
    /// Where `priority` is missing or out of range.
    pub fn priority(&self) -> Result<Priority, Error> {
        self.value(JobNode::Priority, record::priority)
    }

    /// How many bytes of working storage it needs; `None` where that is not known.
    ///
    /// # Errors
    /// Where `space_needed` is missing or no number of bytes.
    pub fn space_needed(&self) -> Result<Option<u64>, Error> {
        self.value(JobNode::SpaceNeeded, record::space_needed)
    }

    /// Its parameters; empty where it has none.
    #[must_use]
    pub fn configuration(&self) -> Decoded<Configuration<'_>> {
        let none = Decoded { value: Configuration::default(), malformed: None };
        self.data(JobNode::Configuration).map_or(none, Configuration::decode)
    }

    /// Its ARK and local ids; empty where it has none yet.
    #[must_use]
    pub fn identifiers(&self) -> Decoded<Identifiers<'_>> {
        let none = Decoded { value: Identifiers::default(), malformed: None };
        let data = self.data(JobNode::Identifiers).or(self.data(JobNode::Identifier));
        data.map_or(none, Identifiers::decode)
    }

    /// Its lock, if it is held.
    #[must_use]
    pub fn lock(&self) -> Option<Lock> {
        self.stat(JobNode::Lock).map(|stat| Lock::from_stat(Path::JobNode(self.id, JobNode::Lock), stat))
    }

    /// Whether the Java daemons can load it; acquiring it makes them throw otherwise. That its batch is there with its
    /// `states` is the rest of their condition, and not shown by the job's own znodes.
    ///
    /// # Errors
    /// The first thing that they reject.
    pub fn check_loadable(&self) -> Result<JobState, Error> {
        self.batch()?;
        self.priority()?;
        self.space_needed()?;
        let decode = |node, malformed| Error::Decode { path: Path::JobNode(self.id, node), malformed };
        if self.data(JobNode::Status).is_none() {
            return Err(Error::Missing(Path::JobNode(self.id, JobNode::Status)));
        }
        let Decoded { value: status, malformed } = self.status();
        let no_retries = || status.retry_count.is_none().then_some(Malformed::Missing("retry_count"));
        let unknown = Malformed::Wrong { what: "status", expected: "the name of a state as the daemons write it" };
        if let Some(malformed) = malformed.or_else(no_retries) {
            return Err(decode(JobNode::Status, malformed));
        }
        let state = status.status.state.filter(|_| status.status.is_canonical());
        let state = state.ok_or(decode(JobNode::Status, unknown))?;
        let objects = [
            JobNode::Configuration,
            JobNode::Identifiers,
            JobNode::Identifier,
            JobNode::Metadata,
            JobNode::Store,
            JobNode::Inventory,
        ];
        for node in objects {
            if let Some(Err(malformed)) = self.data(node).map(record::object_form) {
                return Err(decode(node, malformed));
            }
        }
        Ok(state)
    }

    fn value<T>(&self, node: JobNode, read: impl FnOnce(&[u8]) -> Result<T, Malformed>) -> Result<T, Error> {
        let path = Path::JobNode(self.id, node);
        let Some(data) = self.data(node) else { return Err(Error::Missing(path)) };
        read(data).map_err(|malformed| Error::Decode { path, malformed })
    }
}

/// The stat of a persistent znode that was created by the transaction in which another was set last.
fn new_stat(set: &Stat, bytes: usize) -> Stat {
    Stat {
        czxid: set.mzxid,
        mzxid: set.mzxid,
        pzxid: set.mzxid,
        ctime: set.mtime,
        mtime: set.mtime,
        version: 0,
        cversion: 0,
        aversion: 0,
        ephemeral_owner: 0,
        data_length: i32::try_from(bytes).unwrap_or(i32::MAX),
        num_children: 0,
    }
}

#[cfg(test)]
mod tests;

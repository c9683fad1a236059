//! Changes of a job's values that are no change of its state: `status` is checked and not written.

use serde_json::json;
use zookeeper_client::Stat;

use super::{Job, JobTarget};
use crate::error::Error;
use crate::handle::Queue;
use crate::id::JobId;
use crate::lock::ChangeTarget as _;
use crate::path::{JobNode, Path};
use crate::record::{self, Malformed};
use crate::transaction::Transaction;

/// A value of a job. Keys that are not named here are kept as they are in the znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobValue {
    /// How many bytes of working storage it needs; `None` for not known.
    SpaceNeeded(Option<u64>),
    /// What it is called.
    Identifiers {
        /// The ARK; empty until it is minted.
        ark: String,
        /// The depositor's own names.
        local_ids: Vec<String>,
    },
    /// Its kernel metadata.
    Metadata {
        /// Who made it.
        who: String,
        /// What it is.
        what: String,
        /// When it was made.
        when: String,
        /// Where it is.
        location: String,
    },
    /// What the storage service is to do.
    Store {
        /// Where the manifest is.
        manifest_url: String,
        /// As `action/node/ark`.
        mode: String,
        /// What is to be deleted, if the daemon reports it, in its own form.
        delete: Option<serde_json::Value>,
    },
    /// What the inventory is to do.
    Inventory {
        /// Where the manifest is.
        manifest_url: String,
        /// What to do with it.
        mode: String,
    },
}

impl JobValue {
    pub(super) fn node(&self) -> JobNode {
        match self {
            Self::SpaceNeeded(_) => JobNode::SpaceNeeded,
            Self::Identifiers { .. } => JobNode::Identifiers,
            Self::Metadata { .. } => JobNode::Metadata,
            Self::Store { .. } => JobNode::Store,
            Self::Inventory { .. } => JobNode::Inventory,
        }
    }

    /// The znode's new data over its old; empty for a new znode.
    pub(crate) fn data(&self, old: &[u8]) -> Result<Vec<u8>, Malformed> {
        match self {
            Self::SpaceNeeded(bytes) => Ok(bytes.unwrap_or(0).to_string().into_bytes()),
            Self::Identifiers { ark, local_ids } => {
                let local_ids: Vec<&str> = local_ids.iter().map(String::as_str).collect();
                record::identifiers(old, ark, &local_ids)
            }
            Self::Metadata { who, what, when, location } => record::merged(
                old,
                [
                    ("erc_who", json!(who)),
                    ("erc_what", json!(what)),
                    ("erc_when", json!(when)),
                    ("erc_where", json!(location)),
                ],
            ),
            Self::Store { manifest_url, mode, delete } => {
                let delete = delete.clone().map(|delete| ("delete", delete));
                let keys = [("manifest_url", json!(manifest_url)), ("mode", json!(mode))];
                record::merged(old, keys.into_iter().chain(delete))
            }
            Self::Inventory { manifest_url, mode } => {
                record::merged(old, [("manifest_url", json!(manifest_url)), ("mode", json!(mode))])
            }
        }
    }
}

impl Queue {
    /// Sets values of a job, all in one `multi`, in two round trips. A lock that we hold is kept.
    ///
    /// # Errors
    /// [`Error::Decode`] where a znode holds something that is not ours to throw away, [`Error::Invalid`] for more
    /// bytes of space than the daemons can read; else as [`Queue::change_job`].
    pub async fn update_job(&self, target: impl Into<JobTarget>, values: &[JobValue]) -> Result<(), Error> {
        let target = target.into();
        let job = self.load_job(target.id).await?;
        target.check(&job)?;
        let mut transaction = Transaction::new();
        target.open(&mut transaction);
        transaction.check(Path::JobNode(job.id, JobNode::Status), job.version().unwrap_or_default());
        for value in values {
            add(&mut transaction, &job, value)?;
        }
        target.close(&mut transaction);
        self.commit(&transaction).await.map(|_| ())
    }
}

pub(super) fn add(transaction: &mut Transaction, job: &Job, value: &JobValue) -> Result<(), Error> {
    let path = Path::JobNode(job.id, value.node());
    if let JobValue::SpaceNeeded(Some(bytes)) = value
        && i64::try_from(*bytes).is_err()
    {
        return Err(Error::Invalid {
            path,
            reason: format!("{bytes} bytes exceed the integer range that the daemons read"),
        });
    }
    let own = |node| job.data(node).zip(job.stat(node));
    // The older name of the same node would be left behind as a second truth.
    let older = match value {
        JobValue::Identifiers { .. } => own(JobNode::Identifier),
        JobValue::SpaceNeeded(_) | JobValue::Metadata { .. } | JobValue::Store { .. } | JobValue::Inventory { .. } => {
            None
        }
    };
    let current: Option<(&[u8], &Stat)> = own(value.node());
    let old = current.or(older).map(|(data, _)| data).unwrap_or_default();
    let data = value.data(old).map_err(|malformed| Error::Decode { path: path.clone(), malformed })?;
    match current {
        Some((_, stat)) => transaction.set(path, data, stat.version),
        None => transaction.create(path, data),
    };
    if let Some((_, stat)) = older {
        transaction.delete(Path::JobNode(job.id, JobNode::Identifier), Some(stat.version));
    }
    Ok(())
}

/// The znodes that a new job's values make, `space_needed` always among them: the daemons do not load a job without.
pub(crate) fn values_of_new(id: JobId, values: &[JobValue]) -> Result<Vec<(JobNode, Vec<u8>)>, Error> {
    let data = |value: &JobValue| {
        let path = Path::JobNode(id, value.node());
        value.data(&[]).map(|data| (value.node(), data)).map_err(|malformed| Error::Decode { path, malformed })
    };
    let is_space = |value: &JobValue| value.node() == JobNode::SpaceNeeded;
    let unknown = (!values.iter().any(is_space)).then_some(JobValue::SpaceNeeded(None));
    unknown.iter().chain(values).map(data).collect()
}

//! Changes of a job's values that are no change of its state: `status` is checked and not written.

use zookeeper_client::Stat;

use super::{Job, JobTarget, JobValue};
use crate::error::Error;
use crate::handle::Queue;
use crate::id::JobId;
use crate::lock::ChangeTarget as _;
use crate::path::{JobNode, Path};
use crate::transaction::Transaction;

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

//! Removing the znodes of one final job or access request, in one `multi`.

use crate::access::RequestTarget;
use crate::batch::readable_state;
use crate::error::{ConflictKind, Error};
use crate::handle::{Found, Queue, Read};
use crate::id::Priority;
use crate::job::{Job, JobContext, JobLocation, JobTarget, state_of};
use crate::lock::ChangeTarget as _;
use crate::path::{BatchNode, EntryName, JobNode, Path, RequestNode};
use crate::record::Malformed;
use crate::state::{AccessState, BatchState, JobState, State};
use crate::transaction::Transaction;

/// The removal of one item that is ready to be committed, or to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purge<S> {
    /// The job or access request.
    pub item: Path,
    /// The state that it is in.
    pub from: S,
    /// The version of its status.
    pub version: i32,
    /// What will be done.
    pub transaction: Transaction,
}

impl Queue {
    /// Plans to remove one Completed or Deleted job with its queue entries and references.
    ///
    /// Its batch must have been reported, or its depositor would never hear of the job: be Completed, Failed or
    /// Deleted, or gone. One round trip where the target says where the job is; more where it has a znode that no job
    /// has, or no queue entry under its own state and priority.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a job that is not final or whose batch was not reported; [`Error::Conflict`] where it is
    /// held or was changed since it was seen; [`Error::Missing`] and [`Error::Decode`] for a job whose znodes do not
    /// show its state and batch; [`Error::Read`].
    pub async fn plan_purge_job(&self, target: impl Into<JobTarget>) -> Result<Purge<JobState>, Error> {
        let target = target.into();
        let own = Path::Job(target.id);
        let hint = target.location();
        let mut reads = Job::reads(target.id);
        reads.push(Read::Children(own.clone()));
        reads.extend(hint.iter().flat_map(JobContext::reads));
        let mut found = self.read(&reads).await?.into_iter();
        let job = Job::from_found(target.id, found.by_ref().take(Job::READS));
        let names = found.next().map(Found::children).unwrap_or_default();
        let hinted = hint.map(|hint| (hint, JobContext::from_found(&hint, &mut found)));
        let job = job.ok_or(Error::Missing(own.clone()))?;
        target.check(&job)?;
        let state = state_of(&job)?;
        if !state.is_final() {
            return Err(not_final(own, &state));
        }
        let entry = EntryName::of(job.priority().unwrap_or(Priority::MAX), job.id);
        let location = JobLocation { batch: job.batch()?, old: entry, new: entry };
        let context = match hinted.filter(|(hint, _)| *hint == location) {
            Some((_, context)) => context,
            None => JobContext::from_found(&location, &mut self.read(&JobContext::reads(&location)).await?.into_iter()),
        };
        let reported = check_reported(&location, &context)?;
        let entries = if context.entries.iter().any(|(other, _)| *other == state) {
            context.entries.iter().map(|(state, entry)| Path::Entry((*state).into(), *entry)).collect()
        } else {
            self.entries_of_all().await?.remove(&job.id).unwrap_or_default()
        };
        let nodes = match children(&job, &names) {
            Some(children) => children,
            None => self.subtree(vec![own.clone()]).await?.into_iter().skip(1).collect(),
        };

        let version = job.version().unwrap_or_default();
        let (status, lock) = (Path::JobNode(job.id, JobNode::Status), Path::JobNode(job.id, JobNode::Lock));
        let mut transaction = Transaction::new();
        target.open(&mut transaction);
        if let Some(version) = reported {
            transaction.check(Path::BatchNode(location.batch, BatchNode::Status), version);
        }
        for path in nodes.into_iter().rev().filter(|path| *path != lock) {
            let version = (path == status).then_some(version);
            transaction.delete(path, version);
        }
        let references = context.references.iter().map(|outcome| location.reference(*outcome));
        for path in entries.into_iter().chain(references) {
            transaction.delete(path, None);
        }
        target.release(&mut transaction);
        transaction.delete(own.clone(), None);
        Ok(Purge { item: own, from: state, version, transaction })
    }

    /// Plans to remove one Completed or Deleted access request.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a request that is not final, [`Error::Conflict`] where it is held or was changed since it
    /// was seen, [`Error::Missing`] and [`Error::Decode`] where its status cannot be read, [`Error::Read`].
    pub async fn plan_purge_request(&self, target: impl Into<RequestTarget>) -> Result<Purge<AccessState>, Error> {
        let target = target.into();
        let request = self.load_request(target.queue, target.id).await?;
        target.check(&request)?;
        let own = Path::Request(request.queue, request.id);
        let node = |node| Path::RequestNode(request.queue, request.id, node);
        let (status, lock) = (node(RequestNode::Status), node(RequestNode::Lock));
        let state = readable_state(status.clone(), request.status())?;
        if !state.is_final() {
            return Err(not_final(own, &state));
        }
        let version = request.version().unwrap_or_default();
        let mut transaction = Transaction::new();
        target.open(&mut transaction);
        for path in self.subtree(vec![own.clone()]).await?.into_iter().skip(1).rev().filter(|path| *path != lock) {
            let version = (path == status).then_some(version);
            transaction.delete(path, version);
        }
        target.release(&mut transaction);
        transaction.delete(own.clone(), None);
        Ok(Purge { item: own, from: state, version, transaction })
    }

    /// Removes one Completed or Deleted access request, in one `multi`.
    ///
    /// # Errors
    /// As [`Queue::plan_purge_request`] and [`Queue::commit`].
    pub async fn purge_request(&self, target: impl Into<RequestTarget>) -> Result<(), Error> {
        let plan = self.plan_purge_request(target).await?;
        self.commit(&plan.transaction).await.map(|_| ())
    }
}

/// Refuses a job that was not reported to its depositor yet. Returns the version of its batch's status that shows it.
fn check_reported(location: &JobLocation, context: &JobContext) -> Result<Option<i32>, Error> {
    let item = Path::Job(location.new.job);
    let batch = location.batch;
    let reason = match context.batch_status {
        None if !context.has_batch => return Ok(None),
        Some((Some(BatchState::Completed | BatchState::Failed | BatchState::Deleted), version)) => {
            return Ok(Some(version));
        }
        Some((Some(state), _)) => {
            format!("its batch {batch} is {state}, and its depositor learns about the job only from the batch's report")
        }
        Some((None, _)) | None => format!("the status of its batch {batch} does not show whether it was reported"),
    };
    Err(Error::Invalid { path: item, reason })
}

/// A job's children, where they are all known and have none themselves.
fn children(job: &Job, names: &[String]) -> Option<Vec<Path>> {
    let child = |name: &String| {
        let node = JobNode::from_name(name)?;
        let is_leaf = job.stat(node).is_some_and(|stat| stat.num_children == 0);
        is_leaf.then_some(Path::JobNode(job.id, node))
    };
    names.iter().map(child).collect()
}

pub(super) fn not_final(path: Path, state: &impl State) -> Error {
    Error::Invalid { path, reason: format!("it is {state}, and only what is Completed or Deleted may be purged") }
}

/// Refuses a job that a daemon is processing.
pub(super) fn check_unlocked(job: &Job) -> Result<(), Error> {
    job.lock().map_or(Ok(()), |lock| {
        Err(Error::conflict(lock.path, ConflictKind::Locked { session: lock.session, since: lock.since }))
    })
}

/// Refuses a job that a daemon is processing, or may be.
pub(super) fn check_removable(job: &Job) -> Result<(), Error> {
    check_unlocked(job)?;
    let status = job.status();
    match (status.value.status.state, job.data(JobNode::Status)) {
        (Some(state), _) if JobState::is_final(state) => Ok(()),
        (Some(state), _) => Err(not_final(Path::Job(job.id), &state)),
        // No daemon can process a job without a status.
        (None, None) => Ok(()),
        (None, Some(_)) => {
            let unknown = Malformed::Wrong { what: "status", expected: "the name of a state" };
            let path = Path::JobNode(job.id, JobNode::Status);
            Err(Error::Decode { path, malformed: status.malformed.unwrap_or(unknown) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{BatchId, JobId};
    use crate::path::EntryName;
    use crate::testing::job;

    const STATUS: (JobNode, &str) = (JobNode::Status, r#"{"status":"Completed"}"#);

    #[test]
    fn only_a_job_that_no_daemon_processes_is_removed() {
        for (nodes, problem) in [
            (&[STATUS][..], None),
            (&[(JobNode::Status, r#"{"status":"deleted"}"#)], None),
            (&[], None),
            (
                &[(JobNode::Status, r#"{"status":"Failed"}"#)],
                Some("it is Failed, and only what is Completed or Deleted"),
            ),
            (&[(JobNode::Status, r#"{"status":"odd"}"#)], Some("status is not the name of a state")),
            (&[(JobNode::Status, "x")], Some("is not JSON")),
            (&[STATUS, (JobNode::Lock, "")], Some("is held by no session (persistent)")),
        ] {
            let found = check_removable(&job(nodes)).map_err(|error| error.to_string());
            let is_expected = match (&found, problem) {
                (Ok(()), None) => true,
                (Err(error), Some(problem)) => error.contains(problem),
                (Ok(()), Some(_)) | (Err(_), None) => false,
            };
            assert!(is_expected, "{nodes:?}: {found:?}");
        }
        assert!(check_unlocked(&job(&[STATUS])).is_ok() && check_unlocked(&job(&[(JobNode::Lock, "")])).is_err());
    }

    #[test]
    fn only_a_job_that_was_reported_is_removed() {
        use BatchState as S;
        let entry = EntryName { priority: 5, job: JobId::new(1) };
        let location = JobLocation { batch: BatchId::new(7), old: entry, new: entry };
        let reported = |has_batch, batch_status| {
            let (references, entries) = (Vec::new(), Vec::new());
            let context = JobContext { has_batch, is_batch_acquired: true, batch_status, references, entries };
            check_reported(&location, &context).map_err(|_| ())
        };
        for state in [S::Completed, S::Failed, S::Deleted] {
            assert_eq!(reported(true, Some((Some(state), 3))), Ok(Some(3)));
        }
        for state in [Some(S::Reporting), Some(S::Held), None] {
            assert_eq!(reported(true, Some((state, 3))), Err(()));
        }
        assert_eq!([reported(false, None), reported(true, None)], [Ok(None), Err(())]);
    }

    #[test]
    fn children_are_known_and_have_none_themselves() {
        let job = job(&[STATUS, (JobNode::Bid, "")]);
        let of = |names: &[&str]| children(&job, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let paths = [JobNode::Bid, JobNode::Status].map(|node| Path::JobNode(job.id, node));
        assert_eq!(of(&["bid", "status"]), Some(paths.to_vec()));
        assert_eq!([of(&["bid", "notes"]), of(&["store"])], [None, None]);
    }
}

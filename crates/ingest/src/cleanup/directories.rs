//! The directories of batches and jobs that are not needed any more.
//!
//! What a directory is of is decided by all batches of the tree, never by an index of them. A directory goes when
//! nothing in it was changed for [`CleanupSettings::after`](super::CleanupSettings), by `ctime`, which no program can
//! set back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::{BatchState, JobOutcome};
use queuekeeper_queue::{Batch, Error};
use tracing::{info, warn};

use super::before;
use super::listed::directories;
use super::volume::{Turn, take_turn};
use crate::blocking::blocking;
use crate::engine::session::Session;
use crate::spec::JobSpec;
use crate::step::StepError;

/// How many batches or jobs are read at a time.
const AT_A_TIME: usize = 32;

/// A directory of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BatchDirectory {
    name: String,
    /// The newest `ctime` in it, in seconds since 1970.
    changed: i64,
    /// Those of jobs in it, with the newest `ctime` of each.
    jobs: Vec<(String, i64)>,
}

/// What is to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    changed: i64,
    batch: String,
    /// One job's directory; else all of the batch.
    job: Option<String>,
    /// The batch in the tree; none for one that is gone.
    known: Option<BatchId>,
}

/// Removes directories, at most the share that an operator allows, when it is this process's turn.
pub(super) async fn remove(session: &Session) -> Result<Turn, StepError> {
    let turn = take_turn(session).await?;
    match &turn {
        Turn::Ours => {}
        Turn::NotDue => return Ok(turn),
        Turn::Refused(why) => {
            warn!(why, "cannot clean up the working storage");
            return Ok(turn);
        }
    }
    let settings = &session.services.settings.cleanup;
    let (cutoff, root) = (before(settings.after), session.services.working.root().to_owned());
    let failed = |error: io::Error| StepError::working("scan it", &error);
    let found = blocking(move || list(&root)).await?.map_err(failed)?;
    let total: usize = found.iter().map(|batch| 1 + batch.jobs.len()).sum();
    let mut candidates = candidates(session, &found, cutoff).await?;
    candidates.sort_by(|one, other| (one.changed, &one.batch).cmp(&(other.changed, &other.batch)));
    let most = most(total, settings.share);
    let withheld = candidates.len().saturating_sub(most);
    candidates.truncate(most);
    let mut removed = 0;
    for candidate in candidates {
        if is_still(session, &candidate, cutoff).await? {
            session.fence.pass().await;
            let storage = session.services.working.clone();
            let Candidate { batch, job, .. } = candidate;
            let name = job.as_ref().map_or_else(|| batch.clone(), |job| format!("{batch}/{job}"));
            let outcome = blocking(move || match job {
                Some(job) => storage.remove_job(&batch, &job),
                None => storage.remove_batch(&batch),
            });
            match outcome.await? {
                Ok(()) => removed += 1,
                Err(error) => warn!(directory = name, %error, "cannot remove a directory of the working storage"),
            }
        }
    }
    session.services.metrics.cleaned("directory", removed);
    session.services.metrics.withheld(withheld);
    if withheld > 0 {
        warn!(
            directories = total,
            removed,
            withheld,
            "one run removes at most --cleanup.share of the working directories; check whether the rest may be removed"
        );
    } else {
        info!(directories = total, removed, "scanned the working storage");
    }
    Ok(turn)
}

/// How many directories one run removes: the share, and one in any case, or a small volume would never be cleaned.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count, cut")]
fn most(total: usize, share: f64) -> usize {
    ((total as f64 * share.clamp(0.0, 1.0)) as usize).max(1)
}

/// The directories that are not needed.
async fn candidates(
    session: &Session,
    found: &[BatchDirectory],
    cutoff: Timestamp,
) -> Result<Vec<Candidate>, StepError> {
    let queue = &session.queue;
    let ids = queue.batches().await?;
    let mut loads = stream::iter(ids.into_iter().map(|id| queue.load_batch(id))).buffered(AT_A_TIME);
    let (mut known, mut has_unreadable) = (BTreeMap::new(), false);
    while let Some(load) = loads.next().await {
        match load {
            Ok(batch) => {
                let name = batch.submitted().value.uuid.into_owned();
                has_unreadable |= name.is_empty();
                known.insert(name, Kept::of(&batch));
            }
            Err(Error::Missing(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    drop(loads);
    let is_old = |changed: i64| changed <= cutoff.as_second();
    let mut candidates = Vec::new();
    for BatchDirectory { name, changed, jobs } in found {
        let (changed, batch) = (*changed, name.clone());
        match known.get(name) {
            // Whose it is cannot be known while the submission of a batch cannot be read.
            None if is_old(changed) && !has_unreadable => {
                candidates.push(Candidate { changed, batch, job: None, known: None });
            }
            Some(kept) if kept.is_final => {
                if is_old(changed) && kept.entered.is_some_and(|entered| entered <= cutoff) {
                    candidates.push(Candidate { changed, batch, job: None, known: Some(kept.id) });
                }
            }
            Some(kept) if kept.has_all_jobs && jobs.iter().any(|(_, changed)| is_old(*changed)) => {
                let Some(living) = living(session, kept.id).await? else { continue };
                let gone = jobs.iter().filter(|(job, changed)| is_old(*changed) && !living.contains(job));
                candidates.extend(gone.map(|(job, changed)| Candidate {
                    changed: *changed,
                    batch: batch.clone(),
                    job: Some(job.clone()),
                    known: Some(kept.id),
                }));
            }
            None | Some(_) => {}
        }
    }
    Ok(candidates)
}

/// What is known of a batch of the tree.
#[derive(Debug)]
struct Kept {
    id: BatchId,
    is_final: bool,
    /// Its jobs were created: a directory without a job is of none that is still to come.
    has_all_jobs: bool,
    entered: Option<Timestamp>,
}

impl Kept {
    fn of(batch: &Batch) -> Self {
        use BatchState as S;
        let has_all_jobs = matches!(batch.state(), Some(S::Reporting | S::UpdateReporting | S::Failed | S::Completed));
        Self { id: batch.id, is_final: is_final(batch), has_all_jobs, entered: batch.entered() }
    }
}

/// Whether nothing of a batch goes on any more. One with failed jobs is resumed with what was uploaded; one that failed
/// before it had jobs is not.
fn is_final(batch: &Batch) -> bool {
    let references = |outcome| batch.references(outcome).unwrap_or(0);
    let is_final = match batch.state() {
        Some(BatchState::Completed | BatchState::Deleted) => references(JobOutcome::Processing) == 0,
        Some(BatchState::Failed) => JobOutcome::ALL.into_iter().all(|outcome| references(outcome) == 0),
        _ => false,
    };
    is_final && batch.lock().is_none()
}

/// The directories of the jobs of a batch that are not deleted; `None` where one of them cannot be read.
async fn living(session: &Session, batch: BatchId) -> Result<Option<BTreeSet<String>>, Error> {
    let queue = &session.queue;
    let report = queue.batch_report(batch).await?;
    let ids: Vec<_> = report.processing.into_iter().chain(report.failed).chain(report.completed).collect();
    let mut loads = stream::iter(ids.into_iter().map(|id| queue.load_job(id))).buffered(AT_A_TIME);
    let mut names = BTreeSet::new();
    while let Some(load) = loads.next().await {
        match load.map(|job| JobSpec::of(&job)) {
            Ok(Ok(spec)) => drop(names.insert(spec.job)),
            Ok(Err(_)) => return Ok(None),
            Err(Error::Missing(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(names))
}

/// Whether nothing has changed since it was chosen: an operator may have resumed a job, an upload may have begun.
async fn is_still(session: &Session, candidate: &Candidate, cutoff: Timestamp) -> Result<bool, StepError> {
    let queue = &session.queue;
    let is_unwanted = match candidate.known {
        None => queue.find_batch(&candidate.batch).await?.is_none(),
        Some(id) if candidate.job.is_none() => match queue.load_batch(id).await {
            Ok(batch) => is_final(&batch),
            Err(Error::Missing(_)) => true,
            Err(error) => return Err(error.into()),
        },
        // A deleted job never comes back.
        Some(_) => true,
    };
    let mut path = session.services.working.batch(&candidate.batch);
    path.extend(candidate.job.as_ref());
    let changed = blocking(move || newest(&path)).await?;
    Ok(is_unwanted && changed.is_ok_and(|changed| changed <= cutoff.as_second()))
}

/// The directories of batches and jobs: `bid-UUID`, and `jid-UUID` in it. What has another name was never made by a
/// daemon, and is left alone.
fn list(root: &Path) -> io::Result<Vec<BatchDirectory>> {
    let mut found = Vec::new();
    for (name, path) in directories(root, "bid-")? {
        let mut batch = BatchDirectory { name, changed: newest(&path)?, jobs: Vec::new() };
        for (job, path) in directories(&path, "jid-")? {
            batch.jobs.push((job, newest(&path)?));
        }
        found.push(batch);
    }
    Ok(found)
}

/// The newest `ctime` at and below a path, through no link.
fn newest(path: &Path) -> io::Result<i64> {
    let mut newest = i64::MIN;
    let mut paths = vec![path.to_owned()];
    while let Some(path) = paths.pop() {
        let facts = match fs::symlink_metadata(&path) {
            // It was removed meanwhile, which shows in what it was in.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            facts => facts?,
        };
        newest = newest.max(facts.ctime());
        if facts.is_dir() {
            for entry in fs::read_dir(&path)? {
                paths.push(entry?.path());
            }
        }
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn one_run_removes_a_share_and_one_in_any_case() {
        let found = [0, 5, 19, 20, 25, 1_000].map(|total| most(total, 0.1));
        assert_eq!(found, [1, 1, 1, 2, 2, 100]);
        assert_eq!((most(7, 1.0), most(7, f64::INFINITY)), (7, 7));
    }

    #[test]
    fn only_directories_with_the_names_of_ids_are_seen_and_links_lead_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let [batch, job, other] = [1, 2, 3].map(Uuid::from_u128);
        fs::create_dir_all(at(&format!("bid-{batch}/jid-{job}/producer"))).unwrap();
        fs::create_dir_all(at(&format!("bid-{batch}/photos"))).unwrap();
        for name in ["lost+found", ".hidden", "backup-2024", "bid-1", &format!("BID-{other}"), &other.to_string()] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at(&format!("bid-{other}")), "a file").unwrap();
        std::os::unix::fs::symlink("/", at(&format!("bid-{job}"))).unwrap();
        std::os::unix::fs::symlink("/", at(&format!("bid-{batch}/jid-{job}/root"))).unwrap();
        let found = list(directory.path()).unwrap();
        let names: Vec<_> =
            found.iter().map(|found| (&*found.name, found.jobs.iter().map(|(job, _)| &**job))).collect();
        let names: Vec<_> = names.into_iter().map(|(name, jobs)| (name, jobs.collect::<Vec<_>>())).collect();
        assert_eq!(names, [(&*format!("bid-{batch}"), vec![&*format!("jid-{job}")])]);
        let now = Timestamp::now().as_second();
        assert!((now - 60..=now).contains(&found[0].changed));
    }
}

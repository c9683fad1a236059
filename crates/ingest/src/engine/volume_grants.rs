//! What is known of the grants on all volumes, which say on which of them the files of a job lie.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::record::GrantsNote;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Error, Queue, RequestFailure};
use tokio::sync::{Mutex, MutexGuard};
use tracing::warn;
use uuid::Uuid;

/// What is known of the grants on all volumes.
#[derive(Debug)]
pub(super) struct Volumes {
    ours: String,
    /// Whether volumes may have come since they were listed, or gone.
    pub(super) is_stale: AtomicBool,
    /// None where there is no volume but ours.
    known: Mutex<BTreeMap<String, Known>>,
    /// Whether there is any but ours.
    pub(super) has_others: AtomicBool,
    /// Whether a job was passed over already.
    has_passed: AtomicBool,
}

/// The grants on a volume, as they were read last.
#[derive(Debug, Default)]
struct Known {
    /// The transaction that wrote them.
    written: Option<i64>,
    /// When each was given, in milliseconds since 1970.
    since: HashMap<JobId, i64>,
}

/// The grants on all volumes, as they are now.
#[derive(Debug)]
pub(super) struct AllGrants<'a> {
    ours: &'a str,
    known: MutexGuard<'a, BTreeMap<String, Known>>,
    /// Whether a job was passed over, in this session.
    has_passed: &'a AtomicBool,
}

impl Volumes {
    pub(super) fn beside(ours: Uuid) -> Self {
        Self {
            ours: ours.to_string(),
            is_stale: AtomicBool::new(true),
            known: Mutex::default(),
            has_others: AtomicBool::new(false),
            has_passed: AtomicBool::new(false),
        }
    }

    /// Reads what has changed of them.
    pub(super) async fn look(&self, queue: &Queue) -> Result<AllGrants<'_>, Error> {
        let mut known = self.known.lock().await;
        if self.is_stale.swap(false, Ordering::Relaxed) {
            let listed = list(queue).await.inspect_err(|_| self.is_stale.store(true, Ordering::Relaxed))?;
            known.retain(|volume, _| listed.contains(volume));
            if listed.iter().all(|volume| *volume == self.ours) {
                known.clear();
            } else {
                for volume in listed {
                    known.entry(volume).or_default();
                }
            }
            self.has_others.store(!known.is_empty(), Ordering::Relaxed);
        }
        for (volume, known) in &mut *known {
            known.read(queue, volume).await?;
        }
        Ok(AllGrants { ours: &self.ours, known, has_passed: &self.has_passed })
    }
}

impl Known {
    async fn read(&mut self, queue: &Queue, volume: &str) -> Result<(), Error> {
        let Some(path) = Path::space(volume) else { return Ok(()) };
        let name = path.to_string();
        let stat = read(queue, &path, queue.client().check_stat(&name)).await?;
        if stat.is_some_and(|stat| Some(stat.mzxid) == self.written) {
            return Ok(());
        }
        *self = match read(queue, &path, queue.client().get_data(&name)).await {
            Ok((data, stat)) => Self { written: Some(stat.mzxid), since: since(&path, &data) },
            Err(Error::Missing(_)) => Self::default(),
            Err(error) => return Err(error),
        };
        Ok(())
    }
}

impl AllGrants<'_> {
    /// Whether the files of a job lie on another volume. Of several grants the last one counts: the others are left
    /// over from attempts that failed.
    pub(super) fn is_elsewhere(&self, job: JobId) -> bool {
        is_elsewhere(&self.known, self.ours, job)
    }

    /// The same of a job that is passed over then, which is logged once.
    pub(super) fn passes_over(&self, state: JobState, job: JobId) -> bool {
        let is_elsewhere = self.is_elsewhere(job);
        if is_elsewhere && !self.has_passed.swap(true, Ordering::Relaxed) {
            warn!(%job, %state, ours = self.ours, "jobs with files on another volume are left to the processes with access to it");
        }
        is_elsewhere
    }
}

fn is_elsewhere(known: &BTreeMap<String, Known>, ours: &str, job: JobId) -> bool {
    let here = known.get(ours).and_then(|grants| grants.since.get(&job));
    let others = known.iter().filter(|(volume, _)| *volume != ours);
    let there = others.filter_map(|(_, grants)| grants.since.get(&job)).max();
    there > here
}

/// The volumes of which anything was granted.
async fn list(queue: &Queue) -> Result<Vec<String>, Error> {
    let folder = Path::spaces();
    match read(queue, &folder, queue.client().list_children(&folder.to_string())).await {
        Err(Error::Missing(_)) => Ok(Vec::new()),
        listed => listed,
    }
}

/// When each grant of a volume was given. What cannot be read grants nothing: those who see the volume say so.
fn since(path: &Path, data: &[u8]) -> HashMap<JobId, i64> {
    match GrantsNote::decode(data) {
        Ok(note) => note.grants.iter().filter_map(|(job, grant)| Some((job.parse().ok()?, grant.since))).collect(),
        Err(error) => {
            warn!(%path, %error, "cannot read the grants of another volume; its jobs are treated as jobs without a grant");
            HashMap::new()
        }
    }
}

async fn read<T>(
    queue: &Queue,
    path: &Path,
    request: impl Future<Output = Result<T, zookeeper_client::Error>>,
) -> Result<T, Error> {
    queue.within(request).await.map_err(|cause| match cause {
        RequestFailure::Client(zookeeper_client::Error::NoNode) => Error::Missing(path.clone()),
        cause => Error::Read { path: path.clone(), cause },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_grants_of_a_job_the_last_one_says_where_its_files_are() {
        let job = JobId::new(7);
        let grants =
            |since: Option<i64>| Known { written: None, since: since.map(|at| (job, at)).into_iter().collect() };
        let elsewhere = |ours, theirs| {
            let known = BTreeMap::from([("a".to_owned(), grants(theirs)), ("b".to_owned(), grants(ours))]);
            is_elsewhere(&known, "b", job)
        };
        assert!(elsewhere(None, Some(5)) && elsewhere(Some(4), Some(5)));
        assert!(!elsewhere(Some(6), Some(5)) && !elsewhere(Some(5), Some(5)) && !elsewhere(Some(5), None));
        assert!(!elsewhere(None, None), "a job that Java's daemons let pass is for all");
    }
}

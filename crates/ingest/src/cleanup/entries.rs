//! Queue entries of completed jobs: no daemon takes these, and a folder must stay listable.

use futures::{StreamExt as _, stream};
use queuekeeper_queue::path::{EntryName, JobNode, Path};
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Error, Transaction};

use super::before;
use crate::engine::session::Session;

/// How many entries are looked at a time.
const AT_A_TIME: usize = 32;

/// How many are removed by a transaction.
const AT_ONCE: usize = 200;

pub(super) async fn remove(session: &Session) -> Result<(), Error> {
    let (queue, client) = (&session.queue, session.queue.client());
    let before = before(session.services.settings.cleanup.entries_after).as_millisecond();
    let entries = queue.entries(JobState::Completed).await?.entries;
    let path = |entry: EntryName| Path::Entry(JobState::Completed.into(), entry);
    let old = entries.into_iter().map(|entry| async move {
        let found = client.check_stat(&path(entry).to_string()).await.ok().flatten();
        found.filter(|stat| stat.ctime <= before).map(|_| entry)
    });
    let old: Vec<EntryName> = stream::iter(old).buffered(AT_A_TIME).filter_map(std::future::ready).collect().await;
    for some in old.chunks(AT_ONCE) {
        let jobs = some.iter().map(|entry| queue.load_job(entry.job));
        let jobs: Vec<_> = stream::iter(jobs.collect::<Vec<_>>()).buffered(AT_A_TIME).collect().await;
        let mut removals = Vec::new();
        for (entry, job) in some.iter().zip(jobs) {
            let mut removal = Transaction::new();
            match job {
                // The entry of a job that is elsewhere is a fault, which is shown and repaired as one.
                Ok(job) if job.state() == Some(JobState::Completed) => {
                    removal.check(Path::JobNode(job.id, JobNode::Status), job.version().unwrap_or_default());
                    removal.delete(path(*entry), None);
                    removals.push(removal);
                }
                Ok(_) | Err(Error::Missing(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let mut all = Transaction::new();
        for removal in &removals {
            all.append(removal.clone());
        }
        if all.is_empty() {
            continue;
        }
        match queue.commit(&all).await {
            Ok(_) => session.services.metrics.cleaned("entry", removals.len()),
            // Others removed or purged some meanwhile.
            Err(Error::Missing(_) | Error::Conflict(_)) => {
                for removal in &removals {
                    match queue.commit(removal).await {
                        Ok(_) => session.services.metrics.cleaned("entry", 1),
                        Err(Error::Missing(_) | Error::Conflict(_)) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

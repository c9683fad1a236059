//! What this process is downloading, and how far it is: `/queuekeeper/progress/SESSION`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::record::{FileProgress, JobProgress, ProgressNote};
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;
use zookeeper_client::{Acls, Client, CreateMode, Error};

/// How often it is written, while it changes.
const EACH: Duration = Duration::from_secs(1);

/// The downloads of this process.
#[derive(Debug, Default)]
pub struct Downloads(Mutex<BTreeMap<JobId, Arc<Download>>>);

/// The download of a job. What a file has is counted until it is there, or given up.
#[derive(Debug, Default)]
pub struct Download(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    files: u64,
    bytes: u64,
    next: u64,
    fetching: BTreeMap<u64, Fetching>,
}

#[derive(Debug)]
struct Fetching {
    name: String,
    size: Option<u64>,
    bytes: Arc<AtomicU64>,
}

/// A download that is under way; it is forgotten with this.
#[derive(Debug)]
pub struct Begun<'a> {
    downloads: &'a Downloads,
    job: JobId,
}

/// A file that is on its way, until this is dropped.
#[derive(Debug)]
pub struct OnItsWay {
    download: Arc<Download>,
    number: u64,
}

impl Downloads {
    /// The download of a job begins.
    pub fn begin(&self, job: JobId) -> Begun<'_> {
        self.0.lock().insert(job, Arc::default());
        Begun { downloads: self, job }
    }

    /// A file of a job is on its way, whose bytes are counted there; `None` where the job is not in Downloading.
    pub fn file(&self, job: JobId, name: &str, size: Option<u64>, bytes: &Arc<AtomicU64>) -> Option<OnItsWay> {
        let download = Arc::clone(self.0.lock().get(&job)?);
        let mut state = download.0.lock();
        let number = state.next;
        state.next += 1;
        state.fetching.insert(number, Fetching { name: name.to_owned(), size, bytes: Arc::clone(bytes) });
        drop(state);
        Some(OnItsWay { download, number })
    }

    /// How far all are.
    #[must_use]
    pub fn note(&self) -> ProgressNote {
        let of = |download: &Download| {
            let state = download.0.lock();
            let fetching = state.fetching.values().map(|file| FileProgress {
                name: file.name.clone(),
                bytes: file.bytes.load(Ordering::Relaxed),
                size: file.size,
            });
            JobProgress { files: state.files, bytes: state.bytes, fetching: fetching.collect() }
        };
        ProgressNote { jobs: self.0.lock().iter().map(|(job, download)| (*job, of(download))).collect() }
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.downloads.0.lock().remove(&self.job);
    }
}

impl OnItsWay {
    /// It is there, with so many bytes.
    pub fn is_there(self, bytes: u64) {
        let mut state = self.download.0.lock();
        state.files += 1;
        state.bytes = state.bytes.saturating_add(bytes);
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.download.0.lock().fetching.remove(&self.number);
    }
}

/// Writes it while it changes, until it is dropped. No step depends on it: what cannot be written is left out.
pub(crate) async fn publish(client: &Client, downloads: &Downloads, acls: &Acls<'_>) {
    let path = Path::progress(client.session_id().0).to_string();
    let mut ticks = interval(EACH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut last, mut has_failed) = (ProgressNote::default(), false);
    loop {
        ticks.tick().await;
        let note = downloads.note();
        if note == last {
            continue;
        }
        match write(client, &path, &note.encode(), acls).await {
            Ok(()) => (last, has_failed) = (note, false),
            // Once, until it succeeds again.
            Err(error) if !has_failed => {
                warn!(%error, "cannot write {path}; pages do not show the progress of downloads");
                has_failed = true;
            }
            Err(_) => {}
        }
    }
}

/// How many bytes of the volumes each job has by now that any process is downloading, as these processes say.
///
/// # Errors
/// When the notes cannot be read.
pub(crate) async fn written(client: &Client) -> Result<HashMap<JobId, u64>, Error> {
    let folder = Path::progresses().to_string();
    let sessions = match client.list_children(&folder).await {
        Err(Error::NoNode) => Vec::new(),
        listed => listed?,
    };
    let mut written = HashMap::new();
    for session in sessions {
        let note = match client.get_data(&format!("{folder}/{session}")).await {
            // It has ended since.
            Err(Error::NoNode) => continue,
            read => ProgressNote::decode(&read?.0).unwrap_or_default(),
        };
        for (job, progress) in note.jobs {
            let fetching = progress.fetching.iter().map(|file| file.bytes);
            written.insert(job, fetching.fold(progress.bytes, u64::saturating_add));
        }
    }
    Ok(written)
}

async fn write(client: &Client, path: &str, data: &[u8], acls: &Acls<'_>) -> Result<(), Error> {
    match client.set_data(path, data, None).await {
        Err(Error::NoNode) => client.create(path, data, &CreateMode::Ephemeral.with_acls(*acls)).await.map(drop),
        written => written.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_on_its_way_until_it_is_there_or_given_up_and_a_job_until_its_step_ends() {
        let (downloads, job, bytes) = (Downloads::default(), JobId::new(7), Arc::new(AtomicU64::new(0)));
        assert!(downloads.file(job, "a", None, &bytes).is_none());
        let begun = downloads.begin(job);
        let first = downloads.file(job, "a", Some(5), &bytes).unwrap();
        let second = downloads.file(job, "b", None, &Arc::default()).unwrap();
        bytes.store(3, Ordering::Relaxed);
        let file = |name: &str, bytes, size| FileProgress { name: name.to_owned(), bytes, size };
        let of = || downloads.note().jobs.remove(&job);
        let fetching = vec![file("a", 3, Some(5)), file("b", 0, None)];
        assert_eq!(of(), Some(JobProgress { files: 0, bytes: 0, fetching }));
        first.is_there(5);
        assert_eq!(of(), Some(JobProgress { files: 1, bytes: 5, fetching: vec![file("b", 0, None)] }));
        drop(second);
        assert_eq!(of(), Some(JobProgress { files: 1, bytes: 5, fetching: Vec::new() }));
        drop(begun);
        assert_eq!(of(), None);
    }
}

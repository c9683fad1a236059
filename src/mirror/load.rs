//! The tree as it is at one moment, for a caller that asks once: walked or read without a watch.
//!
//! What comes of it is a [`MirrorStore`] as any other, and behind from its first moment on: no watch follows the tree.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use zookeeper_client::Client;

use super::clock::{Moment, Offset};
use super::date::date;
use super::image::Image;
use super::measured::Measured;
use super::read::{Found, NOT_READABLE, Query, ReadBudget, ReadError, Reader, nodes};
use super::store::{MirrorStore, Writer};
use super::walk::{Walk, walk};
use queuekeeper_queue::fault::{Fault, Limits};
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::{EntryName, JobNode, Path, StateFolder};
use queuekeeper_queue::state::{JobOutcome, JobState, State as _};

/// Longer than any grace, and no longer than a user at a terminal waits for an answer.
const LONGEST_GRACE: Duration = Duration::from_secs(10);

/// Why the tree could not be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// A read failed, or was not answered.
    #[error("{0}")]
    Read(String),
    /// The chroot is not there.
    #[error("ZooKeeper has no znode {chroot}: create it, or correct the chroot in --zookeeper")]
    NoRoot {
        /// The chroot.
        chroot: String,
    },
    /// Our credentials do not let us read what everything else lies in.
    #[error("{path} {why}", why = NOT_READABLE)]
    Denied {
        /// The first of the folders that are closed to us, below the chroot.
        path: String,
    },
}

impl From<ReadError> for LoadError {
    fn from(error: ReadError) -> Self {
        Self::Read(error.to_string())
    }
}

/// Walks the whole tree once.
///
/// A fault by shape counts only when it has lasted for the grace of `limits`, since the daemons change a job in
/// separate writes. With `confirm` the tree is walked again after that time, if the first walk has found any: what is
/// found then is a fault, and not just a write in progress.
///
/// Ages go by a clock that was `measured`. Without that, the clocks are taken to agree unless the tree shows otherwise.
///
/// # Errors
/// When the tree cannot be read, or only without what everything lies in: half an image would be taken for the whole.
pub async fn load(
    client: &Client,
    limits: Limits,
    confirm: bool,
    measured: Option<Measured>,
) -> Result<MirrorStore, LoadError> {
    let grace = limits.grace.min(LONGEST_GRACE);
    let writer = Writer::with_limits(limits);
    let store = writer.store();
    if let Some((made, between)) = measured.map(Measured::parts) {
        store.measured(made, between);
    }
    look(client, &writer).await?;
    let now = Timestamp::now();
    if confirm && shown(&store, now) != shown(&store, now + grace) {
        tokio::time::sleep(grace).await;
        look(client, &writer).await?;
    }
    store.nodes().give(client);
    Ok(store)
}

/// How many items show each fault.
fn shown(store: &MirrorStore, now: Timestamp) -> Vec<u64> {
    let summary = store.summary(now, None);
    Fault::ALL.iter().map(|fault| summary.as_ref().map_or(0, |summary| summary.faults(*fault).count)).collect()
}

async fn look(client: &Client, writer: &Writer) -> Result<(), LoadError> {
    let Walk { image, duration, .. } = walk(client, ReadBudget::default()).await?;
    if !image.has_root() {
        return Err(LoadError::NoRoot { chroot: client.path().to_owned() });
    }
    if let Some(path) = image.denied_folder() {
        return Err(LoadError::Denied { path: path.to_string() });
    }
    put(writer, client, image, duration);
    date(client, writer).await?;
    Ok(())
}

/// Puts an image in place.
fn put(writer: &Writer, client: &Client, image: Image, duration: Duration) {
    // Who only looks writes nothing to learn the servers' time: that it is no earlier than what they dated is all there
    // is.
    writer.saw_latest(image.latest_ms(), Moment::now());
    let now = Timestamp::now();
    drop(writer.swap(image, now));
    writer.set_marks(now);
    writer.with_freshness(|freshness| {
        freshness.session = Some(client.session_id().to_string());
        freshness.last_walk = Some(now);
        freshness.last_walk_duration = Some(duration);
    });
}

/// Reads one job and nothing else, in two requests; `None` where there is none.
///
/// Its entries are looked for in every state at its own priority, its references in its own batch: one elsewhere is a
/// fault, and found by a walk. So is whatever depends on other jobs: of faults and causes this knows nothing.
///
/// # Errors
/// When it cannot be read.
pub async fn load_job(client: &Client, id: JobId) -> Result<Option<MirrorStore>, LoadError> {
    let began = Instant::now();
    let writer = Writer::new();
    let store = writer.store();
    let mut image = Image::default();
    let own = JobNode::ALL.iter().map(|node| Path::JobNode(id, *node));
    // Without the root there is no image.
    read(client, &mut image, [Path::Root, Path::Job(id)].into_iter().chain(own)).await?;
    if !image.has_root() {
        return Err(LoadError::NoRoot { chroot: client.path().to_owned() });
    }
    let Some(job) = image.job(id, Offset::default()) else { return Ok(None) };
    let entries = job.priority.into_iter().flat_map(|priority| {
        let entry = EntryName::of(priority, id);
        JobState::ALL.iter().map(move |state| Path::Entry(StateFolder::Known(*state), entry))
    });
    let references =
        job.batch.into_iter().flat_map(|batch| JobOutcome::ALL.map(|outcome| Path::Reference(batch, outcome, id)));
    read(client, &mut image, entries.chain(references)).await?;
    image.finish();
    put(&writer, client, image, began.elapsed());
    store.nodes().give(client);
    Ok(Some(store))
}

/// Reads a few znodes into an image.
async fn read(client: &Client, image: &mut Image, paths: impl IntoIterator<Item = Path>) -> Result<(), ReadError> {
    let mut reader = Reader::for_few(client);
    for path in paths {
        reader.push(Query::Node(path));
    }
    while let Some(answers) = reader.next().await? {
        for (path, found) in nodes(answers).into_iter().filter(|(_, found)| found.is_present()) {
            // That they are there is all that matters of these.
            let is_mark = matches!(path, Path::Entry(..) | Path::Reference(..));
            image.apply(path, if is_mark { &Found::Listed } else { &found });
        }
    }
    Ok(())
}

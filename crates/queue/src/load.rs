//! Loading a dump into an empty chroot.
//!
//! What daemons could take half of is kept from them: the queues are paused first and for as long as the load lasts, a
//! job's queue entries come after it, and the last transaction takes the pauses away that the dump does not have. A
//! load that is interrupted leaves the pauses behind, so it can be gone on with.
//!
//! Ids are assigned by counters of ZooKeeper that no client can set, and that only count creations. So as many znodes
//! as are missing are made and removed again, thousands in one transaction.
//!
//! Locks of sessions cannot be restored, nor times: a loaded job entered its state when it was loaded.

use std::io;
use std::task::Poll;

use futures::stream::{FuturesOrdered, Stream, StreamExt as _};
use jiff::Timestamp;

use super::dump::{Header, Trailer};
use super::error::Error;
use super::handle::Queue;

mod check;
mod counters;
mod expanding;
mod limits;
mod nodes;
mod split;
mod target;
mod whole;

pub use check::{DumpReader, InvalidDump, Problem};
pub use counters::Counter;
pub use limits::LoadLimits;
pub use whole::{CheckedDump, check};

use check::ParsedLine;
use expanding::Expanding;
use nodes::Chunks;
use split::LineReader;
use target::LoadTarget;

/// How many transactions are in flight: enough to hide the way there and back.
const IN_FLIGHT: usize = 4;

/// How to load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The present time, for the pauses' notes.
    pub now: Timestamp,
    /// Whether to go on with a load that was interrupted.
    pub resume: bool,
    /// What the dump may hold.
    pub limits: LoadLimits,
    /// The dump's checksum, which [`check`] returns. An interrupted load is resumed with the dump of that checksum, and
    /// with no other.
    pub sha256: String,
}

/// What a load does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadProgress {
    /// So many lines of the dump are loaded.
    Nodes(u64),
    /// Numbers are used up below a folder: so many of so many.
    Numbers(u32, u32),
}

/// What was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The dump's first line.
    pub header: Header,
    /// Its last line but one.
    pub read: Trailer,
    /// How many of its znodes were there already, since an earlier load was interrupted.
    pub found: u64,
    /// The folders whose children ZooKeeper numbers, with the numbers that come next.
    pub counters: Vec<Counter>,
}

/// Why a dump was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The dump cannot be read.
    #[error("cannot read the dump: {0}")]
    Input(io::Error),
    /// The dump is not one, or not whole.
    #[error(transparent)]
    Dump(#[from] InvalidDump),
    /// There is something below the chroot already.
    #[error("the chroot is not empty: {}", .0.join(", "))]
    NotEmpty(Vec<String>),
    /// A load was interrupted below this chroot.
    #[error("a load was interrupted below this chroot; resume it with --resume and the same dump ({0})")]
    Interrupted(String),
    /// Another dump's load was interrupted below this chroot.
    #[error("the load that was interrupted below this chroot was of another dump ({found}, not {wanted})")]
    AnotherDump {
        /// The id and the checksum of the dump that was being loaded.
        found: String,
        /// The same of this one.
        wanted: String,
    },
    /// The dump is not the one that was checked.
    #[error("the dump was changed since it was checked: its SHA-256 was {checked}, and is {read}")]
    Changed {
        /// Its checksum when it was checked.
        checked: String,
        /// Its checksum as it was read again.
        read: String,
    },
    /// There is no load to resume.
    #[error("no load was interrupted below this chroot: there is nothing to resume")]
    NothingToResume,
    /// Something is there that this load did not make, or has another value than it gave.
    #[error("{0} was created or changed by another client: no other client may write below this chroot during a load")]
    Differs(String),
    /// ZooKeeper refused, or the connection was lost.
    #[error(transparent)]
    Queue(#[from] Error),
    /// It stopped after it had begun.
    #[error(
        "stopped after {loaded} znodes were loaded: {why}. The queues stay paused; resume with --resume, \
         or remove everything below the chroot"
    )]
    Stopped {
        /// How many znodes of the dump were there by then, at least.
        loaded: u64,
        /// Why.
        why: Box<LoadError>,
    },
}

impl Queue {
    /// Loads a dump, given in blocks of any size, into the chroot of the client, which must exist and be empty but for
    /// `/zookeeper` and `/queuekeeper`.
    ///
    /// A few megabytes are held at a time. What is wrong with the dump is found when that line is reached: [`check`]
    /// finds it before anything is written.
    ///
    /// # Errors
    /// When the dump is not one, when the chroot is not empty, or when ZooKeeper refuses. [`LoadError::Stopped`] says
    /// that a part of it was loaded.
    pub async fn load(
        &self,
        blocks: impl Stream<Item = io::Result<Vec<u8>>> + Unpin,
        options: &LoadOptions,
        mut progress: impl FnMut(LoadProgress),
    ) -> Result<Loaded, LoadError> {
        let mut lines = LineReader::new(blocks);
        let mut reader = DumpReader::new(options.limits);
        let header = match lines.next().await.map_err(LoadError::Input)? {
            Some(line) => reader.header(line)?,
            None => return Err(reader.cut().into()),
        };
        let target = LoadTarget::open(self, &header, options).await?;
        let mut read = 0;
        match self.load_rest(&mut lines, &mut reader, target, &options.sha256, &mut read, &mut progress).await {
            Ok((trailer, found, counters)) => Ok(Loaded { header, read: trailer, found, counters }),
            Err(why) => Err(LoadError::Stopped { loaded: read, why: Box::new(why) }),
        }
    }

    async fn load_rest(
        &self,
        lines: &mut LineReader<impl Stream<Item = io::Result<Vec<u8>>> + Unpin>,
        reader: &mut DumpReader,
        mut target: LoadTarget,
        sha256: &str,
        loaded: &mut u64,
        progress: &mut impl FnMut(LoadProgress),
    ) -> Result<(Trailer, u64, Vec<Counter>), LoadError> {
        // What is missing is looked up before it is made, so requests of one transaction might overtake another's.
        let most = if target.is_resumed() { 1 } else { IN_FLIGHT };
        let (mut chunks, mut expanding) = (Chunks::new(self.operation_overhead()), Expanding::default());
        let mut in_flight = FuturesOrdered::new();
        let mut found = 0;
        let mut trailer = None;
        while let Some(line) = lines.next().await.map_err(LoadError::Input)? {
            let full: Vec<_> = match reader.line(line)? {
                ParsedLine::Nothing => continue,
                ParsedLine::End(end) => {
                    trailer = Some(end);
                    let last = expanding.rest().and_then(|node| chunks.add(node.path, node.data, node.unit));
                    last.into_iter().chain(chunks.rest()).collect()
                }
                ParsedLine::Node(node) => match target.keep(node) {
                    None => continue,
                    Some(node) => {
                        let nodes = expanding.take(node).into_iter();
                        nodes.filter_map(|node| chunks.add(node.path, node.data, node.unit)).collect()
                    }
                },
            };
            for chunk in full {
                while in_flight.len() >= most {
                    take(in_flight.next().await, loaded, &mut found, progress)?;
                }
                in_flight.push_back(self.make(chunk, target.is_resumed()));
                // Its request is sent when it is looked at for the first time.
                if let Poll::Ready(outcome) = futures::poll!(in_flight.next()) {
                    take(outcome, loaded, &mut found, progress)?;
                }
            }
        }
        while !in_flight.is_empty() {
            take(in_flight.next().await, loaded, &mut found, progress)?;
        }
        let trailer = trailer.ok_or_else(|| reader.cut())?;
        let (_, read) = reader.end()?;
        if read != sha256 {
            return Err(LoadError::Changed { checked: sha256.to_owned(), read: read.to_owned() });
        }
        let counters = self.advance(reader.next_numbers(), progress).await?;
        target.complete(&expanding);
        for chunk in target.expansions(Chunks::new(self.operation_overhead())) {
            let outcome = self.make(chunk, target.is_resumed()).await;
            take(Some(outcome), loaded, &mut found, progress)?;
        }
        target.close(self).await?;
        Ok((trailer, found, counters))
    }
}

/// Counts what was made, and what was there already.
fn take(
    outcome: Option<Result<(u64, u64), LoadError>>,
    loaded: &mut u64,
    found: &mut u64,
    progress: &mut impl FnMut(LoadProgress),
) -> Result<(), LoadError> {
    let (made, there) = outcome.transpose()?.unwrap_or_default();
    *loaded += made + there;
    *found += there;
    progress(LoadProgress::Nodes(*loaded));
    Ok(())
}

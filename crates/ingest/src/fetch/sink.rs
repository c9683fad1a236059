//! Where content goes: a thread writes and digests it while more arrives.

use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use bytes::Bytes;
use queuekeeper_store::{Algorithm, Digests, Hashers};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use super::{Expected, FetchCause, algorithms};
use crate::file_root::{self, FileRoot, Partial};

/// How many chunks of the network may wait for the disk. One has some hundred kilobytes at most.
const CHUNKS: usize = 32;

/// From how many bytes on a second thread digests, too: two digests take longer than anything else here.
const LARGE: u64 = 1 << 20;

/// The temporary file of a name, with the digests of what is in it.
pub(super) struct Sink {
    file_root: Arc<FileRoot>,
    algorithms: Vec<Algorithm>,
    written: Arc<AtomicU64>,
    bytes: u64,
    state: State,
}

enum State {
    Idle(Idle),
    Writing(mpsc::Sender<Bytes>, JoinHandle<io::Result<Idle>>),
    /// A write has failed.
    Failed,
}

struct Idle {
    partial: Partial,
    hashers: Halves,
}

/// The hashers of a file in two groups that take about as long.
struct Halves {
    first: Hashers,
    second: Hashers,
}

impl Halves {
    fn new(algorithms: &[Algorithm]) -> Self {
        let half = |is_second: bool| {
            algorithms.iter().copied().filter(move |algorithm| (*algorithm == Algorithm::Sha512) == is_second)
        };
        Self { first: Hashers::new(half(false)), second: Hashers::new(half(true)) }
    }

    fn bytes(&self) -> u64 {
        self.first.bytes()
    }

    fn update(&mut self, bytes: &[u8]) {
        self.first.update(bytes);
        self.second.update(bytes);
    }

    fn finish(self) -> Digests {
        let mut digests = self.first.finish();
        digests.extend(self.second.finish().iter().cloned());
        digests
    }
}

impl Sink {
    /// Opens the temporary file; what is in it is only of use where digests are expected.
    pub(super) async fn open(
        file_root: &Arc<FileRoot>,
        path: &str,
        expected: &Expected,
        written: &Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let algorithms = algorithms(expected);
        let (at, path, own, expected) = (Arc::clone(file_root), path.to_owned(), algorithms.clone(), expected.clone());
        let idle = spawn_blocking(move || {
            let mut hashers = Halves::new(&own);
            if expected.digests.is_empty() {
                return at.begin(&path).map(|partial| Idle { partial, hashers });
            }
            let partial = at.resume(&path)?;
            // Of one whose size is not announced, more may be allowed by and by.
            if expected.size.is_some_and(|size| partial.file().metadata().is_ok_and(|facts| facts.len() > size)) {
                partial.file().set_len(0)?;
            }
            file_root::read(partial.file(), |bytes| hashers.update(bytes))?;
            Ok(Idle { partial, hashers })
        });
        let idle = idle.await.map_err(io::Error::other)??;
        let bytes = idle.hashers.bytes();
        written.store(bytes, Ordering::Relaxed);
        let (file_root, written) = (Arc::clone(file_root), Arc::clone(written));
        Ok(Self { file_root, algorithms, written, bytes, state: State::Idle(idle) })
    }

    /// How many bytes there are.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the next bytes.
    pub(super) async fn write(&mut self, chunk: Bytes) -> io::Result<()> {
        let bytes = chunk.len() as u64;
        if let State::Idle(_) = self.state {
            let State::Idle(idle) = std::mem::replace(&mut self.state, State::Failed) else { return Ok(()) };
            let (sender, receiver) = mpsc::channel(CHUNKS);
            let written = Arc::clone(&self.written);
            self.state = State::Writing(sender, spawn_blocking(move || write_all(idle, receiver, &written)));
        }
        let is_taken = match &self.state {
            State::Writing(sender, _) => sender.send(chunk).await.is_ok(),
            State::Idle(_) | State::Failed => false,
        };
        if !is_taken {
            self.settle().await?;
            return Err(io::Error::other("the file was not written"));
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Waits until all bytes are in the file.
    pub(super) async fn settle(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.state, State::Failed) {
            State::Idle(idle) => self.state = State::Idle(idle),
            State::Writing(sender, task) => {
                drop(sender);
                self.state = State::Idle(task.await.map_err(io::Error::other)??);
            }
            State::Failed => {}
        }
        Ok(())
    }

    async fn idle(&mut self) -> io::Result<&mut Idle> {
        self.settle().await?;
        match &mut self.state {
            State::Idle(idle) => Ok(idle),
            State::Writing(..) | State::Failed => Err(io::Error::other("the file could not be written before")),
        }
    }

    /// Begins with an empty file again.
    pub(super) async fn restart(&mut self) -> io::Result<()> {
        let hashers = Halves::new(&self.algorithms);
        let idle = self.idle().await?;
        let mut file = idle.partial.file();
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        idle.hashers = hashers;
        self.bytes = 0;
        self.written.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// The digests of all that has come, compared with what was expected. Afterwards the file is published, begun again
    /// or given up.
    pub(super) fn check(&mut self, expected: &Expected) -> Result<Digests, FetchCause> {
        let State::Idle(idle) = &mut self.state else {
            return Err(FetchCause::Disk(io::Error::other("the file could not be written before")));
        };
        let digests = std::mem::replace(&mut idle.hashers, Halves::new(&[])).finish();
        if let Some(expected) = expected.size.filter(|size| *size != self.bytes) {
            return Err(FetchCause::Size { expected, found: self.bytes });
        }
        match expected.digests.difference(&digests) {
            Some((expected, found)) => Err(FetchCause::Digest { expected: expected.clone(), found: found.clone() }),
            None => Ok(digests),
        }
    }

    /// Lets the file appear under its name, which is durable once the folders on its path are synced.
    pub(super) async fn publish(self, path: &str) -> io::Result<()> {
        let State::Idle(idle) = self.state else { return Err(io::Error::other("the file is still being written")) };
        let (file_root, path) = (self.file_root, path.to_owned());
        spawn_blocking(move || file_root.publish(&idle.partial, &path)).await.map_err(io::Error::other)?
    }

    /// Removes what cannot become right.
    pub(super) async fn discard(self, path: &str) {
        let (file_root, path) = (self.file_root, path.to_owned());
        drop(self.state);
        // What stays is replaced by the next attempt, or removed with the job's directory.
        let _ = spawn_blocking(move || file_root.discard(&path)).await;
    }
}

fn write_all(mut idle: Idle, mut chunks: mpsc::Receiver<Bytes>, written: &AtomicU64) -> io::Result<Idle> {
    while idle.hashers.bytes() < LARGE {
        let Some(chunk) = chunks.blocking_recv() else { return Ok(idle) };
        idle.partial.file().write_all(&chunk)?;
        idle.hashers.update(&chunk);
        written.store(idle.hashers.bytes(), Ordering::Relaxed);
    }
    let Idle { partial, hashers: Halves { first, second } } = &mut idle;
    thread::scope(|threads| {
        let (sender, receiver) = sync_channel::<Bytes>(CHUNKS);
        threads.spawn(move || receiver.into_iter().for_each(|chunk| second.update(&chunk)));
        while let Some(chunk) = chunks.blocking_recv() {
            // The receiver lives until the sender is dropped.
            let _ = sender.send(chunk.clone());
            partial.file().write_all(&chunk)?;
            first.update(&chunk);
            written.store(first.bytes(), Ordering::Relaxed);
        }
        Ok::<_, io::Error>(())
    })?;
    Ok(idle)
}

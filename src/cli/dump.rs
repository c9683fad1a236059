//! `queuekeeper dump`: the whole queue as JSON lines.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use tempfile::NamedTempFile;

use super::meter::ProgressLine;
use super::output::note;
use super::words::count;
use super::{ZooKeeperArgs, headings, on_signal};
use crate::words::counted;
use queuekeeper_queue::Queue;
use queuekeeper_queue::dump::{DumpError, DumpOptions, Redaction, Trailer};

/// The size of the write buffer.
const BUFFER_BYTES: usize = 256 << 10;

/// Write the whole queue as JSON lines, for a backup, a bug report or a load elsewhere
///
/// It is not a snapshot: the queue changes while it is read, so pause it first if that matters. Locks of sessions are
/// marked as ephemeral; /zookeeper and /queuekeeper are left out, except for the progress of creating the jobs of
/// batches.
#[derive(Clone, Debug, Args)]
pub struct DumpArgs {
    #[command(flatten)]
    zookeeper: ZooKeeperArgs,

    /// The file to write, which appears when it is complete [default: standard output]
    #[arg(long = "output", value_name = "FILE", help_heading = headings::DUMP)]
    output: Option<PathBuf>,

    /// Replace data that could identify depositors or content by pseudonyms, which differ in each dump
    #[arg(long = "redact", help_heading = headings::DUMP)]
    redact: bool,
}

impl DumpArgs {
    /// Writes the dump, and a summary on standard error.
    ///
    /// # Errors
    /// When ZooKeeper cannot be read, or the dump cannot be written.
    pub async fn run(self) -> anyhow::Result<()> {
        let config = self.zookeeper.clone().config()?;
        let queue = Queue::new(config.connect().await?);
        let written = match &self.output {
            Some(path) if !is_special(path) => {
                let (shutdown, waiting) = on_signal()?;
                let written = shutdown.run_until_cancelled(self.to_file(&queue, path)).await;
                shutdown.cancel();
                waiting.await?;
                written.ok_or_else(|| anyhow::anyhow!("interrupted: {} was not written", path.display()))?
            }
            Some(path) => {
                let file = File::options().write(true).open(path);
                self.write(&queue, file.with_context(|| format!("cannot write {}", path.display()))?).await
            }
            None => self.write(&queue, std::io::stdout()).await,
        };
        let read = match written {
            // The reader of the pipe has closed it, as `head` does.
            Err(error) if is_closed(&error) => return Ok(()),
            written => written?,
        };
        note(&format!("dumped {}", summary(&read)));
        if read.ephemeral > 0 {
            note(&format!("locks of sessions, which are marked and will not be loaded: {}", znodes(read.ephemeral)));
        }
        if read.vanished > 0 {
            note(&format!("omitted, because they were deleted while the queue was read: {}", znodes(read.vanished)));
        }
        Ok(())
    }

    /// Writes a file that gets its name when it is complete.
    async fn to_file(&self, queue: &Queue, path: &Path) -> anyhow::Result<Trailer> {
        let failed = || format!("cannot write {}", path.display());
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = NamedTempFile::new_in(directory).with_context(failed)?;
        let read = self.write(queue, file.as_file_mut()).await?;
        file.as_file().sync_all().with_context(failed)?;
        file.persist(path).with_context(failed)?;
        Ok(read)
    }

    async fn write(&self, queue: &Queue, out: impl Write) -> anyhow::Result<Trailer> {
        let options = DumpOptions {
            id: format!("{:016x}", rand::random::<u64>()),
            now: Timestamp::now(),
            redaction: self.redact.then(|| Redaction::new(&rand::random())),
        };
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
        let mut meter = ProgressLine::new();
        let read = queue.dump(&mut out, &options, |progress| {
            meter.show(|| {
                let jobs = counted(progress.of_jobs, "job", "jobs");
                format!("{} of {jobs}, {}", count(progress.read.jobs), znodes(progress.read.nodes))
            });
        });
        Ok(read.await?)
    }
}

/// Whether a dump ended because its pipe was closed.
fn is_closed(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(DumpError::Write(error)) if error.kind() == ErrorKind::BrokenPipe)
}

/// Whether it is a pipe or a device, which must not be replaced by a file.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file())
}

pub(super) fn znodes(count: u64) -> String {
    counted(count, "znode", "znodes")
}

/// The contents of a dump in words.
pub(super) fn summary(read: &Trailer) -> String {
    format!(
        "{}: {}, {}, {}; {} of values",
        znodes(read.nodes),
        counted(read.jobs, "job", "jobs"),
        counted(read.batches, "batch", "batches"),
        counted(read.requests, "access request", "access requests"),
        counted(read.data_bytes, "byte", "bytes")
    )
}

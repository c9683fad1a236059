//! `queuekeeper dump`: the whole queue as JSON lines.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use tempfile::NamedTempFile;

use super::meter::Meter;
use super::output::note;
use super::{ZooKeeperArgs, on_signal};
use crate::mirror::words::counted;
use queuekeeper_queue::Queue;
use queuekeeper_queue::dump::{DumpError, DumpOptions, Redaction, Trailer};

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 256 << 10;

/// Write the whole queue as JSON lines: for a backup, for a bug report, to load it elsewhere
///
/// It is no snapshot: the queue moves on while it is read, so pause it first where that matters. Locks of sessions are
/// marked as ephemeral, and /zookeeper and /queuekeeper are left out.
#[derive(Clone, Debug, Args)]
pub struct DumpArgs {
    #[command(flatten)]
    zookeeper: ZooKeeperArgs,

    /// The file to write, which is there only once it is whole [default: standard output]
    #[arg(
        long = "output",
        env = "QUEUEKEEPER_DUMP_OUTPUT",
        hide_env_values = true,
        value_name = "FILE",
        help_heading = "Dump"
    )]
    output: Option<PathBuf>,

    /// Replace what could tell who deposits what by pseudonyms that differ from dump to dump
    #[arg(long = "redact", env = "QUEUEKEEPER_DUMP_REDACT", hide_env_values = true, help_heading = "Dump")]
    redact: bool,
}

impl DumpArgs {
    /// Writes the dump, and says on standard error what it consists of.
    ///
    /// # Errors
    /// When ZooKeeper cannot be read, or the dump not be written.
    pub async fn run(self) -> anyhow::Result<()> {
        let config = self.zookeeper.clone().config()?;
        let chroot = config.servers.chroot().unwrap_or("/").to_owned();
        let client = config.connect().await?;
        if client.check_stat("/").await.context("cannot read the chroot")?.is_none() {
            anyhow::bail!("the chroot {chroot} does not exist");
        }
        let queue = Queue::new(client);
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
            // The reader of a pipe has closed it, as `head` does: it has read enough.
            Err(error) if is_closed(&error) => return Ok(()),
            written => written?,
        };
        note(&format!("dumped {}", summary(&read)));
        if read.ephemeral > 0 {
            note(&format!("marked as locks of sessions, which cannot be loaded: {}", znodes(read.ephemeral)));
        }
        if read.vanished > 0 {
            note(&format!("left out, because they went away while the queue was read: {}", znodes(read.vanished)));
        }
        Ok(())
    }

    /// Writes a file that takes its name only once it is whole.
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
        let mut meter = Meter::new();
        let read = queue.dump(&mut out, &options, |progress| {
            meter.show(|| {
                format!("{} of {} jobs, {}", progress.read.jobs, progress.of_jobs, znodes(progress.read.nodes))
            });
        });
        Ok(read.await?)
    }
}

/// Whether a dump ended because nothing reads the pipe that it is written to.
fn is_closed(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(DumpError::Write(error)) if error.kind() == ErrorKind::BrokenPipe)
}

/// Whether it is a pipe or a device, which cannot be replaced by a file.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file())
}

pub(super) fn znodes(count: u64) -> String {
    counted(count, "znode", "znodes")
}

/// What a dump consists of.
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

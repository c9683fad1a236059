//! `queuekeeper load`: a dump into an empty chroot.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use futures::stream::{self, Stream};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Acls, Client, CreateMode};

use super::dump::{summary, znodes};
use super::exit::{BAD_USAGE, Ending, FAILED, IN_PART, REFUSED};
use super::meter::Meter;
use super::{ZooKeeperArgs, on_signal};
use crate::queue::Queue;
use crate::queue::load::{BadDump, DumpReader, LoadError, LoadOptions, LoadProgress, Loaded};
use crate::zookeeper::Config;

/// How much is read at once, and how often that before it is loaded.
const BLOCK_BYTES: usize = 256 << 10;
const BLOCKS_AHEAD: usize = 4;

/// Load a dump into an empty chroot
///
/// The queues there are paused for as long as it lasts, and the counters of jobs, batches and access requests are led past
/// the highest numbers. Locks of sessions and times are not restored. A file is checked from its first line to its last
/// before anything is written; standard input cannot be.
#[derive(Clone, Debug, Args)]
pub struct LoadArgs {
    #[command(flatten)]
    zookeeper: ZooKeeperArgs,

    /// Go on with a load of this dump that was interrupted
    #[arg(long = "resume", env = "QUEUEKEEPER_LOAD_RESUME", hide_env_values = true, help_heading = "Load")]
    resume: bool,

    /// The largest number that a job, batch or request may have: the counters are led there one by one
    #[arg(
        long = "largest-number",
        env = "QUEUEKEEPER_LOAD_LARGEST_NUMBER",
        hide_env_values = true,
        value_name = "NUMBER",
        default_value_t = LoadOptions::LARGEST_NUMBER,
        value_parser = clap::value_parser!(u32).range(..=2_147_483_646),
        help_heading = "Load"
    )]
    largest_number: u32,

    /// The dump [default: standard input]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl LoadArgs {
    /// Loads the dump, and says on standard error what was loaded and what was not.
    ///
    /// # Errors
    /// When the dump is none, the chroot is not empty, or ZooKeeper refuses.
    pub async fn run(self) -> anyhow::Result<()> {
        let config = self.zookeeper.clone().config()?;
        let (shutdown, waiting) = on_signal()?;
        let loaded = self.load(&config, &shutdown).await;
        shutdown.cancel();
        waiting.await?;
        let loaded = loaded?;
        let mut told = io::stderr();
        writeln!(told, "loaded {}", summary(&loaded.read))?;
        if loaded.found > 0 {
            writeln!(told, "{} of them were there already", znodes(loaded.found))?;
        }
        for counter in &loaded.counters {
            writeln!(told, "the next number in {} is {}", counter.folder, counter.next)?;
        }
        writeln!(
            told,
            "not restored: {}; times, so each item counts as having entered its state now; ACLs",
            if loaded.read.ephemeral == 1 {
                "1 lock of a session".to_owned()
            } else {
                format!("{} locks of sessions", loaded.read.ephemeral)
            }
        )?;
        Ok(())
    }

    async fn load(&self, config: &Config, shutdown: &CancellationToken) -> anyhow::Result<Loaded> {
        let input: Box<dyn Read + Send> = match self.file.as_deref().filter(|path| *path != Path::new("-")) {
            None => Box::new(io::stdin()),
            Some(path) => {
                let failed = || format!("cannot read {}", path.display());
                let file = File::open(path).with_context(failed)?;
                if file.metadata().with_context(failed)?.is_file() {
                    let (copy, largest) = (File::open(path).with_context(failed)?, self.largest_number);
                    let checked = tokio::task::spawn_blocking(move || check(copy, largest));
                    let interrupted = || anyhow::anyhow!("interrupted: nothing was loaded");
                    let checked = shutdown.run_until_cancelled(checked).await.ok_or_else(interrupted)?;
                    checked?.map_err(|error| wrong(path, error))?;
                }
                Box::new(file)
            }
        };
        let queue = Queue::new(open(config).await?);
        let options = LoadOptions { now: Timestamp::now(), resume: self.resume, largest_number: self.largest_number };
        let mut meter = Meter::new();
        let loading = queue.load(blocks(input), &options, |progress| {
            meter.show(|| match progress {
                LoadProgress::Nodes(nodes) => format!("{} loaded", znodes(nodes)),
                LoadProgress::Numbers(done, of) => format!("{done} of {of} numbers used up"),
            });
        });
        match shutdown.run_until_cancelled(loading).await {
            Some(loaded) => Ok(loaded.map_err(|error| ending(&error))?),
            None => anyhow::bail!(
                "interrupted. The queues there stay paused, so no daemon takes half a job; go on with --resume, or remove \
                 what is below the chroot"
            ),
        }
    }
}

/// What a file ends with that is no dump, or no whole one.
fn wrong(path: &Path, error: anyhow::Error) -> anyhow::Error {
    let path = path.display();
    if error.is::<BadDump>() {
        Ending::new(BAD_USAGE, format!("{path}: {error}")).into()
    } else {
        error.context(path.to_string())
    }
}

/// What a load ends with that did not load.
fn ending(error: &LoadError) -> Ending {
    let code = match error {
        LoadError::Dump(_) => BAD_USAGE,
        LoadError::NotEmpty(_)
        | LoadError::Interrupted(_)
        | LoadError::AnotherDump { .. }
        | LoadError::NothingToResume => REFUSED,
        LoadError::Stopped { .. } => IN_PART,
        LoadError::Input(_) | LoadError::Differs(_) | LoadError::Queue(_) => FAILED,
    };
    Ending::new(code, error.to_string())
}

/// Reads a dump from its first line to its last, and writes nothing.
fn check(file: File, largest_number: u32) -> anyhow::Result<()> {
    let mut reader = DumpReader::new(largest_number);
    let mut input = BufReader::with_capacity(BLOCK_BYTES, file);
    let mut line = Vec::new();
    let mut is_first = true;
    loop {
        line.clear();
        // One byte more than any line may have is enough to refuse it.
        let most = DumpReader::LONGEST_LINE as u64 + 2;
        if input.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            reader.end()?;
            return Ok(());
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if std::mem::take(&mut is_first) {
            reader.header(text)?;
        } else {
            reader.check(text)?;
        }
    }
}

/// Reads ahead on a thread of its own: a pipe that says nothing must not keep a signal from being heard.
fn blocks(mut input: Box<dyn Read + Send>) -> impl Stream<Item = io::Result<Vec<u8>>> + Unpin {
    let (send, receive) = mpsc::channel(BLOCKS_AHEAD);
    // It ends with its input, or when nobody wants more; the process does not wait for it.
    drop(tokio::task::spawn_blocking(move || {
        loop {
            let mut block = Vec::with_capacity(BLOCK_BYTES);
            let read = input.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut block);
            if matches!(read, Ok(0)) || send.blocking_send(read.map(|_| block)).is_err() {
                return;
            }
        }
    }));
    Box::pin(stream::unfold(receive, async |mut receive| receive.recv().await.map(|block| (block, receive))))
}

/// Connects to the chroot, and makes it where it is missing.
async fn open(config: &Config) -> anyhow::Result<Client> {
    let client = config.connect().await?;
    let Some(chroot) = config.servers.chroot() else { return Ok(client) };
    if client.check_stat("/").await.context("cannot read the chroot")?.is_none() {
        let root = Config { servers: config.servers.with_chroot("/")?, ..config.clone() }.connect().await?;
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        root.mkdir(chroot, &options).await.with_context(|| format!("cannot make the chroot {chroot}"))?;
        writeln!(io::stderr(), "made the chroot {chroot}")?;
    }
    Ok(client)
}

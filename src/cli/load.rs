//! `queuekeeper load`: loads a dump into an empty chroot.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use futures::stream::{self, Stream};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Acls, Client, CreateMode};

use super::dump::{summary, znodes};
use super::exit::{BAD_USAGE, CommandError, FAILED, IN_PART, REFUSED};
use super::meter::ProgressLine;
use super::output::note;
use super::{ZooKeeperArgs, headings, on_signal};
use queuekeeper_queue::Queue;
use queuekeeper_queue::load::{self, CheckedDump, LoadError, LoadLimits, LoadOptions, LoadProgress, Loaded};
use queuekeeper_zookeeper::{Config, ConnectError};

/// The size of a read, and how many may be ahead of the load.
const BLOCK_BYTES: usize = 256 << 10;
const BLOCKS_AHEAD: usize = 4;

/// Load a dump into an empty chroot
///
/// The queues are paused during the load, and the counters of jobs, batches and access requests are advanced past the
/// highest numbers. Locks of sessions and times are not restored. The whole dump is checked before anything is written;
/// standard input is kept in a temporary file for that.
#[derive(Clone, Debug, Args)]
pub struct LoadArgs {
    #[command(flatten)]
    zookeeper: ZooKeeperArgs,

    /// Continue a load of this dump that was interrupted
    #[arg(long = "resume", help_heading = headings::LOAD)]
    resume: bool,

    /// The maximum number of a job, batch or request: the counters are advanced to it one by one
    #[arg(
        long = "largest-number",
        value_name = "NUMBER",
        default_value_t = LoadLimits::LARGEST_NUMBER,
        value_parser = clap::value_parser!(u32).range(..=2_147_483_646),
        help_heading = headings::LOAD
    )]
    largest_number: u32,

    /// The dump [default: standard input]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl LoadArgs {
    /// Loads the dump, and reports on standard error what was loaded and what was not.
    ///
    /// # Errors
    /// When the dump is not valid, the chroot is not empty, or ZooKeeper refuses a write.
    pub async fn run(self) -> anyhow::Result<()> {
        let config = self.zookeeper.clone().config()?;
        let (shutdown, waiting) = on_signal()?;
        let loaded = self.load(&config, &shutdown).await;
        shutdown.cancel();
        waiting.await?;
        let loaded = loaded?;
        note(&format!("loaded {}", summary(&loaded.read)));
        if loaded.found > 0 {
            note(&format!("{} of them existed already", znodes(loaded.found)));
        }
        for counter in &loaded.counters {
            note(&format!("the next number in {} is {}", counter.folder, counter.next));
        }
        let locks = match loaded.read.ephemeral {
            1 => "1 lock of a session".to_owned(),
            locks => format!("{locks} locks of sessions"),
        };
        let acl = if config.acl.is_empty() { "the open ACL" } else { "that of --zookeeper.acl" };
        note(&format!(
            "not restored: {locks}; times (each item counts as having entered its state now); ACLs (new znodes have {acl})"
        ));
        Ok(())
    }

    async fn load(&self, config: &Config, shutdown: &CancellationToken) -> anyhow::Result<Loaded> {
        let limits = LoadLimits::new(self.largest_number, config.servers.chroot().unwrap_or_default(), &config.acl);
        let path = self.file.clone().filter(|path| *path != Path::new("-"));
        let checking = tokio::task::spawn_blocking(move || check(path.as_deref(), limits));
        let interrupted = || anyhow::anyhow!("interrupted: nothing was loaded");
        let (file, checked) = shutdown.run_until_cancelled(checking).await.ok_or_else(interrupted)???;
        let queue = Queue::new(open(config).await?).with_acl(config.acl.as_slice());
        let options = LoadOptions { now: Timestamp::now(), resume: self.resume, limits, sha256: checked.sha256 };
        let mut meter = ProgressLine::new();
        let loading = queue.load(blocks(file), &options, |progress| {
            meter.show(|| match progress {
                LoadProgress::Nodes(nodes) => format!("{} loaded", znodes(nodes)),
                LoadProgress::Numbers(done, of) => format!("{done} of {of} numbers used up"),
            });
        });
        match shutdown.run_until_cancelled(loading).await {
            Some(loaded) => Ok(loaded.map_err(|error| ending(&error))?),
            None => anyhow::bail!(
                "interrupted. The queues stay paused; resume with --resume, or remove everything below the chroot"
            ),
        }
    }
}

/// Checks a dump from its first line to its last, and returns it rewound. A pipe can be read once, so its contents are
/// kept in a temporary file, which has no name and ends with the process.
fn check(path: Option<&Path>, limits: LoadLimits) -> anyhow::Result<(File, CheckedDump)> {
    let name = path.map_or_else(|| "standard input".to_owned(), |path| path.display().to_string());
    let failed = || format!("cannot read {name}");
    let open = |path| File::open(path).with_context(failed);
    let mut file = if let Some(path) = path.filter(|path| path.is_file()) {
        open(path)?
    } else {
        let mut input: Box<dyn Read> = match path {
            Some(path) => Box::new(open(path)?),
            None => Box::new(io::stdin()),
        };
        let mut copy = tempfile::tempfile().context("cannot create a temporary file for the dump")?;
        io::copy(&mut input, &mut copy).with_context(|| format!("cannot copy {name} to a temporary file"))?;
        copy.rewind()?;
        copy
    };
    let checked = load::check(BufReader::with_capacity(BLOCK_BYTES, &file), limits).map_err(|error| match error {
        LoadError::Dump(error) => CommandError::new(BAD_USAGE, format!("{name}: {error}")).into(),
        error => anyhow::Error::from(error).context(name.clone()),
    })?;
    file.rewind().with_context(failed)?;
    Ok((file, checked))
}

/// The message and exit code of a failed load.
fn ending(error: &LoadError) -> CommandError {
    let code = match error {
        LoadError::Dump(_) => BAD_USAGE,
        LoadError::NotEmpty(_)
        | LoadError::Interrupted(_)
        | LoadError::AnotherDump { .. }
        | LoadError::NothingToResume => REFUSED,
        LoadError::Stopped { .. } => IN_PART,
        LoadError::Input(_) | LoadError::Changed { .. } | LoadError::Differs(_) | LoadError::Queue(_) => FAILED,
    };
    CommandError::new(code, error.to_string())
}

/// Reads ahead on a thread of its own, so that a hanging disk does not delay the reaction to a signal.
fn blocks(mut input: File) -> impl Stream<Item = io::Result<Vec<u8>>> + Unpin {
    let (send, receive) = mpsc::channel(BLOCKS_AHEAD);
    // It ends with its input, or when the receiver is dropped; the process does not wait for it.
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

/// Connects to the chroot, which is created if it does not exist.
async fn open(config: &Config) -> anyhow::Result<Client> {
    match (config.connect().await, config.servers.chroot()) {
        (Err(ConnectError::NoChroot(_)), Some(chroot)) => {
            let root = Config { servers: config.servers.with_chroot("/")?, ..config.clone() }.connect().await?;
            let acl = if config.acl.is_empty() { Acls::anyone_all() } else { Acls::new(&config.acl) };
            let options = CreateMode::Persistent.with_acls(acl);
            root.mkdir(chroot, &options).await.with_context(|| format!("cannot create the chroot {chroot}"))?;
            note(&format!("created the chroot {chroot}"));
            Ok(config.connect().await?)
        }
        (connected, _) => Ok(connected?),
    }
}

//! Prometheus and Alertmanager beside the demo, so that an alert can be seen to act.
//!
//! Prometheus scrapes our server and evaluates the rules that ship, in the demo's time ([`rules`]); Alertmanager calls our
//! server with a token that was made for this run ([`files`]). Both live in a private directory and end with us.

use std::fs::{self, File, Permissions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as Port};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use self::files::Files;
pub(super) use self::program::Installation;
use self::program::Kind;
use self::rules::{Lapse, RulesError};
use super::pace::Pace;
use crate::config::{ConfigFile, FileError};
use queuekeeper_zookeeper::child::{self, Guard};

mod files;
mod program;
mod rules;

/// How often a program is looked at while its start is awaited.
const LOOK: Duration = Duration::from_millis(50);

/// How often it is looked at afterwards.
const WATCH: Duration = Duration::from_millis(250);

/// How long a program may take until it answers.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How many ports are tried: between our look for a free one and the program's start another process may take it.
const PORT_ATTEMPTS: u32 = 10;

/// Why there is no monitoring, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program was not found: one sentence that says what to install.
    #[error("{0}")]
    NotInstalled(String),
    /// A file or a process could not be made.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done, and with what.
        doing: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The rules that ship are not as the demo knows them.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// Our own configuration is refused.
    #[error(transparent)]
    Config(#[from] FileError),
    /// A program does not answer.
    #[error("{program} did not answer within {limit} s; it printed last: {last}", limit = START_LIMIT.as_secs())]
    Silent {
        /// Which one.
        program: &'static str,
        /// The last line of its log.
        last: String,
    },
    /// A program ended before the demo did.
    #[error("{program} ended by itself ({status}); it printed last: {last}")]
    Ended {
        /// Which one.
        program: &'static str,
        /// How.
        status: ExitStatus,
        /// The last line of its log.
        last: String,
    },
}

/// A program that runs.
#[derive(Debug)]
struct Program {
    kind: Kind,
    port: u16,
    child: Child,
}

/// Prometheus and Alertmanager, running.
#[derive(Debug)]
pub(super) struct Monitoring {
    /// In the order in which they were started: who is told, then who tells.
    programs: Vec<Program>,
    guard: Guard,
    /// The whole path of their directory, by which they are known.
    directory: PathBuf,
    /// Removes it when dropped, after they were ended.
    _temporary: TempDir,
    lapse: Lapse,
    /// What our own server is told.
    pub(super) config: ConfigFile,
}

impl Monitoring {
    /// Starts both, for a server that listens at this address, and waits until they answer.
    ///
    /// # Errors
    /// When a program does not start.
    pub(super) async fn start(installation: Installation, server: SocketAddr, pace: Pace) -> Result<Self, Error> {
        let temporary = tempfile::Builder::new()
            .prefix("queuekeeper-prometheus-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir();
        let temporary = temporary.map_err(doing("make a temporary directory"))?;
        let directory = temporary.path().canonicalize().map_err(doing("find a temporary directory"))?;
        let path = directory.clone();
        let files = Files(&path);
        for kind in Kind::ALL {
            fs::create_dir(files.data(kind.stem())).map_err(doing("make a directory"))?;
        }
        let config = files.write_ours()?;
        let guard = Guard::start(Some(&path)).map_err(doing("start a shell"))?;
        let (target, lapse) = (target(server), Lapse::new(pace));
        let mut all = Self { programs: Vec::new(), guard, directory, _temporary: temporary, lapse, config };
        files.write_alertmanager(&target)?;
        let alertmanager = all.launch(Kind::Alertmanager, &installation.alertmanager, files).await?;
        files.write_prometheus(&target, alertmanager, lapse)?;
        all.launch(Kind::Prometheus, &installation.prometheus, files).await?;
        Ok(all)
    }

    /// Where Prometheus listens.
    pub(super) fn prometheus(&self) -> u16 {
        self.port(Kind::Prometheus)
    }

    /// Where Alertmanager does.
    pub(super) fn alertmanager(&self) -> u16 {
        self.port(Kind::Alertmanager)
    }

    fn port(&self, kind: Kind) -> u16 {
        self.programs.iter().find(|program| program.kind == kind).expect("it was started with both").port
    }

    /// What stands for an hour in the rules.
    pub(super) fn hour(&self) -> Duration {
        self.lapse.hour()
    }

    /// The directory with everything of theirs.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Waits until `end`, and then ends them.
    ///
    /// # Errors
    /// [`Error::Ended`] when one of them ends before.
    pub(super) async fn watch(mut self, end: &CancellationToken) -> Result<(), Error> {
        let watched = async {
            loop {
                for program in &mut self.programs {
                    let status = program.child.try_wait().map_err(doing("look after a program"))?;
                    if let Some(status) = status {
                        return Err(ended(program.kind, status, Files(&self.directory)));
                    }
                }
                sleep(WATCH).await;
            }
        };
        end.run_until_cancelled(watched).await.unwrap_or(Ok(()))
    }

    /// Starts one where it is expected, or else at a free port, and gives that.
    async fn launch(&mut self, kind: Kind, program: &Path, files: Files<'_>) -> Result<u16, Error> {
        let mut port = kind.port();
        if Port::bind((Ipv4Addr::LOCALHOST, port)).is_err() {
            port = child::free_port().map_err(doing("find a free port"))?;
        }
        for attempt in 1.. {
            let log = File::create(files.log(kind.stem())).map_err(doing("make a log"))?;
            let mut command = vec![program.into()];
            command.extend(kind.arguments(files, port));
            let child = self.guard.launch(&command, files.0, log).map_err(doing("start a program"))?;
            self.programs.push(Program { kind, port, child });
            match self.await_answer(files).await {
                Err(Error::Ended { last, .. })
                    if last.contains("address already in use") && attempt < PORT_ATTEMPTS =>
                {
                    tracing::debug!(port, "port was taken before {} could have it", kind.name());
                    self.end_last();
                    port = child::free_port().map_err(doing("find a free port"))?;
                }
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        Ok(port)
    }

    /// Waits until the program that was started last answers.
    async fn await_answer(&mut self, files: Files<'_>) -> Result<(), Error> {
        let program = self.programs.last_mut().expect("one was just started");
        let limit = Instant::now() + START_LIMIT;
        loop {
            if let Some(status) = program.child.try_wait().map_err(doing("look after a program"))? {
                return Err(ended(program.kind, status, files));
            }
            if program.kind.answers(program.port, files).await {
                return Ok(());
            }
            if Instant::now() >= limit {
                let last = last_line(program.kind, files);
                return Err(Error::Silent { program: program.kind.name(), last });
            }
            sleep(LOOK).await;
        }
    }

    fn end_last(&mut self) {
        if let Some(Program { kind, child, .. }) = self.programs.pop()
            && let Err(error) = self.guard.kill(child)
        {
            tracing::debug!(%error, "{} could not be ended", kind.name());
        }
    }
}

/// Ends both, the last one first. Nothing that they know is kept, so they need not be asked.
impl Drop for Monitoring {
    fn drop(&mut self) {
        while !self.programs.is_empty() {
            self.end_last();
        }
        self.guard.dismiss();
    }
}

/// Where a server that listens at `address` is found from here.
fn target(address: SocketAddr) -> String {
    let ip = if address.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { address.ip() };
    SocketAddr::new(ip, address.port()).to_string()
}

fn ended(kind: Kind, status: ExitStatus, files: Files<'_>) -> Error {
    Error::Ended { program: kind.name(), status, last: last_line(kind, files) }
}

fn last_line(kind: Kind, files: Files<'_>) -> String {
    files.last_line(kind.stem()).unwrap_or_else(|error| error.to_string())
}

fn doing(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { doing: what.to_owned(), source }
}

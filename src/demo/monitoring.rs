//! Prometheus and Alertmanager for the demo, to watch alerts act.
//!
//! Prometheus scrapes our server and evaluates the shipped rules, scaled to the demo's time ([`rules`]); Alertmanager
//! calls our server with a token created for this run ([`files`]). Both use a private directory and are stopped at the
//! end.

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
use self::program::MonitoringProgram;
use self::rules::{RulesError, TimeScale};
use super::pace::Pace;
use crate::config::{ConfigFile, FileError};
use queuekeeper_zookeeper::child::{FreePort, Guard};

mod files;
mod program;
mod rules;

/// The interval at which a starting program is polled.
const START_POLL: Duration = Duration::from_millis(50);

/// The interval at which a running program is polled.
const RUN_POLL: Duration = Duration::from_millis(250);

/// How long a program may take to answer.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Why monitoring failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program was not found; one sentence with what to install.
    #[error("{0}")]
    NotInstalled(String),
    /// A file or a process could not be created.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The operation and its object.
        doing: String,
        /// The cause.
        source: io::Error,
    },
    /// The shipped rules are not as the demo expects them.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// Our own configuration is not valid.
    #[error(transparent)]
    Config(#[from] FileError),
    /// A program does not answer.
    #[error("{program} did not answer within {limit} s; its last message: {last}", limit = START_LIMIT.as_secs())]
    Silent {
        /// The program.
        program: &'static str,
        /// The last line of its log.
        last: String,
    },
    /// A program ended before the demo did.
    #[error("{program} exited ({status}); its last message: {last}")]
    Ended {
        /// The program.
        program: &'static str,
        /// Its exit status.
        status: ExitStatus,
        /// The last line of its log.
        last: String,
    },
}

/// A running program.
#[derive(Debug)]
struct Program {
    kind: MonitoringProgram,
    port: u16,
    child: Child,
}

/// Prometheus and Alertmanager, running.
#[derive(Debug)]
pub(super) struct Monitoring {
    /// In the order of their start: receivers before senders.
    programs: Vec<Program>,
    guard: Guard,
    /// The absolute path of their directory, by which they are recognized.
    directory: PathBuf,
    /// Removes the directory when dropped, after they were stopped.
    _temporary: TempDir,
    lapse: TimeScale,
    /// The configuration of our own server.
    pub(super) config: ConfigFile,
}

impl Monitoring {
    /// Starts both for a server that listens on this address, and waits until they answer.
    ///
    /// # Errors
    /// When a program does not start.
    pub(super) async fn start(installation: Installation, server: SocketAddr, pace: Pace) -> Result<Self, Error> {
        let temporary = tempfile::Builder::new()
            .prefix("queuekeeper-prometheus-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir();
        let temporary = temporary.map_err(doing("create a temporary directory"))?;
        let directory = temporary.path().canonicalize().map_err(doing("find a temporary directory"))?;
        let path = directory.clone();
        let files = Files(&path);
        for kind in MonitoringProgram::ALL {
            fs::create_dir(files.data(kind.stem())).map_err(doing("create a directory"))?;
        }
        let config = files.write_ours()?;
        let guard = Guard::start(Some(&path)).map_err(doing("start a shell"))?;
        let (target, lapse) = (target(server), TimeScale::new(pace));
        let mut all = Self { programs: Vec::new(), guard, directory, _temporary: temporary, lapse, config };
        files.write_alertmanager(&target)?;
        let alertmanager = all.launch(MonitoringProgram::Alertmanager, &installation.alertmanager, files).await?;
        files.write_prometheus(&target, alertmanager, lapse)?;
        all.launch(MonitoringProgram::Prometheus, &installation.prometheus, files).await?;
        Ok(all)
    }

    /// The port of Prometheus.
    pub(super) fn prometheus(&self) -> u16 {
        self.port(MonitoringProgram::Prometheus)
    }

    /// The port of Alertmanager.
    pub(super) fn alertmanager(&self) -> u16 {
        self.port(MonitoringProgram::Alertmanager)
    }

    fn port(&self, kind: MonitoringProgram) -> u16 {
        self.programs.iter().find(|program| program.kind == kind).expect("both were started").port
    }

    /// The duration that stands for an hour in the rules.
    pub(super) fn hour(&self) -> Duration {
        self.lapse.hour()
    }

    /// The directory with all their files.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Waits until `end`, and then stops them.
    ///
    /// # Errors
    /// [`Error::Ended`] when one of them exits before.
    pub(super) async fn watch(mut self, end: &CancellationToken) -> Result<(), Error> {
        let watched = async {
            loop {
                for program in &mut self.programs {
                    let status = program.child.try_wait().map_err(doing("wait for a program"))?;
                    if let Some(status) = status {
                        return Err(ended(program.kind, status, Files(&self.directory)));
                    }
                }
                sleep(RUN_POLL).await;
            }
        };
        end.run_until_cancelled(watched).await.unwrap_or(Ok(()))
    }

    /// Starts a program on its default port, or else on a free port, and returns the port.
    async fn launch(&mut self, kind: MonitoringProgram, program: &Path, files: Files<'_>) -> Result<u16, Error> {
        let find = || FreePort::find().map_err(doing("find a free port"));
        let is_taken = Port::bind((Ipv4Addr::LOCALHOST, kind.port())).is_err();
        let mut free = is_taken.then(find).transpose()?;
        loop {
            let port = free.as_ref().map_or(kind.port(), FreePort::number);
            let log = File::create(files.log(kind.stem())).map_err(doing("create a log"))?;
            let mut command = vec![program.into()];
            command.extend(kind.arguments(files, port));
            let child = self.guard.launch(&command, files.0, log).map_err(doing("start a program"))?;
            self.programs.push(Program { kind, port, child });
            match self.await_answer(files).await {
                Err(Error::Ended { last, .. }) if last.contains("address already in use") && free.is_none() => {
                    tracing::debug!(port, "the port was taken before {} could bind it", kind.name());
                    self.end_last();
                    free = Some(find()?);
                }
                outcome => return outcome.map(|()| port),
            }
        }
    }

    /// Waits until the last started program answers.
    async fn await_answer(&mut self, files: Files<'_>) -> Result<(), Error> {
        let program = self.programs.last_mut().expect("one was just started");
        let limit = Instant::now() + START_LIMIT;
        loop {
            if let Some(status) = program.child.try_wait().map_err(doing("wait for a program"))? {
                return Err(ended(program.kind, status, files));
            }
            if program.kind.answers(program.port, files).await {
                return Ok(());
            }
            if Instant::now() >= limit {
                let last = last_line(program.kind, files);
                return Err(Error::Silent { program: program.kind.name(), last });
            }
            sleep(START_POLL).await;
        }
    }

    fn end_last(&mut self) {
        if let Some(Program { kind, child, .. }) = self.programs.pop()
            && let Err(error) = self.guard.kill(child)
        {
            tracing::debug!(%error, "{} could not be stopped", kind.name());
        }
    }
}

/// Stops both, the last one first. Their data is not kept, so they need no graceful shutdown.
impl Drop for Monitoring {
    fn drop(&mut self) {
        while !self.programs.is_empty() {
            self.end_last();
        }
        self.guard.dismiss();
    }
}

/// The address of a server that listens on `address`, as seen from this machine.
fn target(address: SocketAddr) -> String {
    let ip = if address.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { address.ip() };
    SocketAddr::new(ip, address.port()).to_string()
}

fn ended(kind: MonitoringProgram, status: ExitStatus, files: Files<'_>) -> Error {
    Error::Ended { program: kind.name(), status, last: last_line(kind, files) }
}

fn last_line(kind: MonitoringProgram, files: Files<'_>) -> String {
    files.last_line(kind.stem()).unwrap_or_else(|error| error.to_string())
}

fn doing(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { doing: what.to_owned(), source }
}

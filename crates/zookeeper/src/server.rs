//! A private server: a real ZooKeeper of our own, for the demo and the tests.
//!
//! It is a standalone server in a child process on the loopback interface, with a free port and a temporary directory,
//! and it ends with its owner: when the [`PrivateServer`] is dropped, and also when the owner's process is killed
//! without warning.

mod files;
mod install;
mod options;

use std::fs::{File, Permissions};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tracing::debug;

use self::files::Layout;
pub use self::install::Installation;
pub use self::options::{ClientAuth, Member, Options, ServerTls};
use crate::child::{self, FreePort, Guard};

/// How often the server is polled while waiting for it.
const LOOK: Duration = Duration::from_millis(20);

/// How often the server is polled for its end, which nothing else reports.
const LOOK_FOR_END: Duration = Duration::from_millis(200);

/// How long a server may take to stop before it is killed.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Why there is no private server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// No installation was found: one sentence on what to install.
    #[error("{0}")]
    NotInstalled(String),
    /// A file or process of the server could not be made.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done, and with which file.
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The server ended while it should have started, or did not answer in time.
    #[error("ZooKeeper {how} (its log is {}); it ends with:\n{log_tail}", log.display())]
    NotStarted {
        /// What it did instead.
        how: String,
        /// The log file, gone by now where the directory was temporary.
        log: PathBuf,
        /// The last lines of it.
        log_tail: String,
    },
}

/// A running, or killed and restartable, server of our own.
#[derive(Debug)]
pub struct PrivateServer {
    options: Options,
    installation: Installation,
    layout: Layout,
    port: FreePort,
    secure_port: Option<FreePort>,
    /// `None` while it is killed or stopped.
    java: Option<Child>,
    guard: Guard,
    /// Removed when dropped; `None` where the directory is the caller's.
    _temporary: Option<TempDir>,
}

impl PrivateServer {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// When no server is installed, its files cannot be written, or it does not start; then with the end of its log.
    pub async fn start(options: Options) -> Result<Self, ServerError> {
        let installation = match &options.home {
            Some(home) => Installation::in_home(home)?,
            None => Installation::find()?,
        };
        let (directory, temporary) = place(&options)?;
        let layout = Layout::new(&directory);
        let layout = layout.map_err(doing("create the server's directories"))?;
        let guard = Guard::start(temporary.as_ref().map(TempDir::path)).map_err(doing("start a shell"))?;
        let port = free_port()?;
        let secure_port = options.tls.as_ref().map(|_| free_port()).transpose()?;
        let mut server =
            Self { options, installation, layout, port, secure_port, java: None, guard, _temporary: temporary };
        server.launch()?;
        server.await_answer().await?;
        Ok(server)
    }

    /// `127.0.0.1:PORT`, for [`super::Servers`].
    #[must_use]
    pub fn connect_string(&self) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.port())
    }

    /// The same for the port that speaks TLS; `None` without [`Options::tls`].
    #[must_use]
    pub fn secure_connect_string(&self) -> Option<String> {
        self.secure_port.as_ref().map(|port| format!("{}:{}", Ipv4Addr::LOCALHOST, port.number()))
    }

    /// The port for plain connections.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The id of its process; `None` while it is killed or stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.java.as_ref().map(Child::id)
    }

    /// Where its data and its log are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.layout.directory()
    }

    /// Stops the server as an administrator would. Its data stays until `self` is dropped.
    ///
    /// # Errors
    /// When its end cannot be awaited.
    pub async fn stop(&mut self) -> Result<(), ServerError> {
        self.signal(Signal::TERM);
        // A stopped (suspended) process keeps the signal until it is continued.
        self.signal(Signal::CONT);
        let limit = Instant::now() + STOP_LIMIT;
        while Instant::now() < limit {
            if self.exit_status()?.is_some() {
                return self.kill();
            }
            sleep(LOOK).await;
        }
        debug!(pid = self.pid(), "private ZooKeeper did not stop in time; killing it");
        self.kill()
    }

    /// Kills the server without warning, as a power failure would. Its data stays until `self` is dropped.
    ///
    /// # Errors
    /// When its end cannot be awaited.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        let Some(java) = self.java.take() else { return Ok(()) };
        self.guard.kill(java).map_err(doing("end ZooKeeper"))
    }

    /// Removes the data of a killed or stopped server, as a lost disk does.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn lose_data(&self) -> Result<(), ServerError> {
        self.layout.clear().map_err(doing("remove the server's data"))
    }

    /// Starts the server again after [`Self::kill`] or [`Self::stop`], on the same port with the same data; one that
    /// still runs is stopped first.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn restart(&mut self) -> Result<(), ServerError> {
        if self.java.is_some() {
            self.stop().await?;
        }
        self.launch()?;
        self.await_answer().await
    }

    /// Waits until the process ends by itself, and gives how it did.
    ///
    /// # Errors
    /// When its end cannot be awaited.
    pub async fn ended(&mut self) -> Result<ExitStatus, ServerError> {
        loop {
            if let Some(status) = self.exit_status()? {
                return Ok(status);
            }
            sleep(LOOK_FOR_END).await;
        }
    }

    /// Suspends the process: it keeps its connections and answers nothing. It is suspended when this returns.
    pub fn suspend(&self) {
        self.signal(Signal::STOP);
        if let Some(java) = &self.java {
            child::await_stop(java);
        }
    }

    /// Resumes a suspended process.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(java) = &self.java {
            child::signal(java, signal);
        }
    }

    /// Starts the process; it does not answer yet.
    fn launch(&mut self) -> Result<(), ServerError> {
        let secure_port = self.secure_port.as_ref().map(FreePort::number);
        let config = self.layout.write(&self.options, self.port(), secure_port);
        let config = config.map_err(doing("write the server's configuration"))?;
        let log = File::create(self.layout.log()).map_err(doing("open its log"))?;
        let mut program = self.installation.command(&self.options, &self.layout);
        program.push(config.into());
        let java = self.guard.launch(&program, self.layout.directory(), log);
        self.java = Some(java.map_err(doing("start ZooKeeper"))?);
        Ok(())
    }

    async fn await_answer(&mut self) -> Result<(), ServerError> {
        let limit = Instant::now() + self.options.start_limit;
        let ended = loop {
            if let Some(status) = self.exit_status()? {
                break format!("ended while starting ({status})");
            }
            if self.layout.is_answered_at(self.port()).await && self.secure_port_is_open().await {
                return Ok(());
            }
            if Instant::now() >= limit {
                break format!("did not answer within {} s", self.options.start_limit.as_secs());
            }
            sleep(LOOK).await;
        };
        let (log, log_tail) = (self.layout.log(), self.layout.log_tail());
        self.kill()?;
        Err(ServerError::NotStarted { how: ended, log, log_tail })
    }

    async fn secure_port_is_open(&self) -> bool {
        match &self.secure_port {
            None => true,
            Some(port) => tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port.number())).await.is_ok(),
        }
    }

    /// How the process ended; `None` while it runs.
    fn exit_status(&mut self) -> Result<Option<ExitStatus>, ServerError> {
        match &mut self.java {
            None => Ok(None),
            Some(java) => java.try_wait().map_err(doing("look after ZooKeeper")),
        }
    }
}

/// Kills the process and waits for its end, which takes some milliseconds.
impl Drop for PrivateServer {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            debug!(%error, "cannot end the private ZooKeeper");
        }
        self.guard.dismiss();
    }
}

/// The server's directory, with what removes it again unless it is the caller's.
fn place(options: &Options) -> Result<(PathBuf, Option<TempDir>), ServerError> {
    if let Some(directory) = &options.directory {
        return Ok((directory.clone(), None));
    }
    // By itself it would be readable by everyone on the machine.
    let made =
        tempfile::Builder::new().prefix("queuekeeper-zookeeper-").permissions(Permissions::from_mode(0o700)).tempdir();
    let temporary = made.map_err(doing("create a temporary directory"))?;
    Ok((temporary.path().to_owned(), Some(temporary)))
}

fn free_port() -> Result<FreePort, ServerError> {
    FreePort::find().map_err(doing("find a free port"))
}

fn doing(what: &str) -> impl FnOnce(std::io::Error) -> ServerError {
    let doing = what.to_owned();
    move |source| ServerError::Io { doing, source }
}

//! A private PostgreSQL server, from Debian's package `postgresql`.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use queuekeeper_zookeeper::child::{self, Guard};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::process::free_port;

/// How long a server may take to answer, or to stop.
const LIMIT: Duration = Duration::from_mins(1);

/// How often it is looked after.
const LOOK: Duration = Duration::from_millis(20);

/// The user of the databases, and its password.
const USER: &str = "keeper";

/// A password that must be escaped in a URL, and must not be seen anywhere.
const PASSWORD: &str = "correct/horse@battery";

/// A running, or killed and restartable, server of our own, on the loopback interface.
#[derive(Debug)]
pub struct Postgres {
    bin: PathBuf,
    directory: TempDir,
    user: Option<&'static str>,
    port: u16,
    server: Option<Child>,
    guard: Guard,
}

impl Postgres {
    /// Makes a cluster in a temporary directory, starts a server on it, and waits until it answers.
    #[must_use]
    pub fn start() -> Self {
        let bin = installed();
        let directory = tempfile::Builder::new().prefix("queuekeeper-postgres-").tempdir().unwrap();
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
        // PostgreSQL refuses to run as root.
        let user = rustix::process::geteuid().is_root().then_some("postgres");
        if let Some(user) = user {
            chown(directory.path(), Some(id_of(user, "-u")), Some(id_of(user, "-g"))).unwrap();
        }
        let guard = Guard::start(Some(directory.path())).unwrap();
        let mut postgres = Self { bin, directory, user, port: free_port(), server: None, guard };
        postgres.make_cluster();
        assert!(postgres.launch(), "it does not start: {}", postgres.log());
        postgres
    }

    /// The port for connections.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The id of its first process; `None` while it is killed.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    /// The URL of a database, by way of a port: the server's, or that of a proxy in front of it.
    #[must_use]
    pub fn url_at(&self, port: u16, database: &str) -> String {
        let password = PASSWORD.replace('/', "%2F").replace('@', "%40");
        format!("postgres://{USER}:{password}@127.0.0.1:{port}/{database}")
    }

    /// The password, as it must not be seen in any message.
    #[must_use]
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// Makes an empty database; the answer is its URL.
    #[must_use]
    pub fn create(&self, database: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {database}"));
        self.url_at(self.port, database)
    }

    /// Runs SQL by the server's own client, and returns what that prints: columns separated by `|`, without headings.
    #[must_use = "or drop it"]
    pub fn query(&self, database: &str, sql: &str) -> String {
        let output = Command::new(self.bin.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql])
            .arg(self.url_at(self.port, database))
            .output()
            .unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same for what has no answer.
    pub fn sql(&self, database: &str, sql: &str) {
        drop(self.query(database, sql));
    }

    /// Kills the server and all its processes without warning, as a power failure would.
    pub fn kill(&mut self) {
        let Some(server) = self.server.take() else { return };
        // Its other processes end by themselves when they see that the first one is gone; a new server waits for them.
        self.guard.kill(server).unwrap();
    }

    /// Starts the server again after [`Self::kill`], on the same port with the same data.
    pub fn restart(&mut self) {
        self.kill();
        let deadline = Instant::now() + LIMIT;
        while !self.launch() {
            // Those of the killed server have the shared memory for a moment.
            assert!(Instant::now() < deadline, "it does not start: {}", self.log());
            std::thread::sleep(LOOK);
        }
    }

    fn make_cluster(&self) {
        let data = self.directory.path().join("data");
        let password = self.directory.path().join("password");
        std::fs::write(&password, PASSWORD).unwrap();
        std::fs::set_permissions(&password, Permissions::from_mode(0o644)).unwrap();
        let mut command = self.as_user(self.bin.join("initdb"));
        command
            .extend(["--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"].map(OsString::from));
        command.extend([OsString::from(format!("--username={USER}")), "--pwfile".into(), password.into()]);
        command.extend(["--pgdata".into(), data.into()]);
        let output = Command::new(&command[0]).args(&command[1..]).current_dir(self.directory.path()).output().unwrap();
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts the server; the answer is whether it runs and takes connections.
    fn launch(&mut self) -> bool {
        let log = File::create(self.directory.path().join("log")).unwrap();
        let mut command = self.as_user(self.bin.join("postgres"));
        let data = self.directory.path().join("data");
        command.extend(["-D".into(), data.into(), "-p".into(), self.port.to_string().into()]);
        // No socket outside the directory; room for 20 connections of several processes.
        for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=120"] {
            command.extend(["-c".into(), setting.into()]);
        }
        let mut server = self.guard.launch(&command, self.directory.path(), log).unwrap();
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            if server.try_wait().unwrap().is_some() {
                return false;
            }
            let port = self.port.to_string();
            let ready = Command::new(self.bin.join("pg_isready")).args(["-q", "-h", "127.0.0.1", "-p", &port]).status();
            if ready.unwrap().success() {
                self.server = Some(server);
                return true;
            }
            std::thread::sleep(LOOK);
        }
        self.guard.kill(server).unwrap();
        panic!("no answer in time: {}", self.log());
    }

    /// A command line that runs a program as a user who may run it.
    fn as_user(&self, program: PathBuf) -> Vec<OsString> {
        let mut command: Vec<OsString> = Vec::new();
        if let Some(user) = self.user {
            command.extend(["setpriv", "--reuid", user, "--regid", user, "--init-groups"].map(OsString::from));
        }
        command.push(program.into());
        command
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

/// Stops the server, which takes some milliseconds.
impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            // At once, but with its other processes, so that none writes into the directory while it is removed.
            child::signal(&server, Signal::QUIT);
            let mut server = server;
            let deadline = Instant::now() + LIMIT;
            while Instant::now() < deadline && server.try_wait().is_ok_and(|status| status.is_none()) {
                std::thread::sleep(LOOK);
            }
            let _ended = self.guard.kill(server);
        }
        self.guard.dismiss();
    }
}

/// Where Debian keeps the programs of the newest version that is installed.
fn installed() -> PathBuf {
    let root = Path::new("/usr/lib/postgresql");
    let versions = std::fs::read_dir(root).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.filter(|path| path.join("bin/initdb").exists()).max_by_key(number);
    newest.expect("no PostgreSQL; install the package postgresql").join("bin")
}

fn id_of(user: &str, which: &str) -> u32 {
    let output = Command::new("id").args([which, user]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

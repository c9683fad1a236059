//! The program itself, in a process that can be killed and whose clock can be set.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::fs::File;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::daemons::Steps;
use super::samples::Samples;
use queuekeeper_testkit::process::free_port;

/// Where Debian puts the library that sets a clock: the form for processes of several threads. The other one shares its
/// buffers between them, and of two threads that read the clock at once one is given the true time now and then.
const FAKETIME: &str = "faketime/libfaketimeMT.so.1";

/// How long a request may take, on however busy a machine.
const ANSWERS: Duration = Duration::from_mins(1);

pub(super) struct Program {
    child: Child,
    zookeeper: String,
    port: u16,
    http: reqwest::Client,
    directory: TempDir,
    /// How often each step was made before it was started.
    before: Steps,
}

impl Program {
    pub(super) fn start(zookeeper: String) -> Self {
        Self::start_at(zookeeper, 0)
    }

    /// Starts one with its clock off by so many seconds.
    pub(super) fn start_at(zookeeper: String, seconds: i64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("clock"), format!("{seconds:+}")).unwrap();
        let port = free_port();
        let child = launch(&zookeeper, port, &directory);
        let http = reqwest::Client::builder().timeout(ANSWERS).pool_max_idle_per_host(1).build().unwrap();
        Self { child, zookeeper, port, http, directory, before: Steps::new() }
    }

    /// `127.0.0.1:PORT`
    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills it without warning and starts it again, with a clock that is right: of one that is not it learns from the
    /// first change.
    pub(super) fn kill_and_restart(&mut self, steps: &Steps) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.set_clock(0);
        self.child = launch(&self.zookeeper, self.port, &self.directory);
        self.before = steps.clone();
    }

    /// What a command says that runs with its clock.
    pub(super) fn command(&self, arguments: &[&str]) -> String {
        let mut command = with_clock(&self.directory);
        let output = command.args(arguments).args(["--zookeeper", &self.zookeeper]).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Sets its clock off by so many seconds, and no other clock.
    pub(super) fn set_clock(&self, seconds: i64) {
        let clock = self.directory.path().join("clock");
        let new = self.directory.path().join("clock.new");
        std::fs::write(&new, format!("{seconds:+}")).unwrap();
        std::fs::rename(new, clock).unwrap();
    }

    /// What it answers; `None` while it does not listen yet.
    pub(super) async fn get(&mut self, path: &str) -> Option<(u16, String)> {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "queuekeeper ended by itself, {ended:?}: {}", self.log());
        let answer = self.http.get(format!("http://127.0.0.1:{}{path}", self.port)).send().await;
        match answer {
            Ok(answer) => Some((answer.status().as_u16(), answer.text().await.unwrap())),
            Err(error) if error.is_connect() => None,
            Err(error) => panic!("{path}: {error:?}; {}", self.log()),
        }
    }

    pub(super) async fn samples(&mut self) -> Option<Samples> {
        let (code, text) = self.get("/metrics").await?;
        assert_eq!(code, 200, "{text}");
        Some(Samples::new(&text))
    }

    /// The steps that it should have counted, if these were made in all.
    pub(super) fn counts_of(&self, steps: &Steps) -> Steps {
        let mut since = steps.clone();
        for (step, before) in &self.before {
            *since.get_mut(step).unwrap() -= before;
        }
        since.retain(|_, count| *count > 0);
        since
    }

    /// What it has logged since its last start.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn launch(zookeeper: &str, port: u16, directory: &TempDir) -> Child {
    let log = File::create(directory.path().join("log")).unwrap();
    let mut command = with_clock(directory);
    command
        .args(["serve", "--zookeeper", zookeeper, "--web.listen-address", &format!("127.0.0.1:{port}")])
        .args(["--zookeeper.session-timeout=4s", "--mirror.drift-interval=10s"])
        .stdin(Stdio::null())
        .stderr(log);
    command.spawn().unwrap()
}

/// What comes of a command whose clock is off by so many seconds.
pub(super) fn command_at(zookeeper: &str, seconds: i64, arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("clock"), format!("{seconds:+}")).unwrap();
    let audit = directory.path().join("audit");
    let mut command = with_clock(&directory);
    command.env("QUEUEKEEPER_CLI_AUDIT_FILE", audit).args(arguments).args(["--zookeeper", zookeeper]);
    command.stdin(Stdio::null()).output().unwrap()
}

/// The program with a clock that can be set.
fn with_clock(directory: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuekeeper"));
    command
        .env("LD_PRELOAD", faketime())
        .env("FAKETIME_TIMESTAMP_FILE", directory.path().join("clock"))
        .env("FAKETIME_NO_CACHE", "1")
        // What runs by the monotonic clock, as all waiting does, goes on as it did.
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1");
    command
}

fn faketime() -> std::path::PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap().map(|folder| folder.unwrap().path().join(FAKETIME));
    folders.into_iter().find(|path| path.exists()).expect("libfaketime is installed: .ci/install libfaketime")
}

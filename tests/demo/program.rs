//! A running demo, and its output.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use queuekeeper_testkit::wait::eventually_some;

/// A demo process, killed by its id when dropped.
pub(super) struct Demo {
    child: Child,
    /// Its temporary directory: all it leaves is here.
    temporary: TempDir,
    /// `http://127.0.0.1:PORT`
    pub(super) web: String,
    /// The connect string of its queue.
    pub(super) zookeeper: String,
    /// `http://127.0.0.1:PORT` of Prometheus and of Alertmanager, and the directory of both, if they run.
    pub(super) monitoring: Option<[String; 3]>,
}

/// A command with a temporary directory and a port of its own.
pub(super) fn command(temporary: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuekeeper"));
    command
        .args(["demo", "--web.listen-address", "127.0.0.1:0", "--log.level", "warn"])
        .env("TMPDIR", temporary)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

impl Demo {
    /// Starts a demo and reads its addresses.
    pub(super) fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, Stdio::inherit())
    }

    /// The same with standard error captured.
    pub(super) fn start_heard(arguments: &[&str]) -> Self {
        Self::start_with(arguments, Stdio::piped())
    }

    fn start_with(arguments: &[&str], errors: Stdio) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let mut child = command(temporary.path()).args(arguments).stderr(errors).spawn().unwrap();
        let greeting = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let (mut web, mut zookeeper) = (None, None);
        let mut monitoring = Vec::new();
        for line in greeting.take_while(|line| !line.starts_with("Ctrl-C")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["Status", "page", address] => web = Some(address.trim_end_matches('/').to_owned()),
                ["ZooKeeper", address, ..] => zookeeper = Some(address.to_owned()),
                ["Prometheus", address] => monitoring.push(address.trim_end_matches("/alerts").to_owned()),
                ["Alertmanager", address, ..] => monitoring.push(address.trim_end_matches('/').to_owned()),
                ["their", "files", directory] => monitoring.push(directory.to_owned()),
                _ => {}
            }
        }
        let (web, zookeeper) = (web.expect("the page"), zookeeper.expect("ZooKeeper's address"));
        Self { child, temporary, web, zookeeper, monitoring: monitoring.try_into().ok() }
    }

    /// What the API answers; `None` where it answers no JSON.
    pub(super) async fn get(&self, path: &str) -> Option<serde_json::Value> {
        let answer = reqwest::get(format!("{}{path}", self.web)).await.ok()?;
        serde_json::from_str(&answer.text().await.ok()?).ok()
    }

    /// The current metrics; empty while they are not served.
    pub(super) async fn metrics(&self) -> Metrics {
        let text = async { reqwest::get(format!("{}/metrics", self.web)).await?.text().await };
        Metrics(text.await.unwrap_or_default())
    }

    /// Sends a signal and waits for the end.
    pub(super) async fn end(&mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.ended().await
    }

    /// Waits for the end.
    pub(super) async fn ended(&mut self) -> ExitStatus {
        eventually_some(Duration::from_mins(1), "the demo ends", async || self.child.try_wait().unwrap()).await
    }

    /// Its standard error, if it was started with [`Demo::start_heard`], once it has ended.
    pub(super) fn said(&mut self) -> String {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }

    /// Its remains: files, and processes that were started in its temporary directory.
    pub(super) fn left(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.temporary.path()).unwrap();
        let mut left: Vec<_> = files.map(|file| file.unwrap().path().display().to_string()).collect();
        left.extend(self.processes().into_iter().map(|(id, line)| format!("{id}: {line}")));
        left
    }

    /// The processes that were started in its temporary directory, with their command lines.
    pub(super) fn processes(&self) -> Vec<(i32, String)> {
        let directory = self.temporary.path().to_str().unwrap();
        let mut found = Vec::new();
        for process in std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap()) {
            let mut line = Vec::new();
            // A process may end while it is inspected.
            if let Ok(mut file) = std::fs::File::open(process.path().join("cmdline")) {
                let _ = file.read_to_end(&mut line);
            }
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(directory) {
                found.push((process.file_name().to_str().unwrap().parse().unwrap_or_default(), line));
            }
        }
        found
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A scrape.
pub(super) struct Metrics(String);

impl Metrics {
    /// The value of a series by its name and labels; `None` if it does not exist.
    pub(super) fn get(&self, series: &str) -> Option<f64> {
        let value = self.0.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
        Some(value.parse().unwrap())
    }

    /// How many jobs are in a state.
    pub(super) fn jobs(&self, state: &str) -> f64 {
        self.get(&format!("merritt_jobs{{state=\"{state}\"}}")).unwrap_or(0.0)
    }

    /// How many jobs are locked by a daemon.
    pub(super) fn locked(&self, state: &str) -> f64 {
        self.get(&format!("merritt_jobs_locked{{state=\"{state}\"}}")).unwrap_or(0.0)
    }

    /// How many transitions of a kind were seen.
    pub(super) fn transitions(&self, (from, to): (&str, &str)) -> f64 {
        self.get(&format!("merritt_job_transitions_total{{from=\"{from}\",to=\"{to}\"}}")).unwrap_or(0.0)
    }
}

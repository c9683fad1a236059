//! A demo and a repository, each in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use queuekeeper_testkit::process::Program;
use queuekeeper_testkit::queue::PERSISTENT;

pub(super) struct Demo {
    _program: Program,
    /// `127.0.0.1:PORT`
    pub(super) address: String,
    /// The connect string of its queue.
    zookeeper: String,
    _directory: TempDir,
}

impl Demo {
    /// A small queue on which much happens, so that there is soon something of everything.
    pub(super) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_queuekeeper"))
            .args([
                "demo",
                "--web.listen-address",
                "127.0.0.1:0",
                "--log.level",
                "warn",
                "--jobs",
                "400",
                "--rate",
                "60",
            ])
            .env("TMPDIR", directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let greeting = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let program = Program(child);
        let (mut address, mut zookeeper) = (None, None);
        for line in greeting.take_while(|line| !line.starts_with("Ctrl-C")) {
            let line = line.trim();
            if let Some(page) = line.strip_prefix("Status page").and_then(|page| page.trim().strip_prefix("http://")) {
                address = Some(page.trim_end_matches('/').to_owned());
            } else if let Some(queue) = line.strip_prefix("ZooKeeper") {
                zookeeper = queue.split_whitespace().next().map(str::to_owned);
            }
        }
        Self {
            _program: program,
            address: address.expect("the greeting names the page"),
            zookeeper: zookeeper.expect("the greeting names ZooKeeper"),
            _directory: directory,
        }
    }

    /// Leaves a queue entry behind whose job is gone: a fault that nobody in the demo repairs.
    pub(super) async fn leave_a_stray_entry(&self) {
        let client = queuekeeper_testkit::server::connect(&self.zookeeper).await;
        client.create("/jobs/states/failed/50-jid0999999999", b"", &PERSISTENT).await.unwrap();
    }

    /// What is at an address of it, by its path.
    pub(super) async fn get(&self, path: &str) -> (u16, String) {
        let answer = reqwest::get(format!("http://{}{path}", self.address)).await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Requests something.
    pub(super) async fn action(&self, action: &str, on: &str) {
        let action = serde_json::json!({"action": action, "on": on, "reason": "to be seen on a dashboard"});
        let request = reqwest::Client::new().post(format!("http://{}/api/v1/actions", self.address));
        let request = request.header("content-type", "application/json").header("sec-fetch-site", "same-origin");
        let answer = request.body(action.to_string()).send().await.unwrap();
        assert!(answer.status().is_success(), "{action} {on}: {}", answer.text().await.unwrap());
    }
}

/// A repository, in which the daemons of queuekeeper work.
pub(super) struct Repository {
    _program: Program,
    /// `127.0.0.1:PORT`
    pub(super) address: String,
    directory: TempDir,
}

impl Repository {
    pub(super) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_queuekeeper"))
            .args(["standalone", "--web.listen-address", "127.0.0.1:0", "--log.level", "warn", "--data"])
            .arg(directory.path().join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut greeting = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let program = Program(child);
        let address = greeting.find_map(|line| {
            let address = line.strip_prefix("Pages:")?.trim().strip_prefix("http://")?;
            Some(address.trim_end_matches('/').to_owned())
        });
        Self { _program: program, address: address.expect("the greeting names the pages"), directory }
    }

    /// Deposits a file of this name, whose content is no archive, and waits until that ends with this code.
    pub(super) fn submit(&self, name: &str, code: i32) {
        let file = self.directory.path().join(name);
        std::fs::write(&file, "content").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_queuekeeper"));
        command.args(["submit", "--profile", "default", "--wait", "--data"]).arg(self.directory.path().join("data"));
        let output = command.arg(file).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

//! A demo and a Prometheus that scrapes it with our rules, both in processes of their own.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A child process, killed by its id when dropped.
pub(super) struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) struct Demo {
    _program: Program,
    /// `127.0.0.1:PORT`
    pub(super) address: String,
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
        let address = greeting.take_while(|line| !line.starts_with("Ctrl-C")).find_map(|line| {
            let address = line.trim().strip_prefix("Status page")?.trim().strip_prefix("http://")?;
            Some(address.trim_end_matches('/').to_owned())
        });
        Self { _program: program, address: address.expect("the greeting names the page"), _directory: directory }
    }

    /// What is at an address of it, by its path.
    pub(super) async fn get(&self, path: &str) -> (u16, String) {
        let answer = reqwest::get(format!("http://{}{path}", self.address)).await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Orders something.
    pub(super) async fn order(&self, action: &str, on: &str) {
        let order = serde_json::json!({"action": action, "on": on, "reason": "to be seen on a dashboard"});
        let request = reqwest::Client::new().post(format!("http://{}/api/v1/orders", self.address));
        let request = request.header("content-type", "application/json").header("sec-fetch-site", "same-origin");
        let answer = request.body(order.to_string()).send().await.unwrap();
        assert!(answer.status().is_success(), "{action} {on}: {}", answer.text().await.unwrap());
    }
}

pub(super) struct Prometheus {
    _program: Program,
    port: u16,
    _directory: TempDir,
}

impl Prometheus {
    /// Debian's, with our rules. Alerts are raised at once: how long they wait is `promtool`'s to test.
    pub(super) fn start(target: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards/prometheus");
        for name in ["recording.yml", "alerts.yml"] {
            let text = std::fs::read_to_string(rules.join(name)).unwrap();
            let at_once =
                |line: &str| if line.trim().starts_with("for:") { String::new() } else { format!("{line}\n") };
            std::fs::write(directory.path().join(name), text.lines().map(at_once).collect::<String>()).unwrap();
        }
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\n\
             rule_files: [recording.yml, alerts.yml]\n\
             scrape_configs:\n- {{job_name: queuekeeper, static_configs: [{{targets: ['{target}']}}]}}\n"
        );
        let file = directory.path().join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--log.level=error")
            .stdout(Stdio::null())
            .spawn();
        let program = Program(child.expect("prometheus is installed: .ci/install prometheus"));
        Self { _program: program, port, _directory: directory }
    }

    /// What its API answers as `data`; `None` while it does not listen yet.
    pub(super) async fn ask(&self, path: &str, pairs: &[(&str, &str)]) -> Option<Value> {
        let url = format!("http://127.0.0.1:{}/api/v1/{path}", self.port);
        let url = reqwest::Url::parse_with_params(&url, pairs).unwrap();
        let answer = reqwest::get(url).await.ok()?.text().await.ok()?;
        let mut answer: Value = serde_json::from_str(&answer).ok()?;
        assert_eq!(answer["status"], "success", "{path} {pairs:?}: {answer}");
        Some(answer["data"].take())
    }
}

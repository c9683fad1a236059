//! A real Prometheus with our rules, in a process of its own.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking, as the test itself does")]

use std::path::Path;
use std::process::{Command, Stdio};

use queuekeeper_testkit::process::{Program, free_port};
use serde_json::Value;
use tempfile::TempDir;

/// When alerts are raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alerts {
    /// When they have waited as long as they are to.
    Patient,
    /// At once, which shows that each of them can be.
    AtOnce,
}

pub(crate) struct Prometheus {
    _program: Program,
    port: u16,
    _directory: TempDir,
}

impl Prometheus {
    /// Debian's, which scrapes `target`, with our rules.
    pub(crate) fn start(target: &str, alerts: Alerts) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards/prometheus");
        for name in ["recording.yml", "alerts.yml"] {
            let text = std::fs::read_to_string(rules.join(name)).unwrap();
            let lines = text.lines().filter(|line| alerts == Alerts::Patient || !line.trim().starts_with("for:"));
            std::fs::write(directory.path().join(name), lines.collect::<Vec<_>>().join("\n")).unwrap();
        }
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\n\
             rule_files: [recording.yml, alerts.yml]\n\
             scrape_configs:\n- {{job_name: queuekeeper, static_configs: [{{targets: ['{target}']}}]}}\n"
        );
        let file = directory.path().join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let port = free_port();
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
    pub(crate) async fn ask(&self, path: &str, pairs: &[(&str, &str)]) -> Option<Value> {
        let url = format!("http://127.0.0.1:{}/api/v1/{path}", self.port);
        let url = reqwest::Url::parse_with_params(&url, pairs).unwrap();
        let answer = reqwest::get(url).await.ok()?.text().await.ok()?;
        let mut answer: Value = serde_json::from_str(&answer).ok()?;
        assert_eq!(answer["status"], "success", "{path} {pairs:?}: {answer}");
        Some(answer["data"].take())
    }
}

/// Every test binary has its own copy of this file and few use all of it, which each of them would be warned of.
const _: fn() = || {
    let _ = (Prometheus::start, Prometheus::ask, [Alerts::Patient, Alerts::AtOnce]);
};

//! The configuration files of Prometheus, Alertmanager and our own server, in the private directory.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::Error;
use super::rules::{RulesError, TimeScale};
use crate::actions::Role;
use crate::config::{ConfigFile, Secret, TokenLine};

/// The name of Alertmanager's token, also in the audit trail.
const PRINCIPAL: &str = "alertmanager";

/// Its role: it may only send alerts.
const ROLE: Role = Role::Alertmanager;

/// The directory with its files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Files<'a>(pub(super) &'a Path);

impl Files<'_> {
    fn path(self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The log of a program.
    pub(super) fn log(self, program: &str) -> PathBuf {
        self.path(&format!("{program}.log"))
    }

    /// The data directory of a program.
    pub(super) fn data(self, program: &str) -> PathBuf {
        self.path(program)
    }

    /// The configuration of a program.
    pub(super) fn config(self, program: &str) -> PathBuf {
        self.path(&format!("{program}.yml"))
    }

    fn write(self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path(name);
        match fs::write(&path, text) {
            Ok(()) => Ok(path),
            Err(source) => Err(Error::Io { doing: format!("write {}", path.display()), source }),
        }
    }

    /// The configuration of our own server, with Alertmanager's token.
    pub(super) fn write_ours(self) -> Result<ConfigFile, Error> {
        let secret = Secret::make();
        let token = self.path("alertmanager.token");
        let private = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&token);
        private
            .and_then(|mut file| file.write_all(secret.reveal().as_bytes()))
            .map_err(|source| Error::Io { doing: format!("write {}", token.display()), source })?;
        let line = TokenLine::new(PRINCIPAL, ROLE, None, &secret).expect("the name is valid");
        self.write("tokens.yml", &format!("{line}\n"))?;
        let path = self.write("queuekeeper.yml", &fast_rules()?)?;
        Ok(ConfigFile::read(&path)?)
    }

    /// The configuration of Alertmanager, which calls our server at `target`.
    pub(super) fn write_alertmanager(self, target: &str) -> Result<(), Error> {
        let credentials = quoted(&self.path("alertmanager.token"));
        let config = format!(
            "route:
  receiver: queuekeeper
  group_by: [alertname, cause]
  group_wait: 1s
  group_interval: 5s
  repeat_interval: 30s
receivers:
  - name: queuekeeper
    webhook_configs:
      - url: http://{target}/api/v1/alerts
        send_resolved: true
        max_alerts: 100
        http_config:
          authorization:
            type: Bearer
            credentials_file: {credentials}
"
        );
        self.write("alertmanager.yml", &config).map(drop)
    }

    /// The configuration of Prometheus, which scrapes our server at `target` and sends alerts to Alertmanager.
    pub(super) fn write_prometheus(self, target: &str, alertmanager: u16, lapse: TimeScale) -> Result<(), Error> {
        let mut names = Vec::new();
        for (name, text) in lapse.rules()? {
            names.push(quoted(&self.write(name, &text)?));
        }
        let rules = names.join(", ");
        let config = format!(
            "global:
  scrape_interval: 1s
  scrape_timeout: 1s
  evaluation_interval: 1s
scrape_configs:
  - job_name: merritt
    static_configs:
      - targets: [\"{target}\"]
rule_files: [{rules}]
alerting:
  alertmanagers:
    - static_configs:
        - targets: [\"127.0.0.1:{alertmanager}\"]
"
        );
        self.write("prometheus.yml", &config).map(drop)
    }

    /// The last line that a program logged.
    pub(super) fn last_line(self, program: &str) -> io::Result<String> {
        let log = fs::read(self.log(program))?;
        let log = String::from_utf8_lossy(&log);
        Ok(log.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing").to_owned())
    }
}

/// The shipped rules of our server, enforcing and scaled to the demo's time.
fn fast_rules() -> Result<String, RulesError> {
    const SHIPPED: &str = include_str!("../../../dashboards/queuekeeper/config.yml");
    const CHANGES: [(&str, &str); 12] = [
        ("# tokens_file: tokens.yml", "tokens_file: tokens.yml"),
        ("mode: dry-run", "mode: enforce"),
        ("budget: {items: 100, per: 1h}", "budget: {items: 1000, per: 10m}"),
        ("budget: {items: 6, per: 1d}", "budget: {items: 30, per: 10m}"),
        ("budget: {items: 20, per: 1h}", "budget: {items: 200, per: 10m}"),
        // In the demo there are few failed jobs, with random causes.
        ("max_share: 0.25", "max_share: 1.0"),
        ("cooldown: 1h", "cooldown: 30s"),
        ("cooldown: 15m", "cooldown: 30s"),
        ("cooldown: 5m", "cooldown: 10s"),
        ("cooldown: 10m", "cooldown: 10s"),
        ("min_age: 2m", "min_age: 5s"),
        ("min_age: 10m", "min_age: 10s"),
    ];
    CHANGES.iter().try_fold(SHIPPED.to_owned(), |text, (from, to)| {
        if text.contains(from) { Ok(text.replace(from, to)) } else { Err(RulesError::missing("config.yml", from)) }
    })
}

/// A path as a YAML string.
fn quoted(path: &Path) -> String {
    // A JSON string is a YAML string.
    serde_json::Value::from(path.display().to_string()).to_string()
}

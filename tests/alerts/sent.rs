//! The notifications of a real Alertmanager with the shipped configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use queuekeeper_testkit::process::{Program, free_port};
use queuekeeper_testkit::wait::{eventually, eventually_some};

const LIMIT: Duration = Duration::from_mins(5);

struct Alertmanager {
    _program: Program,
    base: String,
    _directory: TempDir,
}

fn started(directory: &Path, port: u16) -> Child {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards/alertmanager/alertmanager.yml");
    // As shipped, but without delays.
    let text = std::fs::read_to_string(shipped).unwrap();
    let text = text.replace("group_wait: 30s", "group_wait: 1s").replace("group_wait: 10s", "group_wait: 1s");
    std::fs::write(directory.join("alertmanager.yml"), text).unwrap();
    std::fs::write(directory.join("alertmanager.token"), "none").unwrap();
    Command::new("prometheus-alertmanager")
        .arg(format!("--config.file={}", directory.join("alertmanager.yml").display()))
        .arg(format!("--storage.path={}", directory.join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .args(["--cluster.listen-address=", "--log.level=error"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("Alertmanager is installed: .ci/install prometheus-alertmanager")
}

impl Alertmanager {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port();
        let program = Program(started(directory.path(), port));
        let started =
            Self { _program: program, base: format!("http://127.0.0.1:{port}/api/v2"), _directory: directory };
        eventually(LIMIT, "Alertmanager answers", async || started.get("status").await.is_some()).await;
        started
    }

    async fn get(&self, path: &str) -> Option<Value> {
        let text = reqwest::get(format!("{}/{path}", self.base)).await.ok()?.text().await.ok()?;
        serde_json::from_str(&text).ok()
    }

    /// The alert, the instance and the state of each inhibited one.
    async fn inhibited(&self) -> Option<BTreeSet<(String, String, String)>> {
        let found = self.get("alerts").await?;
        let inhibited = found
            .as_array()?
            .iter()
            .filter(|alert| alert["status"]["inhibitedBy"].as_array().is_some_and(|sources| !sources.is_empty()));
        let label = |alert: &Value, name: &str| alert["labels"][name].as_str().unwrap_or_default().to_owned();
        Some(
            inhibited
                .map(|alert| (label(alert, "alertname"), label(alert, "instance"), label(alert, "state")))
                .collect(),
        )
    }

    async fn raise(&self, labels: &[Value]) {
        let alerts: Vec<_> = labels.iter().map(|labels| json!({"labels": labels})).collect();
        let request = reqwest::Client::new().post(format!("{}/alerts", self.base));
        let answer = request.header("content-type", "application/json").body(json!(alerts).to_string()).send().await;
        assert!(answer.unwrap().status().is_success());
    }
}

fn alert(name: &str, severity: &str, instance: &str, more: &Value) -> Value {
    let mut labels = json!({"alertname": name, "severity": severity, "job": "ingest", "instance": instance});
    labels.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    labels
}

/// The instance of each alert of another queue, for comparison.
const OTHER: &str = "elsewhere:1";

#[tokio::test(flavor = "multi_thread")]
async fn one_notification_is_sent_for_each_queue_and_none_for_alerts_that_another_one_explains() {
    let state = json!({"state": "storing"});
    let none = json!({});
    let other = json!({"job": "other", "state": "storing"});
    let alertmanager = Alertmanager::start().await;
    let mut alerts = Vec::new();
    for instance in ["a:1", "b:1"] {
        alerts.extend([
            alert("MerrittJobsFailed", "warning", instance, &none),
            alert("MerrittStateStuck", "critical", instance, &state),
            alert("MerrittJobHangs", "warning", instance, &state),
            alert("QueuekeeperDown", "warning", instance, &none),
            alert("MerrittVolumeLow", "info", instance, &none),
        ]);
    }
    alerts.extend([
        alert("MerrittFailureRate", "critical", "a:1", &none),
        json!({"alertname": "QueuekeeperAbsent", "severity": "critical", "job": "ingest"}),
        alert("MerrittJobsFailed", "warning", OTHER, &other),
        alert("MerrittJobHangs", "warning", OTHER, &other),
        alert("MerrittJobHangs", "warning", "a:1", &json!({"state": "notify"})),
        alert("QueuekeeperDown", "warning", OTHER, &other),
    ]);
    alertmanager.raise(&alerts).await;

    let expected = ["a:1", "b:1"].into_iter().flat_map(|instance| {
        [("MerrittJobHangs", "storing"), ("MerrittJobsFailed", ""), ("QueuekeeperDown", "")]
            .map(|(name, state)| (name.to_owned(), instance.to_owned(), state.to_owned()))
    });
    let expected: BTreeSet<_> = expected.collect();
    // Inhibition takes effect a moment after the alerts arrive.
    eventually(LIMIT, "what another explains is inhibited", async || {
        alertmanager.inhibited().await.is_some_and(|inhibited| inhibited.is_superset(&expected))
    })
    .await;
    let groups = eventually_some(LIMIT, "all are in their groups", async || {
        let groups = alertmanager.get("alerts/groups").await?;
        let all = groups.as_array()?.iter().flat_map(|group| group["alerts"].as_array().unwrap());
        let different: BTreeSet<_> = all.map(|alert| alert["fingerprint"].as_str().unwrap()).collect();
        (different.len() == alerts.len()).then(|| groups.clone())
    })
    .await;
    assert_eq!(alertmanager.inhibited().await, Some(expected));
    let mut sent: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for group in groups.as_array().unwrap() {
        let number = group["alerts"].as_array().unwrap().len();
        let of = |label: &str| group["labels"][label].as_str().unwrap_or_default().to_owned();
        let key = format!("{} {} {}", group["receiver"]["name"].as_str().unwrap(), of("alertname"), of("job"));
        sent.entry(key).or_default().push(number);
    }
    // Both instances in one notification, and none about alerts for scaling.
    assert_eq!(sent["people MerrittStateStuck ingest"], [2], "{sent:?}");
    assert_eq!(sent["people MerrittJobsFailed other"], [1], "{sent:?}");
    assert_eq!(sent["queuekeeper MerrittJobsFailed ingest"], [2], "{sent:?}");
    assert_eq!(sent["null MerrittVolumeLow ingest"], [2], "{sent:?}");
    assert!(!sent.keys().any(|key| key.starts_with("people MerrittVolume")), "{sent:?}");
}

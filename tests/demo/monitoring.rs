//! A demo with a real Prometheus and a real Alertmanager.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::{Error, Queue};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::program::Demo;
use queuekeeper_testkit::documentation::block;
use queuekeeper_testkit::server::connect;
use queuekeeper_testkit::wait::{eventually, eventually_some};

const LIMIT: Duration = Duration::from_mins(10);

/// The response of an address; `None` unless it succeeds.
async fn get(url: &str) -> Option<Value> {
    let response = reqwest::get(url).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    serde_json::from_str(&response.text().await.ok()?).ok()
}

/// All rules that Prometheus has.
async fn rules(prometheus: &str) -> Option<Vec<Value>> {
    let answer = get(&format!("{prometheus}/api/v1/rules")).await?;
    let groups = answer["data"]["groups"].as_array()?;
    Some(groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).cloned().collect())
}

/// The shipped rules, by the beginnings of their lines.
fn shipped(file: &str, mark: &str) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards/prometheus").join(file);
    std::fs::read_to_string(path).unwrap().lines().filter(|line| line.trim_start().starts_with(mark)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stall_fires_the_alert_and_the_rule_holds_and_releases_a_collection() {
    let documented = block("README.md", ".ci/install zookeeper prometheus ").trim();
    let (_, option) = documented.split_once(" && cargo run -- demo ").unwrap();
    let mut demo = Demo::start(&[option, "--jobs", "300", "--rate", "40"]);
    let [prometheus, alertmanager, directory] = demo.monitoring.clone().expect("they are printed");

    eventually(LIMIT, "the demo is scraped", async || {
        let answer = get(&format!("{prometheus}/api/v1/query?query=up")).await;
        answer.is_some_and(|answer| answer["data"]["result"][0]["value"][1] == "1")
    })
    .await;
    let known = eventually_some(LIMIT, "Prometheus knows Alertmanager", async || {
        let answer = get(&format!("{prometheus}/api/v1/alertmanagers")).await?;
        answer["data"]["activeAlertmanagers"][0]["url"].as_str().map(str::to_owned)
    })
    .await;
    assert!(known.starts_with(&alertmanager), "{known} is not of {alertmanager}");

    // The health of a rule that was not evaluated yet is unknown.
    let all = eventually_some(LIMIT, "all rules are evaluated", async || {
        rules(&prometheus).await.filter(|rules| rules.iter().all(|rule| rule["health"] != "unknown"))
    })
    .await;
    let ill: Vec<_> = all.iter().filter(|rule| rule["health"] != "ok").collect();
    assert!(ill.is_empty(), "{ill:?}");
    let alerts = all.iter().filter(|rule| rule["type"] == "alerting").count();
    assert_eq!(alerts, shipped("alerts.yml", "- alert:"));
    let records = shipped("recording.yml", "- record:") + shipped("recording.yml", "- {record:");
    assert_eq!(all.len() - alerts, records);

    // The charts of longer than the mirror keeps are of what Prometheus has scraped.
    let drawn = async || {
        let page = reqwest::get(format!("{}/charts?range=1d", demo.web)).await.unwrap().text().await.unwrap();
        page.matches("class=\"line s0\"").count() == 5 && page.contains("<li class=\"s7\">")
    };
    eventually(LIMIT, "all charts of a day are drawn", drawn).await;

    let mode = std::fs::metadata(&directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "no other user can read it");
    let token = std::fs::read_to_string(Path::new(&directory).join("alertmanager.token")).unwrap();
    let client = reqwest::Client::new();
    let asked = client.get(format!("{}/api/v1/identity", demo.web)).header("authorization", format!("Bearer {token}"));
    let answer: Value = serde_json::from_str(&asked.send().await.unwrap().text().await.unwrap()).unwrap();
    let detail = answer["detail"].as_str().unwrap_or_default();
    assert!(detail.starts_with("The token alertmanager may only send alerts"), "{answer}");

    eventually(LIMIT, "the alert of the stall is sent to Alertmanager", async || {
        let alerts = get(&format!("{alertmanager}/api/v2/alerts?active=true")).await.unwrap_or_default();
        alerts.as_array().is_some_and(|alerts| alerts.iter().map(|alert| &alert["labels"]).any(is_stall))
    })
    .await;
    eventually(LIMIT, "the page says what stalls the queue, and why", async || {
        let verdict = get(&format!("{}/api/v1/overview", demo.web)).await.unwrap_or_default()["verdict"].take();
        let sentence = verdict["sentence"].as_str().unwrap_or_default();
        verdict["kind"] == "stalled"
            && sentence.starts_with("Stalled in Provisioning for ")
            && sentence.contains("working storage")
    })
    .await;
    eventually(LIMIT, "Alertmanager calls", async || {
        let text = async { reqwest::get(format!("{alertmanager}/metrics")).await?.text().await }.await;
        let calls = r#"alertmanager_notifications_total{integration="webhook"} "#;
        let text = text.unwrap_or_default();
        text.lines().filter_map(|line| line.strip_prefix(calls)).any(|calls| calls.parse::<f64>().unwrap() > 0.0)
    })
    .await;

    // The rule automatically holds the collection that needs most.
    let queue = Queue::new(connect(&demo.zookeeper).await);
    let hold = eventually_some(LIMIT, "the rule holds the collection that needs most space", async || {
        queue.held_collection("film_archive_8k").await.ok().flatten().filter(|hold| hold.who == "rule make-room")
    })
    .await;
    assert!(hold.why.contains("alert MerrittProvisioningStuck"), "{hold:?}");
    let held = eventually_some(LIMIT, "more large deposits are held", async || held_film(&queue).await).await;
    eventually(LIMIT, "the resolved alert is sent to Alertmanager", async || {
        let alerts = get(&format!("{alertmanager}/api/v2/alerts?active=true")).await;
        alerts.is_some_and(|alerts| !alerts.as_array().unwrap().iter().map(|alert| &alert["labels"]).any(is_stall))
    })
    .await;
    let deadline = tokio::time::Instant::now() + LIMIT;
    loop {
        let (hold, batch) = (queue.held_collection("film_archive_8k").await, queue.load_batch(held).await);
        let is_unread = batch.as_ref().is_err_and(Error::is_connection);
        // A completed one may be purged by now.
        let state = batch.ok().and_then(|batch| batch.state());
        if matches!(hold, Ok(None)) && !is_unread && state != Some(BatchState::Held) {
            break;
        }
        let is_late = tokio::time::Instant::now() > deadline;
        let rules = if is_late { get(&format!("{}/api/v1/rules", demo.web)).await } else { None };
        assert!(!is_late, "nothing is released: {held} is {state:?}, {hold:?}; {rules:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The state of the rule is read again each second.
    let rule = eventually_some(LIMIT, "the rule reports that it held and released", async || {
        let rules = get(&format!("{}/api/v1/rules", demo.web)).await?;
        let rule = rules["rules"].as_array()?.iter().find(|rule| rule["name"] == "make-room")?.clone();
        let executed = rule["events"].as_array()?.iter().filter(|event| event["outcome"] == "executed").count();
        Some(rule).filter(|_| executed >= 2)
    })
    .await;
    assert_eq!((&rule["mode"], &rule["breaker_open_since"]), (&"enforce".into(), &Value::Null), "{rule}");

    assert_eq!(demo.end(Signal::INT).await.code(), Some(0));
    assert_eq!(demo.left(), [""; 0]);
}

/// A batch of films that is Held.
async fn held_film(queue: &Queue) -> Option<BatchId> {
    for id in queue.batches().await.unwrap_or_default() {
        // It may be purged in the meantime.
        if let Ok(batch) = queue.load_batch(id).await
            && batch.state() == Some(BatchState::Held)
            && batch.submitted().value.collection == "film_archive_8k"
        {
            return Some(id);
        }
    }
    None
}

fn is_stall(labels: &Value) -> bool {
    labels["alertname"] == "MerrittProvisioningStuck" && labels["cause"] == "waiting_for_grant"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_that_is_killed_leaves_no_process_and_no_file() {
    let mut demo = Demo::start(&["--with-prometheus", "--jobs", "60"]);
    let running = demo.processes();
    for program in ["/prometheus.yml", "/alertmanager.yml", "/zoo.cfg"] {
        assert!(running.iter().any(|(_, line)| line.contains(program)), "{program} of {running:?}");
    }
    demo.end(Signal::KILL).await;
    eventually(LIMIT, "nothing is left", async || demo.left().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_prometheus_or_alertmanager_ends_the_demo_with_an_error() {
    for (name, config) in [("Prometheus", "/prometheus.yml"), ("Alertmanager", "/alertmanager.yml")] {
        let mut demo = Demo::start_heard(&["--with-prometheus", "--jobs", "60"]);
        let running = demo.processes();
        let (id, _) = running.iter().find(|(_, line)| line.contains(config)).unwrap();
        kill_process(Pid::from_raw(*id).unwrap(), Signal::KILL).unwrap();
        assert_eq!(demo.ended().await.code(), Some(1));
        let said = demo.said();
        let line =
            said.lines().find(|line| line.starts_with("error: ")).unwrap_or_else(|| panic!("no error in {said}"));
        assert!(line.contains(&format!("{name} exited (signal: 9")), "{line}");
        assert_eq!(demo.left(), [""; 0]);
    }
}

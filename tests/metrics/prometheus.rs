//! A real Prometheus scrapes the real program beside a real ZooKeeper, and answers PromQL.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use queuekeeper_testkit::process::{Program, free_port};
use queuekeeper_testkit::server::connect;
use queuekeeper_testkit::wait::eventually_some;
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use zookeeper_client::{Acls, Client, CreateMode};

const LIMIT: Duration = Duration::from_mins(5);

fn serve(zookeeper: &str, port: u16, storage: &Path) -> Program {
    let child = Command::new(env!("CARGO_BIN_EXE_queuekeeper"))
        .args(["serve", "--zookeeper", zookeeper, "--zookeeper.session-timeout", "60s", "--log.level", "error"])
        .args(["--web.listen-address", &format!("127.0.0.1:{port}"), "--metrics.collections", "2"])
        .arg("--storage.path")
        .arg(storage)
        .spawn();
    Program(child.unwrap())
}

/// Prometheus as Debian packages it, with one target for each format. A scrape that takes longer than the interval is
/// lost.
fn prometheus(directory: &Path, port: u16, openmetrics: u16, text: u16) -> Program {
    let config = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
         scrape_configs:\n\
         - {{job_name: openmetrics, static_configs: [{{targets: ['127.0.0.1:{openmetrics}']}}]}}\n\
         - {{job_name: text, static_configs: [{{targets: ['127.0.0.1:{text}']}}]}}\n"
    );
    let file = directory.join("prometheus.yml");
    std::fs::write(&file, config).unwrap();
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", directory.join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .arg("--log.level=error")
        .stdout(Stdio::null())
        .spawn();
    Program(child.expect("prometheus is installed: .ci/install prometheus"))
}

/// Hands scrapes on without saying what Prometheus would take, as a scraper does that knows only the text format.
async fn relay(listener: tokio::net::TcpListener, target: u16) {
    let get = move || async move {
        let response = reqwest::get(format!("http://127.0.0.1:{target}/metrics")).await.unwrap();
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
        ([("content-type", kind)], response.text().await.unwrap())
    };
    let routes = axum::Router::new().route("/metrics", axum::routing::get(get));
    axum::serve(listener, routes).await.unwrap();
}

async fn create(client: &Client, path: &str, data: &str) {
    client.create(path, data.as_bytes(), &CreateMode::Persistent.with_acls(Acls::anyone_all())).await.unwrap();
}

async fn create_job(client: &Client, number: u32, status: &str, retries: u32) {
    let job = format!("/jobs/jid{number:010}");
    create(client, &job, "").await;
    create(client, &format!("{job}/configuration"), r#"{"profile":"odd \"name\"\\"}"#).await;
    create(client, &format!("{job}/space_needed"), "1024").await;
    create(client, &format!("{job}/status"), &format!(r#"{{"status":"{status}","retry_count":{retries}}}"#)).await;
}

/// The value that a query has now; `None` for no series.
async fn query(port: u16, promql: &str) -> Option<f64> {
    let url = format!("http://127.0.0.1:{port}/api/v1/query");
    let url = reqwest::Url::parse_with_params(&url, [("query", promql)]).unwrap();
    let answer: serde_json::Value = serde_json::from_str(&reqwest::get(url).await.ok()?.text().await.ok()?).ok()?;
    assert_ne!(answer["status"], "error", "{promql}: {answer}");
    answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

async fn expect(port: u16, promql: &str, value: f64) {
    let what = format!("{promql} is {value}");
    eventually_some(LIMIT, &what, async || query(port, promql).await.filter(|found| (found - value).abs() < 1e-9))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_scrapes_both_formats_and_answers() {
    let zookeeper = PrivateServer::start(Options::default()).await.unwrap();
    let client = connect(&zookeeper.connect_string()).await;
    create(&client, "/jobs", "").await;
    for (number, status, retries) in [(1, "Pending", 0), (2, "Pending", 0), (3, "Failed", 3), (4, "Teleporting", 0)] {
        create_job(&client, number, status, retries).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let (served, port) = (free_port(), free_port());
    let _queuekeeper = serve(&zookeeper.connect_string(), served, directory.path());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let relayed = listener.local_addr().unwrap().port();
    let relay = tokio::spawn(relay(listener, served));
    let _prometheus = prometheus(directory.path(), port, served, relayed);

    for job in ["openmetrics", "text"] {
        let of = |metric: &str, labels: &str| format!(r#"{metric}{{job="{job}"{labels}}}"#);
        expect(port, &of("up", ""), 1.0).await;
        expect(port, &of("merritt_jobs", r#",state="pending""#), 2.0).await;
        expect(port, &of("merritt_jobs", r#",state="other""#), 1.0).await;
        expect(port, &of("merritt_jobs_by_retries", r#",retries="3+""#), 1.0).await;
        expect(port, &format!("sum({})", of("merritt_jobs_space_needed_bytes", "")), 4096.0).await;
        expect(port, &of("merritt_collection_jobs", r#",collection="odd \"name\"\\",state="failed""#), 1.0).await;
        let age = of("merritt_job_oldest_entered_timestamp_seconds", r#",state="failed",locked="false""#);
        expect(port, &format!("time() - {age} >= bool 0"), 1.0).await;
        expect(port, &format!("time() - {age} < bool 3600"), 1.0).await;
        expect(port, &format!("{} > bool 0", of("merritt_working_storage_size_bytes", "")), 1.0).await;
        expect(port, &of("queuekeeper_build_info", ""), 1.0).await;
        expect(port, &of("queuekeeper_mirror_drift_total", ""), 0.0).await;
    }

    let status = r#"{"status":"Estimating","retry_count":0}"#;
    client.set_data("/jobs/jid0000000001/status", status.as_bytes(), None).await.unwrap();
    for job in ["openmetrics", "text"] {
        expect(port, &format!(r#"merritt_jobs{{job="{job}",state="estimating"}}"#), 1.0).await;
        let moved = format!(r#"merritt_job_transitions_total{{job="{job}",from="pending",to="estimating"}}"#);
        expect(port, &moved, 1.0).await;
        let left = format!(r#"merritt_job_state_duration_seconds_count{{job="{job}",state="pending"}}"#);
        expect(port, &left, 1.0).await;
        let delays = format!(r#"queuekeeper_mirror_delay_seconds_count{{job="{job}"}} >= bool 1"#);
        expect(port, &delays, 1.0).await;
    }

    // A daemon takes a job, and fails.
    let lock = "/jobs/jid0000000002/lock";
    client.create(lock, b"", &CreateMode::Ephemeral.with_acls(Acls::anyone_all())).await.unwrap();
    expect(port, r#"merritt_jobs_locked{job="text",state="pending"}"#, 1.0).await;
    expect(port, r#"merritt_lock_sessions{job="text"}"#, 1.0).await;
    let status = r#"{"status":"Failed","retry_count":0,"message":"java.net.SocketTimeoutException: Read timed out"}"#;
    client.set_data("/jobs/jid0000000002/status", status.as_bytes(), None).await.unwrap();
    client.delete(lock, None).await.unwrap();
    for job in ["openmetrics", "text"] {
        let of = |metric: &str, labels: &str| format!(r#"{metric}{{job="{job}"{labels}}}"#);
        expect(port, &of("merritt_job_failures_total", r#",cause="timeout""#), 1.0).await;
        expect(port, &of("merritt_job_failures_total", r#",cause="other""#), 0.0).await;
        expect(port, &of("merritt_jobs_failed", r#",cause="timeout""#), 1.0).await;
        expect(port, &of("merritt_jobs_failed", r#",cause="other""#), 1.0).await;
        for part in ["wait", "work"] {
            let count = format!("merritt_job_state_{part}_duration_seconds_count");
            expect(port, &of(&count, r#",state="pending""#), 1.0).await;
            expect(port, &of(&count, r#",state="storing""#), 0.0).await;
        }
        // The bucket of the target that ships, as recording.yml names it.
        for item in ["job", "batch"] {
            let bucket = format!("merritt_{item}_completion_duration_seconds_bucket");
            expect(port, &of(&bucket, r#",le="86400.0""#), 0.0).await;
        }
    }
    relay.abort();
}

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use super::harness::IN_TIME;
use super::world::LIMIT;
use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::wait::eventually_some;

/// The program, with nothing of our own environment that it would heed, and with sessions that a busy machine does not
/// lose.
pub(crate) fn queuekeeper(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuekeeper"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("QUEUEKEEPER_") {
            command.env_remove(name);
        }
    }
    command.env("QUEUEKEEPER_ZOOKEEPER_SESSION_TIMEOUT", "60s").args(arguments);
    command
}

#[track_caller]
fn is_refused(output: &Output, code: i32, reported: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for part in reported {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn what_is_wrong_on_the_command_line_is_reported_with_what_is_allowed() {
    for (arguments, reported) in [
        (
            &["--web.listen-address=nowhere"][..],
            &["--web.listen-address", "the port is missing", "127.0.0.1:12181"][..],
        ),
        (&["--web.telemetry-path=metrics"], &["--web.telemetry-path", "does not begin with /", "/metrics"]),
        (&["--web.external-url=ops.example.org"], &["--web.external-url", "scheme is missing", "https://host[:port]"]),
        (&["--web.route-prefix=/a b"], &["--web.route-prefix", "special meaning", "/queue"]),
        (&["--web.telemetry-path=/jobs"], &["--web.telemetry-path", "reserved for a page"]),
        (&["--web.config.file=/does/not/exist"], &["--web.config.file", "cannot read /does/not/exist", "No such file"]),
        (&["--mirror.stale-after=10"], &["--mirror.stale-after", "lacks its unit", "1h30m"]),
        (&["--mirror.drift-interval=1s"], &["--mirror.drift-interval", "less than 10s", "0 disables it"]),
        (&["--storage.threshold=80"], &["--storage.threshold", "above 0, up to 1", "0.8"]),
        (&["--metrics.collections=9999"], &["--metrics.collections", "0..=200"]),
        (&["--log.level=loud"], &["--log.level", "error, warn, info, debug, trace"]),
        (&["--log.format=xml"], &["--log.format", "text, json"]),
        (&["--zookeeper=zk://host"], &["--zookeeper", "host:port[,host:port...][/chroot]"]),
        (&["--zookeeper.session-timeout=1ms"], &["--zookeeper", "session timeout", "100 ms to one hour"]),
        (&["--zookeeper.auth-file=/does/not/exist"], &["--zookeeper.auth-file", "/does/not/exist", "No such file"]),
        (&["--zookeeper.tls-cert-file=/does/not/exist"], &["--zookeeper", "needs both its certificate file"]),
        (&["--zookeepers=a:1"], &["--zookeepers", "--zookeeper"]),
        (&["--zookeeper=prod=zk1", "--zookeeper=zk2"], &["--zookeeper", "give zk2:2181 one, as in prod=zk2:2181"]),
        (&["--zookeeper=prod=zk1 prod=zk2"], &["--zookeeper", "two queues are named prod"]),
        (&["--zookeeper=Prod=zk1"], &["--zookeeper", "lower-case letters, digits and hyphens"]),
        (&["--zookeeper=prod=zk1", "--storage.path=/"], &["--storage.path", "belongs to one queue"]),
    ] {
        let output = queuekeeper(&["serve"]).args(arguments).output().unwrap();
        is_refused(&output, 2, reported);
    }
    is_refused(&queuekeeper(&[]).output().unwrap(), 2, &["Usage: queuekeeper", "serve"]);
    is_refused(&queuekeeper(&["probe", "file:///etc/passwd"]).output().unwrap(), 2, &["URL", "http:// or https://"]);
    let probe = queuekeeper(&["probe", &format!("http://127.0.0.1:{}/-/ready", free_port())]).output().unwrap();
    is_refused(&probe, 1, &["does not answer", "onnection refused"]);
    let queues = ("QUEUEKEEPER_ZOOKEEPER", "prod=zk1 stage=zk1");
    let several = queuekeeper(&["serve"]).env(queues.0, queues.1).output().unwrap();
    is_refused(&several, 2, &["--zookeeper", "prod and stage are the same queue"]);
    let several = queuekeeper(&["jobs"]).env(queues.0, queues.1).output().unwrap();
    is_refused(&several, 2, &["--zookeeper", "names several queues (prod, stage)", "accepts only one"]);
    let variable = queuekeeper(&["serve"]).env("QUEUEKEEPER_MIRROR_DROP_AFTER", "soon").output().unwrap();
    let blamed = "QUEUEKEEPER_MIRROR_DROP_AFTER is set in the environment";
    is_refused(&variable, 2, &["--mirror.drop-after", "'soon'", "1h30m", blamed]);
    let files = [("QUEUEKEEPER_CONFIG_FILE", "config.yml"), ("QUEUEKEEPER_PROFILES", "profiles")];
    let one_of = queuekeeper(&["object", "show", "a", "--data", "b"]).envs(files).output().unwrap();
    is_refused(&one_of, 2, &["--data", "cannot be used with", "QUEUEKEEPER_CONFIG_FILE is set in the environment"]);
    // The ingest daemons have a flag of the same name.
    let workers = [("QUEUEKEEPER_MILL_WORKERS", "some"), ("QUEUEKEEPER_WORKERS", "1")];
    let workers = queuekeeper(&["mill", "run"]).envs(workers).output().unwrap();
    is_refused(&workers, 2, &["--workers", "'some'", "QUEUEKEEPER_MILL_WORKERS is set in the environment"]);
    assert!(!String::from_utf8_lossy(&workers.stderr).contains("QUEUEKEEPER_WORKERS"), "{workers:?}");
    // What is found after the command line was read is blamed on its variable as well.
    for (set, reported) in [
        (&[("QUEUEKEEPER_CONFIG_FILE", "/nope")][..], &["--config.file: cannot read /nope"][..]),
        (&[("QUEUEKEEPER_ZOOKEEPER", "a=zk1 a=zk2")], &["--zookeeper: two queues are named a"]),
        (&[("QUEUEKEEPER_MIRROR_DRIFT_INTERVAL", "1s")], &["--mirror.drift-interval: 1s is less than 10s"]),
        (&[("QUEUEKEEPER_AUDIT_FILE", "/nope/audit")], &["--audit.file: ", "/nope/audit"]),
        (&[("QUEUEKEEPER_ZOOKEEPER_TLS_CA_FILE", "/nope")], &["--zookeeper.tls-*: ", "/nope"]),
        (
            &[("QUEUEKEEPER_STORAGE_PATH", "/"), ("QUEUEKEEPER_ZOOKEEPER", "a=zk1")],
            &["--storage.path: the volume of daemons belongs to one queue"],
        ),
    ] {
        let refused = queuekeeper(&["serve", "--web.listen-address=127.0.0.1:0"]).envs(set.iter().copied()).output();
        let refused = refused.unwrap();
        is_refused(&refused, 2, reported);
        is_refused(&refused, 2, &[&format!(" ({} is set in the environment)\n", set[0].0)]);
    }
    let given =
        queuekeeper(&["serve", "--config.file=/nope"]).env("QUEUEKEEPER_CONFIG_FILE", "/other").output().unwrap();
    is_refused(&given, 2, &["--config.file: cannot read /nope"]);
    assert!(!String::from_utf8_lossy(&given.stderr).contains("is set in the environment"), "{given:?}");
    let given = ["serve", "--mirror.drop-after=never"];
    let given = queuekeeper(&given).env("QUEUEKEEPER_MIRROR_DROP_AFTER", "soon").output().unwrap();
    is_refused(&given, 2, &["--mirror.drop-after", "'never'"]);
    assert!(!String::from_utf8_lossy(&given.stderr).contains(blamed), "{given:?}");
}

#[test]
fn an_address_that_is_taken_ends_it_with_another_code() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = queuekeeper(&["serve", "--web.listen-address", &address]).output().unwrap();
    is_refused(&output, 1, &["cannot listen on", &address, "--web.listen-address"]);
}

#[test]
fn it_says_what_it_is_and_what_its_exit_codes_mean() {
    let version = queuekeeper(&["--version"]).output().unwrap();
    let text = String::from_utf8(version.stdout).unwrap();
    assert!(text.starts_with(concat!("queuekeeper ", env!("CARGO_PKG_VERSION"), " (revision ")), "{text}");
    for arguments in [&["--help"][..], &["serve", "--help"]] {
        let help = String::from_utf8(queuekeeper(arguments).output().unwrap().stdout).unwrap();
        assert!(help.contains("Exit codes:\n  0  ") && help.contains("ended by SIGTERM or SIGINT"), "{help}");
    }
}

#[tokio::test]
async fn without_zookeeper_it_serves_and_says_so_and_ends_on_a_signal() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let nobody = format!("127.0.0.1:{}", free_port());
        let mut child = queuekeeper(&["serve", "--web.listen-address=127.0.0.1:0", "--log.format=json"])
            .args(["--zookeeper", &nobody, "--storage.path=/"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = log.next().expect("it says where it listens before it ends").unwrap();
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            if line["fields"]["message"] == "listening" {
                break line["fields"]["address"].as_str().unwrap().to_owned();
            }
        };
        let reported = eventually_some(LIMIT, "it says why it is not ready", async || {
            let answer = reqwest::get(format!("http://{address}/-/ready")).await.unwrap();
            assert_eq!(answer.status(), 503);
            Some(answer.text().await.unwrap()).filter(|text| text.contains("connection refused"))
        });
        assert!(reported.await.contains("not connected to ZooKeeper: no ZooKeeper server can be used"));
        let metrics = reqwest::get(format!("http://{address}/metrics")).await.unwrap().text().await.unwrap();
        assert!(metrics.contains("\nqueuekeeper_zookeeper_connected 0\n") && !metrics.contains("\nmerritt_jobs{"));

        for (path, code, said) in [
            ("healthy", 0, "healthy\n"),
            ("ready", 1, "not ready: the queue has not been read yet, not connected"),
            ("ready", 1, "/-/ready answers 503 Service Unavailable\n"),
            ("nothing", 1, "answers 404 Not Found\n"),
        ] {
            let url = format!("http://{address}/-/{path}");
            let probe = queuekeeper(&["probe", "--timeout=120", &url]).output().unwrap();
            let text = String::from_utf8([probe.stdout, probe.stderr].concat()).unwrap();
            assert!(probe.status.code() == Some(code) && text.contains(said), "{:?} {text}", probe.status);
        }

        let asked = Instant::now();
        let process = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(process, signal).unwrap();
        let status = tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(0));
        assert!(asked.elapsed() < IN_TIME, "{:?}", asked.elapsed());
    }
}

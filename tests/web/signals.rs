//! The program as its operators meet it: a hangup, and a certificate whose time is over.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::command_line::queuekeeper;
use super::harness::converse;
use queuekeeper_testkit::certs::Authority;
use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::wait::{eventually, eventually_some};

const LIMIT: Duration = Duration::from_secs(30);

/// A server without ZooKeeper, and what it has logged.
struct Program {
    child: Child,
    log: std::sync::mpsc::Receiver<Value>,
    /// What it has logged and no call has taken yet.
    unread: std::cell::RefCell<Vec<Value>>,
    port: u16,
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    async fn start(arguments: &[&str]) -> Self {
        Self::of(&[""], arguments).await
    }

    /// The same for several queues, each with its name and an equals sign.
    async fn of(queues: &[&str], arguments: &[&str]) -> Self {
        let nobody = free_port();
        let of = |name: &&str| ["--zookeeper".to_owned(), format!("{name}127.0.0.1:{nobody}/{}", name.len())];
        let queues = queues.iter().flat_map(of);
        let mut child = queuekeeper(&["serve", "--web.listen-address=127.0.0.1:0", "--log.format=json"])
            .args(queues)
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (sender, log) = std::sync::mpsc::channel();
        // It ends with the program.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()) {
                let _ = sender.send(line);
            }
        });
        let mut program = Self { child, log, unread: std::cell::RefCell::default(), port: 0 };
        let listening = program.says("listening").await;
        let address = listening["fields"]["address"].as_str().unwrap().to_owned();
        program.port = address.rsplit(':').next().unwrap().parse().unwrap();
        program
    }

    /// Waits for a line of the log.
    async fn says(&self, text: &str) -> Value {
        eventually_some(LIMIT, text, async || {
            let mut unread = self.unread.borrow_mut();
            unread.extend(self.log.try_iter());
            let is_it = |line: &Value| line["fields"]["message"].as_str().unwrap().contains(text);
            unread.iter().position(is_it).map(|at| unread.remove(at))
        })
        .await
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    async fn ends(&mut self) -> Option<i32> {
        eventually_some(LIMIT, "it ends", async || self.child.try_wait().unwrap()).await.code()
    }
}

#[tokio::test]
async fn a_hangup_reopens_the_audit_file_reads_the_configuration_again_and_ends_nothing() {
    hang_up(&[""], &["audit.jsonl"]).await;
}

#[tokio::test]
async fn a_hangup_reaches_every_queue_of_a_process() {
    hang_up(&["prod=", "of-stage="], &["audit.prod.jsonl", "audit.of-stage.jsonl"]).await;
}

/// Starts a server of these queues, whose audit files have these names, and hangs up twice.
async fn hang_up(queues: &[&str], audits: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (config, audit) = (path("config.yml"), path("audit.jsonl"));
    let rule = "alerts: {rules: [{name: again, alert: MerrittJobsFailed, action: resume_jobs, mode: dry-run, \
                select: {limit: 1}, budget: {items: 1, per: 1h}, cooldown: 1h}]}\n";
    std::fs::write(&config, rule).unwrap();
    let flags = ["--config.file", config.to_str().unwrap(), "--audit.file", audit.to_str().unwrap()];
    let mut program = Program::of(queues, &flags).await;
    let of_rules = async || audits.iter().all(|audit| path(&format!("{audit}.alerts")).exists());
    eventually(LIMIT, "with rules each is opened at the start", of_rules).await;
    for round in 1..=2 {
        // As logrotate does it.
        for audit in audits {
            std::fs::rename(path(audit), path(&format!("{audit}.{round}"))).unwrap();
        }
        std::fs::write(&config, format!("alerts:\n  rules: []\n# {round}\n")).unwrap();
        program.signal(Signal::HUP);
        program.says("received SIGHUP").await;
        program.says("reloaded the configuration").await;
        let are_there = async || audits.iter().all(|audit| path(audit).exists());
        eventually(LIMIT, "each audit file is there again", are_there).await;
        let answer = reqwest::get(format!("http://127.0.0.1:{}/-/healthy", program.port)).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    program.signal(Signal::TERM);
    assert_eq!(program.ends().await, Some(0));
}

#[tokio::test]
async fn what_a_reload_does_not_apply_is_named_and_what_the_next_start_refuses_fails_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (config, audit) = (path("config.yml"), path("audit.jsonl"));
    let flags = ["--config.file", config.to_str().unwrap(), "--audit.file", audit.to_str().unwrap()];
    let store = "stores: {main: {url: \"s3://main\", endpoint: \"http://127.0.0.1:1\", credentials_file: key}}\n";
    let catalogue = "catalogue: {url: \"sqlite:catalogue.db\"}\n";
    let successful = async |program: &Program| {
        let metrics = reqwest::get(format!("http://127.0.0.1:{}/metrics", program.port)).await.unwrap();
        metrics.text().await.unwrap().contains("\nqueuekeeper_config_last_reload_successful 1\n")
    };
    std::fs::write(path("key"), "AKIA\nfirst\n").unwrap();
    std::fs::write(&config, store).unwrap();
    let program = Program::start(&flags).await;
    let restart = "the configuration has changed in what takes effect after a restart: ";
    let mill = "mill: {accounts: {a: {stores: {\"1\": main}}}, policies: {directory: /srv}}\n";
    for (secret, text, named) in
        [("second", store.to_owned(), "stores"), ("first", format!("{store}{catalogue}{mill}"), "catalogue, mill")]
    {
        std::fs::write(path("key"), format!("AKIA\n{secret}\n")).unwrap();
        std::fs::write(&config, text).unwrap();
        program.signal(Signal::HUP);
        let warned = program.says(restart).await;
        assert_eq!(warned["level"], "WARN", "{warned}");
        assert_eq!(warned["fields"]["message"], format!("{restart}{named}"));
        assert!(successful(&program).await, "it was applied as far as it can be");
    }
    drop(program);

    std::fs::write(&config, "{}\n").unwrap();
    let program = Program::of(&["prod=", "of-stage="], &flags).await;
    std::fs::write(&config, catalogue).unwrap();
    program.signal(Signal::HUP);
    let failed = program.says("failed to reload the configuration").await;
    let why = "a start with it would be refused: the catalogue that it names belongs to one queue";
    assert!(failed["fields"]["message"].as_str().unwrap().contains(why), "{failed}");
    assert!(!successful(&program).await);
    std::fs::write(&config, "{}\n# again\n").unwrap();
    program.signal(Signal::HUP);
    eventually(LIMIT, "it is as a start takes it", async || successful(&program).await).await;
}

#[tokio::test]
async fn a_probe_names_every_queue_that_is_not_ready() {
    let program = Program::of(&["prod=", "of-stage="], &[]).await;
    let url = format!("http://127.0.0.1:{}/-/ready", program.port);
    let why =
        "the queue has not been read yet, not connected to ZooKeeper: no ZooKeeper server can be used: 127.0.0.1:";
    eventually(LIMIT, "both are named with the reason", async || {
        let probe = queuekeeper(&["probe", "--timeout=120", &url]).output().unwrap();
        assert_eq!(probe.status.code(), Some(1), "{probe:?}");
        let (reported, error) = (String::from_utf8(probe.stdout).unwrap(), String::from_utf8(probe.stderr).unwrap());
        assert_eq!(error, format!("error: {url} answers 503 Service Unavailable\n"));
        let lines: Vec<_> = reported.lines().collect();
        let is_named = |line: &str, name: &str| line.starts_with(&format!("not ready: {name}: {why}"));
        matches!(lines[..], [one, other] if is_named(one, "prod") && is_named(other, "of-stage"))
    })
    .await;
}

/// The instant at which the certificate ends, as the metrics of a server have it.
async fn not_after(port: u16, ca_file: &Path) -> Option<f64> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca_file).unwrap()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(std::sync::Arc::new(config)).connect(name, stream).await.ok()?;
    let answer = converse(stream, &["GET /metrics HTTP/1.1", "Host: localhost"]).await;
    let name = "queuekeeper_web_certificate_not_after_timestamp_seconds ";
    answer.text().lines().find_map(|line| line.strip_prefix(name)?.parse().ok())
}

#[tokio::test]
async fn a_certificate_that_is_not_valid_now_is_named_and_the_end_of_each_is_exported() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "ca");
    let certify = |from, until| authority.certify_between("server", (from, 1, 2), (until, 1, 2));
    certify(2010, 2020);
    let path = directory.path().join("web.yml");
    std::fs::write(&path, "tls_server_config: {cert_file: server.pem, key_file: server-key.pem}\n").unwrap();
    let program = Program::start(&["--web.config.file", path.to_str().unwrap()]).await;
    let warned = program.says("has expired").await;
    assert!(warned["level"] == "WARN" && warned["fields"]["not_after"] == "2020-01-02T00:00:00Z", "{warned}");
    assert_eq!(not_after(program.port, &authority.ca_file).await, None, "no client takes it");

    let checked = || {
        let checked = queuekeeper(&["check-web-config"]).arg(&path).output().unwrap();
        assert!(checked.status.success(), "{checked:?}");
        String::from_utf8(checked.stdout).unwrap()
    };
    assert!(checked().contains("certificate has expired"), "{}", checked());
    assert!(checked().contains("from 2010-01-02 00:00:00 UTC until 2020-01-02 00:00:00 UTC"), "{}", checked());

    certify(2110, 2120);
    program.signal(Signal::HUP);
    let warned = program.says("is not valid yet").await;
    assert!(warned["level"] == "WARN" && warned["fields"]["not_before"] == "2110-01-02T00:00:00Z", "{warned}");
    assert!(checked().contains("certificate is not valid yet"), "{}", checked());

    // The last is past the last instant that there is here: it is how a certificate says that it does not expire.
    for (day, end) in [((2120, 1, 2), "2120-01-02T00:00:00Z"), ((9999, 12, 31), "9999-12-30T22:00:00Z")] {
        let _ = authority.certify_between("server", (2010, 1, 2), day);
        program.signal(Signal::HUP);
        let expected: jiff::Timestamp = end.parse().unwrap();
        eventually(LIMIT, "the renewed one is used", async || {
            let end = not_after(program.port, &authority.ca_file).await;
            end.is_some_and(|end| (end - expected.as_second() as f64).abs() < 1.5)
        })
        .await;
    }
    assert!(checked().ends_with("is valid\n"), "{}", checked());
}

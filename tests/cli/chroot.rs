//! Programs whose `--zookeeper` names a chroot that does not exist.

use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::thread::JoinHandle;
use std::time::Duration;

use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::server::{connect, shared};
use queuekeeper_testkit::wait::eventually;
use rustix::process::{Pid, Signal, kill_process};
use zookeeper_client::{Acls, CreateMode};

use super::program::{queuekeeper, run};

const LIMIT: Duration = Duration::from_mins(1);

/// A service that runs, and its log.
struct Service {
    child: Child,
    log: Option<JoinHandle<Vec<String>>>,
    address: String,
}

impl Service {
    fn start(home: &std::path::Path, arguments: &[&str]) -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        let mut child = queuekeeper(home, &[arguments, &["--web.listen-address", &address]].concat()).spawn().unwrap();
        let log = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || BufReader::new(log).lines().map_while(Result::ok).collect());
        Self { child, log: Some(log), address }
    }

    /// The status and the line of its probe.
    async fn ready(&self) -> (u16, String) {
        match reqwest::get(format!("http://{}/-/ready", self.address)).await {
            Ok(answer) => (answer.status().as_u16(), answer.text().await.unwrap()),
            Err(_) => (0, String::new()),
        }
    }

    /// Ends it, and gives its log.
    fn end(mut self) -> Vec<String> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
        self.log.take().unwrap().join().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Whoever has ended it has waited for it.
        let _ = self.child.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_say_in_one_line_that_it_is_missing_and_go_on_when_it_is_there() {
    let server = shared().await.connect_string();
    let root = connect(&server).await;
    let zookeeper = format!("{server}/late/queue");
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    for name in ["working", "objects", "profiles"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    let [config, profiles, working] = ["config.yml", "profiles", "working"].map(at);
    let text = format!(
        "stores: {{main: {{url: \"file://{}\"}}}}\ncatalogue: {{url: \"sqlite:{}\"}}\n",
        at("objects"),
        at("catalogue.db")
    );
    std::fs::write(&config, text).unwrap();
    let serve = Service::start(directory.path(), &["serve", "--zookeeper", &zookeeper]);
    let own = ["--zookeeper", &zookeeper, "--config.file", &config, "--profiles", &profiles, "--working", &working];
    let mails = ["--mail.directory", &working];
    let ingest = Service::start(directory.path(), &[&["ingest"], own.as_slice(), &mails].concat());
    let command = format!("zkCli.sh -server {server} create /late; zkCli.sh -server {server} create /late/queue");
    let line =
        format!("ZooKeeper has no znode /late/queue: create it ({command}), or correct the chroot in --zookeeper");
    for service in [&serve, &ingest] {
        eventually(LIMIT, "it says what is missing", async || {
            let (status, reported) = service.ready().await;
            status == 503 && reported.starts_with("not ready: ") && reported.trim_end().ends_with(&line)
        })
        .await;
    }
    let page = reqwest::get(format!("http://{}/", serve.address)).await.unwrap().text().await.unwrap();
    assert!(page.contains("ZooKeeper has no znode /late/queue"), "{page}");
    let metrics = reqwest::get(format!("http://{}/metrics", serve.address)).await.unwrap().text().await.unwrap();
    assert!(metrics.contains("\nqueuekeeper_mirror_synced 0\n"), "{metrics}");

    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    for path in ["/late", "/late/queue"] {
        root.create(path, b"", &persistent).await.unwrap();
    }
    for service in [&serve, &ingest] {
        eventually(LIMIT, "it goes on", async || service.ready().await.0 == 200).await;
    }
    let made = async || root.list_children("/late/queue/queuekeeper").await.unwrap_or_default();
    eventually(LIMIT, "both have written what they write", async || {
        let made = made().await;
        ["catalogue", "clock", "daemons"].iter().all(|name| made.iter().any(|made| made == name))
    })
    .await;
    for log in [serve.end(), ingest.end()] {
        assert_eq!(log.iter().filter(|logged| logged.contains(&line)).count(), 1, "{log:#?}");
        assert!(!log.iter().any(|logged| logged.contains(" ERROR ")), "{log:#?}");
        let others = log.iter().filter(|logged| logged.contains(" WARN ") && !logged.contains(&line));
        // No profiles are needed for this.
        let others: Vec<_> = others.filter(|logged| !logged.contains("there are no profiles")).collect();
        assert!(others.is_empty(), "{others:#?}");
    }
}

#[tokio::test]
async fn commands_say_in_one_line_that_it_is_missing_and_write_nothing() {
    let server = shared().await;
    let client = connect(&server.connect_string()).await;
    let zookeeper = format!("{}/nowhere", server.connect_string());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.txt").display().to_string();
    std::fs::write(&file, "content").unwrap();
    let working = directory.path().display().to_string();
    for command in [
        &["status"][..],
        &["jobs"],
        &["job", "1"],
        &["queue"],
        &["queue", "pause", "ingest", "--reason", "tried", "--yes"],
        &["store", "hold", "main", "--reason", "tried", "--yes"],
        &["faults", "--repair", "--yes", "--reason", "tried"],
        &["dump"],
        &["submit", &file, "--profile", "demo", "--working", &working],
        &["demo", "--web.listen-address", "127.0.0.1:0"],
    ] {
        let ran = run(directory.path(), &[command, &["--zookeeper", &zookeeper]].concat()).await;
        let create = format!("create it (zkCli.sh -server {} create /nowhere), or", server.connect_string());
        ran.is(1, &["ZooKeeper has no znode /nowhere: ", &create]);
        assert_eq!((ran.err.lines().count(), &*ran.out), (1, ""), "{ran:?}");
    }
    assert!(client.check_stat("/nowhere").await.unwrap().is_none());
}

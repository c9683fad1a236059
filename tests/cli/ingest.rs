//! The daemons as a process of their own, beside a queue that others fill.

use std::io::{BufRead as _, BufReader};

use queuekeeper_testkit::wait::eventually;
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use rustix::process::{Pid, Signal, kill_process};

use super::program::{queuekeeper, run};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_of_daemons_works_on_a_queue_shows_what_it_does_and_ends_by_a_signal() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    for name in ["working", "objects", "profiles"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    let [config, zookeeper] = [at("config.yml"), server.connect_string()];
    let text = format!("stores: {{main: {{url: \"file://{}\"}}}}\n", at("objects"));
    std::fs::write(&config, &text).unwrap();
    let profile = "name: demo\nowner: ark:/99999/o\nstore: main\nminter: {kind: noid, shoulder: ark:/99999/fk4}\n";
    std::fs::write(at("profiles/demo.yaml"), profile).unwrap();
    let [profiles, working, catalogue, file] = ["profiles", "working", "catalogue.db", "a.txt"].map(at);
    let own = ["--zookeeper", &zookeeper, "--config.file", &config, "--profiles", &profiles, "--working", &working];
    let ingest = [&["ingest"], own.as_slice(), &["--web.listen-address", "127.0.0.1:0"]].concat();

    // What is wrong is one line.
    run(directory.path(), &ingest).await.is(1, &["there is no catalogue in the configuration"]);
    run(directory.path(), &[ingest.as_slice(), &["--daemons", "storing,none"]].concat()).await.is(2, &["\"none\""]);
    std::fs::write(&config, format!("{text}catalogue: {{url: \"sqlite:{catalogue}\"}}\n")).unwrap();
    std::fs::write(at("profiles/wrong.yaml"), "name: wrong\nodd: 1\n").unwrap();
    run(directory.path(), &ingest).await.is(1, &["wrong.yaml, line 2", "odd"]);
    std::fs::remove_file(at("profiles/wrong.yaml")).unwrap();

    let port = queuekeeper_zookeeper::child::free_port().unwrap();
    let web = format!("127.0.0.1:{port}");
    let ingest = [&["ingest"], own.as_slice(), &["--web.listen-address", &web, "--workers", "storing=2"]].concat();
    let mut child = queuekeeper(directory.path(), &ingest).spawn().unwrap();
    // Nobody reads the log, which would fill the pipe.
    let log = child.stderr.take().unwrap();
    let log = std::thread::spawn(move || BufReader::new(log).lines().map_while(Result::ok).collect::<Vec<_>>());
    let get = async |path: &str| {
        let answer = reqwest::get(format!("http://{web}{path}")).await.ok()?;
        (answer.status() == 200).then_some(answer.text().await.ok()?)
    };
    eventually(std::time::Duration::from_mins(1), "it has a session", async || get("/-/ready").await.is_some()).await;
    std::fs::write(&file, "content").unwrap();
    let submit = ["submit", &file, "--profile", "demo", "--zookeeper", &zookeeper, "--working", &working, "--wait"];
    run(directory.path(), &submit).await.is(0, &["Completed: 1 completed, 0 failed", "ark:/99999/fk4"]);
    let metrics = get("/metrics").await.unwrap();
    for line in [
        "merritt_daemon_ended_total{daemon=\"recording\",outcome=\"done\"} 1",
        "merritt_daemon_workers{daemon=\"storing\"} 2",
        "merritt_daemon_stored_bytes_total ",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ended = child.wait().unwrap();
    assert!(ended.success(), "{ended}: {:#?}", log.join().unwrap());

    // Another catalogue would become another inventory.
    let other = format!("{text}catalogue: {{url: \"sqlite:{}\"}}\n", at("other.db"));
    std::fs::write(&config, other).unwrap();
    run(directory.path(), &ingest).await.is(1, &["two catalogues would become two inventories"]);
}

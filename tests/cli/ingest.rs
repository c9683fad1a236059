//! The daemons as a process of their own, beside a queue that others fill.

use std::io::{BufRead as _, BufReader};
use std::sync::{Arc, Mutex};

use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::server::connect;
use queuekeeper_testkit::wait::{eventually, eventually_some};
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
    let unsent = [ingest.as_slice(), &["--daemons", "storing,notify", "--mail.reply-to", "a@test.edu"]].concat();
    run(directory.path(), &unsent).await.is(2, &["--mail.reply-to", "no mails are created here"]);
    std::fs::write(&config, format!("{text}catalogue: {{url: \"sqlite:{catalogue}\"}}\n")).unwrap();
    std::fs::write(at("profiles/wrong.yaml"), "name: wrong\nodd: 1\n").unwrap();
    run(directory.path(), &ingest).await.is(1, &["wrong.yaml, line 2", "odd"]);
    std::fs::remove_file(at("profiles/wrong.yaml")).unwrap();

    let port = free_port();
    let web = format!("127.0.0.1:{port}");
    let ingest = [&["ingest"], own.as_slice(), &["--web.listen-address", &web, "--workers", "storing=2"]].concat();
    let mut child = queuekeeper(directory.path(), &ingest).spawn().unwrap();
    // Nobody reads the log, which would fill the pipe.
    let log = child.stderr.take().unwrap();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let log = std::thread::spawn(move || {
        BufReader::new(log).lines().map_while(Result::ok).for_each(|line| kept.lock().unwrap().push(line));
    });
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
    // The file counts before the flag, and is read again; what is wrong in it changes nothing.
    let whole = std::fs::read_to_string(&config).unwrap();
    let set = |more: &str| std::fs::write(&config, format!("{whole}{more}")).unwrap();
    let has = async |workers: u32| {
        let line = format!("merritt_daemon_workers{{daemon=\"storing\"}} {workers}\n");
        let is_so = async || get("/metrics").await.is_some_and(|metrics| metrics.contains(&line));
        eventually(std::time::Duration::from_mins(1), &line, is_so).await;
    };
    set("workers: {storing: 3}\n");
    has(3).await;
    set("workers: {storing: 0}\n");
    let is_refused =
        async || lines.lock().unwrap().iter().any(|line| line.contains("workers: storing: expected a number"));
    eventually(std::time::Duration::from_mins(1), "what is wrong is logged", is_refused).await;
    has(3).await;
    set("");
    has(2).await;
    // Another catalogue is none that it works with from then on.
    let other = format!("{text}catalogue: {{url: \"sqlite:{}\"}}\n", at("other.db"));
    std::fs::write(&config, other).unwrap();
    let is_named = async || lines.lock().unwrap().iter().any(|line| line.contains("after a restart: catalogue"));
    eventually(std::time::Duration::from_mins(1), "what is not applied is logged", is_named).await;
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ended = child.wait().unwrap();
    log.join().unwrap();
    assert!(ended.success(), "{ended}: {:#?}", lines.lock().unwrap());

    // It would become another inventory.
    run(directory.path(), &ingest).await.is(1, &["two catalogues would become two inventories"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn javas_storing_finds_every_file_of_a_job_where_its_manifest_says() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    for name in ["working", "objects", "profiles", "object", "object/a b"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    let [config, zookeeper] = [at("config.yml"), server.connect_string()];
    let text = format!(
        "stores: {{main: {{url: \"file://{}\"}}}}\ncatalogue: {{url: \"sqlite:{}\"}}\n",
        at("objects"),
        at("c.db")
    );
    std::fs::write(&config, &text).unwrap();
    let profile = "name: demo\nowner: ark:/99999/o\nstore: main\nminter: {kind: noid, shoulder: ark:/99999/fk4}\n";
    std::fs::write(at("profiles/demo.yaml"), profile).unwrap();
    for (name, content) in [("object/a b/Größe%20.txt", "one"), ("object/.hidden", "two"), ("object/#?&+.txt", "three")]
    {
        std::fs::write(at(name), content).unwrap();
    }
    let [profiles, working] = ["profiles", "working"].map(at);
    let own =
        ["ingest", "--zookeeper", &zookeeper, "--config.file", &config, "--profiles", &profiles, "--working", &working];
    let with = |more: &[&'static str]| [own.as_slice(), more].concat();
    run(directory.path(), &with(&["--serve-working", ":0"])).await.is(2, &["--serve-working.url"]);
    let odd = ["--serve-working", ":0", "--serve-working.url", "http://a", "--serve-working.allow", "10.0.0.0/99"];
    run(directory.path(), &with(&odd)).await.is(2, &["a network is an address"]);

    let [web, served] = [(); 2].map(|()| format!("127.0.0.1:{}", free_port()));
    let url = format!("http://{served}");
    let ours = "batch,pending,estimating,provisioning,downloading,processing";
    let more =
        ["--web.listen-address", &web, "--daemons", ours, "--serve-working", &served, "--serve-working.url", &url];
    let mut child = queuekeeper(directory.path(), &[own.as_slice(), &more].concat()).spawn().unwrap();
    let log = child.stderr.take().unwrap();
    let log = std::thread::spawn(move || BufReader::new(log).lines().map_while(Result::ok).collect::<Vec<_>>());
    let object = at("object");
    let submit = ["submit", &object, "--profile", "demo", "--zookeeper", &zookeeper, "--working", &working];
    run(directory.path(), &submit).await.is(0, &[]);
    let client = connect(&zookeeper).await;
    let limit = std::time::Duration::from_mins(3);
    let entry = eventually_some(limit, "the job waits for Java's daemon", async || {
        client.list_children("/jobs/states/storing").await.ok()?.pop()
    });
    let job = entry.await.split_once('-').unwrap().1.to_owned();
    let (store, _) = client.get_data(&format!("/jobs/{job}/store")).await.unwrap();
    let store: serde_json::Value = serde_json::from_slice(&store).unwrap();
    let manifest_url = store["manifest_url"].as_str().unwrap().to_owned();
    assert!(manifest_url.starts_with(&format!("{url}/ingestqueue/bid-")), "{manifest_url}");
    let manifest = reqwest::get(&manifest_url).await.unwrap().text().await.unwrap();
    let mut found = std::collections::BTreeMap::new();
    for row in manifest.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<_> = row.split('|').map(str::trim).collect();
        let content = reqwest::get(columns[0]).await.unwrap();
        assert_eq!(content.status(), 200, "{row}");
        let content = content.bytes().await.unwrap();
        assert_eq!((columns[1], columns[3]), ("sha256", content.len().to_string().as_str()), "{row}");
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &content);
        let hex = digest.as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        assert_eq!(columns[2], hex, "{row}");
        found.insert(columns[5].to_owned(), content);
    }
    for (name, content) in
        [("producer/a b/Größe .txt", "one"), ("producer/.hidden", "two"), ("producer/#?&+.txt", "three")]
    {
        assert_eq!(found.get(name).map(|content| &content[..]), Some(content.as_bytes()), "{name}: {found:?}");
    }
    assert!(found.contains_key("system/mrt-erc.txt") && found.len() > 7, "{found:?}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ended = child.wait().unwrap();
    assert!(ended.success(), "{ended}: {:#?}", log.join().unwrap());

    // And ours goes on with what is left.
    let more = ["--web.listen-address", &web, "--daemons", "storing,recording,notify,report"];
    let mut child = queuekeeper(directory.path(), &[own.as_slice(), &more].concat()).spawn().unwrap();
    let log = child.stderr.take().unwrap();
    let log = std::thread::spawn(move || BufReader::new(log).lines().map_while(Result::ok).collect::<Vec<_>>());
    eventually(limit, "the job is completed", async || {
        let status = client.get_data(&format!("/jobs/{job}/status")).await;
        status.is_ok_and(|(status, _)| String::from_utf8_lossy(&status).contains("Completed"))
    })
    .await;
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ended = child.wait().unwrap();
    assert!(ended.success(), "{ended}: {:#?}", log.join().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_lets_transfers_of_working_files_end_and_a_second_one_does_not() {
    /// More than the buffers of a connection take that nobody reads, and so little that it is read long before the
    /// server gives such a connection up.
    const LARGE: u64 = 16 << 20;
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    for name in ["objects", "profiles", "working/bid-1/jid-1/producer"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    std::fs::File::create(at("working/bid-1/jid-1/producer/large")).unwrap().set_len(LARGE).unwrap();
    let [config, zookeeper] = [at("config.yml"), server.connect_string()];
    let [objects, catalogue, profiles, working] = ["objects", "c.db", "profiles", "working"].map(at);
    let text = format!("stores: {{main: {{url: \"file://{objects}\"}}}}\ncatalogue: {{url: \"sqlite:{catalogue}\"}}\n");
    std::fs::write(&config, &text).unwrap();
    let [web, served] = [(); 2].map(|()| format!("127.0.0.1:{}", free_port()));
    let url = format!("http://{served}");
    let own = ["ingest", "--zookeeper", &zookeeper, "--config.file", &config, "--profiles", &profiles];
    let more = ["--working", &working, "--web.listen-address", &web, "--shutdown-timeout", "5m"];
    let served_at = ["--serve-working", &served, "--serve-working.url", &url, "--daemons", "batch"];
    let mut child = queuekeeper(directory.path(), &[&own[..], &more, &served_at].concat()).spawn().unwrap();
    let log = child.stderr.take().unwrap();
    let log = std::thread::spawn(move || BufReader::new(log).lines().map_while(Result::ok).collect::<Vec<_>>());
    let limit = std::time::Duration::from_mins(1);
    let begin = async || reqwest::get(format!("{url}/ingestqueue/bid-1/jid-1/producer/large")).await.ok();
    let read = eventually_some(limit, "it serves the file", begin).await;
    let _left = begin().await.unwrap();

    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    eventually(limit, "it takes no more", async || tokio::net::TcpStream::connect(&served).await.is_err()).await;
    assert_eq!(read.bytes().await.unwrap().len() as u64, LARGE);
    assert!(child.try_wait().unwrap().is_none(), "one transfer is in flight");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ended = eventually_some(limit, "it ends", async || child.try_wait().unwrap()).await;
    let log = log.join().unwrap();
    assert_eq!(ended.code(), Some(1), "{log:#?}");
    assert!(log.iter().any(|line| line.contains("after a second signal")), "{log:#?}");
}

//! A demo from start to end.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_queue::Queue;
use queuekeeper_queue::path::QueueName as Pausable;
use queuekeeper_queue::state::{JobState, State as _};
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use rustix::process::Signal;
use tokio::time::Instant;
use zookeeper_client::{Acls, CreateMode};

use super::consistent::contradictions;
use super::program::Demo;
use queuekeeper_testkit::server::connect;
use queuekeeper_testkit::tree::read_tree;
use queuekeeper_testkit::wait::{eventually, eventually_some};

const LIMIT: Duration = Duration::from_mins(10);

/// The steps of the success path.
const STEPS: [(&str, &str); 8] = [
    ("pending", "estimating"),
    ("estimating", "provisioning"),
    ("provisioning", "downloading"),
    ("downloading", "processing"),
    ("processing", "storing"),
    ("storing", "recording"),
    ("recording", "notify"),
    ("notify", "completed"),
];

/// All steps but that of Recording, whose daemon ignores pauses.
async fn paused_steps(demo: &Demo) -> Vec<f64> {
    let metrics = demo.metrics().await;
    STEPS.iter().filter(|(from, _)| *from != "recording").map(|step| metrics.transitions(*step)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_shows_every_step_a_stall_and_a_pause_and_leaves_nothing_behind() {
    let mut demo = Demo::start(&["--jobs", "300", "--rate", "100"]);
    let demo_ref = &demo;
    let filled = async || {
        let metrics = demo_ref.metrics().await;
        // The deleted batch is the first one created, the completed ones come last.
        let sum: f64 = JobState::ALL.iter().map(|state| metrics.jobs(state.label())).sum();
        (sum >= 300.0).then_some(metrics)
    };
    let before = eventually_some(LIMIT, "the queue is filled", filled).await;
    for state in ["completed", "failed", "held", "deleted"] {
        assert!(before.jobs(state) > 0.0, "no job is {state}");
    }

    eventually(LIMIT, "every step is made", async || {
        let metrics = demo_ref.metrics().await;
        STEPS.iter().all(|step| metrics.transitions(*step) > before.transitions(*step))
    })
    .await;
    let size = async || demo_ref.metrics().await.get("merritt_working_storage_size_bytes").unwrap_or(0.0);
    let usual = size().await;
    eventually(LIMIT, "the page says that jobs wait for working storage", async || {
        let overview = demo_ref.get("/api/v1/overview").await.unwrap_or_default();
        let sentence = overview["verdict"]["sentence"].as_str().unwrap_or_default();
        sentence.starts_with("Stalled in Provisioning for ") && sentence.contains("working storage is granted to them")
    })
    .await;
    eventually(LIMIT, "the operator enlarges working storage", async || size().await > usual).await;
    eventually(LIMIT, "the stall has ended", async || demo_ref.metrics().await.jobs("provisioning") < 3.0).await;
    eventually(LIMIT, "what was added is taken back", async || (size().await - usual).abs() < 1.0).await;

    deposit(&demo).await;
    pause(&demo).await;
    assert_eq!(demo.end(Signal::INT).await.code(), Some(0));
    assert_eq!(demo.left(), [""; 0]);
}

/// Whoever opens the demo deposits a file, which becomes an object that can be downloaded.
async fn deposit(demo: &Demo) {
    let part = |name: &str, text: &str| {
        let file = if name == "file" { "; filename=\"mine.txt\"" } else { "" };
        format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{text}\r\n")
    };
    let parts = [("profile", "default"), ("title", "A file of mine"), ("file", "my own words")];
    let body: String = parts.map(|(name, text)| part(name, text)).concat();
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let request = http.post(format!("{}/submit", demo.web)).header("sec-fetch-site", "same-origin");
    let request = request.header("content-type", "multipart/form-data; boundary=edge");
    let request = request.body(format!("{body}--edge--\r\n"));
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 303, "{}", answer.text().await.unwrap());
    let object = eventually_some(LIMIT, "it is an object", async || {
        let objects = demo.get("/api/v1/objects?collection=default").await?;
        objects["items"].as_array()?.first()?["ark"].as_str().map(str::to_owned)
    })
    .await;
    let url = format!("{}/api/v1/objects/file", demo.web);
    let url = reqwest::Url::parse_with_params(&url, [("ark", object.as_str()), ("path", "producer/mine.txt")]).unwrap();
    let file = reqwest::get(url).await.unwrap();
    assert_eq!((file.status().as_u16(), file.text().await.unwrap().as_str()), (200, "my own words"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_rots_in_a_demo_is_found_and_repaired_from_the_other_one() {
    // At a rate at which the mill of a busy machine keeps up with the copies of what is deposited.
    let mut demo = Demo::start(&["--jobs", "50", "--rate", "6"]);
    let open = async || Some(demo.get("/api/v1/mill/errors").await?["errors"].as_array()?.clone());
    let found = async || open().await?.first().cloned();
    let found = eventually_some(LIMIT, "a byte of a copy rots, and is found", found).await;
    assert_eq!(
        (&found["store"], &found["findings"]),
        (&"copies".into(), &serde_json::json!(["content_damaged"])),
        "{found}"
    );
    eventually(LIMIT, "it is repaired", async || {
        open().await.is_some_and(|errors| errors.iter().all(|error| error["number"] != found["number"]))
    })
    .await;
    let item =
        format!("/api/v1/mill/spaces/{}/{}/item", found["account"].as_str().unwrap(), found["space"].as_str().unwrap());
    let url = reqwest::Url::parse_with_params(
        &format!("{}{item}", demo.web),
        [("key", found["key_encoded"].as_str().unwrap())],
    );
    let item = reqwest::get(url.unwrap()).await.unwrap().text().await.unwrap();
    let item: serde_json::Value = serde_json::from_str(&item).unwrap();
    assert_eq!(
        (&item["asides"][0]["store"], &item["asides"][0]["before"]),
        (&"copies".into(), &"repair".into()),
        "{item}"
    );
    assert_eq!(demo.end(Signal::INT).await.code(), Some(0));
    assert_eq!(demo.left(), [""; 0]);
}

/// Pauses the queue: all states but Recording come to rest, and continue afterwards.
async fn pause(demo: &Demo) {
    let client = connect(&demo.zookeeper).await;
    let queue = Queue::new(client.clone()).with_time_limit(LIMIT);
    let pause = queue.pause(Pausable::Ingest, "a test", "to see it", Timestamp::now()).await.unwrap();
    eventually(LIMIT, "what was in the daemons' hands is finished, and all that was stored is recorded", async || {
        let metrics = demo.metrics().await;
        let states = ["pending", "estimating", "provisioning", "downloading", "processing", "storing", "notify"];
        states.into_iter().all(|state| metrics.locked(state) == 0.0) && metrics.jobs("recording") == 0.0
    })
    .await;
    // Jobs that are given working storage in the round that was under way are locked one after the other. A busy
    // machine may take long over each.
    let (mut at_rest, mut unchanged) = (paused_steps(demo).await, 0);
    eventually(LIMIT, "a round of grants has ended", async || {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let steps = paused_steps(demo).await;
        unchanged = if steps == at_rest { unchanged + 1 } else { 0 };
        at_rest = steps;
        unchanged >= 20
    })
    .await;
    let sum = |steps: &[f64]| steps.iter().sum::<f64>();
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        let made = sum(&paused_steps(demo).await) - sum(&at_rest);
        assert!(made < 20.0, "paused daemons have made {made} steps; at this rate they would make 200");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The operator continues during the pause, and the tree is read one znode after the other.
    let mut last = Vec::new();
    eventually(LIMIT, "entries and references fit each job's status", async || {
        last = contradictions(&read_tree(&client, "/", &[]).await);
        last.is_empty()
    })
    .await;

    queue.unlock(&pause.lock).await.unwrap();
    eventually(LIMIT, "the queue continues", async || {
        paused_steps(demo).await.iter().zip(&at_rest).all(|(now, before)| now > before)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_in_a_running_zookeeper_stays_in_its_chroot_and_removes_it() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let client = connect(&server.connect_string()).await;
    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.create("/merritt", b"not the demo's", &persistent).await.unwrap();
    let before = read_tree(&client, "/", &[]).await;

    let mut demo = Demo::start(&["--jobs", "60", "--rate", "100", "--zookeeper", &server.connect_string()]);
    let chroot = demo.zookeeper.strip_prefix(&server.connect_string()).unwrap().to_owned();
    assert!(chroot.starts_with("/queuekeeper-demo-"), "{chroot}");
    eventually(LIMIT, "jobs are completed", async || demo.metrics().await.transitions(("notify", "completed")) > 20.0)
        .await;
    let besides = read_tree(&client, "/", &[&chroot]).await;
    assert_eq!(besides.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());

    assert_eq!(demo.end(Signal::TERM).await.code(), Some(0));
    let after = read_tree(&client, "/", &[]).await;
    assert_eq!(after.keys().collect::<Vec<_>>(), ["/", "/merritt"]);
    assert_eq!(after["/merritt"], before["/merritt"]);
    assert_eq!(demo.left(), [""; 0]);
}

//! What happened to a job and its batch, with who did it, from where, and why.

use jiff::Timestamp;
use queuekeeper::actions::Role;
use queuekeeper::actions::audit::{Destination, Rotation};
use queuekeeper::config::{Config, Loopback};
use queuekeeper::server;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Due, ItemChange, JobChange, NewJob, Queue};
use queuekeeper_testkit::server::{config, connect};
use queuekeeper_testkit::wait::{eventually, eventually_some};
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::world::LIMIT;

async fn text(address: &str) -> String {
    reqwest::get(address).await.unwrap().text().await.unwrap()
}

async fn json_of(address: &str) -> Value {
    serde_json::from_str(&text(address).await).unwrap_or_default()
}

#[expect(clippy::too_many_lines, reason = "one story, from its beginning to its end")]
#[tokio::test(flavor = "multi_thread")]
async fn timelines_name_the_session_its_address_the_operator_and_the_reason() {
    let zookeeper = PrivateServer::start(Options::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let client = connect(&zookeeper.connect_string()).await;
    let session = format!("0x{:x}", client.session_id().0);
    let daemon = Queue::new(client);
    let now = Timestamp::now;
    let batch = daemon.create_batch(br#"{"batchID":"bid-1","filename":"robbins.checkm"}"#, now()).await.unwrap();

    // The session is there before the servers are queried for addresses.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let mut config = Config::new(config(&zookeeper.connect_string()));
    config.mirror.session_addresses = true;
    config.audit = Destination::File(folder.path().join("audit.jsonl"), Rotation::default());
    config.web.loopback = Some(Loopback { role: Role::Admin, notice: "Everyone may do everything." });
    let shutdown = CancellationToken::new();
    let ended = shutdown.clone();
    let running = tokio::spawn(async move { server::serve(config, vec![listener], &ended).await.unwrap() });
    eventually(LIMIT, "the pages are ready", async || {
        reqwest::get(format!("{base}/-/ready")).await.is_ok_and(|response| response.status().is_success())
    })
    .await;

    let locked = daemon.acquire_batch(Due::Jobs, now()).await.unwrap().0.unwrap();
    let address = format!("{base}/api/v1/locks?kind=batch");
    eventually(LIMIT, "the address of the session is known", async || {
        json_of(&address).await["items"][0]["address"].is_string()
    })
    .await;
    let from = json_of(&address).await["items"][0]["address"].as_str().unwrap().to_owned();
    assert!(from.starts_with("127.0.0.1:"), "{from}");
    let page = text(&format!("{base}/batches/{batch}")).await;
    assert!(page.contains(&format!("<code>{session}</code></a> at {from}")), "{page}");
    let new = [(); 4].map(|()| NewJob::new(r#"{"filename":"a.zip","primaryID":"ark:/1/2"}"#));
    let jobs = daemon.create_jobs(batch, &new, now()).await.unwrap();
    let job = jobs[0];
    // What is gone before it is read was never seen.
    let is_pending = async || json_of(&format!("{base}/api/v1/jobs?state=pending")).await["total"] == 4;
    eventually(LIMIT, "the job is seen in its first state", is_pending).await;
    daemon.finish_batch(&locked, &ItemChange::success(), now()).await.unwrap();
    let locked = daemon.acquire_job(JobState::Pending, now()).await.unwrap().0.unwrap();
    daemon.finish_job(&locked, &JobChange::success(), now()).await.unwrap();
    let locked = daemon.acquire_job(JobState::Estimating, now()).await.unwrap().0.unwrap();
    let held = format!("<code>{session}</code></a> at {from}");
    eventually(LIMIT, "the job says who holds it and from where", async || {
        text(&format!("{base}/jobs/{job}")).await.contains(&held)
    })
    .await;
    daemon.finish_job(&locked, &JobChange::failure("404 <b>"), now()).await.unwrap();

    // What was done in between, by whom.
    let by = format!(", by session {session} at {from}");
    // Pending was left before its lock was read.
    let steps = ["Pending → Estimating".to_owned(), format!("Estimating → Failed{by}")];
    let is_reported = async |lines: &[String], address: &str| {
        let page = text(address).await;
        lines.iter().all(|line| page.contains(&**line))
    };
    let page = format!("{base}/jobs/{job}");
    eventually(LIMIT, "the timeline of the job has each step", async || is_reported(&steps, &page).await).await;
    let resume = json!({"action": "resume", "on": job.to_string(), "reason": "the manifest is there now"});
    let code = eventually_some(LIMIT, "actions can be taken", async || {
        let request = reqwest::Client::new().post(format!("{base}/api/v1/actions")).body(resume.to_string());
        let request = request.header("content-type", "application/json").header("sec-fetch-site", "none");
        Some(request.send().await.unwrap().status().as_u16()).filter(|code| *code != 503)
    })
    .await;
    // The latter of an action that takes long.
    assert!([200, 202].contains(&code), "{code}");
    let lines = [
        "Failed → Estimating".to_owned(),
        "Resume requested by ".to_owned(),
        ": the manifest is there now (done) <a href=\"../actions/".to_owned(),
    ];
    eventually(LIMIT, "the resume is reported with its actor and reason", async || is_reported(&lines, &page).await)
        .await;

    let history = json_of(&format!("{base}/api/v1/jobs/{job}")).await["history"].clone();
    let steps: Vec<_> = history.as_array().unwrap().iter().filter(|event| event["to"] == "failed").collect();
    assert_eq!((&steps[0]["session"], &steps[0]["address"]), (&json!(session), &json!(from)), "{history}");

    let of_batch = json_of(&format!("{base}/api/v1/batches/{batch}")).await["history"].clone();
    let of_batch = of_batch.as_array().unwrap();
    let moved = of_batch.iter().find(|event| event["to"] == "processing" && event["job"].is_null()).unwrap();
    assert_eq!((&moved["from"], &moved["address"]), (&json!("pending"), &json!(from)), "{of_batch:?}");
    assert!(of_batch.iter().any(|event| event["job"] == json!(job.to_string()) && event["to"] == "estimating"));
    let page = text(&format!("{base}/batches/{batch}")).await;
    let of_job = |what: &str| format!("../jobs/{job}\"><code>{job}</code></a> {what}");
    for line in [
        format!("Pending → Processing{by}"),
        // How it stopped stays there when it goes on.
        of_job(&format!("Estimating → Failed{by}")),
        of_job("Resume requested by "),
        of_job("Failed → Estimating"),
    ] {
        assert!(page.contains(&line), "{line}: {page}");
    }

    // What is done to many jobs at once is one line for them, and one for the action, however many jobs it is on.
    let post = async |path: &str, body: Value| {
        let request = reqwest::Client::new().post(format!("{base}/api/v1/{path}")).body(body.to_string());
        let request = request.header("content-type", "application/json").header("sec-fetch-site", "none");
        let answer = request.send().await.unwrap().text().await.unwrap();
        serde_json::from_str::<Value>(&answer).unwrap()
    };
    let items: Vec<_> = jobs[1..].iter().map(ToString::to_string).collect();
    for (action, from, to) in [("hold", "Pending", "Held"), ("release", "Held", "Pending")] {
        let list = post("lists", json!({"action": action, "items": items})).await;
        let list = list["id"].as_str().unwrap().to_owned();
        post(&format!("lists/{list}/execute"), json!({"reason": "a full disk"})).await;
        let line = format!("../jobs?batch={batch}\"><code>3 jobs</code></a> {from} → {to}");
        let page = format!("{base}/batches/{batch}");
        eventually(LIMIT, "the three are one line", async || text(&page).await.contains(&line)).await;
    }
    let page = text(&format!("{base}/batches/{batch}")).await;
    for requested in ["Hold requested for 3 items by ", "Release requested for 3 items by "] {
        assert_eq!(page.matches(requested).count(), 1, "{requested}: {page}");
    }
    shutdown.cancel();
    running.await.unwrap();
}

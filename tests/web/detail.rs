//! The pages of one job and of the tree, and the same as JSON, over a real tree with whatever anybody may put there.

use std::time::Duration;

use prometheus_client::registry::Registry;
use queuekeeper::config::Config;
use queuekeeper::mirror::{self, Metrics, MirrorStore, Writer};
use queuekeeper::web;
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{PrivateServer, Sessions};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use zookeeper_client::{Acls, Client, CreateMode};

use super::world::once_read;
use queuekeeper_testkit::wait::eventually;

const LIMIT: Duration = Duration::from_mins(1);

const EVIL: &str = "<script>alert(1)</script>\"'&\u{202e}evil\u{2066}\u{1b}[31m";

const JOB: &str = "/jobs/jid0000000042";

/// A tree, a mirror of it, and a server that shows it.
struct World {
    zookeeper: PrivateServer,
    client: Client,
    store: MirrorStore,
    base: String,
    shutdown: CancellationToken,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl World {
    async fn new() -> Self {
        let zookeeper = PrivateServer::start(Options::default()).await.unwrap();
        let address = zookeeper.connect_string();
        let connection = queuekeeper_zookeeper::Config {
            session_timeout: Duration::from_secs(30),
            ..queuekeeper_zookeeper::Config::new(address.parse().unwrap())
        };
        let client = connection.connect().await.unwrap();
        let writer = Writer::new();
        let store = writer.store();
        let shutdown = CancellationToken::new();
        let metrics = Metrics::register(&mut Registry::default());
        let run = mirror::run(Sessions::new(connection.clone()), writer, metrics, None, shutdown.clone());
        let mirror = AbortOnDropHandle::new(tokio::spawn(async move { run.await.unwrap() }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let state = web::State::new(Config::new(connection), store.clone(), None, None, Registry::default());
        let served = web::run(vec![listener], state, shutdown.clone());
        let served = AbortOnDropHandle::new(tokio::spawn(async move { served.await.unwrap() }));
        let world = Self { zookeeper, client, store, base, shutdown, _tasks: [mirror, served] };
        for path in ["/jobs", "/jobs/states", "/jobs/states/failed", "/locks", "/locks/storage", "/batches"] {
            world.create(path, b"").await;
        }
        world
    }

    async fn create(&self, path: &str, data: &[u8]) {
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        self.client.create(path, data, &options).await.unwrap();
    }

    /// A failed job with something hostile in every field.
    async fn evil_job(&self) {
        let configuration = serde_json::json!({
            "profile": EVIL, "filename": EVIL.repeat(40), "title": EVIL, "submitter": EVIL, "localID": EVIL, "objectID": EVIL,
        });
        let status = serde_json::json!({
            "status": "Failed", "last_successful_status": "Provisioning", "retry_count": 1, "message": EVIL.repeat(30),
        });
        self.create(JOB, EVIL.as_bytes()).await;
        for (node, data) in [
            ("configuration", configuration.to_string().into_bytes()),
            ("bid", b"bid0000000007".to_vec()),
            ("priority", b"104".to_vec()),
            ("space_needed", b"1048576".to_vec()),
            ("metadata", [b"\xff\xfe".as_slice(), &b"<".repeat(1_000_000)].concat()),
            ("<img src=x onerror=alert(1)> a?b#c%", br#"{"a":["</pre><script>"]}"#.to_vec()),
            ("status", status.to_string().into_bytes()),
        ] {
            self.create(&format!("{JOB}/{node}"), &data).await;
        }
        self.create("/jobs/states/failed/104-jid0000000042", b"").await;
        let is_there = || self.store.job("jid0000000042".parse().unwrap()).is_some_and(|job| job.state.is_some());
        eventually(LIMIT, "the job is mirrored", async || is_there()).await;
    }

    async fn get(&self, path: &str, accept: &str) -> (u16, String, String) {
        let ask = async || {
            let request = reqwest::Client::new().get(format!("{}{path}", self.base)).header("Accept", accept);
            let answer = request.send().await.unwrap();
            let status = answer.status().as_u16();
            let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
            (status, kind.unwrap_or_default(), answer.text().await.unwrap())
        };
        once_read(ask, |(_, _, body): &(u16, String, String)| body.as_str()).await
    }

    async fn page(&self, path: &str) -> String {
        let (status, kind, body) = self.get(path, "text/html").await;
        assert_eq!((status, &*kind), (200, "text/html; charset=utf-8"), "{path}: {body}");
        assert!(body.len() < 100 * 1024, "{path} takes {} bytes", body.len());
        for tag in ["<script>", "<img src=x", "\u{202e}", "\u{2066}", "\u{1b}", "style="] {
            assert!(!body.contains(tag), "{path} has {tag:?}");
        }
        body
    }

    async fn json(&self, path: &str) -> Value {
        let (status, kind, body) = self.get(path, "application/json").await;
        assert_eq!((status, &*kind), (200, "application/json"), "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Asks for something that is not served, as a page and as JSON, and gives what the latter says.
    async fn refused(&self, path: &str, status: u16) -> Value {
        let (said, kind, body) = self.get(path, "text/html").await;
        assert_eq!((said, &*kind), (status, "text/html; charset=utf-8"), "{path}: {body}");
        assert!(!body.contains("<script>") && body.contains(">Overview<"), "{path}: {body}");
        let (said, kind, body) = self.get(&format!("/api/v1{path}"), "*/*").await;
        assert_eq!((said, &*kind), (status, "application/problem+json"), "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_shown_whatever_it_holds() {
    let mut world = World::new().await;
    eventually(LIMIT, "the mirror is synced", async || world.store.freshness().is_synced()).await;
    world.evil_job().await;

    let page = world.page("/jobs/jid0000000042").await;
    for reported in [
        "It failed in Downloading and needs an operator.",
        "&#60;script&#62;alert(1)&#60;/script&#62;&#34;&#39;&#38;\\u{202e}evil\\u{2066}\\u{1b}[31m",
        "class=\"failed\">Downloading",
        "created in Failed",
        "<code>/jobs/jid0000000042/configuration</code>",
        "href=\"../tree/jobs/jid0000000042/%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%20a%3Fb%23c%25\"",
        "&#60;/pre&#62;&#60;script&#62;&#34;\n  ]\n}</pre>",
        "truncated: 1,000,002 bytes in all; not UTF-8",
        "Its batch bid0000000007 does not exist.",
    ] {
        assert!(page.contains(reported), "{reported:?} is not in {page}");
    }
    let json = world.json("/api/v1/jobs/jid0000000042").await;
    assert_eq!((&json["state"], &json["title"], &json["priority"]), (&"failed".into(), &EVIL.into(), &Value::Null));
    assert_eq!(json["history"][0]["to"], "failed");
    assert_eq!(json["nodes"].as_array().unwrap().len(), 8);
    assert_eq!(json["nodes"][0]["data"], EVIL);
    let metadata = json["nodes"].as_array().unwrap().iter().find(|node| node["path"] == format!("{JOB}/metadata"));
    let metadata = metadata.unwrap();
    assert_eq!((&metadata["is_cut"], &metadata["is_utf8"]), (&true.into(), &false.into()));
    assert_eq!(metadata["stat"]["data_length_bytes"], 1_000_002);
    let diagnosis = world.json("/api/v1/jobs/jid0000000042/diagnosis").await;
    assert_eq!((&diagnosis["verdict"], &diagnosis["causes"][0]["kind"]), (&"stopped".into(), &"failed".into()));

    for path in ["/jobs/jid0000000043", "/jobs/nobody", "/jobs/jid42", "/jobs/%3Cscript%3E"] {
        let problem = world.refused(path, 404).await;
        assert!(problem["detail"].as_str().unwrap().contains("A job's id is jid and ten digits"), "{problem}");
    }

    // Without ZooKeeper the image is shown as it is, and that there is no more to show.
    world.zookeeper.stop().await.unwrap();
    eventually(LIMIT, "the connection is lost", async || !world.store.freshness().is_connected()).await;
    // What was read within the last second may be shown once more.
    let problem = "Cannot read /jobs/jid0000000042: there is no connection to ZooKeeper.";
    eventually(LIMIT, "the page says so", async || world.page("/jobs/jid0000000042").await.contains(problem)).await;
    assert!(world.page("/jobs/jid0000000042").await.contains("It failed in Downloading"));
    let problem = world.refused("/tree/jobs", 503).await;
    assert!(problem["detail"].as_str().unwrap().contains("there is no connection to ZooKeeper"), "{problem}");
    // A browser gets a page with its banner, and since when.
    let (status, _, tree) = world.get("/tree/jobs", "text/html").await;
    assert_eq!(status, 503, "{tree}");
    for part in ["class=\"banner\"", "These figures are", "The znode /jobs cannot be read", "<span id=\"fresh\">"] {
        assert!(tree.contains(part), "{part}: {tree}");
    }
    world.shutdown.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_is_shown_as_far_as_the_process_says_that_has_locked_the_job() {
    let world = World::new().await;
    eventually(LIMIT, "the mirror is synced", async || world.store.freshness().is_synced()).await;
    world.create(JOB, b"").await;
    let status = br#"{"status": "Downloading", "last_successful_status": "Provisioning", "retry_count": 0}"#;
    let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    for (node, data) in [("bid", &b"bid0000000007"[..]), ("priority", b"05"), ("status", status)] {
        world.create(&format!("{JOB}/{node}"), data).await;
    }
    world.client.create(&format!("{JOB}/lock"), b"", &ephemeral).await.unwrap();
    for folder in ["/queuekeeper", "/queuekeeper/progress"] {
        world.create(folder, b"").await;
    }
    // Of a process that has not locked the job, and of the one that has.
    let of = |files: u64| {
        let fetching = [(EVIL, 512, Some(2048)), ("b.bin", 3, None), ("c", 1 << 40, Some(0))];
        let file = |(name, bytes, size): (&str, i64, Option<u64>)| serde_json::json!({"name": name, "bytes": bytes, "size": size});
        let job = serde_json::json!({"files": files, "bytes": 3 << 20, "fetching": fetching.map(file)});
        serde_json::json!({"jid0000000042": job}).to_string()
    };
    world.create("/queuekeeper/progress/1", of(99).as_bytes()).await;
    let own = format!("/queuekeeper/progress/{:x}", world.client.session_id().0);
    world.client.create(&own, of(2).as_bytes(), &ephemeral).await.unwrap();
    let is_seen = async || world.json("/api/v1/jobs/jid0000000042").await["download"]["files"] == 2;
    eventually(LIMIT, "the download is mirrored", is_seen).await;

    let download = &world.json("/api/v1/jobs/jid0000000042").await["download"];
    let first = serde_json::json!({"name": EVIL, "bytes": 512, "size_bytes": 2048});
    assert_eq!((&download["bytes"], &download["fetching"][0]), (&(3 << 20).into(), &first));
    let page = world.page("/jobs/jid0000000042").await;
    for reported in [
        "2 files, 3.0 MiB downloaded",
        "&#60;script&#62;alert(1)&#60;/script&#62;&#34;&#39;&#38;\\u{202e}evil\\u{2066}\\u{1b}[31m</th>",
        "width=\"25.00\"",
        "<span class=\"sub\">512 bytes of 2.0 KiB</span>",
        "<td class=\"part\"><span class=\"sub\">3 bytes, of unknown size</span></td>",
        "width=\"100.00\"",
    ] {
        assert!(page.contains(reported), "{reported:?} is not in {page}");
    }
    world.client.delete(&own, None).await.unwrap();
    let is_gone = async || world.json("/api/v1/jobs/jid0000000042").await["download"].is_null();
    eventually(LIMIT, "the download is not shown any more", is_gone).await;
    assert!(!world.page("/jobs/jid0000000042").await.contains("<h2>Files</h2>"));
    world.shutdown.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tree_is_shown_as_it_is_page_by_page() {
    let world = World::new().await;
    eventually(LIMIT, "the mirror is synced", async || world.store.freshness().is_synced()).await;
    world.evil_job().await;
    for number in 0..250 {
        world.create(&format!("/locks/storage/n{number:03}"), b"").await;
    }

    let root = world.page("/tree").await;
    assert!(root.contains("href=\"./tree/jobs\"") && root.contains("href=\"./tree/zookeeper\""), "{root}");
    assert!(root.contains("by ZooKeeper"));
    assert!(world.page("/tree/zookeeper").await.contains("quota"));

    // Page by page, as the links lead: each child once and in order.
    let (mut path, mut seen) = ("/tree/locks/storage?limit=100".to_owned(), Vec::new());
    loop {
        let page = world.page(&path).await;
        let children = page.split("<li><a href=\"../../tree/locks/storage/").skip(1);
        seen.extend(children.map(|child| child.split('"').next().unwrap().to_owned()));
        let Some(next) = page.split("rel=\"next\"").next().filter(|before| before.len() < page.len()) else { break };
        let href = next.rsplit("href=\"../../").next().unwrap().split('"').next().unwrap();
        path = format!("/{}", href.replace("&#38;", "&"));
    }
    assert_eq!(seen, (0..250).map(|number| format!("n{number:03}")).collect::<Vec<_>>());
    let json = world.json("/api/v1/tree/locks/storage?limit=7&after=n100x").await;
    assert_eq!((&json["children"][0], &json["next"]), (&"n101".into(), &"n107".into()));
    assert_eq!((&json["children_before"], &json["children_total"]), (&101.into(), &250.into()));
    let last = world.json("/api/v1/tree/locks/storage?after=n248").await;
    assert_eq!((&last["children"], &last["next"]), (&serde_json::json!(["n249"]), &Value::Null));
    world.create("/locks/storage/n250", b"").await;
    let grown = world.json("/api/v1/tree/locks/storage?after=n249").await;
    assert_eq!(grown["children"], serde_json::json!(["n250"]));

    let evil = "/tree/jobs/jid0000000042/%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%20a%3Fb%23c%25";
    let page = world.page(evil).await;
    assert!(page.contains("{\n  &#34;a&#34;: ["), "{page}");
    assert!(page.contains("href=\"../../../jobs/jid0000000042\">Page of job jid0000000042"), "{page}");
    assert!(world.page("/tree/jobs/jid0000000042/metadata").await.contains("truncated: 1,000,002 bytes in all"));
    let stat = &world.json("/api/v1/tree/jobs/jid0000000042").await["node"]["stat"];
    assert_eq!((&stat["children"], &stat["ephemeral_owner"]), (&7.into(), &Value::Null));

    assert_eq!(world.refused("/tree/nothing/%3Cscript%3E", 404).await["status"], 404);
    for path in ["/tree/jobs%2F..%2Flocks", "/tree/jobs//x", "/tree/a%00b", "/tree/jobs/"] {
        world.refused(path, 400).await;
    }
    let problem = world.refused("/tree?limit=501", 400).await;
    assert_eq!(problem["allowed"], serde_json::json!(["1 to 500"]));
    let problem = world.refused("/tree?page=2", 400).await;
    assert_eq!(problem["detail"], "Unknown parameter “page”.");
    assert_eq!(problem["allowed"], serde_json::json!(["after", "limit"]));
    world.shutdown.cancel();
}

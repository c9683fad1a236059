use std::process::{Child, Command};
use std::time::Duration;

use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use serde_json::{Value, json};
use zookeeper_client::{Acls, Client, CreateMode};

use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::server::connect;
use queuekeeper_testkit::wait::eventually;

const LIMIT: Duration = Duration::from_mins(5);

/// Markup, quotes, a bell, and a mark that turns the direction of what follows.
const HOSTILE: &str = "\"'><img src=x onerror=alert(1)><!--/live batches-->\u{7}\u{202e}{{7*7}}%3Cb%3E";

/// What of it must not stand on any page.
const RAW: [&str; 5] = ["<img", "<!--/live batches-->\\u", "\u{7}", "\u{202e}", "onerror=alert(1)>"];

/// A server of a queue of its own.
struct Served {
    child: Child,
    base: String,
    client: Client,
    http: reqwest::Client,
    _zookeeper: PrivateServer,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    async fn start() -> Self {
        let zookeeper = PrivateServer::start(Options::default()).await.unwrap();
        let client = connect(&zookeeper.connect_string()).await;
        let port = free_port();
        let child = Command::new(env!("CARGO_BIN_EXE_queuekeeper"))
            .args(["serve", "--zookeeper", &zookeeper.connect_string(), "--log.level", "error"])
            .args(["--zookeeper.session-timeout", "60s", "--web.listen-address", &format!("127.0.0.1:{port}")])
            .spawn()
            .unwrap();
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { child, base: format!("http://127.0.0.1:{port}"), client, http, _zookeeper: zookeeper }
    }

    async fn create(&self, path: &str, data: &[u8]) {
        let mode = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let parents: Vec<_> = path.match_indices('/').skip(1).map(|(at, _)| &path[..at]).collect();
        for parent in parents {
            // Another znode may have needed it before.
            let _ = self.client.create(parent, b"", &mode).await;
        }
        self.client.create(path, data, &mode).await.unwrap();
    }

    async fn get(&self, path: &str) -> (u16, reqwest::header::HeaderMap, String) {
        let response =
            self.http.get(format!("{}{path}", self.base)).header("Accept", "text/html").send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        (status, headers, response.text().await.unwrap())
    }

    async fn json(&self, path: &str) -> Value {
        let (status, _, body) = self.get(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        // A reader in a terminal sees what is there, and nothing else happens.
        assert!(
            !body.contains(|found: char| found.is_control() || ('\u{202a}'..='\u{202e}').contains(&found)),
            "{path}"
        );
        serde_json::from_str(&body).unwrap()
    }

    async fn waits_for(&self, path: &str, what: impl Fn(&Value) -> bool) {
        let found = async || {
            let get = self.http.get(format!("{}{path}", self.base));
            let Ok(response) = get.send().await else { return false };
            let Ok(text) = response.text().await else { return false };
            serde_json::from_str(&text).is_ok_and(|value: Value| what(&value))
        };
        eventually(LIMIT, path, found).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_show_what_is_there_as_text_whatever_it_is() {
    let served = Served::start().await;
    for folder in ["/jobs", "/batches", "/batch-uuids", "/access", "/locks"] {
        served.create(folder, b"").await;
    }
    // Five of them fill nearly all that a znode may hold.
    let long = "w".repeat(190_000);
    let texts = [HOSTILE, &long, "plain"];
    for (number, text) in texts.iter().enumerate() {
        let batch = format!("/batches/bid000000000{number}");
        let submission = json!({
            "batchID": format!("{number}-{text}"), "profile": text, "submitter": text, "filename": text, "title": text,
        });
        served.create(&format!("{batch}/submission"), submission.to_string().as_bytes()).await;
        let status = if number == 2 { "Failed" } else { text };
        let status = json!({"status": status, "message": text}).to_string();
        served.create(&format!("{batch}/status"), status.as_bytes()).await;
        served.create(&format!("{batch}/lock"), b"").await;
        let request = format!("/access/small/qid000000000{number}");
        let token = json!({"token": text, "cloud-content-byte": u64::MAX}).to_string();
        served.create(&format!("{request}/token"), token.as_bytes()).await;
        served.create(&format!("{request}/status"), status.as_bytes()).await;
    }
    served.create("/batches/bid0000000003/submission", b"\xff\xfe not JSON").await;
    served.create("/batches/bid0000000003/status", b"\xff\xfe").await;
    served.create("/batch-uuids/2-plain", b"bid0000000002").await;
    // A znode's name holds no control character, and anything else.
    let name: String = HOSTILE.chars().filter(|character| !character.is_control() && *character != '/').collect();
    for folder in ["storage", "inventory", "localid", "collections"] {
        served.create(&format!("/locks/{folder}/{name}"), b"").await;
    }
    served.create("/locks/queue/ingest", b"\xff").await;
    served.waits_for("/api/v1/locks", |locks| locks["total"] == 8).await;
    served.waits_for("/api/v1/batches", |batches| batches["total"] == 4).await;
    served.waits_for("/api/v1/faults", |faults| faults["total"].as_u64() > Some(3)).await;

    let pages = [
        "/batches",
        "/batches/bid0000000000",
        "/batches/bid0000000001",
        "/batches/bid0000000002",
        "/batches/bid0000000003",
        "/access",
        "/locks",
        "/locks?session=none",
        "/faults",
        "/faults?fault=unloadable_batch",
        "/api",
        "/api/bodies",
        "/api/bodies/Overview",
        "/batches?text=%3Cimg",
        "/batches?state=other",
        "/access?sort=largest&queue=small",
    ];
    for page in pages {
        let (status, headers, html) = served.get(page).await;
        assert_eq!(status, 200, "{page}: {html}");
        assert!(html.len() < 100 * 1024, "{page} has {} bytes", html.len());
        assert!(headers["content-security-policy"].to_str().unwrap().contains("default-src 'none'"), "{page}");
        for raw in RAW {
            assert!(!html.contains(raw), "{page} has {raw:?} as it is: {html}");
        }
        for word in html.split(|character: char| character.is_whitespace() || character == '<' || character == '>') {
            assert!(word.len() < 2_000, "{page} has a word of {} bytes", word.len());
        }
        assert_eq!(html.matches("<!--live ").count(), html.matches("<!--/live ").count(), "{page}");
        assert!(!html.contains("style=") && !html.contains("href=\"/"), "{page}: {html}");
    }
    // The API has the same texts as they are, cut.
    let batches = served.json("/api/v1/batches?sort=oldest").await;
    assert_eq!(batches["items"][0]["title"], HOSTILE);
    assert!(batches["items"][1]["title"].as_str().unwrap().ends_with("w…"));
    assert_eq!(batches["items"][3]["state"], "other");
    assert_eq!(served.json("/api/v1/batches?text=PLAIN").await["total"], 1);

    // A deposit is found by the UUID that its depositor knows.
    let (status, headers, _) = served.get("/batches/2-plain").await;
    assert_eq!((status, headers["location"].to_str().unwrap()), (303, "bid0000000002"));
    assert_eq!(served.json("/api/v1/batches/2-plain").await["batch"]["id"], "bid0000000002");
    let diagnosis = &served.json("/api/v1/batches/2-plain").await["diagnosis"];
    assert!(diagnosis["verdict"].is_string() && diagnosis["causes"].is_array(), "{diagnosis}");

    refuses_what_it_does_not_take(&served).await;
}

/// Every filter of every list, as page and as JSON: what is not taken, the status, and a value that would be.
async fn refuses_what_it_does_not_take(served: &Served) {
    for (query, code, allowed) in [
        ("batches?state=flying", 400, "update-reporting"),
        ("batches?sort=size", 400, "newest"),
        ("batches?limit=0", 400, "1 to 500"),
        ("tree?limit=0", 400, "1 to 500"),
        ("batches?limit=501", 400, "1 to 500"),
        ("batches?limit=x", 400, "1 to 500"),
        ("batches?cursor=5b5d", 400, ""),
        ("batches?colour=red", 400, ""),
        ("batches?collection=none", 404, "plain"),
        ("batches/bid0000000099", 404, ""),
        ("batches/bid99", 404, "UUID"),
        ("batches/no-such-uuid", 404, "UUID"),
        ("batches/%ff", 400, ""),
        ("access?queue=medium", 400, "small"),
        ("access?state=reporting", 400, "processing"),
        ("access?age=2m", 400, "10m"),
        ("access?sort=size", 400, "largest"),
        ("access?cursor=zz", 400, ""),
        ("locks?kind=door", 400, "collection"),
        ("locks?age=old", 400, "older"),
        ("locks?session=12", 400, "none"),
        ("locks?session=0x0", 400, "none"),
        ("locks?session=0x11112222333344445", 400, "none"),
        ("locks?limit=-1", 400, "1 to 500"),
        ("faults?fault=tired", 400, "orphan_entry"),
        ("faults?cursor=%07", 400, ""),
    ] {
        let (status, headers, body) = served.get(&format!("/api/v1/{query}")).await;
        assert_eq!((status, headers["content-type"].to_str().unwrap()), (code, "application/problem+json"), "{query}");
        let problem: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(problem["status"], code, "{query}");
        assert!(allowed.is_empty() || problem["allowed"].to_string().contains(allowed), "{query}: {body}");
        let (status, headers, body) = served.get(&format!("/{query}")).await;
        assert_eq!((status, headers["content-type"].to_str().unwrap()), (code, "text/html; charset=utf-8"), "{query}");
        assert!(body.contains(allowed), "{query}: {body}");
    }
    for points in ["5000", "0", "x"] {
        let (status, _, body) = served.get(&format!("/api/v1/history?points={points}")).await;
        assert!(status == 400 && body.contains(&format!("The parameter “points” cannot be “{points}”.")), "{body}");
        assert!(body.contains("1 to 2160"), "{body}");
    }
    // The cursor of one list, or order, is none of another.
    let first = served.json("/api/v1/batches?limit=1&sort=oldest").await;
    let cursor = first["next"].as_str().unwrap();
    for query in
        [format!("batches?cursor={cursor}"), format!("locks?cursor={cursor}"), format!("faults?cursor={cursor}")]
    {
        assert_eq!(served.get(&format!("/api/v1/{query}")).await.0, 400, "{query}");
    }
    let second = served.json(&format!("/api/v1/batches?limit=1&sort=oldest&cursor={cursor}")).await;
    assert_eq!((&second["before"], &second["items"][0]["id"]), (&json!(1), &json!("bid0000000001")));
    // What forms send for a field that is left empty holds nothing back.
    assert_eq!(served.json("/api/v1/batches?state=&collection=&text=&sort=&limit=&cursor=").await["total"], 4);
}

//! The event stream as a reader gets it, over a real server beside a real ZooKeeper.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use prometheus_client::registry::Registry;
use queuekeeper::config::Config;
use queuekeeper::mirror::{self, MirrorStore, Writer};
use queuekeeper::{metrics, web};
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{PrivateServer, Sessions};
use reqwest::{Client as Http, Response, StatusCode};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Acls, Client, CreateMode};

use super::harness::IN_TIME;
use queuekeeper_testkit::server::config;
use queuekeeper_testkit::wait::eventually;

/// Far more than anything here takes, also beside other tests.
const LIMIT: Duration = Duration::from_secs(30);

/// A server over a store.
struct Web {
    base: String,
    http: Http,
    shutdown: CancellationToken,
    running: JoinHandle<std::io::Result<()>>,
}

impl Web {
    async fn start(store: MirrorStore) -> Self {
        let config = Config::new(queuekeeper_zookeeper::Config::new("127.0.0.1:1".parse().unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let state = web::State::new(config, store, None, None, metrics::registry());
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(web::run(vec![listener], state, shutdown.clone()));
        Self { base, http: Http::new(), shutdown, running }
    }

    /// Asks from another address of this machine from now on.
    fn come_from(&mut self, last: u8) {
        self.http = Http::builder().local_address(IpAddr::from([127, 0, 0, last])).build().unwrap();
    }

    async fn ask(&self, query: &str) -> Response {
        self.http.get(format!("{}/events{query}", self.base)).send().await.unwrap()
    }

    async fn stream(&self, query: &str) -> Events {
        let response = self.ask(query).await;
        assert_eq!(response.status(), StatusCode::OK, "{query}");
        Events { response, unread: Vec::new() }
    }

    async fn stop(self) -> Duration {
        let asked = Instant::now();
        self.shutdown.cancel();
        self.running.await.unwrap().unwrap();
        asked.elapsed()
    }
}

/// One reader's stream.
struct Events {
    response: Response,
    unread: Vec<u8>,
}

impl Events {
    /// The next event's name and data; `None` at the stream's end.
    async fn next(&mut self) -> Option<(String, serde_json::Value)> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|two| two == b"\n\n") {
                let event = String::from_utf8(self.unread.drain(..end + 2).collect()).unwrap();
                let (name, data) = event.trim_end().split_once('\n').unwrap();
                let data = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
                return Some((name.strip_prefix("event: ").unwrap().to_owned(), data));
            }
            let chunk = timeout(LIMIT, self.response.chunk()).await.expect("a stream says something").ok()??;
            self.unread.extend_from_slice(&chunk);
        }
    }

    /// Reads regions until one of them has a text in it; gives all that came, the latest of each name.
    async fn until(&mut self, text: &str) -> BTreeMap<String, String> {
        let mut regions = BTreeMap::new();
        let deadline = Instant::now() + LIMIT;
        loop {
            assert!(Instant::now() < deadline, "{text:?} has not come, but {regions:?}");
            let (event, data) = self.next().await.expect("the stream goes on");
            if event == "region" {
                let [name, html] = ["name", "html"].map(|field| data[field].as_str().unwrap().to_owned());
                let is_it = html.contains(text);
                regions.insert(name, html);
                if is_it {
                    return regions;
                }
            }
        }
    }
}

async fn create(client: &Client, path: &str, data: &str) {
    let mode = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.create(path, data.as_bytes(), &mode).await.unwrap();
}

async fn create_failed(client: &Client, number: u32) {
    let jid = format!("/jobs/jid{number:010}");
    create(client, &jid, "").await;
    let status = r#"{"status":"Failed","last_modified":"","last_successful_status":null,"retry_count":0,"message":""}"#;
    create(client, &format!("{jid}/status"), status).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_in_zookeeper_is_awaited_and_arrives_alone() {
    let mut server = PrivateServer::start(Options::default()).await.unwrap();
    let connection = config(&server.connect_string());
    let client = connection.connect().await.unwrap();
    create(&client, "/jobs", "").await;
    let writer = Writer::new();
    let store = writer.store();
    let seen = mirror::Metrics::register(&mut Registry::default());
    let shutdown = CancellationToken::new();
    let mirror = tokio::spawn(mirror::run(Sessions::new(connection), writer, seen, None, shutdown.clone()));
    eventually(LIMIT, "the image follows the tree", async || store.freshness().is_synced()).await;

    let web = Web::start(store).await;
    let mut events = web.stream("?page=").await;
    let headers = events.response.headers();
    assert_eq!(headers["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(headers["cache-control"], "no-store");
    let first = events.until("0 jobs, 0 batches").await;
    assert!(["nav", "fresh", "banner", "footer"].iter().all(|name| first.contains_key(*name)), "{first:?}");

    for number in 1..=5 {
        // A later subscriber gets the same, and all of it first.
        let mut late = web.stream("?page=/").await;
        late.until(", 0 batches").await;
        create_failed(&client, number).await;
        let expected = if number == 1 { "1 job, 0 batches".to_owned() } else { format!("{number} jobs, 0 batches") };
        let news = events.until(&expected).await;
        assert!(!news.contains_key("banner"), "what has not changed is not sent: {news:?}");
        late.until(&expected).await;
    }
    // The page is rendered every 5 s anyway, and each of these changes is made just after that: what is sent before the
    // next time was awaited. A busy machine may render it too slowly for that, but not each time.
    for number in 6.. {
        create_failed(&client, number).await;
        let made = Instant::now();
        events.until(&format!("{number} jobs, 0 batches")).await;
        let took = made.elapsed();
        if took < Duration::from_secs(4) {
            break;
        }
        assert!(number < 15, "no change is sent before the page is rendered anyway: {took:?}");
    }

    let beat = loop {
        let (event, data) = events.next().await.unwrap();
        if event == "beat" {
            break data;
        }
    };
    assert!(beat["behind_seconds"].as_f64().unwrap() < 30.0, "{beat}");
    assert!(beat["now"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{beat}");

    // The connection is lost: nothing of the queue has changed, but the page says so.
    drop(client);
    let stopped = server.stop().await;
    assert!(stopped.is_ok(), "{stopped:?}");
    events.until("class=\"banner\"").await;
    web.stop().await;
    while events.next().await.is_some() {}
    shutdown.cancel();
    mirror.await.unwrap().unwrap();
}

#[tokio::test]
async fn only_pages_can_be_followed() {
    let web = Web::start(MirrorStore::default()).await;
    let long = format!("?page={}", "x".repeat(3_000));
    for query in [
        "?page=metrics",
        "?page=events%3Fpage%3D",
        "?page=api/v1/status",
        "?page=-/healthy",
        "?page=static/live.js",
        "?page=nothing",
        "?page=%00",
        "?page=a%20b",
        "?page=http://example.org/",
        &long,
        "",
        "?page=&more=1",
    ] {
        let answer = web.ask(query).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{query}");
        let text = answer.text().await.unwrap();
        assert!(text.contains("page"), "{query}: {text}");
    }
    let mut events = web.stream("?page=").await;
    events.until("The queue has not been read yet").await;
    web.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_and_pages_are_limited_for_all_and_for_each_and_all_of_them_end_in_time() {
    let mut web = Web::start(MirrorStore::default()).await;
    // So many of one address, and no more; others are served as before.
    let mut streams = Vec::new();
    web.come_from(2);
    for page in 0..48 {
        streams.push(web.stream(&format!("?page=%3Fn={page}")).await);
    }
    let refused = async |web: &Web, page: u32, reported: &str| {
        let refused = web.ask(&format!("?page=%3Fn={page}")).await;
        let status = refused.status();
        assert_eq!(refused.headers()["retry-after"], "30");
        let text = refused.text().await.unwrap();
        assert!(text.contains(reported), "{text}");
        status
    };
    assert_eq!(
        refused(&web, 48, "48 different live pages open, the limit for one").await,
        StatusCode::TOO_MANY_REQUESTS
    );
    for reader in 48..192 {
        streams.push(web.stream(&format!("?page=%3Fn={}", reader % 48)).await);
    }
    assert_eq!(refused(&web, 0, "192 live pages open, the limit for one").await, StatusCode::TOO_MANY_REQUESTS);

    // Then so many distinct pages, and no more; those who look at one of them already are not concerned.
    web.come_from(3);
    for page in 48..64 {
        streams.push(web.stream(&format!("?page=%3Fn={page}")).await);
    }
    assert_eq!(refused(&web, 64, "64 different live pages").await, StatusCode::SERVICE_UNAVAILABLE);
    for reader in 0..48 {
        streams.push(web.stream(&format!("?page=%3Fn={}", reader % 32)).await);
    }
    web.come_from(4);
    assert_eq!(refused(&web, 0, "256 live pages").await, StatusCode::SERVICE_UNAVAILABLE);
    // Others are served as before, and a reader who leaves makes room, for another page too.
    assert_eq!(web.http.get(format!("{}/-/healthy", web.base)).send().await.unwrap().status(), StatusCode::OK);
    streams.retain({
        let mut reader = 0;
        move |_| {
            reader += 1;
            !(reader <= 192 && reader % 48 == 40)
        }
    });
    eventually(LIMIT, "there is room for another page", async || web.ask("?page=%3Fn=64").await.status().is_success())
        .await;

    let took = web.stop().await;
    assert!(took < IN_TIME, "{took:?}");
    for mut stream in streams {
        while stream.next().await.is_some() {}
    }
}

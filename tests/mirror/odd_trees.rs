//! Trees that should not exist, in a real server: the mirror says what a plain reading says, and pages and metrics are
//! there.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use futures::stream;
use jiff::Timestamp;
use queuekeeper::config::Config as ServerConfig;
use queuekeeper::metrics;
use queuekeeper::web;
use queuekeeper_queue::Queue;
use queuekeeper_queue::load::{self, LoadLimits, LoadOptions};
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use tower::ServiceExt as _;

use super::harness::{Mirror, connect, create};
use super::pages::PAGES;

#[tokio::test(flavor = "multi_thread")]
async fn however_odd_a_tree_is_the_mirror_equals_it_and_answers() {
    let mut server = PrivateServer::start(Options::default()).await.unwrap();
    let root = connect(&server.connect_string()).await;
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/trees");
    let mut loaded = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let dump = std::fs::read(&path).unwrap();
        create(&root, &format!("/{name}"), b"").await;
        let address = format!("{}/{name}", server.connect_string());
        let client = connect(&address).await;
        // The mirror sees the tree come into being.
        let mirror = Mirror::start(&address);
        mirror.is_synced().await;
        let limits = LoadLimits::new(1_000, &format!("/{name}"), &[]);
        let checked = load::check(&*dump, limits).unwrap_or_else(|error| panic!("{name}: {error}"));
        let options = LoadOptions { now: Timestamp::now(), resume: false, limits, sha256: checked.sha256 };
        let blocks = stream::iter(dump.chunks(10_000).map(|block| Ok(block.to_vec())).collect::<Vec<_>>());
        let made = Queue::new(client.clone()).load(blocks, &options, |_| {}).await;
        let made = made.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(made.read.nodes > 0, "{name} has a root");
        mirror.equals(&client).await;
        // And another one finds it as it is.
        let late = Mirror::start(&address);
        late.is_synced().await;
        late.equals(&client).await;
        for mirror in [mirror, late] {
            answers(&name, &address, &mirror).await;
            mirror.is_compared_again().await;
            assert_eq!(mirror.drift(), 0, "{name}: nothing was missed");
            mirror.stop().await;
        }
        loaded += 1;
    }
    assert!(loaded > 0, "there are trees");
    server.stop().await.unwrap();
}

/// Every page is there, and says what it says.
async fn answers(name: &str, address: &str, mirror: &Mirror) {
    let config = ServerConfig::new(super::harness::config(address));
    let mut registry = metrics::registry();
    let (store, drop_after) = (mirror.store.clone(), config.mirror.drop_after);
    metrics::queue::QueueMetrics { store: store.clone(), storage: None, drop_after, collections: 20 }
        .register(&mut registry);
    let mut web = config.clone();
    web.web.external_url = Some("http://localhost/".parse().unwrap());
    let router = web::router(web::State::new(web, store, None, None, registry));
    for page in PAGES {
        let request = Request::get(page).header("host", "localhost").body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let body = to_bytes(answer.into_body(), 4 << 20).await.unwrap();
        assert_eq!(status, StatusCode::OK, "{name}{page}: {}", String::from_utf8_lossy(&body));
        assert!(!body.windows(3).any(|found| found == b"<qk") || !page_is_html(page), "{name}{page} has its markup");
    }
}

fn page_is_html(page: &str) -> bool {
    !page.starts_with("/api") && page != "/metrics"
}

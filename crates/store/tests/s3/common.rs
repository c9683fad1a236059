//! A server, a store in it, and content.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::Mutex;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use queuekeeper_store::retry::RetryPolicy;
use queuekeeper_store::s3::{AccessKey, Credentials, S3Config, S3Store};
use queuekeeper_store::store::{Chunks, CommitGuard, Content, Item, Put, Store as _, Written};
use queuekeeper_store::{Digests, Error, Key, StoreFamilies};
use queuekeeper_testkit::s3::{S3Server, Settings};

/// The bucket of the stores.
pub(crate) const BUCKET: &str = "preservation";

/// Attempts that end soon.
pub(crate) const RETRY: RetryPolicy = RetryPolicy {
    attempts: 4,
    within: Duration::from_secs(10),
    first: Duration::from_millis(5),
    most: Duration::from_millis(20),
};

/// A server with a bucket, and a store in it with the space `maps`.
pub(crate) struct Fixture {
    pub(crate) server: S3Server,
    pub(crate) store: S3Store,
    families: StoreFamilies,
    registry: Registry,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    /// The same with another configuration.
    pub(crate) async fn start_with(change: impl FnOnce(&mut S3Config)) -> Self {
        Self::start_at(Settings::default(), change).await
    }

    /// The same at another kind of server.
    pub(crate) async fn start_at(settings: Settings, change: impl FnOnce(&mut S3Config)) -> Self {
        let server = S3Server::start(settings).await.unwrap();
        server.create_bucket(BUCKET);
        let mut config = config(&server);
        change(&mut config);
        let mut registry = Registry::default();
        let families = StoreFamilies::register(&mut registry);
        let metrics = families.store(&config.name);
        let store = S3Store::new(config, metrics).await.unwrap();
        assert!(store.create_space(&item("a").space).await.unwrap());
        Self { server, store, families, registry }
    }

    /// Another store at the same server with another configuration, which counts with the first one.
    pub(crate) async fn another(&self, change: impl FnOnce(&mut S3Config)) -> S3Store {
        let mut config = config(&self.server);
        change(&mut config);
        let metrics = self.families.store(&config.name);
        S3Store::new(config, metrics).await.unwrap()
    }

    /// Lets the store find out what the service does, so that its requests are not counted.
    pub(crate) async fn probed(self) -> Self {
        self.store.probe().await.unwrap();
        self.server.clear_log();
        self
    }

    pub(crate) async fn put(&self, key: &str, content: impl AsRef<[u8]>) -> Result<Written, Error> {
        self.store.put(&item(key), chunks(content), Put::default()).await
    }

    pub(crate) async fn read(&self, key: &str) -> Vec<u8> {
        read(self.store.get(&item(key), None, None).await.unwrap()).await.unwrap()
    }

    /// The content that the server holds of an item.
    pub(crate) fn content(&self, key: &str) -> Option<Vec<u8>> {
        self.server.content(BUCKET, &format!("copies/maps/{key}"))
    }

    /// The value of a series, as it is written.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let mut exposition = String::new();
        text::encode(&mut exposition, &self.registry).unwrap();
        let value = exposition.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {series}")).parse().unwrap()
    }
}

pub(crate) fn config(server: &S3Server) -> S3Config {
    let url = format!("s3://{BUCKET}/copies");
    let mut config = S3Config::new("replica".parse().unwrap(), url.parse().unwrap());
    config.endpoint = Some(server.endpoint());
    config.credentials = Credentials::Key(AccessKey::new(server.access_key(), server.secret_key()));
    config.retry = RETRY;
    config
}

/// A store with this configuration, whose metrics are not shown.
pub(crate) async fn store(config: S3Config) -> S3Store {
    let metrics = StoreFamilies::default().store(&config.name);
    S3Store::new(config, metrics).await.unwrap()
}

pub(crate) fn item(key: &str) -> Item {
    Item::new("maps".parse().unwrap(), Key::new(key.as_bytes()).unwrap())
}

/// Content in pieces of an odd length.
pub(crate) fn chunks(content: impl AsRef<[u8]>) -> Chunks {
    let content = Bytes::copy_from_slice(content.as_ref());
    let starts = (0..content.len()).step_by(65_521);
    let pieces: Vec<_> = starts.map(|at| Ok(content.slice(at..content.len().min(at + 65_521)))).collect();
    stream::iter(pieces).boxed()
}

/// Bytes that differ everywhere.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut all = vec![0; length];
    for word in all.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
    all
}

pub(crate) async fn read(content: Content) -> std::io::Result<Vec<u8>> {
    content
        .chunks
        .try_fold(Vec::new(), async |mut all, chunk| {
            all.extend_from_slice(&chunk);
            Ok(all)
        })
        .await
}

/// A guard that notes what passes it, and may refuse.
#[derive(Default)]
pub(crate) struct NotingGuard {
    pub(crate) begun: Mutex<Vec<String>>,
    pub(crate) passed: Mutex<Vec<(u64, Digests)>>,
    pub(crate) is_shut: bool,
}

impl NotingGuard {
    pub(crate) fn shut() -> Arc<Self> {
        Arc::new(Self { is_shut: true, ..Self::default() })
    }
}

#[async_trait::async_trait]
impl CommitGuard for NotingGuard {
    async fn pass(&self, size: u64, digests: &Digests) -> Result<(), String> {
        self.passed.lock().push((size, digests.clone()));
        if self.is_shut { Err("the lease has ended".to_owned()) } else { Ok(()) }
    }

    async fn begun(&self, upload: &str) -> Result<(), String> {
        self.begun.lock().push(upload.to_owned());
        Ok(())
    }
}

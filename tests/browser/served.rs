//! A queue in a private ZooKeeper, and the pages over it.

use queuekeeper::actions::Role;
use queuekeeper::config::{Config, Loopback};
use queuekeeper::demo;
use queuekeeper::server;
use queuekeeper_queue::Queue;
use queuekeeper_testkit::server::{config, connect};
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Acls, CreateMode};

use super::chromium::LIMIT;
use queuekeeper_testkit::wait::eventually;

/// The pages over a queue, until it is stopped.
pub(crate) struct Served {
    pub(crate) base: String,
    pub(crate) zookeeper: PrivateServer,
    shutdown: CancellationToken,
    running: JoinHandle<()>,
}

impl Served {
    /// A repository with made-up depositors, with everything that happens to one.
    pub(crate) async fn demo() -> Self {
        let (zookeeper, listener, shutdown) = parts().await;
        let base = base(&listener);
        let options = demo::Options {
            jobs: 400,
            rate: 20.0,
            seed: 1,
            zookeeper: Some(zookeeper.connect_string().parse().unwrap()),
            names: Vec::new(),
            with_prometheus: false,
        };
        let ended = shutdown.clone();
        let running = tokio::spawn(async move { demo::run(options, vec![listener], &ended).await.unwrap() });
        let served = Self { base, zookeeper, shutdown, running };
        served.is_ready().await;
        served
    }

    /// An empty queue without daemons.
    pub(crate) async fn still() -> Self {
        Self::still_with(|_| {}).await
    }

    /// The same on a server that has these names.
    pub(crate) async fn still_at(names: Vec<String>) -> Self {
        Self::still_with(|config| config.web.names = names).await
    }

    /// The same for readers who may do everything.
    pub(crate) async fn still_for_admins() -> Self {
        Self::still_with(|config| {
            config.web.loopback = Some(Loopback { role: Role::Admin, notice: "Everyone may do everything." });
        })
        .await
    }

    async fn still_with(change: impl FnOnce(&mut Config)) -> Self {
        let (zookeeper, listener, shutdown) = parts().await;
        let client = connect(&zookeeper.connect_string()).await;
        for path in ["/batches", "/batch-uuids", "/jobs", "/jobs/states", "/access", "/locks"] {
            client.create(path, b"", &CreateMode::Persistent.with_acls(Acls::anyone_all())).await.unwrap();
        }
        let base = base(&listener);
        let mut config = Config::new(config(&zookeeper.connect_string()));
        change(&mut config);
        let ended = shutdown.clone();
        let running = tokio::spawn(async move { server::serve(config, vec![listener], &ended).await.unwrap() });
        let served = Self { base, zookeeper, shutdown, running };
        served.is_ready().await;
        served
    }

    /// Another client, which changes the queue.
    pub(crate) async fn queue(&self) -> Queue {
        Queue::new(connect(&self.zookeeper.connect_string()).await)
    }

    /// The same with one empty znode, and those above it.
    pub(crate) async fn create(&self, path: &str) {
        let client = connect(&self.zookeeper.connect_string()).await;
        client.mkdir(path, &CreateMode::Persistent.with_acls(Acls::anyone_all())).await.unwrap();
    }

    /// Removes a znode.
    pub(crate) async fn remove(&self, path: &str) {
        connect(&self.zookeeper.connect_string()).await.delete(path, None).await.unwrap();
    }

    async fn is_ready(&self) {
        let ready = format!("{}/-/ready", self.base);
        eventually(LIMIT, "the pages are ready", async || {
            reqwest::get(&ready).await.is_ok_and(|response| response.status().is_success())
        })
        .await;
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.running.await.unwrap();
    }
}

async fn parts() -> (PrivateServer, TcpListener, CancellationToken) {
    let zookeeper = PrivateServer::start(Options::default()).await.unwrap();
    (zookeeper, TcpListener::bind("127.0.0.1:0").await.unwrap(), CancellationToken::new())
}

fn base(listener: &TcpListener) -> String {
    format!("http://{}", listener.local_addr().unwrap())
}

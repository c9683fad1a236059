//! One server, or three that are one, each behind a proxy of its own.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::time::Duration;

use futures::future::try_join_all;
use queuekeeper_zookeeper::server::{Member, Options};
use queuekeeper_zookeeper::{Config, PrivateServer};
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zookeeper_client::Client;

use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::proxy::Proxy;

/// Generous: three servers share two cores with everything else.
pub(super) const LIMIT: Duration = Duration::from_mins(5);

pub(super) struct Cluster {
    pub(super) servers: Vec<PrivateServer>,
    pub(super) proxies: Vec<Proxy>,
}

impl Cluster {
    pub(super) async fn start(members: usize) -> Self {
        let servers = servers(members).await;
        let mut proxies = Vec::new();
        for server in &servers {
            proxies.push(Proxy::start(server.port()).await);
        }
        Self { servers, proxies }
    }

    /// For queuekeeper, through the proxies.
    pub(super) fn through_proxies(&self) -> String {
        self.proxies.iter().map(Proxy::connect_string).collect::<Vec<_>>().join(",")
    }

    /// A client that no proxy disturbs.
    pub(super) async fn connect(&self, chroot: &str) -> Client {
        connect(&self.address(chroot)).await
    }

    /// Where all servers are.
    pub(super) fn address(&self, chroot: &str) -> String {
        let servers: Vec<String> = self.servers.iter().map(PrivateServer::connect_string).collect();
        format!("{}{chroot}", servers.join(","))
    }

    /// Waits until transactions are committed again.
    pub(super) async fn serves(&self) {
        let client = self.connect("").await;
        tokio::time::timeout(LIMIT, client.sync("/")).await.expect("there is a quorum in time").unwrap();
    }

    pub(super) fn one(&self, rng: &mut StdRng) -> usize {
        rng.random_range(0..self.servers.len())
    }

    /// The one that leads; the only one where there is one.
    pub(super) async fn leader(&self) -> usize {
        for (at, server) in self.servers.iter().enumerate() {
            let mut stream = TcpStream::connect(server.connect_string()).await.unwrap();
            stream.write_all(b"srvr").await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            if answer.contains("Mode: leader") || answer.contains("Mode: standalone") {
                return at;
            }
        }
        panic!("nobody leads");
    }

    /// Kills all, and starts all again, without their data if it is to be lost.
    pub(super) async fn restart_all(&mut self, is_lost: bool) {
        for server in &mut self.servers {
            server.kill().unwrap();
            if is_lost {
                server.lose_data().unwrap();
            }
        }
        try_join_all(self.servers.iter_mut().map(PrivateServer::restart)).await.unwrap();
    }
}

/// A client, as soon as a server answers.
pub(super) async fn connect(address: &str) -> Client {
    let deadline = tokio::time::Instant::now() + LIMIT;
    loop {
        let config = Config { session_timeout: Duration::from_secs(20), ..Config::new(address.parse().unwrap()) };
        match config.connect().await {
            Ok(client) => return client,
            Err(error) => assert!(tokio::time::Instant::now() < deadline, "no server answers: {error}"),
        }
    }
}

async fn servers(members: usize) -> Vec<PrivateServer> {
    let peers: Vec<[u16; 2]> = (0..members).map(|_| [free_port(), free_port()]).collect();
    let start = |index| {
        let member = (members > 1).then(|| Member { index, peers: peers.clone() });
        PrivateServer::start(Options { member, start_limit: LIMIT, ..Options::default() })
    };
    try_join_all((0..members).map(start)).await.unwrap()
}

//! A server on ports of its own, and a client that sees every byte.

use std::time::Duration;

use prometheus_client::registry::Registry;
use queuekeeper::config::{self, Config};
use queuekeeper::mirror::MirrorStore;
use queuekeeper::{metrics, web};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What ends in time ends within this. What is still under way has a second of it; who never finishes a request head
/// would be waited for half a minute.
pub(crate) const IN_TIME: Duration = Duration::from_secs(15);

/// The same for [`Server::stop`], less than the ten seconds that an unfinished body would be waited for.
pub(crate) const STOPPED_IN_TIME: Duration = Duration::from_secs(5);

/// In which steps the time of an end is counted.
const STEP: Duration = Duration::from_millis(100);

/// How many of them are waited for.
const MOST_STEPS: u32 = 1_200;

/// A server without an image, on two ports of its own.
pub(crate) struct Server {
    pub(crate) ports: [u16; 2],
    shutdown: CancellationToken,
    running: JoinHandle<std::io::Result<()>>,
}

/// A response as it comes over the wire, with its head in lower case.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Reads a response to the end of its stream.
    pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Self {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head ends");
        let head = String::from_utf8(answer[..end].to_vec()).unwrap().replace('\r', "").to_lowercase();
        Self { head, body: answer[end + 4..].to_vec() }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn code(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[track_caller]
    pub(crate) fn has(&self, expected: &[&str]) {
        for line in expected {
            assert!(self.head.lines().any(|found| found == *line), "{line:?} is not in:\n{}", self.head);
        }
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(config::Web::default()).await
    }

    pub(crate) async fn with(web: config::Web) -> Self {
        Self::under(web, None).await
    }

    pub(crate) async fn under(web: config::Web, file: Option<config::ConfigFile>) -> Self {
        let config =
            Config { web, file, ..Config::new(queuekeeper_zookeeper::Config::new("127.0.0.1:1".parse().unwrap())) };
        let mut registry: Registry = metrics::registry();
        let store = MirrorStore::default();
        let queue = metrics::queue::QueueMetrics {
            store: store.clone(),
            storage: None,
            drop_after: config.mirror.drop_after,
            collections: 0,
        };
        queue.register(&mut registry);
        let listeners =
            [TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap()];
        let ports = listeners.each_ref().map(|listener| listener.local_addr().unwrap().port());
        let shutdown = CancellationToken::new();
        let state = web::State::new(config, store, None, None, registry);
        let running = tokio::spawn(web::run(listeners.into(), state, shutdown.clone()));
        Self { ports, shutdown, running }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.ports[0])).await.unwrap()
    }

    /// Sends a request with these lines after its first, for a host that is the server's, and reads the response.
    pub(crate) async fn ask(&self, request: &str, headers: &[&str]) -> Answer {
        let mut lines = vec![request, "Host: localhost"];
        lines.extend(headers);
        self.send(&lines).await
    }

    /// Sends these lines as a request and reads the response to the end of the connection.
    pub(crate) async fn send(&self, lines: &[&str]) -> Answer {
        converse(self.connect().await, lines).await
    }

    /// Stops it, and gives how long that took, without time in which this process did not run.
    pub(crate) async fn stop(self) -> Duration {
        self.shutdown.cancel();
        let mut ended = self.running;
        for steps in 0..MOST_STEPS {
            if let Ok(ended) = tokio::time::timeout(STEP, &mut ended).await {
                ended.unwrap().unwrap();
                return STEP * steps;
            }
        }
        panic!("it does not end")
    }
}

/// Sends these lines as the only request on a stream, and reads the response.
pub(crate) async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, lines: &[&str]) -> Answer {
    let mut request = lines.join("\r\n");
    request.push_str("\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    Answer::read(&mut stream).await
}

//! Accepting and serving connections.
//!
//! `axum::serve` has no time limit for a client that sends its request head slowly or never, and waits for it at
//! shutdown. Against such clients there are:
//!
//! - a time limit for each request head, `HEAD_TIMEOUT`, and for each TLS handshake; and a size limit, `HEAD_BYTES`;
//! - a minimum rate at which a client must read a response ([`write_timeout`]);
//! - a limit for the number of connections, at which idle ones are evicted, and for those of one address ([`limiter`]).

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::limiter::{ActiveRequest, ConnectionLimiter, ConnectionSlot, RequestBody, ResponseBody};
use self::write_timeout::WriteTimeout;
use super::address::ConnectionAddresses;
use super::context::HttpContext;
use super::layers::HEAD_BYTES;
use super::tls;
use crate::config::Network;

mod limiter;
pub(super) mod write_timeout;

/// How many connections a server has open at once, on all listeners; more wait in the kernel's accept queue.
pub(in crate::web) const MAX_CONNECTIONS: usize = 512;

/// How long a connection may take to send a complete request head, the first one or the next.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the requests of pages in flight may take after shutdown was requested.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// How long a listener waits after it could not accept a connection, as when the process has no file descriptor left.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// How the connections of a server are served.
#[derive(Clone, Debug)]
pub(in crate::web) struct ServeOptions {
    /// Where TLS is configured; `None` for a server without it.
    pub(in crate::web) tls: Option<Arc<HttpContext>>,
    /// The networks of the clients; of any where there are none.
    pub(in crate::web) networks: Vec<Network>,
    /// How many are open at once; one address has three quarters of them at most.
    pub(in crate::web) max_connections: usize,
    /// How long requests in flight may take after shutdown was requested.
    pub(in crate::web) grace: Duration,
    /// Cancelled when the server shuts down.
    pub(in crate::web) shutdown: CancellationToken,
}

/// What every connection is served with.
#[derive(Clone)]
struct Server {
    router: Router,
    limiter: Arc<ConnectionLimiter>,
    options: Arc<ServeOptions>,
}

impl ServeOptions {
    /// Those of the status page and the API.
    pub(in crate::web) fn of_pages(context: Arc<HttpContext>) -> Self {
        let shutdown = context.shutdown().clone();
        Self {
            tls: Some(context),
            networks: Vec::new(),
            max_connections: MAX_CONNECTIONS,
            grace: SHUTDOWN_GRACE,
            shutdown,
        }
    }

    /// Whether an address is in one of the networks.
    fn allows(&self, peer: IpAddr) -> bool {
        self.networks.is_empty() || self.networks.iter().any(|network| network.contains(peer))
    }
}

/// Serves on every listener until shutdown.
///
/// # Errors
/// When the task of a listener panicked.
pub(in crate::web) async fn serve(
    listeners: Vec<TcpListener>,
    router: Router,
    options: ServeOptions,
) -> io::Result<()> {
    let limiter = ConnectionLimiter::new(options.max_connections);
    let server = Server { router, limiter, options: Arc::new(options) };
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(server.clone().accept(listener));
    }
    while let Some(ended) = accepting.join_next().await {
        // A listener that panicked would leave its address dead in a process that looks healthy.
        ended.map_err(io::Error::other)?;
    }
    Ok(())
}

impl Server {
    async fn accept(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                () = self.options.shutdown.cancelled() => break,
                accepted = self.accept_next(&listener) => accepted,
            };
            match accepted {
                Ok((stream, addresses, slot)) => {
                    connections.spawn(self.clone().serve_stream(stream, addresses, slot));
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                }
            }
        }
        // New connections are refused while the requests in flight complete.
        drop(listener);
        let finished = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(self.options.grace, finished).await.is_err() {
            tracing::debug!(connections = connections.len(), "closed connections with requests in flight");
        }
        connections.shutdown().await;
    }

    /// Accepts the next connection, and then a slot for it: none is evicted before there is a client for its slot.
    async fn accept_next(
        &self,
        listener: &TcpListener,
    ) -> io::Result<(TcpStream, ConnectionAddresses, ConnectionSlot)> {
        loop {
            let (stream, peer) = listener.accept().await?;
            // Otherwise small responses would wait for the client's delayed acknowledgement, some 40 ms. This fails
            // where the client has disconnected already.
            let Ok(local) = stream.set_nodelay(true).and_then(|()| stream.local_addr()) else { continue };
            let addresses = ConnectionAddresses { local, peer: peer.ip().to_canonical() };
            if !self.options.allows(addresses.peer) {
                tracing::warn!(peer = %addresses.peer, %local, "refused a connection: its network is not allowed");
                continue;
            }
            if let Some(slot) = self.limiter.acquire(addresses.peer).await {
                return Ok((stream, addresses, slot));
            }
            // It is closed without a response, which would need a connection.
            tracing::debug!(peer = %addresses.peer, "refused a connection: too many from its address");
        }
    }

    /// Serves a connection until it is closed or evicted.
    async fn serve_stream(self, stream: TcpStream, addresses: ConnectionAddresses, slot: ConnectionSlot) {
        let evicted = slot.evicted.clone();
        let stream = WriteTimeout::new(stream);
        let served = async {
            let file = self.options.tls.as_ref().and_then(|context| context.web_file());
            match file.and_then(|file| file.tls().cloned()) {
                None => self.serve_requests(stream, addresses, slot).await,
                Some(config) => {
                    let stream = self.options.shutdown.run_until_cancelled(tls::accept(stream, config)).await;
                    let Some(stream) = stream.transpose()? else { return Ok(()) };
                    self.serve_requests(stream, addresses, slot).await
                }
            }
        };
        match evicted.run_until_cancelled(served).await {
            // Clients that disconnect or send invalid data are not errors of this server.
            Some(Err(error)) => tracing::debug!(%error, peer = %addresses.peer, "connection failed"),
            None => tracing::debug!(peer = %addresses.peer, "evicted an idle connection"),
            Some(Ok(())) => {}
        }
    }

    async fn serve_requests<S>(
        &self,
        stream: S,
        addresses: ConnectionAddresses,
        slot: ConnectionSlot,
    ) -> anyhow::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (slot, router) = (Arc::new(slot), TowerToHyperService::new(self.router.clone()));
        let service = service_fn(move |mut request: Request<Incoming>| {
            let active = ActiveRequest::new(Arc::clone(&slot));
            if request.body().is_end_stream() {
                active.start();
            }
            request.extensions_mut().insert(addresses);
            let response = router.call(request.map(|body| RequestBody { body, active: Arc::clone(&active) }));
            async move {
                let response: Response<Body> = response.await?;
                active.start();
                Ok::<_, std::convert::Infallible>(response.map(|body| ResponseBody { body, _active: active }))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => ended?,
            () = self.options.shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await?;
            }
        }
        Ok(())
    }
}

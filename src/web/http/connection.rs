//! Taking connections, and letting go of them.
//!
//! `axum::serve` has no limit for a client that sends its head byte by byte or never, and waits for it at the end. What
//! there is here against clients that waste others' time:
//!
//! - a head, the first or the next, has `HEAD_LIMIT` and `HEAD_BYTES`, and so has a handshake its own limit;
//! - who reads next to nothing of an answer is given up ([`stall`]);
//! - connections are limited in number, and the idle ones make room ([`limiter`]).

use std::io;
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

use self::limiter::{Answer, Busy, ConnectionLimiter, Place, RequestBody};
use self::stall::Stalling;
use super::host::Ends;
use super::tls;
use crate::web::State;

mod limiter;
pub(in crate::web) mod stall;

/// How many connections are open at once, on all listeners; more wait in the kernel's queue.
const MOST_CONNECTIONS: usize = 512;

/// How long a connection may be without a whole request head, the first one or the next.
const HEAD_LIMIT: Duration = Duration::from_secs(30);

/// The longest request head, in bytes. What is read at once may be more, and is measured again (`layers::head`).
pub(in crate::web) const HEAD_BYTES: usize = 32 * 1024;

/// How long answers under way may take once the end was asked for.
const GRACE: Duration = Duration::from_secs(1);

/// How long a listener rests that cannot take a connection, as when the process has no file descriptor left.
const REST: Duration = Duration::from_millis(100);

/// What every connection is served with.
#[derive(Clone)]
struct Server {
    router: Router,
    state: State,
    limiter: Arc<ConnectionLimiter>,
    end: CancellationToken,
}

/// Serves on every listener until the state's token says to end.
pub(in crate::web) async fn serve(listeners: Vec<TcpListener>, router: Router, state: State) -> io::Result<()> {
    let end = state.ending().clone();
    let server = Server { router, state, limiter: ConnectionLimiter::new(MOST_CONNECTIONS), end };
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(server.clone().accept(listener));
    }
    while let Some(ended) = accepting.join_next().await {
        // A listener that panicked would leave its address dead in a process that looks well.
        ended.map_err(io::Error::other)?;
    }
    Ok(())
}

impl Server {
    async fn accept(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let taken = tokio::select! {
                () = self.end.cancelled() => break,
                taken = self.take(&listener) => taken,
            };
            match taken {
                Ok((stream, ends, place)) => {
                    connections.spawn(self.clone().attend(stream, ends, place));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(REST).await;
                }
            }
        }
        // Nobody may connect any more while the answers under way are finished.
        drop(listener);
        let finished = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, finished).await.is_err() {
            tracing::debug!(connections = connections.len(), "connections were cut");
        }
        connections.shutdown().await;
    }

    /// Takes the next connection, and then a place for it: nobody has to leave for a client that is not there.
    async fn take(&self, listener: &TcpListener) -> io::Result<(TcpStream, Ends, Place)> {
        loop {
            let (stream, peer) = listener.accept().await?;
            // Small answers would wait for the client's delayed acknowledgement otherwise, some 40 ms. Where this
            // fails, the client has gone again.
            let Ok(local) = stream.set_nodelay(true).and_then(|()| stream.local_addr()) else { continue };
            let ends = Ends { local, peer: peer.ip().to_canonical() };
            if let Some(place) = self.limiter.enter(ends.peer).await {
                return Ok((stream, ends, place));
            }
            // It is closed at once: to answer it would cost what it has too much of.
            tracing::debug!(peer = %ends.peer, "a connection was refused, its address has too many");
        }
    }

    /// Serves a connection until it ends or has to leave.
    async fn attend(self, stream: TcpStream, ends: Ends, place: Place) {
        let leave = place.leave.clone();
        let stream = Stalling::new(stream);
        let attended = async {
            match self.state.web_file().and_then(|file| file.tls().cloned()) {
                None => self.converse(stream, ends, place).await,
                Some(config) => {
                    let stream = self.end.run_until_cancelled(tls::accept(stream, config)).await;
                    let Some(stream) = stream.transpose()? else { return Ok(()) };
                    self.converse(stream, ends, place).await
                }
            }
        };
        match leave.run_until_cancelled(attended).await {
            // A client that goes away or talks nonsense is its own affair.
            Some(Err(error)) => tracing::debug!(%error, peer = %ends.peer, "a connection ended early"),
            None => tracing::debug!(peer = %ends.peer, "evicted an idle connection"),
            Some(Ok(())) => {}
        }
    }

    async fn converse<S>(&self, stream: S, ends: Ends, place: Place) -> anyhow::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (place, router) = (Arc::new(place), TowerToHyperService::new(self.router.clone()));
        let answer = service_fn(move |mut request: Request<Incoming>| {
            let busy = Busy::new(Arc::clone(&place));
            if request.body().is_end_stream() {
                busy.begin();
            }
            request.extensions_mut().insert(ends);
            let answer = router.call(request.map(|body| RequestBody { body, busy: Arc::clone(&busy) }));
            async move {
                let answer: Response<Body> = answer.await?;
                busy.begin();
                Ok::<_, std::convert::Infallible>(answer.map(|body| Answer { body, _busy: busy }))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_LIMIT)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), answer);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => ended?,
            () = self.end.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await?;
            }
        }
        Ok(())
    }
}

//! Taking connections, and letting go of them.
//!
//! `axum::serve` has no limit for a client that sends its head byte by byte or never, and waits for it at the end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How many connections are open at once, on all listeners; more wait in the kernel's queue.
const MOST_CONNECTIONS: usize = 512;

/// How long a connection may be without a whole request head, the first one or the next.
const HEAD_LIMIT: Duration = Duration::from_secs(30);

/// The longest request head, in bytes.
const HEAD_BYTES: usize = 32 * 1024;

/// How long answers under way may take once the end was asked for.
const GRACE: Duration = Duration::from_secs(1);

/// How long a listener rests that cannot take a connection, as when the process has no file descriptor left.
const REST: Duration = Duration::from_millis(100);

/// Serves on every listener until `shutdown`.
pub(super) async fn serve(listeners: Vec<TcpListener>, router: Router, shutdown: CancellationToken) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(accept(listener, router.clone(), Arc::clone(&room), shutdown.clone()));
    }
    while let Some(ended) = accepting.join_next().await {
        // A listener that panicked would leave its address dead in a process that looks well.
        ended.map_err(io::Error::other)?;
    }
    Ok(())
}

async fn accept(listener: TcpListener, router: Router, room: Arc<Semaphore>, shutdown: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let taken = tokio::select! {
            () = shutdown.cancelled() => break,
            taken = take(&listener, &room) => taken,
        };
        match taken {
            Ok((stream, permit)) => {
                connections.spawn(converse(stream, router.clone(), shutdown.clone(), permit));
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

async fn take(listener: &TcpListener, room: &Arc<Semaphore>) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Small answers would wait for the client's delayed acknowledgement otherwise, some 40 ms.
    stream.set_nodelay(true)?;
    Ok((stream, permit))
}

async fn converse(stream: TcpStream, router: Router, shutdown: CancellationToken, _permit: OwnedSemaphorePermit) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // A client that goes away or talks nonsense is its own affair.
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

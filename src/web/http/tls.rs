//! TLS on a connection that was taken.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::connection::stall::Stalling;

/// How long a client may take until both sides have agreed.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// The first byte of every client that speaks TLS: a record of the handshake.
const HANDSHAKE_RECORD: u8 = 0x16;

/// What a client is told that does not; as plain as it asked.
const PLAIN: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n\
    This server speaks TLS here. Ask it with https.\n";

/// Agrees with the client.
///
/// # Errors
/// When that fails or takes too long.
pub(in crate::web) async fn accept(
    stream: Stalling<TcpStream>,
    config: Arc<ServerConfig>,
) -> io::Result<TlsStream<Stalling<TcpStream>>> {
    tokio::time::timeout(HANDSHAKE_LIMIT, async {
        let mut first = [0];
        if stream.get_ref().peek(&mut first).await? == 1 && first[0] != HANDSHAKE_RECORD {
            return Err(answer_plainly(stream).await);
        }
        TlsAcceptor::from(config).accept(stream).await
    })
    .await?
}

async fn answer_plainly(mut stream: Stalling<TcpStream>) -> io::Error {
    let answered = async {
        stream.write_all(PLAIN).await?;
        stream.shutdown().await?;
        // What is not read when a connection is closed makes the system tear it down, and the answer with it.
        let mut unread = [0; 1024];
        while stream.read(&mut unread).await? > 0 {}
        Ok::<_, io::Error>(())
    };
    answered.await.err().unwrap_or_else(|| io::Error::other("the client does not speak TLS"))
}

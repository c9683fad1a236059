//! TLS on an accepted connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::connection::write_timeout::WriteTimeout;

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first byte from every TLS client: the type of a handshake record.
const HANDSHAKE_RECORD: u8 = 0x16;

/// The response to a client without TLS.
const PLAIN_RESPONSE: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n\
    This server requires TLS. Use https.\n";

/// Performs the handshake.
///
/// # Errors
/// When that fails or takes too long.
pub(in crate::web) async fn accept(
    stream: WriteTimeout<TcpStream>,
    config: Arc<ServerConfig>,
) -> io::Result<TlsStream<WriteTimeout<TcpStream>>> {
    tokio::time::timeout(HANDSHAKE_TIMEOUT, async {
        let mut first = [0];
        if stream.get_ref().peek(&mut first).await? == 1 && first[0] != HANDSHAKE_RECORD {
            return Err(respond_in_plain_text(stream).await);
        }
        TlsAcceptor::from(config).accept(stream).await
    })
    .await?
}

async fn respond_in_plain_text(mut stream: WriteTimeout<TcpStream>) -> io::Error {
    let responded = async {
        stream.write_all(PLAIN_RESPONSE).await?;
        stream.shutdown().await?;
        // Closing a socket with unread data resets the connection, and the client may lose the response.
        let mut unread = [0; 1024];
        while stream.read(&mut unread).await? > 0 {}
        Ok::<_, io::Error>(())
    };
    responded.await.err().unwrap_or_else(|| io::Error::other("the client does not use TLS"))
}

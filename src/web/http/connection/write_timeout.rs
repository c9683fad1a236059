//! A time-out for clients that do not read the response.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long a write may wait until the client has read the minimum.
const INTERVAL: Duration = Duration::from_secs(20);

/// How much a client must read in that time, in bytes: more than one that reads a byte a second, less than any slow
/// mobile connection.
const MIN_BYTES: usize = 8 * 1024;

/// A stream whose writes fail once the peer reads too slowly.
///
/// Time counts only while the socket's send buffer is full, so that an event stream without events does not time out.
#[derive(Debug)]
pub(crate) struct WriteTimeout<S> {
    stream: S,
    blocked: Option<BlockedWrite>,
}

/// A write that waits for the peer.
#[derive(Debug)]
struct BlockedWrite {
    deadline: Pin<Box<Sleep>>,
    /// Bytes written since the deadline was set.
    written: usize,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, blocked: None }
    }

    pub(crate) fn get_ref(&self) -> &S {
        &self.stream
    }

    fn written(&mut self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => {
                if let Some(blocked) = &mut self.blocked {
                    blocked.written += bytes;
                }
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let blocked = self.blocked.get_or_insert_with(|| BlockedWrite {
                    deadline: Box::pin(tokio::time::sleep(INTERVAL)),
                    written: 0,
                });
                while blocked.deadline.as_mut().poll(cx).is_ready() {
                    if blocked.written < MIN_BYTES {
                        return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "client reads too slowly")));
                    }
                    blocked.written = 0;
                    blocked.deadline.as_mut().reset(Instant::now() + INTERVAL);
                }
                Poll::Pending
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.written(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// All of it was written before: the client keeps up.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.blocked = None;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// The result of writing 256 KiB to a peer that reads `bytes` once a second.
    async fn write_to_peer_reading(bytes: usize) -> (io::Result<()>, Duration) {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let reading = tokio::spawn(async move {
            let mut some = vec![0; bytes];
            while theirs.read_exact(&mut some).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        let started = Instant::now();
        let mut ours = WriteTimeout::new(ours);
        let written = ours.write_all(&vec![0; 256 * 1024]).await;
        reading.abort();
        (written, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_hardly_reads_times_out_and_a_slow_one_does_not() {
        let (timed_out, after) = write_to_peer_reading(1).await;
        assert_eq!(timed_out.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(after < INTERVAL * 2, "{after:?}");
        let (slow, after) = write_to_peer_reading(1024).await;
        slow.unwrap();
        assert!(after > INTERVAL * 5, "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_stream_does_not_time_out() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut ours = WriteTimeout::new(ours);
        for _ in 0..3 {
            let write = async {
                ours.write_all(b"0123456789").await.unwrap();
                ours.flush().await.unwrap();
            };
            let mut read = [0; 10];
            tokio::join!(write, async { theirs.read_exact(&mut read).await.unwrap() });
            tokio::time::sleep(INTERVAL * 10).await;
        }
    }
}

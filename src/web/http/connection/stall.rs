//! Clients that ask and do not read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long is waited for a client to take something more.
const PATIENCE: Duration = Duration::from_secs(20);

/// How much a client takes in that time at least, in bytes. One that reads a byte a second does not; a telephone at the
/// edge of nowhere does.
const LEAST: usize = 8 * 1024;

/// A stream whose writing fails once the other side takes next to nothing.
///
/// The clock runs only while the system's own buffers are full, so that an event stream on which nothing happens is left
/// alone.
#[derive(Debug)]
pub(crate) struct Stalling<S> {
    stream: S,
    stalled: Option<Stalled>,
}

/// Writing has to wait.
#[derive(Debug)]
struct Stalled {
    until: Pin<Box<Sleep>>,
    /// What was taken since the clock was set, in bytes.
    taken: usize,
}

impl<S> Stalling<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, stalled: None }
    }

    pub(crate) fn get_ref(&self) -> &S {
        &self.stream
    }

    fn written(&mut self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => {
                if let Some(stalled) = &mut self.stalled {
                    stalled.taken += bytes;
                }
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let stalled = self
                    .stalled
                    .get_or_insert_with(|| Stalled { until: Box::pin(tokio::time::sleep(PATIENCE)), taken: 0 });
                while stalled.until.as_mut().poll(cx).is_ready() {
                    if stalled.taken < LEAST {
                        return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")));
                    }
                    stalled.taken = 0;
                    stalled.until.as_mut().reset(Instant::now() + PATIENCE);
                }
                Poll::Pending
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
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

    /// Everything was written before: the client keeps up.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stalled = None;
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

    /// What comes of writing 256 KiB to one who takes `bytes` once a second.
    async fn written_to_one_who_reads(bytes: usize) -> (io::Result<()>, Duration) {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let reading = tokio::spawn(async move {
            let mut some = vec![0; bytes];
            while theirs.read_exact(&mut some).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        let started = Instant::now();
        let mut ours = Stalling::new(ours);
        let written = ours.write_all(&vec![0; 256 * 1024]).await;
        reading.abort();
        (written, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_next_to_nothing_is_given_up_and_who_reads_slowly_is_not() {
        let (given_up, after) = written_to_one_who_reads(1).await;
        assert_eq!(given_up.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(after < PATIENCE * 2, "{after:?}");
        let (slow, after) = written_to_one_who_reads(1024).await;
        slow.unwrap();
        assert!(after > PATIENCE * 5, "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_on_which_nothing_happens_is_left_alone() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut ours = Stalling::new(ours);
        for _ in 0..3 {
            let write = async {
                ours.write_all(b"0123456789").await.unwrap();
                ours.flush().await.unwrap();
            };
            let mut read = [0; 10];
            tokio::join!(write, async { theirs.read_exact(&mut read).await.unwrap() });
            tokio::time::sleep(PATIENCE * 10).await;
        }
    }
}

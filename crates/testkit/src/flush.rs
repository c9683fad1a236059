//! Counts how often a connection was flushed: the HTTP library drops what it holds when a body breaks off.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use futures::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How often a connection was flushed.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    count: AtomicU64,
    waker: AtomicWaker,
}

impl Flushes {
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until it was flushed more often than so.
    pub(crate) fn poll_more(&self, count: u64, cx: &Context<'_>) -> Poll<()> {
        self.waker.register(cx.waker());
        if self.count() > count { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// A connection whose flushes are counted.
pub(crate) struct Flushing<S> {
    stream: S,
    flushes: Arc<Flushes>,
}

impl<S> Flushing<S> {
    pub(crate) fn new(stream: S, flushes: Arc<Flushes>) -> Self {
        Self { stream, flushes }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Flushing<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Flushing<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        self.flushes.count.fetch_add(1, Ordering::Release);
        self.flushes.waker.wake();
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

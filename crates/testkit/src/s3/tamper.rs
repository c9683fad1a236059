//! Bodies that stall or break off at a byte.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use s3s::StdError;

use super::exchange::Exchange;
use super::fault::{Armed, Effect, Point};
use crate::flush::Flushes;

/// The direction in which a body goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// A body that has several owners, one after the other: what the first leaves, the next may read.
#[derive(Debug)]
pub(super) struct SharedBody<B>(pub(super) Arc<Mutex<B>>);

impl<B: Body + Unpin> Body for SharedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut *self.0.lock()).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().size_hint()
    }
}

type Hold = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// A body with the faults of its request.
pub(super) struct Tampered<B> {
    inner: B,
    direction: Direction,
    exchange: Arc<Exchange>,
    /// How many bytes have gone through.
    passed: u64,
    /// What came and may not go through yet.
    kept: Option<Bytes>,
    hold: Option<Hold>,
    was_held: bool,
    /// Hides the size, which the headers state wrongly.
    pub(super) hides_size: bool,
    /// Where it goes down: what came before a cut has to be on its way before the connection ends.
    flushes: Option<Arc<Flushes>>,
    /// How often was flushed when the last piece went through.
    flushed: u64,
}

impl<B> Tampered<B> {
    pub(super) fn new(inner: B, direction: Direction, exchange: Arc<Exchange>) -> Self {
        Self {
            inner,
            direction,
            exchange,
            passed: 0,
            kept: None,
            hold: None,
            was_held: false,
            hides_size: false,
            flushes: None,
            flushed: 0,
        }
    }

    /// Where it stalls, unless it has done so.
    fn stall(&self) -> Option<((u64, Option<Duration>), Armed)> {
        if self.was_held {
            return None;
        }
        self.exchange.find(|effect| match (self.direction, effect) {
            (Direction::Up, Effect::Stall(Point::Upload(at), limit))
            | (Direction::Down, Effect::Stall(Point::Download(at), limit)) => Some((at, limit)),
            _ => None,
        })
    }

    fn cut(&self) -> Option<(u64, Armed)> {
        self.exchange.find(|effect| match (self.direction, effect) {
            (Direction::Up, Effect::CutUpload(at)) | (Direction::Down, Effect::CutDownload(at)) => Some(at),
            _ => None,
        })
    }

    /// Flushes are counted from now on.
    pub(super) fn watch(&mut self, flushes: Arc<Flushes>) {
        self.flushed = flushes.count();
        self.flushes = Some(flushes);
    }

    /// Waits until all that went through is on its way.
    fn poll_sent(&self, cx: &Context<'_>) -> Poll<()> {
        self.flushes.as_ref().map_or(Poll::Ready(()), |flushes| flushes.poll_more(self.flushed, cx))
    }

    /// How many bytes may go through before something happens; an error where it breaks off now.
    fn room(&mut self) -> Result<u64, StdError> {
        let mut room = u64::MAX;
        if let Some(((at, limit), armed)) = self.stall() {
            if at <= self.passed {
                self.was_held = true;
                self.hold = Some(Box::pin(armed.hold(limit)));
                return Ok(0);
            }
            room = room.min(at - self.passed);
        }
        if let Some((at, armed)) = self.cut() {
            if at <= self.passed {
                armed.reach();
                self.exchange.cut();
                return Err("the connection is cut on purpose".into());
            }
            room = room.min(at - self.passed);
        }
        Ok(room)
    }
}

impl<B> Body for Tampered<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<StdError>,
{
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let this = self.get_mut();
        loop {
            if let Some(hold) = &mut this.hold {
                ready!(hold.as_mut().poll(cx));
                this.hold = None;
            }
            let room = match this.room() {
                Ok(0) => continue,
                Ok(room) => room,
                Err(cut) => {
                    ready!(this.poll_sent(cx));
                    return Poll::Ready(Some(Err(cut)));
                }
            };
            let mut data = if let Some(kept) = this.kept.take() {
                kept
            } else {
                match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                    None => {
                        // An end at a wrong length breaks off, too.
                        if this.hides_size {
                            ready!(this.poll_sent(cx));
                        }
                        return Poll::Ready(None);
                    }
                    Some(Err(why)) => return Poll::Ready(Some(Err(why.into()))),
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(data) => data,
                        Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                    },
                }
            };
            if data.len() as u64 > room {
                let now = usize::try_from(room).expect("it is below a length");
                this.kept = Some(data.split_off(now));
            }
            this.passed += data.len() as u64;
            this.flushed = this.flushes.as_ref().map_or(0, |flushes| flushes.count());
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_clear = self.kept.is_none() && self.hold.is_none() && !self.hides_size;
        is_clear && self.inner.is_end_stream() && self.stall().is_none() && self.cut().is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.hides_size {
            return SizeHint::default();
        }
        let kept = self.kept.as_ref().map_or(0, Bytes::len) as u64;
        match self.inner.size_hint().exact() {
            Some(rest) => SizeHint::with_exact(rest + kept),
            None => SizeHint::default(),
        }
    }
}

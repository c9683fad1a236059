//! A source of which only so much may be read, while a library reads what it holds in memory.

use std::cell::Cell;
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;

/// What may still be read, shared between a source and its user, which refills it.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget {
    left: Rc<Cell<u64>>,
    has_ended: Rc<Cell<bool>>,
}

impl Budget {
    pub(super) fn set(&self, bytes: u64) {
        self.left.set(bytes);
    }

    /// Whether the source has come to its end.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }
}

/// A source with a budget.
pub(super) struct Budgeted<R> {
    inner: R,
    budget: Budget,
}

impl<R> Budgeted<R> {
    pub(super) fn new(inner: R, budget: Budget) -> Self {
        Self { inner, budget }
    }
}

impl<R: Read> Read for Budgeted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.budget.left.get();
        if left == 0 && !buffer.is_empty() {
            return Err(io::Error::other("its directory or headers are too large"));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(&mut buffer[..most])?;
        self.budget.left.set(left.saturating_sub(read as u64));
        if read == 0 && most > 0 {
            self.budget.has_ended.set(true);
        }
        Ok(read)
    }
}

impl<R: Seek> Seek for Budgeted<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

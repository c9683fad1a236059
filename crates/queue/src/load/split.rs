//! Splits blocks of any size into lines.

use std::io;

use futures::stream::{Stream, StreamExt as _};

use super::check::DumpReader;

/// Returns lines one after the other, without their ends.
pub(super) struct LineReader<S> {
    blocks: S,
    /// What was read and not given yet; lines before `at` were given.
    buffer: Vec<u8>,
    at: usize,
}

impl<S: Stream<Item = io::Result<Vec<u8>>> + Unpin> LineReader<S> {
    pub(super) fn new(blocks: S) -> Self {
        Self { blocks, buffer: Vec::new(), at: 0 }
    }

    /// The next line; `None` at the end. One that is too long is given as far as it was read, which is longer than any
    /// line may be.
    pub(super) async fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let mut searched = self.at;
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                let line = self.at..searched + length;
                self.at = line.end + 1;
                return Ok(Some(&self.buffer[line]));
            }
            if self.buffer.len() - self.at > DumpReader::LONGEST_LINE {
                return Ok(Some(&self.buffer[self.at..]));
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            searched = self.buffer.len();
            match self.blocks.next().await {
                Some(block) => self.buffer.extend_from_slice(&block?),
                None if self.buffer.is_empty() => return Ok(None),
                None => {
                    self.at = self.buffer.len();
                    return Ok(Some(&self.buffer));
                }
            }
        }
    }
}

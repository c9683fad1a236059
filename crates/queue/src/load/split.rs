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

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    /// How much of each line is compared.
    const START: usize = 8;

    /// The lines of these blocks, each with its length.
    async fn lines(blocks: &[&str]) -> Vec<(String, usize)> {
        let blocks = blocks.iter().map(|block| Ok(block.as_bytes().to_vec()));
        let mut reader = LineReader::new(stream::iter(blocks));
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            let start = &line[..line.len().min(START)];
            lines.push((String::from_utf8(start.to_vec()).unwrap(), line.len()));
            assert!(lines.len() < 10, "no test has as many lines");
        }
        lines
    }

    #[tokio::test]
    async fn lines_are_the_same_however_the_blocks_are_cut() {
        let whole = "first\n\nthird\nlast";
        let expected = ["first", "", "third", "last"].map(|line| (line.to_owned(), line.len()));
        for size in 1..=whole.len() {
            let blocks: Vec<_> = whole.as_bytes().chunks(size).map(|block| str::from_utf8(block).unwrap()).collect();
            assert_eq!(lines(&blocks).await, expected, "in blocks of {size}");
        }
        assert_eq!(lines(&["a\n", "", "b\n"]).await, [("a".to_owned(), 1), ("b".to_owned(), 1)]);
        assert_eq!(lines(&[""]).await, []);
    }

    #[tokio::test]
    async fn the_longest_line_is_given_whole_and_a_longer_one_as_far_as_it_was_read() {
        let longest = "x".repeat(DumpReader::LONGEST_LINE);
        let expected =
            [("a", 1), ("xxxxxxxx", longest.len()), ("b", 1)].map(|(line, length)| (line.to_owned(), length));
        assert_eq!(lines(&["a\n", &longest, "\nb"]).await, expected);
        assert_eq!(lines(&[&format!("a\n{longest}"), "\nb"]).await, expected);
        let mut reader = LineReader::new(stream::iter([Ok(longest.into_bytes()), Ok(vec![b'x']), Ok(vec![b'x'])]));
        let length = reader.next().await.unwrap().map(<[u8]>::len);
        assert_eq!(length, Some(DumpReader::LONGEST_LINE + 1));
    }

    #[tokio::test]
    async fn a_block_that_cannot_be_read_is_an_error() {
        let mut reader = LineReader::new(stream::iter([Ok(b"a\nb".to_vec()), Err(io::Error::other("cut"))]));
        assert_eq!(reader.next().await.unwrap(), Some(&b"a"[..]));
        assert_eq!(reader.next().await.unwrap_err().to_string(), "cut");
    }
}

//! Lines of bounded length from a stream.

use std::io::{self, BufRead};

/// A line without its end.
pub(crate) enum BoundedLine<'a> {
    Whole(&'a [u8]),
    /// Longer than the limit; its beginning is of no use.
    TooLong,
}

/// Reads lines that end with LF, CR LF or CR; what is too long is passed over and never held.
pub(crate) struct Lines<R> {
    source: R,
    line: Vec<u8>,
    most: usize,
    has_cr: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R, most: usize) -> Self {
        Self { source, line: Vec::new(), most, has_cr: false }
    }

    /// The next line; `None` at the end. A last line without an end counts.
    pub(crate) fn next(&mut self) -> io::Result<Option<BoundedLine<'_>>> {
        self.line.clear();
        let (mut has_any, mut is_long) = (false, false);
        loop {
            let chunk = match self.source.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                break;
            }
            if std::mem::take(&mut self.has_cr) && chunk[0] == b'\n' {
                self.source.consume(1);
                continue;
            }
            has_any = true;
            let end = memchr::memchr2(b'\n', b'\r', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            is_long |= self.line.len() + part.len() > self.most;
            if !is_long {
                self.line.extend_from_slice(part);
            }
            self.has_cr = end.is_some_and(|end| chunk[end] == b'\r');
            let taken = end.map_or(chunk.len(), |end| end + 1);
            self.source.consume(taken);
            if end.is_some() {
                break;
            }
        }
        Ok(has_any.then_some(if is_long { BoundedLine::TooLong } else { BoundedLine::Whole(&self.line) }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(text: &[u8], most: usize, buffer: usize) -> Vec<Option<String>> {
        let mut lines = Lines::new(BufReader::with_capacity(buffer, text), most);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(match line {
                BoundedLine::Whole(line) => Some(String::from_utf8(line.to_vec()).unwrap()),
                BoundedLine::TooLong => None,
            });
        }
        all
    }

    #[test]
    fn lines_end_in_three_ways_and_have_a_longest_length_whatever_the_pieces_are() {
        for buffer in 1..9 {
            let found = all(b"a\r\nbb\r\rccc\n\ndddd\neeeee\rf", 4, buffer);
            let expected = ["a", "bb", "", "ccc", "", "dddd"].map(|line| Some(line.to_owned()));
            assert_eq!(found, [&expected[..], &[None, Some("f".to_owned())]].concat(), "{buffer}");
            assert_eq!(all(b"", 4, buffer), []);
            assert_eq!(all(b"\n", 4, buffer), [Some(String::new())]);
        }
    }
}

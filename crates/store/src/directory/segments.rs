//! More names than fit into memory: sorted segments in one file, merged as they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::folder::Name;

/// How much of a segment is read at a time, in bytes.
const BUFFER: usize = 32 << 10;

/// Segments that are being written, one behind the other.
pub(super) struct Writing {
    file: BufWriter<File>,
    written: u64,
    /// Where each segment ends.
    ends: Vec<u64>,
}

/// Segments that are being read, the smallest name of all of them first.
pub(super) struct Segments {
    all: Vec<Segment>,
    file: File,
    /// The next name of each segment that has one.
    next: BinaryHeap<Reverse<(Name, usize)>>,
}

/// What is left of a segment: what is in memory, and the part of the file behind it.
struct Segment {
    buffer: Vec<u8>,
    at: usize,
    from: u64,
    to: u64,
}

impl Writing {
    /// A file without a name in this directory.
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(directory)?;
        Ok(Self { file: BufWriter::new(file), written: 0, ends: Vec::new() })
    }

    /// Sorts names and writes them as a segment; none are left.
    pub(super) fn add(mut self, names: &mut Vec<Name>) -> io::Result<Self> {
        names.sort_unstable();
        for name in names.drain(..) {
            for bytes in [&name.part, &name.path] {
                let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
                self.file.write_all(&length.to_le_bytes())?;
                self.file.write_all(bytes)?;
                self.written += 4 + u64::from(length);
            }
        }
        self.ends.push(self.written);
        Ok(self)
    }

    /// Begins to read.
    pub(super) fn read(self) -> io::Result<Segments> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let mut segments = Segments { all: Vec::new(), file, next: BinaryHeap::new() };
        let mut from = 0;
        for to in self.ends {
            segments.all.push(Segment { buffer: Vec::new(), at: 0, from, to });
            segments.advance(segments.all.len() - 1)?;
            from = to;
        }
        Ok(segments)
    }
}

impl Segments {
    /// Puts the next name of a segment among those of the others.
    fn advance(&mut self, segment: usize) -> io::Result<()> {
        if let Some(name) = self.all[segment].name(&self.file)? {
            self.next.push(Reverse((name, segment)));
        }
        Ok(())
    }
}

impl Iterator for Segments {
    type Item = io::Result<Name>;

    fn next(&mut self) -> Option<io::Result<Name>> {
        let Reverse((name, segment)) = self.next.pop()?;
        Some(self.advance(segment).map(|()| name))
    }
}

impl Segment {
    fn name(&mut self, file: &File) -> io::Result<Option<Name>> {
        if self.at == self.buffer.len() && self.from == self.to {
            return Ok(None);
        }
        Ok(Some(Name { part: self.bytes(file)?, path: self.bytes(file)? }))
    }

    fn bytes(&mut self, file: &File) -> io::Result<Vec<u8>> {
        let length: [u8; 4] = self.take(file, 4)?.try_into().map_err(|_| io::ErrorKind::UnexpectedEof)?;
        self.take(file, u32::from_le_bytes(length) as usize)
    }

    /// The next bytes of the segment.
    fn take(&mut self, file: &File, length: usize) -> io::Result<Vec<u8>> {
        if self.buffer.len() - self.at < length {
            self.buffer.drain(..self.at);
            self.at = 0;
            let there = self.buffer.len();
            let most = (self.to - self.from).min((BUFFER.max(length) - there) as u64);
            let more = usize::try_from(most).map_err(io::Error::other)?;
            self.buffer.resize(there + more, 0);
            file.read_exact_at(&mut self.buffer[there..], self.from)?;
            self.from += most;
        }
        let taken = self.buffer.get(self.at..self.at + length).ok_or(io::ErrorKind::UnexpectedEof)?.to_vec();
        self.at += length;
        Ok(taken)
    }
}

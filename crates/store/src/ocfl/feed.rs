//! The reader of JSON that comes through a queue, with a digest on the way.

use std::io::{self, Read};

use bytes::{Buf, Bytes};
use tokio::sync::mpsc;

use crate::digest::{Algorithm, Digest, Hashers};

/// The largest inventory, in bytes.
const MOST_BYTES: u64 = 2 << 30;

/// The longest string in an inventory, in bytes.
const MOST_STRING_BYTES: usize = 64 << 10;

/// How deep objects and arrays are nested: the fixity block and versions have four, and a user in one of them.
const MOST_DEPTH: u32 = 8;

/// A reader of what comes through a queue. It refuses what no inventory has, before that takes memory: strings without
/// end, deep nesting, bytes without end.
pub(super) struct Feed {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
    hashers: Hashers,
    shape: Shape,
}

impl Feed {
    pub(super) fn new(receiver: mpsc::Receiver<io::Result<Bytes>>) -> Self {
        Self { receiver, piece: Bytes::new(), hashers: Hashers::new([Algorithm::Sha512]), shape: Shape::default() }
    }

    /// The SHA-512 and the size of what was read.
    pub(super) fn finish(self) -> (Digest, u64) {
        let bytes = self.hashers.bytes();
        (self.hashers.finish().strongest().cloned().expect("one algorithm was requested"), bytes)
    }
}

impl Read for Feed {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            let Some(piece) = self.receiver.blocking_recv() else { return Ok(0) };
            self.piece = piece?;
            self.hashers.update(&self.piece);
            if self.hashers.bytes() > MOST_BYTES {
                return Err(invalid(&format!("it has more than {MOST_BYTES} bytes")));
            }
            self.shape.take(&self.piece)?;
        }
        let length = to.len().min(self.piece.len());
        to[..length].copy_from_slice(&self.piece[..length]);
        self.piece.advance(length);
        Ok(length)
    }
}

/// As much of JSON as is needed to see how long strings are and how deep it goes.
#[derive(Default)]
struct Shape {
    depth: u32,
    /// How many bytes of a string came so far.
    string: Option<usize>,
    is_escaped: bool,
}

impl Shape {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            match (&mut self.string, byte) {
                (Some(_), _) if self.is_escaped => self.is_escaped = false,
                (Some(_), b'"') => self.string = None,
                (Some(length), byte) => {
                    self.is_escaped = *byte == b'\\';
                    *length += 1;
                    if *length > MOST_STRING_BYTES {
                        return Err(invalid(&format!("it has a string of more than {MOST_STRING_BYTES} bytes")));
                    }
                }
                (None, b'"') => self.string = Some(0),
                (None, b'{' | b'[') => {
                    self.depth += 1;
                    if self.depth > MOST_DEPTH {
                        return Err(invalid(&format!("it is nested more than {MOST_DEPTH} deep")));
                    }
                }
                (None, b'}' | b']') => self.depth = self.depth.saturating_sub(1),
                (None, _) => {}
            }
        }
        Ok(())
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

//! Between streams and the blocking reader and writer of JSON: bounded queues, with a digest on the way.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use futures::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio::task;

use crate::digest::{Algorithm, Digest, Hashers};
use crate::ocfl::inventory::{Failure, Inventory, Loaded, decode, encode, measure};
use crate::store::Chunks;

/// The largest inventory, in bytes.
const MOST_BYTES: u64 = 2 << 30;

/// The longest string in an inventory, in bytes.
const MOST_STRING_BYTES: usize = 64 << 10;

/// How deep objects and arrays are nested: the fixity block and versions have four, and a user in one of them.
const MOST_DEPTH: u32 = 8;

/// How many pieces of a stream wait at once.
const QUEUE: usize = 4;

/// The size of the pieces that are written, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// Reads an inventory from a stream, on a thread that may block. Temporary files are in a directory.
pub(super) async fn read_inventory(mut chunks: Chunks, directory: &Arc<Path>) -> Result<Loaded, Failure> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    let directory = Arc::clone(directory);
    let decoding = task::spawn_blocking(move || decode(Feed::new(receiver), &directory));
    while let Some(chunk) = chunks.next().await {
        let is_over = chunk.is_err();
        if sender.send(chunk).await.is_err() || is_over {
            break;
        }
    }
    drop((sender, chunks));
    decoding.await.unwrap_or_else(|error| Err(Failure::Read(io::Error::other(error))))
}

/// The SHA-512 and the size in bytes of what an inventory is written as, and that as a stream. Blocks its thread.
pub(super) fn written(inventory: Arc<Inventory>) -> io::Result<(Digest, u64, Chunks)> {
    let (digest, size) = measure(&inventory)?;
    if size > PIECE_BYTES as u64 {
        return Ok((digest, size, inventory_chunks(inventory)));
    }
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    encode(&inventory, &mut piece)?;
    Ok((digest, size, stream::iter([Ok(Bytes::from(piece))]).boxed()))
}

/// An inventory as a stream, made on a thread that may block.
pub(super) fn inventory_chunks(inventory: Arc<Inventory>) -> Chunks {
    let (sender, receiver) = mpsc::channel(QUEUE);
    task::spawn_blocking(move || {
        let mut pieces = Pieces { sender, piece: BytesMut::with_capacity(PIECE_BYTES) };
        if let Err(error) = encode(&inventory, &mut pieces).and_then(|()| pieces.flush()) {
            // That of a temporary file; it is not sent where the reader is gone, which is the other failure.
            let _ = pieces.sender.blocking_send(Err(error));
        }
    });
    stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver))).boxed()
}

/// A reader of what comes through a queue. It refuses what no inventory has, before that takes memory: strings without
/// end, deep nesting, bytes without end.
pub(super) struct Feed {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
    hashers: Hashers,
    shape: Shape,
}

impl Feed {
    fn new(receiver: mpsc::Receiver<io::Result<Bytes>>) -> Self {
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

/// A writer into a queue.
struct Pieces {
    sender: mpsc::Sender<io::Result<Bytes>>,
    piece: BytesMut,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..length]);
        if self.piece.len() == PIECE_BYTES {
            self.flush()?;
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = self.piece.split().freeze();
        self.piece.reserve(PIECE_BYTES);
        self.sender.blocking_send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

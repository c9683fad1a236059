//! Inventories as streams: read and written on threads that may block, through bounded queues.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio::task;

use crate::digest::Digest;
use crate::ocfl::feed::Feed;
use crate::ocfl::inventory::{Failure, Inventory, Loaded, decode, encode, measure};
use crate::store::Chunks;

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

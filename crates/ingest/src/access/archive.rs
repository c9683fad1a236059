//! An archive, written while it is read: nothing of it is kept but the names of its files.
//!
//! Its bytes follow from the files alone, so that an archive that is made again is the same.

use std::io::{self, Read, Write};

use bytes::{Buf as _, Bytes, BytesMut};
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use jiff::tz::Offset;
use queuekeeper_store::store::Chunks;
use tokio::sync::mpsc;
use zip::write::SimpleFileOptions;

use super::token::Format;

/// How many pieces wait on their way in, and on their way out.
const QUEUE: usize = 8;

/// How many bytes of the archive are sent at once.
const PIECE: usize = 256 << 10;

/// A file of this size has the fields of zip64: compressed, it may take a little more than it has.
const LARGE: u64 = 0xf000_0000;

/// What a tar consists of, in bytes.
const BLOCK: u64 = 512;

/// How hard a zip compresses: most of what is deposited is compressed already.
const LEVEL: i64 = 1;

/// The most bytes that an archive takes, by its files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    format: Format,
    bytes: u64,
}

impl Bound {
    /// That of an archive without files.
    pub(super) fn of(format: Format) -> Self {
        let bytes = match format {
            // Both ends of the central directory, and the locator of the one of zip64.
            Format::Zip => 22 + 56 + 20,
            Format::Tar => 2 * BLOCK,
        };
        Self { format, bytes }
    }

    /// Adds a file of so many bytes.
    pub(super) fn add(&mut self, path: &str, bytes: u64) {
        let name = path.len() as u64;
        let more = match self.format {
            Format::Zip => {
                // What deflate adds at most, as zlib bounds it; and its local header, data descriptor and central
                // header, each with the fields of zip64.
                let deflated = bytes.saturating_add(bytes >> 3).saturating_add((bytes >> 6) + 16);
                deflated.saturating_add((30 + name + 20) + 24 + (46 + name + 32))
            }
            Format::Tar => {
                let padded = |bytes: u64| bytes.div_ceil(BLOCK).saturating_mul(BLOCK);
                // A name that has no room in the header is content of another one.
                let long = if name < 100 { 0 } else { BLOCK + padded(name + 1) };
                padded(bytes).saturating_add(BLOCK + long)
            }
        };
        self.bytes = self.bytes.saturating_add(more);
    }

    /// It in bytes.
    pub(super) fn bytes(self) -> u64 {
        self.bytes
    }
}

/// What goes into an archive.
enum Part {
    /// A file begins; so many bytes of it follow.
    File { path: String, bytes: u64 },
    /// The next bytes of that file.
    Data(Bytes),
    /// There are no more files.
    End,
}

/// Takes the files of an archive, one after the other.
pub(super) struct Files(mpsc::Sender<Part>);

/// The archive is not written any more; its reader knows why.
#[derive(Debug)]
pub(super) struct Stopped;

/// Begins an archive whose files all have this date. Unless [`Files::end`] is called, its chunks end with an error.
pub(super) fn begin(format: Format, modified: Timestamp) -> (Files, Chunks) {
    let (files, parts) = mpsc::channel(QUEUE);
    let (chunks, pieces) = mpsc::channel(QUEUE);
    tokio::task::spawn_blocking(move || {
        let output = Output { pieces: chunks.clone(), piece: BytesMut::with_capacity(PIECE) };
        let written = match format {
            Format::Zip => write_zip(parts, output, modified),
            Format::Tar => write_tar(parts, output, modified),
        };
        // An empty piece is the end. Without a reader, it is of no use.
        let _ = chunks.blocking_send(written.map(|()| Bytes::new()));
    });
    // A writer that panics says nothing: without its word the archive is not whole.
    let chunks = stream::unfold(Some(pieces), async |pieces| {
        let mut pieces = pieces?;
        match pieces.recv().await {
            Some(Ok(piece)) if piece.is_empty() => None,
            Some(piece) => Some((piece, Some(pieces))),
            None => Some((Err(given_up()), None)),
        }
    });
    (Files(files), chunks.boxed())
}

impl Files {
    /// Begins a file of so many bytes.
    pub(super) async fn file(&self, path: String, bytes: u64) -> Result<(), Stopped> {
        self.send(Part::File { path, bytes }).await
    }

    /// Adds bytes to the file.
    pub(super) async fn data(&self, bytes: Bytes) -> Result<(), Stopped> {
        if bytes.is_empty() { Ok(()) } else { self.send(Part::Data(bytes)).await }
    }

    /// Ends the archive.
    pub(super) async fn end(self) -> Result<(), Stopped> {
        self.send(Part::End).await
    }

    async fn send(&self, part: Part) -> Result<(), Stopped> {
        self.0.send(part).await.map_err(|_| Stopped)
    }
}

fn write_zip(mut parts: mpsc::Receiver<Part>, output: Output, modified: Timestamp) -> io::Result<()> {
    let mut writer = zip::ZipWriter::new_stream(output);
    // Years that its date cannot say are left out.
    let modified = zip::DateTime::try_from_timestamp(modified);
    while let Some((path, bytes)) = next(&mut parts)? {
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .compression_level(Some(LEVEL))
            .last_modified_time(modified)
            .unix_permissions(0o644)
            .large_file(bytes >= LARGE);
        writer.start_file(path, options)?;
        io::copy(&mut Content::new(&mut parts, bytes), &mut writer)?;
    }
    writer.finish()?.into_inner().flush()
}

fn write_tar(mut parts: mpsc::Receiver<Part>, output: Output, modified: Timestamp) -> io::Result<()> {
    let mut builder = tar::Builder::new(output);
    while let Some((path, bytes)) = next(&mut parts)? {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes);
        header.set_mode(0o644);
        header.set_mtime(u64::try_from(modified.as_second()).unwrap_or(0));
        builder.append_data(&mut header, path, Content::new(&mut parts, bytes))?;
    }
    builder.into_inner()?.flush()
}

/// The next file; `None` at the end of the archive.
fn next(parts: &mut mpsc::Receiver<Part>) -> io::Result<Option<(String, u64)>> {
    match parts.blocking_recv() {
        Some(Part::File { path, bytes }) => Ok(Some((path, bytes))),
        Some(Part::End) => Ok(None),
        Some(Part::Data(_)) => Err(io::Error::other("a file has more bytes than recorded")),
        None => Err(given_up()),
    }
}

fn given_up() -> io::Error {
    io::Error::other("the archive was cancelled")
}

/// The bytes of a file.
struct Content<'a> {
    parts: &'a mut mpsc::Receiver<Part>,
    piece: Bytes,
    /// How many bytes are still to come.
    left: u64,
}

impl<'a> Content<'a> {
    fn new(parts: &'a mut mpsc::Receiver<Part>, bytes: u64) -> Self {
        Self { parts, piece: Bytes::new(), left: bytes }
    }
}

impl Read for Content<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        while self.piece.is_empty() {
            self.piece = match self.parts.blocking_recv() {
                Some(Part::Data(piece)) => piece,
                Some(Part::File { .. } | Part::End) => {
                    return Err(io::Error::other("a file has fewer bytes than recorded"));
                }
                None => return Err(given_up()),
            };
            if self.piece.len() as u64 > self.left {
                return Err(io::Error::other("a file has more bytes than recorded"));
            }
        }
        let length = to.len().min(self.piece.len());
        to[..length].copy_from_slice(&self.piece[..length]);
        self.piece.advance(length);
        self.left -= length as u64;
        Ok(length)
    }
}

/// Where the archive's bytes go.
struct Output {
    pieces: mpsc::Sender<io::Result<Bytes>>,
    piece: BytesMut,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..length]);
        if self.piece.len() == PIECE {
            self.flush()?;
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, BytesMut::with_capacity(PIECE)).freeze();
        self.pieces.blocking_send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// The date of a file in a zip.
trait ZipDate: Sized {
    fn try_from_timestamp(at: Timestamp) -> Self;
}

impl ZipDate for zip::DateTime {
    fn try_from_timestamp(at: Timestamp) -> Self {
        let at = Offset::UTC.to_datetime(at);
        let part = |number: i8| u8::try_from(number).unwrap_or_default();
        let year = u16::try_from(at.year()).unwrap_or_default();
        let [month, day, hour, minute, second] = [at.month(), at.day(), at.hour(), at.minute(), at.second()].map(part);
        Self::from_date_and_time(year, month, day, hour, minute, second).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt as _;

    use super::*;

    async fn written<P: AsRef<[u8]>>(
        format: Format,
        files: &[(&str, &[P])],
        is_ended: bool,
    ) -> Result<Vec<u8>, String> {
        let (writer, chunks) = begin(format, "2026-03-02T18:17:05Z".parse().unwrap());
        let fill = async move {
            for (path, pieces) in files {
                let bytes = pieces.iter().map(|piece| piece.as_ref().len() as u64).sum();
                writer.file((*path).to_owned(), bytes).await.unwrap();
                for piece in *pieces {
                    writer.data(Bytes::copy_from_slice(piece.as_ref())).await.unwrap();
                }
            }
            if is_ended {
                writer.end().await.unwrap();
            }
        };
        let all = chunks.try_fold(Vec::new(), async |mut all, chunk| {
            all.extend_from_slice(&chunk);
            Ok(all)
        });
        let ((), all) = tokio::join!(fill, all);
        all.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn the_same_files_are_the_same_archive_and_one_that_is_given_up_is_none() {
        let files: &[(&str, &[&str])] = &[("a/ä.txt", &["one ", "", "two"]), ("a/empty", &[]), ("b", &["x"])];
        for format in [Format::Zip, Format::Tar] {
            let archive = written(format, files, true).await.unwrap();
            assert_eq!(written(format, files, true).await.unwrap(), archive, "{format}");
            let found = written(format, files, false).await.unwrap_err();
            assert!(found.contains("cancelled"), "{format}: {found}");
        }
        let archive = written(Format::Zip, files, true).await.unwrap();
        let mut archive = zip::ZipArchive::new(io::Cursor::new(archive)).unwrap();
        let mut content = String::new();
        archive.by_name("a/ä.txt").unwrap().read_to_string(&mut content).unwrap();
        assert_eq!((content.as_str(), archive.len()), ("one two", 3));
    }

    #[tokio::test]
    async fn no_archive_is_larger_than_its_bound_which_is_exact_for_a_tar_and_near_for_a_zip() {
        // None of these bytes is seldom or has a short code of its own: they become more by being compressed.
        let mut state = 1_u64;
        let mut noise = |bytes: usize| -> Vec<u8> {
            let next = |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                144 + ((state >> 33) % 112) as u8
            };
            (0..bytes).map(next).collect()
        };
        let (large, small, long) = ([noise(3 << 20)], [noise(700)], "ä/".repeat(120) + "name");
        let few = vec![("a/large", &large[..]), (&*long, &small[..]), ("empty", &[])];
        let names: Vec<_> = (0..300).map(|number| format!("folder/{number}")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), &small[..])).collect();
        for (format, files) in [(Format::Zip, &few), (Format::Zip, &many), (Format::Tar, &few), (Format::Tar, &many)] {
            let mut bound = Bound::of(format);
            for (path, pieces) in files {
                bound.add(path, pieces.iter().map(|piece| piece.len() as u64).sum());
            }
            let (archive, bound) = (written(format, files, true).await.unwrap().len() as u64, bound.bytes());
            let most = if format == Format::Tar { archive } else { archive + archive / 2 };
            assert!((archive..=most).contains(&bound), "{format}: {archive} {bound}");
        }
    }
}
